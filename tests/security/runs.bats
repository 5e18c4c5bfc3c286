#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Run files and outputs in folders where another user can make names, and files of another user.

load users

prepare() {
	SHARED=$HOMES/shared
	install -d -m 1777 "$SHARED"
	cp "$SOURCE_ROOT/tests/traces/schema-1001-onednn.strain" "$HOMES/sound.strain"
	chmod 0644 "$HOMES/sound.strain"
}

# Waits until a command succeeds.
until_true() {
	local tries
	for ((tries = 0; tries < 3000; tries++)); do
		! "$@" 2>/dev/null || return 0
		sleep 0.02
	done
	return 1
}

# What SQLite looks for beside a run, made before by the attacker for all to write.
make_beside() {
	local name
	for name in "$1-wal" "$1-shm" "$1-journal"; do
		as $ATTACKER sh -c "umask 0; : >'$name'"
	done
}

@test "a recording goes into no log that another user has made" {
	make_beside "$SHARED/x.strain"
	run --separate-stderr as $VICTIM "$STRAIN" run -o "$SHARED/x.strain" -- true
	[ "$status" -ne 0 ]
	line_names "$stderr" "$ATTACKER"
	local name
	for name in wal shm journal; do
		[ ! -s "$SHARED/x.strain-$name" ]
	done
	[ ! -e "$SHARED/x.strain" ]
}

@test "a name beside which somebody made a log before is not chosen" {
	local second
	for ((second = 0; second < 120; second++)); do
		make_names+=("$SHARED/true-$(date -d "+$second seconds" +%Y%m%d-%H%M%S).strain-wal")
	done
	as $ATTACKER sh -c 'umask 0; for name; do : >"$name"; done' - "${make_names[@]}"
	as $VICTIM env STRAIN_DIR="$SHARED" "$STRAIN" run -- true 2>said
	cat said
	local runs=("$SHARED"/*.strain)
	[ ${#runs[@]} -eq 1 ]
	[[ ${runs[0]} == *-2.strain ]]
	run -0 as $VICTIM "$STRAIN" show "${runs[0]}"
}

# A run of the attacker's in WAL mode, in a folder where the victim cannot write.
attackers_run() {
	cp "$HOMES/sound.strain" "$HOMES/$ATTACKER/x.strain"
	sqlite3_python "$HOMES/$ATTACKER/x.strain"
	chown $ATTACKER:$ATTACKER "$HOMES/$ATTACKER"/x.strain*
	chmod 0644 "$HOMES/$ATTACKER"/x.strain*
}

# Leaves the file in WAL mode with a log beside it.
sqlite3_python() {
	"$PYTHON" - "$1" <<-'EOF'
		import os, sqlite3, sys
		database = sqlite3.connect(sys.argv[1])
		database.execute("PRAGMA journal_mode = WAL")
		database.execute("INSERT INTO label VALUES ('from_the_log', 'yes')")
		database.commit()
		os._exit(0)
	EOF
}

@test "another user's run is read with its log, and a FIFO beside it does not block" {
	attackers_run
	rm "$HOMES/$ATTACKER/x.strain-shm"
	as $ATTACKER mkfifo "$HOMES/$ATTACKER/x.strain-journal"
	as $VICTIM mkdir copies
	run -0 as $VICTIM env TMPDIR="$PWD/copies" timeout -s KILL 100 "$STRAIN" show "$HOMES/$ATTACKER/x.strain"
	[[ $output == *from_the_log=yes* ]]
	[ -z "$(ls copies)" ]
}

@test "a log of 3 GB of holes is not copied" {
	attackers_run
	as $ATTACKER truncate -s 3G "$HOMES/$ATTACKER/x.strain-wal"
	as $VICTIM mkdir copies
	run --separate-stderr as $VICTIM env TMPDIR="$PWD/copies" prlimit --fsize=100000000 \
		timeout -s KILL 100 "$STRAIN" show "$HOMES/$ATTACKER/x.strain"
	[ "$status" -eq 1 ]
	line_names "$stderr" "1024 MiB"
	[ -z "$(ls copies)" ]
}

@test "what is beside a run and not its owner's is not read" {
	install -o $VICTIM -g $VICTIM -m 0600 "$HOMES/sound.strain" "$SHARED/x.strain"
	as $VICTIM "$STRAIN" show "$SHARED/x.strain" >before
	cp "$HOMES/sound.strain" "$HOMES/evil.strain"
	sqlite3_python "$HOMES/evil.strain"
	install -o $ATTACKER -m 0644 "$HOMES/evil.strain-wal" "$SHARED/x.strain-wal"
	as $VICTIM "$STRAIN" show "$SHARED/x.strain" >after
	cmp before after
}

@test "a run of another user, whose shared memory he truncates all the time, is read" {
	as $ATTACKER "$STRAIN" run -o "$HOMES/$ATTACKER/x.strain" -- sleep 100 3>&- &
	STARTED=$!
	until_true test -e "$HOMES/$ATTACKER/x.strain-shm"
	sleep 1
	local recorder
	recorder=$(as $ATTACKER "$STRAIN" sql --csv "$HOMES/$ATTACKER/x.strain" \
		"SELECT value FROM run WHERE key = 'recorder_pid'" | tail -1)
	kill -STOP "$recorder" # else the truncation ends it, too
	STARTED+=" $recorder"
	chmod 0666 "$HOMES/$ATTACKER"/x.strain*
	as $ATTACKER "$PYTHON" -c 'import os, sys
while True:
    os.truncate(sys.argv[1], 0)
    os.truncate(sys.argv[1], 32768)' "$HOMES/$ATTACKER/x.strain-shm" 3>&- &
	STARTED+=" $!"
	local try
	for try in {1..20}; do
		run as $VICTIM timeout -s KILL 100 "$STRAIN" show "$HOMES/$ATTACKER/x.strain"
		echo "$try: $status: $output"
		[ "$status" -le 1 ]
	done
}

@test "an output takes the place of a link, and leaves alone where it leads" {
	echo precious >mine
	chown $VICTIM mine
	chmod 0600 mine
	as $ATTACKER ln -s "$PWD/mine" "$SHARED/table.csv"
	chmod 0777 "$SHARED" # a kernel with protected_symlinks follows no link in a sticky folder
	cp "$HOMES/sound.strain" "$HOMES/other.strain"
	as $VICTIM "$STRAIN" compare -o "$SHARED/table.csv" "$HOMES/sound.strain" "$HOMES/other.strain"
	[ "$(cat mine)" = precious ]
	[ "$(stat -c %a mine)" = 600 ]
	[ ! -L "$SHARED/table.csv" ]
	grep -q sound "$SHARED/table.csv"
}

@test "an output does not go to another user by his FIFO or his link to a descriptor" {
	as $ATTACKER sh -c "umask 0; mkfifo '$SHARED/fifo.csv'; ln -s /proc/self/fd/9 '$SHARED/fd.csv'"
	chmod 0755 "$SHARED" # where even root may open what is another's
	as $ATTACKER timeout 60 cat "$SHARED/fifo.csv" >"$HOMES/$ATTACKER/got" 3>&- &
	sleep 0.3
	run as $VICTIM "$STRAIN" compare "$HOMES/sound.strain" "$HOMES/sound.strain" -o "$SHARED/fifo.csv" --force
	as $ATTACKER sh -c ": >'$SHARED/fifo.csv'" # ends the reader
	[ "$status" -ne 0 ]
	[ ! -s "$HOMES/$ATTACKER/got" ]
	chmod 1777 "$SHARED"
	as $VICTIM sh -c "echo private >mine; exec 9>>mine
		'$STRAIN' compare '$HOMES/sound.strain' '$HOMES/sound.strain' -o '$SHARED/fd.csv' --force || true"
	[ "$(cat mine)" = private ]
	# One's own, and the names of descriptors, are written to.
	as $VICTIM sh -c "'$STRAIN' compare '$HOMES/sound.strain' '$HOMES/sound.strain' --format csv -o /dev/stdout" >out
	[ -s out ]
	as $VICTIM "$STRAIN" compare "$HOMES/sound.strain" "$HOMES/sound.strain" --format csv -o /dev/null
}

@test "of two runs with one name the one that comes late removes nothing" {
	local turn first second
	for turn in 1 2 3 4 5 6 7 8; do
		as $VICTIM "$STRAIN" run -o same -- sleep 0.3 2>/dev/null &
		first=$!
		as $VICTIM "$STRAIN" run -o same -- sleep 0.3 2>/dev/null &
		second=$!
		STARTED="$first $second"
		wait $first || true
		wait $second || true
		[ -s same.strain ]
		rm same.strain
	done
	STARTED=
}

@test "--force does not take a file from the recorder that writes it" {
	as $VICTIM "$STRAIN" run -o x.strain -- sleep 100 3>&- &
	STARTED=$!
	until_true as $VICTIM "$STRAIN" sql x.strain "SELECT 1 FROM run WHERE key = 'recorder_pid'"
	local recorder inode
	recorder=$(as $VICTIM "$STRAIN" sql --csv x.strain "SELECT value FROM run WHERE key = 'recorder_pid'" |
		tail -1)
	STARTED+=" $recorder"
	inode=$(stat -c %i x.strain)
	run --separate-stderr as $VICTIM "$STRAIN" run --force -o x.strain -- true
	[ "$status" -ne 0 ]
	line_names "$stderr" "$recorder" "$(uname -n)"
	[ "$(stat -c %i x.strain)" = "$inode" ]
}

@test "root leaves nothing in the cache of the home that sudo kept" {
	cd "$HOMES"
	env -u XDG_CACHE_HOME HOME="$HOMES/$VICTIM" "$STRAIN" ls . >list
	grep -q sound list
	[ ! -e "$HOMES/$VICTIM/.cache" ]
	as $VICTIM mkdir "$HOMES/$VICTIM/.cache"
	install -d -m 0700 "$HOMES/roots"
	as $VICTIM ln -s "$HOMES/roots" "$HOMES/$VICTIM/.cache/strain"
	env -u XDG_CACHE_HOME HOME="$HOMES/$VICTIM" "$STRAIN" ls . >list
	[ -z "$(ls "$HOMES/roots")" ]
}

@test "reading as root changes neither a run of another user's nor its folder" {
	attackers_run
	rm "$HOMES/$ATTACKER/x.strain-shm"
	"$PYTHON" -c 'import socket, sqlite3, sys
database = sqlite3.connect(sys.argv[1])
# Of this machine, before it was booted: nobody records it.
database.execute("INSERT OR REPLACE INTO run VALUES (?, ?)", ("hostname", socket.gethostname()))
database.execute("DELETE FROM run WHERE key = ?", ("end_ns",))
database.execute("UPDATE run SET value = ? WHERE key = ?", ("recording", "state"))
database.commit()
database.execute("PRAGMA journal_mode = DELETE")' "$HOMES/$ATTACKER/x.strain"
	chown $ATTACKER "$HOMES/$ATTACKER"/x.strain*
	touch -d 2020-01-01 "$HOMES/$ATTACKER/x.strain"
	local before
	before=$(cd "$HOMES/$ATTACKER" && ls -lA --time-style=full-iso && sha256sum x.strain*)
	run -0 "$STRAIN" show "$HOMES/$ATTACKER/x.strain"
	[[ $output == *"cut off"* ]]
	"$STRAIN" ls "$HOMES/$ATTACKER"
	"$STRAIN" report -o "$HOMES/report.html" "$HOMES/$ATTACKER/x.strain"
	diff <(cd "$HOMES/$ATTACKER" && ls -lA --time-style=full-iso && sha256sum x.strain*) - <<<"$before"
	# Its owner's command closes it.
	as $ATTACKER "$STRAIN" show "$HOMES/$ATTACKER/x.strain"
	run -0 --separate-stderr as $ATTACKER "$STRAIN" sql --csv "$HOMES/$ATTACKER/x.strain" \
		"SELECT value FROM run WHERE key = 'state'"
	[ "${lines[1]}" = cut_off ]
}
