# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""A job whose samples take 5 ms of sleep each: workers gain, however busy the machine is."""

import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Sleeping(Dataset):
    """Samples that come slowly."""

    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        time.sleep(0.005)
        return torch.full((2,), float(index))


def main():
    torch.set_num_threads(1)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    check = DataLoader(Sleeping(4), batch_size=4)
    loader = DataLoader(Sleeping(4 * int(sys.argv[1])), batch_size=4, shuffle=True)
    for batch in loader:
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
    with torch.no_grad():
        for batch in check:
            model(batch)
    print("checked with %d workers" % check.num_workers)


if __name__ == "__main__":
    main()
