# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""The recorder's memory over an hour's worth of samples, taken 25 times as fast."""

import re
import time
from pathlib import Path

from harness import Recording, Result, program, run_file, sql

INTERVAL_US, TICKS = 400, 360_000  # an hour of ticks of 10 ms
PROCESSES = 4


def resident_mib(pid):
    """Resident memory now and at its peak."""
    text = Path(f"/proc/{pid}/status").read_text()
    return [int(re.search(rf"{key}:\s+(\d+)", text)[1]) / 1024 for key in ("VmRSS", "VmHWM")]


def measure():
    """Yields the line."""
    seconds = TICKS * INTERVAL_US // 1_000_000
    job = [program("load"), str(PROCESSES), str(seconds + 5), "100", "20000"]
    with run_file() as path:
        recording = Recording(path, job, "--interval", f"{INTERVAL_US}us")
        time.sleep(seconds / 2)  # blocks have been merged once: from now on nothing is new
        early, _ = resident_mib(recording.recorder)
        time.sleep(seconds / 2)
        late, peak = resident_mib(recording.recorder)
        recording.wait()
        ticks = sql(path, "SELECT max(value) FROM samples WHERE "
                    "metric = 'strain.recorder.ticks.due'")[0][0]  # fmt: skip
        yield Result("recorder memory over an hour's worth of samples", f"peak {peak:.1f} MiB",
                     f"{early:.1f} half way, {late:.1f} at the end",
                     f"{ticks / TICKS:.2f} hours' ticks", "flat, at most 16 MiB",
                     peak <= 16 and late - early <= 1)  # fmt: skip
