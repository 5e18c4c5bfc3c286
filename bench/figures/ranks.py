# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Two ranks of a DistributedDataParallel job, each under a `strain run` of its own, one of them made slow in a known way: how often
`strain show DIR` names it, with the true cause, and the phase in which it is slower. And two equal ranks: how often one is named.

A slow network is that between two machines, which are network namespaces (tests/cli/machines.sh). Needs root."""

import argparse
import contextlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import tempfile
from collections import namedtuple
from pathlib import Path

from harness import PYTHON, ROOT, STRAIN, Result, Skip, environment, trainer_script

TIMES = 10  # of each way
JOB = ROOT / "tests/cli/ranks_job.py"
MACHINES, NAME = ROOT / "tests/cli/machines.sh", f"sb{os.getpid()}"
BATCHES, SAMPLE = 60, 1 << 16
FILE_BYTES = 16 * BATCHES * SAMPLE

# options of the job of the slow rank, of strain run on it, and of both on all ranks; programs beside it on its CPU; what is
# expected: the phases ("none" where all phases are slower), and the verdict of its run, as expressions. Empty: no rank is named.
# send: the rate at which the slow rank's machine sends; "": both ranks are on this machine.
Way = namedtuple("Way", "job run all_job all_run hogs phases verdict send", defaults=[""])
WAYS = {
    "more work in its forward": Way(["--by", "forward"], [], [], [], 0, "forward", "compute"),
    "more work to prepare its data": Way(["--by", "data"], [], [], [], 0, "data", "input"),
    "two other programs on its CPU": Way(["--slow", "-1"], [], [], [], 2, "forward|data|optimizer|other|none", "contention"),
    "its disk limited to 8 MB/s": Way(["--slow", "-1"], ["--disk-read", "8MB/s"], ["--file"], [], 0, "data", "input|storage"),
    "its memory limited, so that it reads its file again": Way(["--slow", "-1"], ["--memory", "160MiB"], [
        "--cached", "--epochs", "4", "--file"], ["--disk-read", "20MB/s"], 0, "data", "memory"),
    "a link of 100 Mbit/s": Way([], [], ["--slow", "-1"], [], 0, "none", "network", "100mbit"),
    "a link of 300 Mbit/s": Way([], [], ["--slow", "-1"], [], 0, "none", "network", "300mbit"),
    "nothing": Way(["--slow", "-1"], [], [], [], 0, "", ""),
    "nothing, on two machines": Way([], [], ["--slow", "-1"], [], 0, "", "", "none"),
}


def free_port():
    """A port of the loopback interface that nobody uses."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def run_once(folder, way, slow, cpus):
    """Runs the ranks; returns what `strain show` says of them."""
    port, hogs, ranks = free_port(), [], []
    try:
        if way.send:
            subprocess.run([MACHINES, "up", NAME, "2"], check=True)
            subprocess.run([MACHINES, "slow", NAME, str(slow), way.send], check=True)
        for _ in range(way.hogs):
            hogs.append(subprocess.Popen(["taskset", "-c", str(cpus[slow]), "sh", "-c", "while :; do :; done"], start_new_session=True))
        for rank in range(2):
            job = [PYTHON, JOB, "--batches", str(BATCHES), "--width", "1024", "--slow", str(slow), *(way.job if rank == slow else []),
                   *way.all_job]
            if "--file" in way.all_job:
                with open(f"{folder}/samples{rank}", "rb") as file:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                job.append(f"{folder}/samples{rank}")
            variables = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
            if way.send:
                variables |= {"MASTER_ADDR": "10.77.0.1", "GLOO_SOCKET_IFNAME": "eth0"}
            command = [*([MACHINES, "exec", NAME, str(rank)] if way.send else []), "taskset", "-c", str(cpus[rank]), STRAIN, "run", "--force", "-o", f"{folder}/runs/{rank}.strain",
                       *way.all_run, *(way.run if rank == slow else []), "--", *job]  # fmt: skip
            ranks.append(subprocess.Popen([str(word) for word in command], env={**environment(), **variables},
                                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True))  # fmt: skip
        for process in ranks:
            said = process.communicate(timeout=300)[1]
            if process.returncode:
                raise RuntimeError(f"a rank failed: {said.strip()}")
    finally:
        for process in [*hogs, *ranks]:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with what it started
            process.wait()
        if way.send:
            subprocess.run([MACHINES, "down", NAME], check=True)
    out = subprocess.run([STRAIN, "show", "--json", f"{folder}/runs"], check=True, capture_output=True, text=True).stdout
    return json.loads(out)


def parse(words):
    """The options."""
    parser = argparse.ArgumentParser(prog="bench/run ranks", description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=TIMES, help="of each way")
    parser.add_argument("--ways", default="", metavar="TEXT", help="those whose names contain this text")
    return parser.parse_args(words)


def measure(options=None):
    """Yields the lines."""
    trainer_script()
    options = options or parse([])
    times = options.times
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise Skip("needs two CPUs")
    chosen = random.Random(1)
    named = true = tried = 0
    with tempfile.TemporaryDirectory(prefix="strain-bench-", dir="/var/tmp") as folder:
        Path(f"{folder}/runs").mkdir()
        for rank in range(2):
            Path(f"{folder}/samples{rank}").write_bytes(os.urandom(FILE_BYTES))
        os.sync()
        for name, way in WAYS.items():
            if options.ways not in name or (way.send and os.geteuid() != 0):
                continue
            found = right = placed = 0
            seen = []
            for _ in range(times):
                slow = chosen.randrange(2)
                said = run_once(folder, way, slow, cpus)
                slowest = said["slowest"]
                verdict = said["ranks"][slow]["verdict"]
                found += slowest is None if not way.phases else bool(slowest) and slowest["rank"] == slow
                good = bool(slowest and slowest["rank"] == slow)
                right += bool(good and re.fullmatch(way.verdict, verdict))
                placed += bool(good and re.fullmatch(way.phases, slowest["phase"] or "none"))
                seen.append(f"{slowest and slowest['phase']} {verdict}")
            others = ", ".join(sorted({f"{seen.count(word)}x {word}" for word in seen}))
            yield Result(f"slow rank by {name}" if way.phases else f"two equal ranks ({name})", f"{found} of {times} named"
                         if way.phases else f"{found} of {times}: none named", "", f"{right} with its cause, {placed} with its phase ({others})"
                         if way.phases else others, "at least 95 %", (right if way.phases else found) >= 0.95 * times)  # fmt: skip
            if way.phases:
                named, true, tried = named + found, true + right, tried + times
    if tried:
        yield Result("slow ranks", f"{named} of {tried} named", "", f"{true} of {tried} with its cause", "at least 95 %",
                     true >= 0.95 * tried)  # fmt: skip
