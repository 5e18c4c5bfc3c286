#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# What became of a job, first in all that is said of its run: one that failed, one that somebody
# ended, and one of which only a part was recorded.

load run_helpers

# A job of a second and more, so that it is not too short for a verdict.
fail() {
	printf 'sleep 1.1\n%s\n' "$1" >job.sh
	failing "$STRAIN" run -o run.strain sh job.sh >out 2>err
}

# Runs a command that must not end with 0.
failing() {
	local status=0
	"$@" || status=$?
	[ "$status" != 0 ]
}

# Of `strain show --json`: an expression of Python over `d`.
shown() {
	"$STRAIN" show --json "${2:-run.strain}" | /usr/bin/python3 -c '
import json, sys
d = json.load(sys.stdin)
print(eval(sys.argv[1]))' "$1"
}

# The first line that strain printed on standard error.
first_line() {
	grep -m 1 '^strain: ' err
}

no_advice() {
	[ "$(shown 'd["verdict"]["bottleneck"], d["verdict"]["causes"], d["verdict"]["suggestions"], d["verdict"]["next"]')" = \
		"('failed', [], [], '')" ]
	[ "$(grep -c '^        [^ ]' err)" -le "$(($(grep -c '^        |' err) + 4))" ] # figures, cost, show, report
	run -0 "$STRAIN" show run.strain
	[[ "$output" != *$'\nTry  '* ]] && [[ "$output" != *$'\nNext  '* ]]
	run -0 "$STRAIN" ls --json --sort verdict .
	[[ "$output" == *'"verdict": "failed"'* ]]
}

@test "a job that fails says so first, with its status and how long it ran" {
	fail 'exit 3'
	[[ "$(first_line)" =~ " 1."[0-9]" s" ]]
	line_names "$(first_line)" 3
	run -0 "$STRAIN" show run.strain
	[[ "$output" == *$'\nVerdict   '*' 1.'*' s'*' 3 '* ]]
	[ "$(shown 'd["run"]["outcome"], d["run"]["exit_status"], d["verdict"]["confidence"]')" = "('crash', 3, 'high')" ]
	no_advice
}

@test "a signal is called by its name" {
	fail 'kill -SEGV $$'
	line_names "$(first_line)" SIGSEGV
	[ "$(shown 'd["run"]["outcome"], d["run"]["exit_signal"]')" = "('crash', 11)" ]
	no_advice
}

@test "the report and a list have no advice for a job that marked itself and then failed" {
	train=$BUILD_ROOT/workloads/onednn/onednn-train
	[ -x "$train" ] || skip 'onednn-train is not built'
	failing "$STRAIN" run -o run.strain sh -c "'$train' -n 960 -e 2 -t 1 -w 1 --prepare-us 2000; exit 4" >out 2>err
	[ "$(shown 'len(d["iterations"]) > 0')" = True ]
	no_advice
	"$STRAIN" report -o run.html run.strain || skip 'built without HTML pages'
	grep -aqF "$(shown 'd["run"]["outcome_text"]')" run.html
	[ "$(shown 'd["run"]["exit_status"]')" = 4 ]
	run ! grep -aq 'num_workers' run.html
}

@test "of a job that writes to a file the last lines are known, and a traceback is" {
	cat >train.py <<-'EOF'
		import sys, time
		print("epoch 1", flush=True)
		time.sleep(1.1)
		def step(batch):
		    raise ValueError("no batch \033[31m")
		try:
		    step(1)
		finally:
		    import atexit
		    atexit.register(lambda: print("bye", file=sys.stderr))
	EOF
	echo "ValueError: of before" >log
	failing "$STRAIN" run -o run.strain /usr/bin/python3 train.py >>log 2>&1
	grep '^strain: ' log >err
	[[ "$(first_line)" == *' 1: ValueError: no batch \x1b[31m' ]]
	grep -q '^        | ValueError: no batch' log
	run -0 "$STRAIN" show run.strain
	[[ "$output" == *$'\nOutput    epoch 1\n          Traceback (most recent call last):\n'* ]]
	[[ "$output" == *$'\n          bye\n'* ]]
	[[ "$output" != *"of before"* ]]
	[ "$(shown 'd["run"]["output"].splitlines()[0]')" = "epoch 1" ]
	no_advice
}

@test "standard output and error in files of their own: what error says is the last" {
	printf 'sleep 1.1; echo "MemoryError: none left" >&2; echo last of output; exit 1\n' >job.sh
	failing "$STRAIN" run -o run.strain sh job.sh >out.log 2>err
	[[ "$(first_line)" == *" 1: last of output" || "$(first_line)" == *"MemoryError: none left" ]]
	[ "$(shown 'd["run"]["outcome"]')" = out_of_memory ]
}

@test "what passes a pipe or a terminal is known with --epoch-pattern, else nothing is put in between" {
	printf 'sleep 1.1; readlink /proc/self/fd/1; seq 30000; echo "RuntimeError: the last"; exit 2\n' >job.sh
	{ run -2 "$STRAIN" run --epoch-pattern 'none such' -o run.strain sh job.sh; echo "$output" >err; }
	[[ "$(first_line)" == *" 2: RuntimeError: the last" ]]
	[ "$(shown 'len(d["run"]["output"]) <= 8192 and d["run"]["output"].splitlines()[0].isdigit()')" = True ]
	rm run.strain
	{ "$STRAIN" run -o run.strain sh job.sh 2>err || true; } | cat >piped
	head -1 piped >link
	[[ "$(cat link)" == pipe:* ]]
	[[ "$(first_line)" == *" 2" ]]
	[ "$(shown 'd["run"]["output"]')" = None ]
}

@test "a job that ended well leaves nothing of its output in the run" {
	"$STRAIN" run -o run.strain sh -c 'echo secret' >log 2>&1
	[ "$(shown 'd["run"]["output"], d["run"]["outcome"], d["run"]["outcome_text"]')" = "(None, 'success', None)" ]
}

@test "CUDA out of memory is an outcome" {
	printf 'echo "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"; echo bye; exit 1\n' >job.sh
	failing "$STRAIN" run -o run.strain sh job.sh >log 2>&1
	grep -q '^strain: .*: torch.cuda.OutOfMemoryError: CUDA out of memory' log
	[ "$(shown 'd["run"]["outcome"], d["verdict"]["bottleneck"]')" = "('out_of_memory', 'failed')" ]
	[ "$(json '[r["outcome"] for r in d]' "$STRAIN" ls .)" = "['out_of_memory']" ]
}

@test "a job that somebody ended is none that crashed: it keeps its verdict" {
	local signal
	for signal in INT TERM; do
		rm -f run.strain
		printf 'import os, signal, time\nt = time.time()\nsignal.signal(signal.SIGINT, signal.SIG_DFL)\nwhile time.time() - t < 1.5: pass\nos.kill(os.getpid(), signal.SIG%s)\n' $signal >job.py
		failing "$STRAIN" run -o run.strain /usr/bin/python3 job.py >out 2>err
		[ "$(shown 'd["run"]["outcome"], "SIG'$signal'" in d["run"]["outcome_text"]')" = "('interrupted', True)" ]
		[ "$(shown 'd["verdict"]["bottleneck"]')" != failed ]
		[[ "$(first_line)" == *"$(shown 'd["verdict"]["headline"][:30]')"* ]]
	done
	"$STRAIN" ls --where outcome=interrupted . | grep -q SIGTERM
}

# A part of a run -----------------------------------------------------------------------------------

# A job that computes for six seconds, and one line at its end.
BURN='import time
t = time.time()
while time.time() - t < 6: pass
print("whole")'

# That run.strain is known to be a part, for a reason that has these words: in every view.
is_a_part() { # RUN WORD...
	local run=$1 reason
	shift
	[ "$(shown 'abs(d["job"]["cpus_used"] * d["run"]["recorded_s"] / d["job"]["cpu_seconds"] - 1) < 0.001')" = True ]
	[ "$(shown 'd["run"]["duration_s"] >= 6 and d["run"]["recorded_s"] < 0.8 * d["run"]["duration_s"]')" = True ]
	reason=$(shown 'd["run"]["partial"]' "$run")
	line_names "$reason" "$@"
	[[ "$reason" =~ [0-9.]+" s".*[0-9.]+" s" ]]
	# The verdict is about the part.
	[ "$(shown 'd["verdict"]["bottleneck"] not in ("unknown", "failed", "not-known")')" = True ]
	[[ "$(first_line)" == "strain: $reason" ]]
	run -0 "$STRAIN" show "$run"
	[[ "${lines[0]}" == *"   $reason   exit 0" ]]
	run -0 "$STRAIN" ls "$(dirname "$run")"
	[[ "$output" == *"exit 0, "* ]]
	run -0 --separate-stderr "$STRAIN" compare "$run"
	[[ "$output" == *"${reason##*: }"* ]]
	[ "$(json 'd[0]["partial"]' "$STRAIN" ls "$(dirname "$run")")" = "$reason" ]
}

@test "the recorder is killed: what there is says of which part it is" {
	"$STRAIN" run -o run.strain /usr/bin/python3 -c "$BURN" >out 2>err &
	local launcher=$! recorder
	sleep 2.5
	recorder=$(recorder_of $launcher)
	kill -KILL "$recorder"
	wait $launcher
	[ "$(cat out)" = whole ]
	# The launcher says first that it goes on alone.
	sed -i "0,/^strain: /{/^strain: /d}" err
	is_a_part run.strain 9
	[ "$("$STRAIN" sql --csv run.strain "SELECT count(*) FROM event WHERE kind = 'recorder_died'" | tail -n 1)" = 1 ]
}

@test "the disk was full: what there is says of which part it is" {
	[ "$(id -u)" = 0 ] || skip 'needs root, to mount a small file system'
	mkdir small
	mount -t tmpfs -o size=1536k tmpfs small 2>/dev/null || skip 'no tmpfs can be mounted here'
	MOUNTED=$PWD/small
	head -c 700k /dev/zero >small/ballast
	(sleep 2.5; head -c 2M /dev/zero >small/rest 2>/dev/null) &
	"$STRAIN" run --interval 1ms -o small/run.strain /usr/bin/python3 -c "$BURN" >out 2>err
	wait
	rm -f small/ballast small/rest
	[ "$(cat out)" = whole ]
	cp small/run.strain .
	is_a_part small/run.strain disk
}

teardown() {
	if [ -n "${MOUNTED:-}" ]; then
		umount "$MOUNTED"
	fi
}
