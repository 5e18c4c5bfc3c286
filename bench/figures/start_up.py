# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""The time that `strain run` adds to an empty job: with run file, verdict and summary."""

import subprocess
import time

from harness import STRAIN, Result, environment, median, run_file

ROUNDS = 41
AIM_MS = 30

# The least for a recorder outside the job: a process that stays, and one for the job.
FLOOR = ["sh", "-c", "/bin/true; exit"]


def milliseconds(command):
    """The duration of a command."""
    start = time.perf_counter()
    subprocess.run(command, capture_output=True, env=environment(), check=True)
    return (time.perf_counter() - start) * 1000


def measure():
    """Yields the line. The three commands take turns."""
    bare, floor, ours = [], [], []
    with run_file() as path:
        for _ in range(ROUNDS):
            bare.append(milliseconds(["/bin/true"]))
            floor.append(milliseconds(FLOOR))
            ours.append(milliseconds([STRAIN, "run", "--force", "-o", path, "--", "/bin/true"]))
    added = median(ours) - median(bare)
    yield Result("strain run true, start to exit, over true alone", f"{added:.1f} ms",
                 f"a second process {median(floor) - median(bare):.1f} ms",
                 f"true alone {median(bare):.1f} ms", f"at most {AIM_MS} ms",
                 added <= AIM_MS)  # fmt: skip
