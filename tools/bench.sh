#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# What recording costs, each figure beside its floor or its peer, measured in the same run:
# tools/bench.sh [NAME]... Without NAME, the slow tests run first.

set -eu
cd "$(dirname "$0")/.."
export BUILD="${BUILD:-build}"

tools/install.sh build pages workload frameworks bench
tools/build.sh >/dev/null
if [ $# -eq 0 ]; then
	STRAIN_SLOW_TESTS=1 meson test -C "$BUILD" --no-rebuild --num-processes 1 --timeout-multiplier 3 \
		'cli advise_batch' 'cli advise_faults' 'cli advise_gpu' 'cli advise_jobs' \
		'cli advise_keras' 'pytorch applications' 'report in a browser'
fi
exec bench/run "$@"
