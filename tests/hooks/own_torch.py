# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""A PyTorch job that marks its epochs, and a phase of its own, beside strain's hooks; with an argument its
iterations, too."""

import sys

import strain
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
data = TensorDataset(torch.randn(320, 16), torch.randint(0, 10, (320,)))
loader = DataLoader(data, batch_size=32)
model = torch.nn.Linear(16, 10)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in strain.epochs(range(10, 13)):
    batches = strain.iterations(loader, samples=lambda batch: len(batch[0]) // 2) if sys.argv[1:] else loader
    for x, y in batches:
        optimizer.zero_grad()
        with strain.phase("augment"):
            x = x + 0.1 * torch.randn_like(x)
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
