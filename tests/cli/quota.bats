#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# CPU quotas that root sets in cgroups of the test's own: around strain, and of a cgroup into which
# the job goes after its start. Captured machines: tests/hosts; levels: test_cpu_quota.

bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR"
	made=
	[ "$(id -u)" = 0 ] || skip 'needs root, to make a cgroup with a quota'
	local name mount
	name=$(awk -F: 'index("," $2 ",", ",cpu,") { print $3 }' /proc/self/cgroup)
	mount=$(awk '{ for (i = 7; $i != "-"; i++); if ($(i + 1) == "cgroup" && index("," $(i + 3) ",", ",cpu,")) print $5 }' \
		/proc/self/mountinfo | tail -1)
	[ -n "$mount" ] || skip 'the cpu controller is not mounted as v1'
	made=$mount${name%/}/strain-test-$$
	mkdir "$made" 2>/dev/null || { made=; skip 'no cgroup can be made here'; }
}

teardown() {
	[ -n "$made" ] || return 0
	local tries
	for ((tries = 0; tries < 600; tries++)); do
		rmdir "$made" 2>/dev/null && return 0
		sleep 0.05
	done
	return 1
}

# A quota of so many us in each 100 ms.
set_quota() {
	echo 100000 >"$made/cpu.cfs_period_us"
	echo "$1" 2>/dev/null >"$made/cpu.cfs_quota_us" || skip 'the kernel takes no quota here'
}

ask() {
	"$STRAIN" sql --csv run.strain "$1" | sed -n 2p
}

# Of a metric of the job's cgroup: an aggregate of its values.
of() {
	ask "SELECT $1(value) FROM samples WHERE metric = 'strain.cgroup.cpu.$2'"
}

@test "a quota of a cgroup that the job goes into is the job's own" {
	set_quota 10000
	# 0.2 s of CPU time take at least 1.9 s, a look comes after 0.2 s.
	"$STRAIN" run -o run.strain -- sh -c 'echo $$ >"$1/cgroup.procs" &&
exec python3 -S -c "import time
while time.process_time() < 0.2: pass"' sh "$made" 2>err
	[ "$(of max limit)" = 0.1 ]
	[ "$(of max limit.inside)" = 1 ]
	[ "$(of max periods.throttled)" -ge 1 ]
	[ "$(of max periods)" -ge "$(of max periods.throttled)" ]
	[[ "$(ask "SELECT text FROM event WHERE kind = 'cpu_quota'")" == \
		*"0.1 CPUs, set inside the job by cgroup $made"* ]]
	[ "$("$STRAIN" show --json run.strain | python3 -c 'import json, sys
print(json.load(sys.stdin)["job"]["cpus"])')" = 0.1 ]
}

@test "a quota around strain" {
	set_quota 50000
	sh -c 'echo $$ >"$1/cgroup.procs" && exec "$2" run -o run.strain -- python3 -S -c "import time
while time.process_time() < 0.3: pass"' sh "$made" "$STRAIN" 2>err
	[ "$(of max limit)" = 0.5 ]
	[ "$(of max limit.inside)" = 0 ]
	[ "$(of count periods)" -ge 1 ]
	[[ "$(ask "SELECT text FROM event WHERE kind = 'cpu_quota'")" == \
		*"0.5 CPUs, set around strain by cgroup $made"* ]]
}
