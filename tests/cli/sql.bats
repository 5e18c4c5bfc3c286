#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# strain sql: queries over a run, which can change nothing and reach nothing else.

load messages

setup_file() {
	cd "$BATS_FILE_TMPDIR" || return
	"$BUILD_ROOT/tests/tools/make_run" train.strain 5
}

setup() {
	cd "$BATS_FILE_TMPDIR" || return
	sum=$(sha256sum train.strain)
}

teardown() {
	[ "$sum" = "$(sha256sum train.strain)" ]
	[ "$(ls)" = train.strain ]
}

@test "a query prints a table, without RUN over the newest run" {
	run -0 "$STRAIN" sql "SELECT kind, count(*) AS n FROM entity GROUP BY kind ORDER BY n DESC LIMIT 1"
	[ "${lines[0]}" = "kind     n" ]
	[ "${lines[1]}" = "process  3" ]
}

@test "a table of more columns than it can have shows the first, and says so" {
	run -0 --separate-stderr "$STRAIN" sql train.strain "SELECT 1$(printf ', 2%.0s' {1..400})"
	notes_only 256 --csv --json
	[ "$(wc -w <<<"${lines[1]}")" -eq 256 ]
}

@test "samples decodes the readings" {
	run -0 "$STRAIN" sql --csv train.strain "SELECT count(*), max(value) FROM samples
		WHERE entity = 6 AND metric = 'hw.gpu.memory.limit' AND t < 1"
	[[ "${lines[1]}" == *",17179869184" ]]
	[ "${lines[1]%%,*}" -ge 9 ]
}

@test "--json and --csv keep every type" {
	run -0 "$STRAIN" sql --json train.strain "SELECT 1 AS a, 2.5 AS a, 'x\"y' AS s, NULL AS n,
		x'0102' AS b, 9e999 AS i"
	python3 -c 'import json, sys
assert json.loads(sys.argv[1]) == [{"a": 1, "a_2": 2.5, "s": "x\"y", "n": None, "b": "<2 bytes>",
                                    "i": None}], sys.argv[1]' "$output"
	run -0 "$STRAIN" sql --csv train.strain "SELECT 'a,b' AS \"x,y\", NULL, 3"
	[ "${lines[0]}" = '"x,y",NULL,3' ]
	[ "${lines[1]}" = '"a,b",,3' ]
	run -0 "$STRAIN" sql --json train.strain "SELECT 1 WHERE 0"
	python3 -c 'import json, sys; assert json.loads(sys.argv[1]) == []' "$output"
	run -0 "$STRAIN" sql train.strain "SELECT payload FROM block LIMIT 1"
	[[ "${lines[1]}" == "<"*" bytes>" ]]
}

@test "a query can change nothing and reach no other file" {
	for query in "DELETE FROM run" "INSERT INTO label VALUES ('a', 'b')" "DROP TABLE block" \
		"CREATE TABLE t (x)" "CREATE TEMP TABLE t (x)" "ATTACH 'other.db' AS other" \
		"VACUUM INTO 'copy.db'" "PRAGMA journal_mode = WAL" "PRAGMA user_version = 7" \
		"PRAGMA writable_schema = 1" "BEGIN IMMEDIATE" "SELECT load_extension('x')" \
		"UPDATE samples SET value = 1"; do
		fails_with 1 sql -- "$STRAIN" sql train.strain "$query"
	done
	run -0 "$STRAIN" sql train.strain "PRAGMA table_info(run)"
	[[ "$output" == *"value"* ]]
}

@test "an answer that does not fit into memory is said to be so" {
	limited() {
		sh -c 'ulimit -v 300000; exec "$@"' limited "$@"
	}
	# A sanitizer's own complaint about it is no finding.
	ASAN_OPTIONS='' UBSAN_OPTIONS='' TSAN_OPTIONS='' limited "$STRAIN" sql train.strain "SELECT 1" ||
		skip 'this build needs more memory than that (sanitizers)'
	run -1 --separate-stderr limited "$STRAIN" sql train.strain "WITH RECURSIVE n(i) AS
		(SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 9000) SELECT printf('%.*c', 100000, 'x') FROM n"
	notes_only sql memory
}

@test "mistakes get one line" {
	fails_with 1 sql '"SELEKT"' -- "$STRAIN" sql train.strain "SELEKT 1"
	fails_with 1 sql -- "$STRAIN" sql train.strain "SELECT 1; SELECT 2"
	fails_with 1 sql -- "$STRAIN" sql train.strain " -- nothing"
	fails_with 2 "'more'" "strain sql --help" -- "$STRAIN" sql train "SELECT 1" more
}

@test "without a query it reads one from standard input" {
	for words in "" train train.strain -1; do
		# shellcheck disable=SC2086 # none or one
		run -0 --separate-stderr "$STRAIN" sql --csv $words <<<"SELECT 7 AS seven;"
		[ "$output" = "seven
7" ]
		[ -z "$stderr" ]
	done
	run -0 "$STRAIN" sql <<<"-- two of them
		SELECT 1 AS one; SELECT 2 AS two -- and no more"
	[ "$output" = "one
  1
two
  2" ]
	run -1 --separate-stderr "$STRAIN" sql --json <<<"SELECT 1; SELECT 2"
	notes_only sql
	run -1 --separate-stderr "$STRAIN" sql <<<"SELECT 1 AS one; SELEKT"
	[ "$output" = "one
  1" ]
	notes_only sql '"SELEKT"'
	run -1 --separate-stderr "$STRAIN" sql <<<"DELETE FROM run"
	[[ "$stderr" == "strain: sql: "* ]]
}

@test "without a query, and with nothing to read one from, it says what to type" {
	for input in /dev/null <(echo); do
		fails_with 2 'strain sql "SELECT * FROM run"' "strain sql --help" -- "$STRAIN" sql <"$input"
	done
	fails_with 1 sql "1 MiB" -- bash -c 'head -c 3000000 /dev/zero | tr "\0" " " | "$STRAIN" sql'
}

@test "without a query, in a terminal, it opens a prompt" {
	python3 - "$STRAIN" >"$BATS_TEST_TMPDIR/seen" <<-'EOF'
		import os, pty, select, sys

		pid, terminal = pty.fork()
		if pid == 0:
		    os.execv(sys.argv[1], [sys.argv[1], "sql", "train"])
		seen = b""

		def until(text):
		    global seen
		    while text not in seen:
		        ready, _, _ = select.select([terminal], [], [], 60)
		        assert ready, seen
		        seen += os.read(terminal, 65536)
		    at = seen.index(text) + len(text)
		    taken, seen = seen[:at], seen[at:]
		    return taken

		first = until(b"strain> ")
		assert b"train.strain" in first and b"Ctrl-D" in first, first
		os.write(terminal, b"SELECT 40 + 2\n")
		until(b"   ...> ")
		os.write(terminal, b"  AS answer;\n")
		assert b"\r\n    42\r\n" in until(b"strain> ")
		os.write(terminal, b"SELEKT;\n")
		assert b'strain: sql: near "SELEKT"' in until(b"strain> ")
		os.write(terminal, b"SELECT 1; SELECT 2;\n")
		until(b"strain> ")
		os.write(terminal, b"\x04")
		_, status = os.waitpid(pid, 0)
		assert os.waitstatus_to_exitcode(status) == 0, status
	EOF
}

@test "an error in the middle leaves valid JSON" {
	run -1 --separate-stderr "$STRAIN" sql --json train.strain \
		"SELECT abs(column1) FROM (VALUES (1), (-9223372036854775807 - 1))"
	python3 -c 'import json, sys; assert len(json.loads(sys.argv[1])) == 1' "$output"
	notes_only sql
}
