# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""Marks from Python: the ring of include/strain/marker.h, written through a mapped file.

    start(folder)    the marker directory is the parent of that folder
    ring = here()    this thread's ring, or None: marks go nowhere
    ring.begin(DATA); ring.end()

A mark is a few stores into the mapped file and a reading of the clock: no system call, no lock. Nothing is kept that the recorder has no room for: it is dropped and counted.
"""

import mmap
import os
import struct
import sys
import threading
from time import monotonic_ns

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

# Where things lie: words of 8 bytes, but where the name says bytes.
AT_WRITTEN = 8
AT_DROPPED = 9
AT_NAMES_BYTES = 80
AT_TAKEN = 16
AT_NAME_BYTES = 1024
AT_RECORD_BYTES = 16384
RECORD_BYTES = 32

# Names that the hooks use, in every ring at the same place; others follow.
KNOWN_NAMES = ("(other)", "data", "transfer", "forward", "backward", "optimizer", "communication",
               "validation", "checkpoint", "step", "prepare", "import")  # fmt: skip

(OTHER, DATA, TRANSFER, FORWARD, BACKWARD, OPTIMIZER, COMMUNICATION, VALIDATION, CHECKPOINT, STEP,
 PREPARE, IMPORT) = range(len(KNOWN_NAMES))  # fmt: skip

_HELD_MAX = 256
# time, sequence, kind, depth, name, number, extra
_RECORD = struct.Struct("=QIBBHqq")

# Elsewhere than on x86 stores reach others in any order: taking a lock puts them in order.
_fence = None if os.uname().machine in ("x86_64", "i686") else threading.Lock()


def _writer(mapped, words, last_ns):
    """put, begin and end of one ring: closures that call nothing, because a mark should cost a
    fraction of a microsecond."""
    pack, at_written, fence = _RECORD.pack_into, AT_WRITTEN, _fence
    written = depth = 0
    room = SLOTS  # so many may be written before it is asked what the recorder has read

    def has_room():
        nonlocal room
        room = words[AT_TAKEN] + SLOTS
        if written < room:
            return True
        words[AT_DROPPED] += 1
        return False

    def publish():
        if fence:
            with fence:
                pass
        words[at_written] = written

    def put(kind, name, number, extra, time_ns):
        """One record that is no span. Its time never lies before the last one's. Returns that."""
        nonlocal written, last_ns
        last_ns = time_ns = max(time_ns, last_ns)
        if written < room or has_room():
            at = written % SLOTS * 32 + 16384
            written += 1
            level = depth if depth < DEPTH else DEPTH
            pack(mapped, at, time_ns, written & 0xFFFFFFFF, kind, level, name, number, extra)
            publish()
        return time_ns

    def begin(name, time_ns=0, samples=0):
        """A span begins; name is one of this module's numbers, or of number(). Returns when."""
        nonlocal written, last_ns, depth
        if time_ns <= last_ns:
            time_ns = last_ns if time_ns else monotonic_ns()
        last_ns = time_ns
        if depth < DEPTH and (written < room or has_room()):
            at = written % SLOTS * 32 + 16384
            written += 1
            pack(mapped, at, time_ns, written & 0xFFFFFFFF, 1, depth, name, -1, samples)
            if fence:
                publish()
            else:
                words[at_written] = written
        depth += 1
        return time_ns

    def end(time_ns=0):
        """The span that began last ends. Returns when."""
        nonlocal written, last_ns, depth
        if time_ns <= last_ns:
            time_ns = last_ns if time_ns else monotonic_ns()
        last_ns = time_ns
        depth -= 1
        if 0 <= depth < DEPTH and (written < room or has_room()):
            at = written % SLOTS * 32 + 16384
            written += 1
            pack(mapped, at, time_ns, written & 0xFFFFFFFF, 2, depth, 0, -1, 0)
            if fence:
                publish()
            else:
                words[at_written] = written
        elif depth < 0:
            depth = 0
        return time_ns

    return put, begin, end


assert (MARK_BEGIN, MARK_END, SLOTS, RECORD_BYTES, AT_RECORD_BYTES) == (1, 2, 7680, 32, 16384)


class Ring:
    """One thread's ring. Times are CLOCK_MONOTONIC."""

    __slots__ = ("put", "begin", "end", "_writer", "_held", "_map", "_names")

    def __init__(self, mapped, pid, tid):
        self._map = mapped
        created_ns = monotonic_ns()  # no mark may be older
        self._names = {name: index for index, name in enumerate(KNOWN_NAMES)}
        self._held = None  # a list: marks wait in it until it is known what they are
        self._writer = _writer(mapped, memoryview(mapped).cast("Q"), created_ns)
        self.put, self.begin, self.end = self._writer
        self._fill_header(pid, tid, created_ns)

    def point(self, name, value, number=-1):
        """A value at this moment."""
        bits = struct.unpack("=q", struct.pack("=d", value))[0]
        self.put(MARK_POINT, name, number, bits, monotonic_ns())

    def epoch(self, number, time_ns):
        """An epoch begins; the one before it ends, and its last iteration."""
        return self.put(MARK_EPOCH, 0, number, 0, time_ns)

    def epoch_end(self, time_ns):
        """The epoch ends, and its last iteration."""
        return self.put(MARK_EPOCH_END, 0, -1, 0, time_ns)

    def iteration(self, number, time_ns):
        """An iteration begins, of samples that its end tells."""
        return self.put(MARK_ITERATION, 0, number, -1, time_ns)

    def iteration_end(self, samples, time_ns):
        """The iteration ends; samples -1: not known."""
        return self.put(MARK_ITERATION_END, 0, -1, samples, time_ns)

    def iteration_cancel(self, time_ns):
        """There was no iteration after all."""
        return self.put(MARK_ITERATION_END, 0, 0, -1, time_ns)

    def hold(self):
        """From now on marks wait until release(); bounded."""
        self._held = []
        self.put, self.begin, self.end = self._hold_put, self._hold_begin, self._hold_end

    def note(self, time_ns):
        """Where the marks that are held would end, should they be of a whole."""
        if self._held is not None:
            self._held.append(("note", time_ns))

    def take_held(self):
        """What was held, for write(); marks do not wait any more."""
        held, self._held = self._held, None
        self.put, self.begin, self.end = self._writer
        return held or ()

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

    def number(self, name):
        """The number of a name of one's own."""
        index = self._names.get(name)
        if index is None:
            index = self._names[name] = self._intern(name)
        return index

    def _intern(self, name):
        index = len(self._names)
        if index >= NAMES:
            return 0
        self._write_name(index, name)
        struct.pack_into("=I", self._map, AT_NAMES_BYTES, index + 1)
        return index

    def _write_name(self, index, name):
        data = name.encode("utf-8", "replace")[: NAME_BYTES - 1].ljust(NAME_BYTES, b"\0")
        at = AT_NAME_BYTES + index * NAME_BYTES
        self._map[at : at + NAME_BYTES] = data

    def _fill_header(self, pid, tid, created_ns):
        """Makes it a ring: the magic is written last."""
        for index, name in enumerate(KNOWN_NAMES):
            self._write_name(index, name)
        struct.pack_into("=I", self._map, AT_NAMES_BYTES, len(KNOWN_NAMES))
        struct.pack_into("=IIIIQQ", self._map, 8, VERSION, pid, tid, 0, _pid_namespace(),
                         created_ns)  # fmt: skip
        struct.pack_into("=Q", self._map, 0, MAGIC)


class _Process:
    """Where this process's rings go; threads of a forked child begin anew."""

    directory = None
    local = threading.local()


def start(folder):
    """Marks go to the parent of this folder from now on."""
    if _Process.directory is None:
        _Process.directory = os.path.dirname(folder)
        os.register_at_fork(after_in_child=_after_fork)


def _after_fork():
    _Process.local = threading.local()


def here():
    """This thread's ring; None where it has none."""
    local = _Process.local
    try:
        return local.ring
    except AttributeError:
        local.ring = _make_quietly()
        return local.ring


def _make_quietly():
    try:
        return _make(_Process.directory) if _Process.directory else None
    except Exception:
        return None


def _make(directory):
    pid = os.getpid()
    tid = _thread_id()
    path = "%s/ring-%d-%d-%d" % (directory, pid, tid, monotonic_ns())
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    handle = os.open(path, flags, 0o600)
    try:
        try:
            # Before it is mapped: else a full disk would kill at the first touch.
            os.posix_fallocate(handle, 0, BYTES)
        except OSError:
            os.ftruncate(handle, 0)  # left empty: so the recorder learns of it
            return None
        mapped = mmap.mmap(handle, BYTES)
    finally:
        os.close(handle)
    return Ring(mapped, pid, tid)


def _thread_id():
    if hasattr(threading, "get_native_id"):
        return threading.get_native_id()
    return int(os.readlink("/proc/thread-self").rsplit("/", 1)[1])  # Python 3.7


def _pid_namespace():
    try:
        return int(os.readlink("/proc/self/ns/pid").strip("pid:[]"))
    except (OSError, ValueError):
        return 0
