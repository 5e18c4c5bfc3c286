# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Stalls of the PyTorch job on a folder of JPEG files, with disk reads limited by a cgroup."""

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import PYTHON, ROOT, STRAIN, Result, Skip, environment, inside, trainer_script

IMAGES, BYTES_PER_S = 1500, 4_000_000
BLKIO = Path("/sys/fs/cgroup/blkio")


@contextlib.contextmanager
def throttled(folder):
    """A cgroup v1 that limits reads from the folder's disk."""
    group = BLKIO / f"strain-bench-{os.getpid()}"
    device = os.stat(folder).st_dev
    try:
        group.mkdir()
    except OSError as error:
        raise Skip(f"no cgroup of the blkio controller: {error}") from error
    try:
        # Limits apply to the whole disk, not to a partition.
        disk = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
        if not disk.exists():
            raise Skip(f"{folder} is on no disk")
        if (disk / "partition").exists():
            disk = disk.resolve().parent
        number = (disk / "dev").read_text().strip()
        (group / "blkio.throttle.read_bps_device").write_text(f"{number} {BYTES_PER_S}")
        yield group
    finally:
        for _ in range(100):
            with contextlib.suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.1)


def whole_epoch(job):
    """Images per second in the second of two epochs, by the job's own time."""
    out = subprocess.run([*job, "--epochs", "2"], env=environment(), text=True, check=True,
                         capture_output=True).stdout  # fmt: skip
    return float(re.findall(r"(\d+) images/s", out)[-1])


def measure():
    """Yields the lines."""
    if os.geteuid() != 0:
        raise Skip("needs root, for a cgroup that throttles the disk")
    make = ROOT / "workloads/datasets/make.py"
    with tempfile.TemporaryDirectory(prefix="strain-bench-", dir="/var/tmp") as folder:
        images = Path(folder) / "images"
        subprocess.run([PYTHON, make, "jpeg", "--images", str(IMAGES), images], check=True,
                       stdout=subprocess.DEVNULL, stderr=sys.stderr)  # fmt: skip
        sizes = [path.stat().st_size for path in images.rglob("*.jpeg")]
        job = [PYTHON, trainer_script(), "--dataset", str(images), "--threads", "1", "--workers", "2"]
        with throttled(folder) as group:
            command = [str(STRAIN), "advise", "--stalls", "--json", "--", *job, "--epochs", "1000"]
            out = subprocess.run(inside(group, command), env=environment(), text=True, check=True,
                                 stdout=subprocess.PIPE).stdout  # fmt: skip
        epoch = whole_epoch(job)
    found = json.loads(out)
    rates = {run["run"]: run for run in found["runs"]}
    computed = BYTES_PER_S / (sum(sizes) / len(sizes))
    cold, warm = rates["cold"], rates["warm"]
    yield Result("cold run, disk throttled to 4 MB/s", f"{cold['rate']:.1f} images/s",
                 f"computed {computed:.1f}", f"{cold['rate_low']:.1f} to {cold['rate_high']:.1f}",
                 "within 5 %", abs(cold["rate"] / computed - 1) <= 0.05)  # fmt: skip
    yield Result("warm run", f"{warm['rate']:.0f} images/s", f"a whole epoch {epoch:.0f}",
                 f"{warm['rate_low']:.0f} to {warm['rate_high']:.0f}",
                 "within 5 %", abs(warm["rate"] / epoch - 1) <= 0.05)  # fmt: skip
    for name, stall in found["stalls"].items():
        yield Result(f"{name} stall", f"{stall['value']:.1%}", "",
                     f"{stall['low']:.1%} to {stall['high']:.1%}", "an interval of its own",
                     stall["low"] > 0)  # fmt: skip
