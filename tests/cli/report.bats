#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# strain report: what is written, and what is refused. The page itself is tested in a browser
# (tests/web).

bats_require_minimum_version 1.5.0

setup() {
	mkdir "$BATS_TEST_TMPDIR/work"
	cd "$BATS_TEST_TMPDIR/work"
	"$BUILD_ROOT/tests/tools/make_run" run.strain 5
	if "$STRAIN" report run.strain -o probe.html 2>&1 | grep -q 'built without HTML pages'; then
		skip 'strain was built without HTML pages'
	fi
	rm -f probe.html
}

@test "a page, and one line that says where and how large" {
	run --separate-stderr "$STRAIN" report run.strain -o page.html
	[ "$status" -eq 0 ]
	[ -z "$output" ]
	[[ $stderr =~ ^strain:\ page.html,\ [0-9]+\ kB$ ]]
	[ "$(head -c 15 page.html)" = '<!doctype html>' ]
	[ "$(find . -type f | sort | tr '\n' ' ')" = './page.html ./run.strain ' ]
}

@test "report.html without -o, the newest run without RUN" {
	"$STRAIN" report
	grep -q '"name":"run"' report.html
}

@test "a report is replaced" {
	"$STRAIN" report run.strain -o page.html
	echo changed >>page.html
	"$STRAIN" report run.strain -o page.html
	! grep -q changed page.html
}

@test "on standard output" {
	"$STRAIN" report run.strain -o - >page.html
	[ "$(tail -n 1 page.html)" = '</html>' ]
}

@test "no address of anything: the page asks no network" {
	"$STRAIN" report run.strain -o page.html
	run -1 grep -oE '(https?:)?//[a-z0-9.-]+\.[a-z]{2,}' page.html
	grep -q "default-src 'none'" page.html
}

@test "what comes from a job is never markup" {
	"$STRAIN" report run.strain -o page.html
	run -1 grep -q '<b>worker' page.html
	[ "$(grep -o '</script>' page.html | wc -l)" -eq 2 ]
	grep -q 'u003cscript' page.html
}

@test "a run and any other file are not replaced by mistake" {
	cp run.strain kept.strain
	run -2 "$STRAIN" report run.strain -o run.strain
	cmp run.strain kept.strain
	echo notes >notes.html
	run -1 "$STRAIN" report run.strain -o notes.html
	[ "$(cat notes.html)" = notes ]
	"$STRAIN" report run.strain -o notes.html --force
	[ "$(head -c 15 notes.html)" = '<!doctype html>' ]
}

@test "outputs that cannot be: a directory, a device, a folder that is not there" {
	mkdir folder.html
	run -1 "$STRAIN" report run.strain -o folder.html
	[ "$output" = 'strain: cannot write folder.html: it is a directory' ]
	ln -s /dev/null null.html
	run -1 "$STRAIN" report run.strain -o null.html
	[ "$output" = 'strain: cannot write null.html: it is not a regular file' ]
	run -1 "$STRAIN" report run.strain -o none/page.html
	[ "$output" = 'strain: cannot write none/page.html: No such file or directory' ]
}

@test "an ending that is neither a page's nor a figure's is an error that names those that are" {
	for name in x.jpg x.strain x folder/x.d/x .html /dev/null x.html.gz; do
		run -2 "$STRAIN" report run.strain -o "$name"
		[ "$output" = "strain: --output: expected .html, .htm (a page), .pdf, .svg or .png (a figure), found '$name' (strain report --help)" ]
		[ ! -e "$name" ] || [ "$name" = /dev/null ]
	done
	"$STRAIN" report run.strain -o X.HTM
	[ "$(head -c 15 X.HTM)" = '<!doctype html>' ]
}

@test "what is no run: one line, and nothing half-written" {
	echo text >no.strain
	run -1 "$STRAIN" report no.strain -o page.html
	[ "${#lines[@]}" -eq 1 ]
	[[ $output == strain:*no.strain* ]]
	run -1 "$STRAIN" report none.strain -o page.html
	[ "${#lines[@]}" -eq 1 ]
	run -1 "$STRAIN" report no.strain none.strain -o page.html
	[ "${#lines[@]}" -eq 2 ]
	run -1 --separate-stderr "$STRAIN" report no.strain -o -
	[ -z "$output" ]
	[ "$(find . -type f | sort | tr '\n' ' ')" = './no.strain ./run.strain ' ]
}

@test "of several runs those that can be read make the page, the others are named" {
	echo text >no.strain
	cp run.strain other.strain
	run -1 --separate-stderr "$STRAIN" report none.strain run.strain no.strain other.strain -o page.html
	[ "${#stderr_lines[@]}" -eq 3 ]
	[ "${stderr_lines[0]}" = 'strain: none.strain: No such file or directory' ]
	[ "${stderr_lines[1]}" = 'strain: no.strain: not a run file' ]
	[[ ${stderr_lines[2]} =~ ^strain:\ page.html,\ [0-9]+\ kB,\ 2\ of\ 4\ runs$ ]]
	python3 - <<-'END'
	import json, re
	page = open("page.html").read()
	start = page.index('{"version":1,')
	data, _ = json.JSONDecoder().raw_decode(page[start:])
	assert [run["name"] for run in data["runs"]] == ["run", "other"], data["runs"]
	END
}

@test "a full disk is an error" {
	[ -w /dev/full ] || skip 'no /dev/full'
	run -1 sh -c '"$STRAIN" report run.strain -o - >/dev/full'
	[ "${#lines[@]}" -eq 1 ]
	[[ $output == *'No space left on device'* ]]
}

@test "wrong usage" {
	run -2 "$STRAIN" report --no-such-option
}
