#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Marks of a job, by strain/marker.h and strain mark: what the run has of them, and that nothing that
# a job does to them harms the run or the job.

load run_helpers

MARKING="$BUILD_ROOT/tests/tools/marking"

record() {
	"$STRAIN" run -o run.strain --force "$@"
}

@test "epochs, iterations and phases, and the rate of each epoch" {
	record "$MARKING" train >out 2>err
	[ "$(python_sql run.strain "SELECT kind, count(*), sum(end_ns > start_ns), sum(samples)
		FROM span GROUP BY kind ORDER BY kind")" = \
		$'epoch|3|3|960\niteration|30|30|960\nphase|60|60|None\npoint|30|0|None' ]
	[ "$(python_sql run.strain "SELECT DISTINCT p.name, p.kind, i.kind, e.kind FROM span p
		JOIN span i ON i.id = p.parent JOIN span e ON e.id = i.parent ORDER BY 1, 2")" = \
		$'data|phase|iteration|epoch\nforward|phase|iteration|epoch\nloss|point|iteration|epoch' ]
	[ "$(python_sql run.strain "SELECT DISTINCT e.name FROM span s
		JOIN entity e ON e.id = s.attributes ->> 'process'")" = marking ]
	grep -q '3 epochs of .* samples/s' err
	"$STRAIN" show run.strain | grep -q SAMPLES/S
}

@test "the job alone has the directory, and it goes" {
	# shellcheck disable=SC2016
	STRAIN_MARKERS=/nowhere record sh -c 'echo "$STRAIN_MARKERS"; stat -c %a "$STRAIN_MARKERS"' >out
	[[ "$(head -n 1 out)" == /dev/shm/strain-"$(id -u)"-* || "$(head -n 1 out)" == /tmp/strain-* ]]
	[ "$(tail -n 1 out)" = 700 ]
	[ ! -e "$(head -n 1 out)" ]
}

@test "--no-markers" {
	# shellcheck disable=SC2016
	STRAIN_MARKERS=/nowhere record --no-markers sh -c 'echo "${STRAIN_MARKERS-none}"' >out
	[ "$(cat out)" = none ]
	line_names "$(run_key run.strain markers_missing)" --no-markers
	"$STRAIN" show run.strain | grep -q '^Missing   marks: .*--no-markers'
	"$STRAIN" show --json run.strain | /usr/bin/python3 -c '
import json, sys
missing = json.load(sys.stdin)["missing"][0]
assert missing["subject"] == "marks" and "--no-markers" in missing["reason"]'
}

@test "show says why there are no marks, whatever that reason is made of" {
	record true
	run "$STRAIN" show run.strain
	[[ "$output" != *marks:* ]]
	/usr/bin/python3 -c '
import sqlite3
run = sqlite3.connect("run.strain")
run.executemany("INSERT INTO run VALUES (?, ?)", [
    ("markers_missing", "no room in \x1b[31m/dev/shm"), ("hooks_missing", "python -I was given"),
    ("nvtx_missing", "not installed")])
run.commit()'
	"$STRAIN" show run.strain >out
	grep -q '^Missing   marks: no room in \\x1b\[31m/dev/shm$' out
	grep -q '^          hooks: python -I was given$' out
	grep -q '^          NVTX ranges: not installed$' out
}

@test "threads, forks and what is executed have marks of their own" {
	record "$MARKING" threads
	[ "$(python_sql run.strain "SELECT count(*), count(DISTINCT thread), min(attributes NOT LIKE '%end%')
		FROM span WHERE name = 'work'")" = '6|6|1' ]
	record "$MARKING" forks
	[ "$(python_sql run.strain "SELECT count(DISTINCT attributes ->> 'process'), count(*),
		sum(attributes LIKE '%end%') FROM span")" = '2|2|0' ]
	record "$MARKING" executes >out
	[ "$(python_sql run.strain "SELECT count(*) FROM span WHERE kind = 'epoch'")" = 3 ]
	[ "$(python_sql run.strain "SELECT count(*) FROM span WHERE name = 'before exec'")" = 1 ]
}

@test "a span whose process is killed ends with it, and says so" {
	record "$MARKING" killed
	[ "$(python_sql run.strain "SELECT attributes ->> 'end', (end_ns - start_ns) / 1e9 < 1.4 FROM span
		WHERE name = 'doomed'")" = 'exit|1' ]
	[ "$(python_sql run.strain "SELECT attributes ->> 'end' FROM span WHERE name = 'after'")" = None ]
}

@test "more marks than can be read are dropped, counted, and bounded" {
	record "$MARKING" flood
	python_sql run.strain "SELECT text FROM event WHERE kind = 'lost'" | grep -q 'marks were dropped'
	[ "$(python_sql run.strain "SELECT count(*) <= 60000 FROM span")" = 1 ]
	[ "$(python_sql run.strain "SELECT count(*) FROM span WHERE end_ns < start_ns")" = 0 ]
}

@test "a ring that is cut off is said, and the run goes on" {
	record "$MARKING" truncates
	python_sql run.strain "SELECT text FROM event WHERE kind = 'lost'" | grep -q 'became shorter'
	[ "$(python_sql run.strain "SELECT count(*) FROM span WHERE name = 'good'")" = 1 ]
	[ "$(run_key run.strain state)" = finished ]
}

@test "a hostile directory" {
	record "$MARKING" hostile
	[ "$(run_key run.strain state)" = finished ]
	[ "$(python_sql run.strain "SELECT count(*) < 20 FROM event WHERE kind = 'lost'")" = 1 ]
}

# 1 for each epoch that had not ended when the run did
open_epochs() {
	"$STRAIN" show --json run.strain |
		/usr/bin/python3 -c 'import json, sys; print(*(int(e["open"]) for e in json.load(sys.stdin)["epochs"]))'
}

@test "an epoch that its job's end cut short did not end" {
	# shellcheck disable=SC2016
	local two='"$0" mark epoch 1; "$0" mark epoch 2'
	run -137 record sh -c "$two"'; kill -KILL $$' "$STRAIN"
	[ "$(open_epochs)" = "0 1" ]
	run -3 record sh -c "$two"'; exit 3' "$STRAIN"
	[ "$(open_epochs)" = "0 1" ]
	run -3 record sh -c "$two"'; "$0" mark epoch-end; exit 3' "$STRAIN"
	[ "$(open_epochs)" = "0 0" ]
	# Who ends well says nothing of the last one's end, often.
	run -0 record sh -c "$two" "$STRAIN"
	[ "$(open_epochs)" = "0 0" ]
}

@test "epochs of marks replace those of lines, whose points stay" {
	record --epoch-pattern '^epoch (?<epoch>\d+) accuracy=(?<accuracy>\S+)' "$MARKING" train >out
	[ "$(python_sql run.strain "SELECT number, samples FROM span WHERE kind = 'epoch' ORDER BY id")" = \
		$'1|320\n2|320\n3|320' ]
	[ "$(python_sql run.strain "SELECT e.number, p.value FROM span p JOIN span e ON e.id = p.parent
		WHERE p.name = 'accuracy' ORDER BY p.id")" = $'1|0.1\n2|0.2\n3|0.3' ]
}

@test "a recorder that dies harms no job that marks" {
	"$STRAIN" run -o run.strain "$MARKING" steady 2>err &
	launcher=$!
	eventually pgrep -P "$launcher" -x marking
	kill -9 "$(recorder_of "$launcher")"
	wait "$launcher"
}

is_finished() {
	[ "$(run_key "$1" state)" = finished ]
}

@test "a launcher that dies leaves no directory behind" {
	# shellcheck disable=SC2016
	"$STRAIN" run -o run.strain sh -c 'echo "$STRAIN_MARKERS" >where; exec "$0" steady' \
		"$MARKING" 2>err &
	launcher=$!
	eventually test -s where
	# Else it may be killed before the recorder knows whom to record.
	job_is_known() {
		[ "$(python_sql run.strain "SELECT count(*) > 0 FROM entity WHERE kind = 'process'")" = 1 ]
	}
	eventually job_is_known
	kill -9 "$launcher"
	wait "$launcher" || true
	eventually test ! -e "$(cat where)"
	eventually is_finished run.strain
	[ "$(python_sql run.strain "SELECT count(*) > 1000 FROM span WHERE kind = 'point'")" = 1 ]
}

@test "a container with its own pids" {
	command -v bwrap >/dev/null || skip "bubblewrap is not installed"
	bwrap --dev-bind / / --unshare-pid --proc /proc true || skip "bubblewrap cannot work here"
	record bwrap --dev-bind / / --unshare-pid --proc /proc "$MARKING" forks
	[ "$(python_sql run.strain "SELECT count(*), count(DISTINCT e.key) FROM span s
		JOIN entity e ON e.id = s.attributes ->> 'process' WHERE e.name = 'marking'")" = '2|2' ]
}

@test "strain mark: a shell's spans" {
	# shellcheck disable=SC2016
	record sh -c '"$0" mark epoch 1; "$0" mark iteration 1 8; "$0" mark begin data
		"$0" mark point size -3.5; "$0" mark end; "$0" mark epoch-end; "$0" mark begin open' "$STRAIN"
	[ "$(python_sql run.strain "SELECT name, kind, number, samples, value, attributes ->> 'end'
		FROM span ORDER BY id")" = 'epoch|epoch|1|8|None|None
iteration|iteration|1|8|None|None
data|phase|None|None|None|None
size|point|None|None|-3.5|None
open|user|None|None|None|exit' ]
	[ "$(python_sql run.strain "SELECT count(DISTINCT attributes) FROM span WHERE kind <> 'user'")" = 1 ]
}

@test "strain mark goes on with a ring that another began and was killed over" {
	# shellcheck disable=SC2016
	record sh -c 'head -c 262144 /dev/zero >"$STRAIN_MARKERS/ring-shell-$$"
		"$0" mark begin late; "$0" mark end' "$STRAIN"
	[ "$(python_sql run.strain "SELECT name, attributes ->> 'end' FROM span")" = 'late|None' ]
}

@test "strain mark does nothing where nothing records, and says what is wrong" {
	unset STRAIN_MARKERS
	run "$STRAIN" mark begin x
	[ "$status" -eq 0 ]
	[ -z "$output" ]
	STRAIN_MARKERS=/nowhere run "$STRAIN" mark begin x
	[ "$status" -eq 0 ]
	[[ "$output" == "strain: mark: "* ]]
	[ "${#lines[@]}" = 1 ]
	for wrong in '' 'frob' 'begin' 'begin a b' 'point x y' 'epoch x' 'epoch -1' 'iteration 1 0' \
		'point x 1 2'; do
		# shellcheck disable=SC2086
		run "$STRAIN" mark $wrong
		[ "$status" -eq 2 ]
		[ "${#lines[@]}" -eq 1 ]
	done
}

@test "a program names the unit of its samples" {
	command -v cc >/dev/null || skip 'no C compiler'
	cat >unit.c <<'END'
#include <strain/marker.h>
int main(void)
{
	strain_unit("a name that is much longer than the unit of any sample could be");
	strain_unit("video  frames\nloader_at \033[31m;");
	strain_unit("");
	strain_unit("\n\t;");
	for (int i = 0; i < 40; i++) {
		strain_iteration(i, 8);
		usleep(2000);
	}
	strain_iteration_end(8);
	return 0;
}
END
	cc -O1 -I "$SOURCE_ROOT/include" unit.c -o unit
	./unit
	record ./unit
	"$STRAIN" show run.strain | grep -q 'VIDEO_FRAMES_LOADER_AT_M/S'
	[ -z "$(run_key run.strain loader_at)" ]
	[ "$("$STRAIN" show --json run.strain | python3 -c 'import json, sys
print(json.load(sys.stdin)["iterations"]["samples_unit"])')" = video_frames_loader_at_m ]
	sed -i '/video/d' unit.c
	cc -O1 -I "$SOURCE_ROOT/include" unit.c -o unit
	record ./unit
	[ "$(run_key run.strain samples_unit)" = a_name_that_is_much_longer_than_ ]
}

@test "the header is C11 and C++11, and needs nothing newer than glibc 2.17" {
	cat >use.c <<'END'
#include <strain/marker.h>
void use(void);
void use(void)
{
	strain_epoch(1);
	strain_iteration(1, 32);
	strain_begin("data");
	strain_end();
	strain_point("loss", 1);
	strain_unit("frames");
	strain_epoch_end();
}
END
	cp use.c use.cc
	warnings=(-Wall -Wextra -Wpedantic -Wshadow -Werror -O2 -fPIC -I "$SOURCE_ROOT/include")
	for compiler in cc gcc clang clang-14; do
		if command -v "$compiler" >/dev/null; then
			"$compiler" -std=c11 "${warnings[@]}" -c use.c -o use.o
		fi
	done
	for compiler in c++ g++ clang++ clang++-14; do
		if command -v "$compiler" >/dev/null; then
			"$compiler" -std=c++11 "${warnings[@]}" -Wold-style-cast -c use.cc -o use_cc.o
		fi
	done
	cc -std=c11 "${warnings[@]}" -shared use.c -o use.so
	newest=$(objdump -T use.so | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
	[ "$(printf '%s\n' "$newest" GLIBC_2.17 | sort -V | tail -n 1)" = GLIBC_2.17 ]
}
