#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Every check that reads sources without running them. Each prints FILE:LINE; all run, even after
# one found something. The last line is "N passed, N failed, N skipped".

set -eu
cd "$(dirname "$0")/.."
export BUILD="${BUILD:-build}"

tools/install.sh build pages workload man test lint
tools/build.sh >/dev/null
database=$BUILD/compile_commands.json

c_files=$(git ls-files '*.c' '*.h')
scripts=$(git grep -lE '^#!.*\b(ba|da)?sh$' -- . ':!*.bats' | sort)
bats_files=$(git ls-files '*.bats')

# The files of ours that the compilation database knows: others have no flags.
compiled_files() {
	git ls-files '*.c' | while read -r file; do
		if grep -q "\"file\": \"[^\"]*$file\"" "$database"; then
			echo "$file"
		fi
	done
}

check_format() {
	# shellcheck disable=SC2086 # a list of files
	clang-format --dry-run -Werror $c_files
}

check_tidy() {
	compiled_files | xargs -P "$(nproc)" -n 4 clang-tidy --quiet -p "$BUILD" \
		--warnings-as-errors='*' 2>&1 | grep -vE '^[0-9]+ warnings? (generated|treated)' >"$log" || true
	cat "$log"
	! grep -qE ': (warning|error):' "$log"
}

check_cppcheck() {
	# The build's own flags are not needed: cppcheck looks at all configurations it finds.
	cppcheck --quiet --std=c11 --language=c --enable=warning,performance,portability \
		--inline-suppr --error-exitcode=1 --suppressions-list=tools/cppcheck.txt \
		--template='{file}:{line}: {message} [{id}]' -j "$(nproc)" -I src -I hooks \
		-D_GNU_SOURCE -DSTRAIN_VERSION='""' src hooks workloads tests/unit tests/fuzz tools
}

check_shell() {
	# shellcheck disable=SC2086
	shellcheck -x $scripts && shellcheck -S error $bats_files
}

# The packages are in the build folder, the sources are not: a folder that has both.
check_types() {
	if [ ! -e "$BUILD/web/node_modules/typescript" ]; then
		echo 'no packages of npm in the build folder: see what configuring said of pages'
		return 77
	fi
	mkdir -p "$BUILD/types"
	ln -sfn "$PWD/web/src" "$BUILD/types/src"
	ln -sfn ../web/node_modules "$BUILD/types/node_modules"
	cp web/tsconfig.json "$BUILD/types/"
	(cd "$BUILD/types" && node node_modules/typescript/bin/tsc --noEmit --pretty false -p .)
}

check_rules() {
	tools/check_sources.py
}

check_metrics() {
	ninja -C "$BUILD" tools/strain-metrics >/dev/null && "$BUILD/tools/strain-metrics" >/dev/null
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0 skipped=0
for check in format tidy cppcheck shell types rules metrics; do
	status=0
	"check_$check" || status=$?
	case $status in
	0) passed=$((passed + 1)) result=passed ;;
	77) skipped=$((skipped + 1)) result=skipped ;;
	*) failed=$((failed + 1)) result=failed ;;
	esac
	echo "lint: $check: $result"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
