#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""What strain reads of Intel's GPUs, beside the kernel's files and PyTorch, on a machine that has some.

    STRAIN=build/strain tests/gpu/intel.py [SECONDS]

Compares `strain doctor` with the sensors of each card while nothing runs, then records a matrix product of PyTorch for
XPU on the first GPU, busy and with pauses, and compares the load, the memory and the process. Exit status 0, 1 where
something differs, 77 where there is no Intel GPU. It prints each figure with the other's: what is close to the limits of
a comparison needs a look.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

STRAIN = os.environ.get("STRAIN", "strain")
CARDS = Path("/sys/class/drm")
# Labels of hwmon (None: no label), the file's ending, our name, its factor, and how far they may be apart in units.
FIGURES = (
    ("temp", ("pkg", None), "input", "hw.temperature", 1e-3, 3),
    ("temp", ("vram",), "input", "strain.gpu.memory.temperature", 1e-3, 3),
    ("power", ("card", "pkg", None), "max", "strain.gpu.power.limit", 1e-6, 1),
    ("energy", ("card", "pkg", None), "input", "hw.energy", 1e-6, 2000),
)
JOB = """
import sys, time, torch
import strain
size, pause, seconds = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
a = torch.randn(size, size, device="xpu:0")
end = time.monotonic() + seconds
while time.monotonic() < end:
    for _ in strain.iterations(range(20)):
        with strain.phase("forward"):
            b = a @ a
            torch.xpu.synchronize()
        if pause:
            time.sleep(pause)
print(torch.xpu.max_memory_allocated())
"""
failures = []


def expect(what: str, holds: bool, *details: object) -> None:
    print("ok    " if holds else "FAILED", what, *details)
    if not holds:
        failures.append(what)


def devices() -> list[Path]:
    """The PCI folders of the GPUs, in our order."""
    found = []
    for card in CARDS.glob("card*"):
        device = card / "device"
        if re.fullmatch(r"card\d+", card.name) and (device / "driver").exists():
            driver = (device / "driver").resolve().name
            if driver in ("i915", "xe") and (device / "vendor").read_text().strip() == "0x8086":
                found.append(device.resolve())
    return sorted(found, key=lambda device: device.name)


def sensor(device: Path, kind: str, labels: tuple[str | None, ...], ending: str) -> float | None:
    for label in labels:
        for hwmon in sorted(device.glob("hwmon/hwmon*")):
            for file in sorted(hwmon.glob(f"{kind}*_{ending}")):
                name = file.with_name(file.name.replace(ending, "label"))
                if (name.read_text().strip() if name.exists() else None) == label:
                    return float(file.read_text())
    return None


def doctor() -> list[dict[str, float]]:
    """Our figures of each GPU."""
    shown = subprocess.run([STRAIN, "doctor", "--metrics", "--json"], check=True, capture_output=True, text=True)
    source = next(source for source in json.loads(shown.stdout)["sources"] if source["source"] == "intelgpu")
    gpus: dict[str, dict[str, float]] = {}
    for metric in source["metrics"]:
        if metric["entity_kind"] == "gpu":
            gpus.setdefault(metric["entity"], {})[metric["metric"]] = metric["value"]
    return list(gpus.values())


def compare_with_files(found: list[Path]) -> None:
    ours = doctor()
    print(json.dumps(ours, indent=1))
    expect("as many GPUs", len(found) == len(ours), len(found), len(ours))
    for number, (device, gpu) in enumerate(zip(found, ours, strict=False)):
        for kind, labels, ending, name, factor, units in FIGURES:
            value, own = sensor(device, kind, labels, ending), gpu.get(name)
            if value is None or own is None:
                # A limit of 0 is off.
                expect(f"GPU {number} {name}", own is None and not value, "one is missing", own, value)
            else:
                expect(f"GPU {number} {name}", abs(own - value * factor) <= units, own, value * factor)


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
            shown, allocated = record(Path(name), kind, size, pause, seconds)
            used = [gpu for gpu in shown["gpus"] if gpu["job"] == "uses it"]
            print(f"{kind}: {shown['verdict']['headline']}\n  {shown['gpus']}")
            expect(f"{kind}: the job uses one GPU", len(used) == 1, len(used))
            if used:
                memory, busy = used[0].get("memory_peak_bytes") or 0, used[0]["busy_ratio"] or 0
                expect(f"{kind}: memory", memory == 0 or memory >= allocated, memory, allocated)
                expect(f"{kind}: load", busy > 0.9 if kind == "busy" else busy < 0.8, busy)
            print("  cost of recording:", shown["recording"]["cpu_ratio"])


def main() -> int:
    found = devices()
    if not found:
        print("no Intel GPU (i915, xe)")
        return 77
    compare_with_files(found)
    try:
        import torch

        xpu = torch.xpu.is_available()
    except (ImportError, AttributeError):
        xpu = False
    if xpu:
        compare_jobs(float(sys.argv[1]) if len(sys.argv) > 1 else 15)
    else:
        print("no PyTorch for XPU: no job was recorded")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
