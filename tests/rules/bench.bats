#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# bench/run has what it starts from a plain `make`, also where the tests are not built, and its searches find what is there.

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

@test "searches find the largest size that fits, and the fits give the published answers" {
	run -0 python3 -B - "$SOURCE_ROOT/bench" <<-'EOF'
		import math, sys
		sys.path.insert(0, sys.argv[1])
		from finders import autobatch, doubling_and_bisection, largest_near, thesis_line
		for truth in 0, 1, 2, 3, 16, 100, 255, 256, 2047, 2048, 5000:
		    tried = []
		    fits = lambda size: tried.append(size) or size <= truth
		    assert doubling_and_bisection(fits, 2048) == min(truth, 2048), truth
		    assert all(1 <= size <= 2048 for size in tried) and len(tried) == len(set(tried)), tried
		    for start in 1, 16, 90, 300, 2048:
		        found = largest_near(lambda size: size <= truth, start, 2048)
		        assert 0 <= min(truth, 2048) - found <= max(0, truth // 200), (truth, start, found)
		assert thesis_line([(16, 116), (32, 132)], 300) == 200
		assert thesis_line([(16, 116), (32, 116)], 300) is None
		sizes = 1, 2, 4, 8, 16
		line = [(size, 100 + 3 * size) for size in sizes]
		assert autobatch(line, 1000, 1.0, False) == 300 and autobatch(line, 1000, 0.6, False) == 166
		power = [(size, 10 * size) for size in sizes]
		assert autobatch(power, 1000, 1.0, True) == 100 and autobatch(power, 1e6, 1.0, True) == 16
		flat = [(size, 100) for size in sizes]
		assert autobatch(flat, 1000, 1.0, True) == 16
	EOF
}
