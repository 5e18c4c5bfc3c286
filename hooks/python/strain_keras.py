# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""Keras 3 on TensorFlow and JAX, and Keras 2 (tf_keras): marks `fit` by the calls of its callbacks.

`fit` calls its list of callbacks at the start and end of epochs, batches and validations. That list
is hooked, so a custom training step (`train_step`) is marked as well. A step is one opaque compiled
call. On TensorFlow it includes the wait for the batch, but tf.data stores, for the last hundred
batches of an iterator, the time from each batch's arrival to the request for the next. The rest of
the time from call to call was the wait. tf.data is queried every half second or 64 steps; until then,
marks of iterations wait. If the wait is unknown (a fit's first step, which may be compiled, and with tf.data an
epoch's last one), the step includes it. Batches of Python code (a PyDataset, a generator) are counted and timed as
it makes them.

Nothing here touches a tensor, changes what is compiled, or waits for a device.
"""

import atexit
import collections
import functools
import os
import sys
import threading
from collections.abc import Mapping
from time import monotonic_ns

import strain_collect
import strain_hook
import strain_ring
from strain_ring import CHECKPOINT, DATA, STEP, VALIDATION

ASKED_STEPS = 64
ASKED_NS = 500000000
GAPS_KEPT = 100  # by tf.data
MADE_KEPT = 4096  # batches that a generator is ahead of the steps
SEARCHED = 16  # items of a batch, or chained data sets, examined
# Data sets that form batches, and those that leave batches unchanged.
BATCHING = ("BatchDataset", "PaddedBatchDataset", "ParallelBatchDataset")
KEEPING = ("CacheDataset", "MapDataset", "OptionsDataset", "ParallelMapDataset", "PrefetchDataset",
           "RepeatDataset", "ShardDataset", "ShuffleDataset", "SkipDataset", "TakeDataset")  # fmt: skip
SAME = -2  # as many as all others
SPLIT = "(steps have no phases: each is one compiled call)"


def hook(keras, report):
    """Patches Keras, which has just been imported."""
    Keras(keras, report).install()


class Call:
    """One call of the compiled step."""

    __slots__ = ("iteration", "began_ns", "called_ns", "ready_ns", "ended_ns", "samples", "traced")

    def __init__(self, iteration, began_ns, called_ns, samples, traced):
        self.iteration = iteration
        self.began_ns = began_ns  # start of the iteration: the end of the one before
        self.called_ns = called_ns
        self.ready_ns = 0  # when Python code had made its last batch; 0: unknown
        self.ended_ns = 0
        self.samples = samples
        self.traced = traced  # it may have been compiled first


class Fit:
    """One thread's `fit`, which marks into its ring."""

    def __init__(self, ring, live, look):
        strain_collect.follow()
        self.ring = ring
        self.look = look  # called when the thread has trained for a while
        self.live = live  # the thread itself waits for batches, in Python
        self.in_epoch = False
        self.validations = 0
        self.iteration = 0
        self.called = 0  # number of calls that ended, at most LOOK_AFTER
        self.last_ns = 0  # end of the last event
        self.call = None  # the call in progress
        self.calls = []  # calls whose marks wait
        self.iterator = None
        self.adapter = None  # the batches' source, if it is Python code whose batches are counted
        self.per_call = 1
        self.nominal = -1  # samples of a call
        self.remainder = SAME  # samples of an epoch's last call; -1: unknown
        self.in_step = False
        self.gaps = None  # queries tf.data; None: unavailable

    # Epochs ------------------------------------------------------------------------------------

    def begin_epoch(self, number):
        """An epoch begins, counted from 0."""
        self.end_epoch()
        self.last_ns = self.ring.epoch(number + 1, monotonic_ns())
        self.in_epoch = True
        self.iteration = 0

    def end_epoch(self):
        """Its batches are used up; what follows belongs to no epoch."""
        if self.in_epoch:
            self._end_step(self.last_ns)
            self._end_last_call()
            self.ring.epoch_end(self.last_ns)
            self.in_epoch = False

    def _end_last_call(self):
        if self.live:
            if self.call is not None:  # there was no further batch
                self.ring.iteration_cancel(self.last_ns)
        elif self.calls:
            last = self.calls[-1]
            if self.remainder != SAME and self.nominal >= 0:
                last.samples = self.remainder
            self.flush(True)
        self.call = None

    def begin_validation(self):
        """A whole pass without training."""
        self.end_epoch()
        self.validations += 1
        self.ring.begin(VALIDATION)

    def end_validation(self):
        """Ends the pass begun last."""
        if self.validations > 0:
            self.validations -= 1
            self.last_ns = self.ring.end()

    # Iterations --------------------------------------------------------------------------------

    def take_iterator(self, iterator, per_call, nominal, remainder, adapter=None):
        """Sets the source of the next call's batches."""
        if self.validations == 0:
            self.adapter = adapter
            if iterator is not self.iterator:
                self.flush(True)
                self.iterator = iterator
            self.per_call, self.nominal, self.remainder = per_call, nominal, remainder

    def begin_call(self):
        """The step is about to be called."""
        if self.in_epoch:
            now_ns = monotonic_ns()
            self.call = Call(self.iteration, self.last_ns, now_ns, self.nominal, self.called == 0)
            if self.live:
                self.ring.iteration(self.iteration, self.last_ns)

    def end_call(self):
        """The call has ended, and the iteration with it."""
        call, self.call = self.call, None
        if call is None:
            return
        self.last_ns = call.ended_ns = monotonic_ns()
        if self.adapter is not None:
            call.samples, call.ready_ns = self._counted()
        self.iteration += 1
        if self.called < strain_hook.LOOK_AFTER:
            self.called += 1
            if self.called == strain_hook.LOOK_AFTER:
                self.look()
        if self.live:
            self._end_step(call.ended_ns)
            self.ring.iteration_end(call.samples, call.ended_ns)
            return
        self.calls.append(call)
        asked = call.ended_ns - self.calls[0].called_ns > ASKED_NS
        if asked or len(self.calls) * self.per_call >= ASKED_STEPS:
            self.flush(False)

    def _counted(self):
        """Samples of the batches that a call has taken from a generator, and when the last was ready; -1, 0: unknown."""
        made = getattr(self.adapter, "_strain_made", None)
        try:
            counts, times = zip(*[made.popleft() for _ in range(self.per_call)])
        except (AttributeError, IndexError):
            return -1, 0
        return sum(counts) if min(counts) >= 0 else -1, max(times)

    def begin_saving(self):
        """A checkpoint; between two steps it belongs to neither's iteration."""
        self.flush(True)
        self.ring.begin(CHECKPOINT)

    def end_saving(self):
        """Ends the checkpoint begun last."""
        self.last_ns = self.ring.end()

    def _end_step(self, time_ns):
        if self.in_step:
            self.ring.end(time_ns)
            self.in_step = False

    def wait_begins(self):
        """The thread itself requests a batch."""
        now_ns = monotonic_ns()
        self._end_step(now_ns)
        self.ring.begin(DATA, now_ns)

    def wait_ends(self, samples):
        """The batch has arrived; samples None: there is none."""
        now_ns = self.ring.end()
        call = self.call
        if call is None or samples is None or self.validations > 0:
            return
        if samples >= 0:
            call.samples = max(call.samples, 0) + samples
        self.ring.begin(STEP, now_ns)
        self.in_step = True

    # What waits --------------------------------------------------------------------------------

    def flush(self, last):
        """Writes the calls whose waits are known, and the last one if nothing else may wait."""
        calls = self.calls
        if not calls:
            return
        ends = [call.called_ns for call in calls[1:]]
        if self.call is not None:
            ends.append(self.call.called_ns)
        self.calls = []
        if not last and self.call is None:
            self.calls.append(calls.pop())
        for call, wait_ns in zip(calls, self._waits(calls, ends)):
            self._write(call, wait_ns)

    def _waits(self, calls, ends):
        """The wait of each call; -1: unknown."""
        if all(call.ready_ns for call in calls):
            return [max(call.ready_ns - call.called_ns, 0) for call in calls]
        gaps = self.gaps(self.iterator) if self.gaps else ()
        waits = [-1] * len(calls)
        per = self.per_call
        for back in range(1, len(ends) + 1):
            # Counted from the last: the gaps from its batches to those of the call after it.
            part = gaps[len(gaps) - back * per : len(gaps) - (back - 1) * per]
            at = len(ends) - back
            if len(part) == per and back * per <= len(gaps):
                wait_ns = ends[at] - calls[at].called_ns - 1000 * sum(part)
                waits[at] = max(wait_ns, 0)
        return waits

    def _write(self, call, wait_ns):
        ring = self.ring
        ring.iteration(call.iteration, call.began_ns)
        arrived_ns = call.called_ns
        if wait_ns >= 0 and not call.traced:
            arrived_ns = min(call.called_ns + wait_ns, call.ended_ns)
            ring.begin(DATA, call.called_ns)
            ring.end(arrived_ns)
        ring.begin(STEP, arrived_ns)
        ring.end(call.ended_ns)
        ring.iteration_end(call.samples, call.ended_ns)

    def finish(self):
        """`fit` returns, or another begins."""
        self.end_epoch()
        while self.validations > 0:
            self.end_validation()
        # An iterator over a Python generator cannot end once the interpreter does: the job would hang.
        self.iterator = self.adapter = None


class Keras:
    """The patches and their shared state."""

    def __init__(self, keras, report):
        self.keras = keras
        self.report = report
        self.hook = strain_hook.Hook("keras", report)
        self.local = threading.local()
        self.version = str(getattr(keras, "__version__", "0"))
        self.backend = "tensorflow" if self.version.startswith("2.") else keras.config.backend()
        self.gaps = None
        self.eager = False  # a fit was
        self.counting = ()  # adapters whose batches are counted
        self.described = False  # the data of the first fit were reported
        self.folder = os.path.dirname(os.path.abspath(keras.__file__)) + os.sep

    def install(self):
        """Installs each feature separately; a missing one does not affect the others."""
        self.report.say(
            "framework", "keras %s on %s" % (self.version, self.backend)
        )
        if self.backend not in ("tensorflow", "jax"):
            self.report.say("missing", "keras on %s: only the hooks of that framework apply" % self.backend)
            return
        if not self.hook.feature("step", self._hook_callbacks):
            return
        self.hook.feature("data", getattr(self, "_hook_data_" + self.backend))
        self.hook.feature("checkpoint", self._hook_checkpoint)
        if self.backend == "tensorflow":
            self.hook.feature("tape", self._hook_tape)
            if not self.version.startswith("2."):
                self.hook.feature("generators", self._hook_generators)
        if "STRAIN_SHORT" in os.environ:
            self.hook.feature("short", self._hook_short)
        if "STRAIN_SET" in os.environ:
            self.hook.feature("set", self._hook_set)
        self.report.say("hooked", SPLIT)
        os.register_at_fork(after_in_child=lambda: self.local.__dict__.clear())
        atexit.register(self._do, Fit.finish)

    # Guards ------------------------------------------------------------------------------------

    def _fit(self):
        return getattr(self.local, "fit", None) if self.hook.on else None

    def _do(self, action, *arguments):
        """Calls an action of this thread's fit, if there is one."""
        try:
            fit = self._fit()
            if fit is not None:
                action(fit, *arguments)
        except Exception as error:
            self.hook.fail(error)

    # Callbacks ---------------------------------------------------------------------------------

    def _hook_callbacks(self):
        kind = self.keras.callbacks.CallbackList
        before, after = self._before, self._after
        self.hook.patch(kind, "on_train_begin", self._wrap_train_begin)
        self.hook.patch(kind, "on_epoch_begin", self._wrap_epoch_begin)
        self.hook.patch(kind, "on_train_batch_begin", after(Fit.begin_call))
        self.hook.patch(kind, "on_train_batch_end", before(Fit.end_call))
        self.hook.patch(kind, "on_epoch_end", before(Fit.end_epoch))
        self.hook.patch(kind, "on_test_begin", self._wrap_test_begin)
        self.hook.patch(kind, "on_test_end", after(Fit.end_validation))
        self.hook.patch(kind, "on_train_end", before(Fit.finish))
        if self.backend == "jax":
            self._hush_jax(kind)

    def _hush_jax(self, kind):
        """Code that Keras compiles is not a loop of the script's own."""
        import strain_jax

        quiet = strain_jax.local

        def wrap(change):
            def wrap_one(original):
                def on(*arguments, **options):
                    quiet.quiet = max(getattr(quiet, "quiet", 0) + change, 0)
                    return original(*arguments, **options)

                return on

            return wrap_one

        for pass_name in ("train", "test", "predict"):
            self.hook.patch(kind, "on_%s_begin" % pass_name, wrap(1))
            self.hook.patch(kind, "on_%s_end" % pass_name, wrap(-1))

    def _before(self, action):
        def wrap(original):
            def on(*arguments, **options):
                self._do(action)
                return original(*arguments, **options)

            return on

        return wrap

    def _after(self, action):
        def wrap(original):
            def on(*arguments, **options):
                result = original(*arguments, **options)
                self._do(action)
                return result

            return on

        return wrap

    def _wrap_train_begin(self, original):
        def on_train_begin(*arguments, **options):
            self._begin(True)
            self._tell_eager(*arguments[:1])
            return original(*arguments, **options)

        return on_train_begin

    def _tell_eager(self, callbacks=None):
        """Whether each operation is dispatched by itself: a setting of the model, or of TensorFlow. One fit that is
        compiled shows that the job is not eager."""
        try:
            model = getattr(callbacks, "_model", None) or callbacks.model
            tensorflow = sys.modules.get("tensorflow") if self.backend == "tensorflow" else None
            if model.run_eagerly or tensorflow is not None and tensorflow.config.functions_run_eagerly():
                self.report.say("compile_eager", "1")
                self.eager = True
            elif self.eager:
                self.report.say("compile_eager", "0")
        except Exception:
            pass  # a model of another kind: only this advice is lost

    def _begin(self, anew):
        try:
            fit = self._fit()
            if fit is not None and anew:
                fit.finish()  # one that raised an exception has not ended
            ring = strain_ring.here() if self.hook.on else None
            if ring is not None and (fit is None or anew) and strain_hook.claim("keras"):
                look = functools.partial(strain_hook.look, self.report)
                self.local.fit = Fit(ring, self.backend == "jax", look)
                self.local.fit.gaps = self.gaps
        except Exception as error:
            self.hook.fail(error)

    def _wrap_epoch_begin(self, original):
        def on_epoch_begin(callbacks, epoch, *arguments, **options):
            self._do(Fit.begin_epoch, epoch)
            return original(callbacks, epoch, *arguments, **options)

        return on_epoch_begin

    def _wrap_test_begin(self, original):
        def on_test_begin(*arguments, **options):
            self._begin(False)
            self._do(Fit.begin_validation)
            return original(*arguments, **options)

        return on_test_begin

    # Data on TensorFlow ------------------------------------------------------------------------

    def _hook_data_tensorflow(self):
        import tensorflow

        ask = tensorflow.data.experimental.get_model_proto
        failed = (tensorflow.errors.OpError,)
        iterator_class = tensorflow.data.Iterator

        def gaps(iterator):
            """Microseconds from each of the last batches to the request for the next."""
            if not isinstance(iterator, iterator_class):
                self._no_waits("it comes from several devices' iterators")
                return ()
            try:
                return list(ask(iterator).gap_times)
            except failed:
                self._no_waits("tf.data's autotuning is off")
                return ()

        if not self.version.startswith("2."):
            trainer = sys.modules["keras.src.backend.tensorflow.trainer"]
            self.hook.patch(trainer.TFEpochIterator, "__next__", self._wrap_epoch_next)
        else:
            handler = _data_adapter2(self.keras).DataHandler
            self.hook.patch(handler, "enumerate_epochs", self._wrap_enumerate)
        self.gaps = gaps

    def _no_waits(self, why):
        """From now on a step is marked with the wait inside."""
        self.gaps = None
        self.report.say("missing", "data: the wait is inside the compiled step, and %s" % why)
        fit = self._fit()
        if fit is not None:
            fit.gaps = None

    def _wrap_epoch_next(self, original):
        def __next__(source):
            result = original(source)
            fit = self._fit()
            if fit is not None:
                self._do(self._take_source, source, result[2])
            return result

        return __next__

    def _hook_generators(self):
        """Batches of Python code (a PyDataset, a generator) have no size that is known before."""
        adapters = "keras.src.trainers.data_adapters."
        datasets = sys.modules[adapters + "py_dataset_adapter"].PyDatasetAdapter
        generators = sys.modules[adapters + "generator_data_adapter"].GeneratorDataAdapter
        self.hook.patch(datasets, "_get_iterator", self._wrap_dataset)
        self.hook.patch(generators, "__init__", self._wrap_generator)
        self.counting = datasets, generators

    def _wrap_dataset(self, original):
        def _get_iterator(adapter):
            batches = original(adapter)
            try:
                return self._count(_made_of(adapter), batches)
            except Exception as error:
                self.hook.fail(error)
                return batches

        return _get_iterator

    def _wrap_generator(self, original):
        def __init__(adapter, *arguments, **options):
            original(adapter, *arguments, **options)
            try:
                made, plain = _made_of(adapter), adapter.generator  # no reference to the adapter itself
                adapter.generator = lambda: self._count(made, plain())
            except Exception as error:
                self.hook.fail(error)

        return __init__

    def _count(self, made, batches):
        """The same batches, whose samples are counted as they are taken."""
        if not self.hook.on:
            return batches
        made.clear()

        def counted():
            for batch in batches:
                ready_ns = monotonic_ns()
                try:
                    made.append((_samples_of(batch), ready_ns))
                except Exception:
                    made.append((-1, ready_ns))
                yield batch

        return counted()

    def _take_source(self, fit, source, iterator):
        known = getattr(source, "_strain", None)
        if known is None:
            adapter = source.data_adapter
            known = source._strain = _sizes(adapter, int(source.steps_per_execution))
            source._strain_counts = adapter if isinstance(adapter, self.counting) and _is_alone() else None
            self._describe(fit, adapter, known, _batches_of(source, adapter))
        fit.take_iterator(iterator, *known, source._strain_counts)

    def _wrap_enumerate(self, original):
        def enumerate_epochs(handler, *arguments, **options):
            for epoch, iterator in original(handler, *arguments, **options):
                self._do(self._take_handler, handler, iterator)
                yield epoch, iterator

        return enumerate_epochs

    def _take_handler(self, fit, handler, iterator):
        per_call = int(handler._steps_per_execution.numpy())
        adapter = _Adapter2(handler._adapter)
        known = _sizes(adapter, per_call)
        self._describe(fit, adapter, known, _batches_of(handler, adapter))
        fit.take_iterator(iterator, *known)

    def _describe(self, fit, adapter, sizes, batches):
        """Reports where the script trains first, its batch size, its epoch's batches (-1: unknown), and what
        its data passes through."""
        if self.described or fit.validations > 0:
            return
        self.described = True
        per_call, samples = sizes[:2]
        place = strain_hook.caller((self.folder,))
        if place is not None:
            self.report.say("loader_fit_at", place)
        pipeline = _pipeline_of(getattr(adapter, "_dataset", None))
        if pipeline:
            self.report.say("loader_pipeline", pipeline)
        if samples > 0:
            self.report.say("loader_batch_size", str(samples // per_call))
        if batches > 0:
            self.report.say("loader_batches", str(batches))

    # Data on JAX -------------------------------------------------------------------------------

    def _hook_data_jax(self):
        trainer = sys.modules["keras.src.backend.jax.trainer"]
        self.hook.patch(trainer.JAXEpochIterator, "_get_iterator", self._wrap_get_iterator)

    def _wrap_get_iterator(self, original):
        def _get_iterator(source):
            batches = original(source)
            fit = self._fit()
            if fit is None:
                return batches
            self._do(self._take_batches, source)
            return Waits(self, batches)

        return _get_iterator

    def _take_batches(self, fit, source):
        adapter = source.data_adapter
        self._describe(fit, adapter, _sizes(adapter, 1), _batches_of(source, adapter))

    # Probes of strain advise -------------------------------------------------------------------

    def _hook_short(self):
        import strain_fit

        if self.version.startswith("2."):
            iterators = _data_adapter2(self.keras).DataHandler
        else:
            iterators = sys.modules["keras.src.trainers.epoch_iterator"].EpochIterator
        strain_fit.Shorter(self, SAME, _length_of, os.environ["STRAIN_SHORT"]).install(iterators)

    def _hook_set(self):
        import strain_fit

        text = os.environ["STRAIN_SET"]
        strain_fit.Batches(self, _samples_of, _batch_size_of, text).install()

    # Loops of one's own ------------------------------------------------------------------------

    def _hook_tape(self):
        from strain_tape import Tape

        if self.version.startswith("2."):
            optimizer, apply = self.keras.optimizers.Optimizer, "apply_gradients"
        else:
            optimizer, apply = sys.modules["keras.src.optimizers.base_optimizer"].BaseOptimizer, "apply"
        Tape(self.hook, self.report, _samples_of).install(self.keras.Model, optimizer, apply)

    # Checkpoints -------------------------------------------------------------------------------

    def _hook_checkpoint(self):
        model = self.keras.Model
        self.hook.patch(model, "save", self._wrap_save)
        self.hook.patch(model, "save_weights", self._wrap_save)

    def _wrap_save(self, original):
        def save(*arguments, **options):
            fit = self._begin_save()
            try:
                return original(*arguments, **options)
            finally:
                if fit is not None:
                    self._end_save(fit)

        return save

    def _begin_save(self):
        try:
            if strain_ring.here() is None or getattr(self.local, "saving", False):
                return None
            self._begin(False)
            self.local.fit.begin_saving()
            self.local.saving = True
            return self.local.fit
        except Exception as error:
            self.hook.fail(error)
            return None

    def _end_save(self, fit):
        try:
            self.local.saving = False
            fit.end_saving()
        except Exception as error:
            self.hook.fail(error)


class Waits:
    """An iterator over batches that marks each wait."""

    def __init__(self, keras, batches):
        self._keras = keras
        self._batches = iter(batches)

    def __iter__(self):
        return self

    def __getattr__(self, name):
        return getattr(self._batches, name)

    def __next__(self):
        self._keras._do(Fit.wait_begins)
        samples = None
        try:
            batch = next(self._batches)
            samples = -1
        finally:
            if samples is not None:
                samples = _samples_of(batch)
            self._keras._do(Fit.wait_ends, samples)
        return batch


class _Adapter2:
    """What is asked of a data adapter, of Keras 2."""

    def __init__(self, adapter):
        self._adapter = adapter
        self._dataset = adapter.get_dataset()
        self.batch_size = adapter.batch_size()
        self.num_batches = adapter.get_size()
        self.partial_batch_size = adapter.partial_batch_size()


def _made_of(adapter):
    """What its batches are counted in: (samples, when it was ready) of those that no step has taken yet."""
    made = getattr(adapter, "_strain_made", None)
    if made is None:
        made = adapter._strain_made = collections.deque(maxlen=MADE_KEPT)
    return made


def _is_alone():
    """Whether each step takes each batch: several workers share them."""
    return sys.modules["tensorflow"].distribute.get_strategy().num_replicas_in_sync == 1


def _samples_of(batch):
    """The first dimension of the first array in a batch; -1 if there is none."""
    places = [batch]
    for place in places:
        shape = getattr(place, "shape", None)
        if shape is not None:
            if len(shape) > 0 and isinstance(shape[0], int):
                return shape[0]
        elif isinstance(place, (tuple, list)):
            places.extend(place[: SEARCHED - len(places)])
        elif isinstance(place, Mapping):
            places.extend(list(place.values())[: SEARCHED - len(places)])
    return -1


def _batches_of(source, adapter):
    """The batches of an epoch; -1: endless or not known. source: Keras' iterator over epochs."""
    steps = getattr(source, "steps_per_epoch", getattr(source, "_inferred_steps", None))  # of Keras 3 and 2
    counts = [_whole(steps), _whole(adapter.num_batches)]
    return min(counts) if counts[0] > 0 and counts[1] > 0 else counts[1]


def _length_of(source):
    """The batches of a pass over a source of Keras; -1: endless or not known."""
    if hasattr(source, "data_adapter"):
        steps = _whole(getattr(source, "steps_per_epoch", None))
        return steps if steps > 0 else _whole(source.data_adapter.num_batches)
    return _whole(getattr(source, "_inferred_steps", None))  # Keras 2


def _whole(count):
    """A number as an integer; -1: none, or not finite."""
    try:
        return int(count)
    except (TypeError, ValueError, OverflowError):
        return -1


def _sizes(adapter, per_call):
    """For a call: its steps, its samples (-1: unknown), and those of an epoch's last call."""
    size = adapter.batch_size
    if isinstance(size, int):
        rest = getattr(adapter, "partial_batch_size", None)
        count = adapter.num_batches
        if per_call > 1:
            even = rest in (None, size) and count is not None and count % per_call == 0
            return per_call, size * per_call, SAME if even else -1
        return per_call, size, rest if rest else SAME
    size, full = _batch_size_of(getattr(adapter, "_dataset", None))
    return per_call, size * per_call if size > 0 else -1, SAME if full else -1


def _batch_size_of(dataset):
    """The size with which a data set's batches were formed, and whether all are full.

    Of batches that are repeated, each pass may have a smaller one, anywhere in an epoch: it counts
    as full, so that the samples of an epoch may be too many by less than a batch.
    """
    repeated = False
    for _ in range(SEARCHED):
        name = type(dataset).__name__.strip("_")
        size = getattr(dataset, "_batch_size", None)
        if size is not None and name in BATCHING:
            if not repeated:
                return int(size), bool(dataset._drop_remainder)
            whole = int(dataset._input_dataset.cardinality())  # negative: endless or not known
            return min(int(size), whole) if whole > 0 else int(size), True
        repeated = repeated or name == "RepeatDataset"
        if name not in KEEPING:
            break
        dataset = getattr(dataset, "_input_dataset", None)
    return -1, False


def _pipeline_of(dataset):
    """The stages of a data set, from the batches back to the source: "Prefetch Batch ParallelMap"."""
    names = []
    while dataset is not None and len(names) < SEARCHED:
        name = type(dataset).__name__.strip("_")
        if name.endswith("Dataset") and name.isidentifier():
            names.append(name[: -len("Dataset")])
        dataset = getattr(dataset, "_input_dataset", None)
    return " ".join(names)


def _data_adapter2(keras):
    """A module of Keras 2, if its version has it."""
    import importlib

    for folder in (".src.engine", ".engine"):
        try:
            return importlib.import_module(keras.__name__ + folder + ".data_adapter")
        except ImportError:
            continue
    raise ImportError("%s has no data adapter" % keras.__name__)
