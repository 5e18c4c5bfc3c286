# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""What a mark costs the job, beside a reading of the clock, and where nothing records it."""

import os
import subprocess
import tempfile

from harness import Result, program

ROUNDS = "2000"


def cost(directory):
    """The clock and a mark, ns each; directory: of the rings, None for none."""
    environment = {k: v for k, v in os.environ.items() if k != "STRAIN_MARKERS"}
    if directory:
        environment["STRAIN_MARKERS"] = directory
    out = subprocess.run(
        [program("marker"), ROUNDS], env=environment, check=True, capture_output=True, text=True
    )
    return tuple(map(float, out.stdout.split()))


def measure():
    """Yields the lines."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        clock, mark = cost(directory)
    _, unset = cost(None)
    yield Result("a mark", f"{mark:.1f} ns", f"clock {clock:.1f} ns", f"{mark - clock:+.1f} ns",
                 "at most 25 ns more", mark - clock <= 25)  # fmt: skip
    yield Result("  where nothing records", f"{unset:.1f} ns", "", "", "at most 5 ns", unset <= 5)
