# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""Creates loaders with other settings than the script's, for the probes of `strain advise`.

STRAIN_SET="num_workers=4 persistent_workers=1 at=train.py:42" changes the training loader, which the
script creates at that place; its other loaders keep their settings. "batch_size=64 was=32" changes
every loader whose batch size is 32, because a script usually has one batch size for all its loaders.
"flush_denormal=1" calls torch.set_flush_denormal(True), for this thread and those that it will start.
The run records what was changed (`loader_set`), or why nothing was (`loader_set_missing`). If PyTorch
rejects the arguments, the loader is created as in the script.
"""

import inspect

import strain_hook

FLAGS = ("pin_memory", "persistent_workers", "flush_denormal")
NUMBERS = ("num_workers", "prefetch_factor")
NEED_WORKERS = ("prefetch_factor", "persistent_workers")
MOST = 1024  # workers, and batches ahead of each
BATCH_MOST = 1 << 24


def parse(text):
    """Settings by name, and the place; raises ValueError."""
    words, _, place = text.partition("at=")
    settings = {}
    for word in words.split():
        name, _, value = word.partition("=")
        if name in ("batch_size", "was"):
            known = 1 <= int(value) <= BATCH_MOST
        else:
            least = 1 if name == "prefetch_factor" else 0  # with 0 newer versions of PyTorch wait for ever
            known = name in FLAGS + NUMBERS and least <= int(value) <= MOST
        if not known:
            raise ValueError("no setting: %s" % word)
        settings[name] = bool(int(value)) if name in FLAGS else int(value)
    return settings, place.strip()


class Settings:
    """The new settings, and the loaders to which they apply. One per process."""

    def __init__(self, torch, folder, report, text):
        self._report = report
        self._folders = (folder,)  # PyTorch's own: a loader is created by the code that calls it
        self._iterable = torch.utils.data.IterableDataset
        self._wanted, self._place = parse(text)
        self._was = self._wanted.pop("was", None)
        self._batch_size = self._wanted.pop("batch_size", None)
        self.flush = self._wanted.pop("flush_denormal", None)
        self._signature = inspect.signature(torch.utils.data.DataLoader.__init__)
        self._first = None  # data read by the first loader at the place

    def wrap(self, original):
        """Returns a DataLoader.__init__ that may change its arguments."""

        def __init__(loader, *arguments, **options):
            try:
                bound, words = self._changed(loader, arguments, options)
            except Exception as error:
                bound = None
                self._missing(strain_hook.describe(error))
            if bound is not None:
                try:
                    original(*bound.args, **bound.kwargs)
                except Exception as error:
                    self._missing(strain_hook.describe(error))
                else:
                    self._report.say("loader_set", words)
                    return
            original(loader, *arguments, **options)

        return __init__

    def _missing(self, reason):
        self._report.say("loader_set_missing", reason)

    def _changed(self, loader, arguments, options):
        """The arguments with the settings, and these in words; (None, "") for an unchanged loader."""
        bound = self._signature.bind(loader, *arguments, **options)
        given, changed = bound.arguments, {}
        trained = self._is_trained(given)
        if self._batch_size and self._has_batch_size(given, trained):
            given["batch_size"] = changed["batch_size"] = self._batch_size
        if trained and self._wanted and self._can_change(given):
            given.update(self._wanted)
            changed.update(self._wanted)
        return (bound, _words(changed)) if changed else (None, "")

    def _has_batch_size(self, given, trained):
        """Whether a loader gets the new batch size."""
        if given.get("batch_sampler") is not None or given.get("batch_size", 1) is None:
            if trained:
                self._missing("its batches come from a batch sampler or from the dataset")
            return False
        return trained if self._was is None else given.get("batch_size", 1) == self._was

    def _can_change(self, given):
        """Whether the training loader can have the settings; drops those of the script that need workers."""
        workers = self._wanted.get("num_workers", given.get("num_workers", 0))
        if isinstance(given.get("dataset"), self._iterable) and workers != given.get("num_workers", 0):
            # Each worker reads all of it, unless the dataset divides itself.
            self._missing("its dataset is iterable: the script divides it among workers")
            return False
        if workers == 0:
            for name in NEED_WORKERS:
                if name in self._wanted:
                    self._missing("%s needs workers, and the loader has none" % name)
                    return False
            for name in NEED_WORKERS:
                given.pop(name, None)
        return True

    def _is_trained(self, given):
        """Whether this is the loader that the script trains with, or the same one created again.

        A function may create all loaders at one place: then these are the first one, those that
        read the same dataset, and those that shuffle.
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
    if settings.flush is not None:
        if torch.set_flush_denormal(settings.flush):
            report.say("optimizer_flush_denormal", str(int(settings.flush)))
            report.say("loader_set", "flush_denormal=%d" % settings.flush)
        else:
            report.say("loader_set_missing", "this CPU computes with denormal numbers in any case")
    patch(torch.utils.data.DataLoader, "__init__", settings.wrap)
