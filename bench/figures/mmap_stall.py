# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""The job's longest mmap with and without recording, 4 GiB resident.

Reading smaps_rollup holds the job's mmap lock: calls during a reading are counted separately. A
preempted call does not sleep, whereas one that waits for the lock does.
"""

import re
import subprocess
from pathlib import Path

from harness import Recording, Result, Skip, median, program, run_file, run_value, sql

RESIDENT_MIB, SECONDS, ROUNDS = 4096, 8, 3
LONG_SECONDS = 45  # long enough for a reading: they take a thousandth of the time
SLACK_NS = 5_000_000  # around a reading, for the time between its start and its lock

CALL = re.compile(r"at_ns (\d+) took_ns (\d+) slept (\d)")
LONGEST = re.compile(r"longest_ns (\d+)")


def calls_of(output):
    """The longest call in ns, and calls over a millisecond that waited: (start, length)."""
    longest = int(LONGEST.search(output)[1])
    return longest, [(int(a), int(t)) for a, t, slept in CALL.findall(output) if slept == "1"]


def readings_of(path):
    """Times of readings of smaps_rollup (ns, CLOCK_MONOTONIC), and the length of one."""
    start = int(run_value(path, "start_monotonic_ns"))
    times = sql(path, "SELECT DISTINCT t FROM samples WHERE metric = 'strain.memory.pss'")
    sums = sql(path, "SELECT metric, max(value) FROM samples WHERE metric IN "
               "('strain.recorder.smaps.readings', 'strain.recorder.smaps.time') GROUP BY metric")  # fmt: skip
    cost = dict(sums)
    count = cost.get("strain.recorder.smaps.readings") or 0
    took = cost.get("strain.recorder.smaps.time") or 0
    return [start + int(t[0] * 1e9) for t in times], count, took


def outside(calls, times, reading_ns):
    """The longest call outside readings."""
    apart = [
        took for at, took in calls
        if all(at + took < t - SLACK_NS or at > t + reading_ns + SLACK_NS for t in times)
    ]  # fmt: skip
    return max(apart, default=0)


def recorded(job):
    """One recorded run: longest call, longest wait outside of readings, longest wait, readings."""
    with run_file() as path:
        recording = Recording(path, job, output=subprocess.PIPE)
        output, _ = recording.wait()
        longest, calls = calls_of(output)
        times, count, took = readings_of(path)
        reading_ns = took / count * 1e9 if count else 0
        waited = max((t for _, t in calls), default=0)
        return longest, outside(calls, times, reading_ns), waited, count, took


def memory_available_mib():
    """MemAvailable."""
    return int(re.search(r"MemAvailable: +(\d+)", Path("/proc/meminfo").read_text())[1]) // 1024


def measure():
    """Yields the lines."""
    if memory_available_mib() < RESIDENT_MIB * 1.5:
        raise Skip(f"less than {RESIDENT_MIB * 1.5 / 1024:.0f} GiB of memory are available")
    job = [program("stall"), str(RESIDENT_MIB), str(SECONDS)]
    bare, ours = [], []
    for _ in range(ROUNDS):
        output = subprocess.run(job, capture_output=True, text=True, check=True).stdout
        bare.append(calls_of(output))
        ours.append(recorded(job))
    without = median([longest for longest, _ in bare]) / 1e6
    with_ = median([longest for longest, *_ in ours]) / 1e6
    waits = max(max((t for _, t in calls), default=0) for _, calls in bare) / 1e6
    apart = max(o for _, o, *_ in ours) / 1e6
    yield Result("longest mmap of a job of 4 GiB", f"{with_:.1f} ms recorded, of which "
                 f"{apart:.1f} ms waiting for the lock outside of smaps_rollup",
                 f"without recording {without:.1f} and {waits:.1f} ms", f"{with_ / without:.2f} times",
                 "no difference beyond noise", apart <= max(waits, 1.0))  # fmt: skip
    _, _, waited, readings, took = recorded([program("stall"), str(RESIDENT_MIB), str(LONG_SECONDS)])
    yield Result("  smaps_rollup of that job", f"{readings:.0f} readings in {LONG_SECONDS} s, "
                 f"{took / max(readings, 1) * 1000:.1f} ms each",
                 f"the job's longest wait {waited / 1e6:.1f} ms", f"{took / LONG_SECONDS:.2%} of the time",
                 "at most 0.1 % and one more", took / LONG_SECONDS <= 0.001 + took / max(readings, 1) / LONG_SECONDS)  # fmt: skip
