# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""Which lines of the script the process is in: looks at the stack of its first thread.

With `strain run --lines`, a thread of its own looks 20 times a second (STRAIN_LINES=all). Otherwise
(STRAIN_LINES=few) it looks a few times at a process that trains with PyTorch, and at one loader worker of
the first epochs: each look may cost a running thread as long as the kernel takes to run this one, which is
milliseconds on a busy machine. Intervals are a little irregular, so that they are not in step with a loop.

A look keeps the innermost frame that is the user's (not of the standard library, of an installed
package, or ours), and what the frames around and within it say of the phase: a loader, a module's
call, a backward pass, an optimizer. Of a worker it keeps the innermost one of a package if none is the
user's, and nothing while it waits. Counts go to `lines-PID` in the marker directory, about every
second, as lines

    process NAMESPACE CREATED_NS
    COUNT<tab>PHASE<tab>LINE<tab>FILE<tab>FUNCTION

where rows of one place add up.

A thread that wants to look has to wait for Python's lock. Where it gets it at once, the first thread
was waiting for something, in the line that is seen. Where it gets it after the switch interval, that
thread was running, and was made to give the lock up in the line that is seen. In between it began to
wait for something meanwhile: where it ran at the moment of the look is not known any more. A script that
runs for 2 ms and computes in a library for 2 ms is only seen in this way. Then the thread looks again a
few times, with a switch interval of half a millisecond, until it interrupts the running thread; else such
looks are counted for the lines that were seen running. Without that, every wait would seem longer by the
interval.

No frame is kept, and no local is touched. Nothing is looked at in a
forked child: its thread is gone, and it has not made another. `threading` does not know the thread, so
that a script that counts its own finds those.
"""

import _thread
import atexit
import os
import sys
import sysconfig
import threading
import time

import strain_folder

ALL = ((0.05, 1 << 40),)  # (seconds between looks, so many of them)
FEW = ((0.1, 100), (1.0, 500))
FEW_OF_WORKER = ((0.1, 60),)
ENDS_S = 0.2  # that the end of the process waits for the thread
WORKERS_LOOP = "/torch/utils/data/_utils/worker.py"  # beyond it is the stack of the process that forked
AT_ONCE_S = 0.0004  # a kernel that is not busy wakes a thread sooner than that
FINE_S, FINE_TURNS = 0.0005, 12  # the switch interval for a thread that gives the lock up often; looks at it
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
        place = phase = within = None
        for _ in range(FRAMES):
            if frame is None:
                break
            code = frame.f_code
            if code.co_filename.endswith(WORKERS_LOOP):
                place, phase = place or within, "data"
                break
            users, known = self.of(code.co_filename)
            phase = known or phase
            if users and place is None:
                place = (frame.f_lineno or 0, code.co_filename, code.co_name)
            if within is None and self.in_package(code.co_filename):
                within = (frame.f_lineno or 0, code.co_filename, code.co_name)
            frame = frame.f_back
        return place and (phase or "",) + place

    @staticmethod
    def in_package(name):
        """Whether a file belongs to an installed package, but not to the loader."""
        return ("/site-packages/" in name or "/dist-packages/" in name) and "/torch/utils/data/" not in name


def _text(name, end):
    """A name in one line, without our separators: UTF-8, truncated."""
    raw = name.replace("\t", " ").replace("\n", " ").encode("utf-8", "replace")
    return raw[-NAME:] if end else raw[:NAME]


class Lines:
    """The thread and its counts. plan: pairs of seconds between looks, and how many of them."""

    def __init__(self, directory, plan):
        self._directory = directory
        self._plan = plan
        # Released by who wants the thread to end, and by the thread at its end.
        self._stop, self._stopped = _thread.allocate_lock(), _thread.allocate_lock()
        self._stop.acquire()
        self._stopped.acquire()
        self._pid = os.getpid()
        self._thread = threading.main_thread().ident
        self._places = Places()
        self._counts = {}  # since the last flush
        self._running = {}  # those of them seen running
        self._unknown = 0  # looks at a running thread without a known line
        self._interrupted = None  # its place
        self._seen = set()  # all places so far
        self._room = BYTES
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

    def wait(self, planned_s):
        """Sleeps, and says how long it waited for Python's lock after that; None: the process ends. Where
        CPUs are scarce it waited for one, too. Asking the kernel how long would give the lock away again."""
        began = time.monotonic()
        if self._stop.acquire(True, planned_s):
            return None
        return time.monotonic() - began - planned_s

    def count(self, waited_s):
        """Looks once; waited_s: time waited for the lock."""
        place = self._look()
        if waited_s < AT_ONCE_S:
            self._add(self._counts, place)
        elif waited_s >= sys.getswitchinterval() or self._interrupt():
            self._add(self._running, self._interrupted or place)
            self._interrupted = None
        elif place is not None:
            self._unknown += 1

    def _look(self):
        return self._places.look(sys._current_frames().get(self._thread))

    def _add(self, counts, place):
        if place is not None and (place in self._seen or len(self._seen) < PLACES):
            self._seen.add(place)
            counts[place] = counts.get(place, 0) + 1

    def _interrupt(self):
        """Interrupts the first thread where it runs, and keeps the place. Returns whether it could."""
        usual_s = sys.getswitchinterval()
        try:
            sys.setswitchinterval(FINE_S)
            for turn in range(FINE_TURNS):
                waited_s = self.wait(FINE_S * (0.5 + turn * 0.382 % 1.0))
                if waited_s is None:
                    self._over = True
                    break
                if waited_s >= FINE_S:
                    self._interrupted = self._look()
                    break
        finally:
            sys.setswitchinterval(usual_s)
        return self._interrupted is not None

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
        self._share_out()
        counts, self._counts = self._counts, {}
        rows = [b"%d\t%s\t%d\t%s\t%s\n" % (n, phase.encode(), line, _text(file, True), _text(name, False))
                for (phase, line, file, name), n in counts.items()]  # fmt: skip
        if rows:
            self._write(b"".join(rows))

    def run(self):
        """The thread's function. It ends at the first failure, so as not to disturb the job."""
        try:
            flushed = time.monotonic()
            for turn, interval_s in enumerate(self._intervals(), 1):
                # Scattered over three to five quarters of the interval, to avoid the period of a loop.
                waited_s = self.wait(interval_s * (0.75 + turn * 2654435761 % 1024 / 2048.0))
                if waited_s is None or self._over:
                    break
                self.count(waited_s)
                now = time.monotonic()
                if now >= flushed + FLUSH_S:
                    flushed = now
                    self.flush()
            self.flush()
        except Exception:
            self._over = True
        finally:
            self._stopped.release()

    def _intervals(self):
        for interval_s, looks in self._plan:
            while looks > 0:
                looks -= 1
                yield interval_s

    def end(self):
        """The process ends."""
        try:
            if os.getpid() == self._pid:
                self._stop.release()
                self._stopped.acquire(True, ENDS_S)
        except Exception:
            pass


def install(directory, plan=ALL):
    """Starts looking."""
    lines = Lines(directory, plan)
    atexit.register(lines.end)
    _thread.start_new_thread(lines.run, ())


def look_at_worker(directory):
    """The same for a loader worker, which ends without atexit; what the last second saw may be lost."""
    _thread.start_new_thread(Lines(directory, FEW_OF_WORKER).run, ())
