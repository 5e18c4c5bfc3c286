# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Common to the figures: running jobs with and without recording, reading clocks and run files."""

import contextlib
import json
import os
import signal
import sqlite3
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = (ROOT / os.environ.get("BUILD", "build")).resolve()
STRAIN = BUILD / "strain"
PROGRAMS = BUILD / "bench"
PYTHON = "/usr/bin/python3"  # that of the distribution, with its PyTorch and psutil
TICK_S = 0.01


class Skip(Exception):
    """The reason why a figure cannot be measured here."""


@dataclass
class Result:
    """One line: the measured figure, a floor or peer, and the aim."""

    what: str
    ours: str
    beside: str  # the floor or peer, with its value; "" for none
    ratio: str  # the figure that the aim refers to
    aim: str
    met: bool | None  # None: cannot be decided here
    why: str = ""  # why it cannot be decided

    def line(self):
        """The text of the line."""
        parts = [self.ours, self.beside, self.ratio]
        verdict = {True: "met", False: "NOT MET", None: f"not shown: {self.why}"}[self.met]
        return f"{self.what}: {'; '.join(p for p in parts if p)} (aim: {self.aim}): {verdict}"


def program(name):
    """The path of a program of bench/ or of the build folder, as text."""
    return str(PROGRAMS / name)


def trainer_script():
    """The PyTorch job; requires PyTorch."""
    if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, check=False).returncode:
        raise Skip("no PyTorch (make frameworks)")
    return str(ROOT / "workloads/pytorch/train.py")


def cpu_ns(pid):
    """CPU time of a process from its clock, or None if it has ended."""
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)
    except OSError:
        return None


def children(pid):
    """Children of all threads of a process."""
    found = []
    with contextlib.suppress(FileNotFoundError):
        for task in os.listdir(f"/proc/{pid}/task"):
            text = Path(f"/proc/{pid}/task/{task}/children").read_text()
            found += [int(word) for word in text.split()]
    return found


def descendants(pid):
    """All descendants of a process."""
    found = children(pid)
    for child in list(found):
        found += descendants(child)
    return found


@contextlib.contextmanager
def run_file():
    """A path for a run in a temporary folder, which is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="strain-bench-") as folder:
        yield Path(folder) / "bench.strain"


def environment():
    """The environment, without variables that affect measurements. Without bytecode, each Python compiles the hooks anew, which
    costs 3 MB of memory."""
    return {k: v for k, v in os.environ.items() if not k.startswith("STRAIN_") and k != "PYTHONDONTWRITEBYTECODE"}


def inside(group, command):
    """The command, as a list, wrapped to run in a cgroup."""
    return ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh", *command]


class Recording:
    """A job under `strain run`, and the pid of its recorder."""

    def __init__(self, path, job, *options, output=subprocess.DEVNULL):
        command = [STRAIN, "run", "--force", "-o", path, *options, "--", *job]
        self.path = path
        self.process = subprocess.Popen(
            [str(c) for c in command], stdout=output, stderr=subprocess.PIPE, text=True,
            env=environment(),
        )  # fmt: skip
        self.recorder = self._recorder_pid()

    def _recorder_pid(self):
        for _ in range(500):
            with contextlib.suppress(sqlite3.Error):
                pid = run_value(self.path, "recorder_pid")
                if pid:
                    return int(pid)
            if self.process.poll() is not None:
                break
            time.sleep(0.01)
        raise RuntimeError(f"strain run failed: {self.process.communicate()[1].strip()}")

    def job(self):
        """The pids of the job."""
        return [p for p in descendants(self.process.pid) if p != self.recorder]

    def watch(self, period=0.05):
        """Waits for the end; returns the last (CPU ns, wall ns) of the recorder, read from outside."""
        start = time.monotonic_ns()
        last = (0, 0)
        while self.process.poll() is None:
            used = cpu_ns(self.recorder)
            if used is not None:
                last = (used, time.monotonic_ns() - start)
            time.sleep(period)
        return last

    def wait(self):
        """Waits for the end; returns the output of the job and of strain."""
        output, said = self.process.communicate()
        return output, said

    def stop(self):
        """Ends the job."""
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate()


def query(path, sql, *values):
    """Rows of a run's metadata."""
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5)
    try:
        return database.execute(sql, values).fetchall()
    finally:
        database.close()


def run_value(path, key):
    """A value of the table `run`, or None."""
    rows = query(path, "SELECT value FROM run WHERE key = ?", key)
    return rows[0][0] if rows else None


def sql(path, statement):
    """Rows of `strain sql`, which decodes samples."""
    found = subprocess.run(
        [STRAIN, "sql", path, statement, "--json"], capture_output=True, text=True, check=False
    )
    if found.returncode:
        raise RuntimeError(found.stderr.strip())
    return [list(row.values()) for row in json.loads(found.stdout)]


def median(values):
    """The median of a list."""
    return statistics.median(values)


def interval(values):
    """The median, and its 95 % interval by order statistics."""
    ordered = sorted(values)
    half = 0.98 * len(ordered) ** 0.5
    low, high = int(len(ordered) / 2 - half), int(len(ordered) / 2 + half)
    return statistics.median(ordered), ordered[max(low, 0)], ordered[min(high, len(ordered) - 1)]


def events(path, kind):
    """Texts of a run's events of one kind."""
    return [row[0] for row in query(path, "SELECT text FROM event WHERE kind = ?", kind)]
