# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""The PyTorch job recorded with defaults: the recorder's CPU time, slowed ticks, the file's size."""

from harness import PYTHON, Recording, Result, events, run_file, sql, trainer_script

EPOCH = r"^epoch (?<epoch>\d+)/\d+ +loss (?<loss>[0-9.]+) +accuracy (?<accuracy>[0-9.]+)"


def measure():
    """Yields the lines."""
    job = [PYTHON, trainer_script(), "--dataset", "dt1", "--batch-size", "32", "--workers", "2",
           "--epochs", "2"]  # fmt: skip
    with run_file() as path:
        recording = Recording(path, job, "--epoch-pattern", EPOCH)
        cpu, wall = recording.watch()
        recording.wait()
        slowed = events(path, "interval")
        share = cpu / wall
        yield Result("recorder CPU, defaults, PyTorch job", f"{share:.2%} of one core", "",
                     f"slowed {len(slowed)} times", "at most 1 %, no tick slowed",
                     share <= 0.01 and not slowed)  # fmt: skip
        values = sql(path, "SELECT count(value) FROM samples")[0][0]
        size = path.stat().st_size
        yield Result("run file, PyTorch job", f"{size / values:.2f} byte per value",
                     f"8 plain, {size / 1000:.0f} kB in all", f"{values} values",
                     "at most 0.5", size / values <= 0.5)  # fmt: skip
