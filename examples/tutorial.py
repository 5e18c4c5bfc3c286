#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The job of docs/tutorial.md: a small network on images that are made slowly. Needs PyTorch."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Shapes(Dataset):
    """Bars and blobs of 48 x 48, each computed when it is asked for."""

    def __init__(self, samples):
        self.samples = samples

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        image = torch.rand(1, 48, 48, generator=generator)
        label = index % 2
        for row in range(48):  # what a real job does with a decoder and augmentation
            for column in range(0, 48, 4):
                if (row // 6 if label else (row + column) // 12) % 2:
                    image[0, row, column] += 1
        return image, label


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--workers", type=int, default=0)
    arguments = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    loader = DataLoader(Shapes(arguments.samples), batch_size=arguments.batch_size, shuffle=True,
                        num_workers=arguments.workers)  # fmt: skip
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(4), nn.Flatten(),
                          nn.Linear(8 * 11 * 11, 2))  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(arguments.epochs):
        total = 0.0
        for images, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)
        print(f"epoch {epoch + 1}/{arguments.epochs}: loss {total / arguments.samples:.4f}")


if __name__ == "__main__":
    main()
