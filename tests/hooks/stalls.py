# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""A job that mostly prepares: each sample is a file, and 3 ms of work; a step is 1 ms of it."""

import sys
import time
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset


def work(seconds):
    """Takes CPU time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


class Files(Dataset):
    """The files of a folder."""

    def __init__(self, folder):
        self.paths = sorted(Path(folder).iterdir())

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        data = self.paths[index].read_bytes()
        work(0.003)
        return torch.tensor([data[0], data[-1]], dtype=torch.float32)


def main():
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    loader = DataLoader(Files(sys.argv[1]), batch_size=4)
    for _ in range(100_000):
        for batch in loader:
            optimizer.zero_grad()
            model(batch).sum().backward()
            work(0.001)
            optimizer.step()


if __name__ == "__main__":
    main()
