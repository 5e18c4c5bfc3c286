#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Advice that is tried: short runs with settings and without. No test here asks for an interval: how
# wide it is depends on the machine (tests/unit/test_gain.c, test_tried.c).

load messages

setup() {
	unset STRAIN_DIR OMP_NUM_THREADS OMP_WAIT_POLICY
	FOLDER=$(mktemp -d /var/tmp/strain-try-test-XXXXXX) # nobody else can put a run there
	cd "$FOLDER" || return
	chmod go-w . || return
	umask 022
	cp "$BUILD_ROOT/tests/tools/marking" job
}

teardown() {
	cd /
	rm -rf "$FOLDER"
}

field() {
	/usr/bin/python3 -c 'import json, sys
a = json.load(open(sys.argv[1]))
print(eval(sys.argv[2], {}, {"a": a, "tried": {t["settings"]: t for t in a.get("tried", [])}}))' "$@"
}

# What a run keeps of a trial.
kept() {
	"$STRAIN" show --json "$1" >show.json
	/usr/bin/python3 -c 'import json, sys
tried = {t["settings"]: t for t in json.load(open("show.json"))["verdict"]["tried"]}
print(eval(sys.argv[1], {}, {"tried": tried}))' "$2"
}

@test "settings of a job in C: in turns, unmodified first and last" {
	run -0 --separate-stderr "$STRAIN" advise --try --json --with OMP_NUM_THREADS=1 \
		--with OMP_WAIT_POLICY=passive -o probes -- ./job by_threads
	echo "$stderr"
	echo "$output" | tee found.json
	[ "$(field found.json 'a["unit"], a["complete"], a["written"]')" = "('samples/s', True, False)" ]
	# The shorter a sleep, the more of it is the machine's own time.
	[ "$(field found.json '1.5 < tried["OMP_NUM_THREADS=1"]["gain"]["value"] < 4')" = True ]
	[ "$(field found.json 'tried["OMP_WAIT_POLICY=passive"]["gain"]["value"] < 1.5')" = True ]
	[ "$(field found.json 'len(a["unmodified"]["rates"]) >= 4, len(tried["OMP_NUM_THREADS=1"]["rates"])')" = "(True, 3)" ]
	local last=$(ls probes/*.strain | tail -1)
	[ -z "$("$STRAIN" sql "$last" "SELECT value FROM run WHERE key = 'omp_num_threads'" --json | grep value)" ]
	[ "$("$STRAIN" sql probes/probe-02.strain "SELECT value FROM run WHERE key = 'omp_num_threads'" |
		tail -1)" = 1 ]
	notes OMP_NUM_THREADS=1 2
}

@test "into the run: its command, where it ran; show says what was tried" {
	"$STRAIN" run -o own -- ./job by_threads
	cd /
	run -0 "$STRAIN" advise --try --repeats 2 --with "OMP_NUM_THREADS=1 MALLOC_ARENA_MAX=1" \
		--with OMP_NUM_THREADS=3 "$FOLDER/own.strain"
	echo "$output"
	prints "$FOLDER" "./job by_threads"
	prints OMP_NUM_THREADS=3 "(exit status 3)"
	cd "$FOLDER"
	[ "$(kept own 'tried["OMP_NUM_THREADS=1 with MALLOC_ARENA_MAX=1"]["gain"]["value"] > 1.5')" = True ]
	[ "$(kept own 'tried["OMP_NUM_THREADS=3"]["gain"]["value"], "3" in tried["OMP_NUM_THREADS=3"]["missing"]')" = "(None, True)" ]
	run -0 "$STRAIN" show own
	echo "$output"
	[[ "$output" == *"Tried     OMP_NUM_THREADS=1 with MALLOC_ARENA_MAX=1: "* ]]
	# The next trials leave those that are there.
	run -0 "$STRAIN" advise --try --repeats 2 --with MALLOC_ARENA_MAX=1 own
	[ "$(kept own 'len(tried)')" = 3 ]
}

# A run must not decide what is executed unless nobody else can have written it.
@test "a run that others can write is refused, and what to type" {
	"$STRAIN" run -o own -- sh -c './job by_threads; echo >>ran'
	[ "$(wc -l <ran)" = 1 ]
	chmod g+w own.strain
	run -1 "$STRAIN" advise --try --with OMP_NUM_THREADS=1 own
	echo "$output"
	prints own.strain
	[[ "${lines[-1]}" == *"strain advise --try own -- COMMAND..." ]]
	[ "$(wc -l <ran)" = 1 ]
	# With the command it is the user's word; the run stays as it is.
	run -0 "$STRAIN" advise --try --repeats 2 --with OMP_NUM_THREADS=1 own -- ./job by_threads
	echo "$output"
	chmod g-w own.strain
	[ "$(kept own 'len(tried)')" = 0 ]
}

@test "what a run does not tell: secrets, ranks" {
	"$STRAIN" run -o secret -- ./job by_threads --password hunter2
	run -1 "$STRAIN" advise --try --with OMP_NUM_THREADS=1 secret
	prints secret
	[[ "${lines[-1]}" == *"strain advise --try secret -- COMMAND..." ]]
	WORLD_SIZE=2 RANK=0 "$STRAIN" run -o rank -- ./job by_threads
	run -1 "$STRAIN" advise --try --with OMP_NUM_THREADS=1 rank.strain
	prints rank 2
}

@test "a command alone: its first run gives the verdict" {
	run -0 "$STRAIN" advise --try --repeats 2 -- ./job by_threads
	echo "$output"
	run -1 --separate-stderr "$STRAIN" advise --try -- sh -c 'echo "no such dataset"; exit 3'
	[ -z "$output" ]
	notes "(exit status 3)"
	[[ "$stderr" == *"no such dataset"* ]]
	run -1 --separate-stderr "$STRAIN" advise --try -- sleep 0.3
	[ -z "$output" ]
	notes rate
}

@test "Ctrl-C ends it and its probe; what was found is printed and kept" {
	mkdir elsewhere
	cat >endless <<-'EOF'
		#!/bin/sh
		while :; do "$STRAIN" mark iteration 1 8; sleep 0.02; done
	EOF
	chmod +x endless
	"$STRAIN" run -o own -- ./endless &
	local recording=$!
	sleep 2
	kill -TERM "$recording" # a shell's & ignores the other
	wait "$recording" || true
	TMPDIR="$PWD/elsewhere" "$STRAIN" advise --try --limit 5s --with MALLOC_ARENA_MAX=1 own >said 2>&1 &
	local advise=$!
	for _ in $(seq 1200); do
		[ -z "$(find elsewhere -name probe-02.strain)" ] || break
		sleep 0.1
	done
	[ -n "$(find elsewhere -name probe-02.strain)" ]
	sleep 0.5
	kill -INT "$advise" || kill -TERM "$advise"
	local status=0
	wait "$advise" || status=$?
	cat said
	[ "$status" = 130 ]
	[ -z "$(ls elsewhere)" ]
	[[ "$(kept own 'tried["MALLOC_ARENA_MAX=1"]["gain"]["value"], tried["MALLOC_ARENA_MAX=1"]["missing"]')" == "(None, '"* ]]
	grep -qF "MALLOC_ARENA_MAX=1: " said
	for process in /proc/[0-9]*; do
		[ "$(readlink "$process/cwd")" != "$FOLDER" ] ||
			! tr '\0' ' ' <"$process/cmdline" | grep -q endless
	done
}

@test "options that are wrong" {
	fails_with 2 --stalls --try -- "$STRAIN" advise --try --stalls true
	fails_with 2 --with "'LD_PRELOAD=x.so'" -- "$STRAIN" advise --try --with LD_PRELOAD=x.so -- true
	fails_with 2 --repeats -- "$STRAIN" advise --try --repeats 1 -- true
	fails_with 2 "strain advise --try -- python3" -- "$STRAIN" advise --try python3 train.py
	fails_with 1 nowhere.strain -- "$STRAIN" advise --try nowhere.strain
}

needs_torch() {
	[ -d /usr/lib/python3/dist-packages/torch ] ||
		skip "no PyTorch (python3-torch) for /usr/bin/python3"
	export OMP_NUM_THREADS=1
}

@test "which loaders are made otherwise" {
	needs_torch
	run -0 /usr/bin/python3 -B "$SOURCE_ROOT/tests/hooks/set.py" "$SOURCE_ROOT/hooks/python"
	echo "$output"
	[ "${lines[-1]}" = "made as they should be" ]
}

@test "which batches come first" {
	needs_torch
	run /usr/bin/python3 -B "$SOURCE_ROOT/tests/hooks/longest.py" "$SOURCE_ROOT/hooks/python"
	echo "$output"
	[ "$status" -eq 0 ]
	[ "${lines[-1]}" = "the largest come first" ]
}

@test "which epochs are shortened" {
	needs_torch
	/usr/bin/python3 -B "$SOURCE_ROOT/tests/hooks/short.py" "$SOURCE_ROOT/hooks/python" >out 2>err ||
		{ tail -n 20 err && false; }
	[ "$(tail -n 1 out)" = "shortened as they should be" ]
}

# Samples take 5 ms of sleep.
@test "loader workers of a PyTorch job" {
	needs_torch
	"$STRAIN" run -o torch -- /usr/bin/python3 "$SOURCE_ROOT/tests/hooks/sleeps.py" 40
	run --separate-stderr "$STRAIN" advise --try --repeats 2 --json --with num_workers=2 \
		--with persistent_workers=1 torch
	echo "$stderr"
	echo "$output" | tee found.json
	[ "$status" -eq 0 ]
	[ "$(field found.json 'tried["num_workers=2"]["gain"]["value"] > 1.3')" = True ]
	[[ "$(field found.json 'tried["persistent_workers=True"]["missing"]')" == *loader* ]]
	[ "$(kept torch 'tried["num_workers=2"]["gain"]["value"] > 1.3')" = True ]
}

@test "torch.set_flush_denormal is tried without an edit of the script" {
	/usr/bin/python3 -c 'import torch' 2>/dev/null || skip "no PyTorch"
	cat >fades.py <<-'EOF'
		import torch
		torch.set_num_threads(1)
		model = torch.nn.Linear(64, 1)
		optimizer = torch.optim.SGD(model.parameters(), 1e-3)
		for inputs in torch.utils.data.DataLoader(torch.randn(6000, 64), 20):
		    state = torch.full((20, 4000), 1e-30)
		    for _ in range(12):
		        state = state * 0.2
		    optimizer.zero_grad()
		    (model(inputs).square().mean() + state.mean()).backward()
		    optimizer.step()
	EOF
	run -0 --separate-stderr "$STRAIN" advise --try --json --repeats 2 --with flush_denormal=1 -o probes -- /usr/bin/python3 fades.py
	echo "$stderr"
	echo "$output" | tee found.json
	local tried='tried["torch.set_flush_denormal(True)"]'
	[ "$(field found.json "${tried}['missing'], ${tried}['gain']['value'] > 0")" = "(None, True)" ]
	[ "$("$STRAIN" sql probes/probe-02.strain "SELECT value FROM run WHERE key = 'optimizer_flush_denormal'" | tail -1)" = 1 ]
}
