# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""The cost of listing and comparing many runs, from the page cache and from the disk."""

import os
import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path

from harness import ROOT, STRAIN, Result, environment, median

RUNS = 10000
TRIALS = 1000
FORGOTTEN = 1000  # runs
ROUNDS = 5
TRACE = ROOT / "tests/traces/schema-1004-onednn.strain"


def make_runs(folder):
    """Copies of one run, each with a different start time, written into the file in place."""
    data = TRACE.read_bytes()
    with sqlite3.connect(f"file:{TRACE}?immutable=1", uri=True) as run:
        [(start,)] = run.execute("SELECT value FROM run WHERE key = 'start_utc_ns'")
    if data.count(start.encode()) != 1:
        raise RuntimeError("the start is not in the file once")
    folder.mkdir()
    for i in range(RUNS):
        (folder / f"run-{i:05}.strain").write_bytes(data.replace(start.encode(), str(int(start) + i * 10**9).encode()))


def make_trials(folder):
    """The directory of a sweep: two labels with 20 and 10 values, five repeats."""
    folder.mkdir()
    (folder / "plan.yaml").write_text("command: x\n")
    data = TRACE.read_bytes()
    for i in range(TRIALS):
        path = folder / f"{i // 5 + 1:04}-{i % 5 + 1}.strain"
        path.write_bytes(data)
        run = sqlite3.connect(path)
        run.execute("PRAGMA synchronous = OFF")
        run.execute("DELETE FROM label")
        labels = {"batch_size": i // 5 % 20, "workers": i // 100, "trial": i // 5 + 1, "repeat": i % 5 + 1}
        run.executemany("INSERT INTO label VALUES (?, ?)", ((k, str(v)) for k, v in labels.items()))
        run.commit()
        run.close()


def timed(*command):
    """The duration of a command in seconds."""
    start = time.perf_counter()
    subprocess.run([STRAIN, *command], check=True, stdout=subprocess.DEVNULL, env=environment())
    return time.perf_counter() - start


def drop_pages(folder):
    """Removes the files of a folder from the page cache."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fdatasync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def from_disk_and_cache(folder, *command):
    """Seconds with the files on disk only, and the median with the files in the page cache."""
    drop_pages(folder)
    cold = timed(*command)
    return cold, median([timed(*command) for _ in range(ROUNDS)])


def forget(folder):
    """Removes the stored findings from the first runs of a folder, and deletes the other runs."""
    for i, path in enumerate(sorted(folder.glob("*.strain"))):
        if i >= FORGOTTEN:
            path.unlink()
            continue
        run = sqlite3.connect(path)
        run.execute("PRAGMA synchronous = OFF")
        run.execute("DELETE FROM finding")
        run.commit()
        run.close()


def look_at_all(folder):
    """The floor: seconds for a stat of every file."""
    start = time.perf_counter()
    with os.scandir(folder) as entries:
        for entry in entries:
            entry.stat()
    return time.perf_counter() - start


def measure():
    """Yields the lines."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_runs(folder / "runs")
        make_trials(folder / "a.sweep")
        cold, warm = from_disk_and_cache(folder / "runs", "ls", folder / "runs")
        floor = median([look_at_all(folder / "runs") for _ in range(ROUNDS)])
        yield Result(f"strain ls of {RUNS} runs", f"{warm:.2f} s, from the disk {cold:.2f} s",
                     f"stat of each {floor:.2f} s", f"{warm / floor:.1f} times", "at most 2 s",
                     max(warm, cold) <= 2)  # fmt: skip
        cold, warm = from_disk_and_cache(
            folder / "a.sweep", "compare", folder / "a.sweep", "--rows", "batch_size", "--columns", "workers",
            "--baseline", "workers=0")  # fmt: skip
        yield Result(f"a table of {TRIALS} trials", f"{warm:.2f} s, from the disk {cold:.2f} s", "", "",
                     "at most 1 s", max(warm, cold) <= 1)  # fmt: skip
        forget(folder / "runs")
        _, warm = from_disk_and_cache(folder / "runs", "ls", folder / "runs")
        yield Result(f"strain ls of {FORGOTTEN} runs without findings", f"{warm:.2f} s",
                     f"stat of all {RUNS} {floor:.2f} s", "", "at most 4 s", warm <= 4)  # fmt: skip
