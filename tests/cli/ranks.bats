#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# strain show DIR: one job from the runs of its ranks.

load messages
load joined

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	mkdir runs
	export OMP_NUM_THREADS=1
}

# Records each rank of a job by a strain run of its own.
ranks() { # NUMBER ARGUMENT...
	local n=$1 port rank pids=()
	shift
	port=$(free_port)
	for ((rank = 0; rank < n; rank++)); do
		RANK=$rank WORLD_SIZE=$n MASTER_ADDR=127.0.0.1 MASTER_PORT=$port "$STRAIN" run -o "runs/rank$rank.strain" -- \
			/usr/bin/python3 "$SOURCE_ROOT/tests/cli/ranks_job.py" "$@" 2>"said$rank" &
		pids+=($!)
	done
	for rank in "${pids[@]}"; do
		wait "$rank" || { cat said*; return 1; }
	done
}

# Changes a run file as a text editor would change a text.
edit() { # FILE SQL
	python3 -c 'import sqlite3, sys
c = sqlite3.connect(sys.argv[1])
c.executescript(sys.argv[2])
c.commit()' "$1" "$2"
}

@test "several ranks in each run: their iterations are joined, too, and the slow one is named" {
	has_torch
	local port node pids=()
	port=$(free_port)
	for node in 0 1; do
		"$STRAIN" run --job several -o "runs/node$node.strain" -- sh -c '
			for rank in $(($1 * 2 + 1)) $(($1 * 2)); do
				RANK=$rank WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=$2 /usr/bin/python3 "$3" --slow 3 --seconds 0.08 &
				pids="$pids $!"
			done
			for one in $pids; do wait "$one" || exit 1; done' \
			sh "$node" "$port" "$SOURCE_ROOT/tests/cli/ranks_job.py" 2>"said$node" &
		pids+=($!)
	done
	for node in "${pids[@]}"; do
		wait "$node" || { cat said*; return 1; }
	done
	"$STRAIN" show --json runs >j
	[ "$(field 'len(ranks), [r["latest"] is not None for r in ranks]' j)" = "(4, [True, True, True, True])" ]
	[ "$(field 'j["common_iterations"] >= 30, slowest["phase"], slowest["latest"] > 0.8' j)" = "(True, 'forward', True)" ]
	# The numbers are the launcher's, not the order of starting.
	[ "$(field 'slowest["rank"], [(r["rank"], r["run"]) for r in ranks]' j)" = \
		"(3, [(0, 'node0'), (1, 'node0'), (2, 'node1'), (3, 'node1')])" ]
	"$STRAIN" show --json runs/node1.strain >one
	[ "$(python3 -c 'import json; print([r["rank"] for r in json.load(open("one"))["ranks"]])')" = "[2, 3]" ]
	if "$STRAIN" report runs -o page.html 2>said || ! grep -q 'built without HTML pages' said; then
		run -1 grep "No lane" page.html
	fi
}

@test "a rank that is slow in its forward, and one in its data: named, with the phase" {
	has_torch
	local by rank
	for by in forward data; do
		[ "$by" = forward ] && rank=1 || rank=2
		rm -f runs/*
		ranks 3 --slow "$rank" --by "$by" --seconds 0.08
		"$STRAIN" show runs
		"$STRAIN" show --json runs >"$by.json"
		[ "$(field 'slowest["rank"], slowest["phase"]' "$by.json")" = "($rank, '$by')" ]
		[ "$(field '0.04 < slowest["longer_s"] and slowest["others_wait"] > 0.2 and slowest["latest"] > 0.7' "$by.json")" = True ]
		[ "$(field 'j["runs"], j["hosts"], [r["rank"] for r in ranks], j["named_by"]' "$by.json")" = \
			"(3, 1, [0, 1, 2], 'MASTER_ADDR')" ]
		# a rank's own run does not know which one it waits for, but that it does (or that a busy machine
		# starts slowly)
		[ "$(field "{r['verdict'] for r in ranks if r['rank'] != $rank} <= {'ranks', 'start-up'}" "$by.json")" = True ]
		# the ranks' own work: of the slowest about all of its iteration
		[ "$(field "all(r['own_s'] < 0.8 * ranks[$rank]['own_s'] for r in ranks if r['rank'] != $rank)" "$by.json")" = True ]
	done
	run -0 "$STRAIN" show runs
	[[ "$output" == *"rank 2 on "*": the others wait for it during "*"its data phase takes "* ]]
}

@test "one machine's clock is an hour ahead: told by the iterations that end together" {
	has_torch
	local rank
	ranks 2
	edit runs/rank1.strain "UPDATE run SET value = CAST(value AS INTEGER) + 3600000000000 WHERE key = 'start_utc_ns';
		UPDATE run SET value = 'node2' WHERE key = 'hostname'"
	for rank in 0 1; do # of two machines, they meet at the address of one
		edit "runs/rank$rank.strain" "UPDATE label SET value = '10.0.0.1' WHERE name = 'MASTER_ADDR'"
	done
	run -0 "$STRAIN" show runs
	echo "$output"
	[[ "$output" == *"the clock of node2 is 1 h"*" ahead of that of "* ]]
	"$STRAIN" show --json runs >j.json
	[ "$(field '3590 < ranks[1]["clock_s"] < 3610, ranks[0]["clock_s"], j["hosts"]' j.json)" = "(True, 0, 2)" ]
}

@test "jobs in one directory: the newest, and one by name; a job that was started again" {
	local job
	for job in first second; do
		"$STRAIN" run --job "$job" --label RANK=0 -o "runs/$job-a.strain" -- true
		"$STRAIN" run --job "$job" --label RANK=1 -o "runs/$job-b.strain" -- true
	done
	run -0 "$STRAIN" show runs
	[[ "${lines[0]}" == "job second (job): 2 ranks on 1 host, from 2 runs" ]]
	[[ "$output" == *"1 more job with several runs in this directory: --job NAME selects one"* ]]
	run -0 "$STRAIN" show --job first runs
	[[ "${lines[0]}" == "job first (job): 2 ranks on 1 host, from 2 runs" ]]
	cd runs
	run -0 "$STRAIN" show --job first
	cd ..
	run -1 "$STRAIN" show --job third runs
	[ "$output" = "strain: runs: no job 'third' with several runs (there are: second, first)" ]
	run -2 "$STRAIN" show --job first runs/first-a.strain
	[[ "$output" == "strain: --job: expected a directory of runs, found 'runs/first-a.strain'"* ]]
	STRAIN_DIR=runs run -0 "$STRAIN" show --job first
	[[ "${lines[0]}" == "job first "* ]]
	# a rank that failed, and its second run
	run -3 "$STRAIN" run --job first --label RANK=1 -o runs/again.strain -- sh -c 'exit 3'
	run -0 "$STRAIN" show --job first runs
	[[ "$output" == *"2 ranks"*"rank 1 on "*" failed (crash): "*"again"*crash* ]]
	[[ "$output" != *first-b* ]]
}

@test "a directory without such a job, and a name that is empty" {
	"$STRAIN" run -o runs/one.strain -- true
	run -1 "$STRAIN" show runs
	[[ "$output" == "strain: runs: no two runs belong to the same job"*"strain ls runs"* ]]
	mkdir empty
	fails_with 1 empty "no runs" -- "$STRAIN" show empty
	cp -r runs a.sweep
	touch a.sweep/lock a.sweep/plan.yaml
	fails_with 1 a.sweep "strain compare a.sweep" "strain ls a.sweep" "strain report a.sweep" -- "$STRAIN" show a.sweep
	run -125 "$STRAIN" run --job '' -- true
	[[ "$output" == *"--job: expected a name, found nothing"* ]]
	# torchrun's name of a job without one
	TORCHELASTIC_RUN_ID=none "$STRAIN" run -o runs/two.strain -- true
	TORCHELASTIC_RUN_ID=none "$STRAIN" run -o runs/three.strain -- true
	run -1 "$STRAIN" show runs
}

@test "hostile values: ranks that are no numbers, hosts with escapes, two jobs of one number" {
	"$STRAIN" run --job x --label RANK=99999999999 -o runs/a.strain -- true
	"$STRAIN" run --job x --label RANK=-1 -o runs/b.strain -- true
	edit runs/a.strain "UPDATE run SET value = char(27) || '[31mred' WHERE key = 'hostname'"
	run -0 "$STRAIN" show runs
	[[ "$output" != *$'\033[31mred'* ]]
	[[ "$output" == *"2 ranks on 2 hosts"* ]]
	"$STRAIN" run --label PBS_JOBID=7 -o runs/c.strain -- true
	"$STRAIN" run --label LSB_JOBID=7 -o runs/d.strain -- true
	run -1 "$STRAIN" show --job 7 runs
}

# The run file of a rank with known iterations: NAME NAME=VALUE... -- ITERATIONS... (ranks_make.py)
rank_with() {
	local seconds=${SECONDS_OF_BASE:-2}
	[ -e "base$seconds.strain" ] || "$BUILD_ROOT/tests/tools/make_run" "base$seconds.strain" "$seconds"
	python3 "$SOURCE_ROOT/tests/cli/ranks_make.py" "base$seconds.strain" "runs/$1.strain" "${@:2}"
}

@test "64 ranks on 8 nodes: the slowest is shown, --all shows all" {
	local rank own
	for ((rank = 0; rank < 64; rank++)); do
		own=$((rank == 40 ? 50 : 20))
		rank_with "rank$rank" job=big RANK=$rank WORLD_SIZE=64 hostname=node$((rank / 8)) -- \
			"forward=$own,backward=$((100 - own))x20"
	done
	run -0 "$STRAIN" show runs
	[[ "${lines[0]}" == "job big (job): 64 ranks on 8 hosts, from 64 runs"* ]]
	[[ "${lines[1]}" == "rank 40 on node5: the others wait for it during "* ]]
	[[ "${lines[2]}" == "its forward pass takes 30.0 ms longer per iteration than the median of the others"* ]]
	grep -q "40 *node5.*the slowest" <<<"$output"
	[[ "$output" == *"and 48 more (--all)"* ]]
	run -0 "$STRAIN" show --all runs
	[[ "$output" == *node7*rank63* ]]
	[ "$(grep -c '^ *[0-9]* *node' <<<"$output")" -eq 64 ]
}

@test "ranks that never started, one that was cut off, and one of another size" {
	rank_with 0 job=big RANK=0 WORLD_SIZE=8 hostname=a -- forward=20,backward=80x20
	rank_with 1 job=big RANK=1 WORLD_SIZE=8 hostname=b -- forward=50,backward=50x20
	SECONDS_OF_BASE=+2 rank_with 2 job=big RANK=2 WORLD_SIZE=8 hostname=b -- forward=20,backward=80x20
	rank_with 3 job=big RANK=3 WORLD_SIZE=4 hostname=b -- forward=20,backward=80x20 # of a job of four
	run -0 "$STRAIN" show runs
	[[ "${lines[0]}" == "job big (job): 3 of 8 ranks on 2 hosts, from 3 runs"* ]]
	[[ "$output" =~ "still runs"|"end not recorded" ]]
}

@test "known iterations: a long first one, fewer of one rank, waits in forward, marked waits, none" {
	# two independent ranks, whose first iteration takes long: they are not in step
	rank_with 0 job=a RANK=0 -- forward=20000,backward=20000x1 forward=40,backward=60x30
	rank_with 1 job=a RANK=1 -- forward=20000,backward=20000x1 forward=60,backward=90x30
	run -0 "$STRAIN" show --json runs
	echo "$output" >j.json
	[ "$(field '[r["waits"] for r in ranks]' j.json)" = "[None, None]" ]
	rm runs/*
	# a rank that stopped early does the same work
	rank_with 0 job=a RANK=0 -- forward=40,backward=60x100
	rank_with 1 job=a RANK=1 -- forward=40,backward=60x60
	run -0 "$STRAIN" show --json runs
	echo "$output" >j.json
	[ "$(field 'slowest, [r["waits"] for r in ranks]' j.json)" = "(None, [0, 0])" ]
	[ "$(field '[r["latest"] for r in ranks]' j.json)" = "[0, 0]" ]
	# its first iteration is long in forward, all others in data
	rank_with 0 job=a RANK=0 -- data=5,forward=40,backward=105x1 data=5,forward=40,backward=105x30
	rank_with 1 job=a RANK=1 -- data=45,forward=4000,backward=65x1 data=45,forward=40,backward=65x30
	run -0 "$STRAIN" show --json runs
	echo "$output" >j.json
	[ "$(field 'slowest["rank"], slowest["phase"], round(slowest["longer_s"], 3), slowest["latest"]' j.json)" = "(1, 'data', 0.04, 1)" ]
	[ "$(field '[round(r["own_s"], 3) for r in ranks]' j.json)" = "[0.11, 0.15]" ]
	# the first rank waits where forward begins: single iterations do not tell who is latest
	rank_with 0 job=a RANK=0 -- forward=80,backward=20x30
	rank_with 1 job=a RANK=1 -- data=70,forward=10,backward=20x30
	run -0 "$STRAIN" show --json runs
	echo "$output" >j.json
	[ "$(field 'slowest["rank"], slowest["phase"], slowest["latest"]' j.json)" = "(1, 'data', None)" ]
	# marked
	rank_with 0 job=a RANK=0 -- forward=30,backward=30,communication=40x30
	rank_with 1 job=a RANK=1 -- forward=65,backward=30,communication=5x30
	run -0 "$STRAIN" show --json runs
	echo "$output" >j.json
	[ "$(field 'slowest["rank"], slowest["phase"], slowest["latest"], j["waits_inferred"]' j.json)" = "(1, 'forward', 1, False)" ]
	# nothing is known of ranks that do not iterate
	rank_with 0 job=a RANK=0 --
	rank_with 1 job=a RANK=1 --
	run -0 "$STRAIN" show runs
	[[ "$output" == *"no iterations"* && "$output" != *"slower"* ]]
}

@test "jobs that ran one after another under the same address and port, allocation or trial are not one" {
	local i
	for i in 0 1; do
		MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 RANK=$i WORLD_SIZE=2 "$STRAIN" run -o "runs/old$i.strain" -- sleep 0.5 &
	done
	wait
	edit runs/old0.strain "UPDATE run SET value = CAST(value AS INTEGER) - 90000000000000 WHERE key = 'start_utc_ns'"
	edit runs/old1.strain "UPDATE run SET value = CAST(value AS INTEGER) - 90000000000000 WHERE key = 'start_utc_ns'"
	MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 RANK=0 WORLD_SIZE=2 "$STRAIN" run -o runs/new0.strain -- true
	run -0 "$STRAIN" show --json runs # the newest that has several
	[ "$(python3 -c 'import json, sys; print(sorted(r["run"] for r in json.loads(sys.argv[1])["ranks"]))' "$output")" = "['old0', 'old1']" ]
	mkdir more
	for i in 1 2 3; do # one after another, in one allocation
		SLURM_JOB_ID=7 SLURM_NTASKS=3 "$STRAIN" run -o "more/$i.strain" -- true
	done
	run -1 "$STRAIN" show more
	[[ "$output" == "strain: more: no two runs belong to the same job"* ]]
}

@test "of ranks that each have a run, the first prints its verdict, and one that fails" {
	local rank
	for rank in 0 1; do
		RANK=$rank WORLD_SIZE=2 "$STRAIN" run --job one -o "runs/r$rank.strain" -- true 2>"said$rank"
	done
	[[ "$(cat said0)" == strain:*"strain show runs/r0.strain"*"strain show runs # all ranks" ]]
	[ ! -s said1 ]
	RANK=1 WORLD_SIZE=2 run -3 "$STRAIN" run -o runs/r1b.strain -- sh -c 'exit 3'
	[[ "$output" == *"exit status 3"* ]]
	cd runs
	RANK=0 WORLD_SIZE=2 "$STRAIN" run --job one -o here.strain -- true 2>said
	[[ "$(cat said)" == *"strain show . # all ranks" ]]
	RANK=0 WORLD_SIZE=2 "$STRAIN" run -o alone.strain -- true 2>said # of a job without a name
	[[ "$(cat said)" != *"all ranks"* ]]
}

has_pages() {
	"$STRAIN" run -o probe.strain -- true
	if "$STRAIN" report probe.strain -o probe.html 2>&1 | grep -q 'built without HTML pages'; then
		skip "strain was built without HTML pages"
	fi
}

# The data of a page, as JSON.
page_data() { # PAGE
	python3 -c 'import re, sys
print(re.search(r"<script[^>]*id=\"?data\"?[^>]*>(.*?)</script>", open(sys.argv[1]).read(), re.S).group(1))' "$1" >page.json
}

# An expression over the runs of the page.
of_page() { # EXPRESSION
	python3 -c 'import json, sys
runs = json.load(open("page.json"))["runs"]
print(eval(sys.argv[1], {"runs": runs, "job": runs[0]}))' "$1"
}

@test "the page of a job: its ranks by host on one axis, the slowest and another in tabs" {
	has_pages
	local rank
	for rank in 0 1 2 3; do
		rank_with "rank$rank" job=big RANK=$rank WORLD_SIZE=4 hostname=node$((rank / 2)) -- \
			"forward=$((rank == 3 ? 50 : 20)),backward=$((rank == 3 ? 50 : 80))x20"
	done
	"$STRAIN" report runs -o page.html
	page_data page.html
	[ "$(of_page '[r["name"] for r in runs]')" = "['job big', 'rank3', 'rank0']" ]
	[ "$(of_page '[p["title"] for p in job["panels"]]')" = \
		"['Ranks on node0', 'Ranks on node1', 'Own work of an iteration', 'Iterations']" ]
	[ "$(of_page '[s["label"] for p in job["panels"][:2] for s in p["series"]]')" = "['rank 0', 'rank 1', 'rank 2', 'rank 3']" ]
	# a lane is the share of own work: all of the slowest, a part of the others
	[ "$(of_page '[round(s["mean"] / job["panels"][1]["series"][1]["mean"], 2) for p in job["panels"][:2] for s in p["series"]]')" = \
		"[0.4, 0.4, 0.4, 1.0]" ]
	[ "$(of_page '[round(s["mean"], 2) for s in job["panels"][2]["series"]]')" = "[0.04, 0.1]" ]
	[ "$(of_page '[r["note"] for r in job["job"]["ranks"]]')" = "[None, None, None, 'the slowest']" ]
	[[ "$(of_page 'job["verdict"]["title"]')" == "rank 3 on node1: the others wait for it during "* ]]
	# beside another run, the page is that of all runs
	"$STRAIN" run -o runs/other.strain -- true
	run -0 "$STRAIN" report runs -o all.html
	[[ "$output" == *"this page shows all runs; --job NAME shows the ranks of one job (big)"* ]]
	"$STRAIN" report --job big runs -o page.html
	page_data page.html
	[ "$(of_page 'len(job["job"]["ranks"])')" = 4 ]
	run -1 "$STRAIN" report --job small runs -o none.html
	[[ "$output" == *"no job 'small' with several runs (there are: big)"* ]]
	[ ! -e none.html ]
}

@test "the page of a job with hostile names, ranks without iterations, and a failed one" {
	has_pages
	rank_with a 'job=</script><b>' RANK=0 WORLD_SIZE=4 'hostname=<i>' -- forward=20,backward=80x20
	rank_with b 'job=</script><b>' RANK=1 WORLD_SIZE=4 'hostname=<i>' -- forward=20,backward=80x20
	"$STRAIN" run --job '</script><b>' --label RANK=2 --label WORLD_SIZE=4 -o runs/c.strain -- true
	run ! "$STRAIN" run --job '</script><b>' --label RANK=3 --label WORLD_SIZE=4 -o runs/d.strain -- sh -c 'exit 3'
	"$STRAIN" report runs -o page.html
	page_data page.html
	[ "$(of_page 'job["name"]')" = 'job </script><b>' ]
	run ! grep -q '<b>' page.html
	[ "$(of_page '[s["label"] for s in job["panels"][0]["series"]]')" = "['rank 0', 'rank 1']" ]
	[ "$(of_page 'job["about"]["ended"]')" = "1 rank failed" ]
	[ "$(of_page '[r["name"] for r in runs][1]')" = d ]
}

@test "strain report --job needs a directory" {
	has_pages
	run -2 "$STRAIN" report --job big probe.strain -o page.html
	[[ "$output" == "strain: --job: expected a directory of runs, found 'probe.strain'"* ]]
	run -2 "$STRAIN" report --job big probe.strain -o figure.pdf
	"$STRAIN" run --job big --label RANK=0 -o runs/a.strain -- true
	"$STRAIN" run --job big --label RANK=1 -o runs/b.strain -- true
	STRAIN_DIR=runs "$STRAIN" report --job big -o page.html
	page_data page.html
	[ "$(of_page 'job["name"]')" = 'job big' ]
	[ "$(of_page 'job["verdict"]["title"]')" = 'it is not known whether the ranks wait for each other' ]
}

@test "runs of one allocation without ranks, and of other days under one name, are no job" {
	local i pids=()
	for i in 1 2 3; do
		PBS_JOBID=7 "$STRAIN" run -o "runs/pbs$i.strain" -- sleep 0.5 &
		pids+=($!)
	done
	wait "${pids[@]}"
	"$STRAIN" run --job nightly -o runs/one.strain -- true
	"$STRAIN" run --job nightly -o runs/two.strain -- true
	run -0 "$STRAIN" ls runs
	[ "${#lines[@]}" -eq 6 ]
}

@test "strain ls: one line for the ranks of a job, with --ranks one for each" {
	local rank
	for rank in 0 1 2; do
		"$STRAIN" run --job first --label RANK=$rank --label batch_size=32 -o "runs/a$rank.strain" -- sh -c "exit $((rank == 2))" || true
	done
	"$STRAIN" run -o runs/alone.strain -- true
	run -0 "$STRAIN" ls runs
	[ "${#lines[@]}" -eq 3 ]
	grep -q '^job first .* 3 runs: 1 crash .*batch_size=32$' <<<"$output"
	run ! grep -q 'RANK=' <<<"$output"
	run -0 "$STRAIN" ls --json runs
	echo "$output" >j.json
	[ "$(python3 -c 'import json; print(len(json.load(open("j.json"))))')" = 4 ]
	run -0 "$STRAIN" ls --ranks runs
	[ "${#lines[@]}" -eq 5 ]
	run -0 "$STRAIN" ls --sort cpu runs
	[ "${#lines[@]}" -eq 3 ]
	run -0 "$STRAIN" ls --sort RANK runs
	[ "${#lines[@]}" -eq 5 ]
	run -0 "$STRAIN" ls --where job=first runs
	[ "${#lines[@]}" -eq 4 ]
}
