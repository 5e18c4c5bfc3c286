#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Installs what tests need, builds, runs every test that this machine can run, and says at the end
# which were skipped and why. The last line is "N passed, N failed, N skipped".

set -eu
cd "$(dirname "$0")/.."
export BUILD="${BUILD:-build}"

tools/install.sh build pages workload man test
tools/build.sh
tools/run_suites.sh "$BUILD" testlog --no-suite bench
exec tools/summarize.py --again "$BUILD/meson-logs/testlog-again.json" "$BUILD/meson-logs/testlog.json"
