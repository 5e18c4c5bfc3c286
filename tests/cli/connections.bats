#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The job's TCP connections to other machines (network namespaces, see machines.sh), and ranks whose network is slow.

load messages
load joined

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	mkdir runs
	export OMP_NUM_THREADS=1
	NAME="st$$"
	MACHINES="$SOURCE_ROOT/tests/cli/machines.sh"
}

teardown() {
	[ -z "${SERVER:-}" ] || kill "$SERVER" 2>/dev/null || true
	[ -z "${MADE:-}" ] || "$MACHINES" down "$NAME"
}

machines() { # NUMBER
	[ "$(id -u)" = 0 ] || skip "network namespaces need root"
	command -v ip >/dev/null && command -v nsenter >/dev/null || skip "no ip or nsenter"
	MADE=1
	"$MACHINES" up "$NAME" "$1" 2>said || skip "no network namespaces here: $(head -n 1 said)"
}

on() { # MACHINE COMMAND...
	"$MACHINES" exec "$NAME" "$@"
}

# The last value of a metric of a machine that the job was connected to.
last() { # RUN METRIC
	"$STRAIN" export -e network "$1" | awk -F, -v metric="$2" '$2 ~ /^tcp:/ && $4 == metric { v = $NF } END { print v }'
}

rows() { # RUN SQL
	"$STRAIN" sql --csv "$@" | sed 1d | tr -d '\r'
}

# Answers each of 5 requests of 1,000 bytes with 200,000.
serve() { # PORT
	cat >server.py <<-'END'
		import socket, sys, threading
		def answer(one):
		    with one:
		        for _ in range(5):
		            one.recv(1000, socket.MSG_WAITALL)
		            one.sendall(b"x" * 200000)
		        one.recv(1)
		with socket.create_server(("0.0.0.0", int(sys.argv[1]))) as server:
		    print("ready", flush=True)
		    while True:
		        threading.Thread(target=answer, args=server.accept()[:1], daemon=True).start()
	END
	cat >client.py <<-'END'
		import socket, sys, time
		with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as one: # at once, before the first reading
		    for _ in range(5):
		        one.sendall(b"y" * 1000)
		        left = 200000
		        while left:
		            left -= len(one.recv(left))
		        time.sleep(0.5)
		    time.sleep(float(sys.argv[3]))
	END
	"$MACHINES" exec "$NAME" 0 python3 server.py "$1" >server.out 3>&- &
	SERVER=$!
	for _ in $(seq 100); do
		grep -q ready server.out && return
		sleep 0.1
	done
	cat server.out
	return 1
}

@test "traffic with another machine, as the job's sockets have it; other programs' and the machine's own are not the job's" {
	machines 2
	serve 7000
	"$MACHINES" exec "$NAME" 1 python3 client.py 10.77.0.1 7000 6 3>&- & # not of the job
	local other=$!
	on 1 "$STRAIN" run -o runs/a.strain -- python3 client.py 10.77.0.1 7000 2.5 2>said
	kill "$other" || true
	[ "$(rows runs/a.strain "select count(*) from entity where kind = 'network' and key like 'tcp:%'")" = 1 ]
	[ "$(rows runs/a.strain "select name from entity where key like 'tcp:%'")" = 10.77.0.1 ]
	[ "$(last runs/a.strain strain.tcp.received)" = 1000000 ]
	local sent
	sent=$(last runs/a.strain strain.tcp.sent)
	[ "$sent" -ge 5000 ] && [ "$sent" -le 5001 ] # the kernel counts the handshake's byte
}

@test "a job without connections to other machines has no such entity; its own addresses are no network" {
	machines 1
	serve 7000
	on 0 "$STRAIN" run -o runs/a.strain -- python3 client.py 10.77.0.1 7000 1 2>said
	[ "$(rows runs/a.strain "select count(*) from entity where key like 'tcp:%'")" = 0 ]
}

@test "a service of another machine is no rank: its port is in its name, and the verdict does not count it" {
	machines 2
	serve 443
	on 1 env RANK=0 WORLD_SIZE=2 "$STRAIN" run -o runs/a.strain -- python3 client.py 10.77.0.1 443 2.5 2>said
	[ "$(rows runs/a.strain "select name from entity where key like 'tcp:%'")" = 10.77.0.1:443 ]
	[ "$(rows runs/a.strain "select json_extract(attributes, '\$.service') from entity where key like 'tcp:%'")" = 443 ]
}

@test "a job in a network namespace of its own: missing, with the reason" {
	machines 1
	"$STRAIN" run -o runs/a.strain -- "$MACHINES" exec "$NAME" 0 sleep 6 2>said
	"$STRAIN" show runs/a.strain | grep -q "network namespace of their own"
}

# Records each rank of a job on a machine of its own.
ranks() { # NUMBER ARGUMENT...
	local n=$1 rank pids=()
	shift
	for ((rank = 0; rank < n; rank++)); do
		RANK=$rank WORLD_SIZE=$n MASTER_ADDR=10.77.0.1 MASTER_PORT=7001 GLOO_SOCKET_IFNAME=eth0 \
			on "$rank" "$STRAIN" run --force -o "runs/rank$rank.strain" -- \
			/usr/bin/python3 "$SOURCE_ROOT/tests/cli/ranks_job.py" --width 1024 "$@" 2>"said$rank" &
		pids+=($!)
	done
	for rank in "${pids[@]}"; do
		wait "$rank" || { cat said*; return 1; }
	done
}

@test "a rank that sends over a slow link is named, with the network as its cause; without it, it is not" {
	has_torch
	machines 2
	"$MACHINES" slow "$NAME" 1 100mbit 2>said || skip "no tc, or no tbf: $(head -n 1 said)"
	ranks 2 --batches 30
	"$STRAIN" show --json runs >j
	[ "$(field 'slowest["rank"], slowest["reason"], ranks[1]["verdict"]' j)" = "(1, 'network', 'network')" ]
	field 'ranks[1]["sends_ratio"], ranks[1]["sends_bytes_per_s"]' j
	[ "$(field 'ranks[1]["sends_ratio"] > 0.4 and 3e6 < ranks[1]["sends_bytes_per_s"] < 13e6' j)" = True ]
	"$STRAIN" show runs | grep -q '^rank 1 on .* sends slowly: its data is in transit to rank 0 (10.77.0.1)'
	"$STRAIN" show runs/rank1.strain | grep -q 'Verdict *waiting for the network between ranks'
	"$MACHINES" slow "$NAME" 1 none
	ranks 2 --batches 200
	"$STRAIN" show --json runs >j
	[ "$(field 'slowest is None or slowest["reason"] != "network"' j)" = True ]
	[ "$(field '"network" in [r["verdict"] for r in ranks]' j)" = False ]
}

@test "of three machines, the one that is far from the others is named" {
	has_torch
	machines 3
	"$MACHINES" far "$NAME" 2 0.01 2>said || skip "no packet sockets here: $(tail -n 1 said)"
	ranks 3 --batches 30
	"$STRAIN" show --json runs >j
	[ "$(field 'slowest["rank"], slowest["reason"]' j)" = "(2, 'distance')" ]
	"$STRAIN" show runs | grep -Eq '^rank 2 on .* is far from the others: the round trip to the nearest takes 2[0-9](\.[0-9])? ms'
}
