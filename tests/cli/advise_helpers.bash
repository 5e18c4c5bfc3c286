# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
#
# What the tests of strain advise share: a folder of their own, outside of /tmp (a job's /tmp may be an
# overlay), the answer's fields, and that nothing runs on.

load messages

enter_folder() {
	FOLDER=$(mktemp -d /var/tmp/strain-advise-test-XXXXXX)
	cd "$FOLDER" || return
	export MALLOC_MMAP_THRESHOLD_=65536 # memory is the same in each run, and one run shows it
}

leave_folder() {
	[ -z "${FOLDER:-}" ] || { cd / && rm -rf "$FOLDER"; }
}

has_torch() {
	/usr/bin/python3 -c 'import torch' 2>/dev/null || skip "no PyTorch"
}

# Fails, and names it, if a job of this test still runs.
nothing_runs() { # WORD of its command
	local process
	for process in /proc/[0-9]*; do
		if [ "$(readlink "$process/cwd")" = "$PWD" ] &&
			tr '\0' ' ' <"$process/cmdline" 2>/dev/null | grep -q -e "$1" -e 'sleep 77'; then
			tr '\0' ' ' <"$process/cmdline"
			return 1
		fi
	done
}

# An expression over the answer.
field() { # EXPRESSION [FILE]
	/usr/bin/python3 -c 'import json, sys
a = json.load(open(sys.argv[2]))
print(eval(sys.argv[1], {}, {"a": a, "largest": a["largest_batch"], "runs": a["runs"]}))' \
		"$1" "${2:-answer.json}"
}

# Some hundred seconds of training: not part of every run of the suite.
is_slow() {
	[ -n "${STRAIN_SLOW_TESTS:-}" ] || skip "slow: set STRAIN_SLOW_TESTS=1"
}

can_limit() {
	"$STRAIN" run --no-verdict -o can --memory 1GB -- true 2>/dev/null || skip "no cgroup limits memory here"
}
