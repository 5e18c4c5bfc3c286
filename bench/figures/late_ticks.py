# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Ticks at 1 ms that are more than an interval late or missed, next to a bare timer loop."""

import subprocess

from harness import Recording, Result, program, run_file, sql

PROCESSES, SECONDS = 8, 20


def measure():
    """Yields the lines."""
    job = [program("load"), str(PROCESSES), str(SECONDS), "100", "50000"]
    with run_file() as path:
        recording = Recording(path, job, "--interval", "1ms")
        timer = subprocess.Popen(
            [program("timer"), "1000", str(SECONDS - 2)],
            stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        cpu, wall = recording.watch()
        recording.wait()
        due, late, missed = map(int, timer.communicate()[0].split())
        bare = (late + missed) / due
        rows = dict(sql(path, "SELECT metric, max(value) FROM samples WHERE metric LIKE "
                        "'strain.recorder.ticks.%' GROUP BY metric"))  # fmt: skip
        ours = (rows["strain.recorder.ticks.late"] + rows["strain.recorder.ticks.missed"]) / (
            rows["strain.recorder.ticks.due"])  # fmt: skip
        yield Result(f"late ticks at 1 ms, {PROCESSES} processes", f"{ours:.3%}",
                     f"bare timer loop {bare:.3%}", f"{(ours - bare) * 100:+.3f} points",
                     "at most 0.1 points more", ours - bare <= 0.001)  # fmt: skip
        yield Result("  recorder CPU at 1 ms", f"{cpu / wall:.1%} of a core", "", "",
                     "at most 5 %", cpu / wall <= 0.05)  # fmt: skip
