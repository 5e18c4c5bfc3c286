#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# strain advise and what jobs do: how they make their batches, validate, leak and fail.

load advise_helpers

setup() {
	enter_folder
	JOB="$SOURCE_ROOT/tests/cli/advise_job.py"
}

teardown() {
	leave_folder
}

@test "a command that does not follow its batch size is found out" {
	has_torch
	run -0 --separate-stderr "$STRAIN" advise --memory 500MB --limit 6s --error 30% --json -o kept -- \
		/usr/bin/python3 "$JOB" --ignore --batch-size '{batch_size=16}'
	echo "$output" | tee answer.json
	[ "$(field 'largest["value"], largest["missing"] is not None')" = "(None, True)" ]
	line_names "$(field 'largest["missing"]')" 64 16
}

odd() { # KIND OPTION...
	local kind=$1
	shift
	OMP_NUM_THREADS=1 "$STRAIN" advise --error 30% --json -o kept "$@" -- \
		/usr/bin/python3 "$SOURCE_ROOT/tests/cli/advise_odd.py" "$kind" >answer.json
}

@test "batches without a loader: a probe does not wait for epochs that nothing shortens" {
	has_torch
	odd by-hand --limit 60s
	[ "$(field 'largest["missing"] is not None, a["seconds"] < 55')" = "(True, True)" ]
}

@test "a second stage with other batches is no accumulation" {
	has_torch
	odd stages --time 8s
	[ "$(field 'runs[0]["batch_size"], runs[0]["accumulated"]')" = "(64, 1)" ]
}

@test "a validation that keeps its outputs: the request has what a whole one needs" {
	unset MALLOC_MMAP_THRESHOLD_
	is_slow
	has_torch
	odd collects --memory 2GB --time 2min
	echo "$(field 'a["memory"]["now"], a["memory"]["reserve_of_validation"], a["request"]["peak_bytes"]')"
	# Of 262 MB, a second of it keeps up to 100; the peak of training may be above the rest.
	[ "$(field '110e6 < a["memory"]["reserve_of_validation"] < 262e6')" = True ]
	# Where other load leaves no time for all runs, the request is not known.
	[ "$(field 'a["request"]["peak_bytes"] is None or a["request"]["peak_bytes"] > a["memory"]["now"] + 30e6')" = True ]
	[ "$(field '"validation     keeps memory for each batch" in "\n".join(a["page"])')" = True ]
}

@test "samples that differ in size: runs begin with the largest, and the page says so" {
	unset MALLOC_MMAP_THRESHOLD_
	has_torch
	odd sentences --time 8s
	echo "$(field 'a["memory"]["sample_sizes"]')"
	[ "$(field 'a["memory"]["sample_sizes"]["looked"], a["memory"]["sample_sizes"]["largest"]')" = "(2000, 9601)" ]
	local page
	page=$(field '" ".join(" ".join(a["page"]).split())')
	[[ $page == *"samples differ in size: "*" a batch of the largest of all 2000 samples"* ]]
}

@test "an endless pass: its shortened ones restart workers, which the job does not" {
	has_torch
	odd endless --time 6s --limit 10s
	[ "$(field '"setting" in [run["step"] for run in runs], a["request"]["epoch_s"], "restart" in (a["verdict"] or "")')" = "(False, None, False)" ]
}

@test "a model of one batch size: the reason is the job's" {
	has_torch
	odd of-size
	[ "$(field '"RuntimeError: The size of tensor a (64)" in largest["missing"]')" = True ]
	[ "$(field '"{batch_size}" in largest["missing"]')" = True ]
}

@test "nothing fits because of the validation loader, whose batch size no probe changes" {
	is_slow
	has_torch
	cat >validates.py <<-'END'
		import sys, torch
		from torch.utils.data import DataLoader, TensorDataset
		data = TensorDataset(torch.randn(4000, 1, 32, 32), torch.randint(0, 10, (4000,)))
		training, checking = DataLoader(data, int(sys.argv[1]), shuffle=True), DataLoader(data, 2000)
		layers = [torch.nn.Conv2d(1, 16, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(14400, 10)]
		model = torch.nn.Sequential(*layers)
		optimizer = torch.optim.SGD(model.parameters(), 0.01)
		for _ in range(1000):
		    model.train()
		    for x, y in training:
		        optimizer.zero_grad()
		        torch.nn.functional.cross_entropy(model(x), y).backward()
		        optimizer.step()
		    model.eval()
		    with torch.no_grad():
		        for x, y in checking:
		            model(x)
	END
	run -0 --separate-stderr env OMP_NUM_THREADS=1 "$STRAIN" advise --memory 250MB \
		--limit 20s --error 50% -o kept -- /usr/bin/python3 validates.py '{batch_size=4}'
	echo "$stderr" "$output"
	[ "$(field 'largest["nothing_fits"]' kept/advice.json)" = True ]
	[ "$(field 'a["memory"]["validation_peak"] > 1.2 * a["memory"]["training_peak"] > 0' kept/advice.json)" = True ]
	[[ $output == *"nothing fits in 250 MB"*"the peak is in validation"* ]]
}

@test "an iterable dataset: workers stay as they are, the batch size follows" {
	is_slow
	has_torch
	odd iterable --memory 2GB
	[ "$(field '"iterable" in a["advised"]["workers_missing"], a["advised"]["workers"]')" = "(True, 0)" ]
	[ "$(field 'a["advised"]["did_not_fit"], a["memory"]["worker"]')" = "(False, None)" ]
	[ "$(field 'len({run["batch_size"] for run in runs}) > 1, {run["workers"] for run in runs}')" = "(True, {0})" ]
}

@test "a leak is told, and how long it lasts" {
	unset MALLOC_MMAP_THRESHOLD_
	is_slow
	has_torch
	run -0 --separate-stderr "$STRAIN" advise --memory 2GB --json -o kept -- \
		/usr/bin/python3 "$JOB" --batch-size '{batch_size=16}' --leak 12000000
	echo "$output" >answer.json
	echo "$(field 'a["memory"]')"
	[ "$(field '8e6 < a["memory"]["leak_per_iteration"] < 16e6')" = True ]
	# 2 GB of which the job has some 150 MB without the leak; an epoch of 250 iterations needs 3 GB.
	[ "$(field '110 < a["memory"]["lasts_iterations"] < 240, largest["nothing_fits"]')" = "(True, True)" ]
	[ "$(field '[r["step"] for r in runs].count("verify")')" = 0 ]
}

@test "jobs that fail, that never iterate, and a stop by Ctrl-C" {
	run -1 --separate-stderr "$STRAIN" advise -o failed -- sh -c 'echo broken >&2; exit 3'
	notes 3
	[[ "$stderr" == *broken* ]]
	run -1 --separate-stderr "$STRAIN" advise -o idle --limit 5s -- sleep 77
	nothing_runs advise_job.py
	[ -n "$stderr" ]
	run -1 --separate-stderr "$STRAIN" advise -o none -- ./no-such-program
	notes no-such-program || [[ "$stderr" == *no-such-program* ]]
	"$STRAIN" advise -o stopped -- sleep 77 2>told &
	local pid=$!
	for _ in $(seq 100); do
		[ -e stopped/01-now.strain ] && break
		sleep 0.1
	done
	kill -INT "$pid"
	local status=0
	wait "$pid" || status=$?
	[ "$status" -eq 130 ]
	nothing_runs advise_job.py
}
