#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# strain report: what is written, and what is refused. The page itself is tested in a browser
# (tests/web).

load messages

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
	run ! grep -q changed page.html
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
	fails_with 1 folder.html -- "$STRAIN" report run.strain -o folder.html
	ln -s /dev/null null.html
	fails_with 1 null.html -- "$STRAIN" report run.strain -o null.html
	[ -L null.html ]
	fails_with 1 none/page.html "No such file or directory" -- "$STRAIN" report run.strain -o none/page.html
}

@test "an ending that is neither a page's nor a figure's is an error that names those that are" {
	for name in x.jpg x.strain x folder/x.d/x .html /dev/null x.html.gz; do
		fails_with 2 --output .html .htm .pdf .svg .png "'$name'" -- "$STRAIN" report run.strain -o "$name"
		[ ! -e "$name" ] || [ "$name" = /dev/null ]
	done
	"$STRAIN" report run.strain -o X.HTM
	[ "$(head -c 15 X.HTM)" = '<!doctype html>' ]
}

@test "what is no run: one line, and nothing half-written" {
	echo text >no.strain
	fails_with 1 no.strain -- "$STRAIN" report no.strain -o page.html
	fails_with 1 none.strain -- "$STRAIN" report none.strain -o page.html
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
	line_names "${stderr_lines[0]}" none.strain "No such file or directory"
	line_names "${stderr_lines[1]}" no.strain
	line_names "${stderr_lines[2]}" page.html kB "2 of 4"
	python3 - <<-'END'
	import json, re
	page = open("page.html").read()
	start = page.index('{"version":1,')
	data, _ = json.JSONDecoder().raw_decode(page[start:])
	assert [run["name"] for run in data["runs"]] == ["run", "other"], data["runs"]
	END
}

@test "a reason for which several things are missing is listed once" {
	"$STRAIN" run --no-verdict -o none.strain sleep 0.2
	"$STRAIN" report none.strain -o none.html
	/usr/bin/python3 - none.html <<-'EOF'
		import json, sys
		page = open(sys.argv[1], encoding="utf-8").read()
		at = page.rindex('"missing":[') + len('"missing":')
		missing = json.JSONDecoder().raw_decode(page[at:])[0]
		reasons = [m["reason"] for m in missing]
		assert reasons and len(reasons) == len(set(reasons)), reasons
	EOF
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
