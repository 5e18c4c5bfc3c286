#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# What processes wait for. System calls and the kernel's functions: test_doing; shares: test_wait_facts.

bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR"
	python3 -c 'import sys; assert sys.version_info >= (3, 6)' 2>/dev/null || skip 'no python3'
	cat >job.py <<-'EOF'
	"""A process for each thing to wait for. They end when the file `enough` is there."""
	import os
	import subprocess
	import sys
	import time

	WAITERS = {
	    "sleep": "import time; time.sleep(600)",
	    "lock": "import fcntl; fcntl.flock(open('locked', 'w'), fcntl.LOCK_EX)",
	    "pipe": "import os; r, w = os.pipe(); os.read(r, 1)",
	    "child": "import os, subprocess; subprocess.run(['sleep', '600'])",
	    "network": "import socket; s = socket.create_server(('127.0.0.1', 0)); s.accept()",
	}
	if __name__ == "__main__":
	    import fcntl

	    held = open("locked", "w")
	    fcntl.flock(held, fcntl.LOCK_EX)
	    running = []
	    for name, code in WAITERS.items():
	        running.append(subprocess.Popen([sys.executable, "-S", "-c", code], start_new_session=True))
	        with open("pid." + name, "w") as file:
	            file.write(str(running[-1].pid))
	    limit = time.monotonic() + 120
	    while not os.path.exists("enough") and time.monotonic() < limit:
	        time.sleep(0.05)
	    for process in running:
	        os.killpg(process.pid, 9)
	        process.wait()
	EOF
}

# Whether a process that is no ancestor of another may read its system call, as the recorder does.
may_look() {
	local pid answer=1
	sleep 60 3>&- &
	pid=$!
	(exec cat "/proc/$pid/syscall") >/dev/null 2>&1 && answer=0
	kill "$pid"
	return $answer
}

# How often looks found the process of this name doing that.
looks() {
	"$STRAIN" sql --csv run.strain "SELECT CAST(max(value) AS INTEGER) FROM samples JOIN entity
		ON entity.id = samples.entity WHERE metric = 'strain.wait.$2'
		AND entity.key LIKE '$(cat "pid.$1" 2>/dev/null || echo none):%'" 2>/dev/null | sed -n 2p
}

seen() {
	local name
	for name in sleep lock pipe child network; do
		[ "$(looks $name $name)" -ge 3 ] 2>/dev/null || return 1
	done
}

@test "looks tell sleep, lock, pipe, child and network apart" {
	may_look || skip '/proc/PID/syscall of another process cannot be read (Yama, a container)'
	"$STRAIN" run -o run.strain -- python3 -S job.py 2>err &
	local recorded=$! tries
	for ((tries = 0; tries < 400; tries++)); do
		seen && break
		sleep 0.2
	done
	: >enough
	wait "$recorded"
	for name in sleep lock pipe child network; do
		[ "$(looks $name $name)" -ge 3 ]
	done
	[ "$(looks sleep lock)" = 0 ]
	[ "$(looks lock sleep)" = 0 ]
	[ "$(looks pipe network)" = 0 ]
	[ "$(looks child sleep)" = 0 ]
	"$STRAIN" show --json run.strain | python3 -c '
import json, sys
rows = {row["pid"]: row for row in json.load(sys.stdin)["waits"]}
for kind in sys.argv[1:]:
    row = rows[int(open("pid." + kind).read())]
    assert row["samples"] >= 3 and row[kind + "_ratio"] > 0.3, row'  sleep lock pipe child network
}

@test "processes that steps start are counted" {
	cat >train.py <<-'EOF'
	import subprocess
	import time

	import strain

	steps, end = 0, time.monotonic() + 4
	for _ in strain.iterations(iter(lambda: time.monotonic() < end, False)):
	    steps += 1
	    for _ in range(2):
	        subprocess.run(["true"], check=True)
	with open("steps", "w") as file:
	    file.write(str(steps))
	EOF
	"$STRAIN" run -o run.strain -- python3 train.py 2>err
	"$STRAIN" sql --csv run.strain "SELECT CAST(max(value) AS INTEGER) FROM samples
		WHERE metric = 'strain.process.children.started'" | sed 1d >started
	[ -s started ] || skip 'no CPU time samples are taken here (perf_event_open)'
	cat steps started err
	[ "$(cat started)" -le $((2 * $(cat steps) + 2)) ] # Python may start one of its own
	"$STRAIN" show run.strain >page
	grep -E '^ +children +(1\.[5-9]|2|2\.[0-4]) .*iteration' page
}
