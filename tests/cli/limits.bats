#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# A job inside a container with limits: bubblewrap in a cgroup (v1) that the test makes and limits.

load messages

MEMORY_LIMIT=419430400 # "400 MiB"; enough for a recorder with sanitizers

setup() {
	cd "$BATS_TEST_TMPDIR"
	JOB="$BUILD_ROOT/tests/tools/misbehave"
	made=()
	[ "$(id -u)" = 0 ] || skip "needs root, to make a cgroup with a limit"
	command -v bwrap >/dev/null || skip "bubblewrap is not installed"
	bwrap --dev-bind / / --unshare-pid --proc /proc true 2>/dev/null ||
		skip "bubblewrap may not make namespaces here"
}

teardown() {
	local directory
	for directory in "${made[@]}"; do
		eventually rmdir "$directory"
	done
}

eventually() {
	local tries
	for ((tries = 0; tries < 1200; tries++)); do
		if "$@" 2>/dev/null; then
			return 0
		fi
		sleep 0.05
	done
	echo "never succeeded: $*"
	return 1
}

ask() {
	"$STRAIN" sql --csv run.strain "$1" | sed -n 2p
}

# Where this shell is in the v1 hierarchy of a controller.
own_cgroup() { # CONTROLLER
	local mount name
	mount=$(awk -v c="$1" '{ for (i = 7; $i != "-"; i++); if ($(i + 1) == "cgroup" && index("," $(i + 3) ",", "," c ",")) m = $5 }
		END { print m }' /proc/self/mountinfo)
	name=$(awk -F: -v c="$1" 'index("," $2 ",", "," c ",") { print $3 }' /proc/self/cgroup)
	[ -n "$mount" ] && [ -n "$name" ] && echo "$mount${name%/}"
}

# Makes a cgroup of the controller with a limit; $cgroup is its directory.
limited() { # CONTROLLER FILE VALUE
	local own
	own=$(own_cgroup "$1") || skip "no cgroup v1 with the controller $1 here"
	cgroup="$own/test-of-strain-$$-$BATS_TEST_NUMBER"
	mkdir "$cgroup" 2>/dev/null || skip "no cgroup can be made in $own"
	made+=("$cgroup")
	echo "$3" >"$cgroup/$2" || skip "$2 cannot be set here"
}

# A command in all cgroups that the test made.
inside() {
	sh -c 'while [ "$1" != -- ]; do echo $$ >"$1/cgroup.procs" || exit 99; shift; done; shift; exec "$@"' \
		sh "${made[@]}" -- "$@"
}

# A command with nothing but cgroup v2 mounted, in a cgroup of its own: $cgroup.
only_v2() {
	inside unshare -m sh -c 'mount --make-rprivate / &&
		for mount in $(awk "/ - cgroup /{ print \$5 }" /proc/self/mountinfo); do umount "$mount"; done; exec "$@"' \
		sh "$@"
}

# Makes a cgroup v2; $cgroup is its directory.
unlimited_v2() {
	local mount name
	mount=$(awk '/ - cgroup2 / { print $5; exit }' /proc/self/mountinfo)
	name=$(sed -n 's/^0:://p' /proc/self/cgroup)
	[ -n "$mount" ] && [ -n "$name" ] || skip "no cgroup v2 here"
	cgroup="$mount${name%/}/test-of-strain-$$-$BATS_TEST_NUMBER"
	mkdir "$cgroup" 2>/dev/null || skip "no cgroup can be made in $mount${name%/}"
	made+=("$cgroup")
	only_v2 true 2>/dev/null || skip "cgroup v2 cannot be had alone here"
}

# In a container: options of bwrap up to --, then strain run's.
in_container() {
	local options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	rm -f run.strain
	inside bwrap --dev-bind / / --unshare-pid --proc /proc "${options[@]}" \
		"$STRAIN" run -o run.strain "$@"
}

@test "killed at the limit of its container: the verdict, the event, the status" {
	limited memory memory.limit_in_bytes $MEMORY_LIMIT
	run -137 --separate-stderr in_container -- "$JOB" eat 2000
	echo "$stderr"
	[ -z "$output" ]
	notes memory "400 MiB"
	[ "$(ask "SELECT value FROM run WHERE key = 'status'")" = 9 ]
	[ "$(ask "SELECT json_extract(value, '\$.cgroup_memory_bytes') FROM run WHERE key = 'limits'")" = $MEMORY_LIMIT ]
	[ "$(ask "SELECT cast(max(value) AS INTEGER) FROM samples WHERE metric = 'strain.cgroup.memory.limit'")" = $MEMORY_LIMIT ]
	[ "$(ask "SELECT count(*) FROM event WHERE kind = 'recorder_died'")" = 0 ]
	line_names "$(ask "SELECT text FROM event WHERE kind = 'oom_kill'")" 1 "400 MiB" "$cgroup"
	run -0 "$STRAIN" show run.strain
	[[ "${lines[0]}" == *"SIGKILL"* ]]
	[[ "$output" == *$'\nVerdict   '*"400 MiB"* ]]
	prints memory "400 MiB"
	[ "$(json 'd["run"]["outcome"], d["verdict"]["bottleneck"], d["verdict"]["confidence"], d["verdict"]["next"] != ""' \
		"$STRAIN" show run.strain)" = "('out_of_memory', 'failed', 'high', True)" ]
	"$STRAIN" report run.strain -o page.html 2>err || grep -q 'built without HTML pages' err
	if [ -e page.html ]; then
		grep -q "\"label\":\"job's limit\",\"value\":$MEMORY_LIMIT" page.html
	fi
}

@test "a process of the job killed at the limit: the job goes on, the verdict says it" {
	limited memory memory.limit_in_bytes $MEMORY_LIMIT
	run -3 --separate-stderr in_container -- sh -c "$JOB eat 2000; exit 3"
	notes memory "400 MiB"
	[ "$(json 'd["run"]["outcome"]' "$STRAIN" show run.strain)" = out_of_memory ]
	[ "$(ask "SELECT count(*) FROM event WHERE kind = 'oom_kill'")" = 1 ]
}

@test "killed at the limit where no cgroup of the job's own can be made" {
	limited memory memory.limit_in_bytes $MEMORY_LIMIT
	run -137 --separate-stderr in_container --ro-bind /sys/fs/cgroup /sys/fs/cgroup -- "$JOB" eat 2000
	notes memory "400 MiB"
	[ "$(ask "SELECT count(*) FROM event WHERE kind = 'oom_kill_nearby'")" = 1 ]
	[[ "$(ask "SELECT value FROM run WHERE key = 'cgroup_missing'")" == *"Read-only file system"* ]]
}

@test "many small processes at the limit: the recorder lives, or it is said that it does not" {
	limited memory memory.limit_in_bytes $MEMORY_LIMIT
	local eaters=''
	for ((i = 0; i < 12; i++)); do
		eaters+="$JOB eat 80 & "
	done
	run -5 --separate-stderr in_container -- sh -c "$eaters wait; exit 5"
	[ "$(ask "SELECT value FROM run WHERE key = 'state'")" = finished ]
	[ "$(ask "SELECT value FROM run WHERE key = 'status'")" = $((5 << 8)) ]
	[ "$(ask "SELECT count(*) FROM event WHERE kind IN ('recorder_died', 'oom_kill')")" -ge 1 ]
	[[ "$stderr" == *memory* || "$stderr" == *recorder* ]]
}

@test "processes that fill the memory are killed before the recorder, also where each has a part of it" {
	[ "$(awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo)" -ge 4096 ] ||
		skip "needs 4 GiB of free memory"
	limited memory memory.limit_in_bytes 1073741824
	local eaters=''
	for ((i = 0; i < 4; i++)); do
		eaters+="$JOB eat 300 & "
	done
	run -5 --separate-stderr in_container -- sh -c "$eaters wait; exit 5"
	[ "$(ask "SELECT value FROM run WHERE key = 'status'")" = $((5 << 8)) ]
	[ "$(ask "SELECT count(*) FROM event WHERE kind = 'recorder_died'")" = 0 ]
	[ "$(ask "SELECT count(*) FROM event WHERE kind = 'oom_kill'")" -ge 1 ]
}

@test "the job stays under its limit, whatever of the cgroups the container shows" {
	limited memory memory.limit_in_bytes $MEMORY_LIMIT
	bwrap --dev-bind / / --unshare-cgroup true || skip "no cgroup namespaces here"
	# The mounts are those of the host: what they show is not the container's.
	run -137 in_container --unshare-cgroup -- "$JOB" eat 2000
	[[ "$(ask "SELECT reason FROM missing m JOIN metric x ON x.id = m.metric WHERE x.name = 'strain.cgroup.memory.limit'")" == \
		*container* ]]
	run -137 in_container --tmpfs /sys/fs/cgroup -- "$JOB" eat 2000
	# Its own, mounted on top.
	run -137 --separate-stderr in_container --unshare-cgroup --tmpfs /sys/fs/cgroup \
		--bind "$cgroup" /sys/fs/cgroup/memory -- "$JOB" eat 2000
	notes memory "400 MiB"
	line_names "$(ask "SELECT text FROM event WHERE kind = 'oom_kill'")" /sys/fs/cgroup/memory
}

@test "throttled by its CPU quota: measured, and the verdict says it" {
	limited cpu cpu.cfs_quota_us 20000
	[ "$(cat "$cgroup/cpu.cfs_period_us")" = 100000 ] || skip "another period than the usual"
	run -0 --separate-stderr in_container -- "$JOB" burn 300
	notes "CPU quota" "0.2 CPUs" %
	[ "$(json 'd["verdict"]["bottleneck"]' "$STRAIN" show run.strain)" = cpu-quota ]
	[ "$(ask "SELECT json_extract(value, '\$.cgroup_cpus') FROM run WHERE key = 'limits'")" = 0.2 ]
	[ "$(ask "SELECT max(value) FROM samples WHERE metric = 'strain.cgroup.cpu.limit'")" = 0.2 ]
	[ "$(ask "SELECT max(value) - min(value) > 0.5 FROM samples WHERE metric = 'strain.cgroup.cpu.throttled_time'")" = 1 ]
	run -0 "$STRAIN" show run.strain
	[[ "$output" =~ "CPU quota "[^$'\n']*" % "[^$'\n']*CPU-seconds ]]
}

@test "cgroup v2: the job has a cgroup of its own, and nothing of it is left" {
	unlimited_v2
	run -0 --separate-stderr only_v2 "$STRAIN" run -o run.strain sh -c 'cat /proc/self/cgroup; sleep 0.3'
	[[ "$output" == *"$(basename "$cgroup")/strain-"* ]]
	[ "$(ask "SELECT value FROM run WHERE key = 'cpu_time_source'")" = "cgroup v2" ]
	[ "$(ask "SELECT max(value) > 0 FROM samples WHERE metric = 'strain.cgroup.cpu.time'")" = 1 ]
	[ "$(find "$cgroup" -mindepth 1 -type d)" = '' ]
}

@test "cgroup v2 where none can be made for the job: it runs where it is, and why is said" {
	unlimited_v2
	local refused="SELECT value FROM run WHERE key = 'cgroup_missing'"
	# In a threaded domain a new child takes no processes in (EOPNOTSUPP).
	mkdir "$cgroup/thread"
	made=("$cgroup/thread" "$cgroup")
	echo threaded >"$cgroup/thread/cgroup.type" || skip "no threaded cgroups here"
	run -0 --separate-stderr only_v2 "$STRAIN" run -o run.strain sh -c 'cat /proc/self/cgroup; exit 0'
	[[ "$output" == *"/$(basename "$cgroup")"* && "$output" != */strain-* ]]
	[[ "$(ask "$refused")" == *threaded* ]]
	[ "$(ask "SELECT value FROM run WHERE key = 'cpu_time_source'")" = processes ]
	# Within one processes cannot even be told from threads.
	rm run.strain
	made=("$cgroup/thread")
	run -0 --separate-stderr only_v2 "$STRAIN" run -o run.strain true
	[[ "$(ask "$refused")" == *threaded* ]]
	made=("$cgroup/thread" "$cgroup")
	[ "$(find "$cgroup" -name 'strain-*')" = '' ]
	# And one that may not be written.
	rm run.strain
	rmdir "$cgroup/thread"
	made=("$cgroup")
	run -0 --separate-stderr only_v2 bwrap --dev-bind / / --ro-bind /sys/fs/cgroup /sys/fs/cgroup \
		"$STRAIN" run -o run.strain true
	[[ "$(ask "$refused")" == *"Read-only file system; "*cgroup* ]]
}
