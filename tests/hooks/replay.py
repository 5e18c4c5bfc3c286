# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Batches that are handed out again: as many as before, in containers of their own, never spoilt."""

import functools
import sys

sys.path.insert(0, sys.argv[1])

import strain_replay
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset


def patch(owner, name, wrap):
    original = getattr(owner, name)
    setattr(owner, name, functools.wraps(original)(wrap(original)))


class Counted(Dataset):
    """Tells how often it was asked, in this process."""

    def __init__(self):
        self.asked = 0

    def __len__(self):
        return 400

    def __getitem__(self, index):
        self.asked += 1
        return {"x": torch.full((3,), float(index)), "y": index}


class Endless(IterableDataset):
    """Knows no length."""

    def __iter__(self):
        return iter(range(1 << 40))


def test_epochs_are_as_long_as_before():
    for workers, persistent in ((0, False), (2, False), (2, True)):
        dataset = Counted()
        loader = DataLoader(dataset, batch_size=4, num_workers=workers, shuffle=True,
                            persistent_workers=persistent)  # fmt: skip
        for _ in range(3):
            seen = []
            for batch in loader:
                assert sorted(batch) == ["x", "y"]
                batch["z"] = 1  # in the next round it is gone
                assert torch.equal(batch["x"][:, 0], batch["y"].float())
                seen.append(tuple(batch["y"].tolist()))
            assert len(seen) == len(loader) == 100, len(seen)
            assert len(set(seen)) == strain_replay.KEPT, set(seen)
        assert dataset.asked == (0 if workers else 4 * strain_replay.KEPT), dataset.asked


def test_a_break_and_another_loader():
    loader = DataLoader(Counted(), batch_size=4)
    other = DataLoader(Counted(), batch_size=8)
    for _ in range(3):
        for number, _ in enumerate(loader):
            if number == 2:
                break
        assert len(list(other)) == 50
    assert len(list(loader)) == 100
    assert {len(batch["y"]) for batch in other} == {8}


def test_edited_batches_are_copied(spoilt):
    loader = DataLoader(Counted(), batch_size=4)
    for _ in range(3):
        count = 0
        for batch in loader:
            batch["x"].mul_(2)
            assert torch.equal(batch["x"][:, 0], 2.0 * batch["y"]), batch
            count += 1
        assert count == 100
    assert spoilt == [1], spoilt


def test_what_knows_no_length_ends():
    loader = DataLoader(Endless(), batch_size=4, num_workers=1)
    assert sum(1 for _ in loader) == strain_replay.BATCHES_OF_UNKNOWN


def main():
    spoilt = []
    strain_replay.install(torch, patch, lambda: spoilt.append(1))
    test_epochs_are_as_long_as_before()
    test_a_break_and_another_loader()
    assert not spoilt
    test_edited_batches_are_copied(spoilt)
    test_what_knows_no_length_ends()
    print("handed out again")


if __name__ == "__main__":
    main()
