# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""A job that marks itself with the package `strain`: own_marks.py WHAT. Without strain run it does the
same, and marks nothing."""

import asyncio
import os
import sys
import threading
import time

import strain


def batches(count):
    """Like a loader."""
    for number in range(count):
        time.sleep(0.001)
        yield number


@strain.phase("tokenize")
def tokenize():
    """Returns what it should, under its own name."""
    time.sleep(0.001)
    return "words"


@strain.phase
def bare():
    """Its name is the span's."""
    return tokenize()


@strain.phase("wait")
async def wait():
    """Spans of coroutines cross."""
    await asyncio.sleep(0.01)
    return 7


def train():
    """Epochs, iterations, phases, points, functions."""
    for epoch in strain.epochs(range(3)):
        for batch in strain.iterations(batches(20), samples=lambda batch: 32 if batch % 2 else 16):
            with strain.phase("forward"):
                time.sleep(0.002)
            assert bare() == "words" and bare.__name__ == "bare"
        strain.point("loss", 1 / (epoch + 1))
    strain.point("checkpoint")


def by_hand():
    """The same by calls and contexts."""
    strain.epoch(1)
    for number in range(10):
        strain.iteration(samples=8)
        with strain.phase("forward"):
            pass
    strain.epoch_end()
    with strain.epoch(2):
        for number in range(10):
            with strain.step(number, 4):
                pass
        strain.iteration(99)
        strain.iteration_end(samples=5)
    began_ns = time.monotonic_ns()
    time.sleep(0.01)
    strain.span("crossing", began_ns)

    async def both():
        return await asyncio.gather(wait(), wait())

    assert asyncio.run(both()) == [7, 7]


def forks():
    """Threads and forked children have rings of their own, also within a phase."""

    def work(name):
        with strain.phase(name):
            time.sleep(0.02)

    threads = [threading.Thread(target=work, args=("in a thread",)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with strain.phase("around"):
        child = os.fork()
        if child == 0:
            work("in a child")
    if child == 0:
        work("after it")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


class Unwilling:
    """No number, no name, no key."""

    def __str__(self):
        raise ValueError("no")

    __int__ = __float__ = __hash__ = __eq__ = __str__


def odd():
    """Nothing raises, whatever is said; what the block raises comes through."""
    for value in (None, -1, 2**64, 10**400, 1.5, float("nan"), "x", "", b"y", [], Unwilling(), "a\0b", "\ud800", "n" * 99):
        strain.epoch(value)
        strain.iteration(value, value)
        strain.iteration_end(value)
        strain.point(value, value)
        strain.span(value, value)
        with strain.phase(value, samples=value), strain.phase(value):
            pass
    for number in range(400):  # more names than a ring has
        with strain.phase("name %d" % number):
            pass
    strain.phase("deep")(lambda: None)()
    try:
        with strain.phase("broken"):
            raise KeyError("mine")
    except KeyError:
        pass

    def failing():
        yield 1
        raise OSError("disk")

    try:
        assert [item for item in strain.iterations(failing(), samples=Unwilling())] == []
    except OSError:
        pass
    for item in strain.iterations(range(3), samples=lambda item: 1 // 0):
        if item:
            break
    assert list(strain.epochs("ab")) == ["a", "b"] and list(strain.iterations(())) == []
    strain.epoch_end()
    strain.epoch_end()
    with strain.phase("last"):
        pass


{"train": train, "by_hand": by_hand, "forks": forks, "odd": odd}[sys.argv[1]]()
print(strain.__file__, strain.recorded())
