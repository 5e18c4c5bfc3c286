#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# strain run --cpus --memory --disk-read --gpus: limits that the job has, and nobody else.

load run_helpers

setup() {
	export STRAIN_DIR="$BATS_TEST_TMPDIR/runs"
	mkdir "$STRAIN_DIR"
	cd "$BATS_TEST_TMPDIR" || return 1
	JOB="$BUILD_ROOT/tests/tools/misbehave"
	unset CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER HIP_VISIBLE_DEVICES
	made=()
	outside=
	find_scope
}

# systemd hands the controllers of cgroup v2 to a scope that is strain's own.
find_scope() {
	local whose=()
	scope=()
	[ -e /sys/fs/cgroup/cgroup.controllers ] && command -v systemd-run >/dev/null || return 0
	[ "$(id -u)" = 0 ] || whose=(--user)
	whose=(systemd-run "${whose[@]}" --quiet --scope -p Delegate=yes)
	"${whose[@]}" true 2>/dev/null || return 0
	scope=("${whose[@]}")
}

teardown() {
	local directory
	for directory in "${made[@]}"; do
		rmdir "$directory" 2>/dev/null || true
	done
	if [ -n "$outside" ]; then
		cd / && rm -rf "$outside"
	fi
}

key() {
	"$STRAIN" sql --csv run.strain "SELECT value FROM run WHERE key = '$1'" | sed -n 2p
}

ask() {
	"$STRAIN" sql --csv run.strain "$1" | sed -n 2p
}

record() {
	rm -f run.strain
	"${scope[@]}" "$STRAIN" run -o run.strain "$@"
}

# Skips where no cgroup of a controller can be made for a job: OPTION VALUE.
needs() {
	record "$@" true 2>refusal || skip "$(cat refusal)"
}

# Where this shell is in the v1 hierarchy of a controller.
own_cgroup() { # CONTROLLER
	local mount name
	mount=$(awk -v c="$1" '{ for (i = 7; $i != "-"; i++); if ($(i + 1) == "cgroup" && index("," $(i + 3) ",", "," c ",")) m = $5 }
		END { print m }' /proc/self/mountinfo)
	name=$(awk -F: -v c="$1" 'index("," $2 ",", "," c ",") { print $3 }' /proc/self/cgroup)
	[ -n "$mount" ] && [ -n "$name" ] && echo "$mount${name%/}"
}

@test "a job that needs more memory than its limit is killed; the run and the verdict say it" {
	needs --memory 64MiB
	run -137 --separate-stderr record --memory 64MiB "$JOB" eat 500
	[[ "$(key limit_memory)" == "67108864 (cgroup v"?" memory"* ]]
	notes memory "64 MiB"
	[[ "$stderr" == *$'\n        '*--memory* ]] # what to change
	[ "$(json 'd["run"]["outcome"], d["verdict"]["bottleneck"]' "$STRAIN" show run.strain)" = "('out_of_memory', 'failed')" ]
	[[ "$(ask "SELECT text FROM event WHERE kind = 'oom_kill'")" == *" 1 "*" 64 MiB"*" /"*"/strain-"* ]]
	[ "$(ask "SELECT json_extract(value, '\$.cgroup_memory_bytes') FROM run WHERE key = 'limits'")" = 67108864 ]
	run -0 "$STRAIN" show run.strain
	[[ "$output" == *$'\nLimits    64 MiB '*"cgroup v"* ]]
	prints memory "64 MiB"
	[ "$(json 'd["job"]["memory_limit_bytes"]' "$STRAIN" show run.strain)" = 67108864 ]
}

@test "within its limit the job runs, with children, threads and a run inside the run" {
	needs --memory 256MiB
	run -0 record --memory 256MiB "$JOB" eat 20
	run -0 record --memory 256MiB "$STRAIN" run -o inner.strain --memory 128MiB "$JOB" eat 20
	run -125 --separate-stderr record --memory 128MiB "$STRAIN" run -o inner.strain --memory 256MiB true
	notes --memory "128 MiB" "256 MiB" 268435456
}

@test "the CPUs that the job has, of threads and children too; strain has the others" {
	allowed=$(nproc)
	run -0 record --cpus 1 sh -c 'nproc; (sh -c nproc); sed -n "s/^Cpus_allowed_list:\t//p" "/proc/$PPID/status"'
	[ "${lines[0]}" = 1 ]
	[ "${lines[1]}" = 1 ]
	[ "${lines[2]}" = "$(sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status)" ]
	[[ "$(key limit_cpus)" == "1 ("*")" ]]
	[ "$(ask "SELECT json_extract(value, '\$.cpu_count') FROM run WHERE key = 'limits'")" = 1 ]
	run -0 "$STRAIN" show run.strain
	[[ "$output" == *$'\nLimits    1 CPU'* ]]
	fails_with 125 --cpus $allowed $((allowed + 1)) -- record --cpus $((allowed + 1)) touch ran
	[ ! -e ran ]
	[ ! -e run.strain ]
}

@test "a list of CPUs, and CPUs of those that are left" {
	one=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
	run -0 record --cpus "$one," sh -c 'sed -n "s/^Cpus_allowed_list:\t//p" /proc/self/status'
	[ "${lines[0]}" = "$one" ]
	run -0 taskset -c "$one" "$STRAIN" run -o one.strain --cpus 1 nproc
	[ "${lines[0]}" = 1 ]
	fails_with 125 --cpus 1 "($one)" 2 -- taskset -c "$one" "$STRAIN" run -o two.strain --cpus 2 true
	fails_with 125 --cpus "($one)" 8191 -- taskset -c "$one" "$STRAIN" run -o two.strain --cpus "$one,8191" true
}

@test "in a scope of v2 that others are in too CPUs are limited, memory is not, and both say so" {
	[ "${#scope[@]}" -gt 0 ] || skip "no systemd that hands down cgroup v2"
	run -0 "${scope[@]}" sh -c '"$0" run -o run.strain --cpus 1 nproc; echo "ended: $?"' "$STRAIN"
	[ "${lines[0]}" = 1 ]
	[[ "$output" == *"ended: 0" ]]
	run -0 --separate-stderr "${scope[@]}" sh -c '"$0" run -o memory.strain --memory 64MiB true; echo "ended: $?"' "$STRAIN"
	[ "$output" = "ended: 125" ]
	notes --memory memory systemd-run
}

@test "without a cgroup CPUs are limited all the same, memory is not and says so" {
	one=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
	run -0 record --no-cgroup --cpus "$one-$one" nproc
	[ "${lines[0]}" = 1 ]
	[ "$(key limit_cpus)" = "1 (affinity $one)" ]
	for option in '--memory 64MiB' '--disk-read 10MB/s'; do
		# shellcheck disable=SC2086
		fails_with 125 "${option%% *}" --no-cgroup -- record --no-cgroup $option touch ran
	done
	[ ! -e ran ]
}

@test "an ordinary user: CPUs and GPUs; a cgroup that cannot be made is named with what would allow it" {
	command -v setpriv >/dev/null || skip "setpriv is not installed"
	as_nobody=()
	outside=$(mktemp -d)
	cd "$outside"
	if [ "$(id -u)" = 0 ]; then
		chmod 777 .
		as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	fi
	"${as_nobody[@]}" test -x "$STRAIN" && "${as_nobody[@]}" touch probe 2>/dev/null ||
		skip "another user cannot reach the build or the test's folder"
	run -0 "${as_nobody[@]}" "$STRAIN" run -o a.strain --cpus 1 --gpus 0 sh -c 'echo "$(nproc) $CUDA_VISIBLE_DEVICES"'
	[ "${lines[0]}" = "1 -1" ]
	run --separate-stderr "${as_nobody[@]}" "$STRAIN" run -o b.strain --memory 64MiB touch ran
	if [ "$status" = 0 ]; then
		skip "even so a cgroup can be made here"
	fi
	[ "$status" = 125 ]
	[ "${#stderr_lines[@]}" = 1 ]
	[[ "$stderr" == "strain: --memory: "*"; "*"cgroup"* ]]
	[ ! -e ran ]
}

@test "reads from the disk are as slow as asked for" {
	needs --disk-read 4MB/s
	head -c 8000000 /dev/urandom >data
	sync data
	dd if=data of=/dev/null bs=1M iflag=direct 2>/dev/null || skip "no direct reads here"
	run -0 record --disk-read 4MB/s dd if=data of=/dev/null bs=64K iflag=direct
	[[ "$(key limit_disk_read)" == "4000000 (cgroup v"* ]]
	read -r bytes rate < <("$STRAIN" sql --csv run.strain \
		"SELECT cast(value AS INTEGER) || ' ' || cast(value / ((SELECT value FROM run WHERE key = 'end_ns') / 1e9) AS INTEGER)
			FROM summary_by_name WHERE entity_kind = 'job' AND metric = 'process.disk.io.read' AND aggregate = 'total' AND epoch IS NULL" |
		sed -n 2p | tr -d '"')
	[ "${bytes:-0}" -ge 8000000 ] || skip "what is read here comes from no disk of this machine"
	[ "$rate" -le 6000000 ]
	run -0 "$STRAIN" show run.strain
	[[ "$output" == *$'\nLimits    4.0 MB/s '*"cgroup v"* ]]
	[[ "$output" != *storage-bound* || "$output" == *"or raise --disk-read"* ]]
	run -0 record --disk-read unlimited true
	[ "$(key limit_disk_read)" = unlimited ]
}

@test "GPUs that the job may see, of those that strain sees" {
	script=$BATS_TEST_TMPDIR/script
	cp "$SOURCE_ROOT/tests/fake/training.script" "$script"
	export STRAIN_FAKE_NVML=$script
	fake() {
		rm -f run.strain
		LD_LIBRARY_PATH=$BUILD_ROOT/tests/fake/full "$STRAIN" run -o run.strain "$@" sh -c 'echo "<$CUDA_VISIBLE_DEVICES>"; echo "order $CUDA_DEVICE_ORDER"'
	}
	run -0 fake --gpus 1
	[ "${lines[0]}" = '<0>' ]
	[ "${lines[1]}" = 'order PCI_BUS_ID' ] # the driver's numbers
	[ "$(key limit_gpus)" = '1 (CUDA_VISIBLE_DEVICES=0)' ]
	run -0 fake --gpus 2
	[ "${lines[0]}" = '<0,1>' ]
	run -0 fake --gpus 1,
	[ "${lines[0]}" = '<1>' ]
	run -0 fake --gpus GPU-0000fa4e
	[ "${lines[0]}" = '<GPU-0000fa4e>' ]
	run -0 fake --gpus 0
	[ "${lines[0]}" = '<-1>' ]
	fails_with 125 --gpus 2 3 -- fake --gpus 3
	export CUDA_VISIBLE_DEVICES=1
	run -0 fake --gpus 1
	[ "${lines[0]}" = '<1>' ]
	[ "${lines[1]}" = 'order ' ]
	fails_with 125 --gpus CUDA_VISIBLE_DEVICES=1 2 -- fake --gpus 2
	fails_with 125 --gpus 1 -- fake --gpus 1,
}

@test "GPUs where nobody can tell how many there are" {
	[ ! -e /sys/class/kfd ] || skip "this machine has AMD's driver"
	if ldconfig -p | grep -q libnvidia-ml.so.1; then
		skip "this machine has NVIDIA's driver"
	fi
	fails_with 125 --gpus libnvidia-ml.so.1 -- record --gpus 1 touch ran
	[ ! -e ran ]
	run -0 record --gpus 0 sh -c 'echo "$CUDA_VISIBLE_DEVICES $HIP_VISIBLE_DEVICES $ROCR_VISIBLE_DEVICES"'
	[ "${lines[0]}" = '-1 -1 -1' ]
	run -0 "$STRAIN" show run.strain
	[[ "$output" == *$'\nLimits    '*"CUDA_VISIBLE_DEVICES=-1"* ]]
}

@test "nonsense is refused in one line" {
	for option in '--cpus 0' '--cpus x' '--cpus=-1' '--memory 1000' '--memory=-1GiB' '--memory 99999999TiB' \
		'--disk-read 5' '--disk-read 1B/s' '--gpus=-1' '--gpus 1,1' '--gpus' '--cpus'; do
		# shellcheck disable=SC2086
		fails_with 125 "${option%%[ =]*}" -- "$STRAIN" run $option
	done
	fails_with 125 --memory "strain run --help" -- "$STRAIN" run --pid $$ --memory 1GiB
}

@test "nothing of the limits' cgroups is left, also of a launcher that was killed" {
	cpuset=$(own_cgroup cpuset) && [ -w "$cpuset" ] && [ "$(id -u)" = 0 ] || skip "no cgroup v1 cpuset that can be written"
	"$STRAIN" run -o run.strain --cpus 1 --memory 1GiB true &
	launcher=$!
	wait "$launcher"
	[ -z "$(find /sys/fs/cgroup -name "strain-$launcher")" ]
	# That launcher is gone: as if it had been killed, some time ago.
	mkdir "$cpuset/strain-$launcher"
	made+=("$cpuset/strain-$launcher")
	touch -d '1 minute ago' "$cpuset/strain-$launcher"
	run -0 "$STRAIN" run -o again.strain true
	[ ! -e "$cpuset/strain-$launcher" ]
}

@test "a launcher that is killed: the limits hold, and are gone with the job" {
	needs --cpus 1 --memory 1GiB
	knows_job() {
		[ "$(ask "SELECT count(*) FROM entity WHERE kind = 'process'" 2>/dev/null)" -ge 1 ]
	}
	no_cgroups() {
		[ -z "$(find /sys/fs/cgroup -name "strain-$launcher" 2>/dev/null)" ]
	}
	mkfifo go
	rm -f run.strain
	"${scope[@]}" "$STRAIN" run -o run.strain --cpus 1 --memory 1GiB sh -c 'read -r line <go; nproc >cpus' &
	launcher=$!
	eventually knows_job
	kill -KILL "$launcher"
	wait "$launcher" || true
	timeout 60 sh -c 'echo >go'
	eventually test -s cpus
	[ "$(cat cpus)" = 1 ]
	eventually no_cgroups
}

@test "doctor says which limits can be set here, and why not the others" {
	run -0 "$STRAIN" doctor
	for name in cpus memory 'disk read' gpus; do
		[[ $'\n'"$output" =~ $'\n'"limit $name"\ +(available|partly|missing)\  ]]
	done
}
