#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Runs tests of a build folder: tools/run_suites.sh FOLDER LOG MESON-OPTION...
# Leaves FOLDER/meson-logs/LOG.json and, where tests had to run again, LOG-again.json, both for
# tools/summarize.py, which judges: the status here is 0.
#
# Tests run beside each other on machines that others use, too. What fails there runs once more by
# itself, and is named if it passes then. Where more than a few fail it is no matter of chance.

set -eu
folder=$1 log=$2
shift 2
few=12
logs=$folder/meson-logs
newline='
'

rm -f "$logs/$log.json" "$logs/$log-again.json"
# Time limits end what hangs; a slow machine may take its time. Most tests wait more than they compute:
# one more than there are CPUs, if the caller does not know better.
run() {
	MESON_TESTTHREADS=${MESON_TESTTHREADS:-$(($(nproc) + 1))} \
		meson test -C "$folder" --no-rebuild --timeout-multiplier 3 --logbase "$@" || true
}

run "$log" "$@"
[ -s "$logs/$log.json" ] || exit 0
failed=$("$(dirname "$0")/summarize.py" --names-of-failed "$logs/$log.json")
[ -n "$failed" ] || exit 0
IFS=$newline
set -f
# shellcheck disable=SC2086 # a name a line
set -- $failed
if [ $# -le $few ]; then
	run "$log-again" --num-processes 1 "$@"
fi
