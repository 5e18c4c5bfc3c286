# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""What the hooks cost a PyTorch job: a mark from Python, all hooks of a step, throughput."""

import os
import statistics
import subprocess

from harness import PYTHON, ROOT, STRAIN, Result, environment, run_file, trainer_script

SCRIPT = ROOT / "bench/hooked_steps.py"
PAIRS = {"mark": 400, "small": 300, "cnn": 100}
STARTS = 20


def output(*arguments):
    """Lines of the job, recorded."""
    with run_file() as path:
        command = [STRAIN, "run", "--force", "-o", path, "--", PYTHON, SCRIPT, *arguments]
        out = subprocess.run([str(c) for c in command], env=environment() | {"OMP_NUM_THREADS": "1"},
                             check=True, capture_output=True, text=True).stdout  # fmt: skip
    return out.splitlines()


def interval(values):
    """The median, and its 95 % interval by order statistics."""
    ordered = sorted(values)
    half = 0.98 * len(ordered) ** 0.5
    low, high = int(len(ordered) / 2 - half), int(len(ordered) / 2 + half)
    return statistics.median(ordered), ordered[max(low, 0)], ordered[min(high, len(ordered) - 1)]


def starts(hooked):
    """Median time of `python3 -c pass`, recorded, with and without hooks, in turns; seconds."""
    took = []
    with run_file() as path:
        options = [] if hooked else ["--no-hooks"]
        script = ("import subprocess, sys, time\nfor _ in range(%d):\n t = time.perf_counter()\n"
                  " subprocess.run([sys.executable, '-c', 'pass'])\n print(time.perf_counter() - t)")
        command = [STRAIN, "run", "--force", "-o", path, *options, "--", PYTHON, "-c",
                   script % STARTS]  # fmt: skip
        out = subprocess.run([str(c) for c in command], env=environment(), check=True,
                             capture_output=True, text=True).stdout  # fmt: skip
        took = [float(line) for line in out.split()]
    return statistics.median(took)


def measure():
    """Yields the lines."""
    folder = os.path.dirname(trainer_script())
    rows = [tuple(map(float, line.split())) for line in output("mark", PAIRS["mark"])]
    mark, clock = (statistics.median(column) for column in zip(*rows))
    yield Result("a mark from Python", f"{mark:.2f} us", f"clock {clock:.2f} us",
                 f"{mark / clock:.1f} times", "at most 0.5 us", mark <= 0.5)  # fmt: skip
    for kind, what in (("small", "hooks of a PyTorch step"), ("cnn", "hooks, CNN at batch 32")):
        lines = output(folder, kind, PAIRS[kind])
        middle, low, high = interval([float(line) for line in lines[:-1]])
        step = float(lines[-1].split()[1])
        share = f"{middle / step:.2%} of it ({low / step:.2%} to {high / step:.2%})"
        if kind == "small":
            yield Result(what, f"{middle:.1f} us ({low:.1f} to {high:.1f})",
                         f"a step of nearly nothing {step:.0f} us", f"{PAIRS[kind]} pairs",
                         "at most 15 us", middle <= 15)  # fmt: skip
        else:
            yield Result(what, f"{middle:.1f} us ({low:.1f} to {high:.1f})", f"a step {step:.0f} us",
                         share, "at most 0.5 %", middle / step <= 0.005)  # fmt: skip
    pairs = [(starts(True), starts(False)) for _ in range(3)]
    hooked, bare = (statistics.median(column) for column in zip(*pairs))
    yield Result("start of a Python that trains nothing", f"{hooked * 1000:.2f} ms",
                 f"--no-hooks {bare * 1000:.2f} ms", f"{(hooked - bare) * 1e6:+.0f} us",
                 "at most 1 ms more", hooked - bare <= 0.001)  # fmt: skip
