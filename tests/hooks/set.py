# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Loaders with other settings: the one that trains, and no other."""

import os
import sys

sys.path.insert(0, sys.argv[1])

import strain_set
import torch
from said import Said, patch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset


def install(text):
    """Makes loaders from now on with these settings; returns what the run would be told."""

    said = Said()
    folder = os.path.dirname(torch.__file__) + os.sep
    strain_set.install(torch, folder, patch, said, text)
    return said.lines


class Endless(IterableDataset):
    """Each worker would read all of it."""

    def __iter__(self):
        return iter(range(8))


def data(length):
    """A dataset of that length."""
    return TensorDataset(torch.zeros(length, 2))


def make(dataset, *arguments, **options):
    """A place that makes all loaders of a script."""
    return DataLoader(dataset, *arguments, **options)


def place_of_make():
    """Where that is, as the run has it."""
    code = make.__code__
    return "%s:%d" % (strain_set.strain_hook.short_path(code.co_filename), code.co_firstlineno + 2)


def without_a_place():
    """Those that shuffle."""
    said = install("num_workers=2 persistent_workers=1")
    assert DataLoader(data(8), 4, True).num_workers == 2
    assert DataLoader(data(8), 4, shuffle=True).persistent_workers
    assert DataLoader(data(8), 4).num_workers == 0
    assert set(said) == {("loader_set", "num_workers=2 persistent_workers=1")}, said


def at_a_place():
    """The first there, those of the same dataset, those that shuffle."""
    said = install("num_workers=3 at=" + place_of_make())
    assert DataLoader(data(8), 4, True).num_workers == 0
    assert not said
    assert make(data(8), 4).num_workers == 3
    assert make(data(4), 4).num_workers == 0
    assert make(data(8), 4).num_workers == 3
    assert make(data(9), 4, shuffle=True).num_workers == 3


def what_is_not_set():
    """Stays as the script wants it, and the run says why."""
    said = install("persistent_workers=1")
    assert not DataLoader(data(8), 4, True).persistent_workers
    assert said[0][0] == "loader_set_missing" and "needs workers" in said[0][1], said
    said = install("num_workers=2 at=" + place_of_make())
    assert make(Endless(), 4).num_workers == 0
    assert "iterable" in said[0][1], said
    said = install("num_workers=0 at=" + place_of_make())  # PyTorch refuses it
    assert make(data(8), 4, num_workers=1, multiprocessing_context="fork").num_workers == 1
    assert said[0][0] == "loader_set_missing", said
    said = install("num_workers=0 at=" + place_of_make())
    assert make(data(8), 4, num_workers=2, prefetch_factor=4, persistent_workers=True).num_workers == 0
    assert said == [("loader_set", "num_workers=0")], said
    install("num_workers=2 at=" + place_of_make())
    try:
        make(data(8), no_such_option=1)
    except TypeError:
        pass
    else:
        raise AssertionError("the script's own error is gone")
    for wrong in ("no_setting=1", "prefetch_factor=0"):
        try:
            install(wrong)
        except ValueError:
            continue
        raise AssertionError("%s was accepted" % wrong)


def batch_sizes():
    """Those that have the script's batch size; the settings of workers apply to the training loader."""
    said = install("batch_size=6 was=4 num_workers=1 at=" + place_of_make())
    assert make(data(8), 4, True).batch_size == 6
    assert DataLoader(data(8), 4).batch_size == 6 and DataLoader(data(8), 4).num_workers == 0
    assert DataLoader(data(8), 5).batch_size == 5
    assert DataLoader(data(8), batch_size=None).batch_size is None
    assert set(said) == {("loader_set", "batch_size=6 num_workers=1"), ("loader_set", "batch_size=6")}, said
    said = install("batch_size=6 was=4 num_workers=1 at=" + place_of_make())
    endless = make(Endless(), 4)  # its workers are not changed
    assert endless.batch_size == 6 and endless.num_workers == 0
    assert [key for key, _ in said] == ["loader_set_missing", "loader_set"] and "iterable" in said[0][1], said
    said = install("batch_size=6")
    assert DataLoader(data(8), 4, True).batch_size == 6
    assert DataLoader(data(8), 4).batch_size == 4
    sampler = torch.utils.data.BatchSampler(range(8), 4, False)
    assert DataLoader(data(8), batch_sampler=sampler).batch_sampler is sampler
    assert said[-1][0] == "loader_set_missing" and "batch sampler" in said[-1][1], said
    for wrong in ("batch_size=0", "batch_size=x", "batch_size=99999999999"):
        try:
            install(wrong)
        except ValueError:
            continue
        raise AssertionError("%s was accepted" % wrong)


def who_calls():
    """A library that creates the loader for the script, also through a function of Python's own."""
    import contextlib

    torch_like = {"look": strain_set.strain_hook.caller_and_library}
    load = "def load():\n    return look(('/v/lib/site-packages/torch/',))"
    exec(compile(load, "/v/lib/site-packages/torch/data.py", "exec"), torch_like)
    library = {"__name__": "transformers.trainer", "load": torch_like["load"]}
    exec(compile("def train():\n    return load()", "/v/lib/site-packages/transformers/trainer.py", "exec"), library)

    @contextlib.contextmanager
    def nothing():
        yield

    found = nothing()(library["train"])()
    line = who_calls.__code__.co_firstlineno + 14
    here = strain_set.strain_hook.short_path(__file__)
    assert found == ("%s:%d" % (here, line), "transformers"), found
    direct = torch_like["load"]()
    assert direct[0].startswith(here) and direct[1] is None, direct


if __name__ == "__main__":
    who_calls()
    without_a_place()
    batch_sizes()
    at_a_place()
    what_is_not_set()
    print("made as they should be")
