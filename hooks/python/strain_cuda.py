# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""Measures the phases of a step on the device, by events in its stream.

An event is put into the stream where a phase begins and ends, and read later, when query() says that
the device has passed it: nobody ever waits for the device. Of some steps a second only; nothing while a
graph is captured. What is read becomes points: `device.forward`, ..., seconds, with the iteration's
number.
"""

from collections import deque
from time import monotonic_ns

EVERY_NS = 100000000  # minimum interval of timed steps
WAITING_MAX = 8  # steps whose events the device has not passed yet


class DeviceClock:
    """Times one thread's steps on its current device."""

    def __init__(self, cuda, ring):
        self._cuda = cuda
        self._ring = ring
        self._free = []  # events
        self._step = None  # (number, [(phase, event), ...]) of the step being timed
        self._waiting = deque()
        self._last_ns = 0

    @property
    def timing(self):
        """Whether the iteration is timed."""
        return self._step is not None

    def begin(self, number):
        """The batch of an iteration has arrived; its first phase begins here."""
        now_ns = monotonic_ns()
        self._step = None
        if now_ns - self._last_ns >= EVERY_NS and len(self._waiting) < WAITING_MAX:
            self._last_ns = now_ns
            self._step = (number, [])
            self.cut(None)

    def cut(self, phase):
        """A phase ends here, and the next one begins."""
        if self._step is None:
            return
        if self._cuda.is_current_stream_capturing():
            self._step = None
            return
        event = self._free.pop() if self._free else self._cuda.Event(enable_timing=True)
        event.record()
        self._step[1].append((phase, event))

    def end(self):
        """The iteration has ended."""
        if self._step is not None:
            self._waiting.append(self._step)
            self._step = None

    def collect(self):
        """Marks the events that the device has passed."""
        while self._waiting and not self._cuda.is_current_stream_capturing():
            number, cuts = self._waiting[0]
            if not cuts[-1][1].query():
                return
            self._waiting.popleft()
            seconds = {}
            for (_, before), (phase, after) in zip(cuts, cuts[1:]):
                seconds[phase] = seconds.get(phase, 0.0) + before.elapsed_time(after) / 1000
            for phase, value in seconds.items():
                self._ring.point(self._ring.number("device." + phase), value, number)
            self._free.extend(event for _, event in cuts)
