# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""The PyTorch job recorded with defaults: the recorder's CPU time, slowed ticks, the file's size."""

import subprocess
import tempfile
import time

from harness import PYTHON, Recording, Result, events, query, run_file, sql, trainer_script
from reads import floor_command

EPOCH = r"^epoch (?<epoch>\d+)/\d+ +loss (?<loss>[0-9.]+) +accuracy (?<accuracy>[0-9.]+)"
WORKERS, EPOCHS, FLOOR_S = 2, 6, 30

DEFAULT_TICK_S = 0.02  # of strain run


def job_processes(recording):
    """The trainer and its workers, after they have started."""
    for _ in range(600):
        pids = recording.job()
        if len(pids) >= 1 + WORKERS:
            return pids
        time.sleep(0.1)
    raise RuntimeError("the loader workers did not start")


def floor_share(pids):
    """The share of a core used by the bare system calls."""
    with tempfile.NamedTemporaryFile() as counter:
        command = floor_command(FLOOR_S, counter.name, pids)
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    ticks, took_ns = map(int, out.split())
    return took_ns / 1e9 / (ticks * DEFAULT_TICK_S)


def measure():
    """Yields the lines."""
    job = [PYTHON, trainer_script(), "--dataset", "dt1", "--batch-size", "32",
           "--workers", str(WORKERS), "--epochs", str(EPOCHS)]  # fmt: skip
    with run_file() as path:
        recording = Recording(path, job, "--epoch-pattern", EPOCH)
        bare = floor_share(job_processes(recording))
        cpu, wall = recording.watch()
        recording.wait()
        slowed = events(path, "interval")
        share = cpu / wall
        yield Result("recorder CPU, defaults, PyTorch job", f"{share:.2%} of one core",
                     f"bare system calls {bare:.2%}", f"slowed {len(slowed)} times",
                     "at most 1 %, no tick slowed", share <= 0.01 and not slowed)  # fmt: skip
        values = sql(path, "SELECT count(value) FROM samples")[0][0]
        size = path.stat().st_size
        blocks = query(path, "SELECT (SELECT sum(length(payload)) FROM block) + "
                       "(SELECT sum(length(payload)) FROM clock)")[0][0]  # fmt: skip
        spans, marks = query(path, "SELECT sum(rows), sum(length(payload) + length(words))"
                             " FROM span_block")[0]  # fmt: skip
        yield Result("spans of the hooks, PyTorch job", f"{marks / spans:.1f} byte per span",
                     "two times of 8 bytes: 16", f"{spans} spans, {marks / 1000:.0f} kB",
                     "at most 10", marks / spans <= 10)  # fmt: skip
        size -= marks
        yield Result("run file but for spans, PyTorch job", f"{size / values:.2f} byte per value",
                     f"its blocks and clocks alone {blocks / values:.2f}",
                     f"{values} values in {wall / 1e9:.0f} s, {size / 1000:.0f} kB",
                     "at most 0.5", size / values <= 0.5)  # fmt: skip
