#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# What the hooks count, held against what training loops of many kinds count themselves
# (tests/hooks/counts.py), each in a Python of its own. Takes the PyTorch of /usr/bin/python3.

load run_helpers

PYTHON=/usr/bin/python3

# Each case: iterations, samples, epochs and phases as the case has them.
counts_equal() {
	[ -d /usr/lib/python3/dist-packages/torch ] || skip "no PyTorch (python3-torch) for $PYTHON"
	export OMP_NUM_THREADS=1
	local name
	for name; do
		"$STRAIN" run -o "$name.strain" -- "$PYTHON" "$SOURCE_ROOT/tests/hooks/counts.py" "$name" truth.json 2>err ||
			{ cat err && return 1; }
		"$STRAIN" show --json "$name.strain" >show.json
		"$STRAIN" sql --json "$name.strain" "SELECT kind, name, count(*) AS n, sum(samples) AS samples
			FROM span GROUP BY 1, 2" >spans.json
		[ -z "$(run_key "$name.strain" hooks_missing)" ]
		"$PYTHON" - "$name" <<-'EOT'
			import json, sys
			truth, show, spans = (json.load(open(f + ".json")) for f in ("truth", "show", "spans"))
			of = {(row["kind"], row["name"]): row for row in spans}
			none = {"n": 0, "samples": None}
			shown = {"iterations": show["iterations"]["count"],
			         "samples": of.get(("iteration", "iteration"), none)["samples"],
			         "epochs": len(show["epochs"])}
			differ = {key: (value, truth[key]) for key, value in shown.items()
			          if truth[key] not in (value, None)}
			phases = {name for kind, name in of if kind == "phase"}
			often = {name for name, most in truth["most"].items() if of.get(("phase", name), none)["n"] > most}
			lacks = set(truth["phases"]) - phases, phases & set(truth["absent"]) | often
			sys.exit("%s: shown and true: %s; phases missing, and wrong: %s" % (sys.argv[1], differ, lacks)
			         if differ or any(lacks) or show["iterations"]["cut"] else 0)
		EOT
	done
}

@test "loops over a loader: batches of many kinds" {
	counts_equal plain dicts named boxes listed streamed transforms
}

@test "loops over a loader: batches in containers of the job's own, and made by the data set" {
	counts_equal guarded closed made
}

@test "tokens are those of training, of batches that say how many sentences they have" {
	counts_equal sentences vocabulary
	[ "$(run_key sentences.strain tokens_per_sample)" = 7 ]
	[ "$(run_key sentences.strain loader_workers)" = 1 ] # reports went on
	[ -z "$(run_key vocabulary.strain tokens_per_sample)" ]
}

@test "loops over a loader: left early, asked again, looked at" {
	counts_equal left_early endless cycled looked_at workers_anew pictures graphed
}

@test "loops over a loader: evaluations between two steps" {
	counts_equal validated_within looked_at_within teacher_within agent_within
	[ "$(python_sql validated_within.strain "SELECT count(*) FROM span WHERE name = 'validation'")" = 7 ]
	[ "$(python_sql validated_within.strain "SELECT count(*) FROM span v JOIN span i ON i.kind = 'iteration'
		AND i.start_ns < v.end_ns AND v.start_ns < i.end_ns WHERE v.name = 'validation'")" = 0 ]
}

@test "loops over a loader: iterators that serve all passes, or that a library makes" {
	counts_equal recycled recycled_early recycled_by_hand recycled_once recycled_accumulated graphs detected fastai
	[ "$(run_key recycled.strain loader_batches)" = 7 ]
	# A validation is in no epoch, though the epoch's last batches led to no step.
	[ "$(python_sql recycled_accumulated.strain "SELECT count(*) FROM span WHERE name = 'validation'")" = 3 ]
	[ "$(python_sql recycled_accumulated.strain "SELECT count(*) FROM span v JOIN span e ON e.kind = 'epoch'
		AND e.start_ns < v.end_ns AND v.start_ns < e.end_ns WHERE v.name = 'validation'")" = 0 ]
	[ "$(python_sql recycled_by_hand.strain "SELECT count(*) FROM span WHERE name = 'validation'")" = 3 ]
	[[ $(run_key fastai.strain hooks) == *"optimizers of fastai"* ]]
}

@test "calls of environments are marked, and policies that act in them validate nothing" {
	counts_equal rollouts cloned
	[ "$(python_sql rollouts.strain "SELECT count(*) FROM span WHERE name = 'environment'")" = 102 ] # 6 resets
	# All belong to the iteration that learns first from them.
	[ "$(python_sql rollouts.strain "SELECT count(*) FROM span e JOIN span i ON i.kind = 'iteration' AND e.start_ns >= i.start_ns
		AND e.end_ns <= i.end_ns WHERE e.name = 'environment' AND i.number % 2 = 0")" = 102 ]
	"$STRAIN" show rollouts.strain | grep -q '^environment  *102 '
}

@test "calls that generate the text to train on are the cause that is named" {
	counts_equal generated
	[ "$(python_sql generated.strain "SELECT count(*) FROM span WHERE name = 'transformers.generate'")" = 40 ]
	"$STRAIN" show generated.strain | grep -q 'generation-bound: generating text takes [89]. %'
}

@test "several optimizers are one iteration a batch" {
	counts_equal dcgan critic zipped
}

@test "iterations of several batches, several of one batch, without an optimizer, in closures, left out" {
	counts_equal accumulated chunks by_hand closures scaled
}

@test "without a loader: batches made by hand, evaluations, closures" {
	counts_equal whole nanogpt lbfgs characters
}

@test "without a loader and an optimizer" {
	counts_equal language tensors
}

@test "without a loader: reinforcement learning" {
	counts_equal reinforce dqn actor_critic ppo
}

@test "without a loader: several optimizers, other models beside the one that trains" {
	counts_equal gan_alone seq2seq one_after_another teacher taught styled
}

# Each of the ten forwards sleeps for 20 ms, and is one span of its iteration.
@test "without a loader: forward is where the time is" {
	counts_equal slow_forward
	[ "$(python_sql slow_forward.strain "SELECT sum(end_ns - start_ns) >= 200000000 FROM span WHERE name = 'forward'")" = 1 ]
	[ "$(python_sql slow_forward.strain "SELECT count(*) FROM span f JOIN span i ON i.id = f.parent
		WHERE f.name = 'forward' AND i.kind = 'iteration' AND f.end_ns - f.start_ns >= 20000000")" = 10 ]
}

@test "the run knows what its loader and its optimizer are" {
	counts_equal workers_anew
	local at="$SOURCE_ROOT/tests/hooks/counts.py"
	[ "$(run_key workers_anew.strain loader_at)" = "$at:$(grep -n 'rows(48), 8, num_workers' "$at" | cut -d : -f 1)" ]
	[ "$(run_key workers_anew.strain loader_dataset_kind)" = map ]
	[ "$(run_key workers_anew.strain loader_dataset)" = torch.utils.data.dataset.TensorDataset ]
	[ "$(run_key workers_anew.strain loader_role)" = training ]
	[ "$(run_key workers_anew.strain loader_workers)" = 2 ]
	[ "$(run_key workers_anew.strain optimizer_at)" = "$at:$(grep -n 'return torch.optim.SGD' "$at" | cut -d : -f 1)" ]
	[ "$(run_key workers_anew.strain optimizer_class)" = SGD ]
	[ "$(run_key workers_anew.strain optimizer_tensors)" = 4 ]
	[ "$(run_key workers_anew.strain process_omp_num_threads)" = 1 ]
}

@test "the run knows what a launcher sets in the environment of the process" {
	[ -d /usr/lib/python3/dist-packages/torch ] || skip "no PyTorch (python3-torch) for $PYTHON"
	unset OMP_NUM_THREADS
	"$STRAIN" run -o launched.strain -- env OMP_NUM_THREADS=1 MALLOC_TRIM_THRESHOLD_=0 \
		"$PYTHON" "$SOURCE_ROOT/tests/hooks/counts.py" plain truth.json
	[ -z "$(run_key launched.strain omp_num_threads)" ]
	[ "$(run_key launched.strain process_omp_num_threads)" = 1 ]
	[ "$(run_key launched.strain loader_batch_size)" = 8 ]
	[ "$(run_key launched.strain process_malloc_trim_threshold)" = 0 ]
	[ -z "$(run_key launched.strain process_omp_wait_policy)" ]
}

@test "a launcher that has imported the framework, too, is not the process that trains" {
	[ -d /usr/lib/python3/dist-packages/torch ] || skip "no PyTorch (python3-torch) for $PYTHON"
	OMP_NUM_THREADS=1 "$STRAIN" run -o started.strain -- "$PYTHON" -c 'import subprocess, sys, torch
sys.exit(subprocess.call(sys.argv[1:]))' "$PYTHON" "$SOURCE_ROOT/tests/hooks/counts.py" plain truth.json
	[ "$(run_key started.strain loader_batch_size)" = 8 ]
	[ "$(run_key started.strain process_omp_num_threads)" = 1 ]
}
