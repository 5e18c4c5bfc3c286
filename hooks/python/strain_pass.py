# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""What a training loop (strain_loop.py) stores about loaders, passes over them, and optimizers."""

import weakref
from collections import deque
from time import monotonic_ns

# Roles of a pass over a loader.
UNKNOWN = 0  # its first batches
TRAINING = 1  # an epoch
EVALUATION = 2  # a validation
BESIDE = 3  # runs beside another pass, or is neither training nor evaluation


def length_of(loader):
    """Number of batches of a DataLoader; 0 if it is unknown or should not be asked for."""
    try:
        return 0 if loader._dataset_kind != 0 else len(loader)  # 0: not iterable-style
    except Exception:
        return 0


def is_endless(loader, length):
    """Whether one iterator serves all passes: what it takes its batches from repeats for ever and so has no length, which
    the loader has (InfiniteDataLoader of ultralytics, MultiEpochsDataLoader of timm)."""
    try:
        return length > 0 and len(loader._index_sampler) < 0
    except TypeError:
        return True
    except Exception:
        return False


class Optimizers:
    """The number of living optimizers, for all threads."""

    __slots__ = ("count", "_alive")

    def __init__(self):
        self.count = 0
        self._alive = set()

    def add(self, optimizer):
        """An optimizer was created."""
        self._alive.add(weakref.ref(optimizer, self._gone))
        self.count = len(self._alive)

    def tensors(self):
        """The ids of the tensors that these optimizers update."""
        alive = [optimizer for optimizer in (reference() for reference in list(self._alive)) if optimizer is not None]
        return {id(tensor) for optimizer in alive for group in optimizer.param_groups for tensor in group["params"]}

    def _gone(self, reference):
        self._alive.discard(reference)
        self.count = len(self._alive)


class Loader:
    """What is known about one loader; batch_size: None, where the loader does not say it."""

    __slots__ = ("batch_size", "lists", "looks", "tokens", "trains", "evaluates", "ahead", "told", "tensors", "batches",
                 "look_at", "padding", "samples", "key", "anew", "__weakref__")  # fmt: skip

    def __init__(self, batch_size=None, samples=-1):
        self.batch_size = batch_size
        self.samples = samples  # of a pass; -1: not known
        # Where the number of samples of a batch is found: 0: the first dimension of its first tensor; 1: the length of
        # the batch, a list of samples; 2: that of the lists in it; 3: what a dict has under the key; None: not known yet.
        self.lists = None if batch_size else 0
        self.key = None
        self.anew = False  # endless, and another pass over it begins with its next batch
        self.looks = 0  # batches that did not show it
        self.tokens = [0, 0]  # of batches that say it, not yet added to those of all loaders; and their samples
        self.trains = False  # a pass led to a step
        self.evaluates = False  # a pass led to no step
        self.ahead = deque()  # samples of batches whose backward has not begun
        self.told = None  # called once it is known to train
        self.tensors = 0  # of a batch, by the first ones
        self.batches = 0
        self.look_at = 1  # the number of the batch to be looked at next; 0: none
        self.padding = [0, 0, 0, 0]  # of the batches that were looked at (strain_padding.look)


class Pass:
    """One pass of an iterator over its loader."""

    __slots__ = ("loader", "role", "batches", "length", "endless", "began_ns", "ready_ns", "left_ns", "over")

    def __init__(self, loader, began_ns, length):
        self.loader = loader
        self.role = UNKNOWN
        self.batches = 0
        self.length = length  # number of batches; 0: unknown
        self.endless = False  # its iterator goes on with the next pass
        self.left_ns = 0  # when its iterator was deleted
        self.began_ns = began_ns
        self.ready_ns = began_ns  # when the iterator was ready
        self.over = False

    def left(self):
        """The iterator was deleted."""
        self.left_ns = monotonic_ns()
        if self.role == TRAINING:
            self.over = True

    def expected(self):
        """The samples of the batch that follows, by what the loader says of itself; -1: it does not."""
        size, samples = self.loader.batch_size, self.loader.samples
        if not size or samples < 0:
            return -1
        return min(size, max(samples - size * self.batches, 0)) or -1

    def complete(self):
        """Whether all batches were taken, even if no further one was requested."""
        return self.batches == self.length != 0
