# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""Which lines of the script the process is in: looks at the stack of its first thread, for `strain
run --lines`.

A thread of its own looks 20 times a second, a little irregularly, so that it is not in step with a
loop. It keeps the innermost frame that is the user's (not of the standard library, of an installed
package, or ours), and what the frames around and within it say of the phase: a loader, a module's
call, a backward pass, an optimizer. Counts go to `lines-PID` in the marker directory, about every
second, as lines

    process NAMESPACE CREATED_NS
    COUNT<tab>PHASE<tab>LINE<tab>FILE<tab>FUNCTION

where rows of one place add up.

A thread that wants to look has to wait for Python's lock. Where it gets it at once, the first thread
was waiting for something, in the line that is seen. Where it gets it after the switch interval, that
thread was running, and was made to give the lock up in the line that is seen. In between it began to
wait for something meanwhile: where it ran at the moment of the look is not known any more. Such looks
are counted for the lines that were seen running; else every wait would seem longer by the interval.

No frame is kept, and no local is touched. Nothing is looked at in a
forked child: its thread is gone, and it has not made another.
"""

import atexit
import os
import sys
import sysconfig
import threading
import time

import strain_folder

INTERVAL_S = 0.05
AT_ONCE_S = 0.001  # the kernel's timers are late by a tenth of that
FLUSH_S = 1.0
PLACES = 1024  # further ones are counted without a place
FRAMES = 200  # of a stack, from the innermost
BYTES = 512 << 10  # of the file
NAME = 200  # bytes of a file's or a function's name: its end, its beginning

# Ends of framework files' names, and the phase in which the file runs.
PHASES = (
    ("/torch/utils/data/dataloader.py", "data"),
    ("/torch/optim/", "optimizer"),
    ("/torch/autograd/__init__.py", "backward"),
    ("/torch/autograd/graph.py", "backward"),
    ("/torch/nn/modules/module.py", "forward"),
)


def _phase_of(name):
    for part, phase in PHASES:
        if part in name:
            return phase
    return None


class Places:
    """Caches for each file name whether the file is the user's, and its phase."""

    def __init__(self):
        paths = sysconfig.get_paths()
        here = os.path.dirname(os.path.abspath(__file__))
        self._others = tuple({os.path.realpath(p) + os.sep for p in (
            paths.get("stdlib"), paths.get("platstdlib"), paths.get("purelib"),
            paths.get("platlib"), here) if p})  # fmt: skip
        self._known = {}

    def of(self, name):
        """(whether the file is the user's, its phase or None)"""
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = (self._is_users(name), _phase_of(name.replace("\\", "/")))
        return known

    def _is_users(self, name):
        if name.startswith("<") or "/site-packages/" in name or "/dist-packages/" in name:
            return False
        return not os.path.realpath(name).startswith(self._others)

    def look(self, frame):
        """(phase, line, file, function) of a stack, by its innermost frame; None where none is the
        user's. The outermost phase counts: a module that a backward pass calls is backward."""
        place = phase = None
        for _ in range(FRAMES):
            if frame is None:
                break
            code = frame.f_code
            users, known = self.of(code.co_filename)
            phase = known or phase
            if users and place is None:
                place = (frame.f_lineno or 0, code.co_filename, code.co_name)
            frame = frame.f_back
        return place and (phase or "",) + place


def _text(name, end):
    """A name in one line, without our separators: UTF-8, truncated."""
    raw = name.replace("\t", " ").replace("\n", " ").encode("utf-8", "replace")
    return raw[-NAME:] if end else raw[:NAME]


class Lines:
    """The thread and its counts."""

    def __init__(self, directory):
        self._directory = directory
        self._pid = os.getpid()
        self._thread = threading.main_thread().ident
        self._places = Places()
        self._counts = {}  # since the last flush
        self._running = {}  # those of them seen running
        self._unknown = 0  # looks at a running thread without a known line
        self._seen = set()  # all places so far
        self._room = BYTES
        self._lock = threading.Lock()
        self._over = False
        self._write(b"process %d %d\n" % (self._namespace(), time.monotonic_ns()))

    @staticmethod
    def _namespace():
        try:
            return os.stat("/proc/self/ns/pid").st_ino
        except OSError:
            return 0

    def _write(self, data):
        """Appends, as long as the file may grow."""
        if len(data) > self._room:
            self._over = True
            return
        self._room -= len(data)
        name = "lines-%d" % self._pid
        handle = strain_folder.open_in(self._directory, name, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(handle, data)
        finally:
            os.close(handle)

    @staticmethod
    def wait(planned_s):
        """Sleeps, and says how long it waited for Python's lock after that. Where CPUs are scarce
        it waited for one, too. Asking the kernel how long would give the lock away again."""
        began = time.monotonic()
        time.sleep(planned_s)
        return time.monotonic() - began - planned_s

    def count(self, waited_s):
        """Looks once; waited_s: time waited for the lock."""
        frame = sys._current_frames().get(self._thread)
        place = self._places.look(frame)
        del frame
        if place is None:
            return
        if place not in self._seen:
            if len(self._seen) >= PLACES:
                return
            self._seen.add(place)
        if waited_s < AT_ONCE_S:
            self._counts[place] = self._counts.get(place, 0) + 1
        elif waited_s >= 0.9 * sys.getswitchinterval():
            self._running[place] = self._running.get(place, 0) + 1
        else:
            self._unknown += 1

    def _share_out(self):
        """Adds looks at a running thread to the counts, including those without a known line."""
        running, self._running = self._running, {}
        total, left = sum(running.values()), self._unknown
        for place, n in sorted(running.items(), key=lambda item: -item[1]):
            more = min(left, -(-self._unknown * n // total))
            left -= more
            self._counts[place] = self._counts.get(place, 0) + n + more
        self._unknown = left

    def flush(self):
        """Writes the counts since the last time."""
        with self._lock:
            self._share_out()
            counts, self._counts = self._counts, {}
            rows = [b"%d\t%s\t%d\t%s\t%s\n" % (n, phase.encode(), line, _text(file, True), _text(name, False))
                    for (phase, line, file, name), n in counts.items()]  # fmt: skip
            if rows and os.getpid() == self._pid:
                self._write(b"".join(rows))

    def run(self):
        """The thread's function. It ends at the first failure, so as not to disturb the job."""
        try:
            turn, flushed = 0, time.monotonic()
            while not self._over:
                turn += 1
                # Scattered over three to five quarters of the interval, to avoid the period of a loop.
                self.count(self.wait(INTERVAL_S * (0.75 + turn * 2654435761 % 1024 / 2048.0)))
                now = time.monotonic()
                if now >= flushed + FLUSH_S:
                    flushed = now
                    self.flush()
        except Exception:
            self._over = True

    def end(self):
        """The process ends."""
        try:
            if os.getpid() == self._pid:
                self.flush()
        except Exception:
            pass


def install(directory):
    """Starts looking."""
    lines = Lines(directory)
    atexit.register(lines.end)
    thread = threading.Thread(target=lines.run, name="strain-lines", daemon=True)
    thread.start()
