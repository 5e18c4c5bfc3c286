#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# strain in jobs of a Slurm that is like that of a cluster (tools/slurm.sh --cgroup): its daemons run as
# root, jobs as an ordinary user, and cgroups tell what belongs to a job and limit it.

load run_helpers

AS="setpriv --reuid 65534 --regid 65534 --clear-groups"

setup_file() {
	local program status=0
	PATH=$PATH:/usr/sbin:/sbin
	for program in slurmctld slurmd sbatch squeue munged setpriv jq; do
		command -v "$program" >/dev/null || skip "$program is not installed"
	done
	[ "$(id -u)" = 0 ] || skip "only root can start jobs of other users"
	id -un 65534 >/dev/null 2>&1 || skip "user 65534 has no name"
	$AS test -x "$STRAIN" && $AS test -r "$SOURCE_ROOT/tools/slurm.sh" || skip "another user cannot reach the build"
	export FOLDER JOBS
	FOLDER=$(mktemp -d /tmp/strain-slurm-cgroup-test-XXXXXX)
	chmod 755 "$FOLDER"
	JOBS=$FOLDER/jobs
	mkdir "$JOBS"
	chown 65534:65534 "$JOBS"
	export SLURM_CONF=$FOLDER/slurm/slurm.conf HOME=$JOBS XDG_STATE_HOME=$JOBS/state XDG_CACHE_HOME=$JOBS/cache
	# The examples for centres; on in some jobs only.
	export STRAIN_SITE=off STRAIN_SITE_AFTER=0.1 STRAIN_SITE_DIR=$JOBS/runs-of-all
	$AS mkdir "$STRAIN_SITE_DIR"
	printf '#!/bin/sh\necho "$SLURM_JOB_ID $(id -u)" >>%s\n' "$FOLDER/prolog.out" >"$FOLDER/prolog.sh"
	chmod 755 "$FOLDER/prolog.sh"
	printf '%s=%s\n' Prolog "$FOLDER/prolog.sh" TaskProlog "$SOURCE_ROOT/examples/slurm/task_prolog.sh" \
		TaskEpilog "$SOURCE_ROOT/examples/slurm/task_epilog.sh" >"$FOLDER/with"
	slurm start --cgroup --with "$FOLDER/with" --insecure >&2 2>"$FOLDER/why" || status=$?
	cat "$FOLDER/why" >&2
	if [ $status = 77 ]; then
		skip "$(tail -n 1 "$FOLDER/why")"
	fi
	[ $status = 0 ] || return 1
	# Slurm compares with the time limit twice a minute: this passes beside the other tests. A minute is the
	# shortest limit, but its end can be set.
	place limit
	submit sleep 600 >job
	eventually compgen -G '*.strain' >/dev/null
	scontrol update "JobId=$(cat job)" EndTime=now+1second
}

teardown_file() {
	[ -n "${FOLDER:-}" ] && [ -d "$FOLDER" ] || return 0
	cd /
	slurm stop >&2 || true
	rm -rf "$FOLDER"
}

setup() {
	cd "$JOBS" || return 1
}

slurm() { # COMMAND ARGUMENT...
	"$SOURCE_ROOT/tools/slurm.sh" "$1" "$FOLDER/slurm" "${@:2}"
}

# A folder of the test's own, which is the current one then.
place() { # NAME
	$AS mkdir "$JOBS/$1"
	cd "$JOBS/$1" || return 1
}

# Submits a job that records a command; prints its id. Its script is the file script, its output in out.
submit() { # COMMAND...
	submit_as '' "$@"
}

submit_as() { # PREFIX COMMAND...
	{
		printf '#!/bin/sh\nexec %s "$STRAIN" run --no-verdict' "$1"
		printf " '%s'" "${@:2}"
		echo
	} >"$FOLDER/script"
	$AS sbatch --parsable --mem=100 --requeue --output=out "${OPTIONS[@]}" <"$FOLDER/script"
}

# A program of the job, which ends when the file go is there: it says what signals it gets.
write_listener() {
	$AS tee listener.py >/dev/null <<-'EOF'
		import os, signal, time
		signal.signal(signal.SIGUSR1, lambda *_: print("USR1", flush=True))
		print("ready", flush=True)
		while not os.path.exists("go"):
		    time.sleep(0.05)
	EOF
}

submit_limited() { # BYTES COMMAND...
	{
		printf '#!/bin/sh\nexec "$STRAIN" run --no-verdict --memory %s' "$1"
		printf " '%s'" "${@:2}"
		echo
	} >"$FOLDER/script"
	$AS sbatch --parsable --mem=100 --output=out <"$FOLDER/script"
}

has_ended() { # JOB
	[ -z "$(squeue -h -j "$1" --states=PD,R,S,CG -o %T 2>/dev/null)" ]
}

is_pending() { # JOB
	[ "$(squeue -h -j "$1" -o %T 2>/dev/null)" = PENDING ]
}

runs_again() { # JOB
	[[ "$(scontrol --oneliner show job "$1")" == *" Restarts=1 "*"JobState=RUNNING"* ]] ||
		[[ "$(scontrol --oneliner show job "$1")" == *"JobState=RUNNING"*" Restarts=1 "* ]]
}

said() { # TEXT TIMES
	[ "$(grep -cxF -- "$1" out)" -ge "$2" ]
}

# A member of table run, as JSON, of a run file of the current folder.
of_run() { # EXPRESSION RUN
	$AS "$STRAIN" show --json "$2" | jq -r ".run | $1"
}

state_of() { # JOB
	scontrol --oneliner show job "$1" | sed -n 's/.* JobState=\([A-Z_]*\) .*/\1/p'
}

# The folder of the job in a hierarchy of cgroups.
cgroup_of() { # CONTROLLER JOB
	compgen -G "/sys/fs/cgroup/$1/slurm_node*/uid_65534/job_$2"
}

@test "SIGUSR1 from scancel reaches a job once: a step of srun, the batch script, and all processes" {
	place signals
	write_listener
	local job
	job=$(submit_as srun /usr/bin/python3 listener.py)
	eventually said ready 1
	$AS scancel --signal=USR1 "$job.0"
	eventually said USR1 1
	$AS mkdir batch
	cd batch
	$AS cp ../listener.py .
	local batch
	batch=$(submit /usr/bin/python3 listener.py)
	eventually said ready 1
	$AS scancel --batch --signal=USR1 "$batch"
	eventually said USR1 1
	sleep 1 # a second one would follow within a third of it
	said USR1 2 && return 1
	$AS scancel --full --signal=USR1 "$batch"
	eventually said USR1 2
	sleep 1
	$AS touch go ../go
	eventually has_ended "$job"
	eventually has_ended "$batch"
	[ "$(grep -c USR1 out)" = 2 ]
	[ "$(grep -c USR1 ../out)" = 1 ]
	[ "$(of_run .outcome ../*.strain)" = success ]
	[ "$(of_run .outcome ./*.strain)" = success ]
}

@test "a job over its memory limit: the kernel kills it, and its outcome says whose limit it was" {
	place memory
	local job
	job=$(submit /usr/bin/python3 -c 'import time
time.sleep(0.5)
kept = []
while len(kept) < 100:
    kept.append(bytearray(b"x") * (8 << 20))
    time.sleep(0.02)')
	eventually has_ended "$job"
	cat out
	[ "$(of_run .state ./*.strain)" = finished ]
	[ "$(of_run .outcome ./*.strain)" = out_of_memory ]
	[[ "$(of_run .outcome_text ./*.strain)" == *"/slurm_node"*"/job_$job"* ]]
	# Slurm sees it, too: its state is not FAILED.
	[ "$(state_of "$job")" = OUT_OF_MEMORY ]
	$AS "$STRAIN" show ./*.strain >shown
	tr -s ' \n' ' ' <shown | grep -q "with a child, Slurm would not see that the kernel kills the job"
}

@test "two steps that reach the limit of their job together: it is not said to be the machine's memory" {
	place together
	$AS tee holds.py >/dev/null <<-'EOF'
		import sys, time
		with open("/proc/self/oom_score_adj", "w") as f:
		    f.write(sys.argv[2]) # the kernel kills the second
		kept = bytearray(b"x") * (60 << 20)
		open(sys.argv[1], "w").close()
		time.sleep(600)
	EOF
	local job
	job=$($AS sbatch --parsable --mem=100 --output=out --wrap '
		srun --overlap --mem=100 /usr/bin/python3 holds.py first 0 &
		holder=$!
		until [ -e first ]; do sleep 0.05; done
		srun --overlap --mem=100 "$STRAIN" run --no-verdict /usr/bin/python3 holds.py second 500
		kill $holder; wait' </dev/null)
	eventually has_ended "$job"
	cat out
	[ "$(of_run .outcome ./*.strain)" = out_of_memory ]
	[[ "$(of_run .outcome_text ./*.strain)" == *"/job_$job" ]]
}

@test "a limit on memory of strain's own, in a job of Slurm" {
	place own-limit
	local job
	job=$(submit_limited 60MB sh -c 'cat /proc/self/cgroup; until [ -e go ]; do sleep 0.05; done')
	eventually grep -q memory out
	grep -q "memory:.*/job_$job/.*/strain-[0-9]*$" out
	[ "$(cat "/sys/fs/cgroup/memory$(sed -n 's/.*:memory://p' out)/memory.limit_in_bytes")" = 59998208 ]
	$AS touch go
	eventually has_ended "$job"
	[ "$(of_run .outcome ./*.strain)" = success ]
}

@test "a batch job that is cancelled: its run is complete, and no process is left" {
	place cancelled
	local job pid
	job=$(submit sh -c 'sleep 600 & echo $! >>pids; setsid sleep 600 & echo $! >>pids; echo $$ >>pids; wait')
	eventually compgen -G '*.strain' >/dev/null
	eventually wait_for_lines pids 3
	[ -n "$(cgroup_of freezer "$job")" ]
	$AS scancel "$job"
	eventually has_ended "$job"
	[ "$(of_run .state ./*.strain)" = finished ]
	[ "$(of_run .outcome ./*.strain)" = cancelled ]
	[ "$(state_of "$job")" = CANCELLED ]
	for pid in $(cat pids); do
		[ -z "$(grep "job_$job" "/proc/$pid/cgroup" 2>/dev/null)" ] # none, or of another process by now
	done
	[ -z "$(cgroup_of freezer "$job")" ]
	[ -z "$(compgen -G './*.strain-*')" ]
}

wait_for_lines() { # FILE N
	[ "$(wc -l <"$1" 2>/dev/null || echo 0)" -ge "$2" ]
}

@test "a job that is suspended and resumed: the run says for how long" {
	place suspended
	local job frozen before after
	job=$(submit sh -c ': >begun; until [ -e go ]; do :; done')
	eventually test -e begun
	eventually compgen -G '*.strain' >/dev/null
	sleep 0.5
	before=$(date +%s%N)
	scontrol suspend "$job"
	eventually is_frozen "$job"
	frozen=$(date +%s%N)
	sleep 2
	frozen=$(($(date +%s%N) - frozen))
	scontrol resume "$job"
	eventually is_thawed "$job"
	after=$(($(date +%s%N) - before))
	sleep 0.5
	$AS touch go
	eventually has_ended "$job"
	echo "frozen for $frozen to $after ns"
	of_run '[.outcome, .job_stopped_s, .stopped_s]' ./*.strain
	[ "$(of_run "(.job_stopped_s > $frozen / 1e9 - 0.5) and (.job_stopped_s < $after / 1e9 + 0.5)" ./*.strain)" = true ]
	[ "$(of_run .outcome ./*.strain)" = success ]
}

is_frozen() { # JOB
	grep -qx FROZEN "$(cgroup_of freezer "$1")"/step_batch/freezer.state
}

is_thawed() { # JOB
	grep -qx THAWED "$(cgroup_of freezer "$1")"/step_batch/freezer.state
}

@test "TaskProlog and TaskEpilog record a job that does not know of it, and write its verdict into the Comment" {
	place site
	local job folder
	job=$(STRAIN_SITE=on $AS sbatch --parsable --mem=200 --output=out --wrap 'sleep 2.5; echo the end' </dev/null)
	eventually has_ended "$job"
	[ "$(cat out)" = "the end" ]
	grep -qx "$job 0" "$FOLDER/prolog.out" # the Prolog runs as root
	folder=$STRAIN_SITE_DIR/$(id -un 65534)
	local runs=("$folder/$job".batch.*.strain)
	[ "${#runs[@]}" = 1 ]
	[ "$(of_run '.recorded_s > 1 and .state == "finished"' "${runs[0]}")" = true ]
	[ "$(of_run .labels.SLURM_JOB_ID "${runs[0]}")" = "$job" ]
	[[ "$(scontrol --oneliner show job "$job")" == *"Comment=strain: $(cat "$folder/$job".batch.*.txt)"* ]]
}

@test "a requeued job: each attempt has a run of its own, also of the examples for centres" {
	place requeued
	local job site folder run
	job=$(submit sh -c 'until [ -e go ]; do sleep 0.05; done')
	site=$(STRAIN_SITE=on $AS sbatch --parsable --requeue --mem=100 --output=site.out \
		--wrap 'until [ -e go ]; do sleep 0.05; done' </dev/null)
	folder=$STRAIN_SITE_DIR/$(id -un 65534)
	eventually compgen -G '*.strain' >/dev/null
	eventually compgen -G "$folder/$site.*.strain" >/dev/null
	$AS scontrol requeue "$job,$site"
	for run in "$job" "$site"; do
		eventually is_pending "$run"
		eventually scontrol update "JobId=$run" StartTime=now
	done
	eventually runs_again "$job"
	eventually runs_again "$site"
	eventually has_two
	eventually compgen -G "$folder/$site.*.attempt2.strain" >/dev/null
	$AS touch go
	eventually has_ended "$job"
	eventually has_ended "$site"
	[ "$(for run in *.strain; do of_run '"\(.labels.SLURM_JOB_ID) \(.state) \(.outcome)"' "$run"; done)" = \
		"$job finished interrupted"$'\n'"$job finished success" ]
	local first=("$folder/$site".batch.node?.strain) second=("$folder/$site".batch.node?.attempt2.strain)
	[ "${#first[@]}" = 1 ]
	[ "${#second[@]}" = 1 ]
	[ "$(of_run .labels.SLURM_JOB_ID "${first[0]}")" = "$site" ]
	[ "$(of_run .state "${second[0]}")" = finished ]
}

has_two() {
	[ "$(compgen -G '*.strain' | wc -l)" = 2 ]
}

@test "a job past its time limit: its run is complete" {
	cd "$JOBS/limit"
	eventually has_ended "$(cat job)"
	cat out
	[ "$(state_of "$(cat job)")" = TIMEOUT ]
	[ "$(of_run .state ./*.strain)" = finished ]
	[ "$(of_run .outcome ./*.strain)" = time_limit ]
	[ "$(of_run '.recorded_s > 0' ./*.strain)" = true ]
}

@test "slurm.sh --cgroup: who may start it, and its end leaves nothing, also of frozen jobs" {
	# Not an ordinary user, not root without --cgroup, and not where others can write.
	run -77 $AS "$SOURCE_ROOT/tools/slurm.sh" start "$JOBS/own" --cgroup
	run -1 "$SOURCE_ROOT/tools/slurm.sh" start "$FOLDER/root"
	[[ "$output" == *--cgroup* ]]
	run -1 "$SOURCE_ROOT/tools/slurm.sh" start "$JOBS/own" --cgroup --insecure
	[[ "$output" == *"$JOBS"* ]]
	[ ! -e "$FOLDER/root" ]
	# Nobody is who he says he is without the key.
	run ! $AS cat "$FOLDER/slurm/munge/key"
	place left
	local job node folder
	job=$($AS sbatch --parsable --mem=100 --output=out --wrap 'echo $$ >pid; sleep 600 & setsid sleep 600 & wait' </dev/null)
	eventually test -s pid
	scontrol suspend "$job"
	eventually is_frozen "$job"
	slurm stop
	run ! kill -0 "$(cat pid)"
	for node in $(sed -n 's/^NodeName=\([^ ]*\).*/\1/p' "$SLURM_CONF"); do
		for folder in /sys/fs/cgroup/*/"slurm_$node"; do
			[ ! -e "$folder" ]
		done
	done
	[ ! -e "$FOLDER/slurm/pids" ]
}
