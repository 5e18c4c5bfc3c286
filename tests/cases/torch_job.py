#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""A PyTorch job for the cases: what it waits for is an option.

It marks nothing: its phases come from the hooks, as those of other people's scripts do.
"""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, SequentialSampler

COLOURS, CLASSES = 3, 10


def spin(seconds):
    """CPU time of this thread."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


class Images(Dataset):
    """Noise. One sample, or those of a list of indices at once."""

    def __init__(self, samples, edge, prepare_us):
        self.images = torch.randn(samples, COLOURS, edge, edge)
        self.classes = torch.randint(CLASSES, (samples,))
        self.prepare_s = prepare_us / 1e6

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        spin(self.prepare_s)
        return self.images[index], self.classes[index]


MODELS = {
    "tiny": lambda edge: nn.Sequential(nn.Flatten(), nn.Linear(COLOURS * edge**2, 16), nn.ReLU(),
                                       nn.Linear(16, CLASSES)),
    "cnn": lambda edge: nn.Sequential(nn.Conv2d(COLOURS, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3),
                                      nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                                      nn.Linear(64 * (edge // 2 - 2) ** 2, CLASSES)),
}  # fmt: skip


def make_loader(options):
    """Batches that workers put together; or, without workers, whole ones out of memory."""
    dataset = Images(options.samples, options.edge, options.prepare_us)
    if options.workers > 0:
        return DataLoader(dataset, batch_size=options.batch_size, num_workers=options.workers)
    batches = BatchSampler(SequentialSampler(dataset), options.batch_size, drop_last=True)
    return DataLoader(dataset, sampler=batches, batch_size=None)


def parse_options():
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=MODELS, default="cnn")
    parser.add_argument("--edge", type=int, default=16, help="of an image, in pixels")
    parser.add_argument("--samples", type=int, default=3200)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--prepare-us", type=float, default=0, help="CPU time for a sample")
    parser.add_argument("--report-ms", type=float, default=0, help="CPU time after each epoch")
    return parser.parse_args()


def main():
    """Trains."""
    options = parse_options()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    loader = make_loader(options)
    model = MODELS[options.model](options.edge)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    for _ in range(options.epochs):
        for images, classes in loader:
            optimizer.zero_grad(set_to_none=True)
            criterion(model(images), classes).backward()
            optimizer.step()
        spin(options.report_ms / 1000)


if __name__ == "__main__":
    main()
