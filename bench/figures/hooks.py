# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""The cost of the hooks for a PyTorch job: a mark from Python, all hooks of a step, throughput."""

import os
import statistics
import subprocess
from pathlib import Path

from harness import PYTHON, ROOT, STRAIN, Result, environment, interval, run_file, trainer_script

SCRIPT = ROOT / "bench/hooked_steps.py"
PHASE_SCRIPT = ROOT / "bench/phase_cost.py"
PHASES = "60"  # rounds
PAIRS = {"mark": 400, "small": 300, "cnn": 700, "jax": 300}
STARTS = 40
# Freed memory of tensors is kept: page faults would hide a difference of a thousandth of a step.
KEEP = {name: str(1 << 32) for name in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_")}
FRAMEWORKS = Path(os.environ.get("STRAIN_FRAMEWORKS", ROOT / ".frameworks")) / "python/bin/python"


def output(*arguments, python=PYTHON, script=SCRIPT):
    """Output lines of the recorded job, with one thread."""
    with run_file() as path:
        command = [STRAIN, "run", "--force", "-o", path, "--", python, script, *arguments]
        out = subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True,
                             env=environment() | KEEP | {"OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"},
                             ).stdout  # fmt: skip
    return out.splitlines()


def starts():
    """Pairs of times of `python3 -c pass`, with hooks and without, in seconds."""
    script = (
        "import os, random, subprocess, sys, time\n"
        "bare = {k: v for k, v in os.environ.items() if k != 'PYTHONPATH'}\n"
        "for _ in range(%d):\n"
        " took = {}\n"
        " for on in random.sample((True, False), 2):\n"
        "  start = time.perf_counter()\n"
        "  subprocess.run([sys.executable, '-c', 'pass'], env=os.environ if on else bare)\n"
        "  took[on] = time.perf_counter() - start\n"
        " print(took[True], took[False])\n"
    )
    with run_file() as path:
        command = [STRAIN, "run", "--force", "-o", path, "--", PYTHON, "-c", script % STARTS]
        out = subprocess.run([str(c) for c in command], env=environment(), check=True,
                             capture_output=True, text=True).stdout  # fmt: skip
    return [tuple(map(float, line.split())) for line in out.splitlines()]


def differences(*arguments, python=PYTHON):
    """The interval of the differences of the pairs, and the step without hooks, in us."""
    lines = output(*arguments, python=python)
    return interval([float(line) for line in lines[:-1]]), float(lines[-1].split()[1])


def small_step(what, *arguments, python=PYTHON):
    """All hooks of a nearly empty step."""
    (middle, low, high), step = differences(*arguments, python=python)
    return Result(what, f"{middle:.1f} us ({low:.1f} to {high:.1f})",
                  f"a step of nearly nothing {step:.0f} us", f"{arguments[-1]} pairs",
                  "at most 15 us", middle <= 15)  # fmt: skip


def phases():
    """A phase of the package `strain`, named at its start, relative to an empty with-statement:
    recorded and not recorded."""
    alone = environment() | {"PYTHONPATH": str(ROOT / "hooks/python"), "PYTHONDONTWRITEBYTECODE": "1"}
    lines = {"recorded": output(PHASES, script=PHASE_SCRIPT),
             "not recorded": subprocess.run([PYTHON, PHASE_SCRIPT, PHASES], env=alone, check=True,
                                            capture_output=True, text=True).stdout.splitlines()}  # fmt: skip
    for (how, rows), most in zip(lines.items(), (20, 2)):
        _, named, empty = (statistics.median(column)
                           for column in zip(*(map(float, row.split()) for row in rows)))  # fmt: skip
        yield Result(f"a phase from Python, {how}", f"{named:.0f} ns", f"an empty with {empty:.0f} ns",
                     f"{named / empty:.1f} times", f"at most {most} times", named <= most * empty)  # fmt: skip


def measure():
    """Yields the lines."""
    yield from phases()
    folder = os.path.dirname(trainer_script())
    rows = [tuple(map(float, line.split())) for line in output("mark", PAIRS["mark"])]
    first, mark, clock = (statistics.median(column) for column in zip(*rows))
    yield Result("a mark from Python", f"{mark:.2f} us, after a pause {first:.2f} us",
                 f"clock {clock:.2f} us", f"{mark / clock:.1f} times", "at most 0.5 us",
                 mark <= 0.5)  # fmt: skip
    yield small_step("hooks of a PyTorch step", folder, "small", PAIRS["small"])
    (middle, low, high), step = differences(folder, "cnn", PAIRS["cnn"])
    yield Result("hooks, CNN at batch 32", f"{middle:.0f} us ({low:.0f} to {high:.0f})",
                 f"a step {step:.0f} us, {PAIRS['cnn']} pairs",
                 f"{middle / step:.2%} of it ({low / step:.2%} to {high / step:.2%})",
                 "at most 0.5 %, and so is the interval", high / step <= 0.005)  # fmt: skip
    if FRAMEWORKS.exists():
        yield small_step("hooks of a JAX step", "jax", PAIRS["jax"], python=FRAMEWORKS)
    hooked, bare = zip(*starts())
    more, low, high = interval([a - b for a, b in zip(hooked, bare)])
    yield Result("start of a Python that trains nothing", f"{statistics.median(hooked) * 1000:.2f} ms",
                 f"without hooks {statistics.median(bare) * 1000:.2f} ms",
                 f"{more * 1e6:+.0f} us ({low * 1e6:+.0f} to {high * 1e6:+.0f})",
                 "at most 1 ms more", more <= 0.001)  # fmt: skip
