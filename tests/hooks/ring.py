# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""What a ring writes at once is what it would write mark by mark: wherever the file begins anew,
whatever is open, however full it is, and while marks are held. ring.py FOLDER: of the hooks."""

import mmap
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import strain_ring  # noqa: E402
from strain_ring import BACKWARD, DATA, FORWARD, MARK_SPAN, OPTIMIZER, SLOTS, Ring  # noqa: E402


def one_by_one(ring, what, arguments):
    """What the compound is made of."""
    if what == "turn":
        number, began_ns, time_ns = arguments
        ring.iteration(number, began_ns)
        ring.begin(DATA, time_ns)
    elif what == "step":
        forward_ns, backward_ns, between_ns, optimizer_ns, samples, time_ns = arguments
        ring.put(MARK_SPAN, FORWARD, -1, forward_ns, backward_ns)
        ring.put(MARK_SPAN, BACKWARD, -1, backward_ns, between_ns)
        ring.put(MARK_SPAN, OPTIMIZER, -1, optimizer_ns, time_ns)
        ring.iteration_end(samples, time_ns)
    elif what == "end_now":
        ring.end()
    else:
        getattr(ring, what)(*arguments)


def marks(count, deep):
    """Random ones, with times of which some lie before the last one's."""
    now_ns = strain_ring.monotonic_ns() + 10**9
    for number in range(count):
        now_ns += random.choice((0, 1, 1000))
        strain_ring.monotonic_ns = lambda now_ns=now_ns: now_ns
        then_ns = now_ns - random.choice((0, 0, 1, 5000))
        yield random.choice((
            ("begin", (DATA, now_ns)),
            ("begin", (DATA, now_ns, 5)),
            ("begin", (100, now_ns)) if deep else ("end", (now_ns,)),
            ("end", (then_ns,)),
            ("end_now", ()),
            ("end", (now_ns,)),
            ("turn", (number, then_ns, now_ns)),
            ("step", (then_ns, *sorted(random.choices((then_ns, now_ns), k=3)), 32, now_ns)),
        ))  # fmt: skip


def compare(seed, deep, held, room):
    """Both ways write the same bytes."""
    random.seed(seed)
    maps = [mmap.mmap(-1, strain_ring.BYTES) for _ in range(2)]
    rings = [Ring(each, 1, 2, strain_ring.monotonic_ns()) for each in maps]
    for ring in rings:
        while len(ring._names) <= 100:
            ring.number("own-%d" % len(ring._names))
        if held:
            ring.hold()
    words = [memoryview(each).cast("Q") for each in maps]
    for what, arguments in marks(4 * SLOTS, deep):
        getattr(rings[0], what)(*arguments)
        one_by_one(rings[1], what, arguments)
        for each in words if room else ():
            each[strain_ring.AT_TAKEN] = each[strain_ring.AT_WRITTEN]
    for ring in rings:
        ring.write(ring.take_held())
    written, dropped = words[0][strain_ring.AT_WRITTEN], words[0][strain_ring.AT_DROPPED]
    assert (dropped > 0) != room and (written > SLOTS) == room, (written, dropped)
    at = 64  # behind the times when the rings began
    assert maps[0][at:] == maps[1][at:], (seed, deep, held, room)


for seed in range(2):
    for deep in (False, True):
        for held in (False, True):
            for room in (False, True):
                compare(seed, deep, held, room)
