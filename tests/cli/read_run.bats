#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# docs/read_run.py, the reader in some hundred lines, sees what strain sees: the page about the format
# tells the truth.

# shellcheck disable=SC2154 # stderr is set by run
bats_require_minimum_version 1.5.0

setup() {
	read_run="$SOURCE_ROOT/docs/read_run.py"
	make_run="$BUILD_ROOT/tests/tools/make_run"
	file="$BATS_TEST_TMPDIR/run.strain"
	# Debian's Python, whatever else the path has.
	python=/usr/bin/python3
	[ -x "$python" ] || skip "no $python on this machine"
	"$python" -c 'import ctypes.util as u; exit(not u.find_library("zstd"))' ||
		"$python" -c 'import ctypes; ctypes.CDLL("libzstd.so.1")' || skip "no libzstd.so"
}

# Rows and missing values of each entity and metric, as strain counts them.
count_by_sql() {
	"$STRAIN" sql "$1" "SELECT entity, metric, count(*), sum(value IS NULL) FROM samples
		GROUP BY entity, metric ORDER BY entity, metric" --json | "$python" -c '
import json, sys
rows = json.load(sys.stdin)
rows = rows if isinstance(rows, list) else next(iter(rows.values()))
for row in rows:
    print(*(row.values() if isinstance(row, dict) else row), sep="\t")'
}

count_by_python() {
	"$python" "$read_run" "$1" | awk -F '\t' '{n[$1 FS $4]++; missing[$1 FS $4] += $6 == ""}
		END {for (i in n) print i FS n[i] FS missing[i]}' | LC_ALL=C sort -t "$(printf '\t')" -k 1,1n -k 2,2
}

agree() {
	count_by_sql "$1" | LC_ALL=C sort -t "$(printf '\t')" -k 1,1n -k 2,2 >"$BATS_TEST_TMPDIR/sql"
	count_by_python "$1" >"$BATS_TEST_TMPDIR/python"
	[ -s "$BATS_TEST_TMPDIR/sql" ]
	diff "$BATS_TEST_TMPDIR/sql" "$BATS_TEST_TMPDIR/python"
}

@test "it is as short as is said, in lines of no more than 100 columns" {
	[ "$(wc -l <"$read_run")" -le 120 ]
	run -1 grep -nE '.{101}' "$read_run"
}

@test "a finished run: the same rows and missing values" {
	"$make_run" "$file" 70
	agree "$file"
}

@test "a run that is still being written: plain blocks" {
	"$make_run" "$file" +5
	agree "$file"
}

@test "a thinned run" {
	"$make_run" "$file" 400 10ms 400kB
	[ "$(sqlite3 "$file" "SELECT count(*) FROM event WHERE kind = 'thinned'")" -ge 1 ]
	agree "$file"
}

@test "the oldest run there is" {
	agree "$SOURCE_ROOT/tests/traces/schema-1000.strain"
}

@test "spans, those that are rows and those in blocks" {
	"$make_run" "$file" 20 10ms 100MB 500 2
	[ "$(sqlite3 "$file" "SELECT sum(rows) FROM span_block")" -gt 3000 ]
	"$python" "$read_run" --spans "$file" | sed 's/None//g' | LC_ALL=C sort >"$BATS_TEST_TMPDIR/python"
	"$STRAIN" sql --csv "$file" "SELECT id, kind, name, start_ns, end_ns, parent, samples FROM span" |
		tail -n +2 | tr , '\t' | LC_ALL=C sort >"$BATS_TEST_TMPDIR/sql"
	diff "$BATS_TEST_TMPDIR/sql" "$BATS_TEST_TMPDIR/python"
}

@test "one series, value by value" {
	"$make_run" "$file" 3
	"$python" "$read_run" "$file" | awk -F '\t' '$1 == 3 && $4 == "process.cpu.time" {
		printf "%.6f %.6f\n", $5, $6}' >"$BATS_TEST_TMPDIR/python"
	"$STRAIN" sql "$file" "SELECT printf('%.6f %.6f', t, value) AS row FROM samples
		WHERE entity = 3 AND metric = 'process.cpu.time' ORDER BY t" |
		tail -n +2 | tr -s ' ' >"$BATS_TEST_TMPDIR/sql"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/python")" -eq 300 ]
	diff "$BATS_TEST_TMPDIR/sql" "$BATS_TEST_TMPDIR/python"
}

@test "a damaged block is said and left out" {
	"$make_run" "$file" 3
	sqlite3 "$file" "UPDATE block SET payload = CAST(substr(payload, 1, 20) || x'00' ||
		substr(payload, 22) AS BLOB) WHERE id = (SELECT min(id) FROM block)"
	run -0 --separate-stderr "$python" "$read_run" "$file"
	[[ "$stderr" == *"damaged block"* ]]
}

@test "what is no run is refused" {
	sqlite3 "$file" "CREATE TABLE x (y)"
	run -1 "$python" "$read_run" "$file"
	[[ "$output" == *"not a run file"* ]]
}
