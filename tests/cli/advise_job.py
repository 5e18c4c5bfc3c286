# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""A small convolutional network whose memory follows its batch size, for the tests of strain advise."""

import argparse
import time

import torch
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--epochs", type=int, default=50)
parser.add_argument("--samples", type=int, default=4000)
parser.add_argument("--prepare", type=float, default=0, help="seconds of CPU time a sample")
parser.add_argument("--ignore", action="store_true", help="the batch size")
parser.add_argument("--leak", type=int, default=0, help="bytes an iteration")
arguments = parser.parse_args()
torch.set_num_threads(1)
torch.manual_seed(0)


class Noise(Dataset):
    """Images of noise, which take time to prepare."""

    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        until = time.thread_time() + arguments.prepare
        while time.thread_time() < until:
            pass
        return torch.full((3, 32, 32), index % 7 / 7), index % 10


size = 16 if arguments.ignore else arguments.batch_size
training = DataLoader(Noise(arguments.samples), size, shuffle=True, num_workers=arguments.workers)
checking = DataLoader(Noise(arguments.samples // 4), size, num_workers=arguments.workers)
layers = [torch.nn.Conv2d(3, 24, 3, padding=1), torch.nn.ReLU()]
for _ in range(3):
    layers += [torch.nn.Conv2d(24, 24, 3, padding=1), torch.nn.ReLU()]
model = torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(24 * 32 * 32, 10))
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
leaked = []
for _ in range(arguments.epochs):
    model.train()
    for images, labels in training:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        if arguments.leak:
            leaked.append(bytearray(b"x" * arguments.leak))
    model.eval()
    with torch.no_grad():
        for images, labels in checking:
            model(images)
    torch.save(model.state_dict(), "model.pt")
