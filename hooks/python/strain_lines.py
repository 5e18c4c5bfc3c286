# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""Which lines of the script the process is in: looks at the stack of a thread, from another one.

With `strain run --lines` (STRAIN_LINES=all), each Python process looks at its first thread 20 times a
second. Otherwise (STRAIN_LINES=few) a process that trains looks a few times, and so do a few of PyTorch's
loader workers: each look may cost a running thread as long as the kernel takes to run this one, which is
milliseconds on a busy machine. Intervals are a little irregular, so that they are not in step with a loop.

A look keeps the innermost frame that is the user's (not of the standard library, of an installed
package, or ours), and what the frames around and within it say of the phase: a loader, a module's
call, a backward pass, an optimizer. An optimizer's closure is forward, unless a frame within it says
something else. If none is the user's, it keeps the innermost one of a package; the same
within a loader. A worker that has nothing to do is in no line. Counts go to `lines-PID` in the marker
directory, about every second, as lines

    process NAMESPACE CREATED_NS
    COUNT<tab>PHASE<tab>LINE<tab>FILE<tab>FUNCTION

where rows of one place add up. Lines of the script's other threads have the phase "thread".

A thread that wants to look has to wait for Python's lock. Where it gets it at once, the other thread
was waiting for something, or computed in a library that had released the lock, in the line that is seen.
Where it gets it after the switch interval, that thread was running, and was made to give the lock up in the
line that is seen. In between it released the lock meanwhile: where it ran at the moment of the look is not
known any more. That is what all looks find at a script that runs for 2 ms and computes in a library for
2 ms. Then this thread looks again a few times, with a switch interval of half a millisecond, until it
interrupts the other one; else such looks are counted for the lines that were seen running. Without that,
every wait would seem longer by the interval.

No frame is kept, and no local is touched. A forked child has no such thread (workers start one of their own).
`threading` does not know the thread, so that a script that counts its own finds those.
"""

import _thread
import atexit
import gc
import os
import signal
import sys
import sysconfig
import time

import strain_folder

ALL = ((0.05, 1 << 40),)  # (seconds between looks, so many of them)
FEW = ((0.1, 100), (1.0, 500))
FEW_OF_WORKER = ((0.1, 60),)
WORKERS_MAX = 8  # of a job, that look
ENDS_S = 0.2  # that the end of the process waits for the thread
AT_ONCE_S = 0.0004  # a kernel that is not busy wakes a thread sooner than that
FINE_S, FINE_TURNS = 0.0005, 12  # the switch interval for a thread that gives the lock up often; looks at it
FLUSH_S = 1.0
PLACES = 1024  # further ones are counted without a place
FRAMES = 200  # of a stack, from the innermost
BYTES = 512 << 10  # of the file
NAME = 200  # bytes of a file's or a function's name: its end, its beginning
THREADS = 16  # others, that are looked at
FRAMES_OF_OTHERS = 40
RAN = 0.2  # of the time since the last look: the thread runs
NEAR_COLLECTION = 100  # objects; a look makes one for each thread
SIGNALS = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT")  # of a thread's own doing

WORKERS_LOOP = "/torch/utils/data/_utils/worker.py"  # beyond it is the stack of the process that forked
LOADER = "/torch/utils/data/dataloader.py"
CHECKPOINT = "/torch/utils/checkpoint.py"
SCRIPT_OPS = "/tensorflow/python/ops/script_ops.py"  # calls a pipeline's Python functions, in threads of TensorFlow
KERAS_DATA = "keras/src/trainers/data_adapters/"  # calls a PyDataset, in threads of Python
CONTEXT = "/torch/utils/_contextlib.py"  # a decorator, such as torch.no_grad()
FIT = "fit"  # a step, unless it is something else that is known
CLOSURE = "closure"  # that an optimizer's step calls: the optimizer's frames around it do not count
OPTIMIZERS = "/torch/optim/"
# Files there that call steps, hooks and the script's functions, but no closure.
STEPPERS = tuple(OPTIMIZERS + name for name in ("optimizer.py", "lr_scheduler.py", "swa_utils.py"))
# Ends of framework files' names, and the phase in which the file runs; "": in none, whatever it calls.
PHASES = (
    (LOADER, "data"),
    (OPTIMIZERS, "optimizer"),
    ("/torch/autograd/__init__.py", "backward"),
    ("/torch/autograd/graph.py", "backward"),
    ("/torch/nn/modules/module.py", "forward"),
    ("keras/src/callbacks", ""),
    ("keras/src/backend/tensorflow/trainer.py", FIT),
    ("keras/src/backend/jax/trainer.py", FIT),
    ("keras/src/engine/training.py", FIT),
)
# Functions of ours, through which the script calls a framework or is called by one, and of Lightning's closure:
# what it does after the backward pass.
FUNCTIONS = {
    "/strain_torch.py": {"_in_closure": CLOSURE},
    "/plugins/precision/precision.py": {"post_backward": "", "_after_closure": ""},
    "/strain_jax.py": {"call": "step", "wait": "step"},
    "/strain_keras.py": {"__next__": "data"},
    "/strain_tape.py": {"__next__": "data", "gradient": "backward", "apply": "optimizer", "__call__": "step"},
}


def _phase_of(name):
    for part, phase in PHASES:
        if part in name:
            return phase
    for part, functions in FUNCTIONS.items():
        if name.endswith(part):
            return functions
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
        """(whether the file is the user's, its phase or None, or the phases of its functions)"""
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = (self._is_users(name), _phase_of(name.replace("\\", "/")))
        return known

    def _is_users(self, name):
        if name.startswith("<") or "/site-packages/" in name or "/dist-packages/" in name:
            return False
        if "/torchinductor_" in name:  # what torch.compile has written
            return False
        return not os.path.realpath(name).startswith(self._others)

    def classify(self, stack):
        """(phase, line, file, function) of a stack of (code, line) pairs, the innermost first; None: no line. The
        outermost phase counts: a module that a backward pass calls is backward. A forward pass that
        torch.utils.checkpoint does again there is "recomputed"; what backward and the optimizer call of the
        script's own is "own backward" and "own optimizer". A closure of the optimizer is not the optimizer's."""
        place = phase = within = None
        called = False  # the line is in a function that the phase calls, with no other phase between them
        again = False  # called by the checkpoint, not in a backward pass of its own
        closure = False  # called through an optimizer's closure
        callee = None  # (file, whether it is the user's) of the frame that this one called
        outer = None  # the function in which that of the place is defined, if that has no name
        for code, line in stack:
            name = code.co_filename
            if name.endswith(WORKERS_LOOP):
                place, phase = place or within, "data"
                break
            users, known = self.of(name)
            if isinstance(known, dict):
                known = known.get(code.co_name)
            if known == CLOSURE or callee is not None and self._calls_closure(name, *callee):
                closure, phase = True, "forward" if phase is None else phase
            if known == CLOSURE or closure and known == "optimizer":
                known = None
            if not name.endswith(CONTEXT):
                callee = (name, users)
            if known and code.co_name == "<module>":
                phase = None  # the file is being imported: what it calls meanwhile is no phase
            elif known == FIT:
                phase = "step" if phase is None else phase
            elif known is not None:
                called = called and phase in (None, known)
                phase = known
            again = again or phase != "backward" and name.endswith(CHECKPOINT)
            if users and place is None:
                place = (line or 0, name, _name_of(code))
                called = phase is None
                outer = _outer_of(code)
            elif users and outer is not None:  # a lambda, or an expression, that this function has called
                same = outer == getattr(code, "co_qualname", "")
                place = place[:2] + (_name_of(code),) if same else place
                outer = _outer_of(code) if same else None
            if within is None and self.in_package(name):
                within = (line or 0, name, _name_of(code))
            if place is None and name.endswith(LOADER):
                place = within
        if again and phase == "backward":
            phase = "recomputed"
        elif called and phase in ("backward", "optimizer"):
            phase = "own " + phase
        place = place or within
        return place and (phase or "",) + place

    def _calls_closure(self, name, callee, users):
        """Whether a file is an optimizer's of PyTorch, and what it calls is the user's or of another package."""
        return OPTIMIZERS in name and not name.endswith(STEPPERS) and (users or self.in_package(callee))

    @staticmethod
    def in_package(name):
        """Whether a file belongs to an installed package other than PyTorch."""
        return ("/site-packages/" in name or "/dist-packages/" in name) and "/torch/" not in name


def stack_of(frame, most):
    """The (code, line) pairs of a frame and those that called it. Nothing here releases the lock."""
    stack = []
    while frame is not None and len(stack) < most:
        stack.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return stack


def _name_of(code):
    """A function's name, with its class from Python 3.11 on."""
    return getattr(code, "co_qualname", code.co_name).rpartition("<locals>.")[2]


def _outer_of(code):
    """The qualified name of the function in which one without a name is defined; None: it has a name, or before Python 3.11."""
    name = getattr(code, "co_qualname", "")
    return name.rpartition(".<locals>.")[0] or None if code.co_name.startswith("<") else None


def _text(name, end):
    """A name in one line, without our separators: UTF-8, truncated."""
    raw = name.replace("\t", " ").replace("\n", " ").encode("utf-8", "replace")
    return raw[-NAME:] if end else raw[:NAME]


class Fine:
    """The short switch interval, for a moment. What the job sets meanwhile stays. A child that is forked
    meanwhile gets the usual one back."""

    usual_s = None  # while it is short

    @classmethod
    def begin(cls):
        """Returns whether it is short now: not if the usual one is as short."""
        usual_s = sys.getswitchinterval()
        if cls.usual_s is not None or usual_s <= FINE_S:
            return False
        cls.usual_s = usual_s
        sys.setswitchinterval(FINE_S)
        return True

    @classmethod
    def end(cls):
        """Restores it."""
        usual_s, cls.usual_s = cls.usual_s, None
        if usual_s is not None and sys.getswitchinterval() == FINE_S:
            sys.setswitchinterval(usual_s + 5e-7)  # CPython truncates to microseconds


class Lines:
    """The thread and its counts. plan: pairs of seconds between looks, and how many of them."""

    def __init__(self, directory, plan, thread, beside=""):
        self._directory = directory
        self._plan = plan
        # Released by who wants the thread to end, and by the thread at its end.
        self._stop, self._stopped = _thread.allocate_lock(), _thread.allocate_lock()
        self._stop.acquire()
        self._stopped.acquire()
        self._pid = os.getpid()
        self._thread = thread  # that is looked at
        self._beside = beside  # the phase of its lines in no other
        self._places = Places()
        self._counts = {}  # since the last flush
        self._running = {}  # those of them seen running
        self._unknown = 0  # looks at a running thread without a known line
        self._interrupted = None  # its place
        self._seen = set()  # all places so far
        self._ran = {}  # by thread: its CPU time in ns at a look, and when that was
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
            self._over = True
            return None
        return time.monotonic() - began - planned_s

    def count(self, waited_s):
        """Looks once; waited_s: time waited for the lock."""
        place, others = self._look(True)
        for thread, stack in others:
            self._add_other(thread, stack)
        if waited_s < AT_ONCE_S:
            self._add(self._counts, place)
        elif waited_s >= sys.getswitchinterval() or self._interrupt():
            self._add(self._running, self._interrupted or place)
            self._interrupted = None
        elif place is not None:
            self._unknown += 1

    def _look(self, others):
        """The place of the thread that is looked at, and (thread, stack) of others, if asked for."""
        # First all that needs frames: what follows may release the lock, and their functions return.
        frames = self._frames()
        stack = stack_of(frames.pop(self._thread, None), FRAMES)
        frames.pop(_thread.get_ident(), None)
        found = []
        while others and frames and len(found) < THREADS:
            thread, frame = frames.popitem()
            found.append((thread, stack_of(frame, FRAMES_OF_OTHERS)))
            del frame
        frames.clear()
        place = self._places.classify(stack)
        if place is not None and not place[0]:
            place = (self._beside,) + place[1:]
        return place, found

    def _add_other(self, thread, stack):
        """The script's other threads are in the phase "thread", while they run; or "pipeline", where a framework
        calls them for batches."""
        if any(code.co_filename.endswith(SCRIPT_OPS) for code, _ in stack):
            self._add_users(stack, "pipeline")  # it has frames only while TensorFlow calls Python there
            return
        known = sys.modules.get("threading")
        native = getattr(getattr(known, "_active", {}).get(thread), "native_id", None)
        if native is None:
            return
        try:
            with open("/proc/self/task/%d/schedstat" % native, "rb") as file:
                ran_ns = int(file.read().split()[0])
        except (OSError, ValueError, IndexError):
            return  # it has ended, or the kernel does not count
        before_ns, since = self._ran.get(thread, (ran_ns, 0))
        now = time.monotonic()
        self._ran[thread] = (ran_ns, now)
        if ran_ns - before_ns < RAN * (now - since) * 1e9:
            return
        prepares = any(KERAS_DATA in code.co_filename for code, _ in stack)
        self._add_users(stack, "pipeline" if prepares else "thread")

    def _add_users(self, stack, phase):
        place = self._places.classify(stack)
        if place is not None and self._places.of(place[2])[0]:
            self._add(self._counts, (phase,) + place[1:])

    def _frames(self):
        # CPython 3.11 makes frame objects under a lock that the destructor of a threading.local takes, too
        # (its issue 106883): none may start a garbage collection there. Nobody else runs meanwhile.
        first = gc.get_threshold()[0]
        near = first and gc.get_count()[0] + NEAR_COLLECTION > first
        if sys.version_info[:2] != (3, 11) or not near or not gc.isenabled():
            return sys._current_frames()
        gc.disable()
        try:
            return sys._current_frames()
        finally:
            gc.enable()

    def _add(self, counts, place):
        if place is not None and (place in self._seen or len(self._seen) < PLACES):
            self._seen.add(place)
            counts[place] = counts.get(place, 0) + 1

    def _interrupt(self):
        """Interrupts the thread where it runs, and keeps the place. Returns whether it could."""
        if not Fine.begin():
            return False
        try:
            for turn in range(FINE_TURNS):
                waited_s = self.wait(FINE_S * (0.5 + turn * 0.382 % 1.0))
                if waited_s is None:
                    break
                if waited_s >= FINE_S:
                    self._interrupted = self._look(False)[0]
                    break
        finally:
            Fine.end()
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
            # Signals are the job's threads', which may wait for one, or block it for a while.
            own = {getattr(signal, name) for name in SIGNALS}
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - own)
            flushed = time.monotonic()
            for turn, interval_s in enumerate(self._intervals(), 1):
                # Scattered over three to five quarters of the interval, to avoid the period of a loop.
                waited_s = self.wait(interval_s * (0.75 + turn * 2654435761 % 1024 / 2048.0))
                if waited_s is not None:
                    self.count(waited_s)
                if self._over:
                    break
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
        """The process ends. Returns whether the thread has ended."""
        try:
            if os.getpid() == self._pid:
                self._stop.release()
                return self._stopped.acquire(True, ENDS_S)
        except Exception:
            pass
        return False


def _can_look():
    """Not without Python's lock, where frames change during the look, nor in an interpreter that may end before
    its process does."""
    if sys.version_info < (3, 8) or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    is_main = getattr(_thread, "_is_main_interpreter", None)
    if is_main is not None:
        return is_main()
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        return True
    return interpreters.get_current() == interpreters.get_main()


_looking = None  # the process that looks already
_installed = None  # what looks at the process that trains


def _start(directory, plan, beside=""):
    """Returns what looks at this thread, or None."""
    global _looking
    if _looking == os.getpid() or not _can_look():
        return None
    _looking = os.getpid()
    lines = Lines(directory, plan, _thread.get_ident(), beside)
    _thread.start_new_thread(lines.run, ())
    return lines


def install(directory, plan=ALL, beside=""):
    """Starts looking at this thread; where there is a thread that looks, it looks at this one from now on. beside:
    the phase of lines that are in no other."""
    global _installed
    if _installed is not None and _installed._pid == os.getpid():
        _installed._thread, _installed._beside = _thread.get_ident(), beside
        return
    lines = _start(directory, plan, beside)
    if lines is not None:
        _installed = lines
        os.register_at_fork(after_in_child=Fine.end)
        atexit.register(lines.end)


def look_at_worker(directory):
    """The same for a loader worker, which ends without atexit; what the last second saw may be lost. A few
    workers of a job look."""
    for place in range(WORKERS_MAX):
        try:
            flags = os.O_WRONLY | os.O_EXCL
            os.close(strain_folder.open_in(directory, "looking-%d" % place, flags))
        except FileExistsError:
            continue
        _start(directory, FEW_OF_WORKER)
        return
