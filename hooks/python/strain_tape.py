# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""TensorFlow: custom loops around tf.GradientTape, with a Keras optimizer.

Data sets that are iterated over are loaders (strain_loop.py). A function of `tf.function` in which an optimizer
is applied while it is traced is a whole step; where nothing is compiled, the tape's gradient is backward. Nothing
is marked in a thread in which `fit` trains (strain_keras.py), nor while a function is traced.
"""

import atexit
import os
import threading
import weakref
from time import monotonic_ns

import strain_hook
import strain_ring
import strain_spans
from strain_loop import Loop
from strain_pass import Loader, Optimizers
from strain_ring import VALIDATION

EVALUATION_NS = 500000000  # of predict()


class Local(threading.local):
    """Of a thread: its loop, and the functions that are being called."""

    predicts = False  # it is in predict()


def _evaluated(ring, began_ns):
    ring.begin(VALIDATION, began_ns)
    ring.end()


def _traces(function):
    """How often a tf.function was traced; -1: unknown."""
    try:
        return int(function.experimental_get_tracing_count())
    except Exception:
        return -1


class Tape:
    """The patches and their shared state."""

    def __init__(self, hook, report, samples_of):
        import tensorflow

        self.hook = hook
        self.report = report
        self.stepped = 0  # number of steps, at most LOOK_AFTER
        self.samples_of = samples_of
        self.eager = tensorflow.executing_eagerly
        self.local = Local()
        self.loaders = {}  # id of a data set: (weak reference, Loader)
        self.made = Optimizers()

    def install(self, model, optimizer, apply):
        """Patches optimizer.apply, which is an optimizer's step, and model.predict."""
        from tensorflow.python.data.ops import dataset_ops, iterator_ops
        from tensorflow.python.eager import backprop
        from tensorflow.python.eager.polymorphic_function import polymorphic_function

        patch = self.hook.patch
        patch(optimizer, "__init__", self._wrap_made)
        patch(optimizer, apply, self._wrap_apply)
        patch(backprop.GradientTape, "gradient", self._wrap_gradient)
        patch(polymorphic_function.Function, "__call__", self._wrap_function)
        patch(dataset_ops.DatasetV2, "__iter__", self._wrap_iter)
        patch(iterator_ops.OwnedIterator, "__next__", self._wrap_next)
        patch(model, "predict", self._wrap_predict)
        strain_hook.follow("tape", self._leave)
        os.register_at_fork(after_in_child=lambda: self.local.__dict__.clear())
        atexit.register(self._at_exit)

    # The thread's loop -------------------------------------------------------------------------

    def loop(self):
        """This thread's loop; None if nothing is marked. Never fails."""
        try:
            return self.local.loop if self.hook.on and not self.local.predicts else None
        except AttributeError:
            ring = strain_ring.here()
            main = threading.current_thread() is threading.main_thread()
            self.local.loop = Loop(ring, main, self.made) if ring else None
            self.local.functions = []
            return self.local.loop

    def _leave(self):
        loop = getattr(self.local, "loop", None)
        left = loop is None or loop.leave()
        if left:
            self.local.loop = None
        return left

    def _at_exit(self):
        loop = getattr(self.local, "loop", None)
        if loop is not None:
            self._do(loop.finish)

    def _do(self, action, *arguments):
        """The action's result; None if it failed."""
        try:
            if self.hook.on:
                return action(*arguments)
        except Exception as error:
            self.hook.fail(error)
        return None

    # Data --------------------------------------------------------------------------------------

    def _wrap_iter(self, original):
        def __iter__(dataset):
            began_ns = monotonic_ns()
            iterator = original(dataset)
            if self.eager() and self.loop() is not None:
                self._do(self._iterate, dataset, iterator, began_ns)
            return iterator

        return __iter__

    def _iterate(self, dataset, iterator, began_ns):
        key = id(dataset)
        if key not in self.loaders:
            forget = self.loaders.pop
            self.loaders[key] = weakref.ref(dataset, lambda _: forget(key, None)), Loader()
        loop = self.loop()
        iterator._strain = loop, loop.iterate(self.loaders[key][1], True, began_ns)

    def _wrap_next(self, original):
        def __next__(iterator):
            loop, run = getattr(iterator, "_strain", (None, None))
            if loop is None or loop is not self.loop() or not self.eager():
                return original(iterator)
            self._do(loop.next_begins, run)
            try:
                batch = original(iterator)
            except BaseException as error:
                self._do(loop.next_ends, run, None)
                if isinstance(error, StopIteration):
                    self._do(loop.exhausted, run)
                raise
            self._do(self._batch, loop, run, batch)
            return batch

        return __next__

    def _batch(self, loop, run, batch):
        loop.next_ends(run, self.samples_of(batch))

    # Steps -------------------------------------------------------------------------------------

    def _wrap_made(self, original):
        def __init__(optimizer, *arguments, **options):
            original(optimizer, *arguments, **options)
            self._do(self.made.add, optimizer)

        return __init__

    def _wrap_gradient(self, original):
        def gradient(*arguments, **options):
            loop = self.loop() if self.eager() else None
            if loop is None or not self._do(loop.backward_begins):
                return original(*arguments, **options)
            try:
                return original(*arguments, **options)
            finally:
                self._do(loop.backward_ends)

        return gradient

    def _wrap_apply(self, original):
        def apply(optimizer, *arguments, **options):
            loop = self.loop()
            if loop is None or not self.eager():
                if loop is not None and self.local.functions:
                    self.local.functions[0]._strain_steps = True  # it is being traced
                return original(optimizer, *arguments, **options)
            self._do(loop.step_begins, id(optimizer), False)
            try:
                return original(optimizer, *arguments, **options)
            finally:
                self._do(loop.step_ends, id(optimizer))
                self._count_step()

        return apply

    def _count_step(self):
        if self.stepped < strain_hook.LOOK_AFTER:
            self.stepped += 1
            if self.stepped == strain_hook.LOOK_AFTER:
                strain_hook.look(self.report)

    def _wrap_predict(self, original):
        """Its pass over a data set of its own is no pass of the loop in which it is called: a short one is part of
        an iteration, a long one an evaluation."""

        def predict(model, *arguments, **options):
            loop = self.loop()
            began_ns = monotonic_ns()
            self.local.predicts = True
            try:
                return original(model, *arguments, **options)
            finally:
                self.local.predicts = False
                if loop is not None and monotonic_ns() - began_ns >= EVALUATION_NS:
                    self._do(_evaluated, loop.ring, began_ns)
                else:
                    strain_spans.put("keras.predict", began_ns, monotonic_ns())

        return predict

    def _wrap_function(self, original):
        def __call__(function, *arguments, **options):
            loop = self.loop()
            if loop is None or self.local.functions or not self.eager():
                return original(function, *arguments, **options)
            known = getattr(function, "_strain_steps", False)
            traced = _traces(function)
            began_ns = monotonic_ns()
            if known:
                self._do(loop.whole_begins, id(function), began_ns)
            self.local.functions.append(function)
            try:
                return original(function, *arguments, **options)
            finally:
                self.local.functions.clear()
                if -1 < traced < _traces(function):
                    strain_spans.put("tf.trace", began_ns, monotonic_ns())
                if loop is self.local.loop and getattr(function, "_strain_steps", False):
                    if not known:
                        self._do(loop.whole_begins, id(function), began_ns)
                    self._do(loop.whole_ends, id(function))
                    self._count_step()

        return __call__
