#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# The PyTorch jobs that do not classify images, if PyTorch is installed. $FOLDER is the folder of their folders.
#
# Each learns, with a fixed seed on one thread. The limits of the tests are far from what was seen, and what a network that
# does not learn would give is beside them.

bats_require_minimum_version 1.5.0

setup() {
	python=/usr/bin/python3
	"$python" -c 'import torch' 2>/dev/null || skip "no PyTorch (python3-torch) for $python"
	export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
	cd "$BATS_TEST_TMPDIR" || return
}

is_slow() {
	[ -n "${STRAIN_SLOW_TESTS:-}" ] || skip "slow: set STRAIN_SLOW_TESTS=1"
}

need_torchvision() {
	"$python" -c 'import torchvision' 2>/dev/null || skip "no torchvision (python3-torchvision)"
}

# train APPLICATION OPTION...: on one thread, without workers; the output is in the file `lines`.
train() {
	local application=$1
	shift
	"$python" "$FOLDER/$application/train.py" --threads 1 "$@" >lines || return
	cat lines
}

# score WHAT EPOCH NAME: a number of a line.
score() {
	sed -n "s/^$1 $2\/.*  $3 \(-*[0-9.]*\)  .*/\1/p" lines
}

# holds EXPRESSION: of numbers.
holds() {
	awk "BEGIN { exit !($1) }" || {
		echo "not true: $1"
		return 1
	}
}

@test "models have as many parameters as were published, or as their layers have" {
	need_torchvision
	[ "$("$python" "$FOLDER/count.py" others)" = 'translation/lstm 25887232
translation/transformer 56889344
detection/fasterrcnn_resnet50 41808406
detection/fasterrcnn_resnet101 60800534
unsupervised/wgan 6579012
reinforcement/a3c 677172' ]
}

# learns_a_language MODEL: 0.1 is the most frequent word, 0.2 to 0.4 the order of kinds of words; 0.85 and 0.98 were seen.
learns_a_language() {
	train translation --model "$1" --samples 3200 --epochs 4 --validation-samples 320 --workers 0
	[[ "$(head -1 lines)" == "$1: "*" parameters, 3200 sentences, batch size 32, 0 workers, c"* ]]
	[[ "$(sed -n 2p lines)" =~ ^epoch\ 1/4\ \ loss\ [0-9.]+\ \ accuracy\ [01]\.[0-9]{3}\ \ [0-9.]+\ s\ \ [0-9]+\ tokens/s$ ]]
	[ "$(wc -l <lines)" = 9 ]
	holds "$(score validation 4 loss) < 0.5 * $(score validation 1 loss)"
	holds "$(score validation 4 accuracy) > 0.6"
}

@test "translation: an LSTM with attention learns a language, with tokens per second" {
	learns_a_language lstm
}

@test "translation: a Transformer learns a language" {
	is_slow
	learns_a_language transformer
}

@test "detection: Faster R-CNN finds shapes in images that it has not seen" {
	need_torchvision
	train detection --samples 200 --epochs 4 --validation-samples 40 --workers 0
	[[ "$(head -1 lines)" == "fasterrcnn_small: 336401 parameters, 200 images, batch size 4, 0 workers, c"* ]]
	holds "$(score epoch 4 loss) < 0.7 * $(score epoch 1 loss)"
	holds "$(score validation 4 recall) > 0.3"
}

@test "unsupervised: images come nearer to others than those trained on, without the critic's judgement" {
	is_slow
	# 0.5 is the distance of grey; from 0.44 to 0.25 was seen.
	train unsupervised --samples 1920 --epochs 5 --validation-samples 256 --workers 0
	[[ "$(head -1 lines)" == "wgan: 220268 parameters, 1920 images, batch size 32, 0 workers, c"* ]]
	[[ "$(sed -n 3p lines)" =~ ^validation\ 1/5\ \ distance\ [0-9.]+\ \ [0-9.]+\ s\ \ [0-9]+\ images/s$ ]]
	holds "$(score validation 5 distance) < 0.75 * $(score validation 1 distance)"
}

@test "reinforcement: an agent catches balls, with steps per second" {
	is_slow
	# One that acts at random gets -3.4, with a deviation of 0.2 in the mean of an epoch's games; 0.5 was seen.
	train reinforcement --samples 4000 --epochs 5 --processes 1
	[ "$(head -1 lines)" = "a3c: 87388 parameters, 4000 steps, batch size 20, cpu" ]
	[[ "$(sed -n 2p lines)" =~ ^epoch\ 1/5\ \ loss\ -?[0-9.]+\ \ reward\ -?[0-9.]+\ \ [0-9.]+\ s\ \ [0-9]+\ steps/s$ ]]
	holds "$(score epoch 1 reward) < -2.5 && $(score epoch 5 reward) > $(score epoch 1 reward) + 1.5"
}

@test "the same seed gives the same losses, and another one others" {
	need_torchvision
	losses() {
		train "$@" >/dev/null
		sed -n 's/.*  loss \([-0-9.]*\) .*/\1/p' lines | tr '\n' ' '
	}
	for job in 'translation --samples 64' 'unsupervised --samples 128' 'detection --samples 8' \
		'reinforcement --samples 200 --processes 1'; do
		# shellcheck disable=SC2086
		{
			first=$(losses $job --epochs 2)
			[ "$(wc -w <<<"$first")" = 2 ]
			[ "$first" = "$(losses $job --epochs 2)" ]
			[ "$first" != "$(losses $job --epochs 2 --seed 2)" ]
		}
	done
}

@test "passes end after the steps, with either optimizer; samples that fill no batch are refused" {
	train translation --steps 3 --epochs 2 --optimizer sgd --workers 2 --validation-samples 32
	[ "$(wc -l <lines)" = 5 ]
	train reinforcement --steps 4 --epochs 2 --optimizer adam --processes 2
	[ "$(wc -l <lines)" = 3 ]
	train unsupervised --steps 2 --epochs 1 --optimizer sgd --workers 1 --batch-size 8 --critic-steps 1
	[ "$(wc -l <lines)" = 2 ]
	run -1 "$python" "$FOLDER/translation/train.py" --samples 31
	[ "$output" = "train.py: 31 samples do not fill a batch of 32" ]
	run -1 "$python" "$FOLDER/reinforcement/train.py" --samples 39
	[ "$output" = "train.py: 39 steps do not fill a batch of 20 of each process" ]
}

@test "an actor that is killed ends the job with an error" {
	"$python" "$FOLDER/reinforcement/train.py" --processes 2 >lines 2>err &
	job=$!
	for _ in {1..600}; do
		actors=$(pgrep -P $job | head -1)
		[ -z "$actors" ] || [ ! -s lines ] || break
		sleep 0.1
	done
	kill -KILL "$actors"
	status=0
	wait $job || status=$?
	[ "$status" = 1 ]
	[ "$(cat err)" = "train.py: an actor did not end well" ]
}

# recorded APPLICATION OPTION...: the files show.json, spans.json, keys.json and verdict of a short run.
recorded() {
	local application=$1
	shift
	"$STRAIN" run --no-cgroup --force -o run.strain -- "$python" "$FOLDER/$application/train.py" --threads 1 --epochs 2 "$@" 2>verdict
	"$STRAIN" show --json run.strain >show.json
	"$STRAIN" sql --json run.strain "SELECT kind, name, count(*) AS n, sum(samples) AS samples, count(DISTINCT thread) AS threads
		FROM span GROUP BY 1, 2" >spans.json
	"$STRAIN" sql --json run.strain "SELECT key, value FROM run" >keys.json
}

# is EXPRESSION...: of show, keys, and n, samples and threads by kind and name of spans.
is() {
	"$python" - "$@" <<-'EOF'
		import json, sys
		show, spans, keys = (json.load(open(name + ".json")) for name in ("show", "spans", "keys"))
		n, samples, threads = ({(row["kind"], row["name"]): row[what] for row in spans} for what in ("n", "samples", "threads"))
		keys = {row["key"]: row["value"] for row in keys}
		iteration = "iteration", "iteration"
		for expression in sys.argv[1:]:
		    assert eval(expression), (expression, spans, show["iterations"], show["epochs"])
	EOF
}

@test "recorded, iterations, samples and epochs are those of the job, and rates have a unit" {
	[ -x "$STRAIN" ] || skip "strain was not built"
	need_torchvision
	recorded translation --samples 320 --validation-samples 64 --workers 1
	is 'n[iteration] == 20' 'samples[iteration] == 640' 'len(show["epochs"]) == 2' 'n["phase", "validation"] == 2' \
		'show["iterations"]["samples_unit"] == "samples"' '9 < show["iterations"]["tokens_per_sample"] < 10.5' \
		'"hooks_missing" not in keys'
	grep -q ' samples/s, [0-9,]* tokens/s in iterations' verdict
	"$STRAIN" compare run.strain --value samples_per_second,tokens_per_second --format csv >table.csv 2>notes
	cat table.csv
	awk -F, '{ rate[$2] = $6 } END { ratio = rate["tokens_per_second"] / rate["samples_per_second"]; exit !(9 < ratio && ratio < 10.5) }' table.csv

	# An iteration is a batch of the loader: one step of the critic, and sometimes one of the generator.
	recorded unsupervised --samples 320 --validation-samples 32 --workers 1
	is 'n[iteration] == 20' 'samples[iteration] == 640' 'len(show["epochs"]) == 2' 'n["phase", "optimizer"] == 24' \
		'"hooks_missing" not in keys'

	recorded detection --samples 16 --workers 1
	is 'n[iteration] == 8' 'samples[iteration] == 32' 'len(show["epochs"]) == 2' '"hooks_missing" not in keys'

	# Two actors iterate side by side; batches are played without gradients, then seen together. Marks of a forked process
	# begin with its first backward, so that its first iteration may have no samples.
	recorded reinforcement --samples 400 --processes 2
	is 'n[iteration] == 40' 'samples[iteration] in (760, 800)' 'threads[iteration] == 2' 'len(show["ranks"]) == 2' \
		'show["iterations"]["samples_unit"] == "steps"' '"validation" not in str(n)'
	grep -q '[0-9] steps/s in iterations' verdict
	"$STRAIN" show run.strain >text
	grep -q 'STEPS/S' text
	if grep -i 'samples/s' text; then false; fi
	"$STRAIN" compare run.strain --value samples_per_second 2>&1 | grep 'samples are steps (1 of 1 runs)'
}
