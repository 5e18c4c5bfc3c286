# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""Measures the phases of a step on the device, by events in its stream; what its allocator holds.

An event is put into the stream where a phase begins and ends, and read later, when query() says that
the device has passed it: nobody ever waits for the device. Of some steps a second only; nothing while a
graph is captured. What is read becomes points: `device.forward`, ..., seconds, with the iteration's
number.
"""

from collections import deque
from threading import get_ident
from time import monotonic_ns

import strain_hook

EVERY_NS = 100000000  # minimum interval of timed steps
WAITING_MAX = 8  # steps whose events the device has not passed yet


FIRST_LOOK_NS = 500000000  # at the allocator; each look waits four times as long as the one before
LOOKS = 6  # and one at the end: reports are bounded
CUTS_MAX = 64  # of a step
SETTLED = 8  # iterations, after which the allocator should have all that it needs


class Memory:
    """Tells what PyTorch's allocator took from the driver: bytes, at most, and how often it asked. An
    iteration that asks for memory waits for the driver, and often for the device."""

    def __init__(self, cuda, tell):
        self._cuda = cuda
        self._tell = tell
        self._wait_ns = FIRST_LOOK_NS
        self._next_ns = 0
        self._settled = None  # (iterations, allocations) then
        self._iterations = 0
        self._looks = 0
        self._peaks = {}  # a script may reset PyTorch's own

    def count(self):
        """An iteration has ended."""
        self._iterations += 1
        now_ns = monotonic_ns()
        if (now_ns >= self._next_ns and self._looks < LOOKS) or self._iterations == SETTLED:
            self._next_ns = now_ns + self._wait_ns
            self._wait_ns *= 4
            self._looks += 1
            self.look()

    def look(self):
        """Tells how it stands now."""
        if self._tell is not None:
            try:
                self._tell(self._facts())
            except Exception:  # another allocator
                self._tell = None

    def _facts(self):
        stats = self._cuda.memory_stats_as_nested_dict()
        allocations = stats.get("num_device_alloc")
        peaks = self._peaks
        for what in ("reserved", "allocated"):
            peaks[what] = max(peaks.get(what, 0), stats[what + "_bytes"]["all"]["peak"])
        facts = [
            ("device_memory_reserved", str(peaks["reserved"])),
            ("device_memory_allocated", str(peaks["allocated"])),
            ("device_memory_retries", str(stats["num_alloc_retries"])),
        ]
        share = getattr(self._cuda, "get_per_process_memory_fraction", lambda: 1.0)()
        if share < 1:
            total = self._cuda.get_device_properties(self._cuda.current_device()).total_memory
            facts.append(("device_memory_limit", str(int(share * total))))
        if allocations is not None and self._iterations >= SETTLED:
            if self._settled is None:
                self._settled = (self._iterations, allocations)
            asked, iterations = allocations - self._settled[1], self._iterations - self._settled[0]
            facts.append(("device_allocations", "%d in %d" % (asked, iterations)))  # one line: of one look
        return facts


READ_STEPS = 6  # steps in which results read from the device are counted
# Not __float__ and __int__: PyTorch's warning about a tensor with gradients would name this file.
READERS = ("item", "tolist", "cpu", "to", "__bool__")
PLACES = 100
READS_MAX = 10000  # counted


class Reads:
    """Counts the tensors that a step reads from the device, and where: the thread waits each time until the
    device has computed them, and the device then waits for the thread. Of a few steps only: a method with a
    patch costs each call a microsecond."""

    def __init__(self, torch, hook, tell, packages):
        self._tensor = torch.Tensor
        self._hook = hook
        self._tell = tell
        self._packages = packages
        self._thread = get_ident()
        self._count = 0
        self._least = -1
        self._places = {}
        self._all = 0
        self._overridden = torch.overrides.has_torch_function_unary
        self._override = torch.overrides.handle_torch_function
        self.left = READ_STEPS
        for name in READERS:
            if hasattr(torch.Tensor, name):
                hook.patch(torch.Tensor, name, self._wrap)

    def _wrap(self, original):
        overridden, override, plain = self._overridden, self._override, self._hook.plain(original)

        def read(tensor, *arguments, **options):
            if overridden(tensor):  # a class of the job's own knows PyTorch's function, not this one
                return override(plain, (tensor,), tensor, *arguments, **options)
            result = original(tensor, *arguments, **options)
            try:
                waits = not options.get("non_blocking")
                there = waits and tensor.is_cuda and not getattr(result, "is_cuda", False)
                if there and self.left and get_ident() == self._thread:
                    self._found()
            except Exception:
                self.left = 0
            return result

        return read

    def _found(self):
        self._count += 1
        self._all += 1
        if self._all == READS_MAX:
            self.left = 0  # whatever calls them: the methods are restored after the step
        place = strain_hook.caller(self._packages)
        if place in self._places or len(self._places) < PLACES:
            self._places[place] = self._places.get(place, 0) + 1

    def stepped(self):
        """A step of an optimizer has ended. The first one may have begun before."""
        if self.left == READ_STEPS:
            self._places.clear()
        elif self._least < 0 or self._count < self._least:
            self._least = self._count
        self._count = 0
        self.left = max(0, self.left - 1)
        if not self.left:
            self.stop()
            if self._least > 0 and self._places:
                place = max(self._places, key=self._places.get)
                self._tell((("device_reads", str(self._least)), ("device_reads_at", place or "")))

    def stop(self):
        """Nothing is counted any more."""
        self.left = 0
        for name in READERS:
            self._hook.unpatch(self._tensor, name)


def limit(torch, hook, size):
    """Gives PyTorch's allocator at most `size` bytes on the current device, from its first use of CUDA on,
    and on one that becomes it: for the probes of `strain advise`. Others would get a context by it. A
    lower limit of the script's own stays."""
    wanted = int(size)
    lowest = {}  # share by device, of the script

    def apply():
        try:
            device = torch.cuda.current_device()
            total = torch.cuda.get_device_properties(device).total_memory
            set_share(min(1.0, wanted / total, lowest.get(device, 1.0)), device)
        except Exception as error:
            hook.report.say("missing", "limit of GPU memory: %s" % strain_hook.describe(error))

    def wrap_share(original):
        def set_per_process_memory_fraction(fraction, device=None):
            original(fraction, device)  # which checks it
            try:
                number = device if type(device) is int else getattr(torch.device(device or "cuda"), "index", None)
                lowest[torch.cuda.current_device() if number is None else number] = fraction
            except Exception as error:
                hook.report.say("missing", "limit of GPU memory: %s" % strain_hook.describe(error))
            apply()

        return set_per_process_memory_fraction

    def wrap_device(original):
        def set_device(device):
            original(device)
            apply()

        return set_device

    set_share = torch.cuda.set_per_process_memory_fraction
    hook.patch(torch.cuda, "set_per_process_memory_fraction", wrap_share)
    hook.patch(torch.cuda, "set_device", wrap_device)
    torch.cuda._lazy_call(apply)


class DeviceClock:
    """Times one thread's steps on its current device."""

    def __init__(self, cuda, ring, memory):
        self._cuda = cuda
        self._memory = memory
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
        if len(self._step[1]) == CUTS_MAX:  # as many copies, maybe: events are not for nothing
            self._step = None
            return
        if self._cuda.is_current_stream_capturing():
            self._step = None
            return
        event = self._free.pop() if self._free else self._cuda.Event(enable_timing=True)
        event.record()
        self._step[1].append((phase, event))

    def end(self):
        """The iteration has ended."""
        self._memory.count()
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
