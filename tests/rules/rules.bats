#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# tools/check_sources.py finds what it is for: each test breaks one rule in a tree of its own.

bats_require_minimum_version 1.5.0

setup() {
	tree=$BATS_TEST_TMPDIR/tree
	mkdir -p "$tree"/src/{base,machine,runfile,run,cmd} "$tree"/src/record/{sample,mark,source}
	touch "$tree"/src/{base/text,machine/tree,runfile/reader,run/phases,cmd/command}.h
	touch "$tree"/src/record/{recorder,options,sample/source,mark/marks}.h
}

check() {
	"$SOURCE_ROOT/tools/check_sources.py" --root "$tree" "$@"
}

@test "an include against the direction is found, with its line" {
	printf '#include "base/text.h"\n#include "run/phases.h"\n' >"$tree/src/runfile/reader.c"
	run -1 check includes
	[ "${#lines[@]}" = 1 ]
	[[ "${lines[0]}" == "src/runfile/reader.c:2: runfile must not include run"* ]]
}

@test "the wings meet in the run file only" {
	echo '#include "record/recorder.h"' >"$tree/src/run/phases.c"
	run -1 check includes
	echo '#include "run/phases.h"' >"$tree/src/record/recorder.c"
	run -1 check includes
	[ "${#lines[@]}" = 2 ]
}

@test "inside the recording wing sample < mark < source < recorder" {
	echo '#include "record/mark/marks.h"' >"$tree/src/record/sample/sampler.c"
	echo '#include "record/recorder.h"' >"$tree/src/record/source/disk.c"
	echo '#include "record/sample/source.h"' >"$tree/src/record/source/process.c"
	run -1 check includes
	[ "${#lines[@]}" = 2 ]
	[[ "$output" == *"src/record/sample/sampler.c:1: record/sample must not include record/mark"* ]]
	[[ "$output" == *"src/record/source/disk.c:1: record/source must not include record (record/recorder.h)"* ]]
}

@test "a folder that nobody knows is found" {
	mkdir "$tree/src/utils"
	touch "$tree/src/utils/things.c"
	run -1 check includes
	[[ "${lines[0]}" == "src/utils/things.c:1: src/utils is no folder of LAYERS"* ]]
}

@test "modules that include each other are found, also through a third" {
	echo '#include "run/summary.h"' >"$tree/src/run/phases.c"
	echo '#include "run/epochs.h"' >"$tree/src/run/summary.h"
	echo '#include "run/phases.h"' >"$tree/src/run/epochs.h"
	run -1 check circles
	[ "${#lines[@]}" = 3 ]
	[[ "${lines[0]}" == "src/run/epochs.h:1: a circle of 3: src/run/phases includes src/run/epochs in turn"* ]]
	echo >"$tree/src/run/epochs.h"
	run -0 check circles
}

@test "a name without its module, or a type of its header, is found" {
	printf 'struct span;\nvoid phases_free(struct phases *p);\nint span_add(\n\tstruct span *s);\n' >"$tree/src/run/phases.h"
	run -0 check names
	printf 'struct span {\n\tint n;\n};\n\nint helper(struct span *s);\n' >"$tree/src/run/phases.h"
	run -1 check names
	[ "${#lines[@]}" = 1 ]
	[[ "${lines[0]}" == "src/run/phases.h:5: helper(): begin it with phases_"* ]]
}

@test "an internal header belongs to its module" {
	echo '#include "runfile/reader_internal.h"' >"$tree/src/runfile/reader.c"
	echo '#include "runfile/reader.h"' >"$tree/src/runfile/reader_internal.h"
	run -0 check circles
}

@test "commands may include all" {
	printf '#include "%s"\n' record/options.h run/phases.h base/text.h >"$tree/src/cmd/run.c"
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
	echo 'sqlite3_open_v2(x, &y, 0, NULL);' >"$tree/src/runfile/database.c"
	run -0 check databases
	echo 'sqlite3_open(x, &y);' >"$tree/src/runfile/reader.c"
	run -1 check databases
	[[ "$output" == "src/runfile/reader.c:1: sqlite3_open()"* ]]
}

@test "a variable that says where our files are is not taken from a less privileged caller" {
	echo 'a = secure_getenv("HOME"); b = getenv("PATH");' >"$tree/src/runfile/reader.c"
	run -0 check environment
	echo 'a = getenv("STRAIN_DIR");' >"$tree/src/runfile/reader.c"
	run -1 check environment
	[[ "$output" == "src/runfile/reader.c:1: getenv()"* ]]
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

@test "a mistake in the table of a study is found, with its line" {
	layouts() { awk -f "$SOURCE_ROOT/data/studies/layouts.awk" "$BATS_TEST_TMPDIR/x.study"; }
	local file=$BATS_TEST_TMPDIR/x.study
	printf 'source: X\n\n[t]\nitem: T\ntitle: t\nkind: table\nwhere: a=b\nvalue: x; title y\n' >"$file"
	run -0 layouts
	[[ "$output" == *'.filters = {{"a", "b"}}'*'.measure = "x", .title = "y"'* ]]
	for mistake in 'kind: tabel' 'colour: red' 'where: a' 'value: x; times 3' 'ratio: a over b' 'rows: a, b, c, d, e'; do
		printf 'source: X\n\n[t]\n%s\nitem: T\n' "$mistake" >"$file"
		run -1 layouts
		[[ "${lines[-1]}" == *"x.study:4: "* ]]
	done
	printf 'source: X\n\n[t]\nitem: T\nkind: table\n' >"$file"
	run -1 layouts
	[[ "$output" == *"no title"* ]]
}
