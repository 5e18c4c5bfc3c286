#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The jobs on frameworks installed by `make frameworks`: $FRAMEWORK is jax or tensorflow, $SCRIPT its
# job.

bats_require_minimum_version 1.5.0

setup() {
	environment=${STRAIN_FRAMEWORKS:-$SOURCE_ROOT/.frameworks}/python
	python=$environment/bin/python
	ls "$environment"/lib/python*/site-packages/"$FRAMEWORK"/__init__.py >/dev/null 2>&1 ||
		skip "$FRAMEWORK is not here (make frameworks)"
	export OMP_NUM_THREADS=1 JAX_PLATFORMS=cpu CUDA_VISIBLE_DEVICES='' TF_CPP_MIN_LOG_LEVEL=3
	export PYTHONDONTWRITEBYTECODE=1
	cd "$BATS_TEST_TMPDIR" || return
}

@test "models have as many parameters as were published" {
	[ "$("$python" "${SCRIPT%/*}/count.py" 2>/dev/null)" = 'cnn 89450
alexnet 61100840
resnet50 25557032' ]
}

@test "recorded, it has iterations and phases; two processes with half a batch each train as one does" {
	[ -x "$STRAIN" ] || skip "strain was not built"
	job=("$python" "$SCRIPT" --samples 640 --epochs 2 --validation-samples 64 --batch-size 64 --workers 1 --threads 1)
	"$STRAIN" run --no-cgroup -o run.strain -- "${job[@]}" >one 2>errors || {
		cat errors
		false
	}
	cat one
	mapfile -t lines <one
	[ "${lines[0]}" = "cnn: 89450 parameters, 640 images, batch size 64, 1 workers, cpu" ]
	[[ "${lines[1]}" =~ ^epoch\ 1/2\ \ loss\ ([0-9.]+)\ \ accuracy\ [01]\.[0-9]{3}\ \ [0-9.]+\ s\ \ [0-9]+\ images/s$ ]]
	first=${BASH_REMATCH[1]}
	[[ "${lines[2]}" =~ ^validation\ 1/2\ \ loss\ [0-9.]+\ \ accuracy\ [01]\.[0-9]{3}\ \  ]]
	[[ "${lines[3]}" =~ ^epoch\ 2/2\ \ loss\ ([0-9.]+) ]]
	awk -v first="$first" -v last="${BASH_REMATCH[1]}" 'BEGIN { exit !(last < first) }'
	[ "${#lines[@]}" = 5 ]

	"$STRAIN" sql --json run.strain "SELECT kind, name, count(*) AS times, sum(samples) AS samples FROM span
		GROUP BY kind, name" >spans.json
	cat spans.json
	FRAMEWORK=$FRAMEWORK "$python" - <<-'PYTHON'
		import json, os
		spans = {(row["kind"], row["name"]): row for row in json.load(open("spans.json"))}
		# JAX has no epochs of its own, and its first steps cannot be recognised.
		epochs = os.environ["FRAMEWORK"] != "jax"
		assert spans["iteration", "iteration"]["times"] >= (20 if epochs else 16), spans
		assert spans["iteration", "iteration"]["samples"] >= (1280 if epochs else 1024), spans
		assert spans["phase", "step"]["times"] >= (20 if epochs else 16), spans
		assert spans["phase", "data"]["times"] >= 10, spans
		if epochs:
		    assert spans["epoch", "epoch"]["samples"] == 1280, spans
		    assert spans["phase", "validation"]["times"] == 2, spans
	PYTHON

	"$STRAIN" run --no-cgroup -o two.strain -- "${job[@]}" --processes 2 >two 2>errors || {
		cat errors
		false
	}
	grep -q ', 2 processes$' two
	scores() {
		sed -n 's/  [0-9.]* s .*//; s/^[a-z]* \(1.2 .*\)/\1/p' "$1"
	}
	scores one >losses_one
	scores two >losses_two
	[ "$(wc -l <losses_one)" = 2 ]
	# Sums are rounded differently, which 10 steps of Adam amplify.
	paste losses_one losses_two | awk '{ print; if (NF != 10 || ($3 - $8) ^ 2 > 0.01 ^ 2 || ($5 - $10) ^ 2 > 0.02 ^ 2) exit 1 }'
}
