# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""A rank of a DistributedDataParallel job: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Those that torchrun sets; of mpirun
and srun, the job itself takes its rank from their variables, as such scripts do."""

import argparse
import os
import time

import torch
from torch import distributed
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batches", type=int, default=40)
parser.add_argument("--slow", type=int, default=-1, help="the rank that computes more")
parser.add_argument("--by", choices=("forward", "data"), default="forward", help="where it does")
parser.add_argument("--seconds", type=float, default=0.05, help="how much more, per iteration")
parser.add_argument("--file", help="a file with 64 kB for each sample, read from storage")
parser.add_argument("--cached", action="store_true", help="the file may stay in the page cache")
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--width", type=int, default=512, help="of the model's layers")
parser.add_argument("--compress", action="store_true", help="exchange gradients with 16 bits")
arguments = parser.parse_args()
LAUNCHERS = {"OMPI_COMM_WORLD_RANK": "OMPI_COMM_WORLD_SIZE", "SLURM_PROCID": "SLURM_NTASKS"}
for rank_name, size_name in LAUNCHERS.items():
    if "RANK" not in os.environ and rank_name in os.environ:
        os.environ["RANK"], os.environ["WORLD_SIZE"] = os.environ[rank_name], os.environ[size_name]
rank = int(os.environ["RANK"])
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
os.environ.setdefault("USE_LIBUV", "0")  # Debian 13's PyTorch has none, and asks for it
torch.set_num_threads(1)
torch.manual_seed(rank)
distributed.init_process_group("gloo")


def burn():
    """Computes on a CPU for a while."""
    until = time.process_time() + arguments.seconds
    while time.process_time() < until:
        pass


class Slow(torch.nn.Module):
    """An identity, which takes longer on one rank."""

    def forward(self, x):
        """x, later."""
        if rank == arguments.slow and arguments.by == "forward":
            burn()
        return x


class Data(TensorDataset):
    """Samples, whose preparation takes longer on one rank."""

    def __getitem__(self, index):
        if arguments.file:
            with open(arguments.file, "rb") as file:
                if not arguments.cached:
                    os.posix_fadvise(file.fileno(), index << 16, 1 << 16, os.POSIX_FADV_DONTNEED)
                os.pread(file.fileno(), 1 << 16, index << 16)
        if rank == arguments.slow and arguments.by == "data" and index % 16 == 0:
            burn()
        return super().__getitem__(index)


data = Data(torch.randn(16 * arguments.batches, 64), torch.randint(0, 4, (16 * arguments.batches,)))
loader = DataLoader(data, 16)
width = arguments.width
layers = [torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, 4)]
model = DistributedDataParallel(torch.nn.Sequential(Slow(), *layers))
if arguments.compress:
    model.register_comm_hook(None, default_hooks.fp16_compress_hook)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
for _ in range(arguments.epochs):
    for inputs, labels in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
distributed.barrier()
