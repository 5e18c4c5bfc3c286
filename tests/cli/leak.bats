#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Memory that grows with the iterations, and memory that is filled once. Series: test_leak_facts.

load messages

setup() {
	cd "$BATS_TEST_TMPDIR"
	python3 -c 'import sys; assert sys.version_info >= (3, 6)' 2>/dev/null || skip 'no python3'
	# An iteration lasts until more than one reading was due, however slow the machine is.
	cat >train.py <<-'EOF'
	import sys
	import time

	import strain

	kept = []
	for step in strain.iterations(range(60)):
	    if sys.argv[1] == "leaks" or step < 20:
	        kept.append(b"x" * (3 << 20))
	    time.sleep(0.025)
	EOF
}

growth() {
	"$STRAIN" show --json run.strain | python3 -c '
import json, sys
g = json.load(sys.stdin)["job"]["memory_growth"]
print(eval(sys.argv[1]))' "$1"
}

held() {
	"$STRAIN" show --json run.strain | python3 -c '
import json, sys
print([h["bytes"] for h in json.load(sys.stdin)["verdict"]["memory_contents"] if h["what"] == sys.argv[1]][0])' "$1"
}

@test "a leak is a warning, an event and a figure" {
	"$STRAIN" run -o run.strain -- python3 train.py leaks 2>err
	[ "$(growth 'g["leak"]')" = True ]
	[ "$(growth '2.5e6 < g["bytes_per_iteration"]["value"] < 4e6')" = True ]
	[ "$(growth 'g["bytes_per_iteration"]["low"] <= g["bytes_per_iteration"]["value"] <= g["bytes_per_iteration"]["high"]')" = True ]
	[ "$(growth 'g["gained_bytes"] > 64e6 and g["full_in_s"] > 0')" = True ]
	[ "$(held 'kept from step to step' | cut -d. -f1)" -gt 64000000 ]
	grep -q ' 3\.[0-9] MB ' err
	run -0 "$STRAIN" show run.strain
	[[ "$output" =~ $'\nWarning   '[^$'\n']*" 3."[0-9]" MB " ]]
	"$STRAIN" finish run.strain 2>/dev/null # says it again, writes it once
	[ "$("$STRAIN" sql --csv run.strain "SELECT count(*) FROM event WHERE kind = 'memory_growth'" | sed -n 2p)" = 1 ]
}

@test "what is filled once is no leak" {
	"$STRAIN" run -o run.strain -- python3 train.py fills 2>err
	[ "$(growth 'g["leak"]')" = False ]
	[ "$(growth 'g["full_in_s"]')" = None ]
	run ! grep ' MB .*iteration' err
	run -0 "$STRAIN" show run.strain
	[[ "$output" != *$'\nWarning  '* ]]
	[ "$("$STRAIN" sql --csv run.strain "SELECT count(*) FROM event WHERE kind = 'memory_growth'" | sed -n 2p)" = 0 ]
}
