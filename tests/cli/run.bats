#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# strain run: its options, what it refuses, and how it names what it writes.

load run_helpers

fails_125() {
	run -125 --separate-stderr "$STRAIN" run "$@"
	[ -z "$output" ]
	[ "$(wc -l <<<"$stderr")" -eq 1 ]
	[ -z "$(ls -A "$STRAIN_DIR")" ]
}

@test "what the kernel's clocks cannot tell of a run of milliseconds is unknown" {
	run -0 "$STRAIN" run -o brief.strain true
	[[ "$output" == *"recording took "*" of CPU time"* ]]
	run -0 --separate-stderr "$STRAIN" show --json brief.strain
	[ "$(python3 -c 'import json, sys; print(json.load(sys.stdin)["job"]["host_cpus_used"])' <<<"$output")" = None ]
}

@test "no command is wrong usage" {
	fails_125
	notes "strain run --help"
	fails_125 --
	fails_125 --label a=b
}

@test "a command that does not exist is 127, as in a shell, and leaves no file" {
	fails_with 127 "'strain-no-such-command'" "No such file or directory" -- "$STRAIN" run strain-no-such-command
	[ -z "$(ls -A "$STRAIN_DIR")" ]
	run -127 "$STRAIN" run ./nowhere/train.py
	run -127 "$STRAIN" run ''
	# A folder of the path that may not be entered hides nothing that a shell would find.
	mkdir shut
	chmod 0 shut
	PATH="$PATH:$PWD/shut" run -127 "$STRAIN" run strain-no-such-command
	chmod 700 shut
}

@test "a command that is not executable is 126, as in a shell, and leaves no file" {
	echo 'echo hello' >my-script
	fails_with 126 "'./my-script'" "Permission denied" -- "$STRAIN" run ./my-script
	run -126 "$STRAIN" run "$BATS_TEST_TMPDIR"
	PATH="$BATS_TEST_TMPDIR:$PATH" run -126 "$STRAIN" run my-script
	[ -z "$(ls -A "$STRAIN_DIR")" ]
}

@test "what only exec finds out fails the same way, and leaves no file" {
	printf '#!/nowhere/interpreter\n' >my-script
	chmod +x my-script
	fails_with 127 "'./my-script'" "No such file or directory" -- "$STRAIN" run ./my-script
	[ -z "$(ls -A "$STRAIN_DIR")" ]
}

@test "intervals: zero, negative, without or with a wrong unit, absurd" {
	local interval
	for interval in 0ms -5ms 10 10lightyears 1us 2h '' ms 1e400s; do
		fails_125 --interval "$interval" true
		[[ "$stderr" == "strain: --interval: "*"'$interval'"* ]]
	done
	run -0 "$STRAIN" run --interval 20ms true
}

@test "a label needs a name, '=' and a value" {
	local label
	for label in batch =3 '' 'a b=3'; do
		fails_125 --label "$label" true
		[[ "$stderr" == "strain: --label: "* ]]
	done
}

@test "labels, the environment's and given ones, are in the run" {
	RANK=3 LOCAL_RANK=1 SLURM_JOB_NAME=x "$STRAIN" run --label batch_size=32 --label workers= \
		--label SLURM_JOB_NAME=mine true
	run -0 python_sql "$(only_run)" 'SELECT name, value FROM label ORDER BY name'
	[ "$output" = $'LOCAL_RANK|1\nRANK|3\nSLURM_JOB_NAME|mine\nbatch_size|32\nworkers|' ]
}

@test "a label that is given twice has one value" {
	fails_125 --label batch_size=32 --label workers=2 --label batch_size=64 true
	notes --label "'batch_size'" "'32'" "'64'"
	run -0 "$STRAIN" run --label batch_size=32 --label batch_size=32 true
	run -0 python_sql "$(only_run)" 'SELECT name, value FROM label ORDER BY name'
	[ "$output" = 'batch_size|32' ]
}

@test "of other options that are given twice the last one counts" {
	run -0 "$STRAIN" run -o first.strain -o last.strain --epoch-pattern a --epoch-pattern b true
	[ ! -e first.strain ]
	[ "$(run_key last.strain epoch_pattern)" = b ]
}

@test "a pattern that every line matches is no pattern" {
	fails_125 --epoch-pattern '' true
	notes --epoch-pattern "''"
	fails_125 --epoch-pattern '(epoch \d+)?' true
}

@test "a bad pattern is shown with where it is bad" {
	fails_125 --epoch-pattern 'epoch (\d+' true
	notes --epoch-pattern "'epoch (\d+'" 10
}

@test "budget and size are checked" {
	fails_125 --overhead 0% true
	fails_125 --overhead 200% true
	fails_125 --overhead x true
	fails_125 --max-size 10 true
	fails_125 --max-size 1parsec true
}

@test "an unknown option, or one without its value, is named" {
	fails_125 --frobnicate true
	notes "'--frobnicate'" "strain run --help"
	fails_125 --interval
	notes --interval TIME "strain run --help"
}

@test "what follows the command is the command's" {
	run -0 --separate-stderr "$STRAIN" run echo --interval -o --help -- x
	[ "$output" = "--interval -o --help -- x" ]
	run -0 --separate-stderr "$STRAIN" run -- echo -- x
	[ "$output" = "-- x" ]
}

@test "the help names every option and goes to standard output" {
	run -0 --separate-stderr "$STRAIN" run --help
	local option
	for option in output force interval label epoch-pattern overhead max-size pid no-cgroup no-markers; do
		[[ "$output" == *"--$option"* ]]
	done
	line_names "${lines[0]}" "strain run" COMMAND
}

@test "an output that exists is refused, unless --force is given" {
	echo precious >run.strain
	fails_with 125 run.strain --force -- "$STRAIN" run -o run.strain touch was-run
	[ "$(cat run.strain)" = precious ]
	[ ! -e was-run ]
	run -0 "$STRAIN" run -o run.strain --force true
	[ "$(run_key run.strain status)" = 0 ]
}

@test "an output that is a directory, or cannot be written, is refused" {
	mkdir directory
	fails_with 125 directory -- "$STRAIN" run -o directory touch was-run
	run -125 "$STRAIN" run --force -o directory touch was-run
	fails_with 125 nowhere/run.strain "No such file or directory" -- "$STRAIN" run -o nowhere/run.strain touch was-run
	run -125 "$STRAIN" run -o /proc/run.strain touch was-run
	run -125 "$STRAIN" run -o '' touch was-run
	[ ! -e was-run ]
	[ -d directory ]
	[ -z "$(ls -A directory)" ]
}

@test "a limit of file sizes is not taken for a full disk" {
	ulimit -f 20
	fails_with 125 run.strain "File too large" -- "$STRAIN" run -o run.strain touch was-run
	[ ! -e was-run ]
}

@test "a default folder that cannot be written means the state folder, and says so" {
	export STRAIN_DIR=/proc/nowhere XDG_STATE_HOME="$BATS_TEST_TMPDIR/state"
	run -0 --separate-stderr "$STRAIN" run sh -c 'echo ran'
	[ "$output" = ran ]
	[[ "$stderr" == "strain: "*" /proc/nowhere"*" $XDG_STATE_HOME/strain/sh-"* ]]
	STRAIN_DIR="$XDG_STATE_HOME/strain"
	[ "$(run_key "$(only_run)" status)" = 0 ]
}

@test "where nothing can be written the job runs all the same" {
	STRAIN_DIR=/proc/nowhere XDG_STATE_HOME=/proc/noplace run -3 --separate-stderr \
		"$STRAIN" run sh -c 'echo ran; exit 3'
	[ "$output" = ran ]
	notes_only "not recording" /proc/nowhere "No such file or directory" /proc/noplace/strain
	STRAIN_DIR=/proc/nowhere run -0 --separate-stderr env -u XDG_STATE_HOME -u HOME "$STRAIN" run true
	notes_only /proc/nowhere XDG_STATE_HOME HOME
}

@test "a pid that is gone, is no number, or comes with a command" {
	sh -c 'exit 0' &
	local gone=$!
	wait "$gone"
	fails_125 --pid "$gone"
	notes "$gone"
	fails_125 --pid 0
	fails_125 --pid many
	fails_125 --pid $$ true
	fails_125 --pid $$ --epoch-pattern x
	fails_125 --pid $$ --lines
	notes --lines
}

@test "lines without the hooks that sample them are refused" {
	fails_with 125 --lines --no-hooks -- "$STRAIN" run --lines --no-hooks touch was-run
	fails_with 125 --lines --no-markers -- "$STRAIN" run --no-markers --lines touch was-run
	[ ! -e was-run ]
}

@test "a process of another user is refused" {
	if [ "$(id -u)" -ne 0 ]; then
		[ "$(stat -c %u /proc/1)" != "$(id -u)" ] || skip "process 1 is this user's here"
		fails_125 --pid 1
	else
		command -v setpriv >/dev/null || skip "setpriv is not installed"
		# The build may lie where nobody else may look.
		local programs
		programs=$(mktemp -d)
		cp "$STRAIN" "$(dirname "$STRAIN")/strain-record" "$programs"
		chmod -R a+rX "$programs"
		run -125 --separate-stderr env -u STRAIN_HOME setpriv --reuid 65534 --regid 65534 \
			--clear-groups "$programs/strain" run -o "$programs/run.strain" --pid $$
		rm -r "$programs"
	fi
	[[ "$stderr" =~ ^"strain: "[^0-9]*([0-9]+).*uid ]]
	[ "${BASH_REMATCH[1]}" = 1 ] || [ "${BASH_REMATCH[1]}" = $$ ]
}

@test "the default name says what ran and when" {
	local name
	for name in 'sh -c true' 'env A=1 sh -c true' 'nice -n 1 sh -c true' 'timeout 5 sh -c true'; do
		# shellcheck disable=SC2086
		"$STRAIN" run $name
		[[ "$(basename "$(only_run)")" =~ ^sh-[0-9]{8}-[0-9]{6}\.strain$ ]]
		rm "$STRAIN_DIR"/*
	done
	echo 'exit 0' >my-train.sh
	RANK=12 "$STRAIN" run sh ./my-train.sh
	[[ "$(basename "$(only_run)")" =~ ^my-train-[0-9]{8}-[0-9]{6}-rank12\.strain$ ]]
}

@test "a process that runs already names its run too" {
	echo 'touch serving; sleep 1; exit 0' >serve.sh
	sh ./serve.sh &
	local job=$!
	eventually test -e serving # until then it is this shell's copy
	"$STRAIN" run --pid "$job"
	wait "$job"
	[[ "$(basename "$(only_run)")" =~ ^serve-[0-9]{8}-[0-9]{6}\.strain$ ]]
}

@test "the commands printed at the end work for any name" {
	local name
	mkdir -p -- '-d'
	for name in -dash "new
line" "it's \\ here" $'\xff\u202e' -d/x; do
		"$STRAIN" run -o "$name" true 2>said
		grep -o 'strain show .*' said >command
		run -0 bash -c 'strain() { "$STRAIN" "$@"; }; . ./command'
		[[ "$output" == *true* ]]
	done
}

@test "runs that start together do not share a file" {
	local pids=() i
	for i in 1 2 3 4; do
		"$STRAIN" run sleep 0.2 &
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		wait "$i"
	done
	[ "$(find "$STRAIN_DIR" -name '*.strain' | wc -l)" -eq 4 ]
}

@test "the run knows what ran, where, and how it ended" {
	run -3 "$STRAIN" run --interval 20ms sh -c 'exit 3' x --token=abc --password def
	local file
	file=$(only_run)
	[ "$(run_key "$file" command)" = '["sh","-c","exit 3","x","--token=***","--password","***"]' ]
	[ "$(run_key "$file" directory)" = "$BATS_TEST_TMPDIR" ]
	[ "$(run_key "$file" status)" = $((3 << 8)) ]
	[ "$(run_key "$file" name)" = sh ]
	[ "$(run_key "$file" interval_ns)" = 20000000 ]
	[ -z "$(run_key "$file" interval_fast_ns)" ]
	[ "$(run_key "$file" overhead)" = 0 ]
	[ "$(run_key "$file" hostname)" = "$(uname -n)" ]
	[ "$(stat -c %a "$file")" = 600 ]
}

@test "without an interval there is a budget of one percent" {
	"$STRAIN" run true
	[ "$(run_key "$(only_run)" overhead)" = 0.01 ]
	[ "$(run_key "$(only_run)" interval_ns)" = 50000000 ]
	[ "$(run_key "$(only_run)" interval_fast_ns)" = 20000000 ]
}
