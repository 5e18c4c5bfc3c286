# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""What `strain run` adds to a job that ends at once."""

import subprocess
import time

from harness import STRAIN, Result, environment, median, run_file

ROUNDS = 15


def seconds(command):
    """How long a command takes."""
    start = time.perf_counter()
    subprocess.run(command, capture_output=True, env=environment(), check=True)
    return time.perf_counter() - start


def measure():
    """Yields the line."""
    bare, ours = [], []
    with run_file() as path:
        for _ in range(ROUNDS):
            bare.append(seconds(["true"]))
            ours.append(seconds([STRAIN, "run", "--force", "-o", path, "--", "true"]))
    added = (median(ours) - median(bare)) * 1000
    yield Result("strain run true, start to exit", f"{median(ours) * 1000:.0f} ms",
                 f"true {median(bare) * 1000:.1f} ms", f"{added:.0f} ms more", "under 0.25 s",
                 added < 250)  # fmt: skip
