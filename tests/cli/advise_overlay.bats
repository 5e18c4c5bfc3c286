#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# strain advise leaves the files of the job's directory as they are: probes run over an overlay.

load messages

setup() {
	# /tmp is memory on some machines.
	FOLDER=$(mktemp -d /var/tmp/strain-overlay-test-XXXXXX)
	mkdir "$FOLDER/work" "$FOLDER/temporary" "$FOLDER/work/sub"
	export TMPDIR="$FOLDER/temporary"
	cd "$FOLDER/work" || return
	echo old >checkpoint
	echo old >sub/settings
	ln -s checkpoint link
	# Marks itself. Overwrites, appends, removes, renames, and says what it sees of it.
	cat >job <<-'END'
		#!/bin/sh
		echo "saw $(cat checkpoint) $(id -u) $(pwd) $(ls saved 2>&1)"
		echo new >checkpoint.part
		mv checkpoint.part checkpoint
		echo line >>log
		echo new >"$PWD/sub/settings"
		rm link
		mkdir -p saved/deeper
		touch saved/deeper/file
		chmod 0 saved/deeper
		chmod 555 saved
		echo "wrote $(cat checkpoint) $(cat log) $(cat sub/settings) $(ls link 2>&1)"
		echo outside >>"${OUTSIDE:-/dev/null}"
		i=0
		while [ $i -lt 1000000 ]; do
			i=$((i + 1))
			"$STRAIN" mark iteration $i 8
			sleep 0.02
		done
	END
	chmod +x job
}

teardown() {
	cd /
	chmod -R u+rwx "$FOLDER"
	rm -rf "$FOLDER"
}

is_unchanged() {
	ls -lR
	[ "$(cat checkpoint) $(cat sub/settings) $(readlink link)" = "old old checkpoint" ]
	[ ! -e log ] && [ ! -e saved ] && [ ! -e checkpoint.part ]
}

job_runs() {
	local process
	for process in /proc/[0-9]*; do
		if [ "$(readlink "$process/cwd")" = "$PWD" ] &&
			tr '\0' ' ' <"$process/cmdline" 2>/dev/null | grep -q ' ./job '; then
			return 0
		fi
	done
	return 1
}

# No scratch folder, with its files, is left.
is_clean() {
	[ -z "$(find "$FOLDER" -name 'strain-overlay-[0-9]*')" ]
}

# Whether this user can mount an overlay in namespaces of its own, here.
can_mount() { # PREFIX...
	mkdir -p "$FOLDER/can/upper" "$FOLDER/can/work"
	chmod -R a+rwX "$FOLDER/can"
	"$@" unshare "${UNSHARE:---mount}" sh -c "mount -t overlay none \
		-o lowerdir=$FOLDER/work,upperdir=$FOLDER/can/upper,workdir=$FOLDER/can/work${USERXATTR:-} $FOLDER/work" ||
		skip "no overlay can be mounted here"
	rm -rf "$FOLDER/can"
}

can_unshare() {
	unshare -Ur true || skip "no user namespaces here"
}

field() {
	/usr/bin/python3 -c 'import json, sys
print(eval(sys.argv[2], {}, {"a": json.load(open(sys.argv[1]))}))' "$@"
}

stalls() { # ARGUMENT...
	run -0 --separate-stderr "$@" "$STRAIN" advise --stalls --limit 5s --error 50% --json "${MORE[@]}" -- ./job
	echo "$stderr"
	echo "$output" >"$FOLDER/found.json"
}

@test "a job's checkpoint and log are as before; each probe saw its own" {
	[ "$(id -u)" = 0 ] || skip "not root"
	can_mount
	MORE=(-o kept)
	stalls
	notes "$PWD"
	[ "$(field ../found.json 'a["in_place"], a["in_place_reason"]')" = "(False, None)" ]
	is_unchanged
	is_clean
	local name
	for name in kept/*.out; do
		cat "$name"
		grep -q "^saw old $(id -u) $PWD ls: " "$name"
		grep -q "^wrote new line new ls: " "$name"
	done
	"$STRAIN" sql kept/warm.strain 'select count(*) from run' >/dev/null
	[ "$(ls kept | grep -c overlay)" = 0 ]
}

@test "the same for another user, in a user namespace, whose number it keeps" {
	[ "$(id -u)" = 0 ] || skip "not root"
	command -v setpriv >/dev/null || skip "setpriv is not installed"
	local as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	"${as[@]}" test -x "$STRAIN" || skip "another user may not run $STRAIN"
	chown -R 65534:65534 "$FOLDER"
	UNSHARE=-Urm USERXATTR=,userxattr can_mount "${as[@]}"
	chown -R 65534:65534 "$FOLDER"
	MORE=(-o kept)
	stalls "${as[@]}"
	[ "$(field ../found.json 'a["in_place"]')" = False ]
	is_unchanged
	is_clean
	grep "^saw old 65534 $PWD ls: " kept/warm.out
	grep "^wrote new line new ls: " kept/warm.out
	# A file of another group cannot be copied in a user namespace: in place, and the file is named.
	chgrp 0 sub/settings
	rm -r kept
	stalls "${as[@]}"
	[ "$(field ../found.json 'a["in_place"], "sub/settings" in a["in_place_reason"]')" = "(True, True)" ]
	notes "$PWD/sub/settings"
	[ "$(cat sub/settings)" = new ]
}

@test "in place where it is asked for, and where the kernel refuses: with the reason, before it starts" {
	MORE=(--in-place)
	stalls
	notes --in-place
	[ "$(field ../found.json 'a["in_place"], "--in-place" in a["in_place_reason"]')" = "(True, True)" ]
	[ "$(cat checkpoint)" = new ]
	can_unshare
	# A user namespace in which no other can be made, and no mount namespace.
	chmod -R u+rwx saved
	rm -r saved
	echo old >checkpoint
	MORE=()
	stalls unshare -Ur sh -c 'cd /proc/sys/user && echo 0 >max_user_namespaces &&
		echo 0 >max_mnt_namespaces && cd "$OLDPWD" && exec "$@"' sh
	notes user.max_user_namespaces
	[[ "${stderr_lines[0]}" == *max_user_namespaces* ]]
	[ "$(field ../found.json 'a["in_place"], "max_user_namespaces" in a["in_place_reason"]')" = "(True, True)" ]
	[ "$(cat checkpoint)" = new ]
	is_clean
}

@test "what is mounted below the directory is not covered, and is named" {
	[ "$(id -u)" = 0 ] || skip "not root"
	can_mount
	mkdir "mounted here" there
	OUTSIDE="$FOLDER/work/mounted here/file" stalls unshare -m sh -c \
		'mount --bind there "mounted here" && exec "$@"' sh
	notes "$PWD" "$PWD/mounted here"
	grep -q outside there/file
	is_unchanged
}

@test "who reads the progress ends: so does the job, and no overlay is left" {
	can_mount
	local status=0
	bash -o pipefail -c '"$STRAIN" advise --stalls --limit 5s --error 50% -- ./job 2>&1 >/dev/null | head -n 1; exit "${PIPESTATUS[0]}"' || status=$?
	[ "$status" -eq 141 ]
	is_clean
}

@test "an overlay never lies in memory; folders left by a killed process are removed, others are not" {
	[ "$(id -u)" = 0 ] || skip "not root"
	can_mount
	[ "$(stat -f -c %T /dev/shm)" = tmpfs ] || skip "/dev/shm is not in memory"
	[ "$(stat -f -c %T .)" != tmpfs ] || skip "the test folder is in memory"
	mkdir -p -m 700 "$TMPDIR"/strain-overlay-0-{left,used,public,another}
	mkdir -p -m 0 "$TMPDIR/strain-overlay-0-left/work/work"
	chmod 755 "$TMPDIR/strain-overlay-0-public"
	chown 65534 "$TMPDIR/strain-overlay-0-another"
	ln -s "$FOLDER/work" "$TMPDIR/strain-overlay-0-link"
	exec 7<"$TMPDIR/strain-overlay-0-used"
	flock 7
	local memory
	memory=$(mktemp -d /dev/shm/strain-overlay-test-XXXXXX)
	MORE=(-o "$memory/kept")
	stalls
	rm -rf "$memory"
	[ "$(field ../found.json 'a["in_place"]')" = False ]
	is_unchanged
	[ "$(cd "$TMPDIR" && echo strain-overlay-*)" = \
		"strain-overlay-0-another strain-overlay-0-link strain-overlay-0-public strain-overlay-0-used" ]
}

@test "a job whose strain advise was killed ends, and so does one of Ctrl-C" {
	[ "$(id -u)" = 0 ] || skip "not root"
	can_mount
	local signal pid
	for signal in INT KILL; do
		"$STRAIN" advise --stalls -o "kept-$signal" -- ./job &
		pid=$!
		for _ in $(seq 200); do
			grep -q wrote "kept-$signal/warm.out" 2>/dev/null && break
			sleep 0.1
		done
		grep -q wrote "kept-$signal/warm.out"
		kill "-$signal" "$pid"
		wait "$pid" || true
		for _ in $(seq 200); do
			job_runs || break
			sleep 0.1
		done
		run -1 job_runs
		is_unchanged
		[ "$signal" = KILL ] || is_clean
	done
}
