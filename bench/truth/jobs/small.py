#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small training job, for bottlenecks that public scripts do not have.

    small.py convolution|tensors|mlp|validation [--steps N]

convolution: compute in a CNN; tensors: Adam over 3,000 tensors of 8 numbers, one at a time;
mlp: steps of about a millisecond; validation: evaluates four times as much as it trains. Prints
`iterations N` when it ends by itself.
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Tensors(nn.Module):
    """Many small parameters, few of which the output needs."""

    def __init__(self, count):
        super().__init__()
        self.parts = nn.ParameterList([nn.Parameter(torch.zeros(8)) for _ in range(count)])

    def forward(self, x):
        """Sums all parameters at once, so that most of the time is spent in the optimizer."""
        return x.mean() * torch.cat(list(self.parts)).sum() + torch.zeros(len(x), 10)


def model_of(kind):
    """The model."""
    if kind == "tensors":
        return Tensors(3000)
    if kind == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
    return nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.ReLU(),
                         nn.MaxPool2d(4), nn.Flatten(), nn.Linear(32 * 36, 10))  # fmt: skip


def evaluate(model, loader):
    """Validation."""
    model.eval()
    with torch.no_grad():
        for x, _ in loader:
            model(x)
    model.train()


def main():
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["convolution", "tensors", "mlp", "validation"])
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--no-validation", action="store_true")
    parser.add_argument("--foreach", action="store_true", help="update the tensors at once")
    options = parser.parse_args()
    torch.manual_seed(1)
    data = TensorDataset(torch.randn(960, 1, 28, 28), torch.zeros(960).long())
    train = DataLoader(data, batch_size=32, shuffle=True)
    test = DataLoader(TensorDataset(torch.randn(8000, 1, 28, 28), torch.zeros(8000)), batch_size=100)
    model = model_of(options.kind)
    adam = {"foreach": options.foreach} if options.kind == "tensors" else {}
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, **adam)
    steps = 0
    while not options.steps or steps < options.steps:
        for x, y in train:
            optimizer.zero_grad()
            out = model(x)
            if options.kind == "tensors":
                loss = out.sum()
            else:
                loss = nn.functional.cross_entropy(out, y)
            loss.backward()
            optimizer.step()
            steps += 1
            if steps == options.steps:
                break
        if options.kind == "validation" and not options.no_validation:
            evaluate(model, test)
    print(f"iterations {steps}", flush=True)


if __name__ == "__main__":
    main()
