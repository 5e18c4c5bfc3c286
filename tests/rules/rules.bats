#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# tools/check_sources.py finds what it is for: each test breaks one rule in a tree of its own.

bats_require_minimum_version 1.5.0

setup() {
	tree=$BATS_TEST_TMPDIR/tree
	mkdir -p "$tree"/src/{base,trace,analyze,cmd} "$tree"/src/record/{host,job,source}
	touch "$tree"/src/{base/text,trace/reader,analyze/series,cmd/command}.h
	touch "$tree"/src/record/{recorder,options,host/file,job/tree,source/source}.h
}

check() {
	"$SOURCE_ROOT/tools/check_sources.py" --root "$tree" "$@"
}

@test "an include against the direction is found, with its line" {
	printf '#include "base/text.h"\n#include "analyze/series.h"\n' >"$tree/src/trace/reader.c"
	run -1 check includes
	[ "${#lines[@]}" = 1 ]
	[[ "${lines[0]}" == "src/trace/reader.c:2: trace must not include analyze"* ]]
}

@test "the wings meet in the run file only" {
	echo '#include "record/recorder.h"' >"$tree/src/analyze/series.c"
	run -1 check includes
	echo '#include "analyze/series.h"' >"$tree/src/record/recorder.c"
	run -1 check includes
	[ "${#lines[@]}" = 2 ]
}

@test "inside the recording wing host < job < source < recorder" {
	echo '#include "record/source/source.h"' >"$tree/src/record/job/tree.c"
	echo '#include "record/recorder.h"' >"$tree/src/record/source/disk.c"
	echo '#include "record/job/tree.h"' >"$tree/src/record/source/process.c"
	run -1 check includes
	[ "${#lines[@]}" = 2 ]
	[[ "$output" == *"src/record/job/tree.c:1: job must not include record/source/source.h"* ]]
	[[ "$output" == *"src/record/source/disk.c:1: source must not include record/recorder.h"* ]]
}

@test "commands may include all" {
	printf '#include "%s"\n' record/options.h analyze/series.h base/text.h >"$tree/src/cmd/run.c"
	run -0 check includes
}

@test "a function of 101 lines is found, one of 100 is not" {
	{ echo 'void f(void)'; echo '{'; yes '	x();' | head -n 98; echo '}'; } >"$tree/src/base/text.c"
	run -0 check functions
	{ echo 'void f(void)'; echo '{'; yes '	x();' | head -n 99; echo '}'; } >"$tree/src/base/text.c"
	run -1 check functions
	[[ "$output" == "src/base/text.c:2: a function of 101 lines"* ]]
}

@test "banned calls are found, but not in comments and strings" {
	printf '// sscanf(x)\nchar *s = "atoi(x)";\n' >"$tree/src/base/text.c"
	run -0 check calls
	printf 'int i = atoi(x);\nexit(1);\n' >"$tree/src/base/text.c"
	run -1 check calls
	[ "${#lines[@]}" = 2 ]
	[[ "${lines[0]}" == "src/base/text.c:1: atoi()"* ]]
}

@test "a database that is opened elsewhere is found" {
	echo 'sqlite3_open_v2(x, &y, 0, NULL);' >"$tree/src/trace/database.c"
	run -0 check databases
	echo 'sqlite3_open(x, &y);' >"$tree/src/trace/reader.c"
	run -1 check databases
	[[ "$output" == "src/trace/reader.c:1: sqlite3_open()"* ]]
}

@test "a variable that says where our files are is not taken from a less privileged caller" {
	echo 'a = secure_getenv("HOME"); b = getenv("PATH");' >"$tree/src/trace/reader.c"
	run -0 check environment
	echo 'a = getenv("STRAIN_DIR");' >"$tree/src/trace/reader.c"
	run -1 check environment
	[[ "$output" == "src/trace/reader.c:1: getenv()"* ]]
}

@test "only commands end the program" {
	echo 'exit(1);' >"$tree/src/cmd/show.c"
	run -0 check calls
}

@test "addresses in lock files and paths of one machine are found" {
	echo '  "resolved": "https://example.org/a.tgz"' >"$tree/src/package-lock.json"
	run -1 check locks
	printf 'see /ho%s/somebody/strain\n' me >"$tree/src/notes.md"
	run -1 check paths
}

@test "a source without its licence is found" {
	echo 'int x;' >"$tree/src/base/text.c"
	run -1 check headers
	[[ "$output" == *"src/base/text.c:1: no SPDX"* ]]
}

@test "what a hook says in a newer Python than it enters is found" {
	mkdir -p "$tree/hooks/python"
	printf 'x = 1\nif (y := x):\n    pass\n' >"$tree/hooks/python/strain_new.py"
	run -1 check python
	[[ "${lines[0]}" == "hooks/python/strain_new.py:2: not Python 3.7: "* ]]
}

@test "commands speak through what escapes" {
	echo 'fputs("x", stderr);' | tee "$tree/src/cmd/command.c" "$tree/src/record/recorder.c" >"$tree/src/cmd/ls.c"
	run -1 check terminal
	[ "${#lines[@]}" = 1 ]
	[[ "$output" == "src/cmd/ls.c:1: stderr: command_note"* ]]
}
