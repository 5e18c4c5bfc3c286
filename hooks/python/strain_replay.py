# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""Replays prepared batches, for `strain advise --stalls`: runs a job without its input pipeline.

The first batches of each loader are kept as they come; from then on they are handed out in turn,
in containers built anew, and the loader rests: its workers have nothing to do once what they
prepared ahead is not taken. Epochs have as many batches as before. A batch that the script has
edited in place is noticed by its tensors' versions: it is prepared again, and copies are handed out
from then on.
"""

import weakref

KEPT = 8
# For a loader that does not know its length.
BATCHES_OF_UNKNOWN = 1000


def each_tensor(torch, value, found):
    """Appends the tensors in a batch to `found`."""
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, dict):
        for item in value.values():
            each_tensor(torch, item, found)
    elif isinstance(value, (list, tuple)):
        for item in value:
            each_tensor(torch, item, found)
    return found


def rebuilt(torch, value, copy):
    """The batch in new containers, with the same tensors or copies."""
    if isinstance(value, torch.Tensor):
        if not copy:
            return value
        return torch.empty_like(value, pin_memory=value.is_pinned()).copy_(value)
    if type(value) is dict:
        return {key: rebuilt(torch, item, copy) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(rebuilt(torch, item, copy) for item in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(rebuilt(torch, item, copy) for item in value))
    return value


class Kept:
    """The batches of a loader, kept and to be returned."""

    def __init__(self, torch, spoilt):
        self._torch = torch
        self._spoilt = spoilt
        self._batches = []  # (batch, tensors, their versions)
        self._turn = 0
        self.copy = False

    @property
    def full(self):
        """Whether nothing more is needed of the loader."""
        return len(self._batches) >= KEPT

    def keep(self, batch):
        """Keeps a batch from the loader; returns the batch for the script."""
        tensors = each_tensor(self._torch, batch, [])
        self._batches.append((batch, tensors, [tensor._version for tensor in tensors]))
        return rebuilt(self._torch, batch, self.copy)

    def again(self):
        """The next kept batch, or None if the script has modified it."""
        self._turn = (self._turn + 1) % len(self._batches)
        batch, tensors, versions = self._batches[self._turn]
        if not self.copy and versions != [tensor._version for tensor in tensors]:
            self.copy = True
            self._batches.clear()
            self._turn = 0
            self._spoilt()
            return None
        return rebuilt(self._torch, batch, self.copy)


class Replay:
    """The patches. One per process."""

    def __init__(self, torch, spoilt):
        self._torch = torch
        self._spoilt = spoilt
        self._kept = weakref.WeakKeyDictionary()  # by loader

    def install(self, patch):
        """patch(owner, name, wrap), as strain_hook.Hook.patch."""
        from torch.utils.data import DataLoader, dataloader

        patch(DataLoader, "_get_iterator", self._wrap_get_iterator)
        patch(dataloader._BaseDataLoaderIter, "__next__", self._wrap_next)
        patch(dataloader._MultiProcessingDataLoaderIter, "_reset", self._wrap_reset)
        base = dataloader._BaseDataLoaderIter

        class Replayed(base):
            """An iterator that never uses its loader: no workers, no sampler."""

            def __init__(self, loader):  # noqa: super() would start what is not wanted
                self._dataset = loader.dataset
                self._num_workers = 0
                self._pin_memory = False
                self._num_yielded = 0

            def __len__(self):
                return self._strain_total

        self._replayed = Replayed

    def _begin(self, iterator, loader):
        kept = self._kept.get(loader)
        if kept is None:
            kept = self._kept[loader] = Kept(self._torch, self._spoilt)
        try:
            total = len(loader)
        except TypeError:
            total = BATCHES_OF_UNKNOWN
        iterator._strain_kept, iterator._strain_total, iterator._strain_given = kept, total, 0
        return iterator

    def _wrap_get_iterator(self, original):
        def _get_iterator(loader):
            kept = self._kept.get(loader)
            if kept is not None and kept.full and not loader.persistent_workers:
                return self._begin(self._replayed(loader), loader)
            return self._begin(original(loader), loader)

        return _get_iterator

    def _wrap_next(self, original):
        def __next__(iterator):
            kept = getattr(iterator, "_strain_kept", None)
            if kept is None:
                return original(iterator)
            if iterator._strain_given >= iterator._strain_total:
                raise StopIteration
            batch = kept.again() if kept.full else None
            if batch is None:
                if isinstance(iterator, self._replayed):
                    raise StopIteration  # its loader is used again in the next epoch
                batch = kept.keep(original(iterator))
            iterator._strain_given += 1
            return batch

        return __next__

    def _wrap_reset(self, original):
        def _reset(iterator, loader, first_iter=False):
            kept = getattr(iterator, "_strain_kept", None)
            if first_iter or kept is None or not kept.full:
                original(iterator, loader, first_iter)
            iterator._strain_given = 0

        return _reset


def install(torch, patch, spoilt):
    """Starts replaying. spoilt() is called if the script modifies its batches in place."""
    Replay(torch, spoilt).install(patch)
