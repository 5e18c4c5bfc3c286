# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""A PyTorch job under `strain run` that switches its own hooks off and on, to measure their cost.

    hooked_steps.py FOLDER small|cnn PAIRS   FOLDER: of workloads/pytorch

Steps run in pairs of blocks, one with the hooks and one without, in random order, each after some steps
that do not count. Prints the difference of each pair in us per step, then `step` and the median time of a
step without hooks. `mark PAIRS` prints lines in us: the cost of a mark after a pause, of the next marks,
and of a reading of the clock. `jax PAIRS`: like PyTorch, for a nearly empty jitted step, called with the
hook and without.
"""

import random
import statistics
import sys
import time

MARKS = 100
BLOCK = {"small": 20, "cnn": 2, "jax": 50}  # steps
BEFORE = {"small": 4, "cnn": 1, "jax": 10}  # until caches match the change


def job(folder, kind):
    """Model and samples: a layer of one weight, or the published CNN at batch 32."""
    import torch
    from torch.utils.data import TensorDataset

    if kind == "small":
        return torch.nn.Linear(1, 2), TensorDataset(torch.randn(64, 1), torch.zeros(64).long()), 1
    sys.path.insert(0, folder)
    import train

    samples = torch.randn(1024, 3, 32, 32), torch.randint(10, (1024,))
    return train.MODELS["cnn"].make(), TensorDataset(*samples), 32


def steps(folder, kind):
    """Yields once per step, endlessly."""
    import torch
    from torch.nn import functional
    from torch.utils.data import DataLoader

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


def jax_steps(hooked):
    """The same for JAX; hooked[0]: whether the step is hooked."""
    import jax

    @jax.jit
    def step(state, batch):
        return state + batch, state

    state, batch = jax.numpy.zeros(4), jax.numpy.ones(4)
    while True:
        state, _ = (step if hooked[0] else step._strain_function)(state, batch)
        yield


def compare(going, switch, kind, pairs):
    """Prints each pair's difference."""
    # A small step runs in one thread: its CPU time does not depend on other load of the machine.
    clock = time.perf_counter_ns if kind == "cnn" else time.thread_time_ns
    for _ in range(5 if kind == "cnn" else 100):
        next(going)
    without = []
    for _ in range(pairs):
        took = {}
        for on in random.sample((True, False), 2):
            switch(on)
            for _ in range(BEFORE[kind]):
                next(going)
            start = clock()
            for _ in range(BLOCK[kind]):
                next(going)
            took[on] = (clock() - start) / 1000 / BLOCK[kind]
        without.append(took[False])
        print(took[True] - took[False])
    switch(True)
    print("step", statistics.median(without))


def marks(pairs):
    """Prints the cost of marks and of readings of the clock in us: a line per pair."""
    import strain_ring
    import torch  # noqa: F401  creates the ring

    ring = strain_ring.here()
    begin, end, word, clock = ring.begin, ring.end, strain_ring.DATA, time.monotonic_ns
    for _ in range(pairs):
        cuts = [time.perf_counter_ns()]
        for _ in range(2):
            for _ in range(MARKS // 2):
                begin(word)
                end()
            cuts.append(time.perf_counter_ns())
        for _ in range(MARKS // 2):
            clock()
            clock()
        cuts.append(time.perf_counter_ns())
        print(*((after - before) / 1000 / MARKS for before, after in zip(cuts, cuts[1:])))
        time.sleep(0.002)  # for the recorder to read: the ring never fills


def switch_jax(hooked):
    """Selects the function that is called."""

    def switch(on):
        hooked[0] = on

    return switch


if __name__ == "__main__":
    if sys.argv[1] == "mark":
        marks(int(sys.argv[2]))
    elif sys.argv[1] == "jax":
        hooked = [True]
        compare(jax_steps(hooked), switch_jax(hooked), "jax", int(sys.argv[2]))
    else:
        going = steps(*sys.argv[1:3])
        next(going)
        import strain_torch

        compare(going, strain_torch.installed[0].hook.switch, sys.argv[2], int(sys.argv[3]))
