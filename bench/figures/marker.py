# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""The cost of a mark for the job, next to a reading of the clock; recorded and not recorded."""

import os
import subprocess
import tempfile

from harness import BUILD, Result, program

ROUNDS = "2000"
LIBRARY = BUILD / "libstrain-nvtx.so"


def cost(directory):
    """The clock and a mark, in ns each. directory: of the rings; None: not recorded."""
    environment = {k: v for k, v in os.environ.items() if k != "STRAIN_MARKERS"}
    if directory:
        environment["STRAIN_MARKERS"] = directory
    out = subprocess.run(
        [program("marker"), ROUNDS], env=environment, check=True, capture_output=True, text=True
    )
    return tuple(map(float, out.stdout.split()))


def nvtx_cost(directory):
    """Two readings of the clock, a range, and a range in a domain, in ns each."""
    environment = os.environ | {"STRAIN_MARKERS": directory, "NVTX_INJECTION64_PATH": str(LIBRARY)}
    out = subprocess.run(
        [program("nvtx"), directory, ROUNDS],
        env=environment, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return tuple(map(float, out.stdout.split()))


def measure():
    """Yields the lines."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        clock, mark = cost(directory)
    _, unset = cost(None)
    yield Result("a mark", f"{mark:.1f} ns", f"clock {clock:.1f} ns", f"{mark - clock:+.1f} ns",
                 "at most 25 ns more", mark - clock <= 25)  # fmt: skip
    yield Result("  where nothing records", f"{unset:.1f} ns", "", "", "at most 5 ns", unset <= 5)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        clocks, pushed, in_domain = nvtx_cost(directory)
    for what, cost_ns in (("an NVTX range, pushed and popped", pushed),
                          ("  in a domain, its name registered", in_domain)):  # fmt: skip
        yield Result(what, f"{cost_ns:.1f} ns", f"two clocks {clocks:.1f} ns",
                     f"{cost_ns - clocks:+.1f} ns", "at most 50 ns more", cost_ns - clocks <= 50)  # fmt: skip
