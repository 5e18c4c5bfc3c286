# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""A job without a framework: its memory follows its batch size, and it marks its iterations itself."""

import argparse
import os
import subprocess
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--iterations", type=int, default=100000)
parser.add_argument("--bent", action="store_true", help="batches above 64 need three times as much each")
parser.add_argument("--catch", action="store_true", help="goes on with half the batch if memory runs out")
parser.add_argument("--least", type=int, default=0, help="MiB of an iteration, whatever its batch")
parser.add_argument("--constant", action="store_true", help="an iteration needs no more than --least")
parser.add_argument("--sample-seconds", type=float, default=0, help="that each sample of an iteration takes")
parser.add_argument("--accumulate", type=int, default=1, help="batches of an iteration")
parser.add_argument("--never", action="store_true", help="never starts an iteration")
parser.add_argument("--terminal", action="store_true", help="needs a terminal")
arguments = parser.parse_args()
if arguments.terminal:
    if not sys.stdin.isatty():
        sys.exit("standard input is not a terminal")
    size = os.get_terminal_size(sys.stdin.fileno())
    # Each read returns the end of input.
    print("columns %d, read %r" % (size.columns, [sys.stdin.readline() for _ in range(3)]), flush=True)
if arguments.never:
    time.sleep(1000)
batch = arguments.batch
for number in range(arguments.iterations):
    size = max(arguments.least, batch + (2 * max(0, batch - 64) if arguments.bent else 0))
    size = arguments.least if arguments.constant else size
    try:
        for _ in range(arguments.accumulate):
            held = bytearray(size << 20)
            held[::4096] = b"x" * len(held[::4096])
    except MemoryError:
        if not arguments.catch:
            raise
        batch //= 2
        continue
    mark = [os.environ["STRAIN"], "mark", "iteration", str(number + 1), str(batch * arguments.accumulate)]
    subprocess.run(mark, check=False)
    time.sleep(max(0.04, batch * arguments.sample_seconds))
