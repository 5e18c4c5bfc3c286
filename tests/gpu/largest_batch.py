#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""The largest batch of `strain advise --gpu-memory` on this machine's card, beside the truth.

    STRAIN=build/strain tests/gpu/largest_batch.py [SIZE [MODEL]]

Asks for the largest batch of workloads/pytorch/train.py (resnet50) on a GPU of SIZE (6GB), then runs the job with
this batch size and larger ones, under the same cap on PyTorch's allocator, three times each, until one fails.
Prints the answer, the largest batch that passed three times, and the error. Exit status 0; 1 where the answer does
not run, 77 where there is no PyTorch with a GPU.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REPEATS = 3
STEP = 1.03  # from one batch size to the next larger one


def fits(strain: str, job: list[str], batch: int, cap: int, folder: Path) -> bool:
    """Whether ten steps and a validation pass run, each time."""
    command = [strain, "run", "--no-verdict", "--force", "-o", str(folder / "fits.strain"), "--", *job,
               "--batch-size", str(batch), "--steps", "10", "--epochs", "2"]  # fmt: skip
    environment = os.environ | {"STRAIN_GPU_MEMORY": str(cap)}
    return all(subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 0
               for _ in range(REPEATS))  # fmt: skip


def main() -> int:
    try:
        import torch
    except ImportError:
        print("no PyTorch")
        return 77
    if not torch.cuda.is_available():
        print("no GPU that PyTorch can use")
        return 77
    strain = os.environ.get("STRAIN", "strain")
    size, model = (sys.argv[1:] + ["6GB", "resnet50"][len(sys.argv) - 1 :])[:2]
    job = [sys.executable, str(ROOT / "workloads/pytorch/train.py"), "--model", model, "--workers", "2"]
    with tempfile.TemporaryDirectory(prefix="strain-gpu-") as path:
        folder = Path(path)
        advise = [strain, "advise", "--gpu-memory", size, "--in-place", "--json", "-o", str(folder / "kept"), "--", *job,
                  "--batch-size", "{batch_size=16}"]  # fmt: skip
        answer = json.loads(subprocess.run(advise, check=True, stdout=subprocess.PIPE, text=True).stdout)
        largest = answer["largest_batch"]
        caps = [run["limit"] for run in answer["runs"] if run["limit"]]
        print(f"answer: {largest['value']} ({largest['low']} to {largest['high']}), verified {largest['verified']}, "
              f"{answer['probes']} probes, {answer['seconds']:.0f} s")  # fmt: skip
        if not caps or not largest["verified"]:
            print(f"not verified: {largest['verified_missing'] or largest['missing']}")
            return 1
        batch, most = largest["verified"], 0
        while fits(strain, job, batch, caps[0], folder):
            most, batch = batch, max(batch + 1, round(batch * STEP))
    if most == 0:
        print(f"batch size {largest['verified']} does not run")
        return 1
    print(f"truth: {most} ran {REPEATS} times, {batch} did not; error {largest['value'] / most - 1:+.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
