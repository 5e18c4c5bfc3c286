#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The suite under other compilers, sanitizers, users: tools/matrix.sh [LEG]..., all legs without
# LEG. Each leg prints its counts; the last line is their sum, "N passed, N failed, N skipped".
# TESTED, Meson's log of a `make test` that has just run: a suite that passed there has no leg.

# shellcheck disable=SC2317 # legs are called by their name

set -u
cd "$(dirname "$0")/.." || exit 1
export BUILD=${BUILD:-build}
# The tests here train no models: they wait for half of their time.
export MESON_TESTTHREADS=$((2 * $(nproc) + 1))
# Folders that everybody may search.
plain_path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
asan_options=detect_stack_use_after_return=1
ubsan_options=print_stacktrace=1:halt_on_error=1
tsan_options=second_deadlock_stack=1
release_options=(-Dbuildtype=release -Db_ndebug=true -Dpages=disabled -Dworkloads=disabled)
all_legs=(release address thread valgrind user browser bundle)
log=$(mktemp -d) || exit 1
trap 'rm -rf "$log"' EXIT

# Sanitizers of older compilers do not find their way in a large random address space.
without_random_addresses() {
	if setarch -R true 2>/dev/null; then
		setarch -R "$@"
	else
		"$@"
	fi
}

# summarize LEG FOLDER LOG [MORE-LOGS]: as tools/run_suites.sh left them
summarize() {
	local leg=$1 first=$2/$3
	shift 3
	tools/summarize.py --label "$leg: " --again "$first-again.json" "$first.json" "$@"
}

# Builds $BUILD-NAME with Meson's options and runs the suites: suites NAME 'SUITE...' OPTION...; of
# these none that are in a -SUITE, too.
# Pages and workloads are those of `make test`: they do not change with the compiler.
suites() {
	local name=$1 chosen=$2
	shift 2
	BUILD=$BUILD-$name tools/build.sh "$@" >"$log/build" 2>&1 || {
		tail -n 40 "$log/build"
		return 1
	}
	local options=()
	local suite
	for suite in $chosen; do
		case $suite in
		-*) options+=(--no-suite "${suite#-}") ;;
		*) options+=(--suite "$suite") ;;
		esac
	done
	mkdir "$log/found-$name"
	ASAN_OPTIONS=$asan_options:log_path=$log/found-$name/address \
		UBSAN_OPTIONS=$ubsan_options:log_path=$log/found-$name/undefined \
		TSAN_OPTIONS=$tsan_options:log_path=$log/found-$name/thread \
		without_random_addresses tools/run_suites.sh "$BUILD-$name" testlog "${options[@]}" >/dev/null
	count_found "$log/found-$name"
	summarize "$name" "$BUILD-$name/meson-logs" testlog "$log/found-$name.json"
}

# What sanitizers wrote, also of processes whose status nobody asks for (a recorder, a forwarder):
# each report is a test that failed, in the form of Meson's log.
count_found() {
	: >"$1.json"
	local report
	for report in "$1"/*; do
		if [ -s "$report" ]; then
			head -n 60 "$report"
			printf '{"name": "%s", "result": "FAIL", "returncode": 1, "stdout": ""}\n' \
				"sanitizer's report ${report##*/}" >>"$1.json"
		fi
	done
}

# gcc at -O3 and without asserts: other warnings, and other timings where there are threads.
leg_release() {
	# Here the long ones too: a hundred kills, a bomb of 5000 processes.
	STRAIN_KILLS=100 STRAIN_BOMB=5000 suites release 'unit fuzz long' "${release_options[@]}"
}

# Of what is typed, what reads something from outside, and what only root can test. Unoptimised: it
# compiles in 40 % of the time, and runs a fifth longer.
leg_address() {
	CC=clang suites address 'unit fuzz root input' -Db_sanitize=address,undefined \
		-Db_lundef=false -Dworkloads=disabled -Doptimization=0
}

leg_thread() {
	CC=clang suites thread threads -Db_sanitize=thread -Db_lundef=false -Dworkloads=disabled \
		-Dpages=disabled -Doptimization=0
}

# One suite of the ordinary build, which `make test` left: ordinary LEG SUITE
ordinary() {
	if [ -n "${TESTED:-}" ] && tools/summarize.py --passed "$2" "$TESTED"; then
		echo "$1: make test has run it"
		echo "$1: 0 passed, 0 failed, 0 skipped"
		return 0
	fi
	tools/build.sh >"$log/build" 2>&1 || {
		tail -n 40 "$log/build"
		return 1
	}
	tools/run_suites.sh "$BUILD" "$1" --suite "$2" >/dev/null
	summarize "$1" "$BUILD/meson-logs" "$1"
}

leg_valgrind() {
	ordinary valgrind valgrind
}

leg_browser() {
	ordinary browser web
}

# The leg `release` has compiled the same: a copy of its build, if there is one, saves a whole one. Meson
# configures the copy again for its new folder. release_build FOLDER
release_build() {
	if [ -e "$BUILD-release/build.ninja" ] && [ ! -e "$1" ]; then
		cp -a "$BUILD-release" "$1" && rm -f "$1/.found"
	fi
}

# A copy of the sources that belongs to nobody in particular, built and tested by him: what records and
# limits, not what reads files. In no folder like /tmp, from where nothing is put into jobs.
leg_user() {
	if [ "$(id -u)" != 0 ]; then # this is one
		release_build "$BUILD-user" || return 1
		suites user 'unit cli -jobs -input' "${release_options[@]}"
		return
	fi
	local home
	home=$(mktemp -d "${STRAIN_USER_PARENT:-/opt}/strain-user-XXXXXX") || return 1
	mkdir "$home/strain"
	git -c safe.directory='*' ls-files -z -c -o --exclude-standard |
		tar -c --null -T - --ignore-failed-read 2>/dev/null | tar -x -C "$home/strain"
	release_build "$home/strain/build" || return 1
	chown -R 65534:65534 "$home"
	(
		cd "$home/strain" || exit 1
		setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs \
			env -i PATH="$plain_path" HOME="$home" LANG=C.UTF-8 TMPDIR="$home" BUILD=build \
			MESON_TESTTHREADS="$MESON_TESTTHREADS" \
			sh -c 'tools/build.sh "$@" >build.log 2>&1 || { tail -n 40 build.log; exit 1; }
				exec tools/run_suites.sh build testlog --suite unit --suite cli --no-suite jobs --no-suite input >/dev/null' \
			sh "${release_options[@]}"
	) && summarize user "$home/strain/build/meson-logs" testlog # not by a copy of his
	local status=$?
	rm -rf "$home"
	return "$status"
}

leg_bundle() {
	if tools/bundle.sh; then
		echo 'bundle: 1 passed, 0 failed, 0 skipped'
	else
		echo 'bundle: 0 passed, 1 failed, 0 skipped'
		return 1
	fi
}

tools/install.sh build pages workload man test matrix browser bundle || exit 1
legs=("$@")
if [ $# = 0 ]; then
	legs=("${all_legs[@]}")
fi
status=0
for leg in "${legs[@]}"; do
	if ! declare -F "leg_$leg" >/dev/null; then
		echo "matrix: no leg '$leg'; the legs are: ${all_legs[*]}" >&2
		exit 2
	fi
	echo "matrix: $leg"
	started=$SECONDS
	("leg_$leg") >"$log/output" 2>&1 || status=1
	cat "$log/output"
	tail -n 1 "$log/output" | grep -oE '[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' \
		>>"$log/counts" || {
		echo "failed: $leg: it ended before its tests, as after a build that fails"
		echo "$leg: 0 passed, 1 failed, 0 skipped"
		echo '0 passed, 1 failed, 0 skipped' >>"$log/counts"
		status=1
	}
	echo "matrix: $leg took $((SECONDS - started)) s"
done
awk '{passed += $1; failed += $3; skipped += $5}
	END {printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped}' "$log/counts"
exit $status
