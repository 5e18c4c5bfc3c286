#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# strain advise with jobs of Keras. Needs what `make frameworks` installs.

load advise_helpers

PYTHON=${STRAIN_FRAMEWORKS:-$SOURCE_ROOT/.frameworks}/python/bin/python

setup() {
	ls "${PYTHON%/bin/python}"/lib/python*/site-packages/tensorflow/__init__.py >/dev/null 2>&1 ||
		skip "Keras on TensorFlow is not here (make frameworks)"
	export KERAS_BACKEND=tensorflow TF_CPP_MIN_LOG_LEVEL=2 CUDA_VISIBLE_DEVICES=''
	JOB="$SOURCE_ROOT/tests/cli/advise_keras.py"
	enter_folder
}

teardown() {
	leave_folder
}

advise() { # ARGUMENT... of the job
	run -0 --separate-stderr "$STRAIN" advise --memory 700MB --json -o kept -- "$PYTHON" "$JOB" "$@"
	echo "$stderr"
	echo "$output" | tee answer.json
}

@test "the hooks set the batch size of fit" {
	is_slow
	advise --data dataset
	[ "$(field 'runs[0]["batch_size"], runs[1]["batch_size"], runs[0]["validated"], runs[0]["checkpoint"]')" = "(16, 64, True, True)" ]
	[ "$(field 'runs[0]["epochs"] >= 2 and 64 < largest["low"] <= largest["value"] <= largest["high"]')" = True ]
	[ "$(field 'largest["verified_by"] in ("limit", "measured") and largest["verified"] > 64')" = True ]
	[ ! -e model.weights.h5 ] || [ "$(field 'a["in_place"]')" = True ]
}

@test "batches that the script forms itself, with the place of the fit" {
	advise --data generator
	[ "$(field 'largest["value"], len(runs)')" = "(None, 1)" ]
	[[ "$(field 'largest["missing"]')" == *"advise_keras.py:"*"{batch_size}"* ]]
}

@test "a command that does not follow its batch size is found out by the samples counted" {
	advise --ignore --batch-size '{batch_size=16}'
	[ "$(field 'largest["value"]')" = None ]
	line_names "$(field 'largest["missing"]')" 64 16
}
