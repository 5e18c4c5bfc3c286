#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# check.sh STRAIN HOST...: what doctor finds on a captured machine must be what HOST/expected says.
# check.sh --update STRAIN HOST...: writes it instead; look at the difference before committing.
set -eu

here=$(dirname "$0")
# shellcheck source=tests/expected.sh
. "$here/../expected.sh"

# One line a metric, in an order that no file system decides; without what a captured machine cannot
# have: GPUs, and the cost of this reading.
metrics() { # ROOT
	"$strain" doctor --sysroot "$1" --metrics |
		tail -n +2 | grep -v -e '^nvml ' -e ' recorder ' | tr -s ' ' | LC_ALL=C sort
}

for host in "$@"; do
	found=$(
		"$strain" doctor --sysroot "$host/root"
		echo
		metrics "$host/root"
	)
	compare "$found" "$host/expected" "$host"
done
exit "$status"
