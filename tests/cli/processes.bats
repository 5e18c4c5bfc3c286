#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The job's processes, whole, however they come and go; and their CPU time, exact.

bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR"
	JOB="$BUILD_ROOT/tests/tools/misbehave"
}

record() {
	"$STRAIN" run -o run.strain "$@" 2>verdict
}

# The first column of the first row.
ask() {
	"$STRAIN" sql --csv run.strain "$1" | sed -n 2p
}

job_cpu_us() {
	ask "SELECT cast(round(max(value) * 1e6) AS INTEGER) FROM samples JOIN entity e ON e.id = entity
		WHERE e.kind = 'job' AND metric = 'process.cpu.time'"
}

# $1 is within $3 parts per thousand of $2, and 2 ms for what starting and ending cost.
near() {
	local off=$(($1 > $2 ? $1 - $2 : $2 - $1))
	echo "$1 us against the kernel's $2 us"
	[ "$off" -le $(($2 * $3 / 1000 + 2000)) ]
}

@test "the CPU time of 500 processes of 1 to 5 ms is the kernel's, without a cgroup" {
	account=$(record --no-cgroup "$JOB" short 500)
	near "$(job_cpu_us)" "$account" 1
	[ "$(ask "SELECT value FROM run WHERE key = 'cpu_time_source'")" = processes ]
}

@test "the CPU time of 500 processes of 1 to 5 ms is the kernel's, with a cgroup" {
	account=$(record "$JOB" short 500)
	[ "$(ask "SELECT value FROM run WHERE key = 'cpu_time_source'")" != processes ] ||
		skip "no cgroup can be made here"
	near "$(job_cpu_us)" "$account" 2
}

@test "the total never falls" {
	record --no-cgroup --interval 2ms "$JOB" short 200 >/dev/null
	[ "$(ask "SELECT count(*) FROM (SELECT value, lag(value) OVER (ORDER BY t) AS before FROM samples
		JOIN entity e ON e.id = entity WHERE e.kind = 'job' AND metric = 'process.cpu.time')
		WHERE value < before")" = 0 ]
}

@test "a job that ignores SIGCHLD is marked as inexact where no cgroup counts" {
	record --no-cgroup "$JOB" ignore-children 120
	[ "$(ask "SELECT count(*) FROM event WHERE kind = 'cpu_time_inexact'")" = 1 ]
	rm run.strain
	record "$JOB" ignore-children 20
	[ "$(ask "SELECT value FROM run WHERE key = 'cpu_time_source'")" != processes ] ||
		skip "no cgroup can be made here"
	[ "$(ask "SELECT count(*) FROM event WHERE kind = 'cpu_time_inexact'")" = 0 ]
}

@test "what children of a job that ignores SIGCHLD were seen to use is counted, and said to be inexact" {
	cat >ignores.py <<-'EOF'
		import os, signal, time
		signal.signal(signal.SIGCHLD, signal.SIG_IGN)
		for _ in range(12):
		    if os.fork() == 0:
		        until = time.process_time() + 0.15
		        while time.process_time() < until:
		            pass
		        os._exit(0)
		    time.sleep(0.25)
	EOF
	"$STRAIN" run --no-cgroup --force -o run.strain -- python3 ignores.py
	[ "$(ask "SELECT count(*) FROM event WHERE kind = 'cpu_time_inexact'")" = 1 ]
	# 1.8 s, of which each child's last tenth of a second may not have been seen
	"$STRAIN" show --json run.strain | python3 -c 'import json, sys
used = json.load(sys.stdin)["allocation"]["cpus"]["used_s"]
assert 0.6 < used < 2.5, used'
	cat >ignores-later.py <<-'EOF'
		import signal, subprocess, sys, time
		spin = "import time\nuntil = time.process_time() + 0.5\nwhile time.process_time() < until: pass"
		for _ in range(3):
		    subprocess.run([sys.executable, "-S", "-c", spin])
		time.sleep(1.5)
		signal.signal(signal.SIGCHLD, signal.SIG_IGN)
		time.sleep(1.5)
	EOF
	"$STRAIN" run --no-cgroup --force -o run.strain -- python3 ignores-later.py
	"$STRAIN" show --json run.strain | python3 -c 'import json, sys
used = json.load(sys.stdin)["allocation"]["cpus"]["used_s"]
assert 1.4 < used < 2.4, used' # 1.5 s and the starts of Python: what was reaped counts once
}

@test "a name that looks like fields of stat stays a name" {
	record "$JOB" bad-name 200
	[ "$(ask "SELECT name FROM entity WHERE kind = 'process'")" = "a) R 1 (b" ]
	cpu=$(ask "SELECT max(value) > 0.19 FROM samples JOIN entity e ON e.id = entity
		WHERE e.kind = 'process' AND metric = 'process.cpu.time'")
	[ "$cpu" = 1 ]
}

@test "1000 threads are counted" {
	record "$JOB" threads 1000
	[ "$(ask "SELECT cast(max(value) AS INTEGER) FROM samples WHERE metric = 'process.thread.count'")" = 1001 ]
}

@test "a bomb of 1000 processes (5000 in the matrix): all are seen, and the job is unharmed" {
	count=${STRAIN_BOMB:-1000}
	# Not through a pipe into read: that would go on when the job has printed, and before the run is
	# written to its end.
	counts=$(record --no-cgroup "$JOB" bomb "$count")
	read -r started account <<<"$counts"
	[ "$started" = "$count" ]
	[ "$(ask "SELECT count(*) FROM entity WHERE kind = 'process'")" = $((count + 1)) ]
	near "$(job_cpu_us)" "$account" 1
}

@test "more than 10000 processes: no more are listed, their CPU time still is counted" {
	local option account size memory
	unset MALLOC_PERTURB_ # of meson test: it writes to all memory that is allocated, and users do not set it
	for option in --force --no-cgroup; do
		rm -f run.strain
		account=$(record "$option" --interval 10ms "$JOB" waves 10990)
		echo "$option: $(ask "SELECT count(*) FROM entity") entities"
		# Of those that it was too slow to see it cannot say anything.
		[ "$(ask "SELECT count(*) FROM entity WHERE kind = 'process'")" -ge 10000 ] ||
			skip "this machine saw fewer than 10000 of them"
		[ "$(ask "SELECT count(*) FROM entity WHERE kind = 'process'")" -le 10010 ]
		[ "$(ask "SELECT count(*) FROM event WHERE kind = 'many_processes'")" = 1 ]
		[[ "$(ask "SELECT text FROM event WHERE kind = 'many_processes'")" == *10000* ]]
		near "$(job_cpu_us)" "$account" 3
		size=$(stat -c %s run.strain)
		echo "$size bytes"
		[ "$size" -le 20000000 ]
		memory=$(ask "SELECT cast(max(value) AS INTEGER) FROM samples s JOIN entity e ON e.id = s.entity
			WHERE e.kind = 'recorder' AND metric = 'process.memory.usage'")
		echo "$memory bytes of memory"
		grep -aqE '__(asan|tsan|ubsan)_' "$STRAIN_HOME/strain-record" || # sanitizers take more
			[ "$memory" -le $((16 * 1048576)) ]
	done
}

@test "a daemon that left its parents and their session belongs to the job" {
	for option in --no-cgroup --force; do
		rm -f run.strain
		record "$option" "$JOB" daemon 200
		[ "$(ask "SELECT count(*) FROM entity WHERE name = 'the-daemon'")" = 1 ]
		us=$(job_cpu_us)
		echo "$option: $us us"
		[ "$us" -ge 200000 ] && [ "$us" -le 260000 ]
	done
}

@test "a zombie keeps the CPU time that it had, and has no memory" {
	record "$JOB" zombie 100
	[ "$(ask "SELECT count(*) FROM entity WHERE kind = 'process'")" = 2 ]
	[ "$(ask "SELECT max(value) >= 0.1 FROM samples JOIN entity e ON e.id = entity
		WHERE e.kind = 'process' AND e.parent IN (SELECT id FROM entity WHERE kind = 'process')
		AND metric = 'process.cpu.time'")" = 1 ]
	[ "$(ask "SELECT count(*) FROM samples WHERE metric = 'process.memory.usage' AND value = 0")" = 0 ]
}

@test "how each process ended is known" {
	run -3 "$STRAIN" run -o run.strain sh -c 'sh -c "sleep 0.2; exit 5" & sh -c "sleep 0.2; kill -9 \$\$" & wait; sleep 0.2; exit 3'
	[ "$(ask "SELECT count(*) FROM entity WHERE json_extract(attributes, '\$.exit_status') = 3")" != 0 ] ||
		skip "this kernel tells strangers nothing of an end (Linux 6.15 does)"
	[ "$(ask "SELECT count(*) FROM entity WHERE json_extract(attributes, '\$.exit_status') = 5")" = 1 ]
	[ "$(ask "SELECT count(*) FROM entity WHERE json_extract(attributes, '\$.exit_signal') = 9")" = 1 ]
}
