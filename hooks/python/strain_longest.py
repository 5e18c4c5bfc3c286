# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""Begins passes over PyTorch's loaders with a batch of the largest samples, for the probes of `strain advise`.

Where samples differ in size (sentences, clips, images that are not resized), the peak of memory comes with
the batch that holds the largest one, which may be one of thousands in an epoch. A probe of a few seconds
rarely sees it. STRAIN_LONGEST="2.0": before the first pass over a dataset, a forked child looks at its samples
in random order for at most 2 seconds, and the first batch of that pass consists of the largest ones that it saw.
A script's own batch sampler keeps its batches: the one with the most elements comes first. The rest of the
pass is unchanged. "2.0 again": that batch comes again and again in each pass, because an allocator may need more
for it once others have split its memory (seen: a third more after 100 batches).

A child looks, because looking at samples consumes random numbers and may open files. It reads files by positions of
its own, and has no connections. It is no loader worker, and is not recorded as one.

The run records what was found: `loader_sample_sizes` "looked of median largest" (samples that were looked at,
samples of a pass or -1, elements of the median and the largest one), if they differ. Batches of other loaders
(iterable datasets) cannot be chosen: `loader_batch_elements` says the same of their batches, in elements per
sample.
"""

import fcntl
import os
import pickle
import random
import select
import signal
import stat
import sys
import time
import warnings
from itertools import cycle, islice

SAME = 200  # samples of one size show that all have it
SAME_SECONDS = 0.3  # or those of this time, but at least a few
SAME_LEAST = 16
INDICES_MOST = 200000  # of a pass
BATCHES_MOST = 20000  # of a batch sampler
DATASETS_MOST = 4  # looked at in a process
GRACE_SECONDS = 2.0  # for the sample that the child looks at when its time is over
ANSWER_MOST = 1 << 24  # bytes
DEPTH = 4
GAPS = (5, 1, 4, 9, 2, 7)  # batches until the largest ones come again, in turn
ITEMS = 64  # of a container
DIFFERS = 1.1  # the largest one, in medians: less is not worth a report
SECONDS_MOST = 60.0
BATCHES_SEEN = 512  # whose elements are kept


def parse(text):
    """Seconds, and whether again; raises ValueError."""
    seconds, _, again = text.partition(" ")
    if not 0 < float(seconds) <= SECONDS_MOST or again not in ("", "again"):
        raise ValueError("cannot look at samples for %r" % text)
    return float(seconds), bool(again)


def size_of(item, depth=0):
    """The elements of a sample: of all arrays, texts and lists of numbers in it."""
    numel = getattr(item, "numel", None)
    if callable(numel):
        return int(numel())
    if isinstance(item, (str, bytes, bytearray)):
        return len(item)
    size = getattr(item, "size", None)
    if isinstance(size, int):  # NumPy
        return size
    if isinstance(size, tuple) and len(size) == 2 and all(isinstance(side, int) for side in size):  # an image of Pillow
        return size[0] * size[1]
    if depth < DEPTH and isinstance(item, dict):
        return sum(size_of(part, depth + 1) for part in islice(item.values(), ITEMS))
    if depth < DEPTH and isinstance(item, (list, tuple)):
        if item and isinstance(item[0], (int, float)):
            return len(item)
        return sum(size_of(part, depth + 1) for part in item[:ITEMS])
    return 1


def median_of(sizes):
    """The upper median."""
    return sorted(sizes)[len(sizes) // 2]


class Look:
    """What a child saw of a dataset."""

    def __init__(self, sizes, of, batch):
        self.looked = len(sizes)
        self.of = of  # samples of a pass; -1: unknown
        self.median = median_of(sizes)
        self.largest = max(sizes)
        self.batch = batch  # indices; None: all samples have one size

    def differ(self):
        """Whether the samples differ in size."""
        return self.largest >= DIFFERS * self.median and self.largest > self.median


def look_at(dataset, indices, seconds, pick, of):
    """Looks at samples in random order. pick(sizes): the batch, from the sizes by index."""
    began = time.monotonic()
    order = list(range(len(indices)))
    random.Random(len(indices)).shuffle(order)
    sizes = {}
    for place in order:
        passed = time.monotonic() - began
        enough = len(sizes) >= SAME or (len(sizes) >= SAME_LEAST and passed > SAME_SECONDS)
        if passed > seconds or (enough and len(set(sizes.values())) == 1):
            break
        sizes[indices[place]] = size_of(dataset[indices[place]])
    if len(sizes) < 2:
        return None
    values = list(sizes.values())
    return Look(values, of, pick(sizes) if len(set(values)) > 1 else None)


def _replaces(batch, index):
    """Whether a batch may come instead of another one: the last one of a pass, which is smaller, stays."""
    return not (isinstance(index, list) and isinstance(batch, list)) or len(batch) <= len(index)


class Longest:
    """The patches of PyTorch's iterators. One per process."""

    def __init__(self, torch, report, text):
        self._torch = torch
        self._report = report
        self._seconds, self._again = parse(text)
        self._in_worker = torch.utils.data.get_worker_info
        self._has_gradients = torch.is_grad_enabled
        self._iterable = torch.utils.data.IterableDataset
        self._sampler = torch.utils.data.BatchSampler
        self._looked = {}  # by dataset
        self._said = False
        self._elements = []  # per sample, of batches that cannot be chosen

    def install(self, patch, data):
        """patch(owner, name, wrap), as strain_hook.Hook.patch; data: torch.utils.data.dataloader."""
        patch(data._BaseDataLoaderIter, "__init__", self._wrap_init)
        patch(data._BaseDataLoaderIter, "_next_index", self._wrap_index)
        patch(data._BaseDataLoaderIter, "__next__", self._wrap_next)

    def _wrap_init(self, original):
        def __init__(iterator, *arguments, **options):
            loader = arguments[0] if arguments else options.get("loader")
            iterator._strain_longest = self._batch(loader)
            iterator._strain_next = 0  # batches until its place
            iterator._strain_gaps = cycle(GAPS)
            iterator._strain_unchosen = self._unchosen(loader)
            original(iterator, *arguments, **options)

        return __init__

    def _wrap_index(self, original):
        def _next_index(iterator):
            index = original(iterator)
            batch = getattr(iterator, "_strain_longest", None)
            if batch is None:
                return index
            iterator._strain_next -= 1
            if iterator._strain_next >= 0 or not _replaces(batch, index):
                return index
            if self._again:
                iterator._strain_next = next(iterator._strain_gaps) - 1
            else:
                iterator._strain_longest = None
            return batch

        return _next_index

    def _wrap_next(self, original):
        def __next__(iterator):
            batch = original(iterator)
            samples = getattr(iterator, "_strain_unchosen", 0)
            if samples > 0 and len(self._elements) < BATCHES_SEEN and self._has_gradients():
                self._see(batch, samples)
            return batch

        return __next__

    def _unchosen(self, loader):
        """The samples of a batch that cannot be chosen; 0: it can, or the dataset makes whole batches."""
        if self._in_worker() or not isinstance(getattr(loader, "dataset", None), self._iterable):
            return 0
        return loader.batch_size or 0

    def _see(self, batch, samples):
        """Keeps the elements per sample of a batch; reports at powers of two, so that reports are bounded."""
        try:
            self._elements.append(size_of(batch) / samples)
        except Exception:
            return  # a container of the job's own
        count = len(self._elements)
        if count >= 4 and count & (count - 1) == 0:
            median, largest = median_of(self._elements), max(self._elements)
            if largest >= DIFFERS * median:
                self._report.say("loader_batch_elements", "%d -1 %d %d" % (count, median, largest))

    def _batch(self, loader):
        """The indices of the largest samples; None: the loader's own come first."""
        try:
            if self._in_worker() or loader._dataset_kind != 0:
                return None
            key = (type(loader.dataset), len(loader.dataset))
            if key in self._looked:
                look = self._looked[key] if self._again else None
            elif len(self._looked) < DATASETS_MOST and self._may_differ():
                self._looked[key] = look = self._look(loader)
            else:
                return None
            if look is not None and look.differ():
                self._say(look)
                return look.batch
        except Exception as error:
            self._report.say("missing", "largest samples: %s: %s" % (type(error).__name__, error))
        return None

    def _may_differ(self):
        """Where the samples of training have one size, those of validation are not looked at: a child then needs memory beside
        all that training holds."""
        looks = [look for look in self._looked.values() if look is not None]
        return self._has_gradients() or any(look.differ() for look in looks)

    def _say(self, look):
        """Of the first dataset only: later ones are those of validation."""
        if not self._said:
            self._said = True
            told = (look.looked, look.of, look.median, look.largest)
            self._report.say("loader_sample_sizes", "%d %d %d %d" % told)

    def _look(self, loader):
        """In a child; None: it saw nothing."""
        if self._communicates(loader):
            return None
        reads, writes = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of threads, which PyTorch's loaders fork beside, too
            child = os.fork()
        if child == 0:
            self._answer(loader, writes)
        os.close(writes)
        try:
            return _read_answer(reads, self._seconds + GRACE_SECONDS)
        finally:
            os.close(reads)
            os.kill(child, signal.SIGKILL)  # it has answered, or takes too long
            os.waitpid(child, 0)

    def _communicates(self, loader):
        """Whether iterating over the order of samples may talk to other ranks."""
        distributed = self._torch.distributed
        if not (distributed.is_available() and distributed.is_initialized()):
            return False
        own = (type(loader.sampler).__module__, type(loader.batch_sampler).__module__)
        return not all(name.startswith("torch.") or name == "builtins" for name in own)

    def _answer(self, loader, writes):
        """The child. Does not return."""
        try:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self._kept = (sys.stdout, sys.stderr)  # else their buffers are written here, too
            sys.stdout = sys.stderr = open(os.devnull, "w")
            _part_from_parent(writes)
            self._torch.set_num_threads(1)  # its pool of threads is not forked
            with os.fdopen(writes, "wb") as pipe:
                pickle.dump(self._look_here(loader), pipe)
        finally:
            os._exit(0)

    def _look_here(self, loader):
        batches, indices = None, None
        sampler = loader.batch_sampler if loader.batch_sampler is not None else loader.sampler
        if loader.batch_sampler is None:
            indices = list(islice(iter(sampler), INDICES_MOST))
        elif type(sampler) is self._sampler:
            indices = list(islice(iter(sampler.sampler), INDICES_MOST))
        else:
            batches = [tuple(batch) for batch in islice(iter(sampler), BATCHES_MOST)]
            indices = [index for batch in batches for index in batch][:INDICES_MOST]
        count = 1 if loader.batch_sampler is None else getattr(sampler, "batch_size", None) or 1

        def pick(sizes):
            if batches is not None:
                known = [batch for batch in batches if all(index in sizes for index in batch)]
                return list(max(known, key=lambda batch: len(batch) * max(map(sizes.get, batch)), default=())) or None
            largest = sorted(sizes, key=sizes.get, reverse=True)[:count]
            largest += largest[:1] * (count - len(largest)) if len(indices) >= count else []
            return largest[0] if loader.batch_sampler is None else largest

        return look_at(loader.dataset, indices, self._seconds, pick, len(indices) if len(indices) < INDICES_MOST else -1)


def _part_from_parent(writes):
    """Opens anew what is read from files, whose position both processes share; closes connections, which a second speaker
    would confuse. A dataset that needs one then fails in the child."""
    for name in os.listdir("/proc/self/fd"):
        handle = int(name)
        try:
            kind = os.fstat(handle).st_mode
            if handle == writes:
                continue
            if stat.S_ISREG(kind) and fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
                at, new = os.lseek(handle, 0, os.SEEK_CUR), os.open("/proc/self/fd/%d" % handle, os.O_RDONLY)
                os.lseek(new, at, os.SEEK_SET)
            elif stat.S_ISSOCK(kind) or stat.S_ISFIFO(kind):
                new = os.open(os.devnull, os.O_RDWR)
            else:
                continue
            os.dup2(new, handle)
            os.close(new)
        except OSError:
            continue


def _read_answer(reads, seconds):
    """The child's answer; None: it gave none in time."""
    until = time.monotonic() + seconds
    answer = b""
    while len(answer) < ANSWER_MOST:
        left = until - time.monotonic()
        if left <= 0 or not select.select([reads], [], [], left)[0]:
            return None
        part = os.read(reads, 1 << 16)
        if not part:
            return pickle.loads(answer) if answer else None
        answer += part
    return None


def install(torch, patch, report, text):
    """Starts choosing the first batches."""
    Longest(torch, report, text).install(patch, torch.utils.data.dataloader)
