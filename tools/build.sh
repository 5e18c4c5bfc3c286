#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Builds into $BUILD (build): tools/build.sh [MESON_OPTION]... The options count when the folder is
# new, and when it has to be configured anew because programs or libraries have come or gone.

set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}

tools/install.sh --check build

# What Meson decides by: a folder configured without npm has no pages for ever.
present() {
	for program in npm node bats scdoc clang chromium bwrap valgrind; do
		command -v "$program" || true
	done
	ls /usr/include/cmocka.h /usr/include/oneapi/dnnl/dnnl.h 2>/dev/null || true
	echo "$@"
}

found=$(present "$@")
if [ ! -e "$build/build.ninja" ]; then
	meson setup "$build" "$@"
elif [ "$found" != "$(cat "$build/.found" 2>/dev/null)" ]; then
	meson setup --reconfigure "$build" "$@"
fi
printf '%s\n' "$found" >"$build/.found"
exec ninja -C "$build"
