# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""A PyTorch job under `strain run` that switches its own hooks off and on: what they cost it.

    hooked_steps.py FOLDER small|cnn PAIRS   FOLDER: of workloads/pytorch

Steps come in pairs of blocks, one with the hooks and one without, in random order; the difference of
each pair, us a step, is printed, then `step` and the median time of a step without. `mark PAIRS`: the same of 100 marks and
100 readings of the clock, and of 100 empty calls.
"""

import random
import statistics
import sys
import time

import strain_ring
import strain_torch
import torch
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

MARKS = 100
BLOCK = {"small": 20, "cnn": 4}  # steps


def job(folder, kind):
    """Model and samples: a layer of one weight, or the published CNN at batch 32."""
    if kind == "small":
        return torch.nn.Linear(1, 2), TensorDataset(torch.randn(64, 1), torch.zeros(64).long()), 1
    sys.path.insert(0, folder)
    import train

    samples = torch.randn(1024, 3, 32, 32), torch.randint(10, (1024,))
    return train.cnn(), TensorDataset(*samples), 32


def steps(folder, kind):
    """Yields once for each step, for ever."""
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model, samples, batch = job(folder, kind)
    loader = DataLoader(samples, batch_size=batch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    while True:
        for inputs, classes in loader:
            optimizer.zero_grad()
            functional.cross_entropy(model(inputs), classes).backward()
            optimizer.step()
            yield


def compare(folder, kind, pairs):
    """Prints each pair's difference."""
    hooks = strain_torch.installed[0].hook
    # A small step is all one thread's: its CPU time does not know what else the machine does.
    clock = time.thread_time_ns if kind == "small" else time.perf_counter_ns
    going = steps(folder, kind)
    for _ in range(100 if kind == "small" else 5):
        next(going)
    without = []
    for _ in range(pairs):
        took = {}
        for on in random.sample((True, False), 2):
            hooks.switch(on)
            next(going)  # what changed has to be looked up anew
            start = clock()
            for _ in range(BLOCK[kind]):
                next(going)
            took[on] = (clock() - start) / 1000 / BLOCK[kind]
        without.append(took[False])
        print(took[True] - took[False])
    hooks.switch(True)
    print("step", statistics.median(without))


def marks(pairs):
    """Prints what a mark, and a reading of the clock, cost in us: a line a pair."""
    ring = strain_ring.here()
    begin, end, word, clock = ring.begin, ring.end, strain_ring.DATA, time.monotonic_ns
    for _ in range(pairs):
        start = time.perf_counter_ns()
        for _ in range(MARKS // 2):
            begin(word)
            end()
        between = time.perf_counter_ns()
        for _ in range(MARKS // 2):
            clock()
            clock()
        stop = time.perf_counter_ns()
        print((between - start) / 1000 / MARKS, (stop - between) / 1000 / MARKS)
        time.sleep(0.002)  # the recorder reads: the ring never fills


if __name__ == "__main__":
    if sys.argv[1] == "mark":
        marks(int(sys.argv[2]))
    else:
        compare(sys.argv[1], sys.argv[2], int(sys.argv[3]))
