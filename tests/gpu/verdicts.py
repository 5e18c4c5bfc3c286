#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Verdicts on this machine's card: what tests/truth/gpu plays, as far as it can be made here.

    STRAIN=build/strain tests/gpu/verdicts.py [SECONDS]

Trains a matrix product with PyTorch, busy and idle, with a second program beside it, hidden from the GPU, and on the
CPU. Exit status 0, 1 where a verdict is not what it must be, 77 where there is no PyTorch with a GPU.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

JOB = """
import sys, time, torch
import strain
device, size, pause, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
a = torch.randn(size, size, device=device)
end = time.monotonic() + seconds
while time.monotonic() < end:
    for _ in strain.iterations(range(20)):
        with strain.phase("forward"):
            b = a @ a
            if device == "cuda":
                torch.cuda.synchronize()
        if pause:
            time.sleep(pause)
"""


def record(folder: Path, name: str, seconds: float, device: str, size: int, pause: float, **own: str) -> dict:
    script = folder / "job.py"
    script.write_text(JOB)
    strain, run = os.environ.get("STRAIN", "strain"), folder / f"{name}.strain"
    job = [sys.executable, str(script), device, str(size), str(pause), str(seconds)]
    subprocess.run([strain, "run", "-o", str(run), "--", *job], check=True, capture_output=True, env=os.environ | own)
    shown = subprocess.run([strain, "show", "--json", str(run)], check=True, capture_output=True, text=True)
    return json.loads(shown.stdout)


def check(name: str, shown: dict, **expected: bool) -> int:
    verdict = shown["verdict"]
    evidence = {row["what"]: row["value"] for row in verdict["evidence"]}
    print(f"{name}: {verdict['bottleneck']} ({verdict['confidence']}): {verdict['headline']}\n  {evidence}")
    failed = [what for what, holds in expected.items() if not holds]
    for what in failed:
        print(f"  FAILED: {what}")
    return len(failed)


def use_of(shown: dict) -> list[str]:
    return [gpu["job"] for gpu in shown["gpus"]]


def main() -> int:
    try:
        import torch
    except ImportError:
        print("no PyTorch")
        return 77
    if not torch.cuda.is_available():
        print("no GPU that PyTorch can use")
        return 77
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 8
    failed = 0
    with tempfile.TemporaryDirectory(prefix="strain-gpu-") as path:
        folder = Path(path)
        shown = record(folder, "busy", seconds, "cuda", 8192, 0)
        failed += check("busy", shown, compute=shown["verdict"]["bottleneck"] in ("compute", "gpu-throttled", "gpu-shared"),
                        used="uses it" in use_of(shown))
        shown = record(folder, "waits", seconds, "cuda", 512, 0.01)
        failed += check("waits", shown, not_compute=shown["verdict"]["bottleneck"] != "compute")
        other = subprocess.Popen([sys.executable, folder / "job.py", "cuda", "8192", "0", str(seconds + 30)],
                                 env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "hooks/python")})
        shown = record(folder, "shared", seconds, "cuda", 8192, 0)
        other.terminate()
        other.wait()
        evidence = [row["what"] for row in shown["verdict"]["evidence"]]
        failed += check("shared", shown, shared="GPU shared" in evidence)
        shown = record(folder, "unused", seconds, "cpu", 1024, 0)
        failed += check("unused", shown, unused=any(c["cause"] == "gpu-unused" for c in shown["verdict"]["causes"]))
        shown = record(folder, "hidden", seconds, "cpu", 1024, 0, CUDA_VISIBLE_DEVICES="")
        failed += check("hidden", shown, not_unused=shown["verdict"]["bottleneck"] != "gpu-unused",
                        hidden=set(use_of(shown)) == {"may not"})
    print(f"{failed} checks failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
