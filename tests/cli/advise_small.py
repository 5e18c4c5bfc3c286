# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""A small classifier, for which a larger batch is faster and converges differently; it prints its validation loss."""

import argparse
import os
import time

import torch
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=4)
parser.add_argument("--learning-rate", type=float, default=0.01)
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--first", help="the run that makes this file waits at each step")
arguments = parser.parse_args()
waits = bool(arguments.first) and not os.path.exists(arguments.first)
if waits:
    open(arguments.first, "w").close()
torch.set_num_threads(1)
torch.manual_seed(0)
inputs = torch.randn(4000, 32)
labels = (inputs @ torch.randn(32, 4)).argmax(1)
training = DataLoader(TensorDataset(inputs[:3200], labels[:3200]), arguments.batch_size, shuffle=True)
checking = DataLoader(TensorDataset(inputs[3200:], labels[3200:]), 200)
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))
optimizer = torch.optim.SGD(model.parameters(), arguments.learning_rate)
loss_of = torch.nn.functional.cross_entropy
for epoch in range(arguments.epochs):
    model.train()
    for x, y in training:
        optimizer.zero_grad()
        loss_of(model(x), y).backward()
        optimizer.step()
        if waits:
            time.sleep(0.001)
    model.eval()
    with torch.no_grad():
        loss = sum(loss_of(model(x), y).item() * len(x) for x, y in checking) / 800
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in checking) / 800
    print(f"epoch {epoch + 1}: validation loss {loss:.4f}, accuracy {right:.4f}", flush=True)
