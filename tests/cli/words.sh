#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The words of strain: what its commands print about kept runs and plans, and their errors. Other tests
# check numbers, codes and names; the sentences are in words.golden alone (and what doctor says of a
# machine in tests/hosts, what a build without pages or gnuplot says nowhere).
#
# words.sh STRAIN words.golden: what it prints must be what the file says.
# words.sh --update STRAIN words.golden: writes it instead; look at the difference before committing.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/expected.sh
. "$here/../expected.sh"

export LC_ALL=C.UTF-8 TZ=UTC NO_COLOR=1
unset COLUMNS LINES STRAIN_DIR ARGP_HELP_FMT POSIXLY_CORRECT
strain=$(cd "$(dirname "$strain")" && pwd)/$(basename "$strain")
golden=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export XDG_CACHE_HOME="$work/cache" XDG_STATE_HOME="$work/state"

# say COMMAND WORD...: as typed, standard output, standard error, and the status where it is not 0
say() {
	printf '\n$ strain'
	for word; do
		case $word in
		*[!][A-Za-z0-9_./:=,+%-]* | '') printf " '%s'" "$word" ;;
		*) printf ' %s' "$word" ;;
		esac
	done
	echo
	status_of=0
	"$strain" "$@" >out 2>err </dev/null || status_of=$?
	cat out err
	[ "$status_of" = 0 ] || echo "[exit status $status_of]"
}

title() {
	printf '\n\n==== %s ====\n' "$1"
}

# The verdict alone: the paragraph that begins with this word.
verdict() { # RUN
	printf '\n$ strain show %s (verdict)\n' "$1"
	"$strain" show "$1" | sed -n '/^Verdict /,/^$/p' | sed '/^$/d'
}

# with KEY VALUE FROM TO: a copy of a run in which a key has this value
with() {
	cp "$3" "$4"
	chmod u+w "$4"
	sqlite3 "$4" "INSERT OR REPLACE INTO run VALUES ('$1', '$2')"
}

words() {
	title "A run"
	say show gil.strain
	say show --all --iterations slow-worker.strain
	say show made.strain
	cp gil.strain finished.strain
	say finish finished.strain

	title "Verdicts"
	for run in $verdicts; do
		verdict "$run.strain"
	done

	title "How runs end"
	with status 768 json.strain failed.strain
	with status 9 json.strain killed.strain
	with outcome interrupted json.strain interrupted.strain
	with outcome out_of_memory json.strain memory.strain
	with outcome_text 'out of device memory: tried to allocate 2 GiB' memory.strain memory2.strain
	mv memory2.strain memory.strain
	with state cut_off json.strain cut.strain
	head -c 100000 gil.strain >short.strain
	for run in failed killed interrupted memory cut short; do
		printf '\n$ strain show %s (first lines)\n' "$run.strain"
		"$strain" show "$run.strain" 2>&1 | sed '/^Evidence/,$d'
	done

	title "Several runs"
	mkdir ends
	for run in failed killed interrupted memory cut; do
		cp $run.strain ends
	done
	cp -r paper.sweep ends/paper.sweep
	say ls ends
	say ls --sort verdict --where batch_size=32 paper.sweep
	say ls ends --where a=b
	say compare gil.strain json.strain
	say compare paper.sweep
	say compare paper.sweep --where 'batch_size<=128' --baseline batch_size=32
	say compare paper.sweep --where 'batch_size<=128' --rows batch_size,framework --baseline batch_size=32 --value epoch_seconds,host_memory_peak
	say compare paper.sweep --rows batch_size --value epoch_seconds
	say compare paper.sweep --value help
	say compare --layout torres2021-table2
	say compare --layout tripathi2019-table5.8
	say compare --layout jayarajan-stalls
	say compare paper.sweep --layout torres2021-table3 --beside published
	say compare paper.sweep --layout tripathi2019-fig3.5

	title "Sweeps"
	cat >plan.yaml <<-'END'
		command: job ${args}
		parameters: {batch_size: {values: [8, 16]}, epochs: 3}
		repeats: 2
		order: plan
	END
	say sweep plan.yaml --dry-run
	cp -r paper.sweep done.sweep
	rm done.sweep/000[56]-*
	cat >done.sweep/plan.yaml <<-'END'
		command: [x, "${args}"]
		parameters: {batch_size: {values: [32, 128]}, framework: {values: [pytorch, tensorflow]}}
		repeats: 3
		baseline: {batch_size: 32}
	END
	say sweep done.sweep
	say compare done.sweep
	say compare done.sweep --where batch_size=128 --rows framework,batch_size
	say compare done.sweep --rows framework

	title "Errors of the command line"
	say frob
	say show --frob
	say show a b
	say show nowhere
	say ls --sort
	say ls --sort batchsize paper.sweep
	say ls --where batch_size paper.sweep
	say ls --where outcom=success paper.sweep
	say ls /nowhere
	say run
	say run --interval 1d true
	say run --memory lots true
	say run --label x true
	say run --overhead 200 true
	say sql gil.strain 'SELECT 1; SELECT 2'
	say export gil.strain --metric no.such
	say export gil.strain --format xml
	say mark
	say advise
	say advise --stalls
	say advise --sbatch --docker -- true
	say advise --json --sbatch -- true
	say advise train.py '{batchsize=16}'
	say advise train.py '{workers=two}'
	say advise --try --with LD_PRELOAD=x.so -- true
	say advise --stalls --limit 1s true
	say report gil.strain -o page.jpg
	say compare paper.sweep --rows batchsize
	say compare paper.sweep --value epoch_second
	say compare paper.sweep --value process.cpu.time
	say compare paper.sweep --where batch_size=7
	say compare paper.sweep --where 'epoch_seconds<4s'
	say compare paper.sweep --where outcome=crashed
	say compare paper.sweep --layout torres2021-table3 --rows batch_size
	say compare paper.sweep --layout torres2021-table33
	say compare paper.sweep --baseline batch_size=33
	say compare paper.sweep --format yaml
	say compare paper.sweep -o table.xyz
	say compare paper.sweep -o /nowhere/table.md
	say compare paper.sweep --figure scalin -o a.svg
	say compare paper.sweep --figure timeline -o a.svg
	say compare gil.strain --layout dube-sura-fig1
	say sweep

	title "Errors of files"
	: >empty.strain
	echo "not a run" >text.strain
	mkdir folder
	for run in empty.strain text.strain folder nowhere.strain; do
		say show "$run"
	done
	say show ends
	say show paper.sweep
	say ls nowhere
	say ls text.strain
	say compare paper.sweep -o page.pdf
	say show --jsn
	say show --json=3
	say sweep nowhere.yaml
	say sweep folder
	say sweep gil.strain

	for test in verdict causes cpu_causes evidence advice plan limits pivot layout; do
		title "What tests/unit/test_$test.c sees"
		: >said
		STRAIN_WORDS=$PWD/said "$(dirname "$strain")/tests/unit/test_$test" >/dev/null 2>&1 || true
		uniq said
	done

	title "Help"
	say --help
	for command in run report show ls compare export sql mark sweep advise doctor completion; do
		say "$command" --help
	done
}

# A run for each cause that the kept ones have, and for each degree of confidence.
verdicts='actor-critic cold flax-toy infogan jax-scratch lock mingpt network quota-inner regression
	slow-worker svm tensors vae-input vae-worker validation varied-churn varied-collect
	varied-fetch varied-mutex varied-pace varied-programs varied-restarts varied-save
	varied-sleep-main varied-thread leak one-cpu'
for run in gil json $verdicts; do
	cp "$here/../truth/$run.strain" .
done
cp "$here/../traces/schema-1000.strain" made.strain
python3 "$here/paper_sweep.py" "$here/../traces/schema-1001-onednn.strain"
compare "$(words)" "$golden" words.golden
exit "$status"
