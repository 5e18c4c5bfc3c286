#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Keras jobs, as the run has them without an edit, and that they are as without the hooks. Needs what
# `make frameworks` installs.

load run_helpers

PYTHON=${STRAIN_FRAMEWORKS:-$SOURCE_ROOT/.frameworks}/python/bin/python
FIT="$SOURCE_ROOT/tests/hooks/keras_fit.py"

record() {
	"$STRAIN" run -o run.strain --force "$@"
}

needs_keras() {
	ls "${PYTHON%/bin/python}"/lib/python*/site-packages/"$1"/__init__.py >/dev/null 2>&1 ||
		skip "Keras on $1 is not here (make frameworks)"
	export KERAS_BACKEND=$1 TF_CPP_MIN_LOG_LEVEL=2 JAX_PLATFORMS=cpu CUDA_VISIBLE_DEVICES=''
}

spans() {
	python_sql run.strain "SELECT kind, name, count(*), sum(samples) FROM span
		WHERE name NOT IN ('import', 'python.gc', 'jax.compile', 'tf.trace') GROUP BY 1, 2 ORDER BY 1, 2"
}

nothing_crosses() {
	[ "$(python_sql run.strain "SELECT count(*) FROM span s JOIN span p ON p.id = s.parent
		WHERE s.start_ns < p.start_ns OR s.end_ns > p.end_ns")" = 0 ]
}

@test "Keras on TensorFlow: fit, validated and saved" {
	needs_keras tensorflow
	record "$PYTHON" "$FIT" fit >with
	[[ "$(run_key run.strain hooks)" == *"keras 3."*" on tensorflow: step, data, checkpoint, tape, generators, ("* ]]
	[ -z "$(run_key run.strain hooks_missing)" ]
	# The wait of the first step, which is compiled, is not told from it, nor that of an epoch's last.
	[ "$(spans)" = 'epoch|epoch|2|200
iteration|iteration|14|200
phase|checkpoint|2|None
phase|data|11|None
phase|step|14|None
phase|validation|2|None' ]
	[ "$(python_sql run.strain "SELECT DISTINCT s.name, p.kind FROM span s LEFT JOIN span p ON p.id = s.parent
		WHERE s.name NOT IN ('import', 'python.gc', 'jax.compile', 'tf.trace') ORDER BY 1, 2")" = 'checkpoint|None
data|iteration
epoch|None
iteration|epoch
step|iteration
validation|None' ]
	nothing_crosses
	"$PYTHON" "$FIT" fit >without
	cmp with without
}

@test "Keras on TensorFlow: samples of batches that Python code makes" {
	needs_keras tensorflow
	local way
	for way in sequence threads; do
		rm -f run.strain
		record "$PYTHON" "$FIT" $way >with
		[ -z "$(run_key run.strain hooks_missing)" ]
		[ "$(python_sql run.strain "SELECT group_concat(samples, ' ') FROM (SELECT samples FROM span
			WHERE kind = 'iteration' ORDER BY start_ns)")" = \
			"16 16 16 16 16 16 4 16 16 16 16 16 16 4 4 8 12 16" ]
		nothing_crosses
		# A batch takes 30 ms, in one thread or in three beside each other.
		[ "$(python_sql run.strain "SELECT sum(end_ns - start_ns) > 50e6 FROM span WHERE name = 'data'")" = 1 ]
		"$PYTHON" "$FIT" $way >without
		cmp with without
	done
}

@test "Keras: a model that runs eagerly, and the verdict that says so" {
	needs_keras tensorflow
	record "$PYTHON" "$FIT" eagerly >with
	[ "$(run_key run.strain compile_eager)" = 1 ]
	"$PYTHON" "$FIT" eagerly >without
	cmp with without
	rm run.strain
	record "$PYTHON" "$FIT" fit >/dev/null
	[ -z "$(run_key run.strain compile_eager)" ]
}

@test "Keras on TensorFlow: settings for debugging that were left on" {
	needs_keras tensorflow
	record "$PYTHON" "$FIT" debugging >with
	[ "$(run_key run.strain debug_settings)" = "check_numerics data_debug op_determinism" ]
	"$PYTHON" "$FIT" debugging >without
	cmp with without
	rm run.strain
	record "$PYTHON" "$FIT" eagerly >/dev/null
	[ -z "$(run_key run.strain debug_settings)" ]
}

# One that is alive when the interpreter ends waits for its generator for ever.
@test "Keras on TensorFlow: no iterator outlives fit" {
	needs_keras tensorflow
	cat >generator.py <<-'EOF'
	import gc
	import keras
	import numpy as np
	from tensorflow.data import Iterator


	def batches():
	    while True:
	        yield np.ones((4, 3)), np.ones(4)


	def alive():
	    gc.collect()
	    return sum(isinstance(thing, Iterator) for thing in gc.get_objects())


	class Fails(keras.callbacks.Callback):
	    def on_train_batch_end(self, batch, logs=None):
	        raise ValueError


	model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
	model.compile("sgd", "mse")
	model.fit(batches(), steps_per_epoch=5, verbose=0)
	print(alive())
	try:
	    model.fit(batches(), steps_per_epoch=5, verbose=0, callbacks=[Fails()])
	except ValueError:
	    print("failed")
	EOF
	run -0 timeout 120 "$STRAIN" run -o run.strain --force -- "$PYTHON" generator.py
	[ "$(grep -xE '[0-9]+|failed' <<<"$output" | tr '\n' ' ')" = '0 failed ' ]
	[ "$(python_sql run.strain "SELECT count(*) FROM span WHERE kind = 'iteration'")" -ge 5 ]
}

# Which function prepares, or is called beside the steps: of fit, and of a loop around a tape.
@test "Keras on TensorFlow: lines of a generator in a thread of TensorFlow, and of a callback" {
	needs_keras tensorflow
	cat >lines.py <<-'EOF'
	import sys
	import time

	import keras
	import numpy as np
	import tensorflow as tf


	def slow(seconds):
	    until = time.monotonic() + seconds
	    while time.monotonic() < until:
	        pass


	def batches():
	    while True:
	        slow(0.03)
	        yield np.ones((4, 3), np.float32), np.ones((4, 1), np.float32)


	class Watch(keras.callbacks.Callback):
	    def on_train_batch_end(self, batch, logs=None):
	        slow(0.03)


	model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
	model.compile("sgd", "mse")
	if sys.argv[1] == "generator":
	    model.fit(batches(), steps_per_epoch=200, verbose=0)
	elif sys.argv[1] == "callback":
	    model.fit(np.ones((800, 3)), np.ones(800), batch_size=4, verbose=0, callbacks=[Watch()])
	else:
	    spec = tf.TensorSpec((4, 3)), tf.TensorSpec((4, 1))
	    optimizer = keras.optimizers.SGD()

	    @tf.function
	    def step(x, y):
	        with tf.GradientTape() as tape:
	            loss = tf.reduce_mean((model(x) - y) ** 2)
	        found = model.trainable_variables
	        optimizer.apply_gradients(zip(tape.gradient(loss, found), found))

	    for x, y in tf.data.Dataset.from_generator(batches, output_signature=spec).take(200):
	        step(x, y)
	EOF
	local way
	for way in generator tape; do
		record "$PYTHON" lines.py $way
		"$STRAIN" show --all run.strain | tee show | grep -q '^lines.py:1[12]  *slow *thread  *pipeline '
		tr '\n' ' ' <show | tr -s ' ' >words
		# It waits for the batch, or for the interpreter's lock, which the generator holds.
		grep -qE '(itself, which takes [0-9]* % of each iteration, mostly in|other threads run mostly in) lines.py:1[12] slow\(\)' words
	done
	record "$PYTHON" lines.py callback
	"$STRAIN" show --all run.strain | tee show | grep -q '^lines.py:1[12]  *slow  *main   '
	tr '\n' ' ' <show | tr -s ' ' | grep -q 'mostly in lines.py:1[12] slow()'
}

@test "Keras on TensorFlow: the wait inside a compiled step is told from it" {
	needs_keras tensorflow
	record "$PYTHON" "$FIT" slow >with
	# 40 batches of 30 ms an epoch, of which preparing the next takes place beside the step.
	[ "$(python_sql run.strain "SELECT count(*), sum(samples), sum(end_ns - start_ns) / 1e9 > 2 FROM span
		WHERE kind = 'iteration'")" = '80|1280|1' ]
	[ "$(python_sql run.strain "SELECT sum(end_ns - start_ns) FILTER (WHERE s.name = 'data') >
		sum(end_ns - start_ns) FILTER (WHERE s.name = 'step'), count(*) FILTER (WHERE s.name = 'data')
		FROM span s WHERE s.kind = 'phase'
		AND s.parent <> (SELECT id FROM span WHERE kind = 'iteration' ORDER BY start_ns LIMIT 1)")" = '1|77' ]
	nothing_crosses
	"$PYTHON" "$FIT" slow >without
	cmp with without
}

@test "Keras on TensorFlow: several steps in a call, and a checkpoint between two" {
	needs_keras tensorflow
	record "$PYTHON" "$FIT" several >with
	[ "$(spans)" = 'epoch|epoch|2|640
iteration|iteration|10|640
phase|checkpoint|5|None
phase|data|3|None
phase|step|10|None' ]
	[ "$(python_sql run.strain "SELECT count(*) FROM span s JOIN span p ON p.id = s.parent
		WHERE s.name = 'checkpoint' AND p.kind = 'iteration'")" = 0 ]
	nothing_crosses
	"$PYTHON" "$FIT" several >without
	cmp with without
}

@test "Keras on TensorFlow: a fit that raised, a generator, an evaluation outside of a fit" {
	needs_keras tensorflow
	record "$PYTHON" "$FIT" raises >with
	[ "$(python_sql run.strain "SELECT kind, count(*) FROM span WHERE name IN ('epoch', 'iteration', 'validation')
		GROUP BY name ORDER BY name")" = $'epoch|2\niteration|10\nphase|1' ]
	"$PYTHON" "$FIT" raises >without
	cmp with without
	record "$PYTHON" "$FIT" forks >with
	[ "$(python_sql run.strain "SELECT kind, name, count(*), count(DISTINCT coalesce(attributes ->> 'process',
		attributes ->> 'pid')) FROM span WHERE name IN ('epoch', 'iteration') GROUP BY 1, 2 ORDER BY 1, 2")" = \
		$'epoch|epoch|1|1\niteration|iteration|7|1\nuser|epoch|1|1' ]
	[ -z "$(python_sql run.strain "SELECT text FROM event WHERE kind = 'lost'")" ]
	record "$PYTHON" "$FIT" generator >with 2>/dev/null
	[ "$(python_sql run.strain "SELECT kind, count(*) FROM span WHERE kind IN ('epoch', 'iteration')
		GROUP BY kind ORDER BY kind")" = $'epoch|1\niteration|7' ]
}

@test "TensorFlow: loops of one's own around a tape, compiled and not" {
	needs_keras tensorflow
	local way parts
	for way in taped eager; do
		record "$PYTHON" "$FIT" "$way" >with
		[ -z "$(run_key run.strain hooks_missing)" ]
		[ "$(python_sql run.strain "SELECT name, count(*), sum(samples) FROM span WHERE name IN
			('epoch', 'iteration', 'validation') GROUP BY 1 ORDER BY 1")" = \
			$'epoch|2|200\niteration|14|200\nvalidation|2|None' ]
		parts=$'backward|14\nforward|14\noptimizer|14'
		[ "$way" = eager ] || parts='step|14'
		[ "$(python_sql run.strain "SELECT s.name, count(*) FROM span s JOIN span p ON p.id = s.parent
			WHERE p.kind = 'iteration' AND s.name <> 'data' GROUP BY 1 ORDER BY 1")" = "$parts" ]
		nothing_crosses
		"$PYTHON" "$FIT" "$way" >without
		cmp with without
	done
}

@test "Keras on TensorFlow: predict() between two steps is in the iteration, and no pass; functions traced anew" {
	needs_keras tensorflow
	record "$PYTHON" "$FIT" agent >with
	[ -z "$(run_key run.strain hooks_missing)" ]
	[ "$(python_sql run.strain "SELECT name, count(*) FROM span WHERE name IN ('epoch', 'iteration', 'validation', 'data',
		'keras.predict', 'tf.trace') GROUP BY 1 ORDER BY 1" | sed 's/trace|\(19\|2[0-3]\)$/trace|20/')" = \
		$'iteration|20\nkeras.predict|40\ntf.trace|20' ]
	"$STRAIN" show run.strain | tr -s ' \n' ' ' >show
	cat show
	grep -Eq 'Verdict host-bound: short calls of Model.predict take [0-9]+ % of each iteration' show
	grep -q 'call model(x, training=False) or predict_on_batch()' show
	nothing_crosses
	"$PYTHON" "$FIT" agent >without
	cmp with without
}

@test "Keras 2" {
	needs_keras tf_keras
	export KERAS=2 KERAS_BACKEND=
	for way in fit several raises generator; do
		record "$PYTHON" "$FIT" "$way" >with
		[ -z "$(run_key run.strain hooks_missing)" ]
		[ "$way" != fit ] || [ "$(spans)" = 'epoch|epoch|2|200
iteration|iteration|14|200
phase|checkpoint|2|None
phase|data|11|None
phase|step|14|None
phase|validation|2|None' ]
		nothing_crosses
		"$PYTHON" "$FIT" "$way" >without
		cmp with without
	done
	[[ "$(run_key run.strain hooks)" == *"keras 2."*" on tensorflow: step, data, checkpoint, tape, ("* ]]
}

@test "Keras on JAX" {
	needs_keras jax
	record "$PYTHON" "$FIT" fit >with
	[[ "$(run_key run.strain hooks)" == *"keras 3."*" on jax: step, data, checkpoint, ("* ]]
	[ "$(spans)" = 'epoch|epoch|2|200
iteration|iteration|14|200
phase|checkpoint|2|None
phase|data|18|None
phase|step|14|None
phase|validation|2|None' ]
	nothing_crosses
	"$PYTHON" "$FIT" fit >without
	cmp with without
	record "$PYTHON" "$FIT" raises >with
	"$PYTHON" "$FIT" raises >without
	cmp with without
}

@test "a Keras that is not what it should be stays as it is, and the run says so" {
	mkdir -p fake/keras
	echo '__version__ = "3.0"
class config: backend = staticmethod(lambda: "tensorflow")' >fake/keras/__init__.py
	PYTHONPATH=$PWD/fake record /usr/bin/python3 -c 'import keras; print(keras.__version__)' >out
	[ "$(cat out)" = 3.0 ]
	[[ "$(run_key run.strain hooks_missing)" == "step: AttributeError: "* ]]
	echo '__version__ = "3.0"
class config: backend = staticmethod(lambda: "numpy")' >fake/keras/__init__.py
	PYTHONPATH=$PWD/fake record /usr/bin/python3 -c 'import keras'
	[[ "$(run_key run.strain hooks_missing)" == "keras on numpy: "* ]]
}

SET="$SOURCE_ROOT/tests/hooks/keras_set.py"

# What the job printed; the first validation is watched for a second, however many batches that are.
shortened() {
	sed -E '1s#^6/([4-9]|[1-4][0-9]|50) #6/N #' out
}

@test "probes of strain advise: shorter epochs of fit and its validation, not of predict" {
	needs_keras tensorflow
	"$PYTHON" "$SET" arrays dataset sequence >out
	[ "$(sort -u out)" = "50/50 50/50 50/50 " ]
	STRAIN_SHORT="6 0" record "$PYTHON" "$SET" arrays >out
	[ "$(shortened)" = "6/N 4/4 4/4 " ]
	[[ "$(run_key run.strain hooks)" == *", short, "*", epochs shortened"* ]]
	[ "$(python_sql run.strain "SELECT count(*), sum(samples) FROM span WHERE kind = 'iteration'")" = '14|112' ]
	[ "$(run_key run.strain loader_batch_size)" = 8 ]
	[[ "$(run_key run.strain loader_fit_at)" == *"keras_set.py:"* ]]
	[ "$(run_key run.strain loader_batches)" = 50 ]
	awk '{ exit !($1 > 0.001) }' <<<"$(run_key run.strain loader_validation_s)"
	STRAIN_SHORT="6 0" record "$PYTHON" "$SET" dataset sequence steps endless unknown >out
	[ "$(shortened)" = $'6/N 4/4 4/4 \n4/4 4/4 4/4 \n4/0 4/0 4/0 \n4/4 4/4 4/4 \n4/0 4/0 4/0 ' ]
	nothing_crosses
	for way in dataset:50 sequence:50 steps:25 endless: unknown:; do
		record "$PYTHON" "$SET" "${way%:*}" >out
		[ "$(run_key run.strain loader_batches)" = "${way#*:}" ]
	done
	record "$PYTHON" "$SET" dataset >out
	[[ "$(run_key run.strain loader_pipeline)" == "Prefetch Batch Shuffle "* ]]
}

@test "probes of strain advise: another batch size of arrays and data sets, and why there is none" {
	needs_keras tensorflow
	STRAIN_SET="batch_size=20 was=8" record "$PYTHON" "$SET" arrays dataset steps endless other >out
	[ "$(cat out)" = $'20/20 20/20 20/20 \n20/20 20/20 20/20 \n10/0 10/0 10/0 \n20/8 20/8 20/8 \n40/0 40/0 40/0 ' ]
	[ "$(run_key run.strain loader_set)" = batch_size=20 ]
	[ -z "$(run_key run.strain loader_set_missing)" ]
	[ "$(run_key run.strain loader_batch_size)" = 20 ]
	STRAIN_SET="batch_size=20 was=8" record "$PYTHON" "$SET" repeated >out
	[ "$(cat out)" = "20/0 20/0 20/0 " ]
	[ "$(run_key run.strain loader_batch_size)" = 20 ]
	[ "$(python_sql run.strain "SELECT count(*), sum(samples) FROM span WHERE kind = 'iteration'")" = '60|1200' ]
	STRAIN_SET="batch_size=500 was=8" record "$PYTHON" "$SET" repeated >out # more than there are
	[ "$(python_sql run.strain "SELECT count(*), sum(samples) FROM span WHERE kind = 'iteration'")" = '3|1200' ]
	STRAIN_SET="batch_size=20 was=8" record "$PYTHON" "$SET" sequence >out
	[ "$(cat out)" = "50/50 50/50 50/50 " ]
	[ -z "$(run_key run.strain loader_set)" ]
	[[ "$(run_key run.strain loader_set_missing)" == *"from Python: Batches" ]]
	STRAIN_SET="num_workers=2" record "$PYTHON" "$SET" arrays >out
	[[ "$(run_key run.strain loader_set_missing)" == *"only the batch size"* ]]
	STRAIN_SET="no_setting=2" record "$PYTHON" "$SET" other >out
	[ "$(cat out)" = "40/0 40/0 40/0 " ]
	[[ "$(run_key run.strain hooks_missing)" == *"set: ValueError"* ]]
}

@test "probes of strain advise: Keras 2, and Keras on JAX" {
	local package
	for package in tf_keras jax; do
		needs_keras "$package"
		export KERAS=2 KERAS_BACKEND=
		[ "$package" = tf_keras ] || export KERAS=3 KERAS_BACKEND=jax
		STRAIN_SHORT="6 0" record "$PYTHON" "$SET" arrays steps sequence >out
		[ "$(shortened)" = $'6/N 4/4 4/4 \n4/0 4/0 4/0 \n4/4 4/4 4/4 ' ]
		[ "$(run_key run.strain loader_batch_size)" = 8 ]
		STRAIN_SET="batch_size=20 was=8" record "$PYTHON" "$SET" arrays steps other >out
		[ "$(cat out)" = $'20/20 20/20 20/20 \n10/0 10/0 10/0 \n40/0 40/0 40/0 ' ]
		[ "$(run_key run.strain loader_set)" = batch_size=20 ]
	done
}
