# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""What a training loop (strain_loop.py) knows of loaders, of passes over them, and of optimizers."""

import weakref
from collections import deque
from time import monotonic_ns

# Roles of a pass over a loader.
UNKNOWN = 0  # its first batches
TRAINING = 1  # an epoch
EVALUATION = 2  # a validation
BESIDE = 3  # of another pass, or nothing of the kind


class Optimizers:
    """How many optimizers are alive, for all threads."""

    __slots__ = ("count", "_alive")

    def __init__(self):
        self.count = 0
        self._alive = set()

    def add(self, optimizer):
        """One was made."""
        self._alive.add(weakref.ref(optimizer, self._gone))
        self.count = len(self._alive)

    def _gone(self, reference):
        self._alive.discard(reference)
        self.count = len(self._alive)


class Loader:
    """What is known of one loader."""

    __slots__ = ("trains", "evaluates", "ahead", "told", "__weakref__")

    def __init__(self):
        self.trains = False  # a pass led to a step
        self.evaluates = False  # a pass led to none
        self.ahead = deque()  # samples of batches whose backward did not begin yet
        self.told = None  # called once it is known to train


class Pass:
    """One iterator's way through its loader."""

    __slots__ = ("loader", "role", "batches", "length", "began_ns", "ready_ns", "left_ns", "over")

    def __init__(self, loader, began_ns, length):
        self.loader = loader
        self.role = UNKNOWN
        self.batches = 0
        self.length = length  # so many batches there are; 0: not known
        self.left_ns = 0  # when its iterator was no more
        self.began_ns = began_ns
        self.ready_ns = began_ns  # the iterator was there
        self.over = False

    def left(self):
        """The iterator is no more."""
        self.left_ns = monotonic_ns()
        if self.role == TRAINING:
            self.over = True

    def complete(self):
        """Whether all batches were given out, though nobody asked in vain for one more."""
        return self.batches == self.length != 0
