# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""JAX: reconstructs the loop around a compiled training step from calls of `jax.jit` functions.

JAX has no loop of its own. A jitted function that is called with its previous results (parameters, a
state) is a training step; of several, the one with the most bytes of them. Then

- `step` is the time in jitted calls and in waits for their results: calls only pass work to the
  device, and return before it is done;
- `data` is the time from there to the next jitted call: fetching the batch, and anything else that
  the script does there;
- an iteration ends with the step and the waits after it.

If no function is given its results back, one that returns arrays of the same shapes as an argument,
which is a new one in each call, computes gradients: its calls are the step, and what follows them
(an optimizer that is not compiled) is in no phase.

A function called repeatedly without a step in between evaluates: nothing is marked until the next
step. Epochs are unknown. Nothing here touches an array's values or waits for a device.
"""

import functools
import threading
import types
import weakref
from time import monotonic_ns

import strain_collect
import strain_hook
import strain_ring
import strain_spans
from strain_ring import DATA, STEP

EARLY = 64  # calls kept until a step is known
LOOKED_AT = 8  # calls examined to decide whether a function is a step
FED_BACK = 2  # minimum of them called with results of the call before
GRADIENTS = 64  # bytes: the rank of a function that only computes gradients, below any step, above counters
OTHERS = 8  # results before the gradients: a loss, metrics
LEAVES = 4096  # upper bound of arguments and results examined
COMPILER = "/jax/core/compile/"
BETWEEN_PARTS_NS = 10000000  # at most, between two parts of one compilation
SPLIT = "(steps have no phases: each is one compiled call)"

local = threading.local()  # quiet: another hook marks this thread


def hook(jax, report):
    """Patches JAX, which has just been imported."""
    report.say("framework", "jax %s" % jax.__version__)
    patches = Jax(jax, report)
    if patches.hook.feature("step", patches.hook_jit):
        patches.hook.feature("data", patches.hook_waits)
        patches.hook.feature("compile", patches.hook_compiler)
        report.say("hooked", SPLIT)


class Loop:
    """One thread's loop, which marks into its ring."""

    def __init__(self, ring, look):
        strain_collect.follow()
        self.ring = ring
        self.look = look  # called when the thread has trained for a while
        self.step = None  # the function whose calls end iterations
        self.step_bytes = 0
        self.gradients = False  # it only computes gradients
        self.inside = False  # a jitted call of this thread is in progress
        self.done = False  # the step was called in this iteration
        self.in_iteration = False
        self.iteration = 0
        self.samples = -1
        self.last_ns = 0
        self.called = None  # called in this iteration, but not a step
        self.early = []  # calls before a step was known: function, began, ended, shapes of arguments
        self.candidate = None  # the first step found; a larger one may follow
        self.best = None, 0  # the one with the most bytes fed back so far, and their number

    def propose(self, function, size):
        """The function is a step, and was given back so many bytes. Which one it is of several is known
        when the first of them is called again."""
        if self.step is None:
            if self.candidate is None and not strain_hook.claim("jax"):
                local.quiet = 1
            self.candidate = self.candidate or function
            if size > self.best[1]:
                self.best = function, size
        elif size > self.step_bytes:
            self.step, self.step_bytes = function, size
            self.gradients = size == GRADIENTS

    def choose(self):
        """The step is known now: marks the calls before."""
        self.step, self.step_bytes = self.best
        self.gradients = self.step_bytes == GRADIENTS
        early, self.early = self.early, []
        for function, began_ns, ended_ns, shapes in early:
            if ended_ns and self.call_begins(function, began_ns):
                if function.batch is not None:
                    self.samples = shapes.get(function.batch, -1)
                self.call_ends(function, ended_ns)

    def keep(self, function, shapes):
        """A call begins while no step is known yet."""
        if len(self.early) == EARLY:
            del self.early[0]
        self.early.append([function, monotonic_ns(), 0, shapes])

    def early_ends(self, function):
        """Ends the call begun last."""
        if self.early and self.early[-1][0] is function:
            self.early[-1][2] = monotonic_ns()

    def call_begins(self, function, now_ns=0):
        """A jitted function is called; returns False if it is not marked."""
        is_step = function is self.step
        if not is_step and (self.gradients or not self.in_iteration or self._evaluates(function)):
            return False
        now_ns = now_ns or monotonic_ns()
        if self.done or not self.in_iteration:
            self._turn(now_ns)
        if not is_step:
            self.called = function
        self.ring.begin(STEP, now_ns)
        return True

    def _turn(self, now_ns):
        """The iteration ended with its step, or with the wait for it; the next one has waited since. If
        only gradients are compiled, what followed them belongs to it."""
        ring = self.ring
        if self.gradients:
            self.last_ns = now_ns
        if self.in_iteration:
            ring.iteration_end(self.samples, self.last_ns)
        else:
            self.last_ns = now_ns
        ring.iteration(self.iteration, self.last_ns)
        if self.in_iteration and not self.gradients:
            ring.begin(DATA, self.last_ns)
            ring.end(now_ns)
        self.iteration += 1
        if self.iteration == strain_hook.LOOK_AFTER:
            self.look(self.gradients)
        self.in_iteration = True
        self.done = False
        self.samples = -1
        self.called = None

    def _evaluates(self, function):
        """Called again without a step in between: withdraws the iteration."""
        if self.done or self.called is not function:
            return False
        self.ring.iteration_cancel(self.last_ns)
        self.iteration -= 1
        self.in_iteration = False
        return True

    def call_ends(self, function, now_ns=0):
        """Ends the call that began."""
        self.last_ns = self.ring.end(now_ns)
        if function is self.step:
            self.done = True

    def wait_begins(self):
        """Waits for a result."""
        if not self.in_iteration or self.inside:
            return False
        self.ring.begin(STEP)
        return True

    def wait_ends(self):
        """The result has arrived."""
        self.last_ns = self.ring.end()

    def finish(self):
        """Ends the thread's last iteration; in a job with few, also marks the first ones."""
        if self.step is None and self.candidate is not None:
            self.choose()
        if self.in_iteration:
            if self.done:
                self.ring.iteration_end(self.samples, self.last_ns)
            else:
                self.ring.iteration_cancel(self.last_ns)
            self.in_iteration = False


class Jitted:
    """A jitted function with its statistics; in all else the same as the function itself."""

    def __init__(self, patches, function):
        functools.update_wrapper(self, function)
        self._strain = Known(patches)
        self._strain_function = function

    def __call__(self, *arguments, **options):
        known = self._strain
        loop = known.enter()
        if loop is None:
            return self._strain_function(*arguments, **options)
        return known.call(loop, self._strain_function, arguments, options)

    def __get__(self, owner, kind=None):
        return self if owner is None else types.MethodType(self, owner)

    def __getattr__(self, name):
        return getattr(self.__dict__["_strain_function"], name)

    def __repr__(self):
        return repr(self._strain_function)

    def __reduce__(self):
        return _same, (self._strain_function,)


def _same(function):
    return function


def _remember(leaves):
    """The leaves by id, without keeping them."""
    found = {}
    for leaf in leaves:
        try:
            found[id(leaf)] = weakref.ref(leaf)
        except TypeError:  # a number
            continue
    return found


class Known:
    """What is known about one jitted function."""

    def __init__(self, patches):
        self.patches = patches
        self.calls = 0
        self.hits = 0
        self.returned = {}  # by id, weakly: the leaves returned by the last call
        self.shapes = ()  # of these
        self.given = {}  # ids of the leaves of each argument of the last call
        self.batch = None  # location of the batch's size: an argument, and one of its leaves
        self.is_step = False

    def enter(self):
        """The thread's loop, if this call may be marked; else None."""
        try:
            loop = self.patches.loop()
            return None if loop is None or loop.inside else loop
        except Exception as error:
            self.patches.hook.fail(error)
            return None

    def call(self, loop, function, arguments, options):
        """Calls the function and marks the call."""
        marked = self._begins(loop, arguments)
        result = None
        loop.inside = True
        try:
            result = function(*arguments, **options)
        finally:
            loop.inside = False
            self._ends(loop, marked, arguments, result)
        return result

    def _begins(self, loop, arguments):
        try:
            shapes = None
            if loop.step is None and loop.candidate is self:
                loop.choose()
            if self.calls < LOOKED_AT and not self.is_step:
                shapes = self._look(loop, arguments)
            if loop.step is None:
                loop.keep(self, shapes or {})
                return False
            marked = loop.call_begins(self)
            if marked and self.batch is not None:
                loop.samples = self._samples(arguments)
            return marked
        except Exception as error:
            self.patches.hook.fail(error)
            return False

    def _ends(self, loop, marked, arguments, result):
        try:
            if marked:
                loop.call_ends(self)
            elif loop.step is None:
                loop.early_ends(self)
            if self.calls < LOOKED_AT and not self.is_step:
                self.calls += 1
                leaves = self.patches.leaves(result)
                self.returned = _remember(leaves[:LEAVES])
                self.shapes = tuple(getattr(leaf, "shape", None) for leaf in leaves[:LEAVES])
        except Exception as error:
            self.patches.hook.fail(error)

    def _look(self, loop, arguments):
        """Whether its results were fed back. Returns the first dimensions of new arguments."""
        size = 0
        fresh = []
        derived, shapes = (), []
        for place, argument in enumerate(arguments):
            leaves = self.patches.leaves(argument)[:LEAVES]
            back = [leaf for leaf in leaves if self._is_back(leaf)]
            size += sum(getattr(leaf, "nbytes", 0) for leaf in back)
            if not back:
                fresh.extend((leaf, place, index) for index, leaf in enumerate(leaves))
                derived = derived or self._is_derived(place, leaves)
            self.given[place] = frozenset(map(id, leaves))
            shapes.append(tuple(() if self.patches.is_key(leaf) else getattr(leaf, "shape", ()) for leaf in leaves))
        if size == 0 and derived and any(any(other) for other in shapes if other != derived):
            size = GRADIENTS  # of a batch: an optimizer's functions have arrays like the parameters only
            fresh = [entry for entry in fresh if shapes[entry[1]] != derived]
        if size > 0:
            self.hits += 1
        if self.hits >= FED_BACK:
            self.is_step = True
            self.returned = {}
            self.batch = self._find_batch(fresh)
            loop.propose(self, size)
        return {(place, index): leaf.shape[0] for leaf, place, index in fresh[:EARLY]
                if getattr(leaf, "shape", ())}  # fmt: skip

    def _is_back(self, leaf):
        """Another array may have got the id of one that is gone."""
        returned = self.returned.get(id(leaf))
        return returned is not None and returned() is leaf

    def _is_derived(self, place, leaves):
        """The shapes of an argument that is new in each call, if the last results had an array for each of
        its own, among others; else ()."""
        shapes = tuple(getattr(leaf, "shape", None) for leaf in leaves)
        same = self.given.get(place, frozenset()).intersection(map(id, leaves))
        size = len(shapes)
        numbers = all("float" in str(getattr(leaf, "dtype", "")) for leaf in leaves)
        if not 1 < size <= len(self.shapes) or same or not numbers:
            return ()
        begins = range(min(OTHERS, len(self.shapes) - size) + 1)
        return shapes if any(self.shapes[first : first + size] == shapes for first in begins) else ()

    def _find_batch(self, fresh):
        """The first array that is new in each call; None if their first dimensions differ."""
        arrays = [entry for entry in fresh
                  if getattr(entry[0], "shape", ()) and not self.patches.is_key(entry[0])]  # fmt: skip
        if len({leaf.shape[0] for leaf, _, _ in arrays}) != 1:
            return None
        return arrays[0][1:]

    def _samples(self, arguments):
        place, index = self.batch
        if place >= len(arguments):
            return -1
        array = arguments[place]
        if not hasattr(array, "shape"):
            leaves = self.patches.leaves(array)
            array = leaves[index] if index < len(leaves) else None
        shape = getattr(array, "shape", ())
        return shape[0] if shape else -1


class Jax:
    """The patches and their shared state."""

    def __init__(self, jax, report):
        self.jax = jax
        self.hook = strain_hook.Hook("jax", report)
        self.report = report
        self.leaves = jax.tree_util.tree_leaves

    def loop(self):
        """This thread's loop; None if nothing is marked."""
        if not self.hook.on or getattr(local, "quiet", 0):
            return None
        try:
            return local.loop
        except AttributeError:
            ring = strain_ring.here()
            local.loop = Loop(ring, self._look) if ring else None
            return local.loop

    def _look(self, gradients):
        """A thread has trained for a while."""
        if gradients:
            self.report.say("optimizer_uncompiled", "1")
        strain_hook.look(self.report, "" if gradients else "data")

    @staticmethod
    def is_key(leaf):
        """Whether it is a key of random numbers."""
        name = str(getattr(leaf, "dtype", ""))
        return name.startswith("key") or (name == "uint32" and leaf.shape == (2,))

    def hook_jit(self):
        """Patches functions jitted from now on."""
        import atexit
        import os

        kind = type(self.jax.jit(_same))
        self.leaves(())  # it must be there
        for name in dir(kind):
            if not name.startswith("_"):
                setattr(Jitted, name, property(_getter(name)))
        self.hook.patch(self.jax, "jit", lambda original: self._wrap_jit(original, kind))
        os.register_at_fork(after_in_child=lambda: local.__dict__.clear())
        atexit.register(self._at_exit)

    def _at_exit(self):
        try:
            loop = getattr(local, "loop", None)
            if loop is not None and self.hook.on:
                loop.finish()
        except Exception as error:
            self.hook.fail(error)

    def _wrap_jit(self, original, kind):
        def jit(*arguments, **options):
            result = original(*arguments, **options)
            if type(result) is kind:
                return Jitted(self, result)
            if arguments or not callable(result):
                return result

            def decorate(function):  # jax.jit(static_argnums=0)
                jitted = result(function)
                return Jitted(self, jitted) if type(jitted) is kind else jitted

            return decorate

        return jit

    def hook_waits(self):
        """Patches waits for results; without them, their time would count as data."""
        import importlib

        # Not the type of one that is made: that would start JAX's devices, and a job may still want
        # to say which (jax.config, jax.distributed).
        array = importlib.import_module("jax._src.array").ArrayImpl
        original = array._value
        if not isinstance(original, property):
            raise TypeError("jax.Array._value is no property")
        array.block_until_ready  # noqa: B018  it must be there
        array.block_until_ready = self._wrap_wait(array.block_until_ready)
        array._value = property(self._wrap_wait(original.fget), doc=original.__doc__)

    def _wrap_wait(self, original):
        def wait(array):
            loop = self._wait_begins(array)
            try:
                return original(array)
            finally:
                if loop is not None:
                    self._wait_ends(loop)

        return wait

    def _wait_begins(self, array):
        try:
            loop = self.loop()
            if loop is None or loop.step is None or array.is_ready():
                return None
            return loop if loop.wait_begins() else None
        except Exception:
            return None  # a deleted array: the original raises the error

    def _wait_ends(self, loop):
        try:
            loop.wait_ends()
        except Exception as error:
            self.hook.fail(error)

    def hook_compiler(self):
        """Listens to the compiler, which reports the time of each of its parts as it ends: a function is traced,
        lowered, and compiled (or taken from a cache)."""
        parts = threading.local()  # began_ns, ended_ns: of a compilation's parts so far
        hooked_ns = monotonic_ns()

        def take(event, seconds):
            ended_ns = monotonic_ns()
            began_ns = max(ended_ns - int(seconds * 1e9), hooked_ns)
            if abs(began_ns - getattr(parts, "ended_ns", 0)) <= BETWEEN_PARTS_NS:
                began_ns = parts.began_ns
            parts.began_ns, parts.ended_ns = began_ns, ended_ns
            if event == COMPILER + "backend_compile_duration":  # the last part
                strain_spans.put("jax.compile", began_ns, ended_ns)
                parts.ended_ns = 0

        def listen(*arguments, **_):
            try:
                if self.hook.on and arguments[0].startswith(COMPILER):
                    take(*arguments[:2])
            except Exception:
                pass  # within a compilation of the job

        self.jax.monitoring.register_event_duration_secs_listener(listen)


def _getter(name):
    return lambda jitted: getattr(jitted._strain_function, name)
