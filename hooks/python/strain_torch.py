# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""PyTorch 1.13 and newer: patches the calls of a training loop to mark them (see strain_loop.py).

Only the iterators' `__next__` and the fetchers' `fetch` are private names. Each name is patched if it
exists. If it does not, or a patch fails, the job runs as without it, and the run reports it.
Nothing here touches a tensor's values, a random number generator, or the device.
"""

import atexit
import functools
import multiprocessing
import os
import sys
import threading
import weakref
from collections.abc import Mapping
from itertools import islice
from time import monotonic_ns

import strain_collect
import strain_compile
import strain_cuda
import strain_debug
import strain_denormal
import strain_hook
import strain_padding
import strain_ring
import strain_spans
from strain_cuda import DeviceClock, Memory, Reads
from strain_loop import Loop
from strain_omitted import FOLLOWED, Discarded, Omitted, Repeated
from strain_pass import Loader, Optimizers, Pass, is_endless, length_of

COLLECTIVES = ("all_reduce", "all_gather", "all_gather_into_tensor", "all_gather_object",
               "all_to_all", "all_to_all_single", "barrier", "broadcast", "broadcast_object_list",
               "gather", "monitored_barrier", "recv", "reduce", "reduce_scatter",
               "reduce_scatter_tensor", "scatter", "send")  # fmt: skip
installed = []  # for measuring the cost of the hooks
GUESSED = "(no loader: samples are guessed from the rows of the model's first argument)"
SEARCHED = 16  # items of a batch searched for a tensor
DENORMAL_STEPS = 8  # steps in which denormal numbers are looked for
ITEMS = 1000  # of a batch that are searched for tensors
LOOKS = 4  # batches of a loader that show whether they are lists of samples


def hook(torch, report):
    """Patches PyTorch, which has just been imported."""
    report.say("framework", "pytorch %s" % torch.__version__)
    hooks = PyTorch(torch, report)
    hooks.install()
    installed.append(hooks)


class PyTorch:
    """The patches and their shared state."""

    def __init__(self, torch, report):
        self.torch = torch
        self.report = report
        self.hook = strain_hook.Hook("pytorch", report)
        self.local = threading.local()
        self.loaders = {}  # id of a DataLoader: (weak reference, Loader, facts)
        self.looked_at_blas = False
        self.described = False  # the first loader
        self.backwards = 0  # running now, in all threads
        self.followed = set()  # classes of loaders with endless iterators
        self.fetchers = []  # classes to be patched in children
        self.fetched = 0  # batches of this worker
        self.few_lines = os.environ.get("STRAIN_LINES") == "few"
        self.lines_to = os.environ.get("STRAIN_MARKERS") if "STRAIN_LINES" in os.environ else None
        self.made = Optimizers()
        self.omitted = Omitted(self.torch, self._tell)
        self.repeated = Repeated(self._tell)
        self.discarded = Discarded(self._tell)
        self.early = FOLLOWED  # steps until nothing more is looked for in them
        self.denormals = False  # a Flag, from the first of its steps on; None: it cannot be read
        self.denormal_steps = 0
        self.debugging = strain_debug.Passes(torch)
        self.called = None  # Module.__call__ with its patch
        self.compiler = False  # torch.compile was called
        self.guessed = False  # the samples of a loop without a loader were reported
        self.most = -1  # number of tensors of the largest one
        self.counts_tokens = True
        self.counted = 0  # batches of training loaders that say their number of tokens
        self.tokens = [0, 0]  # in these, and their samples
        self.device = None  # a Memory: CUDA is in use, and its features are hooked
        self.reads = None  # Reads, in a few of the first steps
        self.folder = os.path.dirname(torch.__file__) + os.sep

    def install(self):
        """Installs each feature separately; a missing one does not affect the others."""
        if "STRAIN_REPLAY" in os.environ:
            self.hook.feature("replay", self._hook_replay)  # first: marks replayed calls, too
        if "STRAIN_SHORT" in os.environ:
            self.hook.feature("short", self._hook_short)  # first: the marks see the early end
        if "STRAIN_LONGEST" in os.environ:
            self.hook.feature("longest", self._hook_longest)  # after "short", which ends passes
        if "STRAIN_SET" in os.environ:
            self.hook.feature("set", self._hook_set)  # first: sees its results created
        if "STRAIN_GPU_MEMORY" in os.environ:
            self.hook.feature("limit of GPU memory", self._hook_limit)
        for what, install in (
            ("data", self._hook_data),
            ("prepare", self._hook_prepare),
            ("backward", self._hook_backward),
            ("optimizer", self._hook_optimizer),
            ("forward", self._hook_calls),
            ("checkpoint", self._hook_checkpoint),
            ("communication", self._hook_communication),
        ):
            self.hook.feature(what, install)
        self._hook_zeroed()
        strain_hook.follow("pytorch", self._leave)
        os.register_at_fork(after_in_child=self._after_fork)
        atexit.register(self._at_exit)

    def _hook_replay(self):
        import strain_replay

        def spoilt():
            self.report.say("hooked", "replay of copies, since batches are edited")

        strain_replay.install(self.torch, self.hook.patch, spoilt)

    def _hook_short(self):
        import strain_short

        strain_short.install(
            self.torch, self.hook.patch, self.report, os.environ["STRAIN_SHORT"], self.leave
        )

    def _hook_longest(self):
        import strain_longest

        strain_longest.install(self.torch, self.hook.patch, self.report, os.environ["STRAIN_LONGEST"])

    def _hook_limit(self):
        strain_cuda.limit(self.torch, self.hook, os.environ["STRAIN_GPU_MEMORY"])

    def _hook_set(self):
        import strain_set

        strain_set.install(
            self.torch, self.folder, self.hook.patch, self.report, os.environ["STRAIN_SET"]
        )

    # The thread's loop -------------------------------------------------------------------------

    def loop(self):
        """This thread's loop, created if necessary; None if marks are not recorded."""
        try:
            return self.local.loop
        except AttributeError:
            ring = strain_ring.here() if self.hook.on else None
            main = threading.current_thread() is threading.main_thread()
            self.local.loop = loop = Loop(ring, main, self.made) if ring else None
            self.local.calls = loop and loop.calls
            return loop

    def _first_loop(self):
        """The same for a thread that has none yet; never fails."""
        try:
            return self.loop()
        except Exception as error:
            self.hook.fail(error)
            return None

    def _leave(self):
        """Another framework trains on the loaders' batches."""
        loop = getattr(self.local, "loop", None)
        left = loop is None or loop.leave()
        if left:
            self.local.loop = self.local.calls = None
        return left

    def _after_fork(self):
        self.local.__dict__.clear()  # the patches keep a reference to it
        self.backwards = 0
        try:
            if self.reads is not None:
                self.reads.stop()
            if self.hook.on:
                self._patch_fetchers()
        except Exception as error:
            self.hook.fail(error)

    def _at_exit(self):
        try:
            loop = getattr(self.local, "loop", None)
            if loop is not None and self.hook.on:
                loop.finish()
                if self.device is not None:
                    self.device.look()
                for _, loader in list(self.loaders.values()):
                    self._add_tokens(loader)
                self._tell_tokens()
        except Exception as error:
            self.hook.fail(error)

    # Loaders -----------------------------------------------------------------------------------

    def _hook_data(self):
        data = self.torch.utils.data
        self.hook.patch(data.dataloader._BaseDataLoaderIter, "__next__", self._wrap_next)
        self.hook.patch(data.DataLoader, "__iter__", self._wrap_iter)
        self.hook.patch(data.DataLoader, "__init__", self._wrap_init)
        for name in ("_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"):
            self.hook.patch(getattr(data.dataloader, name), "__init__", self._wrap_iterator)

    def hook_loader(self, kind):
        """Follows a library's own class of loaders, which does without PyTorch's methods."""
        self.hook.patch(kind, "__iter__", self._wrap_iter)
        self.hook.patch(kind, "__init__", self._wrap_init)

    def _wrap_init(self, original):
        def __init__(loader, *arguments, **options):
            original(loader, *arguments, **options)
            if self.hook.on:
                try:
                    self._know(loader)
                except Exception as error:
                    self.hook.fail(error)

        return __init__

    def _know(self, loader):
        """Reports a loader's settings for advice: first the first loader's, then the trained one's."""
        key = id(loader)
        known = Loader(_batch_size(loader), _samples_of(loader))
        facts = list(_facts(loader, *strain_hook.caller_and_library((self.folder,))))
        if not self.looked_at_blas:
            self.looked_at_blas = True
            facts += _blas(self.torch)
        forget = self.loaders.pop

        def gone(_, key=key):
            forget(key, None)

        if not self.described:  # a later one might be made when the trained one is gone
            self.described = True
            self._tell(facts)
        known.told = lambda: self._tell(facts + [("loader_role", "training")] + _tensors_of(known))
        self.loaders[key] = (weakref.ref(loader, gone), known)
        return known

    def _tell(self, facts):
        for key, value in facts:
            self.report.say(key, value)

    def _wrap_iter(self, original):
        def __iter__(loader):
            began_ns = monotonic_ns()
            within, self.local.iterating = getattr(self.local, "iterating", False), True
            try:
                iterator = original(loader)
            finally:
                self.local.iterating = within
            if self.hook.on and not self._in_worker():
                try:
                    self._iterate(loader, iterator, began_ns)
                except Exception as error:
                    self.hook.fail(error)
            return iterator

        return __iter__

    def _wrap_iterator(self, original):
        """Some libraries make the iterators themselves: fastai, and ultralytics."""

        def __init__(iterator, loader, *arguments, **options):
            began_ns = monotonic_ns()
            original(iterator, loader, *arguments, **options)
            if self.hook.on and not getattr(self.local, "iterating", False) and not self._in_worker():
                try:
                    self._iterate(loader, iterator, began_ns)
                except Exception as error:
                    self.hook.fail(error)

        return __init__

    def _iterate(self, loader, iterator, began_ns):
        loop = self.loop()
        if loop is not None:
            found = self.loaders.get(id(loader))
            known = found[1] if found else self._know(loader)
            length = length_of(loader)
            if is_endless(loader, length):
                self._follow_passes(type(loader))
                run = Pass(known, began_ns, length)  # over: the first one begins with the first batch
                run.over = run.endless = True
            else:
                run = loop.iterate(known, self.torch.is_grad_enabled(), began_ns, length)
            iterator._strain = (loop, run)
            self._watch(iterator, run)
            if self.torch.cuda.is_initialized():
                self._use_device(loop)

    def _follow_passes(self, kind):
        """The class of an endless loader makes an iterator of its own for each pass."""
        owner = next(owner for owner in kind.__mro__ if "__iter__" in vars(owner))
        if owner is not self.torch.utils.data.DataLoader and owner not in self.followed:
            self.followed.add(owner)
            self.hook.patch(owner, "__iter__", self._wrap_pass)

    def _wrap_pass(self, original):
        def __iter__(loader):
            found = self.loaders.get(id(loader))
            if found:
                found[1].anew = True
            return original(loader)

        return __iter__

    def _iterate_again(self, iterator, loop, old):
        """The next batch is the first of another pass of an endless iterator."""
        old.loader.anew = False
        if not old.over and not old.complete():
            old.left()
        run = loop.iterate(old.loader, self.torch.is_grad_enabled(), monotonic_ns(), old.length)
        run.endless = True
        iterator._strain = (loop, run)
        self._watch(iterator, run)
        return run

    def leave(self, loader):
        """This thread takes no more batches of its pass over the loader, although its iterator remains."""
        try:
            loop, found = getattr(self.local, "loop", None), self.loaders.get(id(loader))
            run = loop and loop.training
            if run is not None and found and run.loader is found[1] and not run.complete():
                run.left()
        except Exception as error:
            self.hook.fail(error)

    def _watch(self, iterator, run):
        """A deleted iterator gives no more batches: the loop left it early."""
        if not hasattr(iterator, "_strain_watch"):  # otherwise a persistent one, which remains
            iterator._strain_watch = _Watch(run)
        iterator._strain_watch.run = run

    def _wrap_next(self, original):
        local, hook, fail, samples_of = self.local, self.hook, self.hook.fail, self._samples
        tensor = self.torch.Tensor

        def __next__(iterator):
            try:
                loop, run = iterator._strain
                marked = loop is local.loop and hook.on
            except AttributeError:
                marked = False  # its start was not seen, or it belongs to another thread
            if not marked:
                return original(iterator)
            turns = run.endless and (run.batches >= run.length or run.over or run.loader.anew)
            try:
                if turns and (run.over or run.loader.anew and not run.complete()):
                    run = self._iterate_again(iterator, loop, run)
                    turns = False
                loop.next_begins(run)
            except Exception as error:
                fail(error)
                return original(iterator)
            try:
                batch = original(iterator)
            except BaseException as error:
                self._no_batch(loop, run, isinstance(error, StopIteration))
                raise
            try:
                if turns:  # there was one more, so it is endless
                    self._no_batch(loop, run, True)
                    run = self._iterate_again(iterator, loop, run)
                    loop.next_begins(run)
                first = batch[0] if run.loader.lists == 0 and type(batch) is list and batch else None
                shape = first.shape if type(first) is tensor else None
                loop.next_ends(run, shape[0] if shape else samples_of(batch, run))
                loader = run.loader
                loader.batches += 1
                if run.batches == 1 and _starts_workers(iterator):
                    strain_spans.put("loader.start", run.began_ns, monotonic_ns())
                if loader.batches == loader.look_at:
                    self._look_at_padding(batch, loader)
            except Exception as error:
                fail(error)
            return batch

        return __next__

    def _look_at_padding(self, batch, loader):
        """Counts the padding of a batch, more and more rarely."""
        loader.look_at = 2 * loader.look_at if loader.look_at < strain_padding.LOOKS else 0
        try:
            seen = strain_padding.look(self.torch, batch)
        except Exception:
            loader.look_at = 0  # a container of the job's own
            return
        loader.padding = [before + here for before, here in zip(loader.padding, seen)]
        if loader.trains and loader.padding[0] > 0:
            names = ("loader_padding", "loader_padding_common", "loader_padding_of", "loader_padding_rows")
            self._tell(zip(names, map(str, loader.padding)))

    def _no_batch(self, loop, run, over):
        try:
            loop.next_ends(run, None)
            if over:
                loop.exhausted(run)
        except Exception as error:
            self.hook.fail(error)

    def _samples(self, batch, run):
        """The number of samples in a batch; -1: unknown. Batches of images of different sizes (object detection) are lists
        of samples, or a list of images beside one of targets: the first full batch shows which. Of a container of the
        job's own (a batch of graphs), the loader tells it."""
        loader = run.loader
        try:
            count = self._first_dimension(batch)
        except Exception:
            return run.expected()
        if loader.lists is None:
            _find_lists(loader, batch, count, self.torch.Tensor)
            loader.tensors = max(loader.tensors, _count(batch, self.torch.Tensor))
        if loader.lists:
            found = _count_by(loader, batch, self.torch.Tensor)
            count = count if found < 0 else found
        elif type(batch) is dict and self.counts_tokens:
            try:
                self._count_tokens(loader, batch, count)
            except Exception:
                self.counts_tokens = False  # only they are given up
        return count if count >= 0 else run.expected()

    def _count_tokens(self, loader, batch, samples):
        """Batches of text may say how many words they have beside their number of sentences, as fairseq's do; ntokens alone
        may be the size of a vocabulary. They count once their loader is known to train."""
        tokens, sentences = batch.get("ntokens"), batch.get("nsentences")
        if type(tokens) is int and type(sentences) is int and tokens > 0 and sentences == samples > 0:
            loader.tokens[0] += tokens
            loader.tokens[1] += samples
            if loader.trains:
                self._add_tokens(loader)
                self.counted += 1
                if self.counted & (self.counted - 1) == 0:  # more and more rarely: reports are bounded
                    self._tell_tokens()

    def _add_tokens(self, loader):
        """To those of all training loaders."""
        if loader.trains:
            for i, amount in enumerate(loader.tokens):
                self.tokens[i] += amount
            loader.tokens = [0, 0]

    def _tell_tokens(self):
        tokens, samples = self.tokens
        if samples > 0:
            self.report.say("tokens_per_sample", "%.6g" % (tokens / samples))

    def _first_dimension(self, batch):
        """The first dimension of the first tensor in a batch; -1 if there is none."""
        tensor = self.torch.Tensor
        places = [batch]
        for place in places:
            if isinstance(place, tensor):
                if place.dim() > 0:
                    return place.shape[0]
            elif isinstance(place, (tuple, list)):
                places.extend(place[: SEARCHED - len(places)])
            elif isinstance(place, Mapping):
                places.extend(islice(place.values(), max(SEARCHED - len(places), 0)))
        return -1

    # The device --------------------------------------------------------------------------------

    def _use_device(self, loop):
        """Only once CUDA is in use, because checking for it would initialise it."""
        if self.device is None:
            self.device = Memory(self.torch.cuda, self._tell)
            self.hook.feature("transfer", self._hook_transfer)
        if loop.device is None:
            loop.device = DeviceClock(self.torch.cuda, loop.ring, self.device)

    def _count_reads(self, loop):
        """One of the first steps has ended. Compiling would trace what counts."""
        self._use_device(loop)
        if self.reads is None:
            if self.called is not None:
                packages = (self.folder,)
                self.reads = Reads(self.torch, self.hook, self._tell, packages)
        elif self.reads.left:
            self.reads.stepped()

    def _hook_transfer(self):
        for name in ("to", "cuda"):
            self.hook.patch(self.torch.Tensor, name, self._wrap_transfer)

    def _wrap_transfer(self, original):
        overridden = self.torch.overrides.has_torch_function_unary
        override = self.torch.overrides.handle_torch_function

        def transfer(tensor, *arguments, **options):
            if overridden(tensor):  # a class of the job's own knows PyTorch's function, not this one
                return override(original, (tensor,), tensor, *arguments, **options)
            began_ns = monotonic_ns()
            moved = original(tensor, *arguments, **options)
            if moved is not tensor and self.hook.on:
                try:
                    if moved.is_cuda and not tensor.is_cuda:
                        self.local.loop.transferred(began_ns)
                except AttributeError:
                    pass  # a thread without a loop, or no tensor
                except Exception as error:
                    self.hook.fail(error)
            return moved

        return transfer

    # Workers -----------------------------------------------------------------------------------

    def _in_worker(self):
        return self.worker._worker_info is not None

    def _hook_prepare(self):
        self.worker = self.torch.utils.data._utils.worker
        self.worker._worker_info  # noqa: B018  it must be there
        fetch = self.torch.utils.data._utils.fetch
        self.fetchers = [fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher]
        for fetcher in self.fetchers:
            fetcher.fetch  # noqa: B018
        # A process without a parent is no worker, and fetches without the patch's cost.
        if self._is_child():
            self._patch_fetchers()

    @staticmethod
    def _is_child():
        # A spawned process imports this before it knows its parent.
        parent = getattr(multiprocessing, "parent_process", lambda: True)()
        return bool(parent or getattr(multiprocessing.current_process(), "_inheriting", False))

    def _patch_fetchers(self):
        while self.fetchers:
            self.hook.patch(self.fetchers.pop(), "fetch", self._wrap_fetch)

    def _wrap_fetch(self, original):
        def fetch(fetcher, index):
            if self.worker._worker_info is None or not self.hook.on:
                return original(fetcher, index)
            ring = strain_ring.here()
            if ring is None:
                return original(fetcher, index)
            strain_collect.follow()
            self.fetched += 1
            if self.fetched == 2 and self.few_lines and self.lines_to:
                self._look_at_lines_of_worker()
            samples = len(index) if isinstance(index, (list, tuple)) else 0
            ring.begin(strain_ring.PREPARE, 0, samples)
            try:
                return original(fetcher, index)
            finally:
                ring.end()

        return fetch

    def _look_at_lines_of_worker(self):
        """Of the first worker of a loader."""
        try:
            if self.worker._worker_info.id == 0:
                import strain_lines

                strain_lines.look_at_worker(self.lines_to)
        except Exception as error:
            self.report.say("missing", "lines: %s" % strain_hook.describe(error))

    # Steps -------------------------------------------------------------------------------------

    def _hook_backward(self):
        self._patch_operator("backward", self._wrap_backward)
        self._patch_operator("grad", self._wrap_grad)

    def _patch_operator(self, name, wrap):
        """Patches a function that TorchScript knows by its id, as an operator."""
        original = getattr(self.torch.autograd, name)
        self.hook.patch(self.torch.autograd, name, wrap)
        wrapper = getattr(self.torch.autograd, name)
        builtins = sys.modules.get("torch.jit._builtins")
        operators = getattr(builtins, "_builtin_ops", ())
        known = [operator for function, operator in operators if function is original]
        table = getattr(builtins, "_builtin_table", None)
        for operator in known:
            operators.append((wrapper, operator))
            if table is not None:
                table[id(wrapper)] = operator

    def _wrap_grad(self, original):
        """Gradients that the loss is made of (a penalty, a derivative), or an inner loop's: backward, but no
        iteration ends with it."""
        local, hook = self.local, self.hook

        def grad(*arguments, **options):
            loop = getattr(local, "loop", None) if hook.on else None
            # Elsewhere it is not known whether a forward goes on around it.
            if loop is None or not loop.is_in_forward():
                return original(*arguments, **options)
            if not self._phase_begins(strain_ring.BACKWARD):
                return original(*arguments, **options)
            try:
                return original(*arguments, **options)
            finally:
                self._phase_ends(loop)

        return grad

    def _wrap_backward(self, original):
        local, hook, fail = self.local, self.hook, self.hook.fail

        def backward(*arguments, **options):
            try:
                loop = local.loop if hook.on else None
            except AttributeError:
                # In the engine's own threads, a backward is part of another one.
                loop = self._first_loop() if self.backwards == 0 else None
            begun = False
            if loop is not None:
                try:
                    begun = loop.backward_begins()
                    if begun and self.early:
                        self._count_pass(arguments, options, loop.stepping is not None)
                except Exception as error:
                    fail(error)
            if not begun:
                return original(*arguments, **options)
            self.backwards += 1
            try:
                return original(*arguments, **options)
            finally:
                self.backwards -= 1
                try:
                    if self.early:
                        self._follow(self.discarded.pass_ends)
                    loop.backward_ends()
                except Exception as error:
                    fail(error)

        return backward

    def _hook_optimizer(self):
        optimizer = sys.modules["torch.optim.optimizer"]  # torch.optim hides the module
        self._hook_made(optimizer)
        self._hook_scaler()
        if hasattr(optimizer, "register_optimizer_step_post_hook"):
            before, after = self._around_step()
            optimizer.register_optimizer_step_pre_hook(before)
            optimizer.register_optimizer_step_post_hook(after)
        else:
            self.hook.patch(optimizer.Optimizer, "_hook_for_profile", self._wrap_optimizer)

    def _hook_made(self, optimizer):
        self.hook.patch(optimizer.Optimizer, "__init__", self._wrap_made)

    def _wrap_made(self, original):
        def __init__(optimizer, *arguments, **options):
            original(optimizer, *arguments, **options)
            if self.hook.on:
                try:
                    self._know_optimizer(optimizer)
                except Exception as error:
                    self.hook.fail(error)

        return __init__

    def hook_optimizer(self, kind):
        """Follows a library's own class of optimizers, which is none of PyTorch's."""
        self.hook.patch(kind, "__init__", self._wrap_init_of_own)
        self.hook.patch(kind, "step", self._wrap_step)

    def _wrap_init_of_own(self, original):
        def __init__(optimizer, *arguments, **options):
            original(optimizer, *arguments, **options)
            if self.hook.on:
                try:
                    self.made.add(optimizer)
                except Exception as error:
                    self.hook.fail(error)

        return __init__

    def _know_optimizer(self, optimizer):
        """Reports an optimizer's settings for advice: of several, the one with the most tensors."""
        self.made.add(optimizer)
        tensors = sum(len(group["params"]) for group in optimizer.param_groups)
        if tensors > self.most and not self._in_worker():
            self.most = tensors
            self._tell(_optimizer_facts(optimizer, tensors, strain_hook.caller((self.folder,))))

    def _wrap_optimizer(self, original):
        """Patches each class's step when its first optimizer is created."""

        def _hook_for_profile(optimizer):
            original(optimizer)
            kind = type(optimizer)
            if self.hook.on and not getattr(kind.step, "strain", False):
                try:
                    self.hook.patch(kind, "step", self._wrap_step)
                    kind.step.strain = True
                except Exception as error:
                    self.hook.fail(error)

        return _hook_for_profile

    def _wrap_step(self, original):
        local, hook, fail = self.local, self.hook, self.hook.fail

        def step(*arguments, **options):
            try:
                loop = local.loop if hook.on else None
            except AttributeError:
                loop = self._first_loop()
            if loop is None:
                return original(*arguments, **options)
            optimizer = id(arguments[0])
            try:
                closure = False
                if options or len(arguments) > 1:
                    closure, arguments, options = self._watch_closure(loop, arguments, options)
                loop.step_begins(optimizer, closure)
            except Exception as error:
                fail(error)
            try:
                return original(*arguments, **options)
            finally:
                try:
                    if hook.on:
                        loop.step_ends(optimizer)
                        if self.early:
                            self._count_step(arguments[0])
                except Exception as error:
                    fail(error)

        return step

    def _around_step(self):
        local, hook, fail = self.local, self.hook, self.hook.fail

        def before(optimizer, arguments, options):
            try:
                loop = local.loop if hook.on else None
            except AttributeError:
                loop = self._first_loop()
            if loop is None:
                return None
            try:
                closure = False
                if options or len(arguments) > 1:
                    closure, arguments, options = self._watch_closure(loop, arguments, options)
                loop.step_begins(id(optimizer), closure)
                return (arguments, options) if closure else None
            except Exception as error:
                fail(error)
                return None

        def after(optimizer, arguments, options):
            try:
                loop = local.loop if hook.on else None
                if loop is not None:
                    loop.step_ends(id(optimizer))
                    if self.early:
                        self._count_step(optimizer)
            except Exception as error:
                fail(error)

        return before, after

    def _count_pass(self, arguments, options, stepping):
        """A backward pass before one of the first steps begins, or in it."""
        if self.debugging.left:
            self.debugging.begins(self.report)
        if self.repeated.left:
            self.repeated.passed(arguments, options, stepping)
        self._follow(self.discarded.pass_begins)

    def _count_denormals(self):
        """The first of these calls only clears the flag."""
        try:
            if self.early == DENORMAL_STEPS:
                self.denormals = strain_denormal.Flag()
            seen = self.denormals.take()
            self.denormal_steps += seen and self.early < DENORMAL_STEPS
            if not self.early:
                self._tell((("optimizer_denormal_steps", str(self.denormal_steps)),))
        except Exception:  # another machine, or libc
            self.denormals = None

    def _follow(self, action, *arguments):
        """Calls what follows gradients; it ends where it can not. Returns what was returned."""
        if self.discarded.left:
            try:
                return action(*arguments)
            except Exception:
                self.discarded.stop()
        return None

    def _hook_zeroed(self):
        """Not a feature: it adds to advice only."""
        try:
            optimizer, module = sys.modules["torch.optim.optimizer"].Optimizer, self.torch.nn.Module
            if self.called is not None:  # else nothing would take it out before code is compiled
                self.hook.patch(optimizer, "zero_grad", functools.partial(self._wrap_zeroed, _updated))
                self.hook.patch(module, "zero_grad", functools.partial(self._wrap_zeroed, module.parameters))
        except Exception:
            self.discarded.stop()

    def _unhook_zeroed(self):
        for kind in (sys.modules["torch.optim.optimizer"].Optimizer, self.torch.nn.Module):
            self.hook.unpatch(kind, "zero_grad")

    def _wrap_zeroed(self, tensors, original):
        def zero_grad(*arguments, **options):
            loop = getattr(self.local, "loop", None) if self.discarded.left and self.hook.on else None
            if loop is not None and loop.stepping is None:  # not in a closure
                self._follow(lambda: self.discarded.zeroes(tensors(arguments[0])))
            return original(*arguments, **options)

        return zero_grad

    def _count_step(self, optimizer):
        """One of the first steps of an optimizer has ended."""
        self.early = max(0, self.early - 1)
        if self.early < DENORMAL_STEPS + 1 and self.denormals is not None:
            self._count_denormals()
        self._follow(self.discarded.stepped, optimizer)
        loop = self.local.loop
        if self.torch.cuda.is_initialized():
            self._count_reads(loop)
        if not self.early:
            self.discarded.stop()
            self._unhook_zeroed()
            if self.reads is not None:
                self.reads.stop()
        if not self.repeated.left:
            return
        if self.omitted.left:
            self.omitted.stepped(self.made)
        self.repeated.stepped()
        if not self.repeated.left:
            strain_hook.look(self.report)

    def _watch_closure(self, loop, arguments, options):
        """Whether a step has a closure, and its arguments with the closure wrapped."""
        place = 1 if len(arguments) > 1 else "closure"
        closure = arguments[1] if place == 1 else options.get("closure")
        if not callable(closure):
            return False, arguments, options
        watched = functools.partial(self._in_closure, loop, closure)
        if place == 1:
            return True, (arguments[0], watched) + tuple(arguments[2:]), options
        return True, arguments, dict(options, closure=watched)

    def _in_closure(self, loop, closure, *arguments, **options):
        if not self._try(loop.closure_begins):
            return closure(*arguments, **options)
        try:
            return closure(*arguments, **options)
        finally:
            self._try(loop.closure_ends)

    def _try(self, action, *arguments):
        """Calls one of our functions. Returns whether it succeeded."""
        try:
            if self.hook.on:
                action(*arguments)
                return True
        except Exception as error:
            self.hook.fail(error)
        return False

    def _hook_scaler(self):
        """Gradients not finite after scaling: the step is skipped, the iteration counts."""
        for name in ("torch.amp.grad_scaler", "torch.cuda.amp.grad_scaler"):
            scaler = getattr(sys.modules.get(name), "GradScaler", None)
            if scaler is not None and "step" in vars(scaler):
                self.hook.patch(scaler, "step", self._wrap_scaler)

    def _wrap_scaler(self, original):
        def step(scaler, optimizer, *arguments, **options):
            loop = None
            try:
                loop = self.local.loop if self.hook.on else None
            except AttributeError:
                pass  # a thread without a loop
            if loop is None:
                return original(scaler, optimizer, *arguments, **options)
            self._try(loop.step_begins, id(optimizer), False)
            try:
                return original(scaler, optimizer, *arguments, **options)
            finally:
                self._try(loop.step_ends, id(optimizer))

        return step

    # Calls of models ---------------------------------------------------------------------------

    def _hook_calls(self):
        """A call of each module costs a tenth of a microsecond more. Not of hooks: with one of those that
        PyTorch has for all modules each call takes the slow way."""
        module = self.torch.nn.Module
        if "torch._dynamo.utils" in sys.modules:
            raise RuntimeError("torch._dynamo was imported before")
        if hasattr(self.torch, "compile"):
            self.hook.patch(self.torch, "compile", self._wrap_compile)
        self.uncalled = module.__call__
        self.hook.patch(module, "__call__", self._wrap_call)
        self.called = module.__call__
        if not self._is_child():  # nor a worker, whose transforms may be modules
            self.loop()

    def _wrap_call(self, original):
        local, hook, fail = self.local, self.hook, self.hook.fail
        has_gradients, tensor = self.torch.is_grad_enabled, self.torch.Tensor

        def __call__(*arguments, **options):
            try:
                calls = local.calls
            except AttributeError:
                calls = local.calls = None  # a thread without a loop
            # In an ordinary iteration over a loader (strain_loop.py) nothing is checked.
            if calls is None or calls.inside or calls.loop.stage or not hook.on:
                return original(*arguments, **options)
            calls.inside = True
            try:
                gradients = has_gradients()
                calls.begins(arguments[0], gradients)
                if gradients and self.early:
                    if self.omitted.left:
                        self.omitted.called(arguments[0], [*arguments[1:], *options.values()])
                    if self.repeated.left:
                        self.repeated.called(arguments[0])
                    self._follow(self.discarded.called, arguments[0])
                if calls.samples < 0 and calls.kind:
                    self._guess_samples(calls, tensor, arguments, options)
            except Exception as error:
                fail(error)
            try:
                return original(*arguments, **options)
            finally:
                calls.inside = False
                try:
                    calls.ends()
                except Exception as error:
                    fail(error)

        return __call__

    def _guess_samples(self, calls, tensor, arguments, options):
        inputs = arguments[1:] if len(arguments) > 1 else tuple(options.values())
        if calls.guess_samples(tensor, inputs) and not self.guessed:
            self.guessed = True
            self.report.say("hooked", GUESSED)

    def _wrap_compile(self, original):
        """Compiling traces modules: from then on only compiled ones are called with the patch."""

        def compile(*arguments, **options):
            try:
                self.discarded.stop()
                self._unhook_zeroed()
                if self.reads is not None:
                    self.reads.stop()
                if self.called is not None:
                    self._uncall()
            except Exception as error:
                self.hook.fail(error)
            try:
                return original(*arguments, **options)
            finally:
                self._hook_compiler()

        return compile

    def _hook_compiler(self):
        """PyTorch has imported its compiler."""
        if not self.compiler:
            self.compiler = True
            self.hook.feature("torch.compile", strain_compile.Compiler, self.hook, self._tell)

    def _uncall(self):
        called, self.called = self.called, None
        if self.torch.nn.Module.__call__ is not called:
            raise RuntimeError("another package patched the same functions")
        self.hook.unpatch(self.torch.nn.Module, "__call__")
        import torch._dynamo.eval_frame as frame  # like the code that follows

        for name in ("torch._dynamo.utils", "torch._dynamo.variables.nn_module"):
            module = sys.modules.get(name)
            if getattr(module, "unpatched_nn_module_call", None) is called:
                module.unpatched_nn_module_call = self.uncalled
        self.hook.patch(frame.OptimizedModule, "__call__", self._wrap_call)

    # Other phases ------------------------------------------------------------------------------

    def _hook_checkpoint(self):
        self.hook.patch(self.torch, "save", self._wrap_phase(strain_ring.CHECKPOINT))

    def _hook_communication(self):
        distributed = self.torch.distributed
        if not distributed.is_available():
            raise RuntimeError("this build has no torch.distributed")
        wrap = self._wrap_phase(strain_ring.COMMUNICATION)
        for name in COLLECTIVES:
            if hasattr(distributed, name):
                self.hook.patch(distributed, name, wrap)

    def _wrap_phase(self, name):
        def wrap(original):
            def phase(*arguments, **options):
                loop = self._phase_begins(name)
                try:
                    return original(*arguments, **options)
                finally:
                    if loop is not None:
                        self._phase_ends(loop)

            return phase

        return wrap

    def _phase_begins(self, name):
        try:
            loop = self.loop() if self.hook.on else None
            if loop is None or getattr(self.local, "in_phase", False):
                return None
            loop.phase_begins(name)
            self.local.in_phase = True
            return loop
        except Exception as error:
            self.hook.fail(error)
            return None

    def wrap_environment(self, original):
        """A call that runs environments of reinforcement learning. Only in a thread that calls models, and
        not in processes that serve another one."""
        local, hook, fail = self.local, self.hook, self.hook.fail

        def environment(*arguments, **options):
            loop = getattr(local, "loop", None) if hook.on else None
            if loop is None or loop.in_environment:
                return original(*arguments, **options)
            try:
                loop.environment_begins()
            except Exception as error:
                fail(error)
                return original(*arguments, **options)
            try:
                return original(*arguments, **options)
            finally:
                try:
                    loop.environment_ends()
                except Exception as error:
                    fail(error)

        return environment

    def _phase_ends(self, loop):
        try:
            self.local.in_phase = False
            loop.phase_ends()
        except Exception as error:
            self.hook.fail(error)


def _updated(optimizer):
    """The tensors that an optimizer updates."""
    return [tensor for group in optimizer.param_groups for tensor in group["params"]]


def _length_of(batch):
    """Number of items of a list; -1 if it is none."""
    return len(batch) if type(batch) in (list, tuple) else -1


def _length_within(batch):
    """Number of items of each list in a short list, where it has lists only and all are as long; else -1."""
    if not 0 < _length_of(batch) <= SEARCHED:
        return -1
    lengths = {_length_of(item) for item in batch}
    return lengths.pop() if len(lengths) == 1 else -1


def _rows_of(item, tensor):
    """Number of items of a list, or of rows of a tensor; -1 if it is neither."""
    if isinstance(item, tensor):
        return item.shape[0] if item.dim() > 0 else -1
    return _length_of(item)


def _count_by(loader, batch, tensor):
    """The number of samples, where the first batches showed it; -1 if it is not there."""
    if loader.lists == 3:
        return _rows_of(batch.get(loader.key), tensor) if isinstance(batch, Mapping) else -1
    return (_length_of, _length_within)[loader.lists - 1](batch)


def _find_lists(loader, batch, count, tensor):
    """Looks where the number of samples is that the loader's batch size says; a few batches show it, or none does.
    count: the first dimension of the first tensor."""
    loader.looks += 1
    length = _length_of(batch)
    if loader.batch_size == 1 and length == 1 and not _length_of(batch[0]) > 0:
        length = -1  # a batch that the data set made: it has one item, and any number of samples
    for lists, found in enumerate((count, length, _length_within(batch))):
        if found == loader.batch_size:
            loader.lists = lists
            return
    if isinstance(batch, Mapping):
        for key, item in islice(batch.items(), SEARCHED):
            if _rows_of(item, tensor) == loader.batch_size:
                loader.lists, loader.key = 3, key
                return
    if loader.looks >= LOOKS:
        loader.lists = 0


def _count(batch, tensor):
    """Tensors of a batch: each is handed over by itself. ITEMS if it has more items than that; 0 if it is a container of the
    job's own."""
    places, count = [batch], 0
    try:
        for place in places:
            if isinstance(place, tensor):
                count += 1
            elif isinstance(place, (list, tuple)) and place and not isinstance(place[0], (int, float, str)):
                places.extend(place[: max(ITEMS - len(places), 0)])
            elif isinstance(place, Mapping):
                places.extend(islice(place.values(), max(ITEMS - len(places), 0)))
    except Exception:
        return 0
    return count if len(places) < ITEMS else ITEMS


def _tensors_of(known):
    return [("loader_batch_tensors", str(known.tensors))] if known.tensors > 0 else []


def _starts_workers(iterator):
    """Whether its worker processes are its own, and end with it. A library's iterator may not say."""
    return getattr(iterator, "_num_workers", 0) > 0 and not getattr(iterator, "_persistent_workers", True)


def _batch_size(loader):
    """The batch size that a loader has, or that of its batch sampler; None if neither says it."""
    size = getattr(loader, "batch_size", None) or getattr(getattr(loader, "batch_sampler", None), "batch_size", None)
    return size if isinstance(size, int) else None


def _batches(loader):
    """The same, also while a class of loaders that repeat is not yet complete."""
    try:
        return len(loader._index_sampler) if loader._dataset_kind == 0 else 0
    except Exception:
        return length_of(loader)


class _Watch:
    """Is stored in an iterator and deleted with it, in any thread; it marks nothing then."""

    def __init__(self, run):
        self.run = run

    def __del__(self):
        self.run.left()


def _samples_of(loader):
    """The samples of a pass over a loader, with its last batch; -1: not known."""
    try:
        return len(loader.sampler) if loader.batch_size and loader._dataset_kind == 0 else -1
    except Exception:
        return -1


def _facts(loader, place, library):
    """Keys of the run that describe a loader."""
    if place:
        yield "loader_at", place
        yield "loader_library", library if library and library.isidentifier() else "torch"
    yield "loader_workers", str(loader.num_workers)
    if _batch_size(loader):
        yield "loader_batch_size", str(_batch_size(loader))
    if _batches(loader) > 0:
        yield "loader_batches", str(_batches(loader))
    yield "loader_pin_memory", str(int(bool(loader.pin_memory)))
    yield "loader_persistent_workers", str(int(bool(loader.persistent_workers)))
    if loader.num_workers > 0 and loader.prefetch_factor is not None:
        yield "loader_prefetch_factor", str(loader.prefetch_factor)
    if hasattr(loader, "in_order"):
        yield "loader_in_order", str(int(bool(loader.in_order)))
    samples = _samples_of(loader)
    if samples >= 0:
        yield "loader_samples", str(samples)
    yield "loader_dataset_kind", "map" if loader._dataset_kind == 0 else "iterable"
    kind = type(loader.dataset)
    yield "loader_dataset", "%s.%s" % (kind.__module__, kind.__qualname__)


def _optimizer_facts(optimizer, tensors, place):
    """Keys of the run that describe an optimizer."""
    if place:
        yield "optimizer_at", place
    yield "optimizer_class", type(optimizer).__name__
    yield "optimizer_tensors", str(tensors)
    for way in ("foreach", "fused"):
        if optimizer.defaults.get(way) is not None:
            yield "optimizer_" + way, str(int(bool(optimizer.defaults[way])))


def _blas(torch):
    """The key of the run that says by which BLAS PyTorch multiplies matrices, where it is the slow one.

    A build for any BLAS ("generic", a distribution's) takes what the system has as libblas.so.3. The
    reference's file has its version behind that; others have folders of their own.
    """
    try:
        if "BLAS_INFO=generic" not in torch.__config__.show():
            return
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            for line in maps:
                folder, _, name = line.rstrip("\n").partition("/")[2].rpartition("/")
                of_another = folder.rpartition("/")[2].startswith(("atlas", "blis", "mkl", "openblas"))
                if name.startswith("libblas.so.3.") and not of_another:
                    yield "blas", "reference /%s/%s" % (folder, name)
                    return
    except Exception:
        return  # not needed by a job
