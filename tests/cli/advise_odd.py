# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Jobs whose batches or workers no hook can set, for the tests of strain advise."""

import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, RandomSampler, TensorDataset

torch.set_num_threads(1)
SIZE = 16
kind = sys.argv[1]
inputs, labels = torch.randn(4000, 32), torch.randint(0, 4, (4000,))


class Samples(IterableDataset):
    """Each worker would read all of it."""

    def __iter__(self):
        return iter(list(zip(inputs, labels)))


def by_hand():
    """Batches without a loader."""
    for start in range(0, len(inputs), SIZE):
        yield inputs[start : start + SIZE], labels[start : start + SIZE]


class OfSize(torch.nn.Module):
    """A model that is built for one batch size."""

    def __init__(self):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.zeros(SIZE, 4))

    def forward(self, scores):
        return scores + self.bias


class Sentences(Dataset):
    """Of 5 to 24 words, and one of 300."""

    def __len__(self):
        return 2000

    def __getitem__(self, index):
        return torch.ones(300 if index == 1234 else 5 + index % 20, 32), index % 4


def padded(samples):
    """Sentences of one length, and the mean of their words."""
    words = torch.nn.utils.rnn.pad_sequence([words for words, _ in samples], batch_first=True)
    return words.mean(1), torch.tensor([label for _, label in samples])


layers = [torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4)]
if kind == "iterable":
    loader = DataLoader(Samples(), batch_size=SIZE)
elif kind == "of-size":
    loader = DataLoader(TensorDataset(inputs, labels), batch_size=SIZE, drop_last=True)
    layers.append(OfSize())
elif kind == "stages":  # small batches in the first epoch
    data = TensorDataset(inputs, labels)
    loader = DataLoader(data, 4 * SIZE)
elif kind == "collects":
    loader = DataLoader(TensorDataset(inputs, labels), SIZE)
elif kind == "sentences":
    loader = DataLoader(Sentences(), SIZE, shuffle=True, collate_fn=padded)
elif kind == "endless":  # one pass, as in public scripts
    data = TensorDataset(inputs, labels)
    order = RandomSampler(data, replacement=True, num_samples=int(1e10))
    loader = DataLoader(data, SIZE, sampler=order, num_workers=1)
model = torch.nn.Sequential(*layers)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
epoch = 0
while True:
    first = kind == "stages" and epoch == 0
    epoch += 1
    if kind == "collects" and epoch > 1:  # a validation that keeps 1 MB of each of its 250 batches
        with torch.no_grad():
            kept = [torch.ones(1 << 18) for _ in DataLoader(TensorDataset(inputs), SIZE) if not time.sleep(0.01)]
    for x, y in by_hand() if kind == "by-hand" else DataLoader(data, SIZE) if first else loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
