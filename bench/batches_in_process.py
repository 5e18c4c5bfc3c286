#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Measures memory as AutoBatch does: batches of random input, forward and backward in one process, without data,
optimizer and validation.

    batches_in_process.py SIZES MODEL-OPTIONS...

prints JSON: bytes of anonymous memory with the model alone, and the peak of each size above that before the model.
"""

import json
import re
import sys
from pathlib import Path

WORKLOADS = Path(__file__).resolve().parent.parent / "workloads"
sys.path[:0] = [str(WORKLOADS / "pytorch"), str(WORKLOADS), str(WORKLOADS / "datasets")]

import jobs
import torch
import train


def field(name):
    """A field of this process's status, in bytes."""
    return 1024 * int(re.search(rf"{name}:\s+(\d+)", Path("/proc/self/status").read_text())[1])


def peak_of(step):
    """The peak of anonymous memory during a step."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    step()
    return field("VmHWM") - field("RssFile") - field("RssShmem")


def main():
    """Prints what was measured."""
    sizes = [int(word) for word in sys.argv.pop(1).split(",")]
    options = jobs.parse_options("", train.MODELS, ("adam", "sgd"))
    torch.set_num_threads(1)
    before = field("RssAnon")
    model = train.make_model(options, 10, "cpu").train()
    alone = field("RssAnon") - before
    shape = (3, options.frames, options.image_size, options.image_size)
    shape = shape if options.frames else (3, *shape[2:])

    def step(size):
        model(torch.empty(size, *shape)).sum().backward()

    points = []
    for size in sizes:
        try:
            points.append((size, peak_of(lambda size=size: step(size)) - before))
        except ValueError as error:  # batch normalisation of one value, for example: AutoBatch skips it, too
            print(f"batch size {size}: {error}", file=sys.stderr)
    print(json.dumps({"before": before, "model": alone, "points": points}))


main()
