#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# strain advise with jobs of Keras. Needs what `make frameworks` installs.

load messages

PYTHON=${STRAIN_FRAMEWORKS:-$SOURCE_ROOT/.frameworks}/python/bin/python

setup() {
	ls "${PYTHON%/bin/python}"/lib/python*/site-packages/tensorflow/__init__.py >/dev/null 2>&1 ||
		skip "Keras on TensorFlow is not here (make frameworks)"
	export KERAS_BACKEND=tensorflow TF_CPP_MIN_LOG_LEVEL=2 CUDA_VISIBLE_DEVICES='' MALLOC_MMAP_THRESHOLD_=65536
	JOB="$SOURCE_ROOT/tests/cli/advise_keras.py"
	FOLDER=$(mktemp -d /var/tmp/strain-advise-test-XXXXXX)
	cd "$FOLDER" || return
}

teardown() {
	[ -z "${FOLDER:-}" ] || { cd / && rm -rf "$FOLDER"; }
}

advise() { # ARGUMENT... of the job
	run -0 --separate-stderr "$STRAIN" advise --memory 700MB --json -o kept -- "$PYTHON" "$JOB" "$@"
	echo "$stderr"
	echo "$output" | tee answer.json
}

field() {
	/usr/bin/python3 -c 'import json, sys
a = json.load(open("answer.json"))
print(eval(sys.argv[1], {}, {"a": a, "largest": a["largest_batch"], "runs": a["runs"]}))' "$1"
}

@test "the hooks set the batch size of fit" {
	[ -n "${STRAIN_SLOW_TESTS:-}" ] || skip "slow: set STRAIN_SLOW_TESTS=1"
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
