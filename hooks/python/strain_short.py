# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""Shortens epochs of PyTorch and Keras for the probes of `strain advise`.

STRAIN_SHORT="10 3.0": the first pass with gradients over a loader ends after 10 batches and at least
3 seconds after its first batch; all other passes end after at most 4 batches. If the first pass is
shorter by itself, the next passes with gradients continue until they have lasted 3 seconds
together. A probe of a few seconds then contains validation, the boundary of an epoch, the
checkpoint and the second epoch, each of which may be the peak of memory. The loader's order ends early, so that
the loader hands out what its workers have prepared, and ends as it always does: no batch stays in
shared memory while another loader is used. len(loader) is unchanged. Passes that are shorter by themselves are
unchanged. A loader whose iterator never ends (strain_pass.is_endless) counts the batches of a pass in a generator, its
`__iter__`: there the pass ends, and the next one goes on with the iterator's next batch. Keras' `fit` sees data that
ends early, in training and validation; `predict` sees all of it.

The first pass without gradients after one with gradients lasts for a second, so that it shows whether memory
grows with each of its batches: a validation that keeps its outputs has its peak at the end of a full pass, which
may be the peak of the job. `loader_validation_growth` "bytes seen all": what each batch keeps, the batches of that
pass, and those of a full one. `loader_training_growth` "bytes seen" is the same of the first pass with gradients. What
counts is what is allocated (mallinfo2 of glibc), not what is resident: what is kept first fills what an allocator holds
free (seen: 100 batches of a megabyte without a change of the resident memory).

A loader worker shares the memory of the training process until one of them writes to it. A full
collection of Python's collector of cycles writes to all of a worker's objects: 25 MB after an import
of PyTorch. It comes after some hundreds of collections of the youngest objects. A worker whose batches
cause one each reaches it within minutes (seen: batches of 239 images, after 160 of them). In a shortened
run such a worker makes its full collection after its second batch, so that the peak is seen. A worker of
smaller batches frees as many objects as it makes, and may never collect (seen: none in 2,700 batches of
16): it is not changed. Neither is one that ends with its epoch before it would get there.
"""

import gc
from ctypes import CDLL, Structure, c_size_t
from inspect import isgeneratorfunction, unwrap
from os import environ, rename
from time import monotonic

from strain_pass import is_endless, length_of

COLLECTED_AFTER = 2  # batches of a worker
WATCHED_SECONDS = 1.0  # of the pass whose memory is watched
WATCHED_LEAST = 12  # readings that show growth
WATCHED_MOST = 4096
WATCHED_APART = 0.02  # seconds between two
READ_SHARE = 20  # times of a reading until the next one
WATCHED_BYTES = 8 << 20  # less is not worth a word
LATER = 4  # batches of all other passes
AHEAD = 3  # batches after which a pass ends for all ranks, once rank 0 has decided
ALONE_SECONDS = 10.0  # after which another rank decides by itself
EPOCHS_TOLD = 8  # epochs whose validation is reported, at most
REPORTS = 16  # reports of validation, at most
ARRIVALS = 256  # batches whose time is kept
ITERATIONS_MOST = 1 << 20
SECONDS_MOST = 86400.0


def parse(text):
    """Iterations and seconds from "10 3.0"; raises ValueError."""
    iterations, seconds = text.split()
    iterations, seconds = int(iterations), float(seconds)
    if not 1 <= iterations <= ITERATIONS_MOST or not 0 <= seconds <= SECONDS_MOST:
        raise ValueError("cannot shorten epochs to %r" % text)
    return iterations, seconds


class Lengths:
    """How long passes are, and how long validation takes in epochs of full length. One per process.

    Passes with gradients that end by themselves are whole epochs: their batches are reported
    (`loader_pass_batches`), because an iterable data set does not say its length.

    Passes without gradients between two passes with gradients are the validation of an epoch. Its
    seconds are reported (`loader_validation_s`; -1: unknown), as the mean over epochs.
    """

    def __init__(self, report, text, rank=None):
        self._report = report
        self._iterations, self._seconds = parse(text)
        self._ranks = Ranks(rank)
        self._trainings = 0  # passes with gradients
        self._least = min(self._iterations, LATER)
        self._left = self._seconds  # of the passes that last longer
        self._trained = False  # these have ended
        self._validation = None  # seconds so far, after a pass with gradients; None: during one
        self._validations = []  # of whole epochs
        self._unknown = False  # the length of one is
        self._reports = 0
        self._watches = True  # the next pass after one with gradients
        self._told_growth = False  # of training
        self._whole = 0  # batches of the last pass with gradients that was not shortened
        self._told = 0

    def begin(self, trains):
        """A pass, before or after its first batch; trains: with gradients."""
        if trains:
            if self._validation is not None and len(self._validations) < EPOCHS_TOLD:
                self._validations.append(self._validation)
                self._tell(self._validations)
            self._validation = None
        one = Pass(self, trains and not self._trained, trains)
        self._trainings += trains
        one.name = "training-%d" % self._trainings if trains else "validation"
        if self._watches and self._validation is not None:
            self._watches = False
            one.lasts = True
            one.memory = []
        elif one.first and not self._told_growth:
            one.memory = []
        return one

    def is_over(self, one, batches):
        """Whether so many batches are enough for a pass, and the first one has had enough time."""
        if batches < self._least:
            return False
        if one.first or one.lasts:  # its end is a matter of time
            if not self._ranks.agree(one, batches, self._is_enough(one, batches)):
                return False
            self._trained = self._trained or one.first
        one.ended = True
        self._report.say("hooked", "epochs shortened")
        return True

    def _is_enough(self, one, batches):
        if one.lasts:
            return monotonic() - one.since >= WATCHED_SECONDS
        if one.taken == 0 and self._left > 0:  # its time has not begun
            return False
        return batches >= self._iterations and monotonic() - one.since >= self._left

    def end(self, one, length_of, workers):
        """There is no further batch; length_of(): the batches of the full pass, -1 if unknown."""
        if one.over:
            return
        one.over = True
        if one.first and not one.ended:  # it did not last long enough
            self._left -= one.seen - one.since
            if one.taken != self._whole and self._told < EPOCHS_TOLD:
                self._whole = one.taken
                self._told += 1
                self._report.say("loader_pass_batches", str(one.taken))
        if one.memory is not None:
            self._tell_growth(one, length_of)
        if one.trains:
            self._validation = 0.0
        elif self._validation is not None:
            seconds = one.full_seconds(length_of, workers)
            self._unknown = self._unknown or seconds is None
            self._validation += seconds or 0.0
            if not self._validations or self._unknown:
                self._tell([self._validation])

    def _tell_growth(self, one, length_of):
        each = growth_of(one.memory)
        if one.trains:
            if each > 0:
                self._told_growth = True
                self._report.say("loader_training_growth", "%d %d" % (each, one.taken))
            return
        try:
            length = length_of() if length_of else one.taken
        except Exception:  # an iterable data set, for example
            length = -1
        if each > 0 and length > one.taken:
            self._report.say("loader_validation_growth", "%d %d %d" % (each, one.taken, length))

    def _tell(self, seconds):
        self._reports += 1
        if self._reports > REPORTS:
            return
        mean = -1.0 if self._unknown else sum(seconds) / len(seconds)
        self._report.say("loader_validation_s", "%.3f" % mean)


class Ranks:
    """Ranks of a job end a pass after the same batch, or some would wait for the others' gradients. Rank 0 decides, a few
    batches ahead, in a file of the marker directory, since ranks are less than that apart."""

    def __init__(self, rank):
        self._rank = rank or (lambda: None)  # this process's; None: it is alone
        self._folder = environ.get("STRAIN_MARKERS")

    def agree(self, one, batches, enough):
        """Whether the pass is over after so many batches, if that is enough for this rank."""
        rank = self._rank() if one.last is None and self._folder else None
        if rank == 0 and enough:
            one.last = batches + AHEAD
            one.last = one.last if self._write(one) else None
        elif rank is not None and rank > 0:
            one.last = self._read(one)
            # Rank 0 makes no such pass, or is on another machine.
            enough = enough and monotonic() - one.since > ALONE_SECONDS
        return batches >= one.last if one.last is not None else enough

    def _path(self, one):
        return "%s/short-%s" % (self._folder, one.name)

    def _write(self, one):
        try:
            new = self._path(one) + ".new"
            with open(new, "x", encoding="ascii") as file:
                file.write("%d" % one.last)
            rename(new, self._path(one))
        except OSError:
            return False
        return True

    def _read(self, one):
        try:
            with open(self._path(one), encoding="ascii") as file:
                return int(file.read(20))
        except (OSError, ValueError):
            return None


class Pass:
    """One pass over the data."""

    __slots__ = ("name", "last", "lengths", "first", "trains", "began", "since", "seen", "taken", "ended", "over", "arrivals",
                 "memory", "read", "lasts")  # fmt: skip

    def __init__(self, lengths, first, trains):
        self.lengths = lengths
        self.first = first  # one of those that last longer
        self.trains = trains  # with gradients
        self.began = self.since = self.seen = monotonic()
        self.taken = 0  # batches
        self.ended = False  # early
        self.over = False
        self.arrivals = []  # (batches so far, time), of a pass without gradients
        self.memory = None  # (batches so far, bytes), of a pass that is watched
        self.read = 0.0  # time of the last reading
        self.lasts = False  # it is not ended as soon as others
        self.name = ""  # for the other ranks
        self.last = None  # batches after which it is over, once ranks agreed

    def take(self, batches):
        """Counts batches. The pass begins with the first one."""
        self.seen = monotonic()
        if self.taken == 0:
            self.since = self.seen
        self.taken += batches
        if batches > 0 and self.memory is not None and self.seen - self.read >= WATCHED_APART:
            held = own_bytes()
            if held is not None and len(self.memory) < WATCHED_MOST:
                self.memory.append((self.taken, held))
            # A heap of many pieces takes long to read: at most a twentieth of the time.
            self.read = self.seen + READ_SHARE * (monotonic() - self.seen)
        if batches > 0 and not self.trains and len(self.arrivals) < ARRIVALS:
            self.arrivals.append((self.taken, self.seen))

    def is_over(self, batches):
        """Whether it must end after so many batches."""
        return self.lengths.is_over(self, batches)

    def end(self, length_of=None, workers=0):
        """There is no further batch; length_of(): the batches of the full pass, -1 if unknown."""
        self.lengths.end(self, length_of, workers)

    def full_seconds(self, length_of, workers):
        """The seconds of the full pass; None: unknown. Workers deliver their first batches together."""
        if not self.ended:
            return self.seen - self.began
        try:
            length = length_of()
        except Exception:  # an iterable data set, for example
            length = -1
        later = [arrival for arrival in self.arrivals if arrival[0] > max(1, workers)]
        earlier = self.arrivals[: len(self.arrivals) - len(later)] or self.arrivals[:1]
        if length < self.taken or not later or later[-1][0] == earlier[-1][0]:
            return None
        each = (later[-1][1] - earlier[-1][1]) / (later[-1][0] - earlier[-1][0])
        return self.seen - self.began + each * (length - self.taken)


class Short:
    """The patches of PyTorch's iterators. One per process."""

    def __init__(self, torch, report, text, leave):
        self._leave = leave  # tells that a script takes no more batches of its pass over a loader
        self._loader = torch.utils.data.DataLoader
        self._followed = set()  # classes of loaders with an __iter__ of their own
        self._shortened = set()  # those whose passes are shortened there
        self._has_gradients = torch.is_grad_enabled
        self._in_worker = torch.utils.data.get_worker_info
        self._iterable = torch.utils.data.IterableDataset
        self._distributed = torch.distributed
        self._lengths = Lengths(report, text, self._rank)
        self._worker_batches = None  # of a worker of the newest iterator in its life; None: no end is known

    def _rank(self):
        distributed = self._distributed
        if not (distributed.is_available() and distributed.is_initialized()) or distributed.get_world_size() < 2:
            return None
        return distributed.get_rank()

    def install(self, patch, data):
        """patch(owner, name, wrap), as strain_hook.Hook.patch; data: torch.utils.data.dataloader."""
        self._patch = patch
        patch(self._loader, "__init__", self._wrap_loader)
        patch(data._BaseDataLoaderIter, "__init__", self._wrap_init)
        patch(data._BaseDataLoaderIter, "_reset", self._wrap_reset)
        patch(data._BaseDataLoaderIter, "_next_index", self._wrap_index)
        patch(data._BaseDataLoaderIter, "__next__", self._wrap_next)
        for fetcher in (data._utils.fetch._MapDatasetFetcher, data._utils.fetch._IterableDatasetFetcher):
            patch(fetcher, "fetch", self._wrap_fetch)

    def _wrap_loader(self, original):
        def __init__(loader, *arguments, **options):
            original(loader, *arguments, **options)
            owner = next(kind for kind in type(loader).__mro__ if "__iter__" in vars(kind))
            if owner is not self._loader and owner not in self._followed:
                self._followed.add(owner)
                if isgeneratorfunction(unwrap(owner.__iter__)):
                    self._patch(owner, "__iter__", self._wrap_passes)
                    self._shortened.add(owner)

        return __init__

    def _wrap_passes(self, original):
        def __iter__(loader):
            passes = original(loader)
            return self._shorten(loader, passes) if is_endless(loader, length_of(loader)) else passes

        return __iter__

    def _shorten(self, loader, passes):
        """The batches of one pass over a loader whose iterator never ends."""
        one = None
        try:
            for batch in passes:
                one = one or self._lengths.begin(self._has_gradients())
                one.take(1)
                yield batch
                if one.is_over(one.taken):
                    self._leave(loader)
                    break
        finally:
            passes.close()
        if one is not None:
            one.take(0)
            one.end(lambda: len(loader), loader.num_workers)

    def _shortened_in(self, kind):
        return not self._shortened.isdisjoint(kind.__mro__)

    def _wrap_init(self, original):
        def __init__(iterator, *arguments, **options):
            iterator._strain_pass = None
            iterator._strain_asked = 0  # batches of this pass that were asked for
            loader = arguments[0] if arguments else options.get("loader")  # its workers are forked below
            iterator._strain_endless = self._shortened_in(type(loader)) and is_endless(loader, length_of(loader))
            self._worker_batches = worker_batches(loader, self._iterable)
            original(iterator, *arguments, **options)

        return __init__

    def _wrap_reset(self, original):
        """A persistent iterator begins its next pass."""

        def _reset(iterator, *arguments, **options):
            iterator._strain_pass = None
            iterator._strain_asked = 0
            return original(iterator, *arguments, **options)

        return _reset

    def _wrap_index(self, original):
        """What the next batch consists of. Batches that workers prepare before the first is taken do not count."""

        def _next_index(iterator):
            one = getattr(iterator, "_strain_pass", None)
            asked = getattr(iterator, "_strain_asked", 0)
            if one is not None and one.is_over(asked):
                raise StopIteration
            index = original(iterator)
            iterator._strain_asked = asked + 1
            return index

        return _next_index

    def _wrap_next(self, original):
        def __next__(iterator):
            if getattr(iterator, "_strain_endless", False):
                return original(iterator)
            one = getattr(iterator, "_strain_pass", None)
            asks = getattr(iterator, "_strain_asked", 0) > 0
            if one is not None and not asks and one.is_over(one.taken):  # a loader with its own order
                _end(one, iterator)
                raise StopIteration
            if one is None:
                one = iterator._strain_pass = self._lengths.begin(self._has_gradients())
            try:
                batch = original(iterator)
            except StopIteration:
                one.take(0)
                _end(one, iterator)
                raise
            one.take(1)
            return batch

        return __next__

    def _wrap_fetch(self, original):
        def fetch(fetcher, index):
            if not self._in_worker() or getattr(fetcher, "_strain_fetched", 0) >= COLLECTED_AFTER:
                return original(fetcher, index)
            before = young_collections()
            batch = original(fetcher, index)
            fetcher._strain_fetched = getattr(fetcher, "_strain_fetched", 0) + 1
            fetcher._strain_young = getattr(fetcher, "_strain_young", 0) + young_collections() - before
            if fetcher._strain_fetched == COLLECTED_AFTER and self._collects(fetcher._strain_young):
                gc.collect()
            return batch

        return fetch

    def _collects(self, young):
        """Whether a worker with so many collections of the youngest objects will make a full one."""
        each = young / COLLECTED_AFTER
        return each >= 1 and (self._worker_batches is None or self._worker_batches * each >= before_full())


class Blocks(Structure):
    """What mallinfo2 says, of all arenas of glibc."""

    _fields_ = [(name, c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
    )]  # fmt: skip


def find_mallinfo():
    """The function; None: another C library, or an older one."""
    try:
        mallinfo = CDLL(None).mallinfo2
        mallinfo.restype = Blocks
        return mallinfo
    except (AttributeError, OSError):
        return None


mallinfo2 = find_mallinfo()


def own_bytes():
    """Bytes that this process has allocated from glibc; None: not known."""
    if mallinfo2 is None:
        return None
    blocks = mallinfo2()
    return blocks.uordblks + blocks.hblkhd


def growth_of(memory):
    """Bytes that each batch keeps, from what was allocated after so many; 0: it does not grow. The first batches fill
    caches; the least of a third is what is kept, and it must grow in both halves."""
    memory = memory[len(memory) // 4 :]
    if len(memory) < WATCHED_LEAST:
        return 0
    third = len(memory) // 3
    parts = [memory[part * third : (part + 1) * third] for part in range(3)]
    (begin, first), (_, middle), (end, last) = (min(part, key=lambda reading: reading[1]) for part in parts)
    gained = last - first
    even = min(middle - first, last - middle) >= 0.25 * gained
    return gained / (end - begin) if gained >= WATCHED_BYTES and even else 0


def before_full():
    """Collections of the youngest objects until a full one, in this process. It continues the counters of the process that it
    was forked from."""
    _, middle, old = gc.get_threshold()
    _, middle_done, old_done = gc.get_count()
    return max(0, (middle + 1) * max(1, old + 1 - old_done) - middle_done)


def worker_batches(loader, iterable):
    """The batches of a worker in its life; None: it lives on after the epoch, or the length is not known. The length of an
    iterable data set is not asked for: PyTorch then warns of data sets that are longer."""
    try:
        if loader.persistent_workers or isinstance(loader.dataset, iterable):
            return None
        return len(loader) / max(1, loader.num_workers)
    except Exception:  # a loader of the script's own
        return None


def _end(one, iterator):
    one.end(lambda: len(iterator), getattr(iterator, "_num_workers", 0))


def young_collections():
    """Collections of the youngest objects in this process so far; none while the collector is off."""
    return gc.get_stats()[0]["collections"]


def install(torch, patch, report, text, leave=lambda loader: None):
    """Starts shortening passes over PyTorch's loaders."""
    if mallinfo2 is None:
        report.say("missing", "memory that batches keep: this C library has no mallinfo2 (glibc 2.33)")
    Short(torch, report, text, leave).install(patch, torch.utils.data.dataloader)
