#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# From nothing to a report: installs what is missing, builds, trains a small convolutional network
# for about a minute under `strain run`, shows what that said, writes report.html.

set -eu
cd "$(dirname "$0")/.."
export BUILD="${BUILD:-build}"
say() {
	printf '\n\033[1m%s\033[0m\n' "$*"
}
if [ ! -t 1 ] || [ -n "${NO_COLOR:-}" ]; then
	say() {
		printf '\n%s\n' "$*"
	}
fi

tools/install.sh build pages workload
tools/build.sh
trainer=$BUILD/workloads/onednn/onednn-train
if [ ! -x "$trainer" ]; then
	echo 'strain: the training job was not built: oneDNN (libdnnl-dev) is missing' >&2
	exit 1
fi

# shellcheck disable=SC2086 # a list of options
set -- "$trainer" ${DEMO_OPTIONS:---batch-size 32 --samples 24000 --epochs 6 --workers 2}
run=$BUILD/demo.strain
say "strain run -o $run -- $*"
"$BUILD/strain" run --force -o "$run" -- "$@"

say "strain show $run"
"$BUILD/strain" show "$run"

say "strain report $run -o report.html"
if ! "$BUILD/strain" report --force "$run" -o report.html; then
	command -v npm >/dev/null || echo 'strain: without npm no pages were built' >&2
	exit 1
fi
echo "report.html: $(wc -c <report.html) bytes; open it in a browser"
