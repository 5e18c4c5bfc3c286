#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Run files that were made to hang, to fill the machine or to remove files of whoever reads them
# (hostile_runs.py): every command ends with an error of one line.

load ../cli/messages

# Bounds, not speeds: a machine under load, a sanitizer's build and its shadow are within them.
SECONDS_MOST=120
BYTES_MOST=$((2 << 30))

setup_file() {
	"${PYTHON:-/usr/bin/python3}" "$SOURCE_ROOT/tests/security/hostile_runs.py" \
		"$SOURCE_ROOT/tests/traces/schema-1001-onednn.strain" "$BATS_FILE_TMPDIR/runs"
}

setup() {
	cd "$BATS_FILE_TMPDIR/runs" || return
	export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
}

# bounded ARGUMENT...: strain, with little time and memory.
bounded() {
	timeout -s KILL $SECONDS_MOST prlimit --as="${AS_MOST:-$BYTES_MOST}" "$STRAIN" "$@"
}

# A sanitizer reserves terabytes of addresses.
unlimited_under_sanitizers() {
	! grep -qa __asan_init "$STRAIN" || AS_MOST=unlimited
}

# is_refused FILE ARGUMENT...: one line, which names the file.
is_refused() {
	local file=$1
	shift
	run --separate-stderr bounded "$@"
	echo "$*: status $status: $output: $stderr"
	[ "$status" -eq 1 ]
	[ -z "$output" ]
	[ "$(wc -l <<<"$stderr")" -eq 1 ]
	[[ $stderr == "strain: "*"$file"* ]]
}

refuses_everywhere() {
	unlimited_under_sanitizers
	local file=$1.strain
	is_refused "$file" show "$file"
	is_refused "$file" show --json "$file"
	is_refused "$file" report -o "$BATS_TEST_TMPDIR/report.html" "$file"
	[ ! -e "$BATS_TEST_TMPDIR/report.html" ]
	is_refused "$file" export "$file"
	is_refused "$file" sql "$file" "SELECT * FROM label, run, event, summary_by_name"
	run bounded compare "$file" "$SOURCE_ROOT/tests/traces/schema-1001-onednn.strain"
	[ "$status" -lt 124 ]
	mkdir -p "$BATS_TEST_TMPDIR/folder"
	cp --sparse=always "$file" "$BATS_TEST_TMPDIR/folder"
	[ ! -e "$file-journal" ] || cp "$file-journal" "$BATS_TEST_TMPDIR/folder"
	run bounded ls "$BATS_TEST_TMPDIR/folder"
	[ "$status" -lt 124 ]
	[[ $output == *"$1"* ]]
}

@test "a trigger on the table of keys" {
	refuses_everywhere a_trigger
}

@test "views that never end in the place of tables" {
	refuses_everywhere a_view_as_a_table
	refuses_everywhere a_view_of_keys
}

@test "another text for the summary's view" {
	refuses_everywhere the_summarys_view
}

@test "generated columns of 100 MB" {
	refuses_everywhere generated_columns
	refuses_everywhere generated_events
}

@test "a constraint that takes its time" {
	refuses_everywhere a_check_that_lasts
}

@test "an index of an expression, a virtual table" {
	refuses_everywhere an_index_of_an_expression
	refuses_everywhere a_virtual_table
}

@test "blocks of constants: 200 million rows in 75 kB" {
	refuses_everywhere constants
}

# In seconds of CPU, which a machine under load does not lengthen; stopped by the kernel beyond.
@test "blocks of constants: 8 billion values in 200 kB, in few columns, in many, in a damaged file" {
	local name
	ulimit -t 20
	for name in dense_blocks dense_columns dense_blocks_in_a_damaged_file; do
		refuses_everywhere "$name"
	done
	is_refused dense_blocks.strain show dense_blocks.strain
	[[ $stderr =~ [1-9][0-9]+.*" bytes" ]]
	run -0 --separate-stderr bounded show dense_blocks_that_say_little.strain
	line_names "$stderr" 1860
}

@test "blocks that hold more rows than their row says, words without spans" {
	unlimited_under_sanitizers
	run -0 --separate-stderr bounded show constants_that_say_little.strain
	line_names "$stderr" 200
	run -0 --separate-stderr bounded show words_of_spans.strain
	line_names "$stderr" 1
}

@test "more keys and entities than any run has" {
	refuses_everywhere many_keys
	refuses_everywhere many_entities
}

@test "a terabyte of holes" {
	refuses_everywhere a_huge_sparse_file
}

@test "pages that refer to each other" {
	unlimited_under_sanitizers
	run --separate-stderr bounded show rows_that_refer_to_each_other.strain
	[ "$status" -eq 0 ]
	line_names "$stderr" rows_that_refer_to_each_other.strain
}

@test "a journal that names a file which SQLite would remove" {
	refuses_everywhere a_journal_of_another
	[ -e precious ]
}

@test "a sound run is read within the same bounds, and reading leaves its bytes and its folder alone" {
	unlimited_under_sanitizers
	mkdir "$BATS_TEST_TMPDIR/sound"
	cp "$SOURCE_ROOT"/tests/traces/*.strain "$BATS_TEST_TMPDIR/sound"
	cd "$BATS_TEST_TMPDIR/sound"
	local before
	before=$(sha256sum ./*)
	for file in *.strain; do
		bounded show "$file" >/dev/null
		bounded export "$file" >/dev/null
		bounded sql "$file" "SELECT count(*) FROM summary_by_name" >/dev/null
	done
	bounded ls >/dev/null
	[ "$(sha256sum ./*)" = "$before" ]
}
