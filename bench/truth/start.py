#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs an unmodified training script for some seconds, with an added bottleneck or without.

    start.py SECONDS SCRIPT [ARGUMENT]...

SECONDS after the first optimizer was created, the script ends at the next call of that optimizer's
zero_grad, like with sys.exit(0). It prints `iterations N`, the number of calls before, and `rate R`, its
steps per second. A script without such a call ends three seconds later. One without an optimizer
(TRUTH_OWN_CLOCK=1) ends SECONDS after its start, plus two for the start.

Environment: TRUTH_CAUSE names the cause to add (CAUSES, with `:` and a number if it takes one).
TRUTH_WORKERS sets the workers of every DataLoader, whatever the script asks for. TRUTH_CGROUP is the file
of a cgroup to which the job's pid is written. TRUTH_STEPS is a file for the job's pid, and at the end for
the times of all steps (monotonic, in seconds, a line each).
"""

import fcntl
import json
import os
import random
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

STEPS = os.environ.get("TRUTH_STEPS")


class Clock:
    """Ends the job, and counts its iterations."""

    def __init__(self):
        self.owner, self.first, self.calls, self.over = os.getpid(), None, 0, 0.0
        self.seconds, self.steps = 0.0, []  # ends of the first optimizer's steps

    def start(self, seconds, further=0):
        """Ends the job cleanly after this many seconds; forked workers have no timer."""
        self.over, self.seconds = time.monotonic() + seconds, seconds

        def end(_signal, _frame):
            if os.getpid() == self.owner:
                raise SystemExit(0)

        signal.signal(signal.SIGALRM, end)
        signal.setitimer(signal.ITIMER_REAL, seconds + further)

    def iteration(self, optimizer):
        """Called when the first optimizer's gradients are cleared: an iteration ended, or the first begins."""
        if optimizer is not self.first or os.getpid() != self.owner:
            return
        if time.monotonic() >= self.over:
            signal.setitimer(signal.ITIMER_REAL, 0)
            print(f"iterations {self.calls}", flush=True)
            raise SystemExit(0)
        self.calls += 1

    def step(self, optimizer):
        """Called at the end of its steps. The rate is over the last four fifths of the time."""
        if optimizer is self.first and os.getpid() == self.owner:
            now = time.monotonic()
            if STEPS or now >= self.over - self.seconds * 0.8:
                self.steps.append(now)

    def report(self):
        """Prints the rate, if there is one."""
        if os.getpid() == self.owner and len(self.steps) > 1:
            rate = (len(self.steps) - 1) / (self.steps[-1] - self.steps[0])
            print(f"rate {rate:.6f}", flush=True)
            if STEPS:
                with open(STEPS, "a", encoding="ascii") as file:
                    file.writelines(f"{at:.6f}\n" for at in self.steps)


def worker_id():
    """The number of this loader worker, 0 in the training process."""
    import torch

    info = torch.utils.data.get_worker_info()
    return info.id if info else 0


# Causes in the dataset: called before each sample, with the cause's number.


def sleeping(ms):
    """A sample waits for a remote resource."""
    time.sleep(ms / 1000)


def locked(ms):
    """Workers wait for a lock held by one of them."""
    with open(os.path.join(tempfile.gettempdir(), "truth-lock"), "w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        time.sleep(ms / 1000)


def slow_worker(ms):
    """The first worker only."""
    if worker_id() == 0:
        time.sleep(ms / 1000)


DOCUMENT = json.dumps([{"id": i, "box": [i, i + 1, i + 2.5], "label": "thing"} for i in range(40)])


def parsing(times):
    """The loader parses text."""
    for _ in range(int(times)):
        json.loads(DOCUMENT)


def cold(kilobytes):
    """Reads a part of a file that is not in the page cache."""
    name = os.environ["TRUTH_COLD"]
    file = os.open(name, os.O_RDONLY)
    try:
        size = os.fstat(file).st_size
        length = int(kilobytes) << 10
        offset = random.randrange(max(size - length, 1)) & ~4095
        os.posix_fadvise(file, offset, length, os.POSIX_FADV_RANDOM)
        os.pread(file, length, offset)
        os.posix_fadvise(file, offset, length, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(file)


CONNECTION = {}


def fetching(ms):
    """Requests each sample from a server that answers after this time (jobs/server.py)."""
    key = os.getpid(), threading.get_ident()
    if key not in CONNECTION:
        CONNECTION[key] = socket.create_connection(("127.0.0.1", int(os.environ["TRUTH_PORT"])))
    CONNECTION[key].sendall(int(ms * 1000).to_bytes(4, "little"))
    left = 4096
    while left > 0:
        left -= len(CONNECTION[key].recv(left))


# Causes in the step: called by zero_grad, once for each optimizer and step.


def children(count):
    """Starts a program and waits for it."""
    for _ in range(int(count)):
        subprocess.run(["true"], check=True)


STEP = {"number": 0, "kept": []}


def checkpoint(megabytes):
    """Every fifth step writes a checkpoint and waits until it is on disk."""
    STEP["number"] += 1
    if STEP["number"] % 5 == 0:
        with tempfile.NamedTemporaryFile(dir=os.getcwd()) as file:
            file.write(os.urandom(1 << 20) * int(megabytes))
            file.flush()
            os.fsync(file.fileno())


def leak(megabytes):
    """Keeps memory of each step."""
    STEP["kept"].append(b"x" * (int(megabytes) << 20))


def host_work(ms):
    """The script's own Python."""
    end = time.perf_counter() + ms / 1000
    total = 0
    while time.perf_counter() < end:
        total += sum(range(100))


# Causes next to the steps: called once.


def python_thread(_number):
    """A thread of the script that computes in Python: it holds the GIL half of the time."""

    def work():
        while True:
            sum(range(1000))

    threading.Thread(target=work, daemon=True).start()


IN_DATASET = {"sleeping": sleeping, "locked": locked, "slow_worker": slow_worker, "cold": cold,
              "parsing": parsing, "fetching": fetching}  # fmt: skip
IN_STEP = {"children": children, "checkpoint": checkpoint, "leak": leak, "host_work": host_work}
BESIDE = {"python_thread": python_thread}


def wrap_dataset(dataset, cause):
    """Delays each sample of this class of datasets."""
    kind = type(dataset)
    if getattr(kind, "truth_cause", None) or not hasattr(kind, "__getitem__"):
        return
    name, number = cause
    get = kind.__getitem__

    def delayed(self, index):
        IN_DATASET[name](number)
        return get(self, index)

    kind.truth_cause = name
    kind.__getitem__ = delayed


def wrap_loader(data, cause):
    """Sets workers and delays of every DataLoader."""
    make = data.DataLoader.__init__
    workers = os.environ.get("TRUTH_WORKERS")

    def init(self, dataset, *rest, **options):
        if workers is not None:
            options["num_workers"] = int(workers)
        if cause[0] in IN_DATASET:
            wrap_dataset(dataset, cause)
        make(self, dataset, *rest, **options)

    data.DataLoader.__init__ = init


def wrap_optimizer(optim, cause, seconds, clock):
    """Starts the clock with the first optimizer; adds causes in steps and next to them."""
    make, zero = optim.Optimizer.__init__, optim.Optimizer.zero_grad

    def init(self, *rest, **options):
        make(self, *rest, **options)
        if clock.first is None:
            clock.first = self
            clock.start(seconds, 3)
            if cause[0] in BESIDE:
                BESIDE[cause[0]](cause[1])

    def zero_grad(self, *rest, **options):
        clock.iteration(self)
        if cause[0] in IN_STEP:
            IN_STEP[cause[0]](cause[1])
        return zero(self, *rest, **options)

    def wrap_step(kind):
        inner = kind.step

        def step(self, *rest, **options):
            result = inner(self, *rest, **options)
            clock.step(self)
            return result

        kind.step = step

    for kind in vars(optim).values():
        if isinstance(kind, type) and "step" in vars(kind) and kind is not optim.Optimizer:
            wrap_step(kind)
    optim.Optimizer.__init__ = init
    optim.Optimizer.zero_grad = zero_grad


class NoAccelerator:
    """torch.accelerator for versions that lack it: there is none."""

    @staticmethod
    def is_available():
        """Whether there is one."""
        return False


def prepare(seconds, clock):
    """Adds the cause."""
    name, _, number = os.environ.get("TRUTH_CAUSE", "").partition(":")
    if name and name not in {**IN_DATASET, **IN_STEP, **BESIDE}:
        sys.exit(f"start.py: no cause '{name}'")
    cause = name, float(number or 0)
    import torch
    from torch.utils import data

    if not hasattr(torch, "accelerator"):
        torch.accelerator = NoAccelerator
    # After the import, which takes seconds.
    if os.environ.get("TRUTH_CGROUP"):
        with open(os.environ["TRUTH_CGROUP"], "w", encoding="ascii") as file:
            file.write(str(os.getpid()))
    wrap_loader(data, cause)
    wrap_optimizer(torch.optim, cause, seconds, clock)


def main():
    """The command line."""
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    seconds, script = float(sys.argv[1]), sys.argv[2]
    sys.argv[:] = sys.argv[2:]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    clock = Clock()
    if STEPS:
        with open(STEPS, "w", encoding="ascii") as file:
            file.write(f"{os.getpid()}\n")
    prepare(seconds, clock)
    clock.start(seconds + (1 if os.environ.get("TRUTH_OWN_CLOCK") else 15))
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        clock.report()


if __name__ == "__main__":
    main()
