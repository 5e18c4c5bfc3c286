# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""Spans of what a framework does beside a job's own loop.

    put("jax.compile", began_ns, ended_ns)

    jax.compile    a function is traced, lowered and compiled (jax.monitoring)
    tf.trace       a call of a tf.function that traces it
    torch.compile  torch._dynamo compiles a graph (strain_compile.py)
    keras.predict  a call of Model.predict
    transformers.generate  a call of GenerationMixin.generate
    loader.start   a pass over a loader begins, which starts its worker processes, until the first batch

Such a span may lie across the marks of iterations, which are written later. It therefore goes to a ring of its own;
not that of the garbage collector, whose spans may begin in the middle of this.
"""

import strain_ring

LONG_NS = 2000000  # shorter ones are no spans


def put(name, began_ns, ended_ns):
    """A span of this thread, if it is long enough. Never fails."""
    try:
        ring = strain_ring.apart(began_ns, "spans") if ended_ns - began_ns >= LONG_NS else None
        if ring is not None:
            ring.put(strain_ring.MARK_SPAN, ring.number(name), -1, began_ns, ended_ns)
    except Exception:
        pass
