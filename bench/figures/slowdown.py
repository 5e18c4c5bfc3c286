# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""How much slower a job trains under `strain run`.

Whole runs with and without recording differ by several per cent on a shared machine, whatever is
measured. So the recorder of one run is stopped and continued every quarter of a second, and the rates
of iterations in neighbouring stretches are compared. The same with a signal that does nothing is the
floor. What the hooks add to a step is the figure `hooks`; pairs of whole runs contain both.
"""

import os
import random
import re
import signal
import statistics
import subprocess
import time

from harness import (
    BUILD, PYTHON, STRAIN, Recording, Result, Skip, environment, interval, query, run_file, run_value,
    trainer_script,
)  # fmt: skip

SECONDS = float(os.environ.get("STRAIN_BENCH_SECONDS", "150"))  # of each of four runs
PAIRS = int(os.environ.get("STRAIN_BENCH_PAIRS", "20"))  # of whole runs; 0: none
STRETCH_S = 0.25
SETTLE_S = 0.02  # after each change
RATE = re.compile(r"^epoch \d+/\d+ .* (\d+) images/s$", re.MULTILINE)


def cnn(epochs):
    """The CNN on oneDNN: one computing thread, one loader worker."""
    trainer = f"{BUILD}/workloads/onednn/onednn-train"
    if not os.access(trainer, os.X_OK):
        raise Skip("workloads/onednn was not built")
    return [trainer, "--batch-size", "16", "--samples", "2000", "--epochs", str(epochs), "--workers", "1",
            "--threads", "1"]  # fmt: skip


def pytorch(epochs):
    """The CNN on PyTorch, likewise."""
    return [PYTHON, trainer_script(), "--dataset", "dt1", "--batch-size", "16", "--samples", "1200",
            "--epochs", str(epochs), "--workers", "1", "--threads", "1"]  # fmt: skip


def toggled(job, stop):
    """Ratios less 1 of the rate of iterations with the recorder stopped to that with it running."""
    with run_file() as path:
        recording = Recording(path, job(100000))
        time.sleep(8)  # the start, and the recorder's fast ticks
        changes = []
        end = time.monotonic() + SECONDS
        try:
            while time.monotonic() < end:
                for number in (stop, signal.SIGCONT):
                    os.kill(recording.recorder, number)
                    changes.append(time.monotonic_ns())
                    time.sleep(STRETCH_S)
        finally:
            os.kill(recording.recorder, signal.SIGCONT)
            recording.process.send_signal(signal.SIGTERM)
            recording.wait()
        start = int(run_value(path, "start_monotonic_ns"))
        times = [row[0] / 1e9 for row in sql_iterations(path)]
        return ratios(times, [(change - start) / 1e9 for change in changes])


def sql_iterations(path):
    """Starts of iterations, ns since the start of the run."""
    out = subprocess.run([str(STRAIN), "sql", "--csv", str(path),
                          "SELECT start_ns FROM span WHERE kind = 'iteration' ORDER BY start_ns"],
                         check=True, capture_output=True, text=True).stdout  # fmt: skip
    return [(int(line),) for line in out.split()[1:]]


def rate_between(times, first, last):
    """Iterations per second between two times, of the whole ones."""
    inside = [t for t in times if first <= t < last]
    return (len(inside) - 1) / (inside[-1] - inside[0]) if len(inside) > 2 else None


def ratios(times, changes):
    """For each stretch that was stopped, its rate over that of a stretch beside it, less 1."""
    rates, at = [], 0
    for first, last in zip(changes, changes[1:]):
        while at < len(times) and times[at] < first - 1:
            at += 1
        near = times[at : at + 2000]
        rates.append(rate_between(near, first + SETTLE_S, last))
    found = []
    for i in range(2, len(rates) - 1, 2):
        # One neighbour, in turn the one before and the one behind: a mean of two would be less skewed than one.
        beside = rates[i + 1 if i % 4 else i - 1]
        if rates[i] and beside:
            found.append(rates[i] / beside - 1)
    return found


def rate(command):
    """Images per second, of the middle one of the epochs but the first."""
    done = subprocess.run([str(word) for word in command], env=environment(), check=True,
                          capture_output=True, text=True)  # fmt: skip
    return statistics.median(int(found) for found in RATE.findall(done.stdout)[1:])


def whole_runs(job):
    """Ratios less 1, of the bare job to the recorded one, and to itself, each round in random order."""
    slower, null = [], []
    for _ in range(PAIRS):
        with run_file() as path:
            ways = {"bare": job(7), "again": job(7), "recorded": [STRAIN, "run", "-o", path, "--", *job(7)]}
            found = {name: rate(ways[name]) for name in random.sample(sorted(ways), len(ways))}
            slower.append(found["bare"] / found["recorded"] - 1)
            null.append(found["bare"] / found["again"] - 1)
    return slower, null


def told(values):
    """The median and its interval, as text."""
    middle, low, high = interval(values)
    return f"{middle:+.2%} ({low:+.2%} to {high:+.2%})"


def measure():
    """Yields the lines."""
    os.environ["OMP_NUM_THREADS"] = "1"
    for what, job in (("CNN on oneDNN", cnn), ("CNN on PyTorch", pytorch)):
        stopped, floor = toggled(job, signal.SIGSTOP), toggled(job, signal.SIGCONT)
        yield Result(f"slower while the recorder runs, {what}", told(stopped),
                     f"floor, a signal that does nothing {told(floor)}", f"{len(stopped)} stretches",
                     "at most 0.2 %", interval(stopped)[0] <= 0.002)  # fmt: skip
        if PAIRS:
            slower, null = whole_runs(job)
            yield Result(f"slower under strain run, {what}", told(slower), f"the bare job against itself {told(null)}",
                         f"{len(slower)} rounds", "at most 0.2 %", interval(slower)[0] <= 0.002)  # fmt: skip
