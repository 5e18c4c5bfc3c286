#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# strain sweep: a plan's trials, each once, whatever happens in between. Its words: words.golden.

load run_helpers

# A sweep comes to its end, with these outcomes: "1 crash, 2 success", by name.
sweeps_to() { # OUTCOMES ARGUMENT...
	run -0 --separate-stderr "$STRAIN" sweep "${@:2}" --json
	local outcomes
	outcomes=$(jq -r '[.outcomes | to_entries | sort_by(.key)[] | "\(.value) \(.key)"] | join(", ")' <<<"$output")
	echo "$outcomes; $stderr"
	[ "$outcomes" = "$1" ] && [ "$(jq '.complete == .trials' <<<"$output")" = true ]
}

teardown() {
	umount "$BATS_TEST_TMPDIR/small" 2>/dev/null || true
}

# What trials have written into a file, a line each time one ran to its end.
ran() {
	sort "$BATS_TEST_TMPDIR/ran" | uniq -c | awk '{ print $1 "x" $2 }' | paste -sd ' '
}

# Names of the runs in a sweep's folder.
runs() {
	find "$1" -maxdepth 1 -name '*.strain' -printf '%f\n' | sort | paste -sd ' '
}

key() {
	"$STRAIN" sql --json "$1" "SELECT value FROM run WHERE key = '$2'" | jq -r '.[0].value'
}

label() {
	"$STRAIN" sql --json "$1" "SELECT value FROM label WHERE name = '$2'" | jq -r '.[0].value'
}

# Nothing of a trial that did not end.
is_clean() {
	! compgen -G "$1/*running*" && ! compgen -G "$1/*.part"
}

# A child ends with this exit status.
ends_with() {
	local status=0
	wait "$2" || status=$?
	[ "$status" = "$1" ]
}

# A trial is being recorded, and its job has begun.
is_running() {
	compgen -G "$1/*.running" >/dev/null && [ -e began ]
}

@test "every configuration and repeat, once, with labels, outcome and last words" {
	cat >plan.yaml <<-'EOF'
		command: [sh, -c, 'echo "${batch_size} ${workers}" >>ran; echo the end of ${batch_size}']
		parameters:
		  batch_size: {values: [8, 16]}
		  workers: {values: [0, 4]}
		constraints: ["workers < batch_size / 2"]
		labels: {machine: small}
		repeats: 2
	EOF
	run -0 --separate-stderr "$STRAIN" sweep plan.yaml --json
	[ "$(jq -r '[.trials, .complete, .outcomes.success] | @csv' <<<"$output")" = 6,6,6 ]
	[ "$(jq '.configurations | length' <<<"$output")" = 3 ]
	[ "$(jq '[.configurations[] | select(.n == 2 and .duration_seconds > 0)] | length' <<<"$output")" = 3 ]
	[ "$(tr ' ' / <ran | sort | uniq -c | awk '{ print $1 "x" $2 }' | paste -sd ' ')" = "2x16/0 2x16/4 2x8/0" ]
	[ "$(runs plan.sweep)" = "0001-1.strain 0001-2.strain 0002-1.strain 0002-2.strain 0003-1.strain 0003-2.strain" ]
	cmp plan.yaml plan.sweep/plan.yaml
	run -0 "$STRAIN" sql --json plan.sweep/0003-2.strain 'SELECT * FROM label ORDER BY name'
	[ "$(jq -r '[.[] | .name + "=" + .value] | join(" ")' <<<"$output")" = \
		"batch_size=16 machine=small repeat=2 sweep=plan trial=3 workers=4" ]
	[ "$(key plan.sweep/0003-2.strain outcome)" = success ]
	run -0 "$STRAIN" sql --json plan.sweep/0003-2.strain "SELECT text FROM event WHERE kind = 'output'"
	[ "$(jq -r '.[0].text' <<<"$output")" = "the end of 16" ]
	[ -z "$(find plan.sweep -name '*.log')" ]
	# The stored digests are those of the samples.
	[ "$("$STRAIN" sql --csv plan.sweep/0003-2.strain "SELECT text FROM finding WHERE name = 'outcome'" | tail -n 1)" = success ]
	cp -r plan.sweep again.sweep
	for trial in again.sweep/*.strain; do
		sqlite3 "$trial" 'DELETE FROM finding'
	done
	diff <("$STRAIN" sweep plan.sweep --json | jq .configurations) \
		<("$STRAIN" sweep again.sweep --json | jq .configurations)
	# Again: nothing is left to do, and the table is the same, with what to type next.
	run -0 "$STRAIN" sweep plan.sweep
	prints 6 success
	prints "strain compare plan.sweep"
	[ "$(wc -l <ran)" = 6 ]
}

# At the end of a line about a trial: how long the others take.
LEFT=' [0-9.]* \(ms\|s\|min\) [a-z]*$'

@test "what is left is told: nothing before the first, all but the last, from runs that are there" {
	cat >plan.yaml <<-'EOF'
		command: sleep ${seconds}
		parameters: {seconds: {values: [0.1, 0.2, 0.3]}}
		repeats: 2
		timeout: 1min
	EOF
	run -0 --separate-stderr "$STRAIN" sweep plan.yaml
	line_names "${stderr_lines[0]}" "6 min"
	[ "$(grep -c "$LEFT" <<<"$stderr")" = 5 ]
	run ! grep -q "6 of 6.*$LEFT" <<<"$stderr"
	rm plan.sweep/0003-2.strain
	run -0 --separate-stderr "$STRAIN" sweep plan.yaml
	line_names "${stderr_lines[0]}" 5 plan.sweep
	[[ "${stderr_lines[0]}" =~ [0-9]" "[kM]B && "${stderr_lines[0]}" =~ [0-9]" "(ms|s) ]]
}

@test "a trial that failed does not tell how long others take" {
	cat >plan.yaml <<-'EOF'
		command: [sh, -c, 'exit ${status}']
		parameters: {status: {values: [1, 0]}}
		repeats: 2
		order: plan
	EOF
	run -0 --separate-stderr "$STRAIN" sweep plan.yaml
	notes "1 of 4" 0001-1 crash
	grep -q "of 4: 0002-[12].*$LEFT" <<<"$stderr"
	run ! grep -q "$LEFT" <<<"${stderr_lines[1]}"
	rm plan.sweep/0002-[12].strain
	run -0 --separate-stderr "$STRAIN" sweep plan.yaml
	line_names "${stderr_lines[0]}" 2 plan.sweep
	[[ ! "${stderr_lines[0]}" =~ [0-9]" "(ms|s|min) ]]
}

@test "--dry-run prints trials and makes nothing" {
	cat >plan.yaml <<-'EOF'
		command: job ${args}
		parameters: {batch_size: {values: [8, 16]}, epochs: 3}
		order: plan
	EOF
	run -0 --separate-stderr "$STRAIN" sweep plan.yaml --dry-run
	prints 2 plan.sweep
	prints 0002-1 "job --batch-size=16 --epochs=3"
	[ ! -e plan.sweep ]
	run -0 --separate-stderr "$STRAIN" sweep plan.yaml --dry-run --json
	[ "$(jq -r '[.[] | .trial, .state] | join(" ")' <<<"$output")" = "0001-1 to do 0002-1 to do" ]
}

@test "what became of a job is its outcome, and the sweep goes on" {
	cat >job <<-'EOF'
		#!/bin/sh
		case $1 in
		fine) exit 0 ;;
		crash) echo "cannot open the data"; exit 3 ;;
		absent) echo "no such framework here"; exit 77 ;;
		memory) echo "numpy.core.MemoryError: no 4 TB"; exit 1 ;;
		slow) exec sleep 1000 ;;
		esac
	EOF
	chmod +x job
	cat >plan.yaml <<-'EOF'
		command: ./job ${kind}
		parameters: {kind: {values: [fine, crash, absent, memory, slow]}}
		timeout: 5s
	EOF
	run -0 --separate-stderr "$STRAIN" sweep plan.yaml
	local i=0 outcome
	for outcome in success crash skipped out_of_memory time_limit; do
		i=$((i + 1))
		[ "$(key plan.sweep/000$i-1.strain outcome)" = $outcome ]
	done
	line_names "$(key plan.sweep/0005-1.strain outcome_text)" "5.0 s"
	prints 5 "1 success" "1 out of memory" "1 time limit" "1 crash" "1 skipped"
	prints 0002-1 crash 3 "cannot open the data"
	prints 0003-1 skipped "no such framework here"
	# Only failures keep what they printed.
	[ "$(cat plan.sweep/0002-1.log)" = "cannot open the data" ]
	[ ! -e plan.sweep/0001-1.log ]
	[ ! -e plan.sweep/0003-1.log ]
}

@test "a command that does not exist is one error, before the first trial" {
	printf 'command: [./nothing, "${args}"]\nparameters: {b: {values: [1, 2]}}\nrepeats: 4\n' >plan.yaml
	fails_with 1 "'./nothing'" "No such file or directory" "8 of 8" -- "$STRAIN" sweep plan.yaml
	[ ! -e plan.sweep ]
	# Of some trials only; and one that is there but is no program.
	: >job-1
	cp /bin/true job-2
	sed 's,\./nothing,"./job-${b}",; s/, "${args}"//' plan.yaml >other.yaml
	fails_with 1 "'./job-1'" "Permission denied" "4 of 8" -- "$STRAIN" sweep other.yaml
	chmod +x job-1
	cp --remove-destination job-2 job-1
	run -0 "$STRAIN" sweep other.yaml
	# With the PATH that the trials have; what is there already is not asked about.
	mkdir bin
	mv job-1 bin/job
	printf 'command: job\nenv: {PATH: "%s:/usr/bin"}\nrepeats: 2\n' "$PWD/bin" >path.yaml
	sweeps_to "2 success" path.yaml
	rm bin/job path.sweep/0001-2.strain
	fails_with 1 "'job'" "No such file or directory" "1 of 1" -- "$STRAIN" sweep path.yaml
	sed '/^env/d' path.yaml >here.yaml
	fails_with 1 "'job'" "No such file or directory" -- "$STRAIN" sweep here.yaml
}

@test "a command that is lost while a sweep runs is a crash without samples" {
	cat >plan.yaml <<-'EOF'
		command: [./job, "${args}"]
		parameters: {b: {values: [1, 2]}}
		order: plan
	EOF
	printf '#!/bin/sh\nrm job\n' >job
	chmod +x job
	sweeps_to "1 crash, 1 success" plan.yaml
	[[ "$(key plan.sweep/0002-1.strain outcome_text)" == *"./job"* ]]
	[ "$("$STRAIN" sql --json plan.sweep/0002-1.strain "SELECT value FROM label WHERE name = 'b'" |
		jq -r '.[0].value')" = 2 ]
}

@test "stop rules end a trial as a success: epochs and seconds" {
	cat >job <<-'EOF'
		#!/bin/sh
		i=0
		while [ $i -lt 10000 ]; do
			i=$((i + 1))
			"$STRAIN" mark epoch $i
			sleep 0.2
		done
	EOF
	chmod +x job
	printf 'command: ./job\nstop: {epochs: 2}\n' >epochs.yaml
	sweeps_to "1 stopped" epochs.yaml
	[ "$(key epochs.sweep/0001-1.strain outcome)" = stopped ]
	[[ "$(key epochs.sweep/0001-1.strain outcome_text)" =~ " "([2-9]|[1-9][0-9]+)" epochs" ]]
	# The signal that ended it is no failure of the job.
	run -0 "$STRAIN" show epochs.sweep/0001-1.strain
	[[ "${lines[0]}" == *" epochs"* ]]
	[[ "$output" != *SIG* ]]
	[ "$(json 'd["verdict"]["bottleneck"] == "failed"' "$STRAIN" show epochs.sweep/0001-1.strain)" = False ]
	printf 'command: sleep 1000\nstop: {epochs: 2, seconds: 1}\ntimeout: 2min\n' >seconds.yaml
	run -0 --separate-stderr "$STRAIN" sweep seconds.yaml
	[ "$(key seconds.sweep/0001-1.strain outcome)" = stopped ]
	line_names "$(key seconds.sweep/0001-1.strain outcome_text)" "1.0 s"
}

@test "epochs of a job that only prints them: its lines count, with an off switch that is said" {
	cat >job <<-'EOF'
		#!/bin/sh
		i=0
		while [ $i -lt "$1" ]; do
			i=$((i + 1))
			echo "Epoch $i/10000"
			sleep 0.2
			echo "Epoch $i/10000 is over"
		done
	EOF
	chmod +x job
	printf 'command: [./job, 10000]\nstop: {epochs: 2}\n' >plan.yaml
	run -0 --separate-stderr "$STRAIN" sweep plan.yaml
	[ "$(key plan.sweep/0001-1.strain outcome)" = stopped ]
	[ "$(key plan.sweep/0001-1.strain epochs_from)" = output ]
	[ "$(key plan.sweep/0001-1.strain epoch_pattern)" = auto ]
	run -0 "$STRAIN" sql --json plan.sweep/0001-1.strain "SELECT min(number) AS first, max(number) AS last,
		count(*) AS n FROM span WHERE kind = 'epoch'"
	[ "$(jq '.[0].first == 1 and .[0].last == .[0].n' <<<"$output")" = true ]
	printf 'command: [./job, 2]\nstop: {epochs: 2}\nepoch_pattern: none\n' >none.yaml
	run -0 --separate-stderr "$STRAIN" sweep none.yaml
	notes 0001-1 stop.epochs
	[ "$(key none.sweep/0001-1.strain outcome)" = success ]
	[ "$(key none.sweep/0001-1.strain epochs_from)" = null ]
}

@test "what is held against a baseline is what the baseline has too, and why nothing is is said" {
	cat >job <<-'EOF'
		#!/bin/sh
		[ "$1" != fails ] || exit 3
		for i in 1 2 3; do
			[ "$1" = quiet ] || echo "Epoch $i/3"
			sleep 0.05
		done
	EOF
	chmod +x job
	cat >plan.yaml <<-'EOF'
		command: [./job, "${job}"]
		parameters: {job: {values: [quiet, loud, loud2]}}
		baseline: {job: quiet}
		repeats: 2
	EOF
	of() {
		json 'd["measures"][0]["name"], "epoch_seconds" in [c["measure"] for c in d["cells"]], d["baseline"]' \
			"$STRAIN" compare "$@"
	}
	run -0 "$STRAIN" sweep plan.yaml
	prints speed-up job=quiet
	run -0 --separate-stderr "$STRAIN" sweep plan.yaml --json
	[ "$(jq -c '.speed_up_of, [.configurations[] | .speed_up > 0]' <<<"$output" | paste -sd ' ')" = \
		'"duration_seconds" [false,true,true]' ]
	[ "$(of plan.sweep)" = "('duration_seconds', False, 'job=quiet')" ]
	[[ "$(of plan.sweep --value epoch_seconds)" == "('epoch_seconds', True, "* ]]
	# with epochs on both sides these say more
	sed 's/quiet/loud3/' plan.yaml >loud.yaml
	run -0 "$STRAIN" sweep loud.yaml
	prints speed-up job=loud3
	[ "$("$STRAIN" sweep loud.yaml --json | jq -r .speed_up_of)" = epoch_seconds ]
	[[ "$(of loud.sweep)" == "('epoch_seconds"* ]]
	sed 's/quiet/fails/' plan.yaml >fails.yaml
	run "$STRAIN" sweep fails.yaml
	prints speed-up job=fails
	[ "$("$STRAIN" sweep fails.yaml --json | jq -c '[.configurations[].speed_up]')" = "[null,null,null]" ]
	sed '$d' plan.yaml >once.yaml
	run -0 "$STRAIN" sweep once.yaml
	prints speed-up job=quiet
	[ "$("$STRAIN" sweep once.yaml --json | jq -c '[.configurations[].probability]')" = "[null,null,null]" ]
}

@test "epochs that a job marks are its epochs, whatever it prints" {
	cat >plan.yaml <<-'EOF'
		command: [sh, -c, 'for i in 1 2 3; do echo "Epoch $i/3"; sleep 0.1; "$STRAIN" mark epoch $((i + 40)); done']
	EOF
	run -0 --separate-stderr "$STRAIN" sweep plan.yaml
	[ "$(key plan.sweep/0001-1.strain epochs_from)" = marks ]
	run -0 "$STRAIN" sql --json plan.sweep/0001-1.strain "SELECT number FROM span WHERE kind = 'epoch' ORDER BY number"
	[ "$(jq -c '[.[].number]' <<<"$output")" = "[41,42,43]" ]
}

@test "a trial ends when its step is known well enough" {
	local trainer="$BUILD_ROOT/workloads/onednn/onednn-train"
	[ -x "$trainer" ] || skip "there is no trainer"
	cat >plan.yaml <<-EOF
		command: [$trainer, --epochs, 100000, --model, tiny, "\${args}"]
		parameters: {samples: 6400}
		stop: {step_error: 60%}
		timeout: 2min
	EOF
	run -0 --separate-stderr "$STRAIN" sweep plan.yaml --json
	[ "$(key plan.sweep/0001-1.strain outcome)" = stopped ]
	line_names "$(key plan.sweep/0001-1.strain outcome_text)" %
	[ "$(jq '.configurations[0].step_seconds > 0' <<<"$output")" = true ]
}

@test "a limit that cannot be set refuses the trial, and the sweep goes on" {
	cat >plan.yaml <<-'EOF'
		command: "true"
		resources: {cpus: {values: [1, 60000]}}
	EOF
	sweeps_to "1 refused, 1 success" plan.yaml
	[ "$(key plan.sweep/0002-1.strain outcome)" = refused ]
	[[ "$(key plan.sweep/0002-1.strain outcome_text)" == *"cpus"* ]]
	[ "$("$STRAIN" sql --json plan.sweep/0002-1.strain 'SELECT count(*) AS n FROM block' | jq '.[0].n')" = 0 ]
}

@test "what records a trial knows of the sweep, which a cgroup may have to be emptied of; the job does not" {
	cat >plan.yaml <<-'EOF'
		command: [sh, -c, 'tr "\0" "\n" </proc/$PPID/environ >recorder; env >job; echo ${n}']
		parameters: {n: 1}
	EOF
	"$STRAIN" sweep plan.yaml 3>&- >out 2>&1 &
	local sweep=$!
	ends_with 0 $sweep
	grep -qx "STRAIN_SWEEP_PID=$sweep" recorder
	run -1 grep STRAIN_SWEEP_PID job
}

@test "what a job leaves running does not disturb the next trial" {
	cat >plan.yaml <<-'EOF'
		command: [sh, -c, 'setsid sleep 1234567 & echo ${n}']
		parameters: {n: {values: [1, 2]}}
	EOF
	run -0 --separate-stderr "$STRAIN" sweep plan.yaml
	run -1 pgrep -f 'sleep 123456[7]'
}

@test "killed and started again, every trial is there once" {
	cat >plan.yaml <<-'EOF'
		command: [sh, -c, ': >began; sleep 0.2; echo ${n} >>ran']
		parameters: {n: {values: [1, 2, 3, 4, 5, 6]}}
	EOF
	for _ in 1 2 3 4; do
		rm -f began
		"$STRAIN" sweep plan.yaml 3>&- >>out 2>&1 &
		local sweep=$!
		eventually is_running plan.sweep
		sleep 0.0$((RANDOM % 10))
		kill -9 $sweep
		wait $sweep || true
		# What is there is whole.
		local file
		for file in plan.sweep/*.strain; do
			[ ! -e "$file" ] || [ "$(key "$file" outcome)" = success ]
		done
	done
	sweeps_to "6 success" plan.yaml
	[ "$(runs plan.sweep | wc -w)" = 6 ]
	is_clean plan.sweep
}

@test "a job that outlives its killed sweep is ended before its trial runs again" {
	cat >job <<-'EOF'
		#!/bin/sh
		trap '' TERM
		if [ -e second ]; then
			exit 0
		fi
		echo $$ >pid
		: >began
		while sleep 0.1; do :; done
	EOF
	chmod +x job
	printf 'command: [./job]\n' >plan.yaml
	"$STRAIN" sweep plan.yaml 3>&- >out 2>&1 &
	local sweep=$!
	eventually is_running plan.sweep
	sleep 0.5 # it is among the processes of the run then
	kill -9 $sweep
	wait $sweep || true
	: >second
	kill -0 "$(cat pid)"
	sweeps_to "1 success" plan.yaml
	run -1 kill -0 "$(cat pid)"
	is_clean plan.sweep
}

# Of whom the run of a trial knows that it belongs to its job.
knows() {
	[ "$(sqlite3 "$1" "SELECT count(*) FROM entity WHERE kind = 'process' AND key LIKE '$2:%'")" = 1 ]
}

@test "a sweep opened in a copy of one that runs leaves its job alone" {
	cat >job <<-'EOF'
		#!/bin/sh
		if [ ! -e second ]; then
			echo $$ >pid
			: >began
			while [ ! -e third ]; do sleep 0.1; done
		fi
	EOF
	chmod +x job
	printf 'command: [./job]\n' >plan.yaml
	"$STRAIN" sweep plan.yaml 3>&- >out 2>&1 &
	local sweep=$!
	eventually is_running plan.sweep
	eventually knows plan.sweep/0001-1.running "$(cat pid)"
	mkdir copy.sweep
	cp plan.yaml copy.sweep
	sqlite3 plan.sweep/0001-1.running ".backup copy.sweep/0001-1.running"
	knows copy.sweep/0001-1.running "$(cat pid)"
	: >second
	run -0 --separate-stderr "$STRAIN" sweep copy.sweep
	kill -0 "$(cat pid)"
	: >third
	ends_with 0 $sweep
	[ "$(runs plan.sweep)" = 0001-1.strain ]
}

# An orphan may wait for its new parent to ask about it.
has_ended() {
	! grep -q '^State:[[:space:]]*[RSDTtI]' "/proc/$1/status" 2>/dev/null
}

@test "what a sweep has left that was killed with all that watched its trial is ended, known to the run or not" {
	cat >job <<-'EOF'
		#!/bin/bash
		[ ! -e second ] || exit 0
		trap '' TERM
		echo $$ >pid
		: >began
		while [ ! -e alone ]; do sleep 0.05; done
		env -i bash -c 'trap "" TERM; echo $$ >child; while :; do sleep 0.1; done' &
		while :; do sleep 0.1; done
	EOF
	chmod +x job
	printf 'command: [./job]\ngrace: 1s\n' >plan.yaml
	"$STRAIN" sweep plan.yaml 3>&- >out 2>&1 &
	local sweep=$! keeper launcher recorder
	eventually is_running plan.sweep
	keeper=$(pgrep -P $sweep -x strain-keeper)
	launcher=$(pgrep -P "$keeper" -x strain-record)
	recorder=$(recorder_of "$launcher")
	# The mark keeps the recorder from being taken for a part of the job.
	tr '\0' '\n' <"/proc/$recorder/environ" | grep -q '^STRAIN_TRIAL='
	kill -9 $sweep "$keeper" "$recorder" "$launcher"
	wait $sweep || true
	kill -0 "$(cat pid)"
	: >alone
	eventually [ -s child ]
	: >second
	sweeps_to "1 success" plan.yaml
	has_ended "$(cat pid)"
	has_ended "$(cat child)"
}

@test "Ctrl-C ends the trial, leaves nothing of it, and says how to go on" {
	cat >plan.yaml <<-'EOF'
		command: [sh, -c, ': >began; [ -e quick ] || exec sleep 1000']
		parameters: {n: {values: [1, 2]}}
		env: {N: "${n}"}
	EOF
	"$STRAIN" sweep plan.yaml 3>&- >out 2>&1 &
	local sweep=$!
	eventually is_running plan.sweep
	kill -INT $sweep
	ends_with 130 $sweep
	line_names "$(tail -n 1 out)" "0 of 2" "strain sweep plan.sweep"
	[ -z "$(runs plan.sweep)" ]
	is_clean plan.sweep
	: >quick
	sweeps_to "2 success" plan.sweep
}

@test "a second Ctrl-C does not wait for a job that does not end" {
	cat >plan.yaml <<-'EOF'
		command: [sh, -c, 'trap "" TERM; : >began; while sleep 0.1; do :; done']
	EOF
	"$STRAIN" sweep plan.yaml 3>&- >out 2>&1 &
	local sweep=$!
	eventually is_running plan.sweep
	sleep 0.5
	kill -INT $sweep
	sleep 0.5
	kill -INT $sweep
	ends_with 130 $sweep
	is_clean plan.sweep
}

@test "a sweep in use is refused, with who uses it" {
	printf 'command: [sh, -c, ": >began; sleep 1000"]\n' >plan.yaml
	"$STRAIN" sweep plan.yaml 3>&- >out 2>&1 &
	local sweep=$!
	eventually is_running plan.sweep
	fails_with 1 plan.sweep "$sweep" "$(uname -n)" -- "$STRAIN" sweep plan.yaml
	kill -TERM $sweep
	ends_with 143 $sweep
}

@test "a plan that was changed is refused, with what changed; --force keeps what it still has" {
	printf 'command: [sh, -c, "echo ${n} >>ran"]\nparameters: {n: {values: [1, 2, 3]}}\n' >plan.yaml
	run -0 "$STRAIN" sweep plan.yaml
	printf '# more of them\n' >>plan.yaml
	run -0 "$STRAIN" sweep plan.yaml
	printf 'command: [sh, -c, "echo ${n} >>ran"]\nparameters: {n: {values: [0, 3, 2]}}\n' >plan.yaml
	fails_with 1 plan.sweep parameters.n.values "[1, 2, 3]" "[0, 3, 2]" --force -- "$STRAIN" sweep plan.yaml
	run -0 --separate-stderr "$STRAIN" sweep plan.yaml --force
	notes "2 of 3"
	[ "$(ran)" = "1x0 1x1 1x2 1x3" ]
	[ "$(runs plan.sweep)" = "0001-1.strain 0002-1.strain 0003-1.strain" ]
	[ "$(runs plan.sweep/left-out)" = 0001-1.strain ]
	run -0 "$STRAIN" sql --json plan.sweep/0002-1.strain 'SELECT * FROM label ORDER BY name'
	[ "$(jq -r '[.[] | .name + "=" + .value] | join(" ")' <<<"$output")" = "n=3 repeat=1 sweep=plan trial=2" ]
	# It is the plan now.
	run -0 "$STRAIN" sweep plan.sweep
}

@test "a parameter less: no run is another's, and none is lost" {
	printf 'command: [sh, -c, "echo ${lr} ${bs}"]\nparameters: {lr: {values: [1, 2]}, bs: {values: [32, 64]}}\n' >plan.yaml
	run -0 "$STRAIN" sweep plan.yaml
	printf 'command: [sh, -c, "echo ${bs}"]\nparameters: {bs: {values: [32, 64]}}\n' >plan.yaml
	run -0 --separate-stderr "$STRAIN" sweep plan.yaml --force
	notes "0 of 4"
	[ "$(runs plan.sweep)" = "0001-1.strain 0002-1.strain" ]
	[ "$(runs plan.sweep/left-out)" = "0001-1.strain 0002-1.strain 0003-1.strain 0004-1.strain" ]
	# Two that are the same trial: one stays.
	cp plan.sweep/0001-1.strain plan.sweep/0009-1.strain
	printf 'command: [sh, -c, "echo ${bs}"]\nparameters: {bs: {values: [64, 32]}}\n' >plan.yaml
	run -0 --separate-stderr "$STRAIN" sweep plan.yaml --force
	notes "2 of 3"
	[ "$(runs plan.sweep/left-out | wc -w)" = 5 ]
}

@test "a changed plan that was not done to its end goes on, and logs go with their runs" {
	printf 'command: [sh, -c, "echo said ${n}; [ ${n} != 3 ]"]\nparameters: {n: {values: [1, 2, 3]}}\n' >plan.yaml
	run -0 "$STRAIN" sweep plan.yaml
	printf 'command: [sh, -c, "echo said ${n}; [ ${n} != 3 ]"]\nparameters: {n: {values: [3, 2]}}\n' >plan.yaml
	: >plan.sweep/left-out # not a folder: it fails with all runs under way
	run -1 --separate-stderr "$STRAIN" sweep plan.yaml --force
	[[ "$stderr" == *"left-out/"*": Not a directory"* ]]
	rm plan.sweep/left-out
	fails_with 1 plan.sweep -- "$STRAIN" sweep plan.sweep --dry-run
	sweeps_to "1 crash, 1 success" plan.sweep
	cmp plan.yaml plan.sweep/plan.yaml
	[ "$(runs plan.sweep)" = "0001-1.strain 0002-1.strain" ]
	[ "$(cat plan.sweep/0001-1.log)" = "said 3" ]
	[ ! -e plan.sweep/0003-1.log ]
	[ "$(label plan.sweep/0001-1.strain n)/$(label plan.sweep/0001-1.strain trial)" = 3/1 ]
	[ "$(label plan.sweep/0002-1.strain n)/$(label plan.sweep/0002-1.strain trial)" = 2/2 ]
	run -1 compgen -G "plan.sweep/*.moving"
	[ ! -e plan.sweep/plan.yaml.next ]
	# Killed between the renaming of one run and the next; the other plan is the one that is asked for.
	mv plan.sweep/0002-1.strain plan.sweep/0001-1.strain.moving
	mv plan.sweep/0001-1.strain plan.sweep/0002-1.strain
	mv plan.sweep/0001-1.log plan.sweep/0002-1.log
	sed 's/3, 2/2, 3/' plan.yaml >plan.sweep/plan.yaml.next
	run -1 --separate-stderr "$STRAIN" sweep plan.yaml
	notes plan.sweep parameters.n.values "[2, 3]" "[3, 2]"
	[ "$(cat plan.sweep/0002-1.log)" = "said 3" ]
	run -0 "$STRAIN" sweep plan.sweep
	[ "$(runs plan.sweep)" = "0001-1.strain 0002-1.strain" ]
	[ "$(label plan.sweep/0001-1.strain n)/$(label plan.sweep/0001-1.strain trial)" = 2/1 ]
	[ "$(label plan.sweep/0002-1.strain n)/$(label plan.sweep/0002-1.strain trial)" = 3/2 ]
}

@test "bad input is one line" {
	fails_with 1 nothing.yaml "No such file or directory" -- "$STRAIN" sweep nothing.yaml
	printf 'command: [job, "${batch}"]\nparameters: {batch_size: 3}\n' >plan.yaml
	fails_with 1 plan.yaml:1:16 command "'\${batch}'" -- "$STRAIN" sweep plan.yaml
	[ ! -e plan.sweep ]
	mkdir other && : >other/file
	fails_with 1 other plan.yaml -- "$STRAIN" sweep other
	"$STRAIN" run -o run.strain --no-verdict true
	fails_with 1 run.strain "strain show" -- "$STRAIN" sweep run.strain
	printf 'command: [true]\n' >plan.yaml
	fails_with 1 other -- "$STRAIN" sweep plan.yaml -o other
	[ ! -e other/plan.yaml ]
	run -2 "$STRAIN" sweep
	run -2 "$STRAIN" sweep plan.yaml plan.yaml
	fails_with 2 "--jobs 2" -- "$STRAIN" sweep plan.yaml --jobs 2
	# A folder with what Ctrl-C, a shell or a person may have left in it is still a sweep.
	run -0 "$STRAIN" sweep plan.yaml -o here/
	: >here/notes.txt
	run -0 "$STRAIN" sweep plan.yaml -o here
}

@test "a disk that cannot hold the runs is refused before the first" {
	if [ "$(id -u)" != 0 ] || ! mkdir small || ! mount -t tmpfs -o size=200k none small; then
		skip "no file system of one's own here"
	fi
	printf 'command: [sh, -c, "echo ${n} >>ran"]\nparameters: {n: {values: [1, 2, 3]}}\nrepeats: 10\n' >plan.yaml
	fails_with 1 small/s 30 "492 kB" -- "$STRAIN" sweep plan.yaml -o small/s
	[ ! -e ran ]
}

@test "a full disk is one line, and nothing half-written stays" {
	if [ "$(id -u)" != 0 ] || ! mkdir small || ! mount -t tmpfs -o size=400k none small; then
		skip "no file system of one's own here"
	fi
	printf 'command: [sh, -c, "sleep 0.1; echo ${n} >>ran"]\nparameters: {n: {values: [1, 2, 3, 4, 5, 6, 7, 8, 9]}}\n' >plan.yaml
	run -1 --separate-stderr "$STRAIN" sweep plan.yaml -o small/s
	local last files
	last=$(tail -n 1 <<<"$stderr")
	files=$(cd small/s && is_clean . && ls ./*.log 2>/dev/null || true)
	umount small
	echo "$stderr"
	[[ "$last" == "strain: trial "*"No space left on device"* ]]
	[ -z "$files" ]
}

@test "a trial whose recording was killed with its launcher is not complete" {
	cat >plan.yaml <<-'EOF'
		command: [sh, -c, ': >began; [ -e quick ] || exec sleep 1000']
	EOF
	"$STRAIN" sweep plan.yaml 3>&- >out 2>&1 &
	local sweep=$!
	eventually is_running plan.sweep
	kill -9 "$(pgrep -P "$(pgrep -P $sweep -x strain-keeper)" -x strain-record)"
	ends_with 1 $sweep
	grep -q 'strain: trial 0001-1: ' out
	[ -z "$(runs plan.sweep)" ]
	is_clean plan.sweep
	: >quick
	sweeps_to "1 success" plan.yaml
}

@test "a trial that somebody reads as it ends is whole" {
	cat >plan.yaml <<-'EOF'
		command: [sh, -c, ': >began; while [ ! -e reading ]; do sleep 0.05; done']
	EOF
	"$STRAIN" sweep plan.yaml 3>&- >out 2>&1 &
	local sweep=$! reader
	eventually is_running plan.sweep
	/usr/bin/python3 - plan.sweep/0001-1 3>&- <<-'EOF' &
		import os, sqlite3, sys, time
		run = sqlite3.connect(sys.argv[1] + ".running")
		run.execute("BEGIN")
		run.execute("SELECT count(*) FROM entity").fetchall()
		open("reading", "w").close()
		while not os.path.exists(sys.argv[1] + ".strain"):
		    time.sleep(0.05)
	EOF
	reader=$!
	ends_with 0 $sweep
	ends_with 0 $reader
	[ "$(find plan.sweep -name '0001*' -printf '%f %m\n')" = "0001-1.strain 600" ]
	[ "$(key plan.sweep/0001-1.strain outcome)" = success ]
	[ "$(key plan.sweep/0001-1.strain state)" = finished ]
	run -0 "$STRAIN" sql plan.sweep/0001-1.strain 'PRAGMA integrity_check'
	[[ "$output" == *ok* ]]
	run -0 "$STRAIN" show plan.sweep/0001-1.strain
}

@test "the sweep ends what its trials left, and nothing else" {
	local seconds=$((1000000 + BASHPID)) # no other test's
	cat >plan.yaml <<-EOF
		command: [sh, -c, 'setsid sleep $seconds & echo \${n}']
		parameters: {n: {values: [1, 2]}}
	EOF
	bash -c 'sleep 1234562 3>&- & echo $! >kept; exec "$STRAIN" sweep plan.yaml 3>&- > >(tee log) 2>&1'
	kill "$(cat kept)"
	eventually grep -q "^strain compare plan.sweep" log
	[ "$(runs plan.sweep)" = "0001-1.strain 0002-1.strain" ]
	run -1 pgrep -f "sleep $seconds"
}

@test "a process that cannot be ended is left, said, and does not hold the sweep" {
	local folder status=0
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	command -v setpriv >/dev/null || skip "setpriv is not installed"
	folder=$(mktemp -d)
	cp "$BUILD_ROOT/tests/tools/misbehave" "$folder/outrank"
	chmod 4755 "$folder/outrank"
	cat >"$folder/plan.yaml" <<-EOF
		command: [sh, -c, '$folder/outrank outrank 300 & sleep 0.\${x}']
		parameters: {x: {values: [1, 2]}}
		timeout: 2s
		grace: 1s
	EOF
	chown 65534:65534 "$folder"
	cd "$folder"
	if ! setpriv --reuid 65534 --regid 65534 --clear-groups "$folder/outrank" outrank 0 ||
		! setpriv --reuid 65534 --regid 65534 --clear-groups "$STRAIN" --version; then
		rm -r "$folder"
		skip "a user may not run a setuid program, or strain, here"
	fi
	HOME=$folder XDG_CACHE_HOME=$folder timeout 120 setpriv --reuid 65534 --regid 65534 \
		--clear-groups "$STRAIN" sweep plan.yaml >out 2>err || status=$?
	cat err
	cp err "$BATS_TEST_TMPDIR/err"
	for pid in $(grep -oE '[0-9]+ \(outrank\)' err | cut -d ' ' -f 1); do
		if [ "$(cat "/proc/$pid/comm")" = outrank ]; then
			kill -KILL "$pid"
		fi
	done
	cd "$BATS_TEST_TMPDIR"
	rm -r "$folder"
	[ "$status" = 0 ]
	[ "$(grep -cE '^strain: 000[12]-1: .* [0-9]+ \(outrank\)$' err)" = 2 ]
}

@test "a job that is to end ends in order: its first process, what that leaves, then everything" {
	local seconds=$((1000000 + BASHPID)) # no other test's
	cat >job <<-'EOF'
		#!/bin/bash
		# What SIGTERM does to its first process. The worker is one that it needs to save its work.
		go() {
			"$STRAIN" mark epoch 1
			"$STRAIN" mark epoch 2
			while sleep 0.05; do :; done
		}
		case $1 in
		saves)
			sleep "$2" &
			worker=$!
			trap 'sleep 0.2; kill -0 $worker && echo saved; kill $worker; exit' TERM
			;;
		leaves) ./job saves "$2"; exit ;;
		waits) trap 'echo saved' TERM; ./job dies; exit ;;
		esac
		go
	EOF
	chmod +x job
	plan() { # kinds, grace
		cat >"$3" <<-EOF
			command: [./job, "\${kind}", "$seconds"]
			parameters: {kind: {values: [$1]}}
			stop: {epochs: 1}
			grace: $2
		EOF
	}
	plan "saves, leaves" 2min first.yaml
	plan waits 16s half.yaml
	sweeps_to "2 stopped" first.yaml
	sweeps_to "1 stopped" half.yaml
	local file
	for file in first.sweep/000{1,2}-1.strain half.sweep/0001-1.strain; do
		run -0 "$STRAIN" sql --json "$file" "SELECT text FROM event WHERE kind = 'output'"
		echo "$file: $output"
		jq -r '.[0].text' <<<"$output" | grep -qx saved
	done
	run -1 pgrep -f "sleep $seconds"
}

@test "a job that ignores SIGTERM, or is stopped, ends when its grace is over" {
	cat >plan.yaml <<-'EOF'
		command: [sh, -c, 'trap "" TERM; echo $$ >pid; ${how}; while sleep 0.05; do :; done']
		parameters: {how: {values: [":", 'kill -STOP $$']}}
		stop: {seconds: 1}
		grace: 1s
	EOF
	sweeps_to "2 stopped" plan.yaml
	run -1 kill -0 "$(cat pid)"
}

@test "a job ends in order also where its sweep is killed" {
	cat >job <<-'EOF'
		#!/bin/sh
		trap 'sleep 0.2; echo saved >saved; exit' TERM
		echo $$ >pid
		: >began
		while sleep 0.05; do :; done
	EOF
	chmod +x job
	printf 'command: [sh, -c, "./job; exit"]\n' >plan.yaml
	"$STRAIN" sweep plan.yaml 3>&- >out 2>&1 &
	local sweep=$!
	eventually is_running plan.sweep
	kill -9 $sweep
	wait $sweep || true
	eventually [ -e saved ]
	eventually eval '! kill -0 "$(cat pid)" 2>/dev/null'
}

@test "processes that were born while a trial ran, of what was there before, are not the trial's" {
	local seconds=$((2000000 + BASHPID))
	cat >breed <<-EOF
		while [ ! -e over ]; do
			(sleep $seconds &)
			echo >>born
			sleep 0.1
		done
	EOF
	cat >plan.yaml <<-'EOF'
		command: [sh, -c, 'n=$(wc -l <born); while [ "$(wc -l <born)" -lt $((n + 3)) ]; do sleep 0.05; done']
	EOF
	: >born
	run -0 --separate-stderr bash -c 'sh breed >/dev/null 2>&1 3>&- & exec "$STRAIN" sweep plan.yaml 3>&-'
	: >over
	[ "$(key plan.sweep/0001-1.strain outcome)" = success ]
	[ "$(pgrep -c -f "sleep $seconds")" -ge 3 ]
	[ "$(pgrep -c -f "sleep $seconds")" -ge $(($(wc -l <born) - 1)) ]
	eventually eval '! pgrep -f "sh breed" >/dev/null' || true
	local pid
	for pid in $(pgrep -f "sleep $seconds"); do
		kill "$pid"
	done
}

@test "a job that the run does not know is ended too" {
	cat >job <<-'EOF'
		#!/bin/sh
		trap '' TERM
		rm plan.sweep/*.running*
		echo $$ >began
		while sleep 0.1; do :; done
	EOF
	chmod +x job
	printf 'command: [./job]\n' >plan.yaml
	"$STRAIN" sweep plan.yaml 3>&- >out 2>&1 &
	local sweep=$!
	eventually [ -s began ]
	kill -INT $sweep
	sleep 0.3
	kill -INT $sweep
	eventually eval '! kill -0 "$(cat began)"' || kill -9 "$(cat began)" $sweep
	ends_with 130 $sweep
	is_clean plan.sweep
}

@test "a rule that stops a job as it ends by itself leaves its run whole" {
	# The recorder is held up, so that the signal comes between the job's end and the run's.
	cat >job <<-'EOF'
		#!/bin/bash
		for pid in $(pgrep -P $PPID -x strain-record); do
			if [ "$(ps -o sid= -p "$pid" | tr -d ' ')" = "$pid" ]; then
				kill -STOP "$pid"
				setsid sh -c "sleep 4; kill -CONT $pid" >/dev/null 2>&1 &
			fi
		done
	EOF
	chmod +x job
	printf 'command: ./job\nstop: {seconds: 2}\n' >plan.yaml
	run -0 --separate-stderr "$STRAIN" sweep plan.yaml
	[[ "$(key plan.sweep/0001-1.strain outcome)" == s* ]] # success or stopped
	[ "$(key plan.sweep/0001-1.strain state)" = finished ]
}

@test "in a step of Slurm's a rule that stops a job reaches it" {
	cat >plan.yaml <<-'EOF'
		command: [sh, -c, 'trap ": >told; exit 0" TERM; while sleep 0.05; do :; done']
		stop: {seconds: 1}
	EOF
	SLURM_STEP_ID=0 run -0 --separate-stderr "$STRAIN" sweep plan.yaml
	[ "$(key plan.sweep/0001-1.strain outcome)" = stopped ]
	[ -e told ]
}

@test "a trial whose recorder was killed runs once more, and is no success then" {
	cat >job <<-'EOF'
		#!/bin/bash
		echo "$1" >>ran
		[ "$1" != 1 ] || [ "$(grep -c 1 ran)" = 1 ] || exit 0
		for pid in $(pgrep -P $PPID -x strain-record); do
			[ "$(ps -o sid= -p "$pid" | tr -d ' ')" != "$pid" ] || kill -9 "$pid"
		done
	EOF
	chmod +x job
	printf 'command: "./job ${n}"\nparameters: {n: {values: [1, 2]}}\n' >plan.yaml
	sweeps_to "1 success, 1 unknown" plan.yaml
	[ "$(ran)" = "2x1 2x2" ]
	[ "$(key plan.sweep/0001-1.strain outcome)" = success ]
	[ "$(key plan.sweep/0002-1.strain outcome)" = unknown ]
	[[ "$(key plan.sweep/0002-1.strain outcome_text)" == *recorder* ]]
}

@test "a trial that is stopped before its job runs has an outcome" {
	printf 'command: [sleep, 1000]\nstop: {seconds: 0.005}\n' >plan.yaml
	sweeps_to "1 stopped" plan.yaml
	[ "$(key plan.sweep/0001-1.strain outcome)" = stopped ]
	[ "$("$STRAIN" sql --json plan.sweep/0001-1.strain "SELECT value FROM label WHERE name = 'sweep'" |
		jq -r '.[0].value')" = plan ]
}

@test "a link that a job makes where the next log goes is not written through" {
	echo precious >precious
	cat >plan.yaml <<-'EOF'
		command: [sh, -c, '[ ${n} = 2 ] || ln -s ../precious plan.sweep/0002-1.log; echo ${n}; exit 1']
		parameters: {n: {values: [1, 2]}}
		order: plan
	EOF
	run -0 --separate-stderr "$STRAIN" sweep plan.yaml
	[ "$(cat precious)" = precious ]
	[ "$(cat plan.sweep/0002-1.log)" = 2 ]
}

@test "a folder that is replaced while its sweep runs is not recorded into" {
	cat >plan.yaml <<-'EOF'
		command: [sh, -c, '[ ! -d plan.sweep ] || mv plan.sweep old.sweep; mkdir -p plan.sweep; echo ${n} >>ran']
		parameters: {n: {values: [1, 2]}}
	EOF
	run -1 --separate-stderr "$STRAIN" sweep plan.yaml
	notes plan.sweep
	[ "$(wc -l <ran)" = 1 ]
	[ -z "$(ls plan.sweep)" ]
}

@test "the end of a sweep says what samples are, if jobs say it" {
	cat >plan.yaml <<-'END'
		command: [sh, -c, 'printf "samples_unit ${unit}\n" >"$${STRAIN_MARKERS}/hook-1"']
		parameters: {unit: {values: [frames, 3]}}
		repeats: 2
	END
	run -0 --separate-stderr "$STRAIN" sweep plan.yaml
	[[ "$output" == *'samples are frames in 2 of 4 trials'* ]]
	[ "$(grep -c 'samples are' <<<"$output")" = 1 ]
}
