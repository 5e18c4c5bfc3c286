# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Passes that begin with the largest samples: which ones, in which passes, and what the script does not notice."""

import os
import socket
import sys
import tempfile
import time

sys.path.insert(0, sys.argv[1])

import strain_longest
import torch
from said import Said, patch, unpatch
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, SequentialSampler

def install(text="20.0"):
    """Chooses first batches from now on; returns the lines of the report."""

    said = Said()
    strain_longest.install(torch, patch, said, text)
    return said.lines


class Sentences(Dataset):
    """Samples are lists of numbers; `looked` counts those that this process made."""

    def __init__(self, lengths):
        self.lengths = lengths
        self.looked = 0

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, index):
        self.looked += 1
        return torch.full((self.lengths[index],), index)


def indices(loader):
    """The samples of each batch."""
    return [[int(item[0]) for item in batch] for batch in loader]


def same(items):
    """Keeps samples as they are."""
    return items


LENGTHS = [3 + index % 5 for index in range(40)]
LENGTHS[17] = 90
LENGTHS[31] = 50


def first():
    """The first batch of the first pass has the largest samples; all others are the loader's own."""
    for workers in (0, 2):
        said = install()
        data = Sentences(LENGTHS)
        loader = DataLoader(data, 4, collate_fn=same, num_workers=workers)
        own = [list(range(start, start + 4)) for start in range(0, 40, 4)]
        one, other = indices(loader), indices(loader)
        assert one[0][:2] == [17, 31] and len(one[0]) == 4 and one[1:] == own[1:], one
        assert other == own
        assert ("loader_sample_sizes", "40 40 5 90") in said, said
        assert data.looked == (0 if workers else 80)  # by a child, else


def again():
    """Where asked for, the largest come again in each pass."""
    for workers in (0, 2):
        install("20.0 again")
        loader = DataLoader(Sentences(LENGTHS), 1, collate_fn=same, num_workers=workers)
        for _ in range(2):
            taken = indices(loader)
            assert [place for place, batch in enumerate(taken) if batch == [17]] == [0, 5, 6, 10, 17, 19, 21, 28, 33, 34, 38], taken


def last():
    """The last batch of a pass stays smaller: a pass has as many samples as without."""
    for count in (18, 22, 41):
        install("20.0 again")
        loader = DataLoader(Sentences((LENGTHS + [5])[:count]), 4, collate_fn=same)
        for _ in range(3):
            assert sum(map(len, indices(loader))) == count


class Records(Sentences):
    """Samples are read from a file that is open in all processes."""

    def __init__(self, lengths, path):
        super().__init__(lengths)
        with open(path, "wb") as file:
            for index in range(len(lengths)):
                file.write(b"%7d\n" % index)
        self.file = open(path, "rb")

    def __getitem__(self, index):
        self.file.seek(8 * index)
        assert int(self.file.read(8)) == index
        return super().__getitem__(index)


def shared_files():
    """The child has positions of its own in files, and no connections."""
    with tempfile.TemporaryDirectory() as folder:
        said = install()
        data = Records([5] * 300 + [90] + [5] * 99, folder + "/records")
        ours, theirs = socket.socketpair()
        data.file.seek(80)
        assert data.file.read(4) == b"     "[:4]
        for _ in range(2):
            assert sum(map(len, indices(DataLoader(data, 4, collate_fn=same)))) == 400
        assert [key for key, _ in said] == ["loader_sample_sizes"]
        theirs.send(b"whole")
        assert ours.recv(9) == b"whole"


def random_numbers():
    """The script's random numbers and the order of its samples are those without the hook."""
    orders = []
    for text in (None, "20.0"):
        unpatch()
        if text:
            install(text)
        torch.manual_seed(7)
        orders.append((indices(DataLoader(Sentences(LENGTHS), 4, shuffle=True, collate_fn=same))[1:], torch.rand(3).tolist()))
    assert orders[0] == orders[1]


def equal():
    """Samples of one size: nothing is said or changed."""
    said = install()
    assert indices(DataLoader(Sentences([7] * 40), 4, collate_fn=same))[0] == [0, 1, 2, 3]
    other = DataLoader(Sentences(LENGTHS[:39]), 4, collate_fn=same)
    with torch.no_grad():  # of validation: not looked at
        assert indices(other)[0] == [0, 1, 2, 3]
    assert indices(other)[0][0] == 17
    said[:] = [line for line in said if line[0] != "loader_sample_sizes"]
    assert said == []


def samplers():
    """A batch sampler's own batches; a loader without batches; an order with few samples."""
    install()
    data = Sentences(LENGTHS)

    class Buckets:
        """Batches of unequal lengths."""

        def __iter__(self):
            return iter([[0, 1, 2], [31, 3], [17, 4, 5], [6]])

        def __len__(self):
            return 4

    taken = indices(DataLoader(data, batch_sampler=Buckets(), collate_fn=same))
    assert taken[0] == [17, 4, 5] and taken[1:] == [[31, 3], [17, 4, 5], [6]], taken
    install()
    one = next(iter(DataLoader(data, batch_size=None)))
    assert len(one) == 90
    install()
    few = BatchSampler(SequentialSampler(range(3)), 8, False)
    assert len(indices(DataLoader(data, batch_sampler=few, collate_fn=same))[0]) == 3


def hostile():
    """Data sets that fail, hang, end the process or print in the child: the job goes on as without."""

    class Wild(Sentences):
        """Does something once it is looked at in a child."""

        def __init__(self, do):
            super().__init__(LENGTHS)
            self.here = os.getpid()
            self.do = do

        def __getitem__(self, index):
            if os.getpid() != self.here:
                self.do()
            return super().__getitem__(index)

    def fail():
        raise OSError("no such file")

    for do in (fail, lambda: os._exit(3), lambda: time.sleep(60), lambda: sys.exit(1)):
        said = install("0.2")
        began = time.monotonic()
        assert indices(DataLoader(Wild(do), 4, collate_fn=same))[0] == [0, 1, 2, 3]
        assert time.monotonic() - began < 20 and not any(key == "loader_sample_sizes" for key, _ in said)
    said = install()
    assert indices(DataLoader(Wild(lambda: print("looked at")), 4, collate_fn=same))[0][0] == 17
    try:
        os.waitpid(-1, os.WNOHANG)
        raise AssertionError("a child is left")
    except ChildProcessError:
        pass


class Stream(IterableDataset):
    """Sentences in their order."""

    def __iter__(self):
        return (torch.zeros(length) for length in LENGTHS)


def streams():
    """Batches of an iterable data set are not chosen: what differs is said."""
    said = install()
    taken = [len(batch[0]) for batch in DataLoader(Stream(), 1, collate_fn=same)]
    assert taken == LENGTHS
    assert [value for key, value in said if key == "loader_batch_elements"][-1] == "32 -1 5 90"


def sizes():
    """What counts as an element."""
    import numpy

    size_of = strain_longest.size_of
    assert size_of(torch.zeros(3, 4)) == 12 and size_of(numpy.zeros((2, 5))) == 10 and size_of("words") == 5
    assert size_of([1, 2, 3]) == 3 and size_of({"ids": [1] * 9, "label": 1}) == 10 and size_of(([], 4)) == 1
    assert size_of((torch.zeros(2), [torch.zeros(3), torch.zeros(4)])) == 9
    nested = []
    for _ in range(50):
        nested = [nested]
    assert size_of(nested) == 1 and size_of(None) == 1


def refused():
    """Anything but seconds within bounds."""
    for wrong in ("", "x", "0", "-1", "nan", "1e9", "2 twice"):
        try:
            install(wrong)
        except ValueError:
            continue
        raise AssertionError("%r was accepted" % wrong)


if __name__ == "__main__":
    first()
    again()
    last()
    shared_files()
    random_numbers()
    equal()
    samplers()
    hostile()
    streams()
    sizes()
    refused()
    print("the largest come first")
