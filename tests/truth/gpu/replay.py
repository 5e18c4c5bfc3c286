#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Replays of GPUs: the readings of a card, played by the fake NVML, and the expected verdict.

    replay.py [--json FILE] [--jobs N] [--keep DIR] [NAME.replay]...

Needs STRAIN, BUILD_ROOT and SOURCE_ROOT in the environment, as `make test` sets them. A replay is a
script of the fake (tests/fake/README.md) with these additional lines:

    title TEXT               what happens
    truth CAUSE              the cause, as the verdict names it ("no gpu-unused": any but this)
    job NAME=NUMBER ...      arguments of the job (job.c)
    environment NAME=VALUE   of strain and the job
    own NAME=VALUE           of the job only
    container 1              in a pid namespace of its own
    library old              the driver of 2020
    expect EXPRESSION        Python, over v (the verdict), e (its evidence: name to value), gpus, events
                             (kind to text), missing (metric to reason) and sure: high confidence, if the
                             machine was quiet enough for it
"""

import argparse
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HOST_PIDS = "pid:[4026531836]"
CONTAINER_PIDS = "pid:[4026532999]"
HERE = Path(__file__).resolve().parent
MISSING = "SELECT m.name, x.reason FROM missing x JOIN metric m ON m.id = x.metric"
WIDE = 0.1  # thresholds.h: a wider interval is uncertain
OF_THE_FIRST = r'"(headline|next|confidence)"|\["causes"\]\[0\]|^sure$'  # of the first cause
RECORDING_S = 120  # limit: a machine that takes longer cannot record


class Replay:
    """The file of a replay: its additional lines by name, each a list of values."""

    def __init__(self, path: Path):
        self.path = path
        self.name = path.stem
        self.lines: dict[str, list[str]] = {}
        for line in path.read_text().splitlines():
            word, _, rest = line.partition(" ")
            if word in ("title", "truth", "job", "environment", "own", "container", "library", "expect"):
                self.lines.setdefault(word, []).append(rest.strip())

    def one(self, word: str, otherwise: str = "") -> str:
        return self.lines.get(word, [otherwise])[-1]

    def pids(self) -> str:
        return CONTAINER_PIDS if self.one("container", "0") == "1" else HOST_PIDS


def environment_of(replay: Replay, script: Path) -> dict[str, str]:
    build = Path(os.environ["BUILD_ROOT"])
    fake = build / "tests/fake" / ("old" if replay.one("library") == "old" else "full")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("CUDA_", "NVIDIA_"))}
    env["LD_LIBRARY_PATH"] = f"{fake}:{env.get('LD_LIBRARY_PATH', '')}"
    env["STRAIN_FAKE_NVML"] = str(script)
    if os.readlink("/proc/self/ns/pid") != replay.pids() or replay.one("container") == "1":
        env["LD_PRELOAD"] = str(build / "tests/truth/gpu/libpids.so")
        env["STRAIN_REPLAY_PIDS"] = replay.pids()
        env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
    env.update(pair.split("=", 1) for pair in replay.lines.get("environment", []))
    return env


def record(replay: Replay, folder: Path) -> dict:
    """Records the job of a replay and returns what `strain show --json` prints."""
    script = folder / "script"
    shutil.copy(replay.path, script)
    env = environment_of(replay, script)
    strain, run = os.environ["STRAIN"], folder / "run.strain"
    job = [str(Path(os.environ["BUILD_ROOT"]) / "tests/truth/gpu/gpu_job"), *replay.one("job").split()]
    own = replay.lines.get("own", [])
    # No reading may be left out on a slow machine.
    command = [strain, "run", "--overhead", "90%", "-o", str(run), "--", *(["env", *own] if own else []), *job]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=RECORDING_S)
    if done.returncode >= 70:
        raise RuntimeError(f"the job did not run: {done.returncode}: {done.stderr}")
    shown = subprocess.run([strain, "show", "--json", str(run)], capture_output=True, text=True, check=True)
    missing = subprocess.run([strain, "sql", "--csv", str(run), MISSING], capture_output=True, text=True, check=True)
    return json.loads(shown.stdout) | {"reasons": list(csv.reader(missing.stdout.splitlines()[1:]))}


def view(shown: dict) -> dict:
    """The names for expectations."""
    verdict = shown["verdict"]
    share = verdict["causes"][0]["share"] if verdict["causes"] else {}
    low, high = share.get("low") or 0, share.get("high") or 0
    return {
        "v": verdict,
        "sure": verdict["confidence"] == "high" or verdict["needed"] != "" or WIDE < high - low,
        "e": {row["what"]: row["value"] for row in verdict["evidence"]},
        "gpus": shown["gpus"],
        "events": {row["kind"]: row["text"] for row in shown["events"]},
        "missing": dict(shown["reasons"]),
        "re": re,
    }


def holds(expression: str, names: dict) -> bool:
    try:
        return bool(eval(expression, {}, names))  # the expressions are from this repository
    except (KeyError, IndexError, TypeError):
        return False


def is_right(truth: str, verdict: dict, evidence: dict) -> bool:
    """Whether the verdict is right. If other programs use this machine's CPUs, that may be the largest cause."""
    found = verdict["bottleneck"]
    if truth.startswith("no "):
        return found != truth[3:]
    input_too = truth == "input" and found.startswith("input-")
    return found == truth or input_too or (found == "contention" and "other programs" in evidence)


def play(replay: Replay, keep: Path | None) -> dict:
    folder = Path(tempfile.mkdtemp(prefix=f"strain-{replay.name}-", dir=keep))
    result = {"name": replay.name, "title": replay.one("title"), "truth": replay.one("truth"), "failed": []}
    try:
        names = view(record(replay, folder))
        verdict = names["v"]
        result["next"] = verdict["next"]
        result |= {key: verdict[key] for key in ("bottleneck", "confidence", "headline")}
        result["right"] = is_right(result["truth"], verdict, names["e"])
        result["failed"] += [] if result["right"] else [f"the truth is {result['truth']}"]
        expected = replay.lines.get("expect", [])
        if verdict["bottleneck"] == "contention":
            expected = [line for line in expected if not re.search(OF_THE_FIRST, line)]
        result["failed"] += [line for line in expected if not holds(line, names)]
        if result["failed"]:
            result["evidence"] = names["e"]
            result["missing"] = names["missing"]
    except (RuntimeError, subprocess.SubprocessError, json.JSONDecodeError) as error:
        result["failed"].append(str(error))
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)
    return result


def report(results: list[dict]) -> None:
    for result in results:
        state = "FAILED" if result["failed"] else "ok"
        print(f"{state:7}{result['name']:28}{result.get('bottleneck', '?')} ({result.get('confidence', '?')})")
        for line in result["failed"]:
            print(f"       does not hold: {line}")
        if result["failed"]:
            print("       " + json.dumps({k: result.get(k) for k in ("headline", "next", "evidence", "missing")}, indent=1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the results there")
    parser.add_argument("--jobs", type=int, default=6, help="replays at a time: they sleep")
    parser.add_argument("--keep", type=Path, help="keep the run files there")
    parser.add_argument("--sanitized", action="store_true", help="leave out what needs a preloaded library")
    parser.add_argument("replays", nargs="*", type=Path)
    options = parser.parse_args()
    replays = [Replay(path) for path in options.replays or sorted(HERE.glob("*.replay"))]
    if options.sanitized:
        here = os.readlink("/proc/self/ns/pid")
        for replay in [r for r in replays if r.pids() != here]:
            print(f"skip   {replay.name}: a sanitizer comes before what is preloaded")
            replays.remove(replay)
    if not replays:
        return 77
    with ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda replay: play(replay, options.keep), replays))
    report(results)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    return int(any(result["failed"] for result in results))


if __name__ == "__main__":
    sys.exit(main())
