#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Runs each fuzz target under libFuzzer with sanitizers, FUZZ_SECONDS (60) each, two at a time:
# tools/fuzz.sh [TARGET]... New inputs go to a folder of the build; a finding is kept there too, and
# its name printed. The last line is "N passed, N failed, N skipped".

set -eu
cd "$(dirname "$0")/.."
seconds=${FUZZ_SECONDS:-60}
build=${BUILD:-build}-fuzz
limit=${FUZZ_JOBS:-$(nproc)}

tools/install.sh build test matrix
if [ ! -e "$build/build.ninja" ]; then
	CC=clang meson setup "$build" -Dfuzzer=true -Db_sanitize=address,undefined -Db_lundef=false \
		-Dpages=disabled -Dworkloads=disabled -Dman=disabled \
		-Dc_args='-fsanitize=fuzzer-no-link -fno-sanitize-recover=all'
fi
targets=${*:-$(for file in tests/fuzz/fuzz_*.c; do
	name=${file##*/fuzz_}
	echo "${name%.c}"
done)}
# Only these: programs without a sanitizer cannot be linked with what the fuzzer is told by.
# shellcheck disable=SC2046,SC2086 # words
ninja -C "$build" $(printf 'tests/fuzz/fuzz_%s ' $targets)

# One target: its corpus is read, what is new is written to the build.
fuzz_one() {
	mkdir -p "$build/corpus/$1" "$build/found/$1"
	if setarch -R "$build/tests/fuzz/fuzz_$1" -max_total_time="$seconds" -timeout=10 \
		-rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$build/found/$1/" \
		"$build/corpus/$1" "tests/fuzz/corpus/$1" >"$build/found/$1.log" 2>&1; then
		echo ok >"$build/found/$1.result"
	else
		echo failed >"$build/found/$1.result"
	fi
}

running=0
for name in $targets; do
	rm -f "$build/found/$name.result"
	fuzz_one "$name" &
	running=$((running + 1))
	if [ "$running" -ge "$limit" ]; then
		wait
		running=0
	fi
done
wait

passed=0 failed=0
for name in $targets; do
	log=$build/found/$name.log
	if [ "$(cat "$build/found/$name.result" 2>/dev/null)" = ok ]; then
		passed=$((passed + 1))
		runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
		echo "$name: $runs inputs in $seconds s, nothing found"
	else
		failed=$((failed + 1))
		echo "$name: failed; $log, inputs under $build/found/$name/"
		grep -m 3 -E 'SUMMARY|ERROR|runtime error' "$log" || tail -n 5 "$log"
	fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
