#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# strain under a real Slurm (tools/slurm.sh: a controller and four nodes on this machine), as an
# ordinary user: sweeps with executor: slurm, and strain run in batch jobs.

load run_helpers
load joined

setup_file() {
	local program
	PATH=$PATH:/usr/sbin:/sbin
	for program in slurmctld slurmd sbatch squeue; do
		command -v "$program" >/dev/null || skip "$program is not installed"
	done
	export FOLDER
	FOLDER=$(mktemp -d /tmp/strain-slurm-test-XXXXXX)
	export AS=""
	if [ "$(id -u)" = 0 ]; then
		command -v setpriv >/dev/null || skip "setpriv is not installed"
		AS="setpriv --reuid 65534 --regid 65534 --clear-groups"
		chown 65534:65534 "$FOLDER"
		$AS test -x "$STRAIN" && $AS test -r "$SOURCE_ROOT/tools/slurm.sh" ||
			skip "another user cannot reach the build"
	fi
	export SLURM_CONF=$FOLDER/slurm/slurm.conf HOME=$FOLDER XDG_STATE_HOME=$FOLDER/state \
		XDG_CACHE_HOME=$FOLDER/cache
	cd "$FOLDER" || return 1
	# The examples for centres; on in one test only.
	export STRAIN_SITE=off STRAIN_SITE_DIR=$FOLDER/runs-of-all
	$AS mkdir "$STRAIN_SITE_DIR"
	printf 'Task%s=%s\n' Prolog "$SOURCE_ROOT/examples/slurm/task_prolog.sh" \
		Epilog "$SOURCE_ROOT/examples/slurm/task_epilog.sh" | $AS tee with >/dev/null
	# --insecure: also where the name of the machine has no address of loopback. It ends with the tests,
	# and within an hour if they are killed.
	slurm start --nodes 4 --cpus 4 --gpus 1 --with "$FOLDER/with" --insecure >&2 || {
		echo "Slurm does not start here" >&2
		return 1
	}
	# A minute is the shortest time limit: it passes beside the other tests.
	place limit
	plan "exec sleep 600" 1 "slurm: {time: 1min, options: [--nodelist=node4]}"
	$AS "$STRAIN" sweep plan.yaml >out 2>&1 3>&- &
	echo $! >"$FOLDER/limit.pid"
}

teardown_file() {
	[ -n "${FOLDER:-}" ] && [ -d "$FOLDER" ] || return 0
	if [ -e "$FOLDER/limit.pid" ]; then
		kill "$(cat "$FOLDER/limit.pid")" 2>/dev/null || true
	fi
	cd /
	slurm stop >&2 || true
	rm -rf "$FOLDER"
}

setup() {
	cd "$FOLDER" || return 1
}

slurm() { # COMMAND ARGUMENT...
	$AS "$SOURCE_ROOT/tools/slurm.sh" "$1" "$FOLDER/slurm" "${@:2}"
}

# A folder of the test's own, which is the current one then.
place() { # NAME
	$AS mkdir "$FOLDER/$1"
	cd "$FOLDER/$1" || return 1
}

# A plan of N trials; each runs a command of sh, in which ${n} is its number.
plan() { # COMMAND N LINE...
	{
		printf 'command: [sh, -c, "%s"]\n' "$1"
		printf 'parameters: {n: {values: [%s]}}\n' "$(seq -s, "$2")"
		printf 'labels: {x: "${n}"}\n' | sed 's/"[$].*"/y/'
		printf 'env: {N: "${n}"}\n'
		printf 'executor: slurm\nresources: {cpus: 1, memory: 200MiB}\n'
		printf '%s\n' "${@:3}"
	} | $AS tee plan.yaml >/dev/null
}

sweep() {
	$AS "$STRAIN" sweep "$@"
}

# In the background; its output is in the file `out`. Sets $pid.
start_sweep() {
	$AS setsid "$STRAIN" sweep "${@:-plan.yaml}" >>out 2>&1 3>&- &
	pid=$!
}

outcomes() { # FOLDER
	$AS "$STRAIN" ls --json "$1" | jq -r '[.[].outcomes // {} | to_entries[] | "\(.value) \(.key)"] | sort | join(", ")'
}

outcome_of() { # RUN
	$AS "$STRAIN" show --json "$1" 2>/dev/null | jq -r '.run.outcome'
}

said() { # TEXT
	grep -qF -- "$1" out
}

begun() { # N
	[ "$(cat begun 2>/dev/null | wc -l)" -ge "$1" ]
}

# Each of N trials has begun and ended once.
ran_once() { # N
	[ "$(sort ran)" = "$(seq "$1" | sort)" ] && [ "$(sort begun)" = "$(seq "$1" | sort)" ]
}

# The id of the task that runs a trial.
task_of() { # TRIAL
	local ticket
	ticket=$(basename plan.sweep/slurm/"$1".*.taken .taken)
	printf '%s_%s\n' "$(cat plan.sweep/slurm/"$(cut -d. -f3 <<<"$ticket")".job)" "$(cut -d. -f4 <<<"$ticket")"
}

ends_within() { # SECONDS PID
	local tries
	for ((tries = 0; tries < $1 * 10; tries++)); do
		kill -0 "$2" 2>/dev/null || return 0
		sleep 0.1
	done
	cat out
	return 1
}

# Nothing is left of trials that were submitted.
is_settled() {
	[ -z "$(ls -A plan.sweep/slurm)" ] && ! compgen -G 'plan.sweep/*.running*'
}

@test "a sweep killed at ten moments and started again: every trial once" {
	place killed
	plan 'echo $N >>begun; sleep 1; echo $N >>ran' 12 "slurm: {options: [--exclude=node3]}"
	local i
	for i in 1 2 3 4 5 6 7 8 9 10; do
		start_sweep
		sleep "0.$((RANDOM % 6))$((RANDOM % 10))"
		kill -9 "$pid" 2>/dev/null || true
		wait "$pid" || true
	done
	run -0 --separate-stderr sweep plan.yaml --json
	[ "$(jq -c '[.complete, .outcomes]' <<<"$output")" = '[12,{"success":12}]' ]
	ran_once 12
	is_settled
	# The plan's resources are labels, and were asked of Slurm, not of strain.
	[ "$($AS "$STRAIN" show --json plan.sweep/0001-1.strain | jq -c '[.run.labels.cpus, .run.labels.memory, .run.limits.cpus]')" = \
		'["1","200MiB",null]' ]
}

@test "out of memory, cancelled by hand, a node that dies: outcomes; a requeued trial runs again" {
	place ends
	plan 'echo $N >>begun; case $N in 1) exec /usr/bin/python3 -c \"import time; x = bytearray(600 << 20); time.sleep(600)\";; 2|3) exec sleep 600;; esac' \
		4 "slurm: {requeue: false, options: [--nodelist=node3, --cpus-per-task=1]}" "order: plan"
	start_sweep
	local ends=$pid
	place requeued
	plan 'echo $N >>begun; test -e go || exec sleep 600; echo $N >>ran' 1 "slurm: {options: [--nodelist=node3]}"
	start_sweep
	local requeued=$pid
	eventually begun 1
	cd "$FOLDER/ends"
	eventually begun 4
	scancel "$(task_of 0002-1)"
	eventually test -e plan.sweep/0002-1.strain
	[ "$(outcome_of plan.sweep/0002-1.strain)" = cancelled ]
	eventually test -e plan.sweep/0001-1.strain
	slurm kill node3
	$AS touch "$FOLDER/requeued/go"
	ends_within 60 "$ends"
	run -0 --separate-stderr sweep plan.yaml --json
	[ "$(jq -c '.outcomes' <<<"$output")" = '{"success":1,"out_of_memory":1,"cancelled":1,"node_failure":1}' ]
	[ "$(outcome_of plan.sweep/0003-1.strain)" = node_failure ]
	# What was recorded before the end is there.
	for run in plan.sweep/000[123]-1.strain; do
		$AS "$STRAIN" show --json "$run" | jq -e '.run.recorded_s > 0' >/dev/null
	done
	is_settled
	slurm revive node3
	cd "$FOLDER/requeued"
	# Slurm would wait for two minutes.
	eventually restarts_now "$(task_of 0001-1)"
	ends_within 60 "$requeued"
	[ "$(cat begun ran)" = $'1\n1\n1' ]
	[ "$(outcome_of plan.sweep/0001-1.strain)" = success ]
	is_settled
}

restarts_now() { # JOB
	$AS scontrol update "JobId=$1" StartTime=now 2>/dev/null
	begun 2
}

@test "preempted: an outcome, or it runs again" {
	place preempted
	plan 'echo $N >>begun; exec sleep 600' 1 "slurm: {partition: cancelled, requeue: false, options: [--nodelist=node2, --exclusive]}"
	start_sweep
	local preempted=$pid
	eventually begun 1
	place again
	plan 'echo $N >>begun; test -e go || exec sleep 600; echo $N >>ran' 1 "slurm: {partition: requeued, options: [--nodelist=node1, --exclusive]}"
	start_sweep
	local again=$pid
	eventually begun 1
	$AS touch go
	$AS sbatch --nodelist=node1 --exclusive --mem=10 --output=/dev/null --wrap 'true' </dev/null
	$AS sbatch --nodelist=node2 --exclusive --mem=10 --output=/dev/null --wrap 'true' </dev/null
	eventually restarts_now "$(task_of 0001-1)"
	ends_within 60 "$again"
	[ "$(cat begun ran)" = $'1\n1\n1' ]
	is_settled
	cd "$FOLDER/preempted"
	ends_within 60 "$preempted"
	[ "$(outcome_of plan.sweep/0001-1.strain)" = preempted ]
	is_settled
}

@test "an answer of sbatch that is lost, or a submission: every trial once" {
	local kind sbatch
	sbatch=$(command -v sbatch)
	declare -A pids
	for kind in before after; do
		place "lost-$kind"
		plan 'echo $N >>begun; echo $N >>ran' 3 "slurm: {options: [--exclude=node3]}"
		$AS mkdir bin
		$AS tee bin/sbatch >/dev/null <<-END
			#!/bin/sh
			if [ ! -e "$PWD/failed" ]; then
				touch "$PWD/failed"
				if [ $kind = after ]; then
					"$sbatch" "\$@" >/dev/null
				fi
				echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2
				exit 1
			fi
			exec "$sbatch" "\$@"
		END
		$AS chmod +x bin/sbatch
		# What the user's own squeue shows is not what the sweep asks for.
		PATH=$PWD/bin:$PATH SQUEUE_PARTITION=requeued SBATCH_EXPORT=NONE \
			start_sweep
		pids[$kind]=$pid
	done
	for kind in before after; do
		cd "$FOLDER/lost-$kind"
		ends_within 60 "${pids[$kind]}"
		ran_once 3
		said "Socket timed out"
		is_settled
	done
}

@test "a node that fails every trial: the next ones run elsewhere" {
	local sbatch
	sbatch=$(command -v sbatch)
	place broken
	plan 'echo $N >>begun; sleep 1; echo $N >>ran' 8 "slurm: {options: [--exclude=node3], parallel: 8}" "order: plan"
	sed -i 's/--exclude=node3/--cpus-per-task=1/' plan.yaml
	$AS mkdir bin
	# node1 cannot start a trial, and is free at once.
	$AS tee bin/sbatch >/dev/null <<-END
		#!/bin/sh
		echo "\$*" >>"$PWD/submitted"
		sed '2i [ "\$SLURMD_NODENAME" != node1 ] || exit 7' | "$sbatch" "\$@"
	END
	$AS chmod +x bin/sbatch
	PATH=$PWD/bin:$PATH start_sweep
	ends_within 120 "$pid"
	ran_once 8
	said "node1 failed 2 trials; excluding it from further submissions (--exclude=node1)"
	tail -n 1 submitted | grep -q -- '--exclude=node1'
	is_settled
}

@test "no other node than the broken one: it is tried again" {
	local sbatch
	sbatch=$(command -v sbatch)
	place only
	plan 'echo $N >>begun; echo $N >>ran' 3 "slurm: {options: [--nodelist=node2]}" "order: plan"
	$AS mkdir bin
	$AS tee bin/sbatch >/dev/null <<-END
		#!/bin/sh
		case "\$*" in *--exclude=node2*)
			touch "$PWD/excluded"
			echo "sbatch: error: Batch job submission failed: Requested node configuration is not available" >&2
			exit 1 ;;
		esac
		sed '2i [ -e "$PWD/excluded" ] || exit 7' | "$sbatch" "\$@"
	END
	$AS chmod +x bin/sbatch
	PATH=$PWD/bin:$PATH start_sweep
	ends_within 120 "$pid"
	ran_once 3
	said "retrying the excluded ones"
	is_settled
}

@test "more trials than may be submitted: in smaller arrays" {
	place many
	plan 'echo $N >>begun; echo $N >>ran' 5 "slurm: {options: [--exclude=node3]}"
	$AS mkdir bin
	$AS tee bin/sbatch >/dev/null <<-END
		#!/bin/sh
		case "\$*" in *--array=1-[3-9]*)
			echo "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)" >&2
			exit 1
		esac
		exec "$(command -v sbatch)" "\$@"
	END
	$AS chmod +x bin/sbatch
	PATH=$PWD/bin:$PATH start_sweep
	ends_within 60 "$pid"
	ran_once 5
	is_settled
	# Not even one.
	$AS sed -i 's/3-9/1-9/' bin/sbatch
	PATH=$PWD/bin:$PATH start_sweep plan.yaml -o none.sweep
	ends_within 60 "$pid"
	said "job submit limit"
	[ -z "$(ls -A none.sweep/slurm)" ]
}

@test "while the controller does not answer, a sweep waits" {
	place silent
	plan 'echo $N >>begun; while ! test -e go; do sleep 0.1; done; echo $N >>ran' 2 "slurm: {options: [--exclude=node3]}"
	start_sweep
	eventually begun 2
	slurm kill controller
	eventually said "trying again"
	$AS touch go
	# A trial needs no controller to end.
	eventually test -e plan.sweep/0001-1.strain
	slurm revive controller
	ends_within 60 "$pid"
	ran_once 2
	[ "$(grep -c 'trying again' out)" = 1 ]
}

@test "a sweep that is ended leaves its trials; on a terminal it can cancel them" {
	place left
	plan 'echo $N >>begun; while ! test -e go; do sleep 0.1; done; echo $N >>ran' 2 "slurm: {options: [--exclude=node3]}"
	start_sweep
	eventually begun 2
	kill -TERM "$pid"
	local status=0
	wait "$pid" || status=$?
	[ "$status" = 143 ]
	said "2 trials are in Slurm"
	# Slurm has trials of this plan.
	sed 's/200MiB/300MiB/' plan.yaml | $AS tee other.yaml >/dev/null
	fails_with 1 plan.sweep other.yaml Slurm -- sweep other.yaml -o plan.sweep --force
	# Ctrl-C, and the answer c.
	run -0 $AS /usr/bin/python3 - "$STRAIN" <<-'END'
		import os, pty, select, sys, time
		pid, terminal = pty.fork()
		if pid == 0:
		    os.execv(sys.argv[1], [sys.argv[1], "sweep", "plan.yaml"])
		seen, asked, answered, until = b"", False, False, time.monotonic() + 60
		while time.monotonic() < until:
		    if select.select([terminal], [], [], 0.1)[0]:
		        try:
		            data = os.read(terminal, 65536)
		        except OSError:
		            break
		        seen += data
		    if b"2 running" in seen and not asked:
		        os.write(terminal, b"\x03")
		        asked = True
		    if b"cancel them (c)" in seen and not answered:
		        os.write(terminal, b"c\n")
		        answered = True
		status = os.waitpid(pid, 0)[1]
		print(seen.decode(errors="replace"))
		sys.exit(0 if answered and os.waitstatus_to_exitcode(status) == 130 else 1)
	END
	eventually none_in_queue
	[ ! -e ran ]
	# They have no outcome, and run again.
	$AS touch go
	$AS rm begun
	run -0 --separate-stderr sweep plan.sweep --json
	[ "$(jq -c '[.complete, .outcomes]' <<<"$output")" = '[2,{"success":2}]' ]
	ran_once 2
	is_settled
}

has_died() { # PID
	[ ! -e "/proc/$1" ] || grep -q '^State:.*Z' "/proc/$1/status"
}

# No job that was submitted in this folder.
none_in_queue() {
	! squeue -h -o %Z --states=PD,R,CG | grep -qxF "$PWD"
}

@test "half of an array is cancelled, and what runs is one trial at a time" {
	place half
	plan 'echo $N >>begun; test $N = 1 && sleep 1; while ! test -e go; do sleep 0.1; done; echo $N >>ran' 6 \
		"slurm: {parallel: 1, options: [--exclude=node3]}" "order: plan"
	start_sweep
	eventually begun 1
	sleep 0.5
	begun 2 && return 1
	scancel "$(cat plan.sweep/slurm/*.job)_[4-6]"
	$AS touch go
	ends_within 60 "$pid"
	[ "$(sort ran)" = "$(seq 3)" ]
	[ "$(sort begun)" = "$(seq 3)" ]
	run -0 --separate-stderr sweep plan.yaml --json
	[ "$(jq -c '.outcomes' <<<"$output")" = '{"success":3,"cancelled":3}' ]
	is_settled
}

@test "GPUs are asked of Slurm, and are what the trial was allocated" {
	place gpus
	# Six trials that each want the one GPU of a node, of two nodes: never two on one at a time.
	plan 'echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES begun >>log; sleep 1; echo $SLURMD_NODENAME end >>log' 6 \
		"slurm: {options: ['--exclude=node[3-4]']}"
	$AS sed -i 's/memory: 200MiB/memory: 200MiB, gpus: 1/' plan.yaml
	run -0 --separate-stderr sweep plan.yaml --json
	[ "$(jq -c '[.complete, .outcomes]' <<<"$output")" = '[6,{"success":6}]' ]
	cat log
	[ "$(grep -c ' 0 begun' log)" = 6 ]
	awk '/begun/ { if (busy[$1]++) exit 1 } /end/ { busy[$1]-- }' log
	[ "$($AS "$STRAIN" sql plan.sweep/0001-1.strain "SELECT value FROM run WHERE key = 'slurm_gpus_on_node'" | tail -1)" = 1 ]
	# More than a node has: Slurm's words, and nothing waits.
	plan 'true $N' 1
	$AS sed -i 's/memory: 200MiB/memory: 200MiB, gpus: 3/' plan.yaml
	run -1 --separate-stderr sweep plan.yaml -o more.sweep
	notes sbatch 'configuration is not available'
}

@test "wrong plans, an old Slurm and none at all" {
	place wrong
	plan 'true $N' 2 "slurm: {partition: nowhere}"
	run -1 --separate-stderr sweep plan.yaml
	notes nowhere partition
	[ -z "$(ls -A plan.sweep/slurm)" ]
	plan 'true $N' 2 "slurm: {partition: nowhere, options: [--array=1-9]}"
	fails_with 1 plan.yaml slurm.options '--array=1-9' -- sweep plan.yaml -o a.sweep
	plan 'true $N' 2 "slurm: {options: [-Mother]}"
	fails_with 1 plan.yaml slurm.options -Mother -- sweep plan.yaml -o a.sweep
	plan 'true $N' 2
	SLURM_CLUSTERS=other run -1 --separate-stderr sweep plan.yaml -o a.sweep
	notes SLURM_CLUSTERS 'executor: slurm'
	plan 'true $N' 2 "slurm: {time: soon}"
	fails_with 1 plan.yaml slurm.time soon -- sweep plan.yaml -o a.sweep
	plan 'true $N' 2
	$AS sed -i '/^executor/d' plan.yaml
	$AS sh -c 'echo "slurm: {time: 1min}" >>plan.yaml'
	fails_with 1 plan.yaml slurm 'executor: slurm' -- sweep plan.yaml -o a.sweep
	plan 'true $N' 2
	run -1 --separate-stderr sweep plan.yaml -o 'a%b.sweep'
	notes 'a%b.sweep' -o
	plan 'true $N' 2
	$AS sed -i '1i env: {API_TOKEN: hunter2hunter2}' plan.yaml
	$AS sed -i '/^env: {N/d' plan.yaml
	$AS sed -i 's/true .N/true ${n}/' plan.yaml
	run -1 --separate-stderr sweep plan.yaml -o c.sweep
	notes 'executor: slurm' secrets
	[[ "$stderr" != *hunter2* ]]
	plan 'true $N' 2
	$AS mkdir bin
	printf '#!/bin/sh\necho "SLURM_VERSION           = 16.05.11"\n' | $AS tee bin/scontrol >/dev/null
	$AS chmod +x bin/scontrol
	PATH=$PWD/bin:$PATH run -1 --separate-stderr sweep plan.yaml -o a.sweep
	notes 17.11 16.05.11
	# A command that hangs ends with the sweep, and all that it started.
	printf '#!/bin/sh\nsleep 300 &\necho $! >hangs\nwait\n' | $AS tee bin/scontrol >/dev/null
	PATH=$PWD/bin:$PATH start_sweep plan.yaml -o d.sweep
	eventually test -s hangs
	kill -TERM "$pid"
	ends_within 30 "$pid"
	eventually has_died "$(cat hangs)"
	# Without the commands of Slurm.
	$AS mkdir few
	$AS ln -s "$(command -v sh)" few/sh
	run -1 --separate-stderr $AS env PATH="$PWD/few" "$STRAIN" sweep plan.yaml -o b.sweep
	notes scontrol PATH
}

@test "strain run in a batch job: beside its output, and its end by Slurm is known" {
	place own
	local job step
	job=$($AS sbatch --parsable --exclude=node3 --mem=200 --wrap "'$STRAIN' run --no-verdict sleep 600" </dev/null)
	step=$($AS sbatch --parsable --exclude=node3 --mem=200 --wrap "srun '$STRAIN' run --no-verdict sh -c 'exit 3'" </dev/null)
	eventually compgen -G '*.strain' >/dev/null
	eventually is_recorded "$job"
	scancel "$job"
	eventually has_ended "$job"
	eventually has_ended "$step"
	[ "$(wc -l < <(ls ./*.strain))" = 2 ]
	local run outcomes=()
	for run in *.strain; do
		outcomes+=("$($AS "$STRAIN" show --json "$run" | jq -r '"\(.run.labels.SLURM_JOB_ID) \(.run.outcome) \(.run.state)"')")
	done
	printf '%s\n' "${outcomes[@]}" | sort >outcomes.txt 2>/dev/null || true
	[[ " ${outcomes[*]} " == *"$job cancelled finished"* ]]
	[[ " ${outcomes[*]} " == *"$step crash finished"* ]]
}

@test "ranks that srun starts on two nodes: one job, named by Slurm, and its slow rank" {
	place ranks
	/usr/bin/python3 -c 'import torch.distributed as d; assert d.is_gloo_available()' 2>/dev/null || skip "no PyTorch with gloo"
	local job port
	port=$(free_port)
	job=$($AS env MASTER_ADDR=127.0.0.1 MASTER_PORT="$port" OMP_NUM_THREADS=1 sbatch --parsable --exclude=node3,node4 -N2 -n2 \
		--mem=700 --wrap "srun '$STRAIN' run --no-verdict /usr/bin/python3 '$SOURCE_ROOT/tests/cli/ranks_job.py' --slow 1" </dev/null)
	eventually has_ended "$job"
	cat slurm-*.out
	$AS "$STRAIN" show .
	$AS "$STRAIN" show --json . | jq -c '[.runs, .named_by, [.ranks[].rank], .slowest.rank, .slowest.phase]' >found
	cat found
	[ "$(cat found)" = '[2,"SLURM_JOB_ID",[0,1],1,"forward"]' ]
}

is_recorded() { # JOB
	local run
	for run in *.strain; do
		[ "$($AS "$STRAIN" show --json "$run" 2>/dev/null | jq -r '.run.labels.SLURM_JOB_ID')" != "$1" ] || return 0
	done
	return 1
}

has_ended() { # JOB
	[ -z "$(squeue -h -j "$1" --states=PD,R,CG -o %T 2>/dev/null)" ]
}

@test "TaskProlog and TaskEpilog record a job that does not know of it, and write its verdict into the Comment" {
	place site
	local job
	job=$(STRAIN_SITE=on STRAIN_SITE_AFTER=0.1 $AS sbatch --parsable --exclude=node3 --mem=200 --output=out --wrap 'sleep 2.5; echo the end' </dev/null)
	eventually has_ended "$job"
	[ "$(cat out)" = "the end" ]
	local folder
	folder=$STRAIN_SITE_DIR/$($AS id -un)
	[ "$(stat -c %a "$folder")" = 700 ]
	local runs=("$folder/$job".batch.*.strain)
	[ "${#runs[@]}" = 1 ]
	$AS "$STRAIN" show --json "${runs[0]}" | jq -e '.run.recorded_s > 1 and .run.state == "finished"' >/dev/null
	[[ "$(scontrol show job "$job")" == *"Comment=strain: "* ]]
	# A short one is not recorded.
	job=$(STRAIN_SITE=on $AS sbatch --parsable --exclude=node3 --mem=200 --output=out --wrap 'true' </dev/null)
	eventually has_ended "$job"
	! compgen -G "$folder/$job.*"
}

@test "the Comment is that of a step that works, not of the batch script that waits for it" {
	place steps
	local job
	job=$(STRAIN_SITE=on STRAIN_SITE_AFTER=0.1 $AS sbatch --parsable --exclude=node3 --mem=200 --output=out \
		--wrap "srun sh -c 'i=0; until [ \$(cut -d . -f 1 /proc/\$\$/stat | wc -c) = 0 ] || [ \$i -ge 900 ]; do i=\$((i + 1)); done'" </dev/null)
	eventually has_ended "$job"
	local folder
	folder=$STRAIN_SITE_DIR/$($AS id -un)
	cat out "$folder/$job".*.txt
	[ -s "$(echo "$folder/$job".0.*.txt)" ]
	[ -s "$(echo "$folder/$job".batch.*.txt)" ]
	[[ "$(scontrol --oneliner show job "$job")" == *"Comment=strain: $(cat "$folder/$job".0.*.txt)"* ]]
}

# What a job of the user can put there must not keep a node busy, and a folder is not taken from others.
@test "the scripts of administrators end whatever is in the folder of the runs" {
	place hostile
	local site=$SOURCE_ROOT/examples/slurm
	export STRAIN_SITE=on STRAIN_SITE_DIR=$PWD/shared SLURM_JOB_ID=4711 SLURM_STEP_ID=0 SLURM_LOCALID=0 SLURMD_NODENAME=n1
	local folder
	folder=$STRAIN_SITE_DIR/$($AS id -un)
	$AS mkdir -p "$folder" # also the shared one, which here is this user's
	$AS chmod 2750 "$folder"
	$AS mkfifo "$folder/4711.0.n1.pid"
	ends_within 5 "$($AS sh -c '"$1" >/dev/null 2>&1 & echo $!' sh "$site/task_epilog.sh")"
	$AS rm "$folder/4711.0.n1.pid"
	# The folder keeps its mode, and the recorder is in a session of its own.
	STRAIN_SITE_AFTER=60 $AS "$site/task_prolog.sh"
	[ "$(stat -c %a "$folder")" = 2750 ]
	local recorder
	recorder=$(cat "$folder/4711.0.n1.pid")
	[ "$(ps -o sid= -p "$recorder" | tr -d ' ')" = "$recorder" ]
	$AS "$site/task_epilog.sh" # a short step
	ends_within 5 "$recorder"
	[ -z "$(ls -A "$folder")" ]
	# An attempt after a requeue has a name of its own.
	STRAIN_SITE_AFTER=60 SLURM_RESTART_COUNT=1 $AS "$site/task_prolog.sh"
	[ -e "$folder/4711.0.n1.attempt2.pid" ]
	SLURM_RESTART_COUNT=1 $AS "$site/task_epilog.sh"
	# A link to a folder of somebody else, and one that cannot be written.
	rm -rf "$folder"
	$AS ln -s /tmp "$folder"
	$AS "$site/task_prolog.sh"
	run ! compgen -G "/tmp/4711.*"
	rm "$folder"
	chmod 555 "$STRAIN_SITE_DIR"
	$AS "$site/task_prolog.sh"
	chmod 755 "$STRAIN_SITE_DIR"
}

@test "past its time limit" {
	cd "$FOLDER/limit"
	ends_within 120 "$(cat "$FOLDER/limit.pid")"
	cat out
	[ "$(outcome_of plan.sweep/0001-1.strain)" = time_limit ]
	$AS "$STRAIN" show --json plan.sweep/0001-1.strain | jq -e '.run.recorded_s > 0' >/dev/null
	is_settled
}
