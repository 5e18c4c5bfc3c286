#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# strain advise without --stalls and --try: the largest batch that fits, batch size and workers.

load advise_helpers

setup() {
	enter_folder
	JOB="$SOURCE_ROOT/tests/cli/advise_job.py"
}

teardown() {
	leave_folder
}

@test "the largest batch fits under the limit, and a clearly larger one does not" {
	is_slow
	has_torch
	can_limit
	run -0 --separate-stderr "$STRAIN" advise --memory 500MB --json -o kept -- \
		/usr/bin/python3 "$JOB" --batch-size '{batch_size=16}' --workers '{workers=0}'
	echo "$stderr"
	echo "$output" | tee answer.json
	nothing_runs advise_job.py
	[ "$(field 'largest["verified"] >= 1 and largest["verified_by"]')" = limit ]
	[ "$(field 'largest["low"] <= largest["value"] <= largest["high"]')" = True ]
	[ "$(field 'largest["low"] <= largest["verified"]')" = True ]
	[ "$(field 'a["memory"]["limit"], a["memory"]["limit_kind"]')" = "(500000000, 'requested')" ]
	[ "$(field 'a["memory"]["line"]["bytes_per_sample"] > 100000')" = True ]
	[ "$(field 'len(runs) == a["probes"] and sum(r["step"] != "again" for r in runs) <= 8')" = True ]
	[ "$(field 'a["rate"]["now"] > 0 and a["rate"]["measured"] > 0')" = True ]
	# Validation, a checkpoint and a second epoch were part of the first run.
	[ "$(field 'runs[0]["validated"], runs[0]["checkpoint"], runs[0]["epochs"] >= 2')" = "(True, True, True)" ]
	# The answer is kept, with the runs.
	[ "$(field 'a["largest_batch"]' kept/advice.json)" = "$(field 'largest')" ]
	local name
	for name in $(field '" ".join(r["run"] for r in runs)'); do
		"$STRAIN" sql "kept/$name" 'select count(*) from run' >/dev/null
	done
	# What it says is true.
	fits() { # BATCH
		"$STRAIN" run --no-verdict --force -o fits --memory 500MB -- \
			/usr/bin/python3 "$JOB" --batch-size "$1" --samples "$(($1 * 4))" --epochs 2
	}
	fits "$(field 'largest["verified"]')"
	run ! fits "$(field 'int(largest["high"] * 1.15) + 2')"
}

@test "the largest batch is that with the job's workers, though a larger one fits without" {
	is_slow
	has_torch
	can_limit
	cat >held.py <<-'END'
		import argparse, time, torch
		parser = argparse.ArgumentParser()
		parser.add_argument("--batch-size", type=int)
		parser.add_argument("--workers", type=int)
		arguments = parser.parse_args()
		def hold(_):
		    global held
		    held = b"x" * (80 << 20)
		data = torch.utils.data.TensorDataset(torch.ones(4000, 1))
		loader = torch.utils.data.DataLoader(data, arguments.batch_size, num_workers=arguments.workers, worker_init_fn=hold)
		model = torch.nn.Linear(1, 1)
		optimizer = torch.optim.SGD(model.parameters(), 0.01)
		for _ in range(1000):
		    for batch, in loader:
		        activations = torch.ones(len(batch), 1 << 18)
		        until = time.process_time() + 0.03
		        while time.process_time() < until:
		            pass
		        optimizer.zero_grad()
		        model(batch).sum().backward()
		        optimizer.step()
	END
	run -0 --separate-stderr "$STRAIN" advise --memory 480MB --json -o kept -- \
		/usr/bin/python3 held.py --batch-size '{batch_size=8}' --workers '{workers=1}'
	echo "$stderr"
	echo "$output" | tee answer.json
	[ "$(field 'largest["workers"]')" = 1 ]
	[ "$(field 'largest["value"] == max(r["batch_size"] for r in runs if r["limit"] and not r["failed"] and r["workers"] >= 1)')" = True ]
	"$STRAIN" show kept | grep -q 'ran under the limit of 480 MB with 1 worker'
}

@test "runs that need different memory: the answer passes again, and what ran once is named" {
	unset MALLOC_MMAP_THRESHOLD_
	is_slow
	has_torch
	can_limit
	cat >varies.py <<-'END'
		import argparse, random, time, torch
		parser = argparse.ArgumentParser()
		parser.add_argument("--batch-size", type=int)
		arguments = parser.parse_args()
		held = torch.ones(int(random.uniform(0, 20) * 2**18)) # another size in each run
		data = torch.utils.data.TensorDataset(torch.ones(4096, 1))
		loader = torch.utils.data.DataLoader(data, arguments.batch_size)
		model = torch.nn.Linear(1, 1)
		optimizer = torch.optim.SGD(model.parameters(), 0.01)
		for _ in range(12):
		    for batch, in loader:
		        activations = torch.ones(len(batch), 1 << 18) # 1 MiB each
		        time.sleep(0.001 * len(batch))
		        optimizer.zero_grad()
		        model(batch).sum().backward()
		        optimizer.step()
	END
	run -0 --separate-stderr "$STRAIN" advise --memory 330MB --json -o kept -- \
		/usr/bin/python3 varies.py --batch-size '{batch_size=16}'
	echo "$stderr"
	echo "$output" | tee answer.json
	[ "$(field 'largest["low"] <= largest["value"] < largest["verified"]')" = True ]
	[ "$(field 'largest["verified_long"], largest["verified_by"]')" = "(True, 'limit')" ]
	[ "$(field 'sum(r["step"] in ("now", "line") for r in runs) <= 4')" = True ]
	[ "$(field 'sum(r["step"] == "verify" for r in runs) <= 3')" = True ]
	"$STRAIN" show kept | grep -q "fits with 90 % probability, .* ran once under the limit of 330 MB"
	for _ in 1 2; do
		"$STRAIN" run --no-verdict --force -o fits --memory 330MB -- \
			/usr/bin/python3 varies.py --batch-size "$(field 'int(largest["low"])')" # nearly all pass
	done
}

@test "without placeholders the hooks set batch size and workers, and a waiting job gets workers" {
	is_slow
	has_torch
	local cpus
	cpus=$(nproc)
	[ "$cpus" -ge 2 ] || skip "one CPU"
	run -0 --separate-stderr "$STRAIN" advise --memory 3GB --json -o kept -- \
		/usr/bin/python3 "$JOB" --batch-size 32 --prepare 0.004
	echo "$stderr"
	echo "$output" | tee answer.json
	[ "$(field '[r["batch_size"] for r in runs if r["step"] == "line"][0]')" -gt 32 ]
	[ "$(field '[r["workers"] for r in runs if r["step"] == "workers"]')" = "[1]" ]
	[ "$(field '0.003 < a["rate_model"]["prepare_per_sample_s"] < 0.008')" = True ]
	[ "$(field 'a["advised"]["workers"] >= 1 or a["advised"]["keep"]')" = True ]
	[ "$(field 'a["by_cpus"][0]["cpus"], len(a["by_batch"]) > 1')" = "(1, True)" ]
}

@test "a larger batch trains faster, and --validate shows what it does to the loss" {
	has_torch
	export OMP_NUM_THREADS=1
	run -0 --separate-stderr "$STRAIN" advise --json --validate=5s --limit 5s --scale-learning-rate sqrt -o kept -- \
		/usr/bin/python3 "$SOURCE_ROOT/tests/cli/advise_small.py" --epochs 2000 \
		--batch-size '{batch_size=4}' --learning-rate '{learning_rate=0.01}'
	echo "$stderr"
	echo "$output" >answer.json
	cmp answer.json kept/advice.json
	[ "$(field 'a["advised"]["batch_size"] > 4 and a["rate"]["gain"] > 1.01')" = True ]
	[ "$(field 'abs(a["rate"]["gain"] * a["rate"]["now"] / a["rate"]["measured"] - 1) < 1e-6')" = True ]
	[ "$(field '[(c["at_equal"], c["batch_size"] == 4) for c in a["convergence"]]')" = \
		"[('samples', True), ('samples', False), ('time', True), ('time', False)]" ]
	[ "$(field '[0 < c["loss"] < 10 and 0 < c["accuracy"] <= 1 for c in a["convergence"]]')" = \
		"[True, True, True, True]" ]
	[ "$(field 'abs(a["convergence"][1]["learning_rate"] /
		(0.01 * (a["advised"]["batch_size"] / 4) ** 0.5) - 1) < 1e-3')" = True ]
	[ "$(field '"--learning-rate" in a["command"] and "{" not in "".join(a["command"])')" = True ]
	python3 - "$SOURCE_ROOT" <<-'EOF'
		import json, sys
		from pathlib import Path
		sys.path.insert(0, sys.argv[1] + "/tests/cli")
		sys.dont_write_bytecode = True
		import json_keys
		found = {}
		json_keys.walk(json.loads(Path("answer.json").read_text()), "", found)
		known = json_keys.documented(Path(sys.argv[1]) / "docs/json.md")["strain advise"]
		wrong = list(json_keys.compare("strain advise", known, found))
		assert not wrong, wrong
	EOF
	nothing_runs advise_job.py
}

@test "what no placeholder sets is to be changed in the script" {
	is_slow
	has_torch
	export OMP_NUM_THREADS=1
	run -0 --separate-stderr "$STRAIN" advise --sbatch --error 20% --limit 8s -o kept -- \
		/usr/bin/python3 "$SOURCE_ROOT/tests/cli/advise_small.py" --epochs 2000 \
		--batch-size 4 --learning-rate '{learning_rate=0.01}'
	echo "$stderr" "$output"
	[ "$(field 'a["advised"]["batch_size"] > 4' kept/advice.json)" = True ]
	local loader
	loader="DataLoader(batch_size=$(field 'a["advised"]["batch_size"]' kept/advice.json)"
	[[ $output == *"# change "*"advise_small.py:"*"$loader"* ]]
	[ "$(field '[w[0] for w in (l.split(" ") for l in a["page"]) if w[0] in ("change", "run")]' kept/advice.json)" = \
		"['change', 'run']" ]
}

@test "the estimates of the thesis beside the answer" {
	is_slow
	has_torch
	export OMP_NUM_THREADS=1
	run -0 --separate-stderr "$STRAIN" advise --limit 5s --error 30% --memory 2GB --thesis -o kept -- \
		/usr/bin/python3 "$SOURCE_ROOT/tests/cli/advise_small.py" --epochs 2000 --batch-size '{batch_size=16}'
	[[ $output == *"Tripathi 2019  largest batch "* ]]
	[ "$(field '"seconds" in a["thesis"]' kept/advice.json)" = True ]
}

@test "a first run that was slower than all others suggest is made again" {
	is_slow
	has_torch
	export OMP_NUM_THREADS=1
	run -0 --separate-stderr "$STRAIN" advise --limit 5s --memory 2GB --json -o kept -- \
		/usr/bin/python3 "$SOURCE_ROOT/tests/cli/advise_small.py" --epochs 2000 --batch-size '{batch_size=64}' \
		--first "$BATS_TEST_TMPDIR/first"
	echo "$stderr" "$output"
	[[ $stderr == *"the unmodified job again, because its rate does not fit the other runs"* ]]
	[ "$(field '[r["step"] for r in runs].count("again")' kept/advice.json)" = 1 ]
	local present='[r["rate"] for r in runs if r["step"] in ("now", "again")]'
	# The second one fits, and counts alone; or both, where the machine was busy then.
	[ "$(field "${present}[1] > ${present}[0]" kept/advice.json)" = True ]
	local now='a["rate"]["now"]'
	[ "$(field "min(abs($now - ${present}[1]), abs($now - sum($present) / 2)) < 1e-6 * $now" kept/advice.json)" = True ]
	[ "$(field "abs(a['by_batch'][0]['rate'] - $now) < 1e-6 * $now" kept/advice.json)" = True ]
}

@test "settings that gained nothing are in the answer" {
	unset MALLOC_MMAP_THRESHOLD_
	is_slow
	has_torch
	cat >faults.py <<-'END'
		import mmap, torch
		class Faults(torch.nn.Linear):
		    def forward(self, batch): # pages that no setting of malloc keeps
		        for _ in range(10):
		            held = mmap.mmap(-1, 4 << 20)
		            held[::4096] = b"x" * 1024
		            held.close()
		        return super().forward(batch)
		model = Faults(1, 1)
		optimizer = torch.optim.SGD(model.parameters(), 0.01)
		while True:
		    optimizer.zero_grad()
		    model(torch.ones(4, 1)).sum().backward()
		    optimizer.step()
	END
	run -0 --separate-stderr env OMP_NUM_THREADS=1 "$STRAIN" advise --limit 10s -o kept -- /usr/bin/python3 faults.py
	echo "$stderr" "$output"
	[ "$(field '"setting" in [r["step"] for r in runs]' kept/advice.json)" = True ] || skip "no samples of the kernel's time"
	[[ $stderr == *": MALLOC_TRIM_THRESHOLD_="* ]]
	[[ $output == *"tried          MALLOC_TRIM_THRESHOLD_="*"faster"*"times"* ]] ||
		[ "$(field 'a["advised"]["allocator"] is not None' kept/advice.json)" = True ]
	[ "$(field '[0.3 < r["gain"] < 3 for r in runs if r["gain"] is not None]' kept/advice.json)" = "[True]" ]
}

@test "where other programs are busy, the present configuration runs again, and both rates count" {
	unset MALLOC_MMAP_THRESHOLD_
	is_slow
	has_torch
	# The first run shares its CPU with another program, which then ends.
	timeout 60 taskset -c 0 sh -c 'while [ ! -e told ] || ! grep -q "probe 2" told; do :; done' &
	local burner=$!
	taskset -c 0 "$STRAIN" advise --memory 2GB --json -o kept -- \
		/usr/bin/python3 "$JOB" --prepare 0.001 --batch-size '{batch_size=2}' >answer.json 2>told
	wait "$burner"
	cat told
	[ "$(field 'runs[0]["others_cpus"] > 0.2, a["cpus"]')" = "(True, 1)" ]
	[ "$(field '[r["step"] for r in runs].count("again")')" = 1 ] || [ "$(field 'a["advised"]["keep"]')" = True ]
	local again
	again=$(field '[r["rate"] for r in runs if r["step"] == "again"][0]')
	[ "$(field "abs(a['rate']['now'] - (runs[0]['rate'] + $again) / 2) < 1e-6")" = True ]
	[ "$(field 'a["advised"]["refuted"] or abs(a["rate"]["gain"] - a["rate"]["measured"] / a["rate"]["now"]) < 1e-6')" = True ]
}

@test "what is wrong with the options" {
	run -2 "$STRAIN" advise
	run -2 "$STRAIN" advise --memory 1kB -- true
	run -2 "$STRAIN" advise --margin 95% -- true
	run -2 "$STRAIN" advise --cpus 0 -- true
	run -2 "$STRAIN" advise --stalls --memory 1GB -- true
	run -2 "$STRAIN" advise --try --sbatch
	fails_with 2 --sbatch --docker -- "$STRAIN" advise --sbatch --docker -- true
	fails_with 2 --json --kubernetes -- "$STRAIN" advise --json --kubernetes -- true
	fails_with 2 --cpus 8000 -- "$STRAIN" advise --cpus 8000 -- true
	fails_with 2 '{batch_size=16}' '{batchsize=16}' -- "$STRAIN" advise true --batch '{batchsize=16}'
	fails_with 2 '{workers}' two -- "$STRAIN" advise true --workers '{workers=two}'
	[ -z "$(ls)" ] # nothing began
	run -1 --separate-stderr "$STRAIN" advise -- false '{"lr": 0.1}' '{epoch}' "\${batchsize}"
	mkdir there
	run -1 --separate-stderr "$STRAIN" advise -o there -- true
	notes there
}

@test "requests in the words of a scheduler" {
	has_torch
	run -0 --separate-stderr "$STRAIN" advise --sbatch --time 5s -o kept -- \
		/usr/bin/python3 "$JOB" --batch-size '{batch_size=16}'
	echo "$output"
	[[ "${lines[0]}" == "#!/bin/sh" ]]
	[[ "$output" =~ --cpus-per-task=[1-9] && "$output" =~ --mem=[1-9][0-9]+M ]]
	[[ "$output" == *"--batch-size 16"* ]]
	[ "$(field 'a["complete"]' kept/advice.json)" = False ]
	run -0 --separate-stderr "$STRAIN" advise --kubernetes --time 5s -o pod -- \
		/usr/bin/python3 "$JOB" --batch-size '{batch_size=16}'
	echo "$output"
	[[ "$output" == *"# the time ran out (--time): from the runs so far"* ]]
	[[ "$output" == *'command: ["/usr/bin/python3", "'*'", "--batch-size", "16"]'* ]]
	[[ "$output" =~ memory:\ [1-9][0-9]+Mi ]]
}

@test "what is asked for, and the job once under exactly that" {
	has_torch
	can_limit
	run -0 --separate-stderr "$STRAIN" advise --sbatch --epochs 7 --verify --limit 10s -o kept -- \
		/usr/bin/python3 "$JOB" --batch-size '{batch_size=16}' --samples 800
	echo "$stderr" "$output"
	[[ "$output" != *nan* ]]
	local seconds
	seconds=$(field 'round(1.2 * (7 * (a["request"]["epoch_s"] + a["request"]["validation_s"]) + a["request"]["startup_s"]) / a["request"]["seconds"], 6)' \
		kept/advice.json)
	[ "$seconds" = 1.0 ]
	[ "$(field 'round(a["request"]["epoch_s"] * (a["rate"]["measured"] or a["rate"]["now"]), 3) == 800' kept/advice.json)" = True ]
	[ "$(field '0 < a["request"]["cpus_used"] <= a["request"]["cpus"] + 0.3' kept/advice.json)" = True ]
	# 13 batches beside 50, without gradients; the 4 that ran would be below 3 %
	[ "$(field '0.035 < a["request"]["validation_s"] / a["request"]["epoch_s"] < 1' kept/advice.json)" = True ]
	[[ "$output" =~ --time=[1-9][0-9]*\ \ \ # ]]
	[[ "$output" == *"# it ran under this request"* ]]
	[ "$(field '[r["limit"] for r in runs if r["step"] == "request"] == [int(a["request"]["bytes"])]' kept/advice.json)" = True ]
	nothing_runs advise_job.py
}
