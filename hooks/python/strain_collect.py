# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""Spans of Python's garbage collector of cycles.

    follow()        from the first loop or batch of a process on

A collection of 2 ms or longer is a span `python.gc` of the thread in which it ran. It may begin
between any two instructions of Python, also in those that write a mark. Its span therefore goes to a
ring of its own (strain_ring.apart), into which nothing else writes: the collector does not run
while its callbacks do.
"""

import gc
import sys
from time import monotonic_ns

import strain_ring

NAME = "python.gc"
LONG_NS = 2000000


class _Process:
    """Whether the collections of this process are followed."""

    followed = False


def follow():
    """Follows the collections of this process, and of those that it forks."""
    if not _Process.followed:
        _Process.followed = True
        gc.callbacks.append(_follower())


def _follower():
    began_ns = 0

    def follow(phase, info):
        nonlocal began_ns
        if phase == "start":
            began_ns = monotonic_ns()
        elif began_ns:
            ended_ns = monotonic_ns()
            if ended_ns - began_ns >= LONG_NS and not sys.is_finalizing():
                _mark(began_ns, ended_ns)
            began_ns = 0

    return follow


def _mark(began_ns, ended_ns):
    try:
        ring = strain_ring.apart(began_ns)
        if ring is not None:
            ring.put(strain_ring.MARK_SPAN, ring.number(NAME), -1, began_ns, ended_ns)
    except Exception:
        pass
