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
meson test -C "$BUILD" --no-rebuild --no-suite bench || true
exec tools/summarize.py "$BUILD/meson-logs/testlog.json"
