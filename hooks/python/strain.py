# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""Marks for strain: where a program's epochs, iterations and phases are (docs/markers.md).

    import strain

    for epoch in strain.epochs(range(3)):
        for batch in strain.iterations(loader, samples=32):
            with strain.phase("forward"):
                ...
        strain.point("loss", loss)

    @strain.phase("tokenize")
    def tokenize(text): ...

Without `strain run` nothing is marked, and a mark costs a call that does nothing. Whatever cannot be
marked is left out: nothing here raises, prints or waits. Python 3.8 and newer.
"""

import functools
import os
from time import monotonic_ns

__all__ = [
    "epoch", "epoch_end", "epochs", "iteration", "iteration_end", "iterations", "phase", "point",
    "recorded", "span", "step", "unit",
]  # fmt: skip

_COROUTINE = 0x80  # inspect.CO_COROUTINE
_NAMES_MAX = 1024  # number of phases kept for reuse by name
_INTEGER_MAX = 2**63 - 1
_SAMPLES_MAX = 2**32 - 1

_ring = None  # the module that writes, if this process is recorded


def _find_ring():
    """The module that writes rings, or None. The same one as that of strain's hooks: a thread has one
    ring."""
    directory = os.environ.get("STRAIN_MARKERS")
    if not directory:
        return None
    try:
        import strain_ring

        strain_ring.Ring.program_epoch  # another version may know less than this module
        strain_ring.start(directory)
        return strain_ring
    except Exception:
        return None


_ring = _find_ring()


def _here():
    return None


if _ring is not None:
    _here = _ring.here


def recorded():
    """Whether marks of this thread are recorded."""
    return _here() is not None


# Invalid marks are dropped -----------------------------------------------------------------------


def _integer(value, most, otherwise):
    try:
        value = int(value)
    except Exception:
        return otherwise
    return value if 0 <= value <= most else otherwise


def _samples(value):
    return -1 if value is None else _integer(value, _SAMPLES_MAX, -1)


def _text(name):
    try:
        return str(name) or "(other)"
    except Exception:
        return "(other)"


# Phases ------------------------------------------------------------------------------------------


class _Nothing:
    """Stands for every context when nothing is recorded."""

    __slots__ = ()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        return None

    def __call__(self, function):
        return function


_NOTHING = _Nothing()


class _Phase:
    """A span around a block or a function. It knows nothing of the span that is open, so that one
    object serves all threads, and itself within itself."""

    __slots__ = ("_name", "_samples")

    def __init__(self, name, samples=0):
        self._name = _text(name)
        self._samples = samples

    def __enter__(self):
        ring = _here()
        if ring is not None:
            ring.begin(ring.number(self._name), 0, self._samples)
        return self

    def __exit__(self, kind, value, traceback):
        ring = _here()
        if ring is not None:
            ring.end()

    def __call__(self, function):
        code = getattr(function, "__code__", None)
        if getattr(code, "co_flags", 0) & _COROUTINE:
            return self._around_coroutine(function)

        @functools.wraps(function)
        def marked(*arguments, **named):
            with self:
                return function(*arguments, **named)

        return marked

    def _around_coroutine(self, function):
        # Other spans of this thread run while it waits, and cross this one.
        @functools.wraps(function)
        async def marked(*arguments, **named):
            began_ns = monotonic_ns()
            try:
                return await function(*arguments, **named)
            finally:
                span(self._name, began_ns)

        return marked


_phases = {}


def phase(name, samples=None):
    """A span: `with phase("tokenize"):`, or a decorator of a function or coroutine, also bare. One of
    strain's phases where its name is one of those (docs/markers.md), else your own. Of so many
    samples, where that is said."""
    try:
        return _phases[name]
    except Exception:
        return _new_phase(name, samples)


def _new_phase(name, samples):
    if callable(name):
        return _Phase(getattr(name, "__name__", "(other)"))(name)
    if samples is not None:
        return _Phase(name, max(_samples(samples), 0))
    new = _Phase(name)
    if type(name) is str and len(_phases) < _NAMES_MAX:
        _phases[name] = new
    return new


def span(name, began_ns):
    """A span from then (time.monotonic_ns) to now, which may cross others."""
    ring = _here()
    if ring is not None:
        began_ns = _integer(began_ns, _INTEGER_MAX, monotonic_ns())
        ring.put(_ring.MARK_SPAN, ring.number(_text(name)), -1, began_ns, monotonic_ns())


def point(name, value=None):
    """A point, or a value at this time."""
    ring = _here()
    if ring is not None:
        try:
            value = float("nan") if value is None else float(value)
        except Exception:
            return
        ring.point(ring.number(_text(name)), value)


# Epochs and iterations ---------------------------------------------------------------------------


class _Ending:
    """Returned by epoch() and iteration(); as a context it ends them with a block."""

    __slots__ = ("_end",)

    def __init__(self, end):
        self._end = end

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        self._end()


def epoch(number):
    """Epoch `number` begins; the one before it, and its last iteration, end. As a context it ends
    with its block."""
    ring = _here()
    if ring is None:
        return _NOTHING
    ring.program_epoch(_integer(number, _INTEGER_MAX, 0))
    return _EPOCH


def epoch_end():
    """The epoch ends; what follows belongs to no epoch."""
    ring = _here()
    if ring is not None:
        ring.program_epoch_end()


def epochs(iterable):
    """The items, each of which is an epoch: `for epoch in epochs(range(3)):`. Its number is the item
    where that is an integer, else they are counted from 1."""
    for count, item in enumerate(iterable, 1):
        with epoch(item if type(item) is int else count):
            yield item


def iteration(number=None, samples=None):
    """An iteration begins, of so many samples; the one before it ends. Without a number they are
    counted from 0, in each thread. As a context it ends with its block."""
    ring = _here()
    if ring is None:
        return _NOTHING
    number = None if number is None else _integer(number, _INTEGER_MAX, None)
    ring.program_iteration(number, _samples(samples))
    return _ITERATION


def iteration_end(samples=None):
    """The iteration ends, with this number of samples (None: the number given at its beginning)."""
    ring = _here()
    if ring is not None:
        ring.program_iteration_end(_samples(samples))


def iterations(iterable, samples=None):
    """The items, each of which is an iteration that begins with the wait for it, phase `data`. samples:
    of each, a number or a function of the item."""
    source = iter(iterable)
    while True:
        iteration()
        try:
            with phase("data"):
                item = next(source)
        except BaseException as error:  # there was no iteration after all
            _cancel()
            if isinstance(error, StopIteration):
                return
            raise
        try:
            yield item
        finally:
            iteration_end(_samples_of(item, samples))


def unit(name):
    """What a sample is, in the plural: "steps", "frames". Rates of the run are then in it."""
    if _ring is None:
        return
    try:
        import strain_folder

        flags = os.O_WRONLY | os.O_APPEND
        handle = strain_folder.open_in(os.environ["STRAIN_MARKERS"], "hook-%d" % os.getpid(), flags)
        try:
            os.write(handle, ("samples_unit %s\n" % "_".join(_text(name).split())[:32]).encode())
        finally:
            os.close(handle)
    except Exception:
        pass  # the samples remain samples


def _samples_of(item, samples):
    try:
        return samples(item) if callable(samples) else samples
    except Exception:
        return None


def _cancel():
    ring = _here()
    if ring is not None:
        ring.program_iteration_cancel()


step = iteration
_EPOCH = _Ending(epoch_end)
_ITERATION = _Ending(iteration_end)


def _phase_of_nothing(name, samples=None):
    return name if callable(name) else _NOTHING


def _epochs_of_nothing(iterable):
    return iter(iterable)


def _iterations_of_nothing(iterable, samples=None):
    return iter(iterable)


def _do_nothing():
    """Where nothing is recorded, what is called often asks nothing."""
    for name, nothing in (
        ("phase", _phase_of_nothing),
        ("epochs", _epochs_of_nothing),
        ("iterations", _iterations_of_nothing),
    ):
        globals()[name] = functools.wraps(globals()[name])(nothing)


if _ring is None:
    _do_nothing()
