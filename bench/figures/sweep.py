# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""The cost of a sweep besides its jobs, whether it survives being killed, and whether its durations are right."""

import json
import os
import random
import signal
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

from harness import BUILD, PROGRAMS, STRAIN, Result, environment, interval

TRIALS = 1000
KILLS = 20
TRAINER = BUILD / "workloads/onednn/onednn-train"
STOPWATCH = PROGRAMS / "stopwatch"
# Many short rounds: a shared machine drifts within seconds.
ROUNDS_S = 130
SAMPLES = 480
BATCHES = (32, 128)
AIM = 0.01


def plan_of(folder, command, parameters, **more):
    """Writes a plan (JSON is YAML) and returns its path."""
    plan = {"command": command, "parameters": {k: {"values": v} for k, v in parameters.items()}, **more}
    path = folder / "plan.yaml"
    path.write_text(json.dumps(plan))
    return path


def sweep(path, *options):
    """Runs a sweep in the folder of its plan; returns its duration and its table."""
    start = time.perf_counter()
    done = subprocess.run([STRAIN, "sweep", path.name, "--json", *options], cwd=path.parent, check=True,
                          capture_output=True, env=environment())  # fmt: skip
    return time.perf_counter() - start, json.loads(done.stdout)


def trivial(folder):
    """Yields the cost of trials of `true`, and of their tables."""
    path = plan_of(folder, ["true"], {"n": list(range(TRIALS))}, env={"N": "${n}"})
    script = f"i=0; while [ $i -lt {TRIALS} ]; do i=$((i + 1)); /bin/true; done"
    start = time.perf_counter()
    subprocess.run(["sh", "-c", script], check=True, env=environment())
    bare = time.perf_counter() - start
    ours, table = sweep(path)
    added = (ours - bare) / TRIALS * 1000
    if table["outcomes"] != {"success": TRIALS}:
        raise RuntimeError(f"not every trial is a success: {table['outcomes']}")
    yield Result(f"a sweep of {TRIALS} trials of true", f"{ours / TRIALS * 1000:.1f} ms each",
                 f"a loop in sh {bare / TRIALS * 1000:.1f} ms", f"{added:.1f} ms more each",
                 "at most 30 ms", added <= 30)  # fmt: skip
    again, _ = sweep(path)
    yield Result("its table", f"{again:.2f} s", "", "", "at most 1 s", again <= 1)


def killed(folder):
    """Yields whether every trial exists exactly once after kills at random moments."""
    path = plan_of(folder, ["sh", "-c", "sleep 0.1; echo ${n}"], {"n": list(range(60))})
    runs = folder / "plan.sweep"
    before, lost, kills = {}, 0, 0
    while kills < KILLS:
        process = subprocess.Popen([STRAIN, "sweep", path.name], cwd=folder, env=environment(),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        time.sleep(random.uniform(0.02, 0.6))
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
        now = {f.name: f.stat().st_ino for f in runs.glob("*.strain")}
        # Complete trials must be the same files as before.
        lost += sum(now.get(name) != inode for name, inode in before.items())
        before = now
    _, table = sweep(path)
    counts = Counter(f.name for f in runs.glob("*.strain"))
    rest = [f.name for f in runs.iterdir() if f.suffix not in (".strain", ".yaml") and f.name != "lock"]
    fine = len(counts) == 60 and table["outcomes"] == {"success": 60} and lost == 0 and not rest
    yield Result(f"a sweep killed {kills} times and started again", f"{len(counts)} runs",
                 f"60 trials, {len(before)} of them before the last start",
                 f"{lost} changed, {len(rest)} files too many", "each once", fine)  # fmt: skip


def timed(folder, batch, number):
    """A job wrapped in a stopwatch that writes to a file of its own: (command, file)."""
    times = folder / f"times-{number}"
    return [str(STOPWATCH), str(times), str(TRAINER), "--samples", str(SAMPLES), "--epochs", "1",
            "--workers", "1", "--batch-size", batch], times  # fmt: skip


def bare_seconds(folder, batch, number):
    """The duration of the bare command, by the stopwatch."""
    command, times = timed(folder, str(batch), number)
    subprocess.run(command, check=True, capture_output=True, env=environment())
    return int(times.read_text()) / 1e9


def recorded_seconds(folder, batch, number):
    """The duration that a sweep reports, and that of the stopwatch in the same run."""
    command, times = timed(folder, "${batch_size}", number)
    path = plan_of(folder, command, {"batch_size": [batch]})
    _, table = sweep(path, "-o", f"{number}.sweep")
    (row,) = table["configurations"]
    return row["duration_seconds"], int(times.read_text()) / 1e9


def one_round(folder, number):
    """One round of ratios: bare over bare, sweep over bare, and sweep over the stopwatch in it."""
    batch = BATCHES[number % len(BATCHES)]
    took = {}
    turns = ["bare", "ours", "again"]
    first = number % len(turns)  # so that drift of the machine affects all alike
    for turn in turns[first:] + turns[:first]:
        seconds = recorded_seconds if turn == "ours" else bare_seconds
        took[turn] = seconds(folder, batch, f"{number}-{turn}")
    ours, watched = took["ours"]
    return took["again"] / took["bare"], ours / took["bare"], ours / watched


def off(found):
    """The largest distance of an interval from one."""
    _, low, high = found
    return max(abs(low - 1), abs(high - 1))


def agree(ours, floor):
    """Whether ours is one; None if the machine is too unsteady. Both are (middle, low, high)."""
    middle, low, high = ours[0], floor[1], floor[2]
    if abs(middle - 1) <= AIM:
        return True if off(floor) <= AIM else None
    return None if low <= middle <= high else False


def near(found):
    """Whether an interval's middle is one; None if only the interval may contain it."""
    middle, low, high = found
    return True if abs(middle - 1) <= AIM else None if low <= 1 + AIM and high >= 1 - AIM else False


def of_one(found):
    """A ratio and its interval as text."""
    return "{:.4f} ({:.4f} to {:.4f})".format(*found)


def stopwatch(folder):
    """Yields the deviation of durations from a stopwatch around the bare command, and around the same run."""
    if not os.access(TRAINER, os.X_OK):
        return
    rounds = []
    end = time.monotonic() + ROUNDS_S
    while time.monotonic() < end or len(rounds) < 3 * len(BATCHES):
        rounds.append(one_round(folder, len(rounds)))
    floor, ours, watched = map(interval, zip(*rounds))
    unsteady = f"this machine's bare command differs from itself by up to {off(floor):.1%}"
    yield Result("durations of a sweep of the CNN, over a stopwatch's around the bare command", of_one(ours),
                 f"a second bare command's {of_one(floor)}", f"{len(rounds)} rounds", "within 1 %",
                 agree(ours, floor), unsteady)  # fmt: skip
    yield Result("the same, over a stopwatch's in the same run", of_one(watched), "", f"{len(rounds)} runs",
                 "within 1 %", near(watched), "on this machine starting a process takes as long")  # fmt: skip


def measure():
    """Yields the lines."""
    for part in (trivial, killed, stopwatch):
        with tempfile.TemporaryDirectory(prefix="strain-bench-") as folder:
            yield from part(Path(folder))
