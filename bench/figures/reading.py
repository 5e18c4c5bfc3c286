# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""The recorder's CPU time per process and tick, next to the bare system calls and psutil.

All three read the same 64 processes in turns: while one runs, the others are stopped.
"""

import contextlib
import os
import signal
import struct
import subprocess
import tempfile
import time
from pathlib import Path

from harness import (PYTHON, ROOT, TICK_S, Recording, Result, Skip, cpu_ns, median, program,
                     run_file, sql)
from reads import floor_command

PROCESSES = 64
ROUNDS = 6
SETTLE_S, WINDOW_S = 0.4, 3.0


class Turn:
    """A process that reads; stopped except in its turns."""

    def __init__(self, pid, ticks):
        self.pid = pid
        self.ticks = ticks  # returns the number of ticks so far
        self.costs = []  # ns per process and tick
        self.stopped_s = -time.monotonic()  # minus the time of the last stop
        os.kill(pid, signal.SIGSTOP)

    def go_on(self):
        """Continues the process."""
        os.kill(self.pid, signal.SIGCONT)
        self.stopped_s += time.monotonic()

    def take(self):
        """Runs for a while and notes the cost of a tick."""
        self.go_on()
        time.sleep(SETTLE_S)
        cpu, ticks = cpu_ns(self.pid), self.ticks()
        time.sleep(WINDOW_S)
        cpu, ticks = cpu_ns(self.pid) - cpu, self.ticks() - ticks
        os.kill(self.pid, signal.SIGSTOP)
        self.stopped_s -= time.monotonic()
        self.costs.append(cpu / max(ticks, 1) / PROCESSES)


def clock_ticks():
    """Ticks by the clock."""
    return time.monotonic() / TICK_S


def kept_share(path, stopped_s):
    """The share of ticks that the recorder, by its own count, did while it was not stopped."""
    rows = dict(sql(path, "SELECT metric, max(value) FROM samples WHERE metric LIKE "
                    "'strain.recorder.ticks.%' GROUP BY metric"))  # fmt: skip
    due, missed = (rows[f"strain.recorder.ticks.{name}"] for name in ("due", "missed"))
    return (due - missed) / (due - stopped_s / TICK_S)


def counted_ticks(path):
    """Ticks as counted by floor and peer in a file."""
    return lambda: struct.unpack("<Q", Path(path).read_bytes() or bytes(8))[0]


@contextlib.contextmanager
def counter_file():
    """The path of an empty file."""
    with tempfile.NamedTemporaryFile() as file:
        yield file.name


def await_first(ticks):
    """Waits until the slowest has started."""
    for _ in range(300):
        time.sleep(0.1)
        if ticks() > 0:
            return
    raise RuntimeError("the psutil loop did not start")


def results(ours, floor, peer=None):
    """The lines, with the medians of the turns."""
    cost, bare = median(ours.costs) / 1000, median(floor.costs) / 1000
    what = f"recorder CPU per process and tick, {PROCESSES} processes"
    ratio = median([a / b for a, b in zip(ours.costs, floor.costs)])
    yield Result(what, f"{cost:.2f} us", f"bare system calls {bare:.2f} us", f"{ratio:.2f} times",
                 "at most 1.5 times", ratio <= 1.5)  # fmt: skip
    if not peer:
        raise Skip("no psutil to compare with (python3-psutil)")
    ratio = median([b / a for a, b in zip(ours.costs, peer.costs)])
    yield Result(what, f"{cost:.2f} us", f"psutil {median(peer.costs) / 1000:.1f} us",
                 f"{ratio:.0f} times less", "at least 20 times less", ratio >= 20)  # fmt: skip


def start_peer(root_pid, counter):
    """The loop with psutil, or None if it is not installed."""
    if subprocess.run([PYTHON, "-c", "import psutil"], capture_output=True, check=False).returncode:
        return None
    return subprocess.Popen([PYTHON, ROOT / "bench/psutil_loop.py", str(root_pid), counter])


def take_turns(recording, others, path, seconds):
    """Recorder, floor and psutil (if installed), with the costs of their ticks. Fills `others`."""
    with counter_file() as floor_ticks, counter_file() as peer_ticks:
        pids = recording.job()
        command = floor_command(seconds, floor_ticks, pids)
        floor = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        peer = start_peer(pids[0], peer_ticks)
        others += [p for p in (floor, peer) if p]
        await_first(counted_ticks(peer_ticks if peer else floor_ticks))
        turns = [Turn(recording.recorder, clock_ticks), Turn(floor.pid, counted_ticks(floor_ticks))]
        turns += [Turn(peer.pid, counted_ticks(peer_ticks))] if peer else []
        for _ in range(ROUNDS):
            for turn in turns:
                turn.take()
    turns[0].go_on()
    recording.stop()
    kept = kept_share(path, turns[0].stopped_s)
    turns[0].costs = [cost / kept for cost in turns[0].costs]
    return turns


def measure():
    """Yields the lines."""
    seconds = int(ROUNDS * 3 * (SETTLE_S + WINDOW_S)) + 15
    job = [program("load"), str(PROCESSES), str(seconds), "200", "20000"]
    with run_file() as path:
        # With --interval there is no budget, so that nothing is slowed.
        recording = Recording(path, job, "--interval", "10ms")
        others = []
        try:
            time.sleep(2)
            yield from results(*take_turns(recording, others, path, seconds))
        finally:
            for process in others:
                process.kill()
                process.wait()
            if recording.process.poll() is None:
                os.kill(recording.recorder, signal.SIGCONT)
                recording.stop()
