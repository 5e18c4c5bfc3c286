#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# bench/run has what it starts from a plain `make`, also where the tests are not built.

bats_require_minimum_version 1.5.0

@test "every program that a figure starts is built for it, without the test suite" {
	command -v meson >/dev/null || skip "meson is not installed"
	cd "$BATS_TEST_TMPDIR"
	meson setup plain "$SOURCE_ROOT" -Dtests=disabled -Dpages=disabled -Dman=disabled \
		-Dworkloads=disabled >log 2>&1 || {
		cat log
		return 1
	}
	ninja -C plain -n bench-programs | sed -n 's/.*Linking target //p' | sort >built
	# program("NAME"), and what is named below the build folder
	sed -n 's/.*[^a-z_]program("\([a-z_]*\)").*/bench\/\1/p; s/.*BUILD \/ "\(tests\/[^"]*\)".*/\1/p' \
		"$SOURCE_ROOT"/bench/figures/*.py "$SOURCE_ROOT"/bench/*.py | sort -u >started
	grep -qx bench/marker started
	grep -qx tests/tools/make_run started
	while read -r program; do
		grep -qx "$program" built || {
			echo "$program is started, and not built"
			return 1
		}
	done <started
}
