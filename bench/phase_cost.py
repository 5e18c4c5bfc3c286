# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""The cost of a phase of the package `strain`, in turns with an empty with-statement: phase_cost.py
ROUNDS, under strain run or not. Prints a line per round: ns of a phase, of a phase that is created with
its name each time, and of the empty one."""

import sys
import time

import strain

TIMES = 300


class Empty:
    """Enters and leaves."""

    __slots__ = ()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        return None


def cost(context):
    """The time of a block in ns."""
    began_ns = time.perf_counter_ns()
    for _ in range(TIMES):
        with context:
            pass
    return (time.perf_counter_ns() - began_ns) / TIMES


def cost_named():
    """The same for a phase created at its use, as in most programs."""
    began_ns = time.perf_counter_ns()
    for _ in range(TIMES):
        with strain.phase("forward"):
            pass
    return (time.perf_counter_ns() - began_ns) / TIMES


for _ in range(int(sys.argv[1])):
    print(cost(strain.phase("forward")), cost_named(), cost(Empty()))
    time.sleep(0.05)  # for the recorder, which reads a ring of 7680 marks
