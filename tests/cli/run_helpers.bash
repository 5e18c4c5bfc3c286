# SPDX-License-Identifier: GPL-3.0-or-later
#
# For the tests of `strain run`: runs go to a folder of the test's own.

load messages

setup() {
	export STRAIN_DIR="$BATS_TEST_TMPDIR/runs"
	mkdir "$STRAIN_DIR"
	cd "$BATS_TEST_TMPDIR" || return 1
	unset RANK SLURM_PROCID OMPI_COMM_WORLD_RANK PMI_RANK SLURM_STEP_ID
}

# The one run file of the test, or a failure.
only_run() {
	local files=("$STRAIN_DIR"/*)
	[ ${#files[@]} -eq 1 ] && [ -f "${files[0]}" ] && echo "${files[0]}"
}

# A key of table run.
run_key() {
	python_sql "$1" "SELECT value FROM run WHERE key = '$2'"
}

# The rows that a query gives, as Python prints them. Through strain: spans may be in blocks.
python_sql() {
	"$STRAIN" sql --json "$1" "$2" | /usr/bin/python3 -c '
import json, sys
for row in json.load(sys.stdin):
    print(*row.values(), sep="|")'
}

# Waits until a command succeeds; a minute at most.
eventually() {
	local tries
	for ((tries = 0; tries < 1200; tries++)); do
		if "$@"; then
			return 0
		fi
		sleep 0.05
	done
	echo "never succeeded: $*"
	return 1
}

# The recorder that records a launcher's job: pid of the launcher.
# Of the launcher's children the one that leads a session; others have its name until they take
# theirs.
recorder_of() {
	local pid
	for pid in $(pgrep -P "$1" -x strain-record); do
		if [ "$(ps -o sid= -p "$pid" | tr -d ' ')" = "$pid" ]; then
			echo "$pid"
		fi
	done
}

# What passes a launcher's job's output on, and lives: pid of the launcher.
forwarder_of() {
	pgrep -P "$1" -x -r D,R,S strain-forward
}
