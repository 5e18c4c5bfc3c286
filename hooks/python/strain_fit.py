# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""Other batch sizes and shorter epochs of Keras' `fit`, for the probes of `strain advise`.

STRAIN_SET="batch_size=64 was=32" changes the batch size of each `fit` and `evaluate` of arrays that
has 32, and of each data set of tf.data that is batched by 32 (`batch`, `padded_batch`), since a script
usually has one batch size. Steps of an epoch and of a validation that the script gives are reduced
accordingly. The run records the change (`loader_set`), or why there is none (`loader_set_missing`).
STRAIN_SHORT shortens the epochs of `fit` and its validation (strain_short.py).
"""

import inspect
import sys

import strain_hook
import strain_set
from strain_short import Lengths

DEFAULT_BATCH_SIZE = 32  # of Keras, for arrays
SEARCHED = 16  # chained data sets examined
STEPS = ("steps_per_epoch", "validation_steps", "steps")


class Batches:
    """The new batch size, and where it applies. One per framework."""

    def __init__(self, hooks, samples_of, batch_size_of, text):
        self._hooks = hooks  # strain_keras.Keras
        self._samples_of = samples_of
        self._batch_size_of = batch_size_of
        settings = strain_set.parse(text)[0]
        self._new = settings.get("batch_size")
        self._was = settings.get("was")

    def install(self):
        """Starts changing batch sizes."""
        if not self._new:
            self._missing("only the batch size of Keras can be set")
            return
        patch = self._hooks.hook.patch
        model = self._hooks.keras.Model
        patch(model, "fit", self._wrap_fit)
        patch(model, "evaluate", self._wrap_fit)
        tensorflow = sys.modules.get("tensorflow")
        if tensorflow is not None:
            patch(tensorflow.data.Dataset, "batch", self._wrap_batch)
            patch(tensorflow.data.Dataset, "padded_batch", self._wrap_batch)

    def _missing(self, reason):
        self._hooks.report.say("loader_set_missing", reason)

    def _has(self, size):
        """Whether a batch size is to be changed."""
        return size is not None and size > 0 and (self._was is None or size == self._was)

    # Data sets ---------------------------------------------------------------------------------

    def _wrap_batch(self, original):
        def batch(dataset, batch_size, *arguments, **options):
            changes = False
            try:
                changes = self._has(int(batch_size))
            except Exception:  # a tensor of a graph, for example
                pass
            made = original(dataset, self._new if changes else batch_size, *arguments, **options)
            if changes:
                made._strain_changed = True
            return made

        return batch

    def _is_changed(self, dataset):
        for _ in range(SEARCHED):
            if dataset is None or getattr(dataset, "_strain_changed", False):
                break
            dataset = getattr(dataset, "_input_dataset", None)
        return dataset is not None

    # Fit ---------------------------------------------------------------------------------------

    def _wrap_fit(self, original):
        signature = inspect.signature(original)

        def fit(*arguments, **options):
            bound = None
            try:
                bound = signature.bind(*arguments, **options)
                if not self._change(bound.arguments):
                    bound = None
            except Exception as error:
                bound = None
                self._missing(strain_hook.describe(error))
            if bound is None:
                return original(*arguments, **options)
            return original(*bound.args, **bound.kwargs)

        return fit

    def _change(self, given):
        """Changes the arguments of a fit or an evaluation. Returns whether it did."""
        data = given.get("x")
        if self._samples_of(data) >= 0:
            size = given.get("batch_size") or DEFAULT_BATCH_SIZE
            if not self._has(size):
                return False
            given["batch_size"] = self._new
            if given.get("validation_batch_size") == size:
                given["validation_batch_size"] = self._new
            self._scale(given, size, -1)
        elif self._is_changed(data):
            self._scale(given, self._was, _length(data))
        else:
            if self._has(self._batch_size_of(data)[0]):
                self._missing("the hooks did not see its data set being batched")
            elif not hasattr(data, "_input_dataset"):
                self._missing("its batches come from Python: %s" % type(data).__name__)
            return False
        self._hooks.report.say("loader_set", "batch_size=%d" % self._new)
        return True

    def _scale(self, given, size, length):
        """Reduces steps that the script gives: as many samples as before, or all of a data set."""
        for name in STEPS:
            steps = given.get(name)
            if isinstance(steps, int) and steps > 0 and size:
                fewer = -(-steps * size // self._new)
                finite = length > 0 and name != "validation_steps"
                given[name] = min(steps, length) if finite else max(1, fewer)


def _length(dataset):
    """The number of batches; -1: endless or not known."""
    count = getattr(dataset, "cardinality", None)
    return int(count()) if count is not None else -1


class Shorter:
    """Epochs that end early. One per framework."""

    def __init__(self, hooks, same, length_of, text):
        self._hooks = hooks  # strain_keras.Keras
        self._same = same  # samples of an epoch's last call: as many as of the others
        self._length_of = length_of  # batches of a full pass over a source; -1: unknown
        self._lengths = Lengths(hooks.report, text)

    def install(self, iterators):
        """Starts ending passes early. iterators: the class of Keras' iterators over an epoch."""
        for name in ("_enumerate_iterator", "enumerate_epoch", "steps"):
            if hasattr(iterators, name):
                self._hooks.hook.patch(iterators, name, self._wrap)
                return
        raise AttributeError("%s has no known method" % iterators.__name__)

    def _wrap(self, original):
        def enumerate_steps(source, *arguments, **options):
            steps = original(source, *arguments, **options)
            fit = self._hooks._fit()
            trains = fit is not None and fit.in_epoch
            if fit is None or not (trains or fit.validations > 0):
                yield from steps  # a prediction, for example
                return
            one = None
            try:
                for step in steps:
                    yield step
                    if one is None:
                        one = self._lengths.begin(trains)  # after the first step, which is compiled
                    one.take(_batches(source))
                    if one.is_over(one.taken) and not _is_last(source):
                        one.end(lambda: self._length_of(source))
                        _end_early(source)
                        fit.remainder = self._same
                        one = None
                        return
            finally:
                # Data of unknown length ends within a step.
                if one is not None:
                    one.ended = False
                    one.end()

        return enumerate_steps


def _batches(source):
    """Batches of a call."""
    if hasattr(source, "step_increment"):  # Keras 2
        return source.step_increment + 1
    return int(getattr(source, "steps_per_execution", 1))


def _is_last(source):
    """Whether the steps of Keras 2 end by themselves now; the last call may be a shorter one."""
    steps = getattr(source, "_inferred_steps", None)
    return steps is not None and source._current_step + source.step_increment + 1 >= steps


def _end_early(source):
    """What Keras 3 does at the end of an epoch."""
    adapter = getattr(source, "data_adapter", None)
    if adapter is not None:
        adapter.on_epoch_end()
