#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# What a job was allocated against what it used, and its cost by a price list: recorded jobs against
# a stopwatch around them, and the commands that show costs.

load messages

# Records two jobs in ./runs: one computes on one CPU, one sleeps. NAME.seconds has what a stopwatch
# around the recording says, so it is at least the duration of the job.
setup_file() {
	cd "$BATS_FILE_TMPDIR" || return
	mkdir runs
	record busy --label machine=a -- python3 -c '
import time
start = time.process_time()
while time.process_time() < start + 0.8: pass'
	record idle --label machine=b -- sleep 1
	cat >prices.yaml <<-'EOF'
		currency: EUR
		machines:
		  - host: "no-such-host-*"
		    hour: 1000
		  - cpu_hour: 3600
		    gpu_hour: 0
	EOF
}

record() { # NAME OPTION...
	local name=$1 from to
	shift
	from=$(date +%s.%N)
	"$STRAIN" run -o "runs/$name.strain" "$@" >"$name.log" 2>&1
	to=$(date +%s.%N)
	python3 -c "print($to - $from)" >"$name.seconds"
}

setup() {
	cd "$BATS_FILE_TMPDIR" || return
	unset COLUMNS STRAIN_DIR STRAIN_PRICES
}

# CPUs by affinity; nproc heeds OMP_NUM_THREADS.
affinity() {
	python3 -c 'import os; print(len(os.sched_getaffinity(0)))'
}

# CPUs that a job is allocated here; a quota may be less than the affinity, and no whole number.
cpus() {
	value 'd["allocation"]["cpus"]["allocated"]' "$STRAIN" show --json runs/idle.strain
}

# EXPRESSION of the document d that a command printed.
value() { # EXPRESSION COMMAND...
	local expression=$1
	shift
	"$@" 2>/dev/null | python3 -c 'import json, sys
d = json.load(sys.stdin)
print(eval(sys.argv[1]))' "$expression"
}

@test "a job is allocated the CPUs that it may use, and what it did not use is idle" {
	cpus=$(cpus)
	# 0.8 s of CPU time were used, by the job's own clock; python needs some more to start.
	value 'd["allocation"]["cpus"]' "$STRAIN" show --json runs/busy.strain >cpus
	python3 - "$(cat cpus)" "$cpus" "$(affinity)" <<-'EOF'
		import ast, sys
		cpus, n, affinity = ast.literal_eval(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
		assert cpus["allocated"] == n <= affinity, (cpus, affinity)
		assert n == affinity or "quota" in cpus["by"] or "Slurm" in cpus["by"], (cpus, affinity)
		assert cpus["used_s"] >= 0.79, cpus
		assert abs(cpus["held_s"] - cpus["used_s"] - cpus["idle_s"]) < 1e-6 * cpus["held_s"], cpus
		assert cpus["missing"] is None, cpus
	EOF
	run -0 "$STRAIN" show runs/busy.strain
	prints Allocated "${cpus%.0}"
}

@test "limits of the job bound what it was allocated" {
	taskset -c "$(taskset -pc $$ | sed 's/.*: //; s/[-,].*//')" "$STRAIN" run --force -o one.strain -- true 2>/dev/null
	[ "$(value 'd["allocation"]["cpus"]["allocated"] == min(1, '"$(cpus)"')' "$STRAIN" show --json one.strain)" = True ]
	[ "$(value "$(cpus) <= 1" "$STRAIN" show --json one.strain)" = True ] ||
		[ "$(value 'd["allocation"]["cpus"]["by"]' "$STRAIN" show --json one.strain)" = "its CPU affinity" ]
}

@test "an affinity that ranks inherited is shared by them; one of its own is not" {
	[ "$(affinity)" -gt 1 ] || skip "one CPU"
	local first
	first=$(taskset -pc $$ | sed 's/.*: //; s/[-,].*//')
	export STRAIN
	# shellcheck disable=SC2016
	taskset -c "$first" sh -c 'LOCAL_WORLD_SIZE=2 "$STRAIN" run -o both.strain -- true; :' 2>/dev/null
	LOCAL_WORLD_SIZE=2 taskset -c "$first" "$STRAIN" run -o own.strain -- true 2>/dev/null
	[ "$(value 'd["allocation"]["cpus"]["allocated"] <= 0.5' "$STRAIN" show --json both.strain)" = True ]
	[ "$(value 'd["allocation"]["cpus"]["allocated"] > 0.5' "$STRAIN" show --json own.strain)" = True ] ||
		[ "$(value '"quota" in d["allocation"]["cpus"]["by"]' "$STRAIN" show --json own.strain)" = True ]
}

@test "an attached process is bounded by its own affinity" {
	mkfifo ready go
	taskset -c "$(taskset -pc $$ | sed 's/.*: //; s/[-,].*//')" sh -c 'echo >ready; read -r _ <go' 3>&- &
	local process=$! recorder
	timeout 60 cat ready >/dev/null # it runs, on its one CPU
	"$STRAIN" run --force -o attached.strain --pid $process 2>/dev/null 3>&- &
	recorder=$!
	for _ in $(seq 300); do
		[ -z "$("$STRAIN" sql attached.strain --csv "SELECT value FROM run WHERE key = 'limits'" 2>/dev/null | tail -n +2)" ] || break
		sleep 0.1
	done
	timeout 60 sh -c 'echo >go'
	wait $recorder
	[ "$(value 'd["allocation"]["cpus"]["allocated"] == min(1, '"$(cpus)"')' "$STRAIN" show --json attached.strain)" = True ]
}

@test "Slurm's allocation counts in a task on its node, and is shared by the tasks of a step" {
	export SLURM_CPUS_ON_NODE=1 SLURM_MEM_PER_NODE=512
	"$STRAIN" run --force -o login.strain -- true 2>/dev/null
	[ "$(value 'd["allocation"]["memory_bytes"]["by"] == "Slurm"' "$STRAIN" show --json login.strain)" = False ]
	export SLURMD_NODENAME=node1
	"$STRAIN" run --force -o batch.strain -- true 2>/dev/null
	[ "$(value '[d["allocation"][k]["allocated"] for k in ("cpus", "memory_bytes")]' "$STRAIN" show --json batch.strain)" = \
		"[$(python3 -c "print(min(1, $(cpus)))"), 536870912]" ]
	[ "$(value 'd["allocation"]["memory_bytes"]["by"]' "$STRAIN" show --json batch.strain)" = Slurm ]
	SLURM_STEP_TASKS_PER_NODE='4,2(x2)' SLURM_NODEID=2 "$STRAIN" run --force -o rank.strain -- true 2>/dev/null
	[ "$(value '[d["allocation"]["ranks"]] + [d["allocation"][k]["allocated"] for k in ("cpus", "memory_bytes")]' \
		"$STRAIN" show --json rank.strain)" = "[2, 0.5, 268435456]" ]
	for wrong in 'x' '2(x' '-1' '0' '99999999999999999999999(x2)'; do
		SLURM_STEP_TASKS_PER_NODE=$wrong SLURM_NODEID=0 "$STRAIN" run --force -o wrong.strain -- true 2>/dev/null
		[ "$(value 'd["allocation"]["ranks"]' "$STRAIN" show --json wrong.strain)" = 1 ]
	done
	SLURM_CPUS_ON_NODE=lots SLURM_MEM_PER_NODE=-4 "$STRAIN" run --force -o odd.strain -- true 2>/dev/null
	[ "$(value 'd["allocation"]["cpus"]["allocated"]' "$STRAIN" show --json odd.strain)" = "$(cpus)" ]
	# Whatever is no number is not recorded: it could be a secret.
	[ -z "$("$STRAIN" sql odd.strain "SELECT value FROM run WHERE value LIKE '%lots%'" --csv | tail -n +2)" ]
}

@test "ranks of torchrun or mpirun share the machine" {
	LOCAL_WORLD_SIZE=4 "$STRAIN" run --force -o torch.strain -- true 2>/dev/null
	[ "$(value 'd["allocation"]["ranks"]' "$STRAIN" show --json torch.strain)" = 4 ]
	[ "$(value 'd["allocation"]["cpus"]["allocated"] * 4 == '"$(cpus)" "$STRAIN" show --json torch.strain)" = True ]
}

@test "GPUs are allocated that the job may see, and a machine is known by its GPU" {
	[ -d "$BUILD_ROOT/tests/fake/full" ] || skip "without the fake NVML"
	cp "$SOURCE_ROOT/tests/fake/training.script" script
	cat >gpus.yaml <<-'EOF'
		currency: USD
		machines:
		  - gpu: "*h200*"
		    hour: 1
		  - gpu: "*h100*"
		    gpu_hour: 3600
	EOF
	gpus() { # NAME ; what follows is for the job's environment
		env "${@:2}" LD_LIBRARY_PATH="$BUILD_ROOT/tests/fake/full" STRAIN_FAKE_NVML="$PWD/script" \
			"$STRAIN" run --force -o "$1.strain" -- sleep 2 2>/dev/null
	}
	gpus two -u CUDA_VISIBLE_DEVICES
	gpus one CUDA_VISIBLE_DEVICES=1
	gpus none CUDA_VISIBLE_DEVICES=
	gpus rank -u CUDA_VISIBLE_DEVICES LOCAL_WORLD_SIZE=2
	for name in two one none rank; do
		"$STRAIN" show --json --prices gpus.yaml $name.strain >$name.json 2>/dev/null
	done
	python3 - <<-'EOF'
		import json
		for name, n in ("two", 2), ("one", 1), ("none", 0), ("rank", 1):
		    run = json.load(open(name + ".json"))
		    gpus, cost = run["allocation"]["gpus"], run["cost"]["cost"]
		    assert gpus["allocated"] == n and gpus["machine"] == 2, (name, gpus)
		    # The job slept for 2 s: a GPU second costs 1, and it used no GPU.
		    assert 2 * n <= cost <= n * run["run"]["duration_s"] + 1e-6, (name, cost)
		    assert abs(run["cost"]["idle_cost"] - cost) < 1e-6, (name, run["cost"])
	EOF
}

@test "ls finds the job that held most without using it, with and without prices" {
	[ "$(value '[r["name"] for r in d]' "$STRAIN" ls --json --sort cpu_seconds runs)" = "['busy', 'idle']" ]
	for key in idle_cpu_hours idle_cost; do
		value "sorted(d, key=lambda r: -r['measures']['$key']) == d and '$key' in d[0]['measures']" \
			"$STRAIN" ls --json --sort "$key" --prices prices.yaml runs >right
		[ "$(cat right)" = True ]
	done
	[ "$(value '"cost" in d[0]["measures"]' "$STRAIN" ls --json --sort idle_gpu_hours runs)" = False ]
	fails_with 2 --sort idle_cost --prices -- "$STRAIN" ls --sort idle_cost runs
	fails_with 1 --where cost --prices -- "$STRAIN" ls --where 'cost>0' runs
	fails_with 1 --where cost --prices -- "$STRAIN" compare --where 'cost>0' runs
	[ "$(value '[r["name"] for r in d]' "$STRAIN" ls --json --where 'cost>0' --sort name --prices prices.yaml runs)" = "['busy', 'idle']" ]
	[ "$(value 'd' "$STRAIN" ls --json --where 'cost>1e9' --prices prices.yaml runs)" = "[]" ]
}

@test "a cost adds up against a stopwatch and a price list" {
	# 3600 for a CPU hour is 1 for a CPU second.
	for name in busy idle; do
		value 'd["cost"]' "$STRAIN" show --json --prices prices.yaml "runs/$name.strain" >cost
		python3 - "$(cat cost)" "$(cat $name.seconds)" "$(cpus)" <<-'EOF'
			import ast, sys
			cost, seconds, cpus = ast.literal_eval(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
			assert cost["currency"] == "EUR", cost
			# The job took at least 0.8 s, and no longer than the stopwatch around it.
			assert 0.8 * cpus <= cost["cost"] <= seconds * cpus, (cost, seconds)
			assert 0 <= cost["idle_cost"] <= cost["cost"], cost
			assert cost["cost_per_epoch"] is None and cost["missing"]["cost_per_epoch"], cost
		EOF
	done
	run -0 "$STRAIN" show --prices prices.yaml runs/idle.strain
	prints Cost EUR prices.yaml:5
}

@test "compare shows costs and draws them" {
	run -0 --separate-stderr "$STRAIN" compare runs --rows machine --value cost,idle_cost --prices prices.yaml
	prints machine cost, EUR
	[ "$(value '[m["unit"] for m in d["measures"]]' "$STRAIN" compare runs --rows machine --value cost,samples_per_cost \
		--prices prices.yaml --json)" = "['EUR', '{sample}/{money}']" ]
	"$STRAIN" compare runs --rows machine --value cost --prices prices.yaml --figure bars -o cost.svg
	grep -q EUR cost.svg
	# With a list, a cost is shown unless other values are asked for.
	[ "$(value '[m["name"] for m in d["measures"]][:2]' "$STRAIN" compare runs --rows machine --json --prices prices.yaml)" = \
		"['duration_seconds', 'cost']" ]
	# Without a list, the reason is in the table.
	run -0 --separate-stderr "$STRAIN" compare runs --rows machine --value cost
	prints --prices
	# The list is also found by its variable, which the option overrides.
	[ "$(STRAIN_PRICES=prices.yaml value 'd["cost"]["currency"]' "$STRAIN" show --json runs/idle.strain)" = EUR ]
	sed 's/EUR/USD/' prices.yaml >other.yaml
	[ "$(STRAIN_PRICES=prices.yaml value 'd["cost"]["currency"]' "$STRAIN" show --json --prices other.yaml runs/idle.strain)" = USD ]
	[ "$(STRAIN_PRICES='' value 'd["cost"]' "$STRAIN" show --json runs/idle.strain)" = None ]
	fails_with 1 STRAIN_PRICES none.yaml -- env STRAIN_PRICES=none.yaml "$STRAIN" show runs/idle.strain
}

# Memory costs here, too, so what is idle is no share of CPUs alone.
@test "the ranks of a job cost what their runs cost" {
	printf 'currency: EUR\nmachines:\n  - {cpu_hour: 3600, gb_hour: 7200}\n' >memory.yaml
	mkdir -p ranks
	for rank in 0 1; do
		LOCAL_WORLD_SIZE=2 \
			"$STRAIN" run --force --label job=two --label RANK=$rank -o "ranks/$rank.strain" -- sleep 0.5 2>/dev/null
		"$STRAIN" show --json --prices memory.yaml "ranks/$rank.strain" >"rank$rank.json" 2>/dev/null
	done
	run -0 --separate-stderr "$STRAIN" show --prices memory.yaml ranks
	python3 - "$output" <<-'EOF'
		import json, re, sys
		runs = [json.load(open("rank%d.json" % rank))["cost"] for rank in (0, 1)]
		shown = re.search(r"; ([0-9.]+) EUR, of which ([0-9.]+) EUR idle\n", sys.argv[1])
		for text, key in zip(shown.groups(), ("cost", "idle_cost")):
		    assert abs(float(text) - sum(run[key] for run in runs)) <= 0.0051, (shown.group(0), runs)
	EOF
}

@test "a price of samples says what they are" {
	mkdir -p unit
	# shellcheck disable=SC2016
	"$STRAIN" run --force --label kind=video -o unit/frames.strain -- sh -c 'echo samples_unit frames >"$STRAIN_MARKERS/hook-4"' 2>/dev/null
	for value in samples_per_cost cost_per_million_samples; do
		run -0 "$STRAIN" compare unit --rows kind --value $value --prices prices.yaml
		prints 'samples are frames'
	done
	run -0 "$STRAIN" compare unit --rows kind --value cost --prices prices.yaml
	! grep -q 'samples are' <<<"$output" || return 1
}

@test "pages have costs" {
	"$STRAIN" report -o one.html --prices prices.yaml runs/idle.strain 2>err || { grep -q pages err && skip "built without pages"; }
	grep -q '"what":"cost","value":"[0-9.]* EUR, of which' one.html
	grep -q '"what":"allocated"' one.html
	"$STRAIN" report -o plain.html runs/idle.strain 2>/dev/null
	! grep -q '"what":"cost"' plain.html || return 1
	"$STRAIN" report -o all.html --prices prices.yaml runs 2>/dev/null
	grep -q '"name":"idle_cost","unit":"EUR"' all.html
	"$STRAIN" report -o free.html runs 2>/dev/null
	! grep -q '"name":"idle_cost"' free.html || return 1
}

@test "a machine without an entry has no cost, and a reason" {
	printf 'currency: EUR\nmachines:\n  - {host: "no-such-host", hour: 1}\n' >elsewhere.yaml
	value 'd["cost"]["missing"]["cost"]' "$STRAIN" show --json --prices elsewhere.yaml runs/idle.strain >why
	grep -q "elsewhere.yaml" why && grep -q "$(uname -n)" why
	run -0 --separate-stderr "$STRAIN" compare runs --rows machine --value cost --prices elsewhere.yaml
	prints elsewhere.yaml "$(uname -n)"
	[ "$(value '[r["measures"]["cost"] for r in d]' "$STRAIN" ls --json --prices elsewhere.yaml runs)" = "[None, None]" ]
}

@test "a wrong price list is one line with file and line, before anything else happens" {
	local commands="show ls compare report"
	if "$STRAIN" report runs -o pages.html 2>&1 | grep -q 'built without HTML pages'; then
		commands="show ls compare"
	fi
	wrong() { # PLACE WORD... ; the list is on standard input
		cat >wrong.yaml
		for command in $commands; do
			fails_with 1 "wrong.yaml:$1" "${@:2}" -- "$STRAIN" $command --prices wrong.yaml "$(
				[ $command = show ] && echo runs/idle.strain || echo runs)"
		done
	}
	wrong 3:11 hour "'-3'" <<<$'currency: EUR\nmachines:\n  - hour: -3'
	wrong 3:11 hour "'nan'" <<<$'currency: EUR\nmachines:\n  - hour: nan'
	wrong 3:5 "'gpu_hours'" "'gpu_hour'?" <<<$'currency: EUR\nmachines:\n  - gpu_hours: 1'
	wrong 4:5 hour 3 <<<$'currency: EUR\nmachines:\n  - hour: 1\n    hour: 2'
	wrong 1:1 machines <<<'currency: EUR'
	head -c 2000000 /dev/zero | tr '\0' a >wrong.yaml
	fails_with 1 wrong.yaml 1048576 -- "$STRAIN" ls --prices wrong.yaml runs
	mkfifo pipe
	fails_with 1 pipe -- timeout 20 "$STRAIN" ls --prices pipe runs
	printf 'command: "true"\n' >plan.yaml
	printf 'currency: EUR\n' >wrong.yaml
	fails_with 1 wrong.yaml:1:1 -- "$STRAIN" sweep plan.yaml --prices wrong.yaml
	[ ! -e plan.sweep ] # no trial ran
}

@test "a sweep prints the cost of its configurations" {
	# shellcheck disable=SC2016 # strain replaces it
	printf 'command: [sh, -c, "sleep ${seconds}"]\nparameters:\n  seconds: {values: [0.1, 0.3]}\n' >cost.yaml
	"$STRAIN" sweep cost.yaml --json --prices prices.yaml >sweep.json 2>sweep.err
	[ "$(value '[d["currency"], [c["cost"] > 0 for c in d["configurations"]]]' cat sweep.json)" = "['EUR', [True, True]]" ]
	run -0 --separate-stderr "$STRAIN" sweep cost.yaml --prices prices.yaml
	prints COST
	prints cost: EUR
	run -0 --separate-stderr "$STRAIN" sweep cost.yaml
	! grep -q COST <<<"$output" || return 1
}

@test "the figure of throughput per cost is drawn from runs" {
	trainer=$BUILD_ROOT/workloads/onednn/onednn-train
	[ -x "$trainer" ] || skip "without oneDNN there is no trainer"
	mkdir -p figure
	for model in tiny cnn; do
		"$STRAIN" run --force -o "figure/$model.strain" --label "model=$model" -- \
			"$trainer" --model tiny --threads 1 --batch-size 16 --samples 200 --epochs 2 >/dev/null 2>&1
	done
	"$STRAIN" compare figure --layout jayarajan-cost --prices prices.yaml -o figure.svg 2>figure.err
	grep -q "samples per unit of cost" figure.svg
	value '[c["mean"] > 0 for c in d["cells"]]' "$STRAIN" compare figure --rows model --columns "" \
		--value samples_per_cost --prices prices.yaml --json >shown
	[ "$(cat shown)" = "[True, True]" ]
	# A second of one job costs nproc: what a second trains is divided by that.
	value '[c["mean"] for c in d["cells"]]' "$STRAIN" compare figure --where model=tiny --rows model --columns "" \
		--value samples_per_cost,samples_per_second --prices prices.yaml --json >pair
	python3 - "$(cat pair)" "$(cpus)" <<-'EOF'
		import ast, sys
		per_cost, per_second = ast.literal_eval(sys.argv[1])
		assert abs(per_cost * float(sys.argv[2]) / per_second - 1) < 1e-6, sys.argv
	EOF
}

@test "advise says what a million samples cost, and keeps no cost" {
	/usr/bin/python3 -c 'import torch' 2>/dev/null || skip "without PyTorch there is no job to advise"
	export OMP_NUM_THREADS=1
	run -0 --separate-stderr "$STRAIN" advise --json --limit 5s --time 10s -o costed --prices prices.yaml -- \
		/usr/bin/python3 "$SOURCE_ROOT/tests/cli/advise_small.py" --epochs 2000 --batch-size '{batch_size=16}'
	echo "$output" >answer.json
	python3 - "$(cpus)" <<-'EOF'
		import json, sys
		answer, kept = json.load(open("answer.json")), json.load(open("costed/advice.json"))
		cost = answer.pop("cost")
		assert answer == kept and "cost" not in kept
		assert cost["currency"] == "EUR" and cost["missing"] is None, cost
		# A CPU second costs 1, and the job may use all CPUs.
		assert abs(cost["now"] * answer["rate"]["now"] / 1e6 / float(sys.argv[1]) - 1) < 1e-6, (cost, answer["rate"])
		measured = answer["rate"].get("measured")
		other = measured and not answer["advised"]["keep"]
		assert not other or abs(cost["advised"] * measured / 1e6 / float(sys.argv[1]) - 1) < 1e-6, cost
	EOF
	printf 'currency: EUR\n' >wrong.yaml
	fails_with 1 wrong.yaml:1:1 -- "$STRAIN" advise -o never --prices wrong.yaml -- true
	[ ! -e never ] # nothing ran
	fails_with 2 --prices --stalls -- "$STRAIN" advise --stalls --prices prices.yaml -- true
}
