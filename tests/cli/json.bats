#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# docs/json.md has every key that a command prints with --json, and no other.

bats_require_minimum_version 1.5.0

setup() {
	unset STRAIN_DIR
	cd "$BATS_TEST_TMPDIR" || return
}

# Keeps what a command prints: SECTION WORD...; the section is the command and its options as the page's
# headings have them, what is behind ~ tells several apart.
keep() {
	local section=$1
	shift
	"$STRAIN" "$@" --json >"said/$section" || [ $? -eq 1 ]
}

@test "every key that is printed is documented, and the reverse" {
	mkdir said sweeps
	"$BUILD_ROOT/tests/tools/make_run" marked.strain 30 10ms 0 900 2
	"$BUILD_ROOT/tests/tools/make_run" a.strain 2
	"$STRAIN" run -o own.strain -- sh -c '"$STRAIN" mark begin mine; sleep 0.2; "$STRAIN" mark end'
	cat >plan.yaml <<-'EOF'
		command: sh -c 'exit ${code}'
		parameters:
		  code: {values: [0, 1]}
		repeats: 2
	EOF
	keep "strain sweep --dry-run" sweep plan.yaml -o sweeps/plan.sweep --dry-run
	keep "strain sweep" sweep plan.yaml -o sweeps/plan.sweep
	keep "strain show~1" show marked
	keep "strain show~2" show own
	mkdir ranks
	"$STRAIN" run --job one -o ranks/r0.strain -- true
	"$STRAIN" run --job one -o ranks/r1.strain -- true
	keep "strain show DIR~1" show ranks
	python3 -c 'import json; a = json.load(open("said/strain show DIR~1"))
a["slowest"] = dict.fromkeys(("rank", "reason", "others_wait", "latest", "phase", "longer_s", "headline", "same_verdict")) # cli ranks has them
json.dump(a, open("said/strain show DIR~1", "w"))'
	keep "strain ls~1" ls
	keep "strain ls~2" ls sweeps
	keep "strain compare~1" compare marked a
	keep "strain compare~2" compare sweeps/plan.sweep
	keep "strain compare --layout list" compare --layout list
	keep "strain export" export a -m hw.power
	keep "strain export --wide" export a --wide -m hw.power
	keep "strain doctor" doctor --metrics
	keep "strain version" version
	python3 "$SOURCE_ROOT/tests/cli/json_keys.py" "$SOURCE_ROOT/docs/json.md" said \
		--without "strain advise" --without "strain advise --from" --without "strain advise --stalls" --without "strain advise --try"
}

@test "the same of strain advise" {
	FOLDER=$(mktemp -d /var/tmp/strain-json-test-XXXXXX) # /tmp is memory on some machines
	mkdir said
	head -c 4000000 /dev/zero >"$FOLDER/data.bin"
	keep "strain advise --stalls" advise --stalls --limit 5s --error 50% --json -- sh -c "
		exec 3<'$FOLDER/data.bin'
		i=0
		while :; do
			i=\$((i + 1))
			\"\$STRAIN\" mark iteration \$i 8
			dd if=/dev/fd/3 of=/dev/null bs=1M count=1 2>/dev/null
		done"
	rm -r "$FOLDER"
	keep "strain advise --try" advise --try --repeats 2 --json --with OMP_NUM_THREADS=1 -- \
		"$BUILD_ROOT/tests/tools/marking" by_threads
	cat said/*
	python3 - "$SOURCE_ROOT" <<-'EOF'
		import json, sys
		from pathlib import Path
		sys.path.insert(0, sys.argv[1] + "/tests/cli")
		sys.dont_write_bytecode = True
		import json_keys
		for section in ("strain advise --stalls", "strain advise --try"):
		    found = {}
		    json_keys.walk(json.loads(Path("said", section).read_text()), "", found)
		    said = json_keys.documented(Path(sys.argv[1]) / "docs/json.md")[section]
		    wrong = list(json_keys.compare(section, said, found))
		    assert not wrong, wrong
	EOF
}

@test "every command has --json or is named among those that print no data" {
	for command in $("$STRAIN" --help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p'); do
		"$STRAIN" "$command" --help | grep -q -- --json ||
			sed -n '/^# /,/^## /p' "$SOURCE_ROOT/docs/json.md" | grep -qw "$command" || {
			echo "strain $command"
			return 1
		}
	done
}

@test "a key that is not documented, or not printed, is found" {
	mkdir said
	"$STRAIN" version --json >"said/strain version"
	printf '## strain version\n\n| where | keys | what |\n| --- | --- | --- |\n|  | `number` | x |\n' >page.md
	run -1 python3 "$SOURCE_ROOT/tests/cli/json_keys.py" page.md said
	[ "${lines[0]}" = "strain version: .version: printed, not in docs/json.md" ]
	[ "${lines[1]}" = "strain version: .number: in docs/json.md, not printed" ]
}
