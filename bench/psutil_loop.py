# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""The peer: watches a job like many scripts do, every 10 ms or as often as possible.

    psutil_loop.py PID COUNTER

Watches a process with its descendants, and stores the number of its ticks in the file COUNTER.
"""

import mmap
import os
import struct
import sys
import time

import psutil

TICK_S = 0.01


def main():
    """Runs until it is killed."""
    root = psutil.Process(int(sys.argv[1]))
    file = os.open(sys.argv[2], os.O_RDWR)
    os.ftruncate(file, 8)
    counter = mmap.mmap(file, 8)
    known = {}  # cpu_percent compares with the call before, of the same object
    ticks = 0
    due = time.monotonic()
    while True:
        for process in [root, *root.children(recursive=True)]:
            process = known.setdefault(process.pid, process)
            process.cpu_percent()
            process.memory_info()
        ticks += 1
        counter[:] = struct.pack("<Q", ticks)
        due = max(due + TICK_S, time.monotonic())
        time.sleep(max(0, due - time.monotonic()))


if __name__ == "__main__":
    main()
