#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# strain report DIRECTORY: which runs are on the page, what is said of the others. The page itself is
# tested in a browser (tests/web/sweep.mjs).

load messages

setup() {
	mkdir "$BATS_TEST_TMPDIR/work"
	cd "$BATS_TEST_TMPDIR/work"
	export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
	mkdir tiny.sweep
	for trial in 01-1 01-2 02-1 10-1; do
		"$BUILD_ROOT/tests/tools/make_run" "tiny.sweep/00$trial.strain" 3
	done
	echo 'command: [train]' >tiny.sweep/plan.yaml
	touch tiny.sweep/lock
	if "$STRAIN" report tiny.sweep -o probe.html 2>&1 | grep -q 'built without HTML pages'; then
		skip 'strain was built without HTML pages'
	fi
	rm -f probe.html
}

# A part of the page's data.
data() {
	sed -n 's/.*<script type="application\/json" id="data">\(.*\)<\/script>.*/\1/p' "$1" | python3 -c "
import json, sys
data = json.load(sys.stdin)
print($2)"
}

@test "the page of a sweep, and one line that says where and how large" {
	run --separate-stderr "$STRAIN" report tiny.sweep -o page.html
	[ "$status" -eq 0 ]
	[ -z "$output" ]
	[[ $stderr =~ ^strain:\ page.html,\ [0-9]+\ kB,\ 4\ runs$ ]]
	[ "$(head -c 15 page.html)" = '<!doctype html>' ]
	[ "$(data page.html 'data["name"], data["plan"].strip()')" = 'tiny command: [train]' ]
	[ "$(data page.html '*data["runs"]["names"]')" = '0001-1 0001-2 0002-1 0010-1' ]
	[ "$(data page.html 'len(data["details"]), all(d["lines"] for d in data["details"])')" = '4 True' ]
	"$STRAIN" report tiny.sweep/ -o - >other.html
	[ "$(data other.html '*data["runs"]["names"]')" = '0001-1 0001-2 0002-1 0010-1' ]
}

@test "what the plan knows: command, baseline, how many, which label comes first" {
	cat >tiny.sweep/plan.yaml <<-'EOT'
		command: [sh, -c, "train ${workers}; exit 0", "${batch_size}"]
		parameters: {workers: {values: [1, 2]}, batch_size: {values: [8, 32]}}
		repeats: 3
		baseline: {batch_size: 8}
	EOT
	"$STRAIN" report tiny.sweep -o page.html
	[ "$(data page.html 'data["command"], data["baseline"], data["planned"]')" = "sh -c 'train \${workers}; exit 0' \${batch_size} [['batch_size', '8']] 12" ]
	[ "$(data page.html '*[label["name"] for label in data["labels"]]')" = 'workers batch_size' ]
	# A plan that is none is shown, and no more.
	echo 'command: [' >tiny.sweep/plan.yaml
	"$STRAIN" report tiny.sweep -o page.html
	[ "$(data page.html 'data["plan"].strip(), data["command"], data["planned"]')" = 'command: [ None 0' ]
}

@test "several directories, and files beside them; a run that comes twice is there once" {
	mkdir more
	cp tiny.sweep/0001-1.strain more/
	"$STRAIN" report tiny.sweep more tiny.sweep/0002-1.strain -o page.html
	[ "$(data page.html 'len(data["runs"]["names"]), len(set(data["runs"]["names"]))')" = '5 5' ]
}

@test "every measure has a value or a reason" {
	"$STRAIN" report tiny.sweep -o page.html
	[ "$(data page.html 'sum(v is None and (m["reasons"] * 9)[i] < 0 for m in data["measures"] for i, v in enumerate(m["values"]))')" = 0 ]
}

@test "where lines end epochs, nobody knows how long the first took" {
	/usr/bin/python3 -c 'import sqlite3
with sqlite3.connect("tiny.sweep/0002-1.strain") as run:
    run.execute("INSERT INTO run VALUES (?, ?)", ("epochs", "lines end epochs"))'
	"$STRAIN" report tiny.sweep -o page.html
	[ "$(data page.html '*[(d["first_epoch_with_start"], d["epochs"][:4]) for d in data["details"][1:3]]')" = \
		'(False, [1, 0.8, 2, 0.8]) (True, [1, None, 2, 0.8])' ]
}

@test "what cannot be read is named, and the others make the page" {
	echo nothing >tiny.sweep/0003-1.strain
	run -1 --separate-stderr "$STRAIN" report tiny.sweep -o page.html
	line_names "${stderr_lines[0]}" tiny.sweep/0003-1.strain
	line_names "${stderr_lines[1]}" page.html "4 of 5"
	[ "$(data page.html 'data["unreadable"][0][0]')" = tiny.sweep/0003-1.strain ]
}

@test "directories without a run, and none at all" {
	mkdir empty
	fails_with 1 empty -- "$STRAIN" report empty -o page.html
	echo nothing >empty/a.strain
	run -1 --separate-stderr "$STRAIN" report empty -o page.html
	line_names "${stderr_lines[0]}" empty/a.strain
	line_names "${stderr_lines[1]}" empty
	run -1 "$STRAIN" report empty none -o page.html
	[[ ${lines[0]} == *none* ]]
	[ ! -e page.html ]
}

@test "what is still recorded is marked" {
	"$BUILD_ROOT/tests/tools/make_run" tiny.sweep/0004-1.strain +3
	sqlite3 tiny.sweep/0004-1.strain "UPDATE run SET value = $$ WHERE key = 'recorder_pid';
		UPDATE run SET value = $(cut -d ' ' -f 22 /proc/$$/stat) WHERE key = 'recorder_start_ticks';
		UPDATE run SET value = '$(cat /proc/sys/kernel/random/boot_id)' WHERE key = 'boot_id'"
	"$STRAIN" report tiny.sweep -o page.html
	[ "$(data page.html 'data["runs"]["outcomes"].count("live")')" = 1 ]
}

@test "a report beside a run is linked, from wherever the page is" {
	"$STRAIN" report tiny.sweep/0002-1.strain -o tiny.sweep/0002-1.html
	mkdir -p 'a b/c'
	"$STRAIN" report tiny.sweep -o 'a b/c/page.html'
	[ "$(data 'a b/c/page.html' '[d["report"] for d in data["details"] if d["report"]]')" = "['./../../tiny.sweep/0002-1.html']" ]
	cp -r tiny.sweep 'a b/<x>'
	"$STRAIN" report 'a b/<x>' -o page.html
	[ "$(data page.html '[d["report"] for d in data["details"] if d["report"]]')" = "['./a%20b/%3Cx%3E/0002-1.html']" ]
}

@test "a figure of directories: who draws it" {
	fails_with 2 page.pdf "strain compare --figure" -- "$STRAIN" report tiny.sweep -o page.pdf
	[ ! -e page.pdf ]
}
