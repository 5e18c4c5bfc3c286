#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# check.sh STRAIN HOST...: what doctor finds on a captured machine must be what HOST/expected says.
# check.sh --update STRAIN HOST...: writes it instead; look at the difference before committing.
set -eu

update=
if [ "${1-}" = --update ]; then
	update=yes
	shift
fi
if [ $# -lt 2 ]; then
	echo "usage: check.sh [--update] STRAIN HOST..." >&2
	exit 2
fi
strain=$1
shift

# One line a metric, in an order that no file system decides; without what a captured machine cannot
# have: GPUs, and the cost of this reading.
metrics() { # ROOT
	"$strain" doctor --sysroot "$1" --metrics |
		tail -n +2 | grep -v -e '^nvml ' -e ' recorder ' | tr -s ' ' | LC_ALL=C sort
}

status=0
for host in "$@"; do
	found=$(
		"$strain" doctor --sysroot "$host/root"
		echo
		metrics "$host/root"
	)
	if [ -n "$update" ]; then
		printf '%s\n' "$found" >"$host/expected"
	elif ! printf '%s\n' "$found" | diff -u "$host/expected" -; then
		echo "$host: not as expected; if it should be so, check.sh --update" >&2
		status=1
	fi
done
exit $status
