#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# JAX jobs, as the run has them without an edit, and that they are as without the hooks. Needs what
# `make frameworks` installs.

load run_helpers

PYTHON=${STRAIN_FRAMEWORKS:-$SOURCE_ROOT/.frameworks}/python/bin/python
LOOP="$SOURCE_ROOT/tests/hooks/jax_loop.py"

record() {
	"$STRAIN" run -o run.strain --force "$@"
}

needs_jax() {
	ls "${PYTHON%/bin/python}"/lib/python*/site-packages/jax/__init__.py >/dev/null 2>&1 ||
		skip "JAX is not here (make frameworks)"
	export JAX_PLATFORMS=cpu CUDA_VISIBLE_DEVICES=''
}

nothing_crosses() {
	[ "$(python_sql run.strain "SELECT count(*) FROM span s JOIN span p ON p.id = s.parent
		WHERE s.start_ns < p.start_ns OR s.end_ns > p.end_ns")" = 0 ]
}

@test "JAX: a jitted step in a loop, with its waits and the time between" {
	needs_jax
	record "$PYTHON" "$LOOP" one >with
	[[ "$(run_key run.strain hooks)" == "jax 0."*": step, data, compile, ("*")" ]]
	[ -z "$(run_key run.strain hooks_missing)" ]
	# Also those that showed that it is one.
	[ "$(python_sql run.strain "SELECT count(*), sum(samples) FROM span WHERE kind = 'iteration'")" = '40|640' ]
	[ "$(python_sql run.strain "SELECT count(*) FROM span WHERE kind IN ('epoch', 'point', 'user')
		AND name NOT IN ('python.gc', 'jax.compile')")" = 0 ]
	# Each batch comes after 10 ms.
	[ "$(python_sql run.strain "SELECT count(*) BETWEEN 38 AND 40, min(end_ns - start_ns) >= 10000000 FROM span s
		WHERE name = 'data' AND EXISTS (SELECT * FROM span p WHERE p.id = s.parent)")" = '1|1' ]
	[ "$(python_sql run.strain "SELECT count(*) >= 40 FROM span WHERE name = 'step'")" = 1 ]
	nothing_crosses
	"$PYTHON" "$LOOP" one >without
	cmp with without
}

@test "JAX: settings for debugging that were left on" {
	needs_jax
	JAX_DEBUG_NANS=1 record "$PYTHON" "$LOOP" one >/dev/null
	[ "$(run_key run.strain debug_settings)" = debug_nans ]
	rm run.strain
	record "$PYTHON" "$LOOP" one >/dev/null
	[ -z "$(run_key run.strain debug_settings)" ]
}

@test "JAX: where only the gradients are compiled, each call of them is a step" {
	needs_jax
	record "$PYTHON" "$LOOP" eager >with
	[ "$(python_sql run.strain "SELECT count(*), sum(samples) FROM span WHERE kind = 'iteration'")" = '40|640' ]
	# The update is in no phase, nor is fetching the batch.
	[ "$(python_sql run.strain "SELECT count(*) FROM span WHERE name = 'data'")" = 0 ]
	[ "$(python_sql run.strain "SELECT sum(end_ns - start_ns > 10000000) >= 38 FROM span WHERE kind = 'iteration'")" = 1 ]
	[ "$(run_key run.strain optimizer_uncompiled)" = 1 ]
	nothing_crosses
	"$PYTHON" "$LOOP" eager >without
	cmp with without
}

@test "JAX: a step that is compiled for each batch" {
	needs_jax
	record "$PYTHON" "$LOOP" growing >with
	[ "$(python_sql run.strain "SELECT count(*) >= 12, count(DISTINCT p.id) >= 12 FROM span s JOIN span p
		ON s.start_ns >= p.start_ns AND s.end_ns <= p.end_ns AND s.thread = p.thread
		WHERE s.name = 'jax.compile' AND p.kind = 'iteration'")" = '1|1' ]
	"$STRAIN" show run.strain | tr -s ' \n' ' ' >show
	cat show
	grep -Eq 'Verdict host-bound: recompiling functions takes [0-9]+ % of each iteration \((0.9|1|1.0) times per iteration\)' show
	grep -q 'keep shapes and static arguments the same' show
	nothing_crosses
	"$PYTHON" "$LOOP" growing >without
	cmp with without
}

@test "JAX: the line that prepares a batch between two steps" {
	needs_jax
	cat >lines.py <<-'EOF'
	import time

	import jax
	import numpy as np


	def prepare():
	    until = time.monotonic() + 0.03
	    while time.monotonic() < until:
	        pass
	    return np.ones((16, 64), np.float32)


	@jax.jit
	def step(weights, batch):
	    return weights - 0.1 * jax.grad(lambda w: ((batch @ w) ** 2).mean())(weights)


	def main():
	    weights = np.ones((64, 8), np.float32)
	    for _ in range(120):
	        weights = step(weights, prepare())


	main()
	EOF
	record "$PYTHON" lines.py
	"$STRAIN" show --all run.strain | tee show | grep -q '^lines.py:[89]  *prepare  *main  *data '
	tr '\n' ' ' <show | tr -s ' ' | grep -q 'prepares the batches itself, which takes [0-9]* % of each iteration, mostly in lines.py:[89] prepare()'
}

@test "JAX: of several functions that get their results back, the largest is the step" {
	needs_jax
	record "$PYTHON" "$LOOP" two >with
	[ "$(python_sql run.strain "SELECT count(*) = 20 FROM span WHERE kind = 'iteration'")" = 1 ]
	# The gradient, the update, and the key's. The last loss is read: where it is not there yet, its
	# iteration has a wait besides.
	[ "$(python_sql run.strain "SELECT max(n) FROM (SELECT count(*) AS n FROM span WHERE name = 'step' AND parent <>
		(SELECT id FROM span WHERE kind = 'iteration' ORDER BY start_ns DESC LIMIT 1) GROUP BY parent)")" = 3 ]
	nothing_crosses
	"$PYTHON" "$LOOP" two >without
	cmp with without
}

@test "JAX: batches from a DataLoader of PyTorch are no validation" {
	needs_jax
	"$PYTHON" -c 'import sys; sys.path.append("/usr/lib/python3/dist-packages"); import torch' 2>/dev/null ||
		skip "no PyTorch (python3-torch) for $PYTHON"
	record "$PYTHON" "$LOOP" loader >with 2>/dev/null
	[ "$(python_sql run.strain "SELECT kind, name, count(*) FROM span WHERE kind = 'iteration' OR name IN
		('validation', 'epoch') GROUP BY 1, 2")" = 'iteration|iteration|40' ]
	[ "$(python_sql run.strain "SELECT count(*) >= 39 FROM span WHERE name = 'data'")" = 1 ]
	nothing_crosses
	"$PYTHON" "$LOOP" loader >without 2>/dev/null
	cmp with without
}

@test "JAX: a jitted function is what it was" {
	needs_jax
	record "$PYTHON" "$LOOP" kinds >with
	"$PYTHON" "$LOOP" kinds >without
	cmp with without
	[ "$(cat with)" = $'AttributeError\ndeleted' ]
	[ -z "$(run_key run.strain hooks_missing)" ]
	[ "$(python_sql run.strain "SELECT count(*) FROM span WHERE kind = 'iteration'")" = 0 ]
}

@test "JAX: which devices there are can still be said after the import" {
	needs_jax
	record "$PYTHON" -c 'import jax
jax.config.update("jax_num_cpu_devices", 3)
print(len(jax.devices()))' >out
	[ "$(cat out)" = 3 ]
	[[ "$(run_key run.strain hooks)" == "jax 0."*": step, data, "* ]]
}

@test "a JAX that is not what it should be stays as it is, and the run says so" {
	mkdir -p fake/jax
	echo '__version__ = "0.0"' >fake/jax/__init__.py
	PYTHONPATH=$PWD/fake record /usr/bin/python3 -c 'import jax; print(sorted(n for n in dir(jax) if n[0] != "_"))' >out
	[ "$(cat out)" = "[]" ]
	[[ "$(run_key run.strain hooks_missing)" == "jax: AttributeError: "* ]]
}
