# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Common to the PyTorch jobs that are not of images: threads and seed, the device, optimizers, loaders, and the lines."""

import os
import time

# Otherwise OpenMP's threads spin while they wait, and take CPUs from the loader's workers. OpenMP reads
# this when it is loaded, with torch.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import jobs
import torch
from torch.utils.data import DataLoader


def begin(options):
    """Sets threads and seed. Returns the device."""
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def count_parameters(model):
    """Number of trained values."""
    return sum(p.numel() for p in model.parameters())


def make_optimizer(options, parameters, learning_rate, betas=(0.9, 0.999)):
    """Adam, or SGD with momentum and ten times the learning rate."""
    if options.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr=10 * learning_rate, momentum=0.9)
    return torch.optim.Adam(parameters, lr=learning_rate, betas=betas)


def make_loader(dataset, options, device, **arguments):
    """A loader with the workers of the options."""
    return DataLoader(dataset, num_workers=options.workers, persistent_workers=options.workers > 0,
                      pin_memory=device.type == "cuda", **arguments)  # fmt: skip


class Order(torch.utils.data.Sampler):
    """Numbers of complete batches, in an order that depends on the seed and the epoch; --steps: only so many."""

    def __init__(self, samples, options):
        super().__init__(None)
        self.samples, self.options = samples, options
        batches = samples // options.batch_size
        self.batches = min(batches, options.steps or batches)
        self.epoch = 0

    def __len__(self):
        return self.batches * self.options.batch_size

    def permutation(self):
        """All numbers."""
        generator = torch.Generator().manual_seed(self.options.seed * 2**20 + self.epoch)
        return torch.randperm(self.samples, generator=generator)

    def __iter__(self):
        return iter(self.permutation()[: len(self)].tolist())


class Mean:
    """Weighted means of tensors with one element each, on their device and without waiting for it."""

    def __init__(self):
        self.weight = self.sums = 0

    def add(self, weight, *values):
        """Adds values with a weight, an integer."""
        self.sums = self.sums + weight * torch.stack([value.detach().double() for value in values])
        self.weight += weight

    def means(self):
        """Mean of each value."""
        return (self.sums / self.weight).tolist()


def passes(options, order, train, check):
    """Trains and evaluates for the epochs of the options, and prints their lines. train and check (None: no
    validation) make one pass, and return scores, a count and its unit (jobs.say_scores)."""
    for epoch in range(options.epochs):
        order.epoch = epoch
        for what, run in ("epoch", train), ("validation", check):
            if run:
                start = time.perf_counter()
                found = run()
                jobs.say_scores(what, epoch + 1, options, *found, time.perf_counter() - start)

