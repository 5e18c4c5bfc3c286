#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# What strain makes in /dev/shm and what it puts into a job's environment, against another user who
# makes the same names, and against the job itself.

load users

# Of the victim's run, while it lasts and after it: where its marks go.
markers_of() {
	sed -n 's/^STRAIN_MARKERS=//p' "$1"
}

@test "whoever takes the marker directory's name does not choose what is removed" {
	# The attacker's own files, in folders that all may write: the victim could remove them.
	cat >"$HOMES/$ATTACKER/take.py" <<-'EOF'
		import os, sys, time
		name, tree, deadline = sys.argv[1], sys.argv[2], time.monotonic() + 60
		os.umask(0)
		os.makedirs(tree + "/below")
		for i in range(50):
		    open("%s/below/%d" % (tree, i), "w").close()
		open(sys.argv[3], "w").close()
		while time.monotonic() < deadline:
		    try:
		        os.stat(name)
		    except OSError:
		        os.rename(tree, name)
		        break
	EOF
	# shellcheck disable=SC2016
	as $VICTIM "$STRAIN" run -o run.strain -- sh -c 'echo "$STRAIN_MARKERS" >where.new; mv where.new where
		while [ ! -e go ]; do sleep 0.02; done' &
	local launcher=$! markers tries
	STARTED=$launcher
	for ((tries = 0; tries < 1000; tries++)); do
		[ ! -e where ] || break
		sleep 0.02
	done
	markers=$(cat where)
	[[ $markers == /dev/shm/strain-* || $markers == /tmp/strain-* ]]
	local tree
	tree=$(dirname "$markers")/strain-security-$$
	as $ATTACKER "$PYTHON" "$HOMES/$ATTACKER/take.py" "$markers" "$tree" "$HOMES/$ATTACKER/ready" &
	local taker=$!
	STARTED+=" $taker"
	while [ ! -e "$HOMES/$ATTACKER/ready" ]; do sleep 0.02; done
	touch go
	wait $launcher
	wait $taker
	STARTED=
	local left
	left=$(ls "$markers/below" | wc -l)
	rm -rf "$markers" "$tree"
	[ "$left" = 50 ]
}

@test "a job's environment runs nobody else's code once the run has ended" {
	as $VICTIM "$STRAIN" run -o run.strain -- env >environment
	local markers
	markers=$(markers_of environment)
	[ -n "$markers" ] && [ ! -e "$markers" ]
	# The attacker takes the name, and plants what the environment may lead to.
	as $ATTACKER mkdir -m 0777 "$markers" "$markers/python" "$HOMES/$ATTACKER/loot"
	chmod 0777 "$HOMES/$ATTACKER/loot"
	echo "open('$HOMES/$ATTACKER/loot/%d' % __import__('os').getuid(), 'w').close()" |
		as $ATTACKER tee "$markers/python/sitecustomize.py" >/dev/null
	local variables
	mapfile -t variables < <(grep -E '^(PYTHONPATH|STRAIN_[A-Z]*|NVTX_INJECTION64_PATH)=' environment)
	as $VICTIM env "${variables[@]}" "$PYTHON" -c pass
	as $VICTIM env "${variables[@]}" "$STRAIN" mark begin x || true
	as $VICTIM env "${variables[@]}" "$BUILD_ROOT/tests/tools/marking" steady 10 || true
	local looted written
	looted=$(ls "$HOMES/$ATTACKER/loot")
	written=$(find "$markers" -user $VICTIM)
	rm -rf "$markers"
	[ -z "$looted" ]
	[ -z "$written" ]
}

# Each folder on the way, and the thing itself: only root's or the victim's to change, and in no
# folder in which everyone can make names.
is_safe() {
	local at=$1 owner mode
	while :; do
		read -r owner mode < <(stat -c '%u %a' "$at")
		if [ "$owner" != 0 ] && [ "$owner" != $VICTIM ] || (((8#$mode & 8#022) != 0)); then
			echo "$1: $at belongs to $owner, mode $mode"
			return 1
		fi
		[ "$at" != / ] || return 0
		at=$(dirname "$at")
	done
}

@test "what enters a job's environment lies where nobody else can make names, also of a strain in /tmp" {
	as $VICTIM "$STRAIN" run -o run.strain -- env >environment
	local variable
	for variable in PYTHONPATH NVTX_INJECTION64_PATH; do
		is_safe "$(sed -n "s/^$variable=//p" environment)"
	done
	local unpacked
	unpacked=$(mktemp -d /tmp/strain-security-XXXXXX)
	mkdir "$unpacked/hooks"
	cp "$STRAIN" "$(dirname "$STRAIN")/strain-record" "$BUILD_ROOT/libstrain-nvtx.so" "$unpacked"
	cp -r "$BUILD_ROOT/hooks/python" "$unpacked/hooks"
	chown -R $VICTIM "$unpacked"
	as $VICTIM env -u STRAIN_HOME "$unpacked/strain" run -o tmp.strain -- env >environment
	rm -rf "$unpacked"
	for variable in PYTHONPATH NVTX_INJECTION64_PATH; do
		is_safe "$(sed -n "s/^$variable=//p" environment)"
	done
}

@test "a part that another user could replace is not used" {
	local prefix=$HOMES/prefix
	mkdir -p "$prefix/bin"
	cp "$STRAIN" "$prefix/bin"
	install -d -o $ATTACKER -m 0755 "$prefix/lib" "$prefix/lib/strain"
	printf '#!/bin/sh\ntouch "%s/taken"\n' "$HOMES/$VICTIM" >"$prefix/lib/strain/strain-record"
	chmod +x "$prefix/lib/strain/strain-record"
	run as $VICTIM env -u STRAIN_HOME "$prefix/bin/strain" run -o run.strain -- true
	[ ! -e taken ]
	[[ $output == *"$prefix/"* ]]
}

@test "hooks that another user can change, or whose bytecode he can, are not put into a job" {
	local prefix=$HOMES/prefix file
	mkdir -p "$prefix/hooks"
	cp "$STRAIN" "$(dirname "$STRAIN")/strain-record" "$BUILD_ROOT/libstrain-nvtx.so" "$prefix"
	cp -r "$BUILD_ROOT/hooks/python" "$prefix/hooks"
	chmod -R go-w "$prefix"
	mkdir -p "$prefix/hooks/python/__pycache__"
	path_of_run() {
		as $VICTIM env -u STRAIN_HOME "$prefix/strain" run --no-verdict -o run.strain --force -- \
			sh -c 'echo "$PYTHONPATH"'
	}
	[ "$(path_of_run)" = "$prefix/hooks/python" ]
	for file in strain_hook.py __pycache__; do
		chmod go+w "$prefix/hooks/python/$file"
		[ "$(path_of_run)" != "$prefix/hooks/python" ]
		chmod go-w "$prefix/hooks/python/$file"
	done
	[ "$(path_of_run)" = "$prefix/hooks/python" ]
}

# A FUSE server that never answers, as one that was stopped: who asks it waits for ever.
@test "a mount in the marker directory that does not answer holds neither recorder nor launcher" {
	[ -c /dev/fuse ] || skip "no /dev/fuse"
	cat >mount.py <<-'EOF'
		import ctypes, os, sys, time
		libc = ctypes.CDLL(None, use_errno=True)
		where = os.environ["STRAIN_MARKERS"]
		mounts = [where + "/ring-dead", where + "/hook-1", where + "/folder/dead"]
		os.mkdir(where + "/folder")
		servers = []
		for place in mounts:
		    os.mkdir(place)
		    fd = os.open("/dev/fuse", os.O_RDWR)
		    os.set_inheritable(fd, True)
		    options = "fd=%d,rootmode=40000,user_id=0,group_id=0" % fd
		    if libc.mount(b"dead", place.encode(), b"fuse.dead", 0, options.encode()) != 0:
		        sys.exit("mount: " + os.strerror(ctypes.get_errno()))
		    servers.append(fd)
		server = os.fork()
		if server == 0:
		    os.setsid()
		    time.sleep(120)
		    os._exit(0)
		open("server.new", "w").write("%d %s\n" % (server, where))
		os.rename("server.new", "server")
		time.sleep(1.5)
	EOF
	# Root's: mounting needs a privilege, which fusermount lends to an ordinary user.
	local status=0
	HOME=$HOMES/$VICTIM timeout -s KILL 60 "$STRAIN" run --no-cgroup -o run.strain -- \
		"$PYTHON" mount.py >out 2>err || status=$?
	if [ ! -e server ]; then
		cat out err
		skip "cannot mount here: $(grep mount: err)"
	fi
	local server where
	read -r server where <server
	kill -KILL "$server"
	# What mounts are there does not go by itself.
	local place
	for place in "$where/ring-dead" "$where/hook-1" "$where/folder/dead"; do
		umount -l "$place" || true
	done
	rm -rf "$where"
	[ "$status" = 0 ]
	[ "$("$STRAIN" sql --json run.strain "SELECT value FROM run WHERE key = 'state'" | tr -d ' \n')" = '[{"value":"finished"}]' ]
}
