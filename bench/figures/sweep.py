# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""What a sweep costs beside its jobs, whether it comes through being killed, and whether what it says is true."""

import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

from harness import BUILD, STRAIN, Result, environment, median

TRIALS = 1000
KILLS = 20
ROUNDS = 5
TRAINER = BUILD / "workloads/onednn/onednn-train"


def plan_of(folder, command, parameters, **more):
    """Writes a plan (JSON is YAML) and returns its path."""
    plan = {"command": command, "parameters": {k: {"values": v} for k, v in parameters.items()}, **more}
    path = folder / "plan.yaml"
    path.write_text(json.dumps(plan))
    return path


def sweep(path, *options):
    """Runs a sweep beside its plan; returns what it took and its table."""
    start = time.perf_counter()
    done = subprocess.run([STRAIN, "sweep", path.name, "--json", *options], cwd=path.parent, check=True,
                          capture_output=True, env=surroundings(path.parent))  # fmt: skip
    return time.perf_counter() - start, json.loads(done.stdout)


def surroundings(folder):
    """Our environment with an index of runs of the folder's own."""
    return environment() | {"XDG_CACHE_HOME": str(folder / "cache")}


def trivial(folder):
    """Yields what trials of `true` cost, and their tables."""
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
    shutil.rmtree(folder / "cache")
    cold, _ = sweep(path)
    yield Result("its table", f"{again:.2f} s", f"without an index {cold:.2f} s", "", "at most 1 s", again <= 1)


def killed(folder):
    """Yields whether every trial is there once after kills at random moments."""
    path = plan_of(folder, ["sh", "-c", "sleep 0.1; echo ${n}"], {"n": list(range(60))})
    runs = folder / "plan.sweep"
    before, lost, kills = {}, 0, 0
    while kills < KILLS:
        process = subprocess.Popen([STRAIN, "sweep", path.name], cwd=folder, env=surroundings(folder),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        time.sleep(random.uniform(0.02, 0.6))
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
        now = {f.name: f.stat().st_ino for f in runs.glob("*.strain")}
        # What was complete is the same file still.
        lost += sum(now.get(name) != inode for name, inode in before.items())
        before = now
    _, table = sweep(path)
    counts = Counter(f.name for f in runs.glob("*.strain"))
    rest = [f.name for f in runs.iterdir() if f.suffix not in (".strain", ".yaml") and f.name != "lock"]
    fine = len(counts) == 60 and table["outcomes"] == {"success": 60} and lost == 0 and not rest
    yield Result(f"a sweep killed {kills} times and started again", f"{len(counts)} runs",
                 f"60 trials, {len(before)} of them before the last start",
                 f"{lost} changed, {len(rest)} files too many", "each once", fine)  # fmt: skip


WATCHED = 'start=$(date +%s%N); "$@" >/dev/null; end=$(date +%s%N); echo $((end - start)) >>"$0"'


def bare_seconds(command, batches):
    """What the bare commands take, by a stopwatch."""
    start = time.perf_counter()
    for batch in batches:
        subprocess.run([*command, str(batch)], check=True, capture_output=True, env=environment())
    return time.perf_counter() - start


def recorded_seconds(path, name):
    """What a sweep of them says that they took."""
    _, table = sweep(path, "-o", name)
    return sum(row["duration_seconds"] for row in table["configurations"])


def apart(what, ratios, beside):
    """A line about what should be one."""
    middle = median(ratios)
    return Result(what, f"{middle:.4f} of {beside}", f"{len(ratios)} turns: {min(ratios):.3f} to {max(ratios):.3f}",
                  f"{(middle - 1) * 100:+.1f} %", "within 1 %", abs(middle - 1) <= 0.01)  # fmt: skip


def stopwatch(folder):
    """Yields how far durations are from a stopwatch around the bare command, and around the same run."""
    if not os.access(TRAINER, os.X_OK):
        return
    batches = [32, 128]
    command = [str(TRAINER), "--samples", "9600", "--epochs", "1", "--workers", "1", "--batch-size"]
    parameters = {"batch_size": batches}
    path = plan_of(folder, [*command, "${batch_size}"], parameters, order="plan")
    ratios = []
    for turn in range(ROUNDS):
        # In alternating order, so that a drift of the machine hits both alike.
        if turn % 2 == 0:
            bare = bare_seconds(command, batches)
        ours = recorded_seconds(path, f"turn{turn}")
        if turn % 2 == 1:
            bare = bare_seconds(command, batches)
        ratios.append(ours / bare)
    yield apart("durations of a sweep of the CNN", ratios, "a stopwatch's around the bare command")
    times = folder / "times"
    path = plan_of(folder, ["sh", "-c", WATCHED.replace("${", "$${"), str(times), *command, "${batch_size}"],
                   parameters, order="plan")  # fmt: skip
    ours = recorded_seconds(path, "watched")
    inner = sum(int(line) for line in times.read_text().split()) / 1e9
    yield apart("the same", [ours / inner], "one around the job in the same run")


def measure():
    """Yields the lines."""
    for part in (trivial, killed, stopwatch):
        with tempfile.TemporaryDirectory(prefix="strain-bench-") as folder:
            yield from part(Path(folder))
