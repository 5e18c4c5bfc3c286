#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Captures what strain reads of this machine into DIR/root, so that `strain doctor --sysroot
# DIR/root` sees it elsewhere. SELF becomes /proc/self of the captured machine; give the launcher of
# a run, and then the job's processes. Nothing of the processes' contents is taken, but names of
# cgroups, disks and interfaces are: look through the tree before giving it away.
set -eu

if [ $# -lt 2 ]; then
	echo "usage: capture.sh DIR SELF [PID]..." >&2
	exit 2
fi
root=$1/root
self=$2
shift

take() { # PATH, without its leading slash
	if [ -r "/$1" ] && [ -f "/$1" ]; then
		mkdir -p "$root/$(dirname "$1")"
		cat "/$1" >"$root/$1" 2>/dev/null || rm -f "$root/$1"
	fi
}

for file in stat meminfo vmstat loadavg diskstats net/dev pressure/cpu pressure/memory \
	pressure/io sys/kernel/osrelease sys/kernel/task_delayacct; do
	take "proc/$file"
done
sed -n 1,27p /proc/cpuinfo >"$root/proc/cpuinfo"
mkdir -p "$root/proc/sys/kernel"
echo captured >"$root/proc/sys/kernel/hostname"
take sys/devices/system/cpu/online
take sys/devices/system/node/online

for pid in "$@"; do
	for file in stat statm status io schedstat smaps_rollup cgroup; do
		take "proc/$pid/$file"
	done
done
grep -E ' - cgroup2? ' "/proc/$self/mountinfo" >"$root/proc/$self/mountinfo"
ln -sfn "$self" "$root/proc/self"

for disk in /sys/block/*; do
	name=$(basename "$disk")
	case $name in
	loop* | ram* | zram*) continue ;;
	esac
	for file in size queue/rotational queue/scheduler device/model; do
		take "sys/block/$name/$file"
	done
	for slave in "$disk"/slaves/*; do
		if [ -e "$slave" ]; then
			take "sys/block/$name/slaves/$(basename "$slave")/size"
		fi
	done
done
for interface in /sys/class/net/*; do
	for file in speed mtu operstate device/vendor; do
		take "sys/class/net/$(basename "$interface")/$file"
	done
done

take_cgroup() { # DIRECTORY, without its leading slash
	for file in cgroup.controllers cpu.stat cpu.max cpu.cfs_quota_us cpu.cfs_period_us \
		cpuacct.usage cpuacct.stat memory.stat memory.current memory.max memory.events \
		memory.swap.current memory.usage_in_bytes memory.limit_in_bytes memory.failcnt \
		memory.oom_control memory.kmem.usage_in_bytes io.stat cpu.pressure \
		memory.pressure io.pressure; do
		take "$1/$file"
	done
}

# The cgroups of the processes, and those above them up to where they are mounted.
cut -d' ' -f5 "$root/proc/$self/mountinfo" | while read -r mounted; do
	for pid in "$@"; do
		cut -d: -f3 "/proc/$pid/cgroup"
	done | sort -u | while read -r name; do
		name=${name%/}
		while :; do
			if [ -d "$mounted$name" ]; then
				take_cgroup "${mounted#/}$name"
			fi
			if [ -z "$name" ]; then
				break
			fi
			name=${name%/*}
		done
	done
done
