# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""All figures, in the order of printing. Each module has a measure() that yields lines."""

NAMES = [
    "reading",
    "pytorch_job",
    "mmap_stall",
    "memory",
    "late_ticks",
    "slowdown",
    "short_lived",
    "forward_delay",
    "report",
    "start_up",
    "marker",
    "stalls",
    "verdict",
    "hooks",
    "sweep",
    "slurm",
    "lists",
    "node",
    "ranks",
    "advise",
]
