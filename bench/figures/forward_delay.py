# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""The delay that --epoch-pattern adds to a line of the job's output through a pipe."""

import subprocess

from harness import STRAIN, Result, environment, median, program, run_file

LINES, GAP_US, ROUNDS = 1500, 2000, 4


def ages(writer):
    """Median and 99th percentile of the age of lines at the end of a pipe, in us."""
    writing = subprocess.Popen(
        writer, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment()
    )
    read = subprocess.run([program("lines"), "read"], stdin=writing.stdout, capture_output=True,
                          text=True, check=True)  # fmt: skip
    writing.stdout.close()
    writing.wait()
    return [int(word) / 1000 for word in read.stdout.split()]


def measure():
    """Yields the line."""
    job = [program("lines"), "write", str(LINES), str(GAP_US)]
    bare, ours = [], []
    with run_file() as path:
        recorded = [STRAIN, "run", "--force", "-o", path, "--epoch-pattern", r"^epoch (?<epoch>\d+)",
                    "--", *job]  # fmt: skip
        for _ in range(ROUNDS):
            bare.append(ages(job))
            ours.append(ages(recorded))
    typical, plain = median([a[0] for a in ours]), median([a[0] for a in bare])
    slow, plain_slow = median([a[1] for a in ours]), median([a[1] for a in bare])
    yield Result("delay of a line with --epoch-pattern",
                 f"median {typical:.0f} us (99 % within {slow:.0f})",
                 f"a pipe {plain:.0f} us ({plain_slow:.0f})", f"{typical - plain:.0f} us more",
                 "median under 100 us", typical - plain < 100)  # fmt: skip
