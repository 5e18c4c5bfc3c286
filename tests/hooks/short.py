# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Shortened epochs: their lengths, with and without workers, and what the script's loop sees."""

import gc
import os
import sys
import tempfile
import time

sys.path.insert(0, sys.argv[1])

import strain_short
import torch
from said import Said, patch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

def install(text):
    """Shortens passes from now on; returns the lines of the report."""

    said = Said()
    strain_short.install(torch, patch, said, text)
    return said.lines


def passes(loader, n):
    """The number of batches in each of n passes."""
    return [sum(1 for _ in loader) for _ in range(n)]


def lengths():
    """Passes end after the batches asked for, or all that workers prepare at first; short ones are unchanged; len() is
    the script's."""
    data = TensorDataset(torch.arange(40))
    for workers in (0, 2):
        said = install("6 0")
        assert passes(DataLoader(data, 2, num_workers=workers), 3) == [6, 4, 4]
        assert passes(DataLoader(data, 20, num_workers=workers), 2) == [2, 2]
    said = install("3 0")
    assert len(DataLoader(data, 2)) == 20 and passes(DataLoader(data, 2), 2) == [3, 3]
    kept = DataLoader(data, 2, num_workers=2, persistent_workers=True)
    for _ in range(3):
        taken = [int(batch[0][0]) for batch in kept]
        assert taken == [0, 2, 4, 6], taken  # all that the workers prepared; none of the pass before
    assert ("hooked", "epochs shortened") in said


class Endless(DataLoader):
    """As those of ultralytics and timm: one iterator serves all passes."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        object.__setattr__(self, "batch_sampler", Repeated(self.batch_sampler))
        self.iterator = None

    def __len__(self):
        return len(self.batch_sampler.sampler)

    def __iter__(self):
        if self.iterator is None:
            self.iterator = super().__iter__()
        for _ in range(len(self)):
            yield next(self.iterator)


class Repeated:
    """Repeats a sampler for ever."""

    def __init__(self, sampler):
        self.sampler = sampler

    def __iter__(self):
        while True:
            yield from self.sampler


def endless():
    """Passes over a loader whose iterator never ends are shortened, too, and continue where the one before ended."""
    data = TensorDataset(torch.arange(40))
    for workers in (0, 2):
        said = install("6 0")
        loader = Endless(data, 2, num_workers=workers)
        taken = [[int(batch[0][0]) // 2 for batch in loader] for _ in range(3)]
        assert taken == [[*range(6)], [*range(6, 10)], [*range(10, 14)]], taken
        assert len(loader) == 20 and ("hooked", "epochs shortened") in said
        brief = Endless(data, 20, num_workers=workers)
        assert passes(brief, 2) == [2, 2]


def first_pass():
    """The first pass with gradients lasts as long as asked for; validation does not."""
    data = TensorDataset(torch.arange(100000))
    install("3 0.4")
    with torch.no_grad():
        assert passes(DataLoader(data, 1), 1) == [3]
    began = time.monotonic()
    first = passes(DataLoader(data, 1), 1)[0]
    assert first > 3 and time.monotonic() - began >= 0.4, first
    assert passes(DataLoader(data, 1), 2) == [3, 3]
    install("2 0.4")
    loader = DataLoader(Slow(), 1, num_workers=2)
    began = None
    for _ in loader:  # time begins with the first batch, although workers have prepared enough before
        began = began or time.monotonic()
    assert time.monotonic() - began >= 0.3


class Slow(Dataset):
    """Its first samples take longer than the pass should."""

    def __len__(self):
        return 1000

    def __getitem__(self, index):
        time.sleep(0.6 if index < 2 else 0.01)
        return index


def short_epochs():
    """Epochs shorter than the seconds stay whole until they have lasted the seconds together."""
    epochs = DataLoader(TensorDataset(torch.arange(10)), 1)

    def lasting(seconds):
        taken = 0
        for _ in epochs:
            taken += 1
            time.sleep(seconds)
        return taken

    said = install("3 0.5")
    began = time.monotonic()
    taken = [lasting(0.02)]
    while taken[-1] > 3 and len(taken) < 20:
        taken.append(lasting(0.02))
    assert time.monotonic() - began >= 0.5 and (len(taken) > 1 or taken[0] == 3), taken
    assert lasting(0) == 3
    whole = [value for key, value in said if key == "loader_pass_batches"]
    assert whole == (["10"] if taken[0] == 10 else []), (whole, taken)


class Collections(Dataset):
    """Samples are the number of full collections of cycles in the process so far, after so many objects were made."""

    def __init__(self, objects, length):
        self.objects = objects
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        made = [[] for _ in range(self.objects)]
        return gc.get_stats()[2]["collections"] + 0 * len(made)


def collected():
    """Workers whose batches cause collections make a full one after the second, if they live long enough to make one by
    themselves; others and the training process do not."""
    many = 2 * gc.get_threshold()[0]
    for workers, objects, length, persistent, after in (
        (0, many, 400, False, 0),
        (1, 0, 400, False, 0),
        (1, many, 400, False, 1),
        (1, many, 10, False, 0),
        (1, many, 10, True, 1),
        (2, many, 90, False, 0),  # 45 batches each
    ):
        install("10 0")
        gc.collect()
        before = gc.get_stats()[2]["collections"]
        loader = DataLoader(Collections(objects, length), 1, num_workers=workers, persistent_workers=persistent)
        seen = [int(batch[0]) - before for batch in loader]
        first = 2 * max(1, workers)
        assert set(seen[:first]) == {0} and set(seen[first:]) == {after}, (workers, objects, length, persistent, seen)


def nothing_left():
    """When a pass ends early, no batch that workers prepared is left in shared memory, with and without persistence."""
    data = TensorDataset(torch.zeros(64, 1000))
    for persistent in (False, True):
        install("3 0")
        loader = DataLoader(data, 2, num_workers=2, prefetch_factor=3, persistent_workers=persistent)
        for _ in range(2):
            iterator = iter(loader)
            taken = sum(1 for _ in iterator)
            assert taken == 6, taken  # all that was prepared before the first batch was taken
            assert iterator._tasks_outstanding == 0 and not iterator._task_info


class Even(Dataset):
    """Samples of 20 ms each."""

    def __len__(self):
        return 120

    def __getitem__(self, index):
        time.sleep(0.02)
        return index


class Stream(IterableDataset):
    """The same, of unknown length."""

    def __iter__(self):
        return (index for index in map(Even().__getitem__, range(120)))


def validation():
    """The seconds of an epoch's validation in full length: of known length, alone between passes with gradients."""
    quick = DataLoader(TensorDataset(torch.arange(40)), 1)
    for workers, loaders in ((0, 1), (1, 1), (4, 1), (0, 2)):
        said = install("6 0")
        evens = [DataLoader(Even(), 1, num_workers=workers) for _ in range(loaders)]
        with torch.no_grad():
            passes(evens[0], 1)  # before training: not of an epoch
        for _ in range(2):
            assert told(said) == [] or _ == 1
            assert passes(quick, 1)[0] in (4, 6)
            with torch.no_grad():
                for even in evens:
                    passes(even, 1)
        passes(quick, 1)
        truth = 120 * 0.02 / max(1, workers) * loaders
        least = 0.2 if workers > 1 else 0.5 if workers else 0.9  # a busy machine delivers what several workers prepared together
        assert least * truth <= told(said)[-1] <= 5 * truth, (workers, loaders, truth, told(said))
    said = install("6 0")
    passes(quick, 1)
    passes(quick, 1)
    assert told(said) == [0.0]  # there is none
    with torch.no_grad():
        passes(DataLoader(Stream(), 1), 1)
    assert told(said)[-1] == -1
    said = install("6 0")
    with torch.no_grad():
        passes(DataLoader(Even(), 1), 1)
    for one, _ in zip(quick, range(2)):  # left early: what follows may be within the epoch
        pass
    with torch.no_grad():
        passes(DataLoader(Even(), 1), 1)
    assert told(said) == []


class Watched:
    """A process whose memory is a list of readings."""

    def __init__(self, readings):
        self.left = list(readings)

    def __call__(self):
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]


def kept():
    """The first validation lasts a second. The report has what each batch keeps, and the batches of a full pass."""
    quick = DataLoader(TensorDataset(torch.arange(40)), 1)
    mega = 1 << 20
    before, apart = strain_short.own_bytes, strain_short.WATCHED_APART
    strain_short.WATCHED_APART = 0  # a reading for each batch
    strain_short.READ_SHARE, share = 0, strain_short.READ_SHARE
    for readings, expected in (
        ([50 * mega + mega * batch for batch in range(120)], mega),
        ([50 * mega] * 120, None),
        ([50 * mega, 90 * mega] * 60, None),  # it comes and goes
        ([50 * mega] * 25 + [90 * mega] * 95, None),  # once
    ):
        said = install("6 0")
        strain_short.own_bytes = Watched(readings)
        passes(quick, 1)
        with torch.no_grad():
            first, second = passes(DataLoader(Even(), 1), 2)
        assert first >= 4 and second == 4, (first, second)
        if first < 20:
            continue  # a machine too busy to tell
        told = [value for key, value in said if key == "loader_validation_growth"]
        assert told == ([] if expected is None else ["%d %d 120" % (expected, first)]), told
    strain_short.own_bytes, strain_short.WATCHED_APART, strain_short.READ_SHARE = before, apart, share
    held = before()
    block = bytearray(50 << 20)
    assert held is None or 49 << 20 < before() - held < 51 << 20
    del block
    # What training keeps, although nothing else of it is resident.
    said = install("6 0.8")
    leaked = [bytearray(1 << 20) for _ in DataLoader(Even(), 1)]
    told = [value.split() for key, value in said if key == "loader_training_growth"]
    assert held is None or len(leaked) < 30 or abs(int(told[0][0]) / (1 << 20) - 1) < 0.1 and int(told[0][1]) == len(leaked), told


def ranks():
    """All ranks end a pass after the batch that rank 0 chose, whatever their clocks say."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["STRAIN_MARKERS"] = folder
        lengths = [strain_short.Lengths(Said(), "6 0.2", lambda rank=rank: rank) for rank in range(3)]
        del os.environ["STRAIN_MARKERS"]
        for number in (1, 2):
            passes = [one.begin(True) for one in lengths]
            for one in passes:
                one.take(1)
                one.since -= one.since % 7 if number == 1 else 0  # they began at other times
            ended, batch = [0, 0, 0], 1
            while not all(ended) and batch < 2000:
                batch += 1
                order = (1, 0, 2) if batch % 2 else (2, 1, 0)
                for rank in order:
                    if not ended[rank]:
                        passes[rank].take(1)
                        ended[rank] = batch if passes[rank].is_over(batch) else 0
                time.sleep(0.002)
            for one in passes:
                one.end()
            assert len(set(ended)) == 1 and (ended[0] >= 9 if number == 1 else ended[0] == 4), (number, ended)
        hostile = strain_short.Ranks(lambda: 1)
        hostile._folder = folder
        one = lengths[1].begin(True)
        one.name = "training-77"
        for text in ("", "x", "9" * 30, "5 5"):
            with open(folder + "/short-training-77", "w") as file:
                file.write(text)
            assert not hostile.agree(one, 50, True) and (one.last is None or one.last > 50), text
            one.last = None


def told(said):
    """The seconds reported so far."""
    return [float(value) for key, value in said if key == "loader_validation_s"]


def refused():
    """Anything but two numbers within bounds."""
    for wrong in ("", "5", "0 1", "5 -1", "5 nan", "x 1", "5 1 1", "99999999 1"):
        try:
            install(wrong)
        except ValueError:
            continue
        raise AssertionError("%r was accepted" % wrong)


if __name__ == "__main__":
    lengths()
    endless()
    first_pass()
    short_epochs()
    collected()
    nothing_left()
    validation()
    kept()
    ranks()
    refused()
    print("shortened as they should be")
