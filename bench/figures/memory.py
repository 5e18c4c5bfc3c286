# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""The recorder's memory over the samples of hours, taken 25 times as fast."""

import re
import time
from pathlib import Path

from harness import Recording, Result, program, run_file, sql

INTERVAL_US = 400  # 25 times as fast as 10 ms
MERGE_SECONDS = 120  # interval at which the recorder merges blocks, when it uses most memory
PROCESSES = 4


def resident_mib(pid):
    """Resident memory and its peak."""
    text = Path(f"/proc/{pid}/status").read_text()
    return [int(re.search(rf"{key}:\s+(\d+)", text)[1]) / 1024 for key in ("VmRSS", "VmHWM")]


def peak_mib(pid, seconds):
    """The maximum of readings every 50 ms, and the peak since the start of the process."""
    end, largest, peak = time.monotonic() + seconds, 0, 0
    while time.monotonic() < end:
        now, peak = resident_mib(pid)
        largest = max(largest, now)
        time.sleep(0.05)
    return largest, peak


def measure():
    """Yields the line."""
    seconds = 3 * MERGE_SECONDS + 10
    job = [program("load"), str(PROCESSES), str(seconds + 5), "100", "20000"]
    with run_file() as path:
        recording = Recording(path, job, "--interval", f"{INTERVAL_US}us")
        peak_mib(recording.recorder, MERGE_SECONDS + 5)  # each kind of work was done once
        early, _ = peak_mib(recording.recorder, MERGE_SECONDS)
        late, peak = peak_mib(recording.recorder, MERGE_SECONDS)
        recording.wait()
        ticks = sql(path, "SELECT max(value) FROM samples WHERE "
                    "metric = 'strain.recorder.ticks.due'")[0][0]  # fmt: skip
        yield Result("recorder memory over hours' worth of samples", f"peak {peak:.1f} MiB",
                     f"{early:.1f} around the second merging of blocks, {late:.1f} the third",
                     f"{ticks / 360_000:.2f} hours' ticks of 10 ms", "flat, at most 16 MiB",
                     peak <= 16 and late - early <= 1)  # fmt: skip
