# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""What a program says of itself comes before what a hook says in the same thread: once it has marked an
epoch or an iteration, only its own are in the ring. program.py FOLDER: of the hooks."""

import mmap
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import strain_ring  # noqa: E402
from strain_ring import DATA, FORWARD, Ring  # noqa: E402


def marks(ring, mapped):
    """(kind, number, extra) of all records."""
    count = memoryview(mapped).cast("Q")[strain_ring.AT_WRITTEN]
    for index in range(count):
        at = strain_ring.AT_RECORD_BYTES + index * strain_ring.RECORD_BYTES
        _, sequence, rest = strain_ring._RECORD.unpack_from(mapped, at)
        assert sequence == index + 1
        kind, _, _, number, extra = strain_ring._REST.unpack(rest)
        yield kind, number, extra


def hook(ring, number):
    """An iteration of a hook in each of its ways."""
    now_ns = strain_ring.monotonic_ns()
    ring.turn(number, now_ns, now_ns)
    ring.end()
    ring.step(now_ns, now_ns, now_ns, now_ns, 32, strain_ring.monotonic_ns())
    ring.iteration(number, strain_ring.monotonic_ns())
    ring.begin(FORWARD)
    ring.end()
    ring.iteration_end(32, strain_ring.monotonic_ns())
    ring.iteration(number, strain_ring.monotonic_ns())
    ring.iteration_cancel(strain_ring.monotonic_ns())


for held in (False, True):
    mapped = mmap.mmap(-1, strain_ring.BYTES)
    ring = Ring(mapped, 1, 2, strain_ring.monotonic_ns())
    ring.epoch(7, strain_ring.monotonic_ns())
    hook(ring, 0)
    before = list(marks(ring, mapped))
    if held:
        ring.hold()
    ring.program_epoch(1)
    ring.program_iteration(None, 8)
    ring.epoch(9, strain_ring.monotonic_ns())
    hook(ring, 3)
    ring.epoch_end(strain_ring.monotonic_ns())
    ring.program_iteration(None, -1)
    ring.program_iteration_end(5)
    ring.program_epoch_end()
    if held:
        ring.write(ring.take_held())
    hook(ring, 4)  # let go again, the writer is the program's still
    after = list(marks(ring, mapped))[len(before) :]
    own = [mark for mark in after if mark[0] in (strain_ring.MARK_EPOCH, strain_ring.MARK_EPOCH_END,
                                                strain_ring.MARK_ITERATION, strain_ring.MARK_ITERATION_END)]  # fmt: skip
    assert [mark[0] for mark in before].count(strain_ring.MARK_ITERATION) == 3
    assert own == [
        (strain_ring.MARK_EPOCH, 1, 0),
        (strain_ring.MARK_ITERATION, 0, 8),
        (strain_ring.MARK_ITERATION, 1, -1),
        (strain_ring.MARK_ITERATION_END, -1, 5),
        (strain_ring.MARK_EPOCH_END, -1, 0),
    ], (held, own)
    phases = [mark[0] for mark in after if mark not in own]
    assert phases.count(strain_ring.MARK_SPAN) == 6 and phases.count(strain_ring.MARK_BEGIN) == 4, phases
assert DATA
