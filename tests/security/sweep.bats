#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# strain sweep in folders that others made or can write, and folders that hold what others made.

load users

prepare() {
	MINE=$HOMES/$VICTIM
	THEIRS=$HOMES/$ATTACKER
}

victim() {
	as "$VICTIM" "$@"
}

attacker() {
	as "$ATTACKER" "$@"
}

# As all errors are.
is_one_line() {
	[ "$(wc -l <<<"$1")" = 1 ] && [[ "$1" == "strain: "* ]]
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

# COMMAND FOLDER: a plan of root's in it.
plan() {
	printf 'command: [sh, -c, %s]\ngrace: 0.4s\n' "'$1'" >"$2/plan.yaml"
}

# A run file that names a process as part of a job that still runs: PID FILE
forge_run() {
	"$STRAIN" run --no-verdict -o "$2.strain" true
	mv "$2.strain" "$2"
	local start
	start=$(awk '{ sub(/.*\) /, ""); print $20 }' "/proc/$1/stat")
	sqlite3 "$2" "DELETE FROM run WHERE key IN ('end_ns', 'state', 'status');
		UPDATE entity SET key = '$1:$start', name = 'sleep' WHERE kind = 'process'"
	[ "$(sqlite3 "$2" "SELECT count(*) FROM entity WHERE key = '$1:$start'")" -ge 1 ]
}

start_sleeper() {
	victim sh -c 'echo $$ >pid; exec sleep 1000' 3>&- >/dev/null 2>&1 &
	eventually is_sleeping
	SLEEPER=$(cat pid)
	STARTED=$SLEEPER
}

is_sleeping() {
	[ -s pid ] && [ "$(cat "/proc/$(cat pid)/comm")" = sleep ]
}

@test "the plan of a folder that belongs to somebody else is not run" {
	attacker mkdir -m 777 "$THEIRS/s"
	plan "touch $MINE/pwned" "$THEIRS/s"
	chown "$ATTACKER" "$THEIRS/s/plan.yaml"
	run victim "$STRAIN" sweep "$THEIRS/s"
	[ ! -e "$MINE/pwned" ]
	[ "$status" = 1 ]
	is_one_line "$output"
	prints "$THEIRS/s" "$ATTACKER" "$VICTIM" plan.yaml
	# Nor with another folder for its runs; nor as root.
	run victim "$STRAIN" sweep "$THEIRS/s" -o out
	[ "$status" = 1 ]
	prints "$THEIRS/s" "$ATTACKER"
	[ ! -e "$MINE/out" ]
	run "$STRAIN" sweep "$THEIRS/s"
	[ "$status" = 1 ]
	prints "$THEIRS/s" "$ATTACKER" 0
	[ ! -e "$MINE/pwned" ]
	# It can be looked at.
	run victim "$STRAIN" sweep "$THEIRS/s" --dry-run
	[ "$status" = 0 ]
	[[ "$output" == *"touch $MINE/pwned"* ]]
}

@test "a folder that others can write is not obeyed, with what to do" {
	victim mkdir -m 777 s
	attacker sh -c "echo 'command: [touch, $MINE/pwned]' >'$MINE/s/plan.yaml'"
	run victim "$STRAIN" sweep s
	[ ! -e pwned ]
	[ "$status" = 1 ]
	is_one_line "$output"
	prints s 0777 "chmod go-w 's'"
	# What another has put there is still another's.
	victim chmod go-w s
	run victim "$STRAIN" sweep s
	[ "$status" = 1 ]
	prints s/plan.yaml "$ATTACKER"
	[ ! -e pwned ]
	# And a plan of one's own that others can write.
	rm s/plan.yaml
	plan true s
	chown "$VICTIM" s/plan.yaml
	chmod 666 s/plan.yaml
	attacker sh -c "echo 'command: [touch, $MINE/pwned]' >'$MINE/s/plan.yaml'"
	run victim "$STRAIN" sweep s
	[ "$status" = 1 ]
	prints s/plan.yaml 0666
	[ ! -e pwned ]
}

@test "links that wait in a folder are not written through" {
	victim sh -c 'echo precious >precious'
	plan 'exit 1' .
	chown "$VICTIM" plan.yaml
	# In another's folder.
	attacker mkdir -m 777 "$THEIRS/out"
	attacker ln -s "$MINE/precious" "$THEIRS/out/plan.yaml.part"
	run victim "$STRAIN" sweep plan.yaml -o "$THEIRS/out"
	[ "$(cat precious)" = precious ]
	[ "$status" = 1 ]
	[[ "$output" == *"dubious ownership"* ]]
	# In one's own, which is a copy of his.
	attacker mkdir -m 755 "$THEIRS/copied"
	attacker ln -s "$MINE/precious" "$THEIRS/copied/plan.yaml.part"
	attacker ln -s "$MINE/precious" "$THEIRS/copied/plan.yaml.next.part"
	victim cp -r "$THEIRS/copied" out
	run victim "$STRAIN" sweep plan.yaml -o out
	[ "$(cat precious)" = precious ]
	[ "$status" = 0 ]
	# A link to a folder.
	attacker ln -s "$MINE/empty" "$THEIRS/link"
	victim mkdir empty
	run victim "$STRAIN" sweep plan.yaml -o "$THEIRS/link"
	[ "$status" = 1 ]
	prints link "$ATTACKER"
	[ -z "$(ls empty)" ]
}

@test "the log of the next trial is not written through a link that somebody makes meanwhile" {
	victim sh -c 'echo precious >precious'
	attacker mkdir -m 777 "$THEIRS/out"
	cat >plan.yaml <<-EOF
		command: [sh, -c, 'ln -sf $MINE/precious "\${to}/0002-1.log"; echo overwritten']
		parameters: {to: {values: ["$THEIRS/out", "$MINE/out"]}}
		order: plan
	EOF
	chown "$VICTIM" plan.yaml
	run victim "$STRAIN" sweep plan.yaml -o "$THEIRS/out"
	[ "$(cat precious)" = precious ]
	[ "$status" = 1 ]
	sed -i "s,\"$THEIRS/out\",\"./out\"," plan.yaml
	run victim "$STRAIN" sweep plan.yaml -o out
	[ "$(cat precious)" = precious ]
	[ "$status" = 0 ]
}

@test "a file that names processes does not have them ended" {
	start_sleeper
	attacker mkdir -m 755 "$THEIRS/s"
	plan true "$THEIRS/s"
	forge_run "$SLEEPER" "$THEIRS/s/0001-1.running"
	chmod 644 "$THEIRS/s/0001-1.running"
	chown -R "$ATTACKER" "$THEIRS/s"
	victim cp -r "$THEIRS/s" mine
	run victim "$STRAIN" sweep mine
	kill -0 "$SLEEPER"
	[ "$status" = 0 ]
	prints 1 success
}

@test "what a sweep makes is for its user alone, whatever the umask" {
	plan 'exit 3' .
	victim sh -c 'umask 0; exec "$@"' sh "$STRAIN" sweep plan.yaml
	[ "$(find plan.sweep -printf '%m %f\n' | sort -k 2)" = \
		"$(printf '%s\n' "600 0001-1.log" "600 0001-1.strain" "600 lock" "700 plan.sweep" "600 plan.yaml" | sort -k 2)" ]
}

@test "a machine that is out of processes refuses no trial for good" {
	command -v prlimit >/dev/null || skip "prlimit is not installed"
	# One who runs nothing else: no other test's.
	local alone=61236
	install -d -m 0755 -o $alone -g $alone "$HOMES/$alone"
	cd "$HOMES/$alone"
	printf 'command: [sh, -c, "exit 0"]\nresources: {cpus: 1}\n' >plan.yaml
	# The sweep, its keeper, and who is to start the job: each is the last that there may be.
	local most
	for most in 1 2 3; do
		run as $alone prlimit --nproc=$most:1000 "$STRAIN" sweep plan.yaml
		echo "$output"
		[ "$status" = 1 ]
		[[ "${lines[-1]}" == "strain: trial 0001-1: "*"Resource temporarily unavailable" ]]
		[ -z "$(find plan.sweep -name '*.strain')" ]
	done
	run as $alone "$STRAIN" sweep plan.yaml
	[ "$status" = 0 ]
	prints 1 success
}

@test "a recorder that /proc hides is not taken for dead" {
	unshare -m true 2>/dev/null || skip "no mount namespace of one's own here"
	cat >look <<-'EOF'
		set -e
		mount -t proc -o hidepid=2 proc /proc
		setpriv --reuid "$2" --regid "$2" --clear-groups "$STRAIN" run --no-verdict -o "$3/run.strain" sleep 1000 3>&- >/dev/null 2>&1 &
		launcher=$!
		until [ -n "$(find "$3" -name run.strain -size +0)" ]; do sleep 0.05; done
		sleep 1
		chmod 666 "$3"/run.strain*
		setpriv --reuid "$1" --regid "$1" --clear-groups "$STRAIN" ls --json "$3/run.strain" >seen || true
		# One that has not written for long may be stopped: its run is not closed behind its back.
		pkill -STOP -P $launcher -x strain-record
		touch -d '1 hour ago' "$3"/run.strain*
		setpriv --reuid "$1" --regid "$1" --clear-groups "$STRAIN" ls --json "$3/run.strain" >later || true
		sqlite3 "$3/run.strain" "SELECT count(*) FROM run WHERE key = 'end_ns'" >ends
		pkill -KILL -P $launcher
		wait || true
	EOF
	attacker mkdir -m 777 "$THEIRS/runs"
	HOME=$MINE XDG_CACHE_HOME=$MINE/.cache unshare -m bash look "$VICTIM" "$ATTACKER" "$THEIRS/runs"
	cat seen
	[ "$(jq -r '.[0].state' seen)" = live ]
	cat later
	[ "$(jq -r '.[0].state' later)" = "cut off" ]
	[ "$(cat ends)" = 0 ]
}
