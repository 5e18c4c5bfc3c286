#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""What strain reads of AMD's GPUs, beside what AMD's own tool says, on a machine that has some.

    STRAIN=build/strain tests/gpu/amd.py [SECONDS]

Compares `strain doctor` with rocm-smi (or the files, where there is none) while nothing runs, then records a matrix
product of PyTorch for ROCm on the first GPU, busy and with pauses, and compares the load, the memory and the process.
Exit status 0, 1 where something differs, 77 where there is no AMD GPU. It prints each figure with the other's: what
is close to the limits of a comparison needs a look.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

STRAIN = os.environ.get("STRAIN", "strain")
NODES = Path("/sys/class/kfd/kfd/topology/nodes")
# Names of rocm-smi's figures, and ours with the factor between them; how far they may be apart, as a part and in units.
FIGURES = (
    ("GPU use (%)", "hw.gpu.utilization", 100, 0, 10),
    ("VRAM Total Memory (B)", "hw.gpu.memory.limit", 1, 0, 0),
    ("VRAM Total Used Memory (B)", "hw.gpu.memory.usage", 1, 0.02, 64 << 20),
    ("Average Graphics Package Power (W)", "hw.power", 1, 0.3, 15),
    ("Current Socket Graphics Package Power (W)", "hw.power", 1, 0.3, 15),
    ("Temperature (Sensor junction) (C)", "hw.temperature", 1, 0, 8),
    ("Max Graphics Package Power (W)", "strain.gpu.power.limit", 1, 0, 1),
)
JOB = """
import sys, time, torch
import strain
size, pause, seconds = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
a = torch.randn(size, size, device="cuda:0")
end = time.monotonic() + seconds
while time.monotonic() < end:
    for _ in strain.iterations(range(20)):
        with strain.phase("forward"):
            b = a @ a
            torch.cuda.synchronize()
        if pause:
            time.sleep(pause)
print(torch.cuda.max_memory_reserved())
"""
failures = []


def expect(what: str, holds: bool, *details: object) -> None:
    print("ok    " if holds else "FAILED", what, *details)
    if not holds:
        failures.append(what)


def doctor() -> dict[str, dict[str, float]]:
    """Our figures of each GPU, by its name."""
    shown = subprocess.run([STRAIN, "doctor", "--metrics", "--json"], check=True, capture_output=True, text=True)
    source = next(source for source in json.loads(shown.stdout)["sources"] if source["source"] == "amdgpu")
    gpus: dict[str, dict[str, float]] = {}
    for metric in source["metrics"]:
        if metric["entity_kind"] == "gpu":
            gpus.setdefault(metric["entity"], {})[metric["metric"]] = metric["value"]
    return gpus


def compare_with_tool() -> None:
    ours = list(doctor().values())
    tool = shutil.which("rocm-smi") or shutil.which("rocm-smi", path="/opt/rocm/bin")
    if not tool:
        print("no rocm-smi: our figures alone\n", json.dumps(ours, indent=1))
        return
    asked = [tool, "--showuse", "--showmeminfo", "vram", "--showpower", "--showtemp", "--showmaxpower", "--json"]
    theirs = json.loads(subprocess.run(asked, check=True, capture_output=True, text=True).stdout)
    cards = [theirs[name] for name in sorted(theirs, key=lambda name: int(name[4:] or 0)) if name.startswith("card")]
    expect("as many GPUs", len(cards) == len(ours), len(cards), len(ours))
    for number, (card, gpu) in enumerate(zip(cards, ours, strict=False)):
        for theirs_name, ours_name, factor, part, units in FIGURES:
            value = card.get(theirs_name)
            if value in (None, "N/A"):
                continue
            other, own = float(value), gpu.get(ours_name)
            if own is None:
                # Of cards with two GPUs, the second has no power: rocm-smi may print 0.
                expect(f"GPU {number} {ours_name}", other == 0, "missing here,", other)
            else:
                apart = abs(own * factor - other)
                expect(f"GPU {number} {ours_name}", apart <= max(part * other, units), own * factor, other)


def record(folder: Path, name: str, size: int, pause: float, seconds: float) -> tuple[dict, int]:
    script, run = folder / "job.py", folder / f"{name}.strain"
    script.write_text(JOB)
    job = [sys.executable, str(script), str(size), str(pause), str(seconds)]
    done = subprocess.run([STRAIN, "run", "-o", str(run), "--", *job], check=True, capture_output=True, text=True)
    shown = subprocess.run([STRAIN, "show", "--json", str(run)], check=True, capture_output=True, text=True)
    return json.loads(shown.stdout), int(done.stdout.split()[-1])


def compare_jobs(seconds: float) -> None:
    with tempfile.TemporaryDirectory() as name:
        for kind, size, pause in (("busy", 8192, 0.0), ("paused", 2048, 0.05)):
            shown, reserved = record(Path(name), kind, size, pause, seconds)
            gpu = shown["gpus"][0]
            print(f"{kind}: {shown['verdict']['headline']}\n  {gpu}")
            expect(f"{kind}: the job uses GPU 0", gpu["job"] == "uses it", gpu["job"])
            expect(f"{kind}: no other", all(other["job"] != "uses it" for other in shown["gpus"][1:]))
            expect(f"{kind}: memory", gpu["memory_peak_bytes"] >= reserved, gpu["memory_peak_bytes"], reserved)
            busy = gpu["busy_ratio"] or 0
            expect(f"{kind}: load", busy > 0.9 if kind == "busy" else busy < 0.6, busy)
            print("  cost of recording:", shown["recording"]["cpu_ratio"])


def main() -> int:
    if not any(node.read_text().strip() not in ("", "0") for node in NODES.glob("*/gpu_id")):
        print("no AMD GPU (kfd)")
        return 77
    compare_with_tool()
    try:
        import torch

        rocm = bool(torch.version.hip) and torch.cuda.is_available()
    except ImportError:
        rocm = False
    if rocm:
        compare_jobs(float(sys.argv[1]) if len(sys.argv) > 1 else 15)
    else:
        print("no PyTorch for ROCm: no job was recorded")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
