#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Threads of the training processes. Names, libraries and calls: test_thread_kind.

bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR"
	python3 -c 'import sys; assert sys.version_info >= (3, 6)' 2>/dev/null || skip 'no python3'
	[ -r /proc/self/schedstat ] || skip 'no /proc/PID/schedstat'
	cat >job.py <<-'EOF'
	"""A thread that sleeps and a process that does nothing. They end when the file `enough` is there."""
	import os
	import threading
	import time

	threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
	limit = time.monotonic() + 120
	while not os.path.exists("enough") and time.monotonic() < limit:
	    sum(range(20000))
	os._exit(0)
	EOF
}

# The largest value of a metric of threads so far.
most() {
	"$STRAIN" sql --csv run.strain "SELECT CAST(1000 * max(value) AS INTEGER) FROM samples
		WHERE metric = 'strain.threads.$1'" 2>/dev/null | sed -n 2p
}

seen() {
	[ "$(most main.cpu_time)" -gt 0 ] 2>/dev/null && [ "$(most main.runs)" -gt 0 ] &&
		[ $(($(most python.count) + $(most unnamed.count))) -ge 1000 ]
}

@test "threads of the busiest process are in groups, the first apart" {
	"$STRAIN" run -o run.strain -- python3 -S job.py 2>err &
	for _ in $(seq 600); do
		seen && break
		sleep 0.1
	done
	touch enough
	wait $!
	seen
	[ "$(most main.count)" -eq 1000 ]
	[ "$(most unread)" -eq 0 ]
}
