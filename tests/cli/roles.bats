#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# What the processes of a job are for: strain's own, children, loader workers; and what a job that ran
# already used before.

load run_helpers

# Of `strain show --json`: an expression of Python over `d`.
shown() {
	"$STRAIN" show --json "${2:-run.strain}" | /usr/bin/python3 -c '
import json, sys
d = json.load(sys.stdin)
print(eval(sys.argv[1]))' "$1"
}

# Role and label of the processes.
roles() {
	shown '"\n".join(p["role"] + " " + p["label"] for p in d["processes"])' "$@"
}

BURN='import os, sys, time
t = time.process_time()
while time.process_time() - t < float(sys.argv[1]): pass
time.sleep(float(sys.argv[2]) if len(sys.argv) > 2 else 0)'

@test "a run within a run: the training process is in the outer table, and strain is strain" {
	echo "$BURN" >train.py
	for option in --force --no-cgroup; do
		rm -f ./*.strain
		"$STRAIN" run $option -o outer.strain "$STRAIN" run -o inner.strain /usr/bin/python3 train.py 0.6 1 2>err
		run -0 roles outer.strain
		echo "$option: $output"
		grep -qx 'main python3 train.py' <<<"$output"
		[ "$(grep -c '^main ' <<<"$output")" = 1 ]
		grep -qx 'strain strain run' <<<"$output"
		run ! grep '^loader\|^child' <<<"$output"
		run ! grep 'loader workers [0-9]' err
		run -0 roles inner.strain
		[ "$output" = 'main python3 train.py' ]
	done
}

@test "a name does not make a process strain's" {
	cp "$(command -v sleep)" strain-record
	"$STRAIN" run -o run.strain ./strain-record 1.2
	[ "$(roles)" = 'main strain-record' ]
}

@test "forked children of a program that trains nothing are children" {
	cat >pool.py <<-'EOF'
		import os, time
		for i in range(2):
		    if os.fork() == 0:
		        time.sleep(1.5)
		        os._exit(0)
		while time.process_time() < 0.3: pass
		os.wait(), os.wait()
	EOF
	"$STRAIN" run -o run.strain /usr/bin/python3 pool.py 2>err
	[ "$(roles | sort)" = $'child python3 pool.py\nchild python3 pool.py\nmain python3 pool.py' ]
	run ! grep 'loader workers [0-9]' err
	[ "$(shown '[h["bytes"] for h in d["verdict"]["memory_contents"] if h["what"] == "loader workers"]')" = '[None]' ]
}

@test "a step that a script calls prepare is a span of its own, and makes no loader worker" {
	cat >job.sh <<-'EOF'
		"$1" mark begin prepare
		sleep 0.6
		"$1" mark end
		sleep 0.6
	EOF
	"$STRAIN" run -o run.strain sh job.sh "$STRAIN"
	run -0 roles
	[[ "$output" != *loader* ]]
	[ "$(shown 'd["workers"]')" = '[]' ]
	run -0 "$STRAIN" show -i run.strain
	[[ "$output" != *"PREPARED BY"* ]]
	[ "$(shown '[(s["name"], s["count"]) for s in d["spans"]]')" = "[('prepare', 1)]" ]
}

@test "--pid: what the children of before used is not the job's" {
	cat >daemon.py <<-'EOF'
		import os, subprocess, sys, time
		def child(seconds):
		    subprocess.run([sys.executable, "burn.py", str(seconds)], check=True)
		child(3)
		open("ready", "w").close()
		while not os.path.exists("go"): time.sleep(0.02)
		for i in range(3): child(0.1)
		time.sleep(1)
	EOF
	echo "$BURN" >burn.py
	/usr/bin/python3 daemon.py &
	local daemon=$!
	eventually test -e ready
	"$STRAIN" run -o run.strain --pid $daemon 2>err &
	local strain=$!
	eventually test -e run.strain
	sleep 0.5
	touch go
	wait $daemon $strain
	[ "$(shown '0.25 <= d["job"]["cpu_seconds"] < 2')" = True ]
	[ "$(shown 'd["job"]["cpus_used"] <= d["job"]["host_cpus"]')" = True ]
}

@test "--pid: a child of before that ends meanwhile counts with what it used meanwhile" {
	cat >parent.py <<-'EOF'
		import os, time
		if os.fork() == 0:
		    while time.process_time() < 2: pass
		    open("ready", "w").close()
		    while not os.path.exists("go"): time.sleep(0.02)
		    t = time.process_time()
		    while time.process_time() - t < 0.3: pass
		    os._exit(0)
		os.wait()
		time.sleep(1)
	EOF
	/usr/bin/python3 parent.py &
	local daemon=$!
	eventually test -e ready
	"$STRAIN" run -o run.strain --pid $daemon 2>err &
	local strain=$!
	eventually test -e run.strain
	sleep 0.5
	touch go
	wait $daemon $strain
	[ "$(shown '0.25 <= d["job"]["cpu_seconds"] < 1')" = True ]
}
