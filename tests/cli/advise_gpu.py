# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""A job on a GPU that is not there, for the tests of strain advise: PyTorch on the CPU, with a fake of
torch.cuda's allocator: 100 MB beside it, and in use 300 MB and 20 MB per sample. It reserves 18 % more while
there is room, and fails where 2 % more than what is in use does not fit. The fake NVML reads what the job
holds from FAKE.pid and FAKE.held."""

import argparse
import os
import time

import torch
from torch.utils.data import DataLoader, TensorDataset

TOTAL, BESIDE, FIXED, EACH = 10_000_000_000, 100_000_000, 300_000_000, 20_000_000
parser = argparse.ArgumentParser()
parser.add_argument("fake", help="the script of the fake NVML")
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--own-cap", type=float, default=0, help="share of the memory that the script itself allows")
arguments = parser.parse_args()
torch.set_num_threads(1)
share = [1.0]
reserved, allocated = [0], [0]


def set_share(fraction, device=None):
    """PyTorch's, without a device."""
    assert 0 <= fraction <= 1
    share[0] = fraction


def stats():
    """What the hooks read."""
    return {
        "reserved_bytes": {"all": {"peak": reserved[0]}},
        "allocated_bytes": {"all": {"peak": allocated[0]}},
        "num_alloc_retries": 0,
        "num_device_alloc": 9,
    }


def allocate(size):
    """Uses so many bytes, if they fit."""
    room = min(share[0] * TOTAL, TOTAL - BESIDE)
    if 1.02 * size > room:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate %d MiB." % (size >> 20))
    allocated[0] = max(allocated[0], size)
    reserved[0] = max(reserved[0], int(min(1.18 * size, room)))
    with open(arguments.fake + ".new", "w") as file:
        file.write(str(reserved[0] + BESIDE))
    os.rename(arguments.fake + ".new", arguments.fake + ".held")


cuda = torch.cuda
cuda.is_initialized = lambda: True
cuda.is_current_stream_capturing = lambda: True
cuda.device_count = lambda: 1
cuda.current_device = lambda: 0
cuda.get_device_properties = lambda device: type("Properties", (), {"total_memory": TOTAL})
cuda.memory_stats_as_nested_dict = stats
cuda.get_per_process_memory_fraction = lambda: share[0]
cuda.memory._lazy_init = lambda: None
torch._C._cuda_setMemoryFraction = set_share
for call, _ in cuda._queued_calls:  # as PyTorch does when CUDA is used for the first time
    if call.__module__ == "strain_cuda":
        call()
if arguments.own_cap:
    cuda.set_per_process_memory_fraction(arguments.own_cap)
with open(arguments.fake + ".held", "w") as file:
    file.write(str(BESIDE))
with open(arguments.fake + ".pid", "w") as file:
    file.write(str(os.getpid()))
samples = TensorDataset(torch.randn(4000, 8), torch.randn(4000, 1))
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
for _ in range(100):
    for inputs, outputs in DataLoader(samples, arguments.batch_size, shuffle=True):
        allocate(FIXED + EACH * len(inputs))
        time.sleep(0.004 + 0.0002 * len(inputs))
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), outputs).backward()
        optimizer.step()
