# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Recorders of the ranks of one job on one machine: the rates under one `strain run` and under one for each rank; how often the
machine is read; the longest time without a reading when the recorder that reads is killed ten times."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import PYTHON, ROOT, STRAIN, Result, Skip, environment, run_value, trainer_script

JOB = ROOT / "tests/cli/ranks_job.py"
TIMES = 3
BATCHES = 400
RECORDERS = 8
SECONDS = 10
KILLS = 10


def free_port():
    """A port of the loopback interface that nobody uses."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def show(path):
    """What `strain show --json` says."""
    return json.loads(subprocess.run([STRAIN, "show", "--json", path], check=True, capture_output=True, text=True).stdout)


def start(command, **variables):
    """Starts a command in a process group of its own."""
    return subprocess.Popen([str(word) for word in command], env={**environment(), **variables}, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, start_new_session=True)  # fmt: skip


def end(processes):
    """Ends process groups that still run."""
    for process in processes:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        process.wait()


# Starts WORLD_SIZE ranks and waits for them, as torchrun does; PyTorch 1.13's does not run with Python 3.11.
LAUNCH = """
import os, subprocess, sys
n = int(os.environ["WORLD_SIZE"])
ranks = [subprocess.Popen(sys.argv[1:], env={**os.environ, "RANK": str(rank)}) for rank in range(n)]
sys.exit(max(rank.wait() for rank in ranks))
"""


def rate(folder, world, one):
    """Samples per second of a job, under one `strain run` or one for each rank."""
    variables = {"WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "OMP_NUM_THREADS": "1"}
    job = [PYTHON, JOB, "--batches", BATCHES, "--width", "1024"]
    if one:
        path = f"{folder}/one.strain"
        command = [STRAIN, "run", "--force", "--no-verdict", "-o", path, "--", sys.executable, "-c", LAUNCH, *job]
        ranks = [start(command, **variables)]
    else:
        path = f"{folder}/each"
        shutil.rmtree(path, ignore_errors=True)
        os.mkdir(path)
        ranks = [start([STRAIN, "run", "--no-verdict", "-o", f"{path}/{rank}.strain", "--", *job], RANK=str(rank), **variables)
                 for rank in range(world)]  # fmt: skip
    try:
        if any(process.wait(timeout=600) for process in ranks):
            raise RuntimeError("a rank failed")
    finally:
        end(ranks)
    said = show(path)
    return sum(rank["samples_per_second"] for rank in said["ranks"]) if one else said["samples_per_s"]


def rates(folder, world):
    """The line of one number of ranks."""
    pairs = [(rate(folder, world, True), rate(folder, world, False)) for _ in range(TIMES)]
    one, each = (statistics.median(pair[i] for pair in pairs) for i in range(2))
    spread = max(max(pair[i] for pair in pairs) / min(pair[i] for pair in pairs) for i in range(2)) - 1
    apart = each / one - 1
    return Result(f"{world} ranks, samples/s", f"{each:.0f} under one strain run for each", f"{one:.0f} under one for all",
                  f"{100 * apart:+.1f} %; repeats differ by {100 * spread:.1f} %", "within 2 %", abs(apart) <= 0.02)  # fmt: skip


def reads(folder, job):
    """How often recorders read the machine's CPU time, by system calls: of one job, or each of its own."""
    traced = []
    for i in range(RECORDERS):
        name = "bench-node" if job else f"bench-node-{i}"
        traced.append(start(["strace", "-f", "-q", "-y", "-e", "trace=pread64", "-o", f"{folder}/trace{i}", STRAIN, "run", "--force",
                             "--no-verdict", "--job", name, "-o", f"{folder}/{i}.strain", "--", "sleep", SECONDS]))  # fmt: skip
    try:
        for process in traced:
            process.wait(timeout=600)
    finally:
        end(traced)
    return sum(len(re.findall("</proc/stat>", Path(f"{folder}/trace{i}").read_text())) for i in range(RECORDERS))


def reader_of(folder, alive):
    """The rank whose recorder reads the machine."""
    for _ in range(200):
        for rank in alive:
            with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(f"file:{folder}/{rank}.strain?mode=ro",
                                                                                        uri=True)) as run:  # fmt: skip
                if run.execute("SELECT 1 FROM event WHERE text LIKE 'this recorder reads%'").fetchone():
                    return rank
        time.sleep(0.05)
    raise RuntimeError("no recorder reads the machine")


def kills(folder):
    """The longest time without a reading of the host in the run of the last recorder, and the longest until another one read."""
    alive, waits = list(range(KILLS + 1)), []
    ranks = [start([STRAIN, "run", "--force", "--no-verdict", "--job", "bench-node", "-o", f"{folder}/{rank}.strain", "--", "sleep", "60"],
                   RANK=str(rank)) for rank in alive]  # fmt: skip
    try:
        time.sleep(2)
        for _ in range(KILLS):
            rank = reader_of(folder, alive)
            alive.remove(rank)
            os.kill(int(run_value(f"{folder}/{rank}.strain", "recorder_pid")), signal.SIGKILL)
            before = time.monotonic()
            reader_of(folder, alive)
            waits.append(time.monotonic() - before)
        last = reader_of(folder, alive)
        time.sleep(1)
    finally:
        end(ranks)
    out = subprocess.run([STRAIN, "export", "--metric", "system.cpu.time.idle", "--format", "csv", f"{folder}/{last}.strain"],
                         check=True, capture_output=True, text=True).stdout  # fmt: skip
    header, *rows = [line.split(",") for line in out.splitlines()]
    times = sorted({float(row[header.index("t_s")]) for row in rows})
    return max(b - a for a, b in zip(times, times[1:])), max(waits)


def measure():
    """Yields the lines."""
    with tempfile.TemporaryDirectory(prefix="strain-bench-", dir="/var/tmp") as folder:
        gap, wait = kills(folder)
        yield Result(f"the recorder that reads, killed {KILLS} times", f"another one reads after at most {wait:.1f} s", "",
                     f"at most {gap:.1f} s without a reading of the host", "2 s", max(gap, wait) <= 2)  # fmt: skip
        if shutil.which("strace"):
            apart, together = reads(folder, False), reads(folder, True)
            yield Result(f"reads of /proc/stat by {RECORDERS} recorders of one job", f"{together}", f"{apart} if each reads",
                         f"{together / apart:.2f}", f"{1 / RECORDERS:.2f}, and a few at start and end", together <= 2 * apart / RECORDERS)  # fmt: skip
        with contextlib.suppress(Skip):
            trainer_script()
            for world in (2, 8):
                yield rates(folder, world)
