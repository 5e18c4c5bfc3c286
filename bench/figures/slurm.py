# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Sweeps under a private Slurm of three nodes (tools/slurm.sh): the cost of a trial beside that of a task of a bare array, whether
every trial runs once after kills, and the outcomes of trials that Slurm ends."""

import argparse
import contextlib
import json
import os
import random
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

from harness import ROOT, STRAIN, Result, Skip, environment

TOOL = ROOT / "tools/slurm.sh"
KILLS = 10
PATIENCE_S = 1800


def parse(words):
    """Options of the figure."""
    parser = argparse.ArgumentParser(prog="bench/run slurm")
    parser.add_argument("--trials", type=int, default=1000, help="trials of `true`")
    return parser.parse_args(words)


@contextlib.contextmanager
def slurm(folder, cpus):
    """A Slurm in a folder; yields the environment of its clients."""
    where = folder / "slurm"
    if not all(shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin") for name in ("slurmctld", "slurmd", "sbatch")):
        raise Skip("Slurm is not installed (slurmctld, slurmd, slurm-client)")
    # --insecure: also as root; it is stopped below, and ends within an hour
    subprocess.run([TOOL, "start", where, "--cpus", str(cpus), "--insecure"], check=True, stdout=subprocess.DEVNULL)
    try:
        yield {**environment(), "SLURM_CONF": str(where / "slurm.conf"), "STRAIN_HOME": str(STRAIN.parent)}
    finally:
        subprocess.run([TOOL, "stop", where], check=True)


def plan_of(folder, command, values, **more):
    """Writes a plan (JSON is YAML) into a new folder and returns that."""
    folder.mkdir()
    plan = {"command": ["sh", "-c", command], "parameters": {"n": {"values": values}}, "env": {"N": "${n}"},
            "executor": "slurm", "resources": {"cpus": 1, "memory": "200MiB"}, **more}  # fmt: skip
    (folder / "plan.yaml").write_text(json.dumps(plan))
    return folder


def start(folder, env):
    """Starts a sweep in a folder."""
    return subprocess.Popen([STRAIN, "sweep", "plan.yaml"], cwd=folder, env=env, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)  # fmt: skip


def finish(folder, env):
    """Runs a sweep to its end; returns its table."""
    done = subprocess.run([STRAIN, "sweep", "plan.yaml", "--json"], cwd=folder, env=env, check=True, capture_output=True,
                          timeout=PATIENCE_S)  # fmt: skip
    return json.loads(done.stdout)


def wait_for(condition):
    """Waits until a condition holds."""
    until = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > until:
            raise RuntimeError("it took too long")
        time.sleep(0.05)


def lines(path):
    """The lines of a file that may not exist yet."""
    return path.read_text().split() if path.exists() else []


def bare_array(place, env, trials):
    """The seconds of an array whose tasks append a line to a file."""
    place.mkdir()
    began = time.perf_counter()
    subprocess.run(["sbatch", f"--array=1-{trials}", "--mem=200", "--output=/dev/null", "--wrap", "echo x >>ran"], cwd=place,
                   env=env, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)  # fmt: skip
    wait_for(lambda: len(lines(place / "ran")) >= trials)
    return time.perf_counter() - began


def trivial(folder, env, trials):
    """Yields the time of a trial beside that of a task of a bare array, of which one runs before the sweep and one after: the
    load of a shared machine drifts."""
    array_s = bare_array(folder / "before", env, trials)
    place = plan_of(folder / "trivial", "echo x >>ran", list(range(trials)))
    began = time.perf_counter()
    table = finish(place, env)
    sweep_s = time.perf_counter() - began
    array_s = (array_s + bare_array(folder / "after", env, trials)) / 2
    if table["outcomes"] != {"success": trials} or len(lines(place / "ran")) != trials:
        raise RuntimeError(f"not every trial is a success: {table['outcomes']}")
    added_ms = (sweep_s - array_s) / trials * 1000
    yield Result(f"a sweep of {trials} trials of true in Slurm", f"{sweep_s / trials * 1000:.0f} ms each",
                 f"sbatch --array {array_s / trials * 1000:.0f} ms", f"{added_ms:.0f} ms more each",
                 "at most 200 ms", added_ms <= 200)  # fmt: skip


def killed(folder, env):
    """Yields whether every trial runs once although the sweep is killed."""
    place = plan_of(folder / "killed", "echo $N >>begun; sleep 1; echo $N >>ended", list(range(12)))
    for _ in range(KILLS):
        process = start(place, env)
        time.sleep(random.uniform(0.0, 0.8))
        process.kill()
        process.wait()
    table = finish(place, env)
    counts = [Counter(lines(place / name)) for name in ("begun", "ended")]
    once = all(len(c) == 12 and set(c.values()) == {1} for c in counts) and table["outcomes"] == {"success": 12}
    yield Result(f"12 trials on three nodes, the sweep killed {KILLS} times", f"{sum(counts[0].values())} begun, "
                 f"{sum(counts[1].values())} ended", "", "", "12 and 12, each once", once)  # fmt: skip


def ended(folder, env):
    """Yields the outcomes of trials that Slurm ends in four ways."""
    hog = 'exec /usr/bin/python3 -c "import time; x = bytearray(600 << 20); time.sleep(600)"'
    kinds = ["memory", "time", "cancel", "node"]
    expected = {"memory": "out_of_memory", "time": "time_limit", "cancel": "cancelled", "node": "node_failure"}
    place = plan_of(folder / "ended", f"echo $N >>begun; case $N in memory) {hog};; *) exec sleep 600;; esac", kinds,
                    order="plan", slurm={"time": "1min", "requeue": False, "options": ["--exclusive"]})  # fmt: skip
    process = start(place, env)
    wait_for(lambda: len(lines(place / "begun")) == 4)
    ledger = place / "plan.sweep/slurm"

    def task(configuration):
        ticket = next(ledger.glob(f"{configuration:04}-1.*.taken")).name.split(".")
        return f"{(ledger / (ticket[2] + '.job')).read_text().strip()}_{ticket[3]}"

    node = subprocess.run(["squeue", "-h", "-o", "%N", "-j", task(4)], env=env, check=True, capture_output=True, text=True)
    subprocess.run(["scancel", task(3)], env=env, check=True)
    subprocess.run([TOOL, "kill", folder / "slurm", node.stdout.strip()], check=True)
    process.wait(PATIENCE_S)
    found = {}
    for path in (place / "plan.sweep").glob("*.strain"):
        shown = subprocess.run([STRAIN, "show", "--json", path], env=env, check=True, capture_output=True)
        run = json.loads(shown.stdout)["run"]
        found[run["labels"]["n"]] = run["outcome"]
    yield Result("trials that Slurm ends", ", ".join(f"{kind}: {found.get(kind)}" for kind in kinds), "", "",
                 "each its own outcome", found == expected)  # fmt: skip


def measure(options=None):
    """Yields the lines."""
    options = options or parse([])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with slurm(folder, 4) as env:
            yield from killed(folder, env)
        with slurm(folder, 4) as env:
            yield from ended(folder, env)
        with slurm(folder, 1) as env:
            yield from trivial(folder, env, options.trials)
