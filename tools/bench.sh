#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# What recording costs, each figure beside its floor or its peer, measured in the same run:
# tools/bench.sh [NAME]...

set -eu
cd "$(dirname "$0")/.."
export BUILD="${BUILD:-build}"

tools/install.sh build pages workload frameworks bench
tools/build.sh >/dev/null
exec bench/run "$@"
