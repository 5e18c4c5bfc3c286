# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""Marks from Python: the ring of include/strain/marker.h, written through a mapped file.

    start(directory) the marker directory, of STRAIN_MARKERS
    ring = here()    this thread's ring, or None: marks go nowhere
    other = apart(t) a second one, likewise
    ring.begin(DATA); ring.end()

A mark is a few stores into the mapped file and a reading of the clock: no system call, no lock.
Nothing is kept that the recorder has no room for: it is dropped and counted.
"""

import mmap
import os
import struct
import threading
from time import monotonic_ns

import strain_folder

MAGIC = 0x676E69526E727453
VERSION = 1
BYTES = 262144
NAMES = 240
NAME_BYTES = 64
SLOTS = 7680
DEPTH = 63

# enum strain_mark_kind
MARK_BEGIN = 1
MARK_END = 2
MARK_POINT = 3
MARK_EPOCH = 4
MARK_EPOCH_END = 5
MARK_ITERATION = 6
MARK_SPAN = 7
MARK_ITERATION_END = 8

# Offsets, in words of 8 bytes unless the name says bytes.
AT_WRITTEN = 8
AT_DROPPED = 9
AT_NAMES_BYTES = 80
AT_TAKEN = 16
AT_NAME_BYTES = 1024
AT_RECORD_BYTES = 16384
RECORD_BYTES = 32

# Names that the hooks use, at the same index in every ring; others follow.
KNOWN_NAMES = ("(other)", "data", "transfer", "forward", "backward", "optimizer", "communication",
               "validation", "checkpoint", "step", "prepare", "import")  # fmt: skip

(OTHER, DATA, TRANSFER, FORWARD, BACKWARD, OPTIMIZER, COMMUNICATION, VALIDATION, CHECKPOINT, STEP,
 PREPARE, IMPORT) = range(len(KNOWN_NAMES))  # fmt: skip

_HELD_MAX = 256

# A record: time, sequence, and the rest, which is kind, depth, name, number, extra.
_REST = struct.Struct("=BBHqq")
_RECORD = struct.Struct("=QI20s")
# The same with a separate number, and with a separate extra.
_ITERATION_AND_BEGIN = struct.Struct("=QI4sqqQI20s")
_SPANS_AND_END = struct.Struct("=" + 3 * "QI12sQ" + "QI12sq")


def _begins(name):
    """The fields of a span's beginning except its time, by depth."""
    return [_REST.pack(MARK_BEGIN, depth, name, -1, 0) for depth in range(DEPTH)]


# The same in all rings; others than the known names follow as they come.
_BEGINS = {name: _begins(name) for name in range(len(KNOWN_NAMES))}
_ENDS = [_REST.pack(MARK_END, depth, 0, -1, 0) for depth in range(DEPTH)]


# Marks that a loop writes together, outside of all spans.
_ITERATION = struct.pack("=BBH", MARK_ITERATION, 0, 0)
_ITERATION_END = struct.pack("=BBHq", MARK_ITERATION_END, 0, 0, -1)
_FORWARD, _BACKWARD, _OPTIMIZER = (struct.pack("=BBHq", MARK_SPAN, 0, name, -1)
                                   for name in (FORWARD, BACKWARD, OPTIMIZER))  # fmt: skip


def _in_order(pack):
    """A pack_into whose stores others see before the later ones. On x86 they do anyway; elsewhere
    a lock puts them in order, once given back and taken again."""
    if os.uname().machine in ("x86_64", "i686"):
        return pack
    fence = threading.Lock()

    def pack_in_order(*fields):
        pack(*fields)
        with fence:
            pass
        with fence:
            pass

    return pack_in_order


def _writer(mapped, words, last_ns):
    """What writes into one ring: closures that call nothing but the clock, because a mark should cost
    a fraction of a microsecond."""
    pack = _in_order(_RECORD.pack_into)
    pack_turn = _in_order(_ITERATION_AND_BEGIN.pack_into)
    pack_step = _in_order(_SPANS_AND_END.pack_into)
    begins, ends, written_at = _BEGINS, _ENDS, AT_WRITTEN
    iteration, iteration_end, data = _ITERATION, _ITERATION_END, _BEGINS[DATA][0]
    forward, backward, optimizer, ended = _FORWARD, _BACKWARD, _OPTIMIZER, _ENDS[0]
    written = depth = room = 0  # room: so many may be written before make_room() is asked
    at = AT_RECORD_BYTES  # of the next record

    def make_room():
        nonlocal at, room
        at = AT_RECORD_BYTES + written % SLOTS * RECORD_BYTES
        # Until the file begins again, or up to the records not read yet.
        room = min(words[AT_TAKEN] + SLOTS, (written // SLOTS + 1) * SLOTS)
        if written < room:
            return True
        words[AT_DROPPED] += 1
        return False

    def put(kind, name, number, extra, time_ns):
        """Writes a record that is not a span; its time is never before the last one's. Returns it."""
        nonlocal written, last_ns, at
        last_ns = time_ns = max(time_ns, last_ns)
        if written < room or make_room():
            written += 1
            rest = _REST.pack(kind, min(depth, DEPTH), name, number, extra)
            pack(mapped, at, time_ns, written & 0xFFFFFFFF, rest)
            words[written_at] = written
            at += 32
        return time_ns

    def begin(name, time_ns=0, samples=0):
        """Begins a span; name is one of this module's numbers, or of number(). Returns the time."""
        nonlocal written, last_ns, depth, at
        if time_ns == 0:
            last_ns = time_ns = monotonic_ns()
        elif time_ns > last_ns:
            last_ns = time_ns
        else:
            time_ns = last_ns
        if depth < DEPTH and (written < room or make_room()):
            written += 1
            rest = _REST.pack(1, depth, name, -1, samples) if samples else begins[name][depth]
            pack(mapped, at, time_ns, written & 0xFFFFFFFF, rest)
            words[written_at] = written
            at += 32
        depth += 1
        return time_ns

    def end(time_ns=0):
        """Ends the span begun last. Returns the time."""
        nonlocal written, last_ns, depth, at
        if time_ns == 0:
            last_ns = time_ns = monotonic_ns()
        elif time_ns > last_ns:
            last_ns = time_ns
        else:
            time_ns = last_ns
        depth -= 1
        if 0 <= depth < DEPTH and (written < room or make_room()):
            written += 1
            pack(mapped, at, time_ns, written & 0xFFFFFFFF, ends[depth])
            words[written_at] = written
            at += 32
        elif depth < 0:
            depth = 0
        return time_ns

    def end_now():
        """The same as end(), for spans that end in every step."""
        nonlocal written, last_ns, depth, at
        last_ns = time_ns = monotonic_ns()
        if depth != 1 or written >= room:
            return end(time_ns)
        depth = 0
        written += 1
        pack(mapped, at, time_ns, written & 0xFFFFFFFF, ended)
        words[written_at] = written
        at += 32
        return time_ns

    # Marks that a loop makes together, written at once if they fit.

    def turn(number, began_ns, time_ns):
        """An iteration begins, with its samples given at its end; a wait for data in it begins now."""
        nonlocal written, last_ns, depth, at
        first = written & 0xFFFFFFFF
        if began_ns < last_ns or depth or written + 2 > room or first > 0xFFFFFFF0:
            put(6, 0, number, -1, began_ns)
            begin(DATA, time_ns)
            return
        pack_turn(mapped, at, began_ns, first + 1, iteration, number, -1, time_ns, first + 2, data)
        words[written_at] = written = written + 2
        at += 64
        depth = 1
        last_ns = time_ns

    def step(forward_ns, backward_ns, between_ns, optimizer_ns, samples, time_ns):
        """A step's phases and its iteration end: backward at between_ns, the last one now."""
        nonlocal written, last_ns, at
        first = written & 0xFFFFFFFF
        if backward_ns < last_ns or depth or written + 4 > room or first > 0xFFFFFFF0:
            put(7, FORWARD, -1, forward_ns, backward_ns)
            put(7, BACKWARD, -1, backward_ns, between_ns)
            put(7, OPTIMIZER, -1, optimizer_ns, time_ns)
            put(8, 0, -1, samples, time_ns)
            return
        pack_step(mapped, at, backward_ns, first + 1, forward, forward_ns,
                  between_ns, first + 2, backward, backward_ns,
                  time_ns, first + 3, optimizer, optimizer_ns,
                  time_ns, first + 4, iteration_end, samples)  # fmt: skip
        words[written_at] = written = written + 4
        at += 128
        last_ns = time_ns

    return {"put": put, "begin": begin, "end": end, "end_now": end_now, "turn": turn, "step": step}


assert (MARK_BEGIN, MARK_ITERATION, MARK_SPAN, MARK_ITERATION_END, RECORD_BYTES) == (1, 6, 7, 8, 32)


class Ring:
    """One thread's ring. Times are CLOCK_MONOTONIC."""

    # The first six are the functions of _writer, or those that hold marks.
    __slots__ = ("put", "begin", "end", "end_now", "turn", "step", "_writer", "_held", "_map", "_names",
                 "_own_epochs", "_own_iterations", "_next_iteration")  # fmt: skip

    def __init__(self, mapped, pid, tid, created_ns):
        self._map = mapped  # no mark may be older than created_ns
        self._names = {name: index for index, name in enumerate(KNOWN_NAMES)}
        self._own_epochs = self._own_iterations = False  # marked by the program, not by a hook
        self._next_iteration = 0  # of the program
        self._held = None  # a list: marks wait in it until their meaning is known
        self._writer = _writer(mapped, memoryview(mapped).cast("Q"), created_ns)
        self._write_by(self._writer)
        self._fill_header(pid, tid, created_ns)

    def point(self, name, value, number=-1):
        """Marks a value at this time."""
        bits = struct.unpack("=q", struct.pack("=d", value))[0]
        self.put(MARK_POINT, name, number, bits, monotonic_ns())

    def epoch(self, number, time_ns):
        """An epoch begins; the previous one and its last iteration end."""
        return time_ns if self._own_epochs else self.put(MARK_EPOCH, 0, number, 0, time_ns)

    def epoch_end(self, time_ns):
        """The epoch and its last iteration end."""
        return time_ns if self._own_epochs else self.put(MARK_EPOCH_END, 0, -1, 0, time_ns)

    def iteration(self, number, time_ns):
        """An iteration begins, with its samples given at its end."""
        if self._own_iterations:
            return time_ns
        return self.put(MARK_ITERATION, 0, number, -1, time_ns)

    def iteration_end(self, samples, time_ns):
        """The iteration ends; samples -1: unknown."""
        if self._own_iterations:
            return time_ns
        return self.put(MARK_ITERATION_END, 0, -1, samples, time_ns)

    def iteration_cancel(self, time_ns):
        """Withdraws the iteration."""
        if self._own_iterations:
            return time_ns
        return self.put(MARK_ITERATION_END, 0, 0, -1, time_ns)

    # Marks of the program itself (strain.py). From then on, hooks do not mark those in this thread.

    def program_epoch(self, number):
        """The same as epoch()."""
        self._own_epochs = True
        self.put(MARK_EPOCH, 0, number, 0, monotonic_ns())

    def program_epoch_end(self):
        """The same as epoch_end()."""
        self.put(MARK_EPOCH_END, 0, -1, 0, monotonic_ns())

    def program_iteration(self, number, samples):
        """The same as iteration(); number None: the next one's, samples -1: unknown."""
        if not self._own_iterations:
            self._own_iterations = True
            self._writer = dict(self._writer, turn=self._hold_turn, step=self._hold_step)
            if self._held is None:
                self._write_by(self._writer)
        number = self._next_iteration if number is None else number
        self._next_iteration = number + 1
        self.put(MARK_ITERATION, 0, number, samples, monotonic_ns())

    def program_iteration_end(self, samples):
        """The same as iteration_end()."""
        self.put(MARK_ITERATION_END, 0, -1, samples, monotonic_ns())

    def program_iteration_cancel(self):
        """The same as iteration_cancel()."""
        self._next_iteration -= 1
        self.put(MARK_ITERATION_END, 0, 0, -1, monotonic_ns())

    def hold(self):
        """Holds marks from now on until release(); bounded."""
        self._held = []
        self._write_by({name: getattr(self, "_hold_" + name) for name in self._writer})

    def note(self, time_ns):
        """Notes where the held marks would end if they belong together."""
        if self._held is not None:
            self._held.append(("note", time_ns))

    def take_held(self):
        """Returns the held marks, for write(), and stops holding."""
        held, self._held = self._held, None
        self._write_by(self._writer)
        return held or ()

    def _write_by(self, functions):
        for name, function in functions.items():
            setattr(self, name, function)

    def write(self, held, within=0):
        """Writes marks that were held. within: the span that the note ends is open, and what lies
        between two of its waits is a span of this name."""
        waits = ended_ns = 0
        for mark in held:
            what = mark[0]
            if what == "note":
                if within:
                    self.end(mark[1])
                    within = 0
                continue
            if what == "begin" and mark[1] == DATA:
                if within and ended_ns and waits > 1:
                    self.begin(within, ended_ns)
                    self.end(mark[2])
                waits += 1
            getattr(self, what)(*mark[1:])
            ended_ns = mark[1] if what == "end" else 0

    def _hold(self, mark, time_ns):
        self._held.append(mark)
        if len(self._held) > _HELD_MAX:
            self.write(self.take_held())
        return time_ns

    def _hold_put(self, kind, name, number, extra, time_ns):
        return self._hold(("put", kind, name, number, extra, time_ns), time_ns)

    def _hold_begin(self, name, time_ns=0, samples=0):
        time_ns = time_ns or monotonic_ns()
        return self._hold(("begin", name, time_ns, samples), time_ns)

    def _hold_end(self, time_ns=0):
        time_ns = time_ns or monotonic_ns()
        return self._hold(("end", time_ns), time_ns)

    def _hold_end_now(self):
        return self.end(monotonic_ns())

    def _hold_turn(self, number, began_ns, time_ns):
        self.iteration(number, began_ns)
        self.begin(DATA, time_ns)

    def _hold_step(self, forward_ns, backward_ns, between_ns, optimizer_ns, samples, time_ns):
        self.put(MARK_SPAN, FORWARD, -1, forward_ns, backward_ns)
        self.put(MARK_SPAN, BACKWARD, -1, backward_ns, between_ns)
        self.put(MARK_SPAN, OPTIMIZER, -1, optimizer_ns, time_ns)
        self.iteration_end(samples, time_ns)

    def number(self, name):
        """Returns the number of a name."""
        index = self._names.get(name)
        if index is None:
            index = self._names[name] = self._intern(name)
        return index

    def _intern(self, name):
        index = len(self._names)
        if index >= NAMES:
            return 0
        _BEGINS.setdefault(index, _begins(index))
        self._write_name(index, name)
        struct.pack_into("=I", self._map, AT_NAMES_BYTES, index + 1)
        return index

    def _write_name(self, index, name):
        data = name.encode("utf-8", "replace")[: NAME_BYTES - 1].ljust(NAME_BYTES, b"\0")
        at = AT_NAME_BYTES + index * NAME_BYTES
        self._map[at : at + NAME_BYTES] = data

    def _fill_header(self, pid, tid, created_ns):
        """Completes the ring: the magic is written last."""
        for index, name in enumerate(KNOWN_NAMES):
            self._write_name(index, name)
        struct.pack_into("=I", self._map, AT_NAMES_BYTES, len(KNOWN_NAMES))
        struct.pack_into("=IIIIQQ", self._map, 8, VERSION, pid, tid, 0, _pid_namespace(),
                         created_ns)  # fmt: skip
        struct.pack_into("=Q", self._map, 0, MAGIC)


class _Process:
    """The directory of this process's rings; threads of a forked child begin new ones."""

    directory = None
    local = threading.local()


def start(directory):
    """Sets the directory of marks."""
    if _Process.directory is None:
        _Process.directory = directory
        os.register_at_fork(after_in_child=_after_fork)


def _after_fork():
    _Process.local = threading.local()


def here():
    """This thread's ring; None if it has none."""
    local = _Process.local
    try:
        return local.ring
    except AttributeError:
        local.ring = _make_quietly()
        return local.ring


def apart(since_ns, name="apart"):
    """Another ring of this thread, for spans whose times do not follow those of its other marks.
    since_ns: no mark in it is older. name: of several such rings."""
    local = vars(_Process.local)
    if name not in local:
        local[name] = _make_quietly(since_ns)
    return local[name]


def _make_quietly(since_ns=0):
    try:
        return _make(_Process.directory, since_ns) if _Process.directory else None
    except Exception:
        return None


def _make(directory, since_ns):
    pid = os.getpid()
    tid = _thread_id()
    name = "ring-%d-%d-%d" % (pid, tid, monotonic_ns())
    handle = strain_folder.open_in(directory, name, os.O_RDWR | os.O_EXCL)
    try:
        try:
            # Allocated before mapping; otherwise a full disk would kill the process at the first write.
            os.posix_fallocate(handle, 0, BYTES)
        except OSError:
            os.ftruncate(handle, 0)  # left empty, which tells the recorder
            return None
        mapped = mmap.mmap(handle, BYTES)
    finally:
        os.close(handle)
    return Ring(mapped, pid, tid, since_ns or monotonic_ns())


def _thread_id():
    if hasattr(threading, "get_native_id"):
        return threading.get_native_id()
    return int(os.readlink("/proc/thread-self").rsplit("/", 1)[1])  # Python 3.7


def _pid_namespace():
    try:
        return int(os.readlink("/proc/self/ns/pid").strip("pid:[]"))
    except (OSError, ValueError):
        return 0
