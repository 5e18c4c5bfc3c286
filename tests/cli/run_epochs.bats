#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# strain run --epoch-pattern: lines are found wherever the job's output goes, and arrive there as
# they would without us.

load run_helpers

JOB='for i in 1 2 3; do echo "epoch $i loss=0.$i"; sleep 0.1; done; echo "done"'
LINES=$'epoch 1 loss=0.1\nepoch 2 loss=0.2\nepoch 3 loss=0.3\ndone'

record() {
	"$STRAIN" run --epoch-pattern '^epoch (?<epoch>\d+) loss=(?<loss>\S+)' -o run.strain --force \
		"$@"
}

@test "a loss that is not a number is shown, and said" {
	"$STRAIN" run --epoch-pattern '^epoch (?<epoch>\d+) loss=(?<loss>\S+) acc=(?<acc>\S+)' -o run.strain --force \
		sh -c 'for l in 0.5 nan -inf; do i=$((i + 1)); echo "epoch $i loss=$l acc=0.$i"; sleep 0.1; done' \
		>out 2>said
	line_names "$(head -n 1 said)" strain: loss nan 2 3
	[ "$(json '[(e["loss"], e["acc"], e["not_finite"]) for e in d["epochs"]]' "$STRAIN" show run.strain)" = \
		"[(0.5, 0.1, None), (None, 0.2, 'loss=nan'), (None, 0.3, 'loss=-inf')]" ]
	run -0 "$STRAIN" show run.strain
	prints Warning loss nan "epoch 2"
	grep -qE '^ *2 .* nan( |$)' <<<"$output"
	grep -qE '^ *3 .* -inf( |$)' <<<"$output"
	# Another job has none of this.
	"$STRAIN" run --epoch-pattern '^epoch (?<epoch>\d+) loss=(?<loss>\S+)' -o run.strain --force sh -c "$JOB" 2>said
	run ! grep -E 'nan|inf' said
}

# Number and loss of each epoch, in order.
epochs() {
	python_sql run.strain "SELECT e.number, p.value FROM span e JOIN span p
		ON p.kind = 'point' AND p.number = e.number AND p.name = 'loss'
		WHERE e.kind = 'epoch' AND e.number > 0 ORDER BY e.start_ns"
}

all_epochs=$'1|0.1\n2|0.2\n3|0.3'

@test "epochs in a pipe" {
	[ "$(record sh -c "$JOB" 2>err)" = "$LINES" ]
	[ "$(epochs)" = "$all_epochs" ]
}

@test "epochs in a file, and what stood in it before is not read" {
	echo 'epoch 9 loss=9' >out
	record sh -c "$JOB" >>out 2>err
	[ "$(cat out)" = $'epoch 9 loss=9\n'"$LINES" ]
	[ "$(epochs)" = "$all_epochs" ]
	record sh -c "$JOB" >out 2>err
	[ "$(cat out)" = "$LINES" ]
	[ "$(epochs)" = "$all_epochs" ]
}

@test "a file that the job's output goes to is the job's own" {
	# shellcheck disable=SC2016
	record sh -c 'readlink /proc/$$/fd/1' >out 2>err
	[ "$(cat out)" = "$BATS_TEST_TMPDIR/out" ]
}

@test "epochs on standard error, and on both" {
	record sh -c "exec >&2; $JOB" 2>err >/dev/null
	[ "$(epochs)" = "$all_epochs" ]
	record sh -c 'echo "epoch 1 loss=0.1"; sleep 0.1; echo "epoch 2 loss=0.2" >&2; sleep 0.1
		echo "epoch 3 loss=0.3"' 2>&1 | grep ^epoch >both
	[ "$(epochs)" = "$all_epochs" ]
	record sh -c "$JOB" >both 2>&1
	[ "$(epochs)" = "$all_epochs" ]
}

@test "epochs of output that nobody wants" {
	record sh -c "$JOB" >/dev/null 2>&1
	[ "$(epochs)" = "$all_epochs" ]
}

@test "epochs on a terminal" {
	export JOB
	/usr/bin/python3 -c '
import os, pty, sys
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:], lambda fd: os.read(fd, 1024))))' \
		"$STRAIN" run --epoch-pattern '^epoch (?<epoch>\d+) loss=(?<loss>\S+)' -o run.strain \
		sh -c "$JOB" >out </dev/null
	[ "$(epochs)" = "$all_epochs" ]
}

@test "progress bars that only return are lines" {
	record printf 'epoch 1 loss=0.1\repoch 2 loss=0.2\repoch 3 loss=0.3' >out 2>err
	[ "$(cat out)" = $'epoch 1 loss=0.1\repoch 2 loss=0.2\repoch 3 loss=0.3' ]
	[ "$(epochs | head -2)" = $'1|0.1\n2|0.2' ]
}

@test "usual lines: settings that look like the first epoch are none" {
	run -0 "$STRAIN" run -o run.strain --epoch-pattern auto sh -c \
		'echo "Namespace(epoch=0, start_epoch=0)"; for i in 1 2 3; do echo "Epoch $i/3"; sleep 0.1; done'
	run -0 python_sql run.strain "SELECT number FROM span WHERE kind = 'epoch' ORDER BY start_ns"
	[ "$output" = $'1\n2\n3' ]
}

@test "a pattern that backtracks without end does not hold the job" {
	run -0 timeout 60 "$STRAIN" run -o run.strain --epoch-pattern '^(a+)+$' sh -c \
		'for i in 1 2 3 4 5 6 7 8 9; do head -c 4000 /dev/zero | tr "\0" a; echo "!"; done'
	run -0 python_sql run.strain "SELECT text FROM event WHERE kind = 'lost'"
	[[ "$output" == '9 '* ]]
}

@test "more output than a recorder should read is counted, and arrives" {
	# shellcheck disable=SC2016
	record sh -c 'head -c 50000000 /dev/zero; echo; echo "end"' 2>err | tail -c 4 >end
	[ "$(cat end)" = end ]
	run -0 python_sql run.strain "SELECT text FROM event WHERE kind = 'lost'"
	[[ "$output" =~ [1-9][0-9]*" bytes " ]]
}

# How long a recorder needs for what it did take of a flood depends on the machine: the longer the
# job rests, the surer. resting CHECK COMMAND...: until CHECK holds after COMMAND with $rest seconds.
resting() {
	local check=$1 rest
	shift
	for rest in 1 5 20 60; do
		rest=$rest "$@"
		echo "after $rest s of rest: $("$check" 2>&1 || true)"
		if "$check" >/dev/null; then
			return 0
		fi
	done
	return 1
}

flood_into_file() {
	# shellcheck disable=SC2016
	"$STRAIN" run -o flood.strain --force --epoch-pattern 'Epoch (?<epoch>\d+)' \
		sh -c 'echo Epoch 1; yes | head -c 200M; sleep "$rest"; echo Epoch 2; sleep 0.1' >output 2>err
	[ "$(stat -c %s output)" -eq $((200 * 1024 * 1024 + 16)) ]
	rm output
}

both_epochs() {
	local found
	found=$(python_sql flood.strain "SELECT number FROM span WHERE kind = 'epoch' ORDER BY number")
	echo "$found"
	[ "$found" = $'1\n2' ]
}

@test "a flood into a file is passed over, and what comes after it is seen" {
	resting both_epochs flood_into_file
	run -0 "$STRAIN" sql --csv flood.strain "SELECT text FROM event WHERE kind = 'lost'"
	[[ "$output" =~ [1-9][0-9]*" bytes " ]]
}

flood_into_pipe() {
	# shellcheck disable=SC2016
	record sh -c 'head -c 20000000 /dev/zero | tr "\0" x; sleep "$rest"; echo "epoch 1 loss=0.1"
		head -c 20000000 /dev/zero | tr "\0" "\n"; sleep "$rest"; echo "epoch 2 loss=0.2"; sleep 0.3
		echo "epoch 3 loss=0.3"' 2>err | tail -n 1 >end
}

every_epoch() {
	epochs
	[ "$(epochs)" = "$all_epochs" ]
}

@test "what comes after a flood into a pipe and a rest is seen" {
	resting every_epoch flood_into_pipe
}

@test "a flood tears no line into one that matches" {
	# Whole lines do not match; a part of one does.
	# shellcheck disable=SC2016
	local flood='line=$(head -c 200 /dev/zero | tr "\0" a)b; yes "$line" | head -c 20200000; sleep 1.2; echo "done"'
	"$STRAIN" run -o pipe.strain --epoch-pattern '^(a{1,199}b?|a+)$' sh -c "$flood" 2>err | tail -n 1 >end
	[ "$(cat end)" = "done" ]
	"$STRAIN" run -o file.strain --epoch-pattern '^(a{1,199}b?|a+)$' sh -c "$flood" 2>err >output
	rm output
	local file
	for file in pipe file; do
		[ "$(python_sql "$file.strain" "SELECT count(*) FROM event WHERE kind = 'lost'")" = 1 ]
		[ "$(python_sql "$file.strain" "SELECT count(*) FROM span")" = 0 ]
	done
}

@test "zeros that the job writes are no sign that bytes are missing" {
	record printf 'epoch 1 loss=0.1\0\nepoch 2 loss=0.2\n\0epoch 4 loss=0\nepoch 3 loss=0.3\n' 2>err |
		cat >out
	[ "$(epochs)" = $'2|0.2\n3|0.3' ] # in the others the zero is a part of what stands there
	printf 'epoch 1 loss=0.1\0\nepoch 2 loss=0.2\n\0epoch 4 loss=0\nepoch 3 loss=0.3\n' | cmp - out
}

@test "the recorder stopped holds no output" {
	mkfifo pipe
	cat pipe >out &
	local reader=$!
	"$STRAIN" run --epoch-pattern x sh -c 'echo first; while [ ! -e stop ]; do sleep 0.02; done
		head -c 5000000 /dev/zero; echo; echo last' >pipe 2>err &
	local launcher=$! recorder
	eventually grep -q first out
	recorder=$(recorder_of "$launcher")
	kill -STOP "$recorder"
	touch stop
	eventually sh -c 'tail -c 5 out | grep -q last'
	kill -KILL "$recorder"
	wait "$launcher"
	wait "$reader"
}

# Numbers, a line each, until told to stop; the last line says so.
# shellcheck disable=SC2016
COUNT='i=0; while [ ! -e stop ]; do i=$((i + 1)); echo "line $i"; done
	sleep 1.2; echo "epoch 7 loss=0.7"; exit 6' # a second in which nothing is too much

# In the background: $! is the launcher.
record_into_pipe() {
	exec "$STRAIN" run --epoch-pattern '^epoch (?<epoch>\d+) loss=(?<loss>\S+)' -o run.strain \
		"$@" >pipe 2>err
}

# A job that counts into a pipe, and who reads it: launcher and reader.
begin_counting() {
	mkfifo pipe
	cat pipe >out &
	reader=$!
	record_into_pipe sh -c "$COUNT" &
	launcher=$!
}

# It ends as it would have without us, and all of its last lines have arrived.
end_counting() {
	local status=0
	touch stop
	wait "$launcher" || status=$?
	[ "$status" -eq 6 ]
	wait "$reader" # the job's end is the end of its output
	[ "$(tail -n 1 out)" = 'epoch 7 loss=0.7' ]
}

out_has_grown() {
	[ "$(stat -c %s out 2>/dev/null || echo 0)" -ge "$1" ]
}

# Waits until $1 more bytes have arrived.
await_output() {
	local size
	size=$(stat -c %s out 2>/dev/null || echo 0) # the reader may not have begun
	eventually out_has_grown $((size + $1))
}

forwarder_runs() {
	[ -n "$(forwarder_of "$1")" ]
}

kill_forwarder() {
	eventually forwarder_runs "$1"
	kill -KILL "$(forwarder_of "$1")"
}

# Bytes of the lines that are missing, or cut, before the last one.
lost_bytes() {
	/usr/bin/python3 -c '
import re, sys
whole = {int(n) for n in re.findall(rb"(?m)^line (\d+)$", open(sys.argv[1], "rb").read())}
print(sum(len("line %d\n" % n) for n in range(1, max(whole)) if n not in whole))' "$1"
}

@test "the forwarder killed: the job does not notice, another one goes on" {
	begin_counting
	for _ in 1 2 3; do
		await_output 1000
		kill_forwarder "$launcher"
	done
	await_output 1000
	end_counting
	[ "$(lost_bytes out)" -le $((3 * (65536 + 2 * 16))) ]
	[ "$(epochs)" = '7|0.7' ]
	[ "$(python_sql run.strain "SELECT count(*) FROM event WHERE kind = 'forwarder_died'
		AND text LIKE '%killed (signal 9)%'")" = 3 ]
	grep -q '^strain: .* 3 ' err
}

# The state of a process, and nothing of it where it is gone.
sleeps() {
	grep -qs '^State:.S' "/proc/$1/status"
}

@test "the forwarder killed when the job has ended and its last output waits" {
	mkfifo pipe
	exec 9<>pipe # a reader that does not read
	record_into_pipe sh -c 'head -c 100000 /dev/zero | tr "\0" x; echo >filled
		while [ ! -e stop ]; do sleep 0.02; done
		echo; echo "epoch 7 loss=0.7"; echo >ended' 9<&- &
	local launcher=$! forwarder
	eventually test -s filled
	forwarder=$(forwarder_of "$launcher")
	eventually sleeps "$forwarder" # it has more than the pipe takes
	touch stop
	eventually test -s ended
	kill -KILL "$forwarder"
	cat pipe >out 9<&- &
	local reader=$!
	eventually test -s out # until then a reader is missing without ours
	exec 9<&-
	wait "$launcher"
	wait "$reader"
	[ "$(tail -n 1 out)" = 'epoch 7 loss=0.7' ]
}

@test "the forwarder killed, then the reader gone: SIGPIPE for the job, as without us" {
	mkfifo pipe
	mkfifo go
	# shellcheck disable=SC2094
	sh -c 'head -c 1000 >out; read -r _ <go' <pipe &
	local reader=$!
	record_into_pipe sh -c "trap - PIPE; $COUNT" &
	local launcher=$!
	eventually test -s out
	kill_forwarder "$launcher"
	eventually forwarder_runs "$launcher"
	echo >go
	wait "$reader"
	local status=0
	wait "$launcher" || status=$?
	[ "$status" -eq 141 ]
}

@test "the recorder killed: the output arrives to the last byte" {
	begin_counting
	eventually test -s out
	kill -KILL "$(recorder_of "$launcher")"
	await_output 100000
	end_counting
	[ "$(lost_bytes out)" -eq 0 ]
}
