#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# strain run: the job has what it would have without us, whatever it does and whatever is killed.

load run_helpers

# The same command with and without us; with what must not be the same left out.
same() {
	"$@" >without 2>without.err </dev/null
	local status=$?
	"$STRAIN" run "$@" >with 2>with.err </dev/null
	[ $? -eq $status ] && diff without with
}

@test "the exit status is the job's" {
	local status
	for status in 0 1 2 3 124 125 126 127 128 200 255; do
		run -$status "$STRAIN" run sh -c "exit $status"
	done
}

@test "what the job died of, strain dies of" {
	local number
	for number in 1 2 3 6 9 11 13 14 15 34; do
		# Where the suite itself ignores a signal (nohup), so would the job.
		run -$((128 + number)) env --default-signal "$STRAIN" run sh -c "kill -$number \$\$"
		# Not a status that looks so: the shell says that it was a signal.
		run /usr/bin/python3 -c '
import subprocess, sys
sys.exit(subprocess.run(sys.argv[1:], stderr=subprocess.DEVNULL).returncode != -'$number')' \
			env --default-signal "$STRAIN" run sh -c "kill -$number \$\$"
		[ "$status" -eq 0 ]
	done
}

@test "a job that dumps core leaves no core of ours" {
	ulimit -c unlimited
	run "$STRAIN" run sh -c 'ulimit -c 0; kill -SEGV $$'
	[ "$status" -eq 139 ]
	[ -z "$(find . -name 'core*')" ]
}

@test "nothing is added to standard output" {
	run -0 --separate-stderr "$STRAIN" run sh -c 'echo out; echo err >&2'
	[ "$output" = out ]
	[[ "$stderr" == err* ]]
}

@test "standard input is the job's" {
	[ "$(echo hello | "$STRAIN" run cat)" = hello ]
	run -0 "$STRAIN" run sh -c 'cat; echo end' </dev/null
	[[ "$output" == end* ]]
}

@test "binary output passes unchanged" {
	head -c 1000000 /dev/urandom >random
	"$STRAIN" run cat random >copy
	cmp random copy
	"$STRAIN" run cat random | cmp random -
	"$STRAIN" run --epoch-pattern x cat random | cmp random -
	"$STRAIN" run --epoch-pattern x cat random >copy
	cmp random copy
}

@test "the environment is the same, but for STRAIN_HOME, PYTHONPATH, the variables of marks and hooks, and our library path" {
	same env -i A=1 "PATH=$PATH" env
	env -i "PATH=$PATH" "STRAIN_HOME=$STRAIN_HOME" B=2 "STRAIN_DIR=$STRAIN_DIR" \
		"LD_LIBRARY_PATH=$STRAIN_HOME/lib:/opt/lib" "$STRAIN" run env | sort >with
	[ "$(grep -v -e ^PATH= -e ^STRAIN_MARKERS= -e ^NVTX_INJECTION64_PATH= -e ^PYTHONPATH= -e ^STRAIN_HOOKS= -e ^STRAIN_LINES= with)" = "B=2
LD_LIBRARY_PATH=/opt/lib
STRAIN_DIR=$STRAIN_DIR" ]
}

@test "the job has the descriptors that we were given, and no other" {
	# Of bats' own descriptors the job gets what any command gets.
	# shellcheck disable=SC2016
	same sh -c 'for f in /proc/$$/fd/*; do echo "${f##*/}"; done'
	# shellcheck disable=SC2016
	run -0 --separate-stderr "$STRAIN" run --epoch-pattern x sh -c \
		'cd /proc/$$/fd && for f in 0 1 2 3 4 5 6 7 8 9; do [ -e $f ] && echo -n "$f "; done; :' \
		3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
	[ "$output" = '0 1 2 ' ]
	exec 8<"$BATS_TEST_FILENAME"
	[ "$("$STRAIN" run sh -c 'head -c 2 <&8')" = '#!' ]
	exec 8<&-
}

@test "streams that were closed are closed" {
	# shellcheck disable=SC2016
	local look='for f in 0 1 2; do if [ -e /proc/$$/fd/$f ]; then echo $f >>list; fi; done'
	"$STRAIN" run --epoch-pattern x sh -c "$look" <&- >&-
	[ "$(cat list)" = 2 ]
	rm list
	"$STRAIN" run --epoch-pattern x sh -c "$look" 2>&-
	[ "$(cat list)" = $'0\n1' ]
	rm list
	"$STRAIN" run sh -c "$look" <&- >&- 2>&-
	[ ! -e list ]
}

@test "signals are ignored and blocked as they were" {
	same grep '^Sig[PBIC]' /proc/self/status
	cat >dispositions.py <<-'PYTHON'
		import os, signal, sys
		for number in (signal.SIGPIPE, signal.SIGCHLD, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1):
		    signal.signal(number, signal.SIG_IGN)
		signal.pthread_sigmask(signal.SIG_SETMASK, {signal.SIGUSR2, signal.SIGTERM})
		os.execvp(sys.argv[1], sys.argv[1:])
	PYTHON
	/usr/bin/python3 dispositions.py grep -E '^Sig(Ign|Blk)' /proc/self/status >without
	/usr/bin/python3 dispositions.py "$STRAIN" run grep -E '^Sig(Ign|Blk)' /proc/self/status >with
	diff without with
}

@test "limits, priority, timer slack and OOM score are as they were" {
	same cat /proc/self/limits
	same cat /proc/self/timerslack_ns
	same cat /proc/self/oom_score_adj
	same nice
	same sh -c umask
	same pwd
}

@test "the job is in our process group and session" {
	# shellcheck disable=SC2016
	same sh -c 'cut -d" " -f6 /proc/$$/stat'
	# shellcheck disable=SC2016
	/usr/bin/python3 -c 'import os, sys; os.setsid(); os.execvp(sys.argv[1], sys.argv[1:])' \
		"$STRAIN" run sh -c 'echo $(cut -d" " -f5 /proc/$$/stat) $(cut -d" " -f5 /proc/$PPID/stat)' \
		>groups
	read -r job launcher <groups
	[ "$job" = "$launcher" ]
}

@test "a job that closes everything, ignores SIGCHLD and SIGTERM" {
	run -7 "$STRAIN" run --epoch-pattern x sh -c 'exec <&- >&- 2>&-; sleep 0.1; exit 7'
	run -5 "$STRAIN" run /usr/bin/python3 -c '
import os, signal, subprocess, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(20):
    if os.fork() == 0:
        os._exit(0)
os.kill(os.getpid(), signal.SIGTERM)
sys.exit(5)'
}

@test "a name full of parentheses" {
	cp "$(command -v sleep)" 'a) R 1 (b'
	run -0 "$STRAIN" run './a) R 1 (b' 0.1
}

@test "what the job leaves running is named and left alone" {
	run -0 --separate-stderr "$STRAIN" run sh -c \
		'(sleep 30 >/dev/null 2>&1 & echo $! >pid); sleep 0.3'
	local pid
	pid=$(cat pid)
	kill -0 "$pid"
	kill "$pid"
	notes "sleep ($pid)"
}

@test "what it leaves running does not keep us, also where it holds the output" {
	local mode
	for mode in '' '--epoch-pattern=x'; do
		# shellcheck disable=SC2086
		"$STRAIN" run $mode sh -c '(sleep 30 & echo $! >pid); echo done' 2>/dev/null |
			{
				read -r line
				echo "$line" >first
				# The pipe stays open: the sleep has it.
			}
		[ "$(cat first)" = "done" ]
		kill "$(cat pid)"
	done
}

@test "the output of a process that was left running still arrives" {
	mkfifo out
	cat out >collected &
	local reader=$!
	"$STRAIN" run --epoch-pattern x sh -c \
		'(sh -c "while [ ! -e stop ]; do sleep 0.02; done; echo late" &); echo early' >out 2>/dev/null
	[ "$(cat collected)" = early ]
	touch stop
	wait "$reader"
	[ "$(cat collected)" = $'early\nlate' ]
}

@test "a reader that is gone means SIGPIPE for the job, as without us" {
	local mode
	for mode in '' '--epoch-pattern=x'; do
		# shellcheck disable=SC2086
		run /usr/bin/python3 -c '
import os, subprocess, sys
read, write = os.pipe()
job = subprocess.Popen(sys.argv[1:], stdout=write, stderr=subprocess.DEVNULL)
os.close(write)
os.read(read, 1)
os.close(read)
print(job.wait())' "$STRAIN" run $mode sh -c 'trap - PIPE; while :; do echo line; done'
		[ "$output" = -13 ]
	done
}

@test "the recorder killed: the job and the shell do not notice" {
	"$STRAIN" run sh -c 'echo before; while [ ! -e stop ]; do sleep 0.02; done; echo after; exit 4' \
		>out 2>err &
	local launcher=$!
	eventually grep -q before out
	kill -KILL "$(recorder_of "$launcher")"
	sleep 0.1
	touch stop
	local status=0
	wait "$launcher" || status=$?
	[ "$status" -eq 4 ]
	[ "$(cat out)" = $'before\nafter' ]
	line_names "$(grep -m 1 '^strain: ' err)" 9
	[ "$(run_key "$(only_run)" status)" = $((4 << 8)) ]
	[ "$(run_key "$(only_run)" state)" = finished ]
	[ "$(python_sql "$(only_run)" "SELECT count(*) FROM event WHERE kind = 'recorder_died'")" = 1 ]
}

@test "the recorder stopped: the job ends in time, we say that we do not wait" {
	"$STRAIN" run sh -c 'echo before; while [ ! -e stop ]; do sleep 0.02; done' >out 2>err &
	local launcher=$! recorder
	eventually grep -q before out
	recorder=$(recorder_of "$launcher")
	kill -STOP "$recorder"
	touch stop
	eventually grep -q '^strain: ' err
	kill -TERM "$launcher"
	wait "$launcher"
	[ "$(grep -c '^strain: ' err)" -ge 2 ]
	kill -CONT "$recorder"
	eventually sh -c "! kill -0 $recorder 2>/dev/null"
	[ "$(run_key "$(only_run)" status)" = 0 ]
}

@test "the launcher killed: the job runs to its end, and its output arrives" {
	local mode
	for mode in '' '--epoch-pattern=x'; do
		rm -f stop out
		# shellcheck disable=SC2086
		setsid "$STRAIN" run $mode sh -c \
			'echo $$ before; while [ ! -e stop ]; do sleep 0.02; done; echo after' 2>&1 | cat >out &
		eventually grep -q before out
		local job
		job=$(cut -d' ' -f1 out)
		kill -KILL "$(ps -o ppid= -p "$job")"
		sleep 0.1
		kill -0 "$job"
		touch stop
		eventually grep -q after out
		eventually sh -c "! kill -0 $job 2>/dev/null"
		[ "$(cut -d' ' -f2 out | head -1)" = before ]
	done
}

@test "the job's duration is the job's, without what the recorder does before and after it" {
	"$STRAIN" run -o job.strain /usr/bin/python3 -c '
import time
print(time.monotonic_ns(), flush=True)
time.sleep(0.05)
print(time.monotonic_ns())' >inside
	local start first last
	start=$(run_key job.strain start_monotonic_ns)
	first=$((start + $(run_key job.strain job_start_ns)))
	last=$((start + $(run_key job.strain job_end_ns)))
	[ "$start" -lt "$first" ]
	[ "$first" -lt "$(sed -n 1p inside)" ]
	[ "$(sed -n 2p inside)" -lt "$last" ]
	[ "$last" -le "$((start + $(run_key job.strain end_ns)))" ]
	"$STRAIN" show --json job.strain | /usr/bin/python3 -c '
import json, sys
assert round(json.load(sys.stdin)["run"]["duration_s"] * 1e9) == int(sys.argv[1])' $((last - first))
}

@test "--no-cgroup leaves the job where it is" {
	cat /proc/self/cgroup >without
	"$STRAIN" run --no-cgroup cat /proc/self/cgroup >with
	diff without with
}

@test "nothing of a cgroup is left behind" {
	"$STRAIN" run sh -c 'cat /proc/self/cgroup' >inside
	local path
	grep -o '/strain-[0-9]*' inside | sort -u >ours || true
	while read -r path; do
		[ -z "$(find /sys/fs/cgroup -maxdepth 6 -type d -path "*$path")" ]
	done <ours
}

@test "a process that runs already is recorded to its end" {
	sleep 2 &
	eventually grep -qx sleep "/proc/$!/comm" # until then it is this shell's copy
	run -0 --separate-stderr "$STRAIN" run -o attached.strain --pid $!
	notes $! attached.strain
	[ "$(run_key attached.strain attached_pid)" = $! ]
	[ "$(run_key attached.strain command)" = '["sleep","2"]' ]
	[ "$(run_key attached.strain state)" = finished ]
}

@test "Ctrl-C ends the recording of a process that runs already, not the process" {
	sleep 30 &
	local job=$!
	"$STRAIN" run -o attached.strain --pid "$job" 2>err &
	local launcher=$!
	eventually grep -q "^strain: .* $job .*attached.strain" err
	kill -INT "$launcher"
	wait "$launcher"
	kill -0 "$job"
	kill "$job"
	[ "$(run_key attached.strain state)" = finished ]
}

@test "Ctrl-C before the recording of a process that runs already begins is a death by SIGINT" {
	sleep 30 &
	local job=$!
	# A signal that is pending when strain begins.
	run /usr/bin/python3 -c '
import os, signal, subprocess, sys
def interrupted():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.kill(os.getpid(), signal.SIGINT)
print(subprocess.run(sys.argv[1:], preexec_fn=interrupted).returncode)' \
		"$STRAIN" run -o attached.strain --pid "$job"
	kill "$job"
	[ "$output" = -2 ]
	[ ! -e attached.strain ]
}

@test "what killed runs left in shared memory goes with the next run; what is in use stays" {
	[ -w /dev/shm ] || skip "no /dev/shm"
	command -v flock >/dev/null || skip "no flock"
	local old=/dev/shm/strain-$(id -u)-loldXyz held=/dev/shm/strain-$(id -u)-lhldXyz young=/dev/shm/strain-$(id -u)-lyngXyz
	mkdir -p "$old" "$held" "$young"
	touch "$old/ring-1"
	touch -d '5 minutes ago' "$old" "$held"
	exec 8<"$held"
	flock -n 8
	run -0 "$STRAIN" run --no-verdict true
	[ ! -e "$old" ]
	[ -d "$held" ]
	[ -d "$young" ]
	rmdir "$held" "$young"
	exec 8<&-
}

@test "without its recorder the job runs, unless it must be recorded" {
	mkdir alone
	cp "$STRAIN" alone/strain
	unset STRAIN_HOME
	STRAIN_HOME='' run -7 --separate-stderr alone/strain run --label a=b --interval=1s sh -c 'echo "the job"; exit 7'
	[ "$output" = "the job" ]
	[[ "$stderr" == "strain: not recording: strain-record is neither in "* ]]
	STRAIN_HOME='' run -125 alone/strain run -o kept true
	STRAIN_HOME='' run -125 alone/strain run --no-verdict=yes touch wrong # it takes no value
	[ ! -e wrong ]
	STRAIN_HOME='' run -125 alone/strain run --memory 1GiB true
	STRAIN_HOME='' run -127 alone/strain run -- nosuchprogram
}
