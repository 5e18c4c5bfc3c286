# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""CPU time of 5,000 processes that live 1 to 5 ms, next to the kernel's count."""

import subprocess

from harness import Recording, Result, program, run_file, run_value, sql

COUNT = 5000


def measure():
    """Yields a line for each way of counting."""
    for options in [[], ["--no-cgroup"]]:
        with run_file() as path:
            job = [program("short_lived"), str(COUNT)]
            recording = Recording(path, job, *options, output=subprocess.PIPE)
            output, _ = recording.wait()
            kernel = int(output) / 1e6
            ours = sql(path, "SELECT max(value) FROM samples WHERE metric = 'process.cpu.time' AND "
                       "entity = (SELECT id FROM entity WHERE kind = 'job')")[0][0]  # fmt: skip
            source = run_value(path, "cpu_time_source")
            error = ours / kernel - 1
            yield Result(f"CPU time of {COUNT} processes of 1 to 5 ms, by {source}",
                         f"{ours:.4f} s", f"the kernel's account {kernel:.4f} s", f"{error:+.4%}",
                         "within 0.1 %", abs(error) <= 0.001)  # fmt: skip
