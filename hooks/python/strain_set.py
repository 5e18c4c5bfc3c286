# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""For strain advise --try: creates the training loader with other settings than the script's.

STRAIN_SET names them, and where the script makes the loader that it trains with, since a script has
others, which stay: "num_workers=4 persistent_workers=1 at=train.py:42". What was changed goes into
the run (loader_set), and so does why it was not (loader_set_missing). Where PyTorch refuses them, the
loader is made as the script wants it.
"""

import inspect

import strain_hook

FLAGS = ("pin_memory", "persistent_workers")
NUMBERS = ("num_workers", "prefetch_factor")
NEED_WORKERS = ("prefetch_factor", "persistent_workers")
MOST = 1024  # workers, and batches ahead of each


def parse(text):
    """The settings by name, and the place; raises where one is none."""
    words, _, place = text.partition("at=")
    settings = {}
    for word in words.split():
        name, _, value = word.partition("=")
        if name not in FLAGS + NUMBERS or not 0 <= int(value) <= MOST:
            raise ValueError("no setting: %s" % word)
        settings[name] = bool(int(value)) if name in FLAGS else int(value)
    return settings, place.strip()


class Settings:
    """The new settings, and the loaders to which they apply. One per process."""

    def __init__(self, torch, folder, report, text):
        self._report = report
        self._folders = (folder,)  # of PyTorch's own: a loader is made by who calls it
        self._iterable = torch.utils.data.IterableDataset
        self._wanted, self._place = parse(text)
        self._signature = inspect.signature(torch.utils.data.DataLoader.__init__)
        self._first = None  # data read by the first loader at the place

    def wrap(self, original):
        """DataLoader.__init__, which may get other arguments."""

        def __init__(loader, *arguments, **options):
            try:
                bound = self._changed(loader, arguments, options)
            except Exception as error:
                bound = None
                self._missing(strain_hook.describe(error))
            if bound is not None:
                try:
                    original(*bound.args, **bound.kwargs)
                except Exception as error:
                    self._missing(strain_hook.describe(error))
                else:
                    self._report.say("loader_set", _words(self._wanted))
                    return
            original(loader, *arguments, **options)

        return __init__

    def _missing(self, reason):
        self._report.say("loader_set_missing", reason)

    def _changed(self, loader, arguments, options):
        """The arguments with the settings; None for a loader that is left unchanged."""
        bound = self._signature.bind(loader, *arguments, **options)
        given = bound.arguments
        if not self._is_trained(given):
            return None
        workers = self._wanted.get("num_workers", given.get("num_workers", 0))
        if isinstance(given.get("dataset"), self._iterable) and workers != given.get("num_workers", 0):
            # Each worker reads all of it, unless the dataset divides itself.
            self._missing("its dataset is iterable: how many workers read it is the script's matter")
            return None
        if workers == 0:
            for name in NEED_WORKERS:
                if name in self._wanted:
                    self._missing("%s needs workers, and the loader has none" % name)
                    return None
                given.pop(name, None)
        given.update(self._wanted)
        return bound

    def _is_trained(self, given):
        """Whether it is the loader that the script trains with, or the same one made again.

        A place may be a function that makes them all: then it is the first of them, those that read
        what that one reads, and those that shuffle.
        """
        shuffled = bool(given.get("shuffle")) or any(
            given.get(name) is not None for name in ("sampler", "batch_sampler")
        )
        if not self._place:
            return shuffled
        if strain_hook.caller(self._folders) != self._place:
            return False
        reads = _reads(given.get("dataset"))
        if self._first is None:
            self._first = reads
        return shuffled or reads == self._first


def _reads(dataset):
    """Identifies a dataset, even if it is created anew in each epoch."""
    try:
        return type(dataset), len(dataset)
    except TypeError:
        return type(dataset), None


def _words(settings):
    return " ".join("%s=%d" % (name, value) for name, value in sorted(settings.items()))


def install(torch, folder, patch, report, text):
    """Starts changing loaders. patch(owner, name, wrap), as strain_hook.Hook.patch."""
    settings = Settings(torch, folder, report, text)
    patch(torch.utils.data.DataLoader, "__init__", settings.wrap)
