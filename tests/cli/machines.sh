#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
#
# Machines of a cluster, as network namespaces with an address and a host name of their own, joined by a bridge. Needs root.
#
#   machines.sh up NAME N             makes NAME0 to NAME(N-1): eth0 is 10.77.0.1 to 10.77.0.N
#   machines.sh slow NAME I RATE      what machine I sends goes at RATE (10mbit); NAME I none: at full speed again
#   machines.sh far NAME I SECONDS    each packet from or to machine I takes so much longer
#   machines.sh exec NAME I COMMAND   runs a command on it
#   machines.sh down NAME
set -eu
what=$1 name=$2
case $what in
up)
	i=0
	ip netns add "$name"
	ip netns exec "$name" ip link add bridge type bridge
	ip netns exec "$name" ip link set bridge up
	while [ "$i" -lt "$3" ]; do
		ip netns add "$name$i"
		ip netns exec "$name$i" ip link add eth0 type veth peer name "port$i" netns "$name"
		ip netns exec "$name" ip link set "port$i" master bridge up
		ip netns exec "$name$i" ip address add "10.77.0.$((i + 1))/24" dev eth0
		ip netns exec "$name$i" ip link set eth0 up
		ip netns exec "$name$i" ip link set lo up
		i=$((i + 1))
	done
	;;
slow)
	ip netns exec "$name$3" tc qdisc del dev eth0 root 2>/dev/null || true
	if [ "$4" != none ]; then
		ip netns exec "$name$3" tc qdisc add dev eth0 root tbf rate "$4" burst 64k latency 100ms
	fi
	;;
far)
	here=$(dirname "$0")
	for machine in $(ip netns list | sed -n "s/^\(${name}[0-9][0-9]*\)\( .*\)\{0,1\}$/\1/p"); do
		nsenter --net="/run/netns/$machine" "$here/delay.py" --whole eth0
	done
	ip netns exec "$name" ip link set "port$3" nomaster
	ip netns exec "$name" ip link add "near$3" type veth peer name "far$3"
	ip netns exec "$name" ip link set "near$3" master bridge up
	ip netns exec "$name" ip link set "far$3" up
	nsenter --net="/run/netns/$name" "$here/delay.py" "port$3" "far$3" "$4" </dev/null >/dev/null 2>&1 3>&- &
	;;
exec)
	machine=$name$3
	shift 3
	# Not ip netns exec, which hides the cgroups: it mounts a /sys of its own.
	# shellcheck disable=SC2016 # the inner shell expands these
	exec nsenter --net="/run/netns/$machine" unshare --uts sh -c 'hostname "$1"; shift; exec "$@"' sh "$machine" "$@"
	;;
down)
	for process in $(ip netns pids "$name" 2>/dev/null); do
		kill "$process" # the delay
	done
	for machine in $(ip netns list | sed -n "s/^\(${name}[0-9]*\)\( .*\)\{0,1\}$/\1/p"); do
		ip netns del "$machine"
	done
	;;
*)
	echo "machines.sh: expected up, slow, far, exec or down, found '$what'" >&2
	exit 2
	;;
esac
