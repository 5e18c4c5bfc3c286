#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Hooks: what a run knows of a Python job that was not edited, and that the job is as without them.
# What needs PyTorch takes that of /usr/bin/python3; the rest takes any Python and a package `torch`
# that is empty.

load run_helpers

PYTHON=/usr/bin/python3
TRAIN="$SOURCE_ROOT/tests/hooks/train.py"

record() {
	"$STRAIN" run -o run.strain --force "$@"
}

needs_torch() {
	[ -d /usr/lib/python3/dist-packages/torch ] || skip "no PyTorch (python3-torch) for $PYTHON"
	export OMP_NUM_THREADS=1
}

# A package that is called torch and has nothing in it.
fake_torch() {
	mkdir -p fake/torch
	echo "__version__ = '0.0'" >fake/torch/__init__.py
	export PYTHONPATH="$PWD/fake"
}

@test "the hook enters, chains, and leaves no trace but its place in PYTHONPATH" {
	mkdir own
	echo 'import sys; sys.own = __file__' >own/sitecustomize.py
	cat >look.py <<-'EOF'
		import os, subprocess, sys
		first, rest = os.environ["PYTHONPATH"].split(":", 1)
		assert first == os.environ["STRAIN_HOOKS"], first
		assert rest == os.environ["OWN"], rest
		assert first not in sys.path and rest in sys.path, sys.path
		assert sys.own == rest + "/sitecustomize.py" == sys.modules["sitecustomize"].__file__
		len(sys.argv) == 1 and subprocess.run([sys.executable, __file__, "child"], check=True)
	EOF
	OWN="$PWD/own" PYTHONPATH="$PWD/own" record "$PYTHON" look.py
	line_names "$(run_key run.strain hooks_missing)" "(PyTorch, Keras, JAX)"
	# Where there is no other, there is none.
	record "$PYTHON" -s -c 'import sys, os; assert not any("strain" in str(m) for m in sys.modules)
assert os.environ["PYTHONPATH"] == os.environ["STRAIN_HOOKS"]'
}

# What a job leaves running, or sends elsewhere, has the environment still.
@test "once the run has ended, its environment does nothing" {
	cat >look.py <<-'EOF'
		import os, sys
		assert os.environ["STRAIN_HOOKS"] not in sys.path
		entered = [finder for finder in sys.meta_path if type(finder).__name__ == "Entry"]
		print(len(entered), len(os.listdir(os.environ["STRAIN_MARKERS"])))
	EOF
	# shellcheck disable=SC2016
	record sh -c '"$0" look.py; env >environment' "$PYTHON" >out
	[ "$(cat out)" = "1 1" ]
	local markers
	markers=$(sed -n 's/^STRAIN_MARKERS=//p' environment)
	[[ $markers == /*/strain-* ]] && [ ! -e "$markers" ]
	stale() {
		(cd "$BATS_TEST_TMPDIR" && env -i "$(grep ^STRAIN_HOOKS environment)" \
			"$(grep ^PYTHONPATH environment)" STRAIN_MARKERS="$1" "$PYTHON" look.py)
	}
	mkdir -m 0755 others
	[ "$(stale "$PWD/others")" = "0 0" ]
	chmod 0700 others
	ln -s others link
	[ "$(stale "$PWD/link")" = "0 0" ]
	[ "$(stale "$PWD/others")" = "1 1" ] # as in a run
}

@test "what enters a job's environment stays when the run has ended" {
	record env >environment
	local path
	for name in STRAIN_HOOKS NVTX_INJECTION64_PATH; do
		path=$(sed -n "s/^$name=//p" environment)
		[ -e "$path" ] && [[ $path != /dev/shm/* ]]
	done
}

@test "--no-hooks, --no-markers, and a run around the run" {
	PYTHONPATH=/nowhere record --no-hooks sh -c 'echo "$PYTHONPATH"' >out
	[ "$(cat out)" = /nowhere ]
	line_names "$(run_key run.strain hooks_missing)" --no-hooks
	PYTHONPATH='' record --no-markers sh -c 'echo "${PYTHONPATH-none}"' >out
	[ -z "$(cat out)" ]
	line_names "$(run_key run.strain hooks_missing)" --no-markers
	record "$STRAIN" run -o inner.strain sh -c 'echo "$PYTHONPATH $STRAIN_HOOKS"' >out
	read -r path hooks <out
	[ "$path" = "$hooks" ]
	record "$STRAIN" run --no-hooks -o inner2.strain sh -c 'echo "${PYTHONPATH-none}"' >out
	[ "$(cat out)" = none ]
}

@test "where no hook can enter, the run says so" {
	record true
	[ -z "$(run_key run.strain hooks_missing)" ]
	for flag in -I -E -S; do
		record "$PYTHON" "$flag" -c 'import time; time.sleep(0.3)'
		line_names "$(run_key run.strain hooks_missing)" "$flag" PYTHONPATH
	done
	PYTHONPATH=/x record sh -c 'PYTHONPATH=/nowhere exec "$0" -c "import time; time.sleep(0.3)"' "$PYTHON"
	line_names "$(run_key run.strain hooks_missing)" python3 PYTHONPATH
}

@test "a framework that is not what it should be stays as it is, and the run says so" {
	fake_torch
	record "$PYTHON" -c 'import torch
assert torch.__spec__.loader is torch.__loader__ and type(torch.__loader__).__name__ == "SourceFileLoader"
assert sorted(k for k in vars(torch) if not k.startswith("__")) == [], vars(torch)'
	[ -z "$(run_key run.strain hooks)" ]
	[[ "$(run_key run.strain hooks_missing)" == "data: AttributeError: "*"optimizer: KeyError: "* ]]
	# One that cannot be imported fails as it would.
	echo 'raise ImportError("broken")' >fake/torch/__init__.py
	run --separate-stderr record "$PYTHON" -c 'import torch'
	[ "$status" -eq 1 ]
	[[ "$stderr" == *"ImportError: broken"* ]]
}

@test "the constants of the ring are those of marker.h" {
	"$PYTHON" - "$SOURCE_ROOT" <<-'EOF'
		import re, sys
		root = sys.argv[1]
		sys.path.insert(0, root + "/hooks/python")
		sys.dont_write_bytecode = True
		import strain_ring as ring
		header = open(root + "/include/strain/marker.h").read()
		said = dict(re.findall(r"#define STRAIN_RING_(\w+) (?:UINT64_C\()?(0x\w+|\d+)", header))
		for name in ("MAGIC", "VERSION", "BYTES", "NAMES", "NAME_BYTES", "SLOTS", "DEPTH"):
		    assert getattr(ring, name) == int(said[name], 0), name
		kinds = dict(re.findall(r"STRAIN_(MARK_\w+) = (\d+)", header))
		ours = {k: v for k, v in vars(ring).items() if k.startswith("MARK_")}
		assert len(ours) >= 7 and all(int(kinds[k]) == v for k, v in ours.items()), (kinds, ours)
	EOF
}

@test "marks that are written at once are those of one after another" {
	"$PYTHON" "$SOURCE_ROOT/tests/hooks/ring.py" "$SOURCE_ROOT/hooks/python"
}

@test "brief iterations are marked as long ones are, whatever happens in them" {
	"$PYTHON" "$SOURCE_ROOT/tests/hooks/loop.py" "$SOURCE_ROOT/hooks/python"
}

# Whichever is installed: of the two the reference has a file with its version.
@test "PyTorch: the run knows when its linear layers run in the reference BLAS" {
	needs_torch
	if ! "$PYTHON" -c 'import sys, torch; sys.exit("BLAS_INFO=generic" not in torch.__config__.show())'; then
		skip "this PyTorch has a BLAS of its own"
	fi
	local folder found=0
	for folder in /usr/lib/*/blas /usr/lib/*/openblas-*; do
		[ -e "$folder/libblas.so.3" ] || continue
		found=$((found + 1))
		LD_LIBRARY_PATH=$folder record "$PYTHON" "$TRAIN" accumulation
		if [[ $folder == */blas ]]; then
			[ "$(run_key run.strain blas)" = "reference $(readlink -f "$folder/libblas.so.3")" ]
		else
			[ -z "$(run_key run.strain blas)" ]
		fi
	done
	[ "$found" -gt 0 ] || skip "no BLAS where Debian has it"
}

@test "PyTorch: epochs, iterations, samples and phases of loops that accumulate and validate" {
	needs_torch
	record "$PYTHON" "$TRAIN" accumulation >with
	[ "$(run_key run.strain loader_at)" = "$TRAIN:$(grep -n 'train = DataLoader' "$TRAIN" | cut -d : -f 1)" ]
	[ "$(run_key run.strain loader_batch_size)" = 25 ]
	[ "$(run_key run.strain loader_batches)" = 4 ]
	[[ "$(run_key run.strain hooks)" == "pytorch "*": data, prepare, backward, optimizer, forward, checkpoint, communication" ]]
	[ -z "$(run_key run.strain hooks_missing)" ]
	[ "$(python_sql run.strain "SELECT kind, name, count(*), sum(samples) FROM span WHERE name <> 'python.gc' GROUP BY 1, 2 ORDER BY 1, 2")" = \
'epoch|epoch|2|200
iteration|iteration|4|200
phase|backward|8|None
phase|checkpoint|2|None
phase|data|40|None
phase|forward|26|None
phase|import|1|None
phase|optimizer|4|None
phase|validation|4|None' ]
	# Iterations of an epoch, phases of an iteration, a validation's own; nothing crosses.
	[ "$(python_sql run.strain "SELECT DISTINCT s.name, p.name FROM span s JOIN span p ON p.id = s.parent
		ORDER BY 1, 2")" = 'backward|iteration
data|iteration
data|validation
forward|iteration
forward|validation
iteration|epoch
optimizer|iteration' ]
	[ "$(python_sql run.strain "SELECT count(*) FROM span s JOIN span p ON p.id = s.parent
		WHERE s.start_ns < p.start_ns OR s.end_ns > p.end_ns")" = 0 ]
	"$PYTHON" "$TRAIN" accumulation >without
	cmp with without
}

@test "PyTorch: workers prepare, in processes of their own" {
	needs_torch
	record "$PYTHON" "$TRAIN" workers >with
	[ "$(python_sql run.strain "SELECT number, samples FROM span WHERE kind = 'epoch' ORDER BY id")" = \
		$'1|100\n2|50\n3|100\n4|40' ]
	[ "$(python_sql run.strain "SELECT count(*) FROM span WHERE kind = 'iteration'")" = 33 ]
	[ "$(python_sql run.strain "SELECT count(DISTINCT attributes ->> 'process'), min(samples), max(samples)
		FROM span WHERE name = 'prepare'")" = '4|5|10' ]
	[ "$(python_sql run.strain "SELECT count(*) FROM span WHERE name = 'prepare' AND thread =
		(SELECT thread FROM span WHERE kind = 'epoch')")" = 0 ]
	"$PYTHON" "$TRAIN" workers >without
	cmp with without
}

@test "PyTorch: workers start for each pass, in training and in validation" {
	needs_torch
	local starts="SELECT count(*) FROM span WHERE name = 'loader.start'"
	record "$PYTHON" "$TRAIN" restarts >with
	[ "$(python_sql run.strain "$starts")" = 6 ]
	[ "$(python_sql run.strain "$starts AND end_ns - start_ns >= 1e8")" = 6 ]
	[ "$(python_sql run.strain "SELECT count(*) FROM span s JOIN span v ON v.name = 'validation' AND
		s.start_ns >= v.start_ns AND s.end_ns <= v.end_ns AND s.thread = v.thread WHERE s.name = 'loader.start'")" = 3 ]
	"$PYTHON" "$TRAIN" restarts >without
	cmp with without
	rm run.strain
	record "$PYTHON" "$TRAIN" workers >/dev/null
	[ "$(python_sql run.strain "$starts")" = 1 ] # those of the stream: the others persist
}

@test "PyTorch: garbage collections, in steps and in workers" {
	needs_torch
	record "$PYTHON" "$TRAIN" collections >with
	[ "$(python_sql run.strain "SELECT count(*) FROM span s JOIN span i ON i.kind = 'iteration' AND
		s.start_ns >= i.start_ns AND s.end_ns <= i.end_ns AND s.thread = i.thread WHERE s.name = 'python.gc'")" -ge 8 ]
	[ "$(python_sql run.strain "SELECT count(*) FROM span s JOIN span p ON p.name = 'prepare' AND
		s.start_ns >= p.start_ns AND s.end_ns <= p.end_ns AND s.thread = p.thread WHERE s.name = 'python.gc'")" = 10 ]
	[ "$(python_sql run.strain "SELECT min(end_ns - start_ns) >= 2000000 FROM span WHERE name = 'python.gc'")" = 1 ]
	"$STRAIN" show --json run.strain | "$PYTHON" -c 'if True:
		import json, sys
		assert any("gc.collect()" in each["action"] for each in json.load(sys.stdin)["verdict"]["suggestions"])'
	"$PYTHON" "$TRAIN" collections >without
	cmp with without
}

@test "PyTorch: the loader of training, where loaders are made anew" {
	needs_torch
	record "$PYTHON" "$TRAIN" anew >/dev/null
	[ "$(run_key run.strain loader_batch_size) $(run_key run.strain loader_batches) $(run_key run.strain loader_samples)" = \
		"30 4 100" ]
	[ "$(run_key run.strain loader_role) $(run_key run.strain loader_batch_tensors)" = "training 2" ]
}

@test "PyTorch: functions that watch modules" {
	needs_torch
	record "$PYTHON" "$TRAIN" watched >with
	[ "$(run_key run.strain optimizer_callbacks)" = 2 ]
	[[ "$(run_key run.strain optimizer_callback_at)" == */train.py:* ]]
	"$PYTHON" "$TRAIN" watched >without
	cmp with without
	rm run.strain
	record "$PYTHON" "$TRAIN" workers >/dev/null
	[ -z "$(run_key run.strain optimizer_callbacks)" ]
}

@test "PyTorch: a matrix of zeros that goes into the model" {
	needs_torch
	for mode in graph graph_buffer; do
		rm -f run.strain
		record "$PYTHON" "$TRAIN" "$mode" >with
		[ "$(run_key run.strain optimizer_zeros_elements)" = 1210000 ]
		[ "$(run_key run.strain optimizer_zeros)" -ge 8000 ]
		"$PYTHON" "$TRAIN" "$mode" >without
		cmp with without
	done
	rm run.strain
	record "$PYTHON" "$TRAIN" attention >/dev/null
	[ -z "$(run_key run.strain optimizer_zeros)" ]
}

@test "PyTorch: embeddings with dense gradients" {
	needs_torch
	record "$PYTHON" "$TRAIN" tables >with
	[ "$(run_key run.strain optimizer_embeddings)" = 8000 ]
	"$PYTHON" "$TRAIN" tables >without
	cmp with without
	rm run.strain
	for mode in tied padded; do # the last layer's, too; no optimizer's
		rm -f run.strain
		record "$PYTHON" "$TRAIN" "$mode" >/dev/null
		[ -z "$(run_key run.strain optimizer_embeddings)" ]
	done
}

@test "PyTorch: padding of sequences" {
	needs_torch
	record "$PYTHON" "$TRAIN" padded >with
	# Of 32 columns, 8, 16, 24 or 32 are used: 12 on average are not. Looked at: batches 2 and 4; 1 is added to them.
	[ "$(python_sql run.strain "SELECT group_concat(value, ' ') FROM (SELECT value FROM run WHERE key LIKE 'loader_padding%' ORDER BY key)")" = "720 0 1920 60" ]
	"$PYTHON" "$TRAIN" padded >without
	cmp with without
	rm run.strain
	record "$PYTHON" "$TRAIN" fixed_length >/dev/null # 16 columns more
	[ "$(run_key run.strain loader_padding) $(run_key run.strain loader_padding_common)" = "1680 960" ]
	rm run.strain
	record "$PYTHON" "$TRAIN" padded_before >/dev/null
	[ "$(run_key run.strain loader_padding) $(run_key run.strain loader_padding_common)" = "1680 960" ]
	rm run.strain
	record "$PYTHON" "$TRAIN" workers >/dev/null # images and classes
	[ -z "$(run_key run.strain loader_padding)" ]
}

@test "PyTorch: gradients that the loss is made of are backward, within forward" {
	needs_torch
	record "$PYTHON" "$TRAIN" penalty >with
	[ "$(python_sql run.strain "SELECT s.name, p.name, count(*) FROM span s JOIN span p ON p.id = s.parent
		WHERE s.name IN ('forward', 'backward', 'optimizer') GROUP BY 1, 2 ORDER BY 1, 2")" = \
		$'backward|forward|10\nbackward|iteration|11\nforward|iteration|11\noptimizer|iteration|11' ]
	[ "$(python_sql run.strain "SELECT count(*), sum(samples) FROM span WHERE kind = 'iteration'")" = "11|120" ]
	"$PYTHON" "$TRAIN" penalty >without
	cmp with without
}

@test "PyTorch: backward passes that keep the graph for another one" {
	needs_torch
	record "$PYTHON" "$TRAIN" repeated >with
	[ "$(run_key run.strain optimizer_backwards) $(run_key run.strain optimizer_backwards_kept)" = "2 1" ]
	"$PYTHON" "$TRAIN" repeated >without
	cmp with without
	rm run.strain
	record "$PYTHON" "$TRAIN" plain >/dev/null # an optimizer's passes, not two optimizers'
	[ -z "$(run_key run.strain optimizer_backwards)" ]
}

@test "PyTorch: gradients that ranks exchange in each pass of a step" {
	needs_torch
	record "$PYTHON" "$TRAIN" exchanging >with
	[ "$(run_key run.strain optimizer_backwards_synced)" = 2 ]
	"$PYTHON" "$TRAIN" exchanging >without
	cmp with without
	rm run.strain
	record "$PYTHON" "$TRAIN" exchanging_once >/dev/null
	[ -z "$(run_key run.strain optimizer_backwards_synced)" ]
}

@test "PyTorch: gradients that are zeroed before a step uses them" {
	needs_torch
	zeroed() { python_sql run.strain "SELECT group_concat(value, ' ') FROM (SELECT value FROM run WHERE key IN ('optimizer_passes_used',
		'optimizer_passes_zeroed', 'optimizer_zeroed_model') ORDER BY key)"; }
	# The first twelve iterations, of which the first tells nothing.
	for mode in attached adversaries frozen resetting copied plain accumulation; do
		rm -f run.strain
		record "$PYTHON" "$TRAIN" $mode >with
		zeroed >$mode
		"$PYTHON" "$TRAIN" $mode >without
		cmp with without
	done
	head attached adversaries frozen resetting copied plain accumulation
	[ "$(cat attached)" = "11 11 earlier" ]
	[ "$(cat adversaries)" = "11 11 last" ]
	[[ $(cat frozen resetting copied plain accumulation) != *[0-9]* ]]
}

@test "PyTorch: TorchScript knows the functions that are patched" {
	needs_torch
	record "$PYTHON" "$TRAIN" scripted >with
	"$PYTHON" "$TRAIN" scripted >without
	cmp with without
	[ "$(wc -l <with)" = 10 ]
}

@test "PyTorch: anomaly detection that was left on" {
	needs_torch
	local mode
	for mode in debugging debugged; do
		rm -f run.strain
		record "$PYTHON" "$TRAIN" $mode >with
		run_key run.strain debug_settings >$mode
		"$PYTHON" "$TRAIN" $mode >without
		cmp with without
	done
	[ "$(cat debugging)" = detect_anomaly ]
	[ -z "$(cat debugged)" ]
	rm run.strain
	ATEN_CPU_CAPABILITY=default record "$PYTHON" "$TRAIN" debugged >/dev/null
	[ "$(run_key run.strain debug_settings)" = instruction_set ]
}

@test "PyTorch: steps that compute with denormal numbers" {
	needs_torch
	[ "$(uname -m)" = x86_64 ] || skip "not x86-64"
	local mode
	for mode in denormal ordinary; do
		rm -f run.strain
		record "$PYTHON" "$TRAIN" $mode >with
		run_key run.strain optimizer_denormal_steps >$mode
		"$PYTHON" "$TRAIN" $mode >without
		cmp with without
	done
	[ "$(cat denormal ordinary | paste -sd ' ')" = "8 0" ]
	rm -f run.strain
	STRAIN_SET="flush_denormal=1" "$STRAIN" run -o run.strain -- "$PYTHON" "$TRAIN" denormal >flushed
	[ "$(run_key run.strain optimizer_denormal_steps) $(run_key run.strain optimizer_flush_denormal)" = "0 1" ]
}

@test "what PyTorch's compiler tells becomes spans, and the function that it gave up on" {
	"$PYTHON" "$SOURCE_ROOT/tests/hooks/compiler.py" "$SOURCE_ROOT/hooks/python"
}

@test "PyTorch: a function that is compiled for each shape, up to the limit" {
	needs_torch
	"$PYTHON" -c 'import torch._dynamo.callback' 2>/dev/null || skip "needs PyTorch 2.3"
	record "$PYTHON" "$TRAIN" compiled >with
	[ "$(python_sql run.strain "SELECT key, value FROM run WHERE key GLOB 'compile_*' ORDER BY 1" |
		sed 's/|.*train.py:/|train.py:/')" = $'compile_limit|8\ncompile_limit_at|train.py:'"$(grep -n 'def shaped' "$TRAIN" | cut -d: -f1)" ]
	local n
	n=$("$STRAIN" sql --csv run.strain "SELECT count(*) FROM span WHERE name = 'torch.compile'" | tail -n 1)
	[ "$n" -ge 8 ] && [ "$n" -le 10 ]
	"$PYTHON" "$TRAIN" compiled >without
	cmp with without
}

@test "PyTorch: parameters with gradients that no optimizer has" {
	needs_torch
	record "$PYTHON" "$TRAIN" omitted >with
	[ "$(python_sql run.strain "SELECT key, value FROM run WHERE key LIKE 'optimizer_parameters%' ORDER BY 1")" = \
		$'optimizer_parameters|18\noptimizer_parameters_omitted|72' ]
	"$PYTHON" "$TRAIN" omitted >without
	cmp with without
	rm run.strain
	record "$PYTHON" "$TRAIN" workers >/dev/null
	[ -z "$(python_sql run.strain "SELECT key FROM run WHERE key LIKE 'optimizer_parameters%'")" ]
}

@test "PyTorch: plain loops, closures, wrapped loaders, scripts that patch" {
	needs_torch
	record "$PYTHON" "$TRAIN" plain closure prefetch patched >with
	[ "$(python_sql run.strain "SELECT parent IS NULL, count(*), sum(samples) FROM span
		WHERE kind = 'iteration' GROUP BY 1")" = $'0|20|500\n1|5|100' ]
	[ "$(python_sql run.strain "SELECT number, samples FROM span WHERE kind = 'epoch' ORDER BY id")" = \
		$'1|100\n2|100\n3|100\n4|100\n5|100' ]
	[ "$(python_sql run.strain "SELECT count(*) FROM span WHERE attributes ->> 'end' IS NOT NULL")" = 0 ]
	"$PYTHON" "$TRAIN" plain closure prefetch patched >without
	cmp with without
}

@test "PyTorch: passes that are never asked for a batch too many" {
	needs_torch
	record "$PYTHON" "$TRAIN" counted >with
	[ "$(python_sql run.strain "SELECT s.name, p.name, count(*) FROM span s LEFT JOIN span p ON p.id = s.parent
		WHERE s.name IN ('epoch', 'iteration', 'validation', 'checkpoint') GROUP BY 1, 2 ORDER BY 1, 2")" = \
		$'checkpoint|None|2\nepoch|None|2\niteration|epoch|8\nvalidation|None|2' ]
	# What comes after the last batch of a validation is not all its own.
	[ "$(python_sql run.strain "SELECT max(end_ns - start_ns) < (SELECT max(end_ns) FROM span) - 100000000 -
		min(start_ns) FROM span WHERE name = 'validation'")" = 1 ]
	"$PYTHON" "$TRAIN" counted >without
	cmp with without
}

@test "PyTorch: a run whose recorder is killed knows what the hooks said" {
	needs_torch
	cat >job.py <<-'EOF'
		import os, time, torch
		from torch.utils.data import DataLoader
		model = torch.nn.Linear(1, 1)
		optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
		for batch in DataLoader([torch.ones(1)] * 100000, batch_size=4):
		    model(batch).sum().backward()
		    optimizer.step()
		    time.sleep(0.02)
		    if os.path.exists("enough"):
		        break
	EOF
	"$STRAIN" run -o run.strain -- "$PYTHON" job.py 2>verdict 3>&- &
	launcher=$!
	eventually test -s run.strain
	knows() {
		[ "$(run_key run.strain loader_at)" = job.py:5 ] && [ "$(run_key run.strain loader_batch_size)" = 4 ]
	}
	eventually knows || eventually knows
	kill -KILL "$(recorder_of "$launcher")"
	touch enough
	wait "$launcher"
	knows
	[[ "$(run_key run.strain hooks)" == "pytorch "*": "*backward* ]]
}

@test "PyTorch: two ranks, and threads; the collectives they wait in" {
	needs_torch
	record "$PYTHON" "$TRAIN" ranks >with
	[ "$(python_sql run.strain "SELECT count(*), count(DISTINCT attributes ->> 'process') FROM span
		WHERE name = 'communication'")" = '22|2' ]
	[ "$(python_sql run.strain "SELECT count(*) FROM span s JOIN span p ON p.id = s.parent
		WHERE s.name = 'communication' AND p.kind = 'iteration'")" = 20 ]
	# One rank's epochs are the job's.
	[ "$(python_sql run.strain "SELECT kind, count(*) FROM span
		WHERE name IN ('epoch', 'iteration') GROUP BY 1 ORDER BY 1")" = $'epoch|1\niteration|10\nuser|1' ]
	"$PYTHON" "$TRAIN" ranks >without
	cmp with without
	record "$PYTHON" "$TRAIN" threads >/dev/null
	[ "$(python_sql run.strain "SELECT count(DISTINCT thread), count(*), sum(samples) FROM span
		WHERE kind = 'iteration'")" = '2|10|200' ]
	# Two that fetch for the training thread, without knowing of it, would be no validation.
	[ "$(python_sql run.strain "SELECT count(*) FROM span WHERE name = 'validation'")" = 0 ]
}

@test "PyTorch: two ranks in DistributedDataParallel: backward tells who waits for whom" {
	needs_torch
	tells() {
		record "$PYTHON" "$TRAIN" parallel >with
		"$STRAIN" show --json run.strain >shown
		/usr/bin/python3 -c '
import json
shown = json.load(open("shown"))
waits = {rank["rank"]: rank["waits_ratio"] for rank in shown["ranks"]}
print(waits, shown["verdict"]["headline"])
assert waits[0] > waits[1] + 0.2 and shown["ranks"][1]["slowest"] and waits[1] < 0.2, waits
verdict = shown["verdict"]
assert "ranks" in [cause["cause"] for cause in verdict["causes"]]
assert verdict["bottleneck"] in ("ranks", "contention"), verdict["bottleneck"]
if verdict["bottleneck"] == "ranks":
    assert "rank 1 of 2" in verdict["headline"] and verdict["confidence"] != "high"'
	}
	# Where others have the CPUs, that may be the first to be named, or the ranks be out of step.
	tells || tells || tells
	"$PYTHON" "$TRAIN" parallel >without
	cmp with without
}

@test "PyTorch: workers that are killed or spawned, forks, and an end without ceremony" {
	needs_torch
	record "$PYTHON" "$TRAIN" killed >with 2>err
	[ "$(tail -n 1 with)" = True ]
	[ "$(python_sql run.strain "SELECT count(*), sum(attributes ->> 'end' = 'exit') FROM span
		WHERE name = 'prepare'")" = '2|1' ]
	run --separate-stderr record "$PYTHON" "$TRAIN" spawn forked exits
	[ "$status" -eq 3 ]
	echo "$output" >with
	[ "$(python_sql run.strain "SELECT name, count(*), count(DISTINCT attributes ->> 'process') FROM span
		WHERE name IN ('prepare', 'import') GROUP BY 1 ORDER BY 1")" = $'import|2|2\nprepare|4|1' ]
	[ "$(python_sql run.strain "SELECT count(DISTINCT attributes ->> 'process') FROM span
		WHERE kind = 'iteration'")" = 2 ]
	# Python 3.13's resource tracker complains of the fork, on the error stream.
	run --separate-stderr "$PYTHON" "$TRAIN" spawn forked exits
	[ "$status" -eq 3 ]
	echo "$output" | cmp with -
}

@test "PyTorch: times on the device, by events of a fake of torch.cuda, without waiting for it" {
	needs_torch
	record "$PYTHON" "$TRAIN" device >with
	[ "$(python_sql run.strain "SELECT DISTINCT name FROM span WHERE kind = 'point' ORDER BY 1")" = \
		$'device.backward\ndevice.forward\ndevice.optimizer' ]
	[ "$(python_sql run.strain "SELECT count(DISTINCT number) > 1, min(value) > 0, max(value) < 1,
		sum(number = 2) FROM span WHERE kind = 'point'")" = '1|1|1|0' ]
	[[ "$(run_key run.strain hooks)" == *", transfer" ]]
	[ "$(run_key run.strain device_memory_reserved) $(run_key run.strain device_memory_allocated)" = '200 150' ]
	[ "$(run_key run.strain device_memory_limit) $(run_key run.strain device_memory_retries)" = '250 1' ]
	local allocations iterations
	read -r allocations _ iterations <<<"$(run_key run.strain device_allocations)"
	((iterations > 0 && allocations == 2 * iterations))
	"$PYTHON" "$TRAIN" device >without
	cmp with without
}

@test "PyTorch: without a loader, copying a batch to the GPU is part of the iteration" {
	needs_torch
	record "$PYTHON" "$TRAIN" carried >with
	[[ "$(run_key run.strain hooks)" == *", transfer"* ]]
	# All but the first have theirs, of 20 ms, and the 10 ms before it.
	[ "$(python_sql run.strain "SELECT count(*), sum(number > 0 AND end_ns - start_ns > 3e7) FROM span WHERE kind = 'iteration'")" = '10|9' ]
	[ "$(python_sql run.strain "SELECT count(*) FROM span AS s WHERE kind = 'phase' AND name = 'transfer' AND EXISTS (SELECT 1 FROM
		span AS i WHERE i.kind = 'iteration' AND i.start_ns < s.start_ns AND i.end_ns >= s.end_ns)")" = 9 ]
	# Each step reads three lists; a scalar of them is not on the GPU that is not there.
	[ "$(run_key run.strain device_reads) $(run_key run.strain device_reads_at | grep -c 'train.py:[0-9]')" = '3 1' ]
	"$PYTHON" "$TRAIN" carried >without
	cmp with without
}

@test "what the hooks say is not believed beyond its bounds" {
	# shellcheck disable=SC2016
	record sh -c 'cd "$STRAIN_MARKERS"; mkfifo hook-1; ln -s /etc/passwd hook-2; mkdir hook-3; : >hook-x
		printf "framework %s\nhooked a\nstate bad\nloader_at x\033[31m\n" >hook-4
		i=0; while [ $i -lt 300 ]; do echo "loader_$(printf %03d $i | tr 0-9 a-j) 1"; i=$((i+1)); done >hook-5
		head -c 100000 /dev/zero | tr "\0" x >hook-6'
	[ "$(run_key run.strain state)" = finished ]
	[ "$(python_sql run.strain "SELECT count(*) <= 34 FROM run WHERE key LIKE 'loader%' OR key LIKE 'hook%'")" = 1 ]
	[ "$(run_key run.strain loader_at)" = 'x\x1b[31m' ]
}

@test "the unit of samples is a word, and tokens are a number" {
	units() {
		record sh -c 'printf "%b" "$0" >"$STRAIN_MARKERS/hook-4"' "$1"
		"$STRAIN" show --json run.strain >show.json
		python3 -c 'import json; it = json.load(open("show.json"))["iterations"]; print(it["samples_unit"], it["tokens_per_sample"])'
	}
	[ "$(units 'samples_unit frames\ntokens_per_sample 2.5\n')" = "frames 2.5" ]
	for wrong in 'samples_unit two words' 'samples_unit 12' 'samples_unit \033[31m' "samples_unit $(printf '%033d' 0 | tr 0 a)" \
		'tokens_per_sample 1e300' 'tokens_per_sample -1' 'tokens_per_sample 0' 'tokens_per_sample nan' 'tokens_per_sample 3x'; do
		[ "$(units "$wrong\n")" = "samples None" ]
	done
}

@test "the process that trains speaks, and its parent names the unit of samples" {
	# shellcheck disable=SC2016
	record sh -c 'cd "$STRAIN_MARKERS"; printf "samples_unit frames\n" >hook-4
		printf "framework pytorch 1\nhooked data\nloader_at a.py:1\n" >hook-20
		printf "tokens_per_sample 3\nsamples_unit words\n" >hook-30'
	[ "$(run_key run.strain loader_at)" = a.py:1 ]
	[ "$(run_key run.strain hooks)" = "pytorch 1: data" ]
	[ "$(run_key run.strain samples_unit)" = frames ]
	[ "$(run_key run.strain tokens_per_sample)" = 3 ]
}

@test "of two processes with loaders one speaks, whatever the other had said before" {
	# shellcheck disable=SC2016
	"$STRAIN" run -o run.strain sh -c 'cd "$STRAIN_MARKERS"; printf "loader_at b.py:2\nloader_workers 4\n" >hook-20
		while [ ! -e "$0/go" ]; do sleep 0.05; done
		printf "loader_at a.py:1\n" >hook-10' "$PWD" 2>err &
	local launcher=$!
	said_by_the_other() {
		[ "$(run_key run.strain loader_workers 2>/dev/null)" = 4 ]
	}
	eventually said_by_the_other
	touch go
	wait $launcher
	[ "$(run_key run.strain loader_at)" = a.py:1 ]
	[ "$(run_key run.strain loader_workers)" = "" ]
}

@test "a virtual environment with a sitecustomize of its own is as without the hooks" {
	for python in "$PYTHON" "$(command -v python3)"; do
		rm -rf venv
		"$python" -m venv --without-pip venv 2>/dev/null || skip "no venv (python3-venv)"
		echo 'import sys; sys.own = True' >"$(echo venv/lib/python3*/site-packages)/sitecustomize.py"
		cat >look.py <<-'EOF'
			import sys
			print(getattr(sys, "own", None), vars(sys.modules.get("sitecustomize")).get("__file__"), sys.path)
		EOF
		venv/bin/python look.py >without
		record venv/bin/python look.py >with
		cmp with without
		line_names "$(run_key run.strain hooks_missing)" "(PyTorch, Keras, JAX)"
	done
}
