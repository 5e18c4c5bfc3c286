#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Trains an image classifier with PyTorch, on synthetic images or a folder of JPEG files.

An ordinary training script, without any code for measurements. With Debian's or Ubuntu's PyTorch
(python3-torch, 1.13 or newer), run it with the distribution's own Python:

    /usr/bin/python3 train.py --dataset dt1 --batch-size 32 --workers 2 --epochs 3 --samples 12800

dt1 and dt2 are in memory as float32, 12 kB per image, shared by forked loader workers. The dataset can
also be a folder of images with a folder for each class, as written by workloads/datasets/make.py. The
workers decode and crop these (needs python3-torchvision, like all models except cnn, conv3d and lstm). The
job trains on GPUs if PyTorch finds enough of them for the processes. See ../README.md.
"""

import contextlib
import os
import sys
import tempfile
import time

# Otherwise OpenMP's threads spin while they wait, and take CPUs from the loader's workers. OpenMP reads
# this when it is loaded, with torch.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
workloads = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [workloads, os.path.join(workloads, "datasets")]

import images
import jobs
import torch
from models import MODELS
from torch import distributed
from torch.nn import functional
from torch.utils.data import DataLoader


def make_loader(dataset, order, options, device):
    """Complete batches in this order; each process has its share of a batch."""
    return DataLoader(dataset, batch_size=options.batch_size // options.processes, sampler=order,
                      num_workers=options.workers, persistent_workers=options.workers > 0,
                      pin_memory=device.type == "cuda", drop_last=True)  # fmt: skip


def forward(model, inputs, classes, size):
    """Outputs and loss, with that of Inception's second head."""
    if inputs.shape[-1] != size:
        mode = "trilinear" if inputs.dim() == 5 else "bilinear"  # frames keep their number
        sizes = (*inputs.shape[2:-2], size, size)
        inputs = functional.interpolate(inputs, sizes, mode=mode, align_corners=False)
    outputs = model(inputs)
    if isinstance(outputs, tuple):
        outputs, second = outputs
        loss = functional.cross_entropy(outputs, classes)
        return outputs, loss + 0.4 * functional.cross_entropy(second, classes)
    return outputs, functional.cross_entropy(outputs, classes)


class Score:
    """Loss and accuracy over a pass."""

    def __init__(self, device):
        self.sums = torch.zeros(3, dtype=torch.float64, device=device)

    def add(self, outputs, loss, classes):
        """Counts a batch."""
        correct = (outputs.detach().argmax(1) == classes).sum()
        count = torch.full_like(correct, len(classes))
        self.sums += torch.stack([loss.detach() * len(classes), correct, count])

    def total(self):
        """Mean loss, accuracy and the number of images, of all processes."""
        if distributed.is_initialized():
            distributed.all_reduce(self.sums)
        loss, correct, count = self.sums.tolist()
        return loss / count, correct / count, int(count)


def train_epoch(model, loader, optimizer, device, size):
    """One pass over the data; returns mean loss, accuracy and the number of images."""
    model.train()
    score = Score(device)
    for inputs, classes in loader:
        inputs = inputs.to(device, non_blocking=True)
        classes = classes.to(device, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        outputs, loss = forward(model, inputs, classes, size)
        loss.backward()
        optimizer.step()
        score.add(outputs, loss, classes)
    return score.total()


@torch.no_grad()
def validate(model, loader, device, size):
    """The same without training."""
    model.eval()
    score = Score(device)
    for inputs, classes in loader:
        inputs = inputs.to(device, non_blocking=True)
        classes = classes.to(device, non_blocking=True)
        outputs, loss = forward(model, inputs, classes, size)
        score.add(outputs, loss, classes)
    return score.total()


def choose_device(options, rank):
    """A GPU for each process, else the CPUs."""
    if torch.cuda.is_available() and torch.cuda.device_count() >= options.processes:
        torch.cuda.set_device(rank)
        return torch.device("cuda", rank) if options.processes > 1 else torch.device("cuda")
    return torch.device("cpu")


def make_model(options, classes, device):
    """The model on its device, wrapped for several processes if there are any."""
    torch.manual_seed(options.seed)
    model = MODELS[options.model].make(options.classes or classes, options.image_size).to(device)
    if options.processes == 1:
        return model
    ids = [device.index] if device.type == "cuda" else None
    return torch.nn.parallel.DistributedDataParallel(model, device_ids=ids)


def make_optimizer(options, parameters):
    """Adam with the model's learning rate, or SGD with momentum and ten times that rate."""
    rate = MODELS[options.model].learning_rate
    if options.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr=10 * rate, momentum=0.9)
    return torch.optim.Adam(parameters, lr=rate)


def train(options, training, unseen, rank):
    """The work of each process."""
    device = choose_device(options, rank)
    order = images.Order(len(training), options, rank)
    loader = make_loader(training, order, options, device)
    check = None
    if unseen:
        check = make_loader(unseen, images.Order(len(unseen), options, rank), options, device)
    model = make_model(options, training.class_count, device)
    optimizer = make_optimizer(options, model.parameters())
    if rank == 0:
        parameters = sum(p.numel() for p in model.parameters())
        jobs.announce(options, parameters, len(training), device.type, training.edge)
    for order.epoch in range(options.epochs):
        start = time.perf_counter()
        found = train_epoch(model, loader, optimizer, device, options.image_size)
        if rank == 0:
            jobs.say("epoch", order.epoch + 1, options, *found, time.perf_counter() - start)
        if check:
            start = time.perf_counter()
            found = validate(model, check, device, options.image_size)
            if rank == 0:
                seconds = time.perf_counter() - start
                jobs.say("validation", order.epoch + 1, options, *found, seconds)


def join(options, training, unseen, rank, place):
    """One of several processes, which find each other through a file."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    if options.threads:
        torch.set_num_threads(options.threads)
    backend = "nccl" if choose_device(options, rank).type == "cuda" else "gloo"
    distributed.init_process_group(
        backend, "file://" + place, rank=rank, world_size=options.processes
    )
    train(options, training, unseen, rank)
    distributed.destroy_process_group()


@contextlib.contextmanager
def others(options, training, unseen, place):
    """The other processes, forked before any thread is started; they share the images."""
    context = torch.multiprocessing.get_context("fork")
    started = [context.Process(target=join, args=(options, training, unseen, rank, place))
               for rank in range(1, options.processes)]  # fmt: skip
    for process in started:
        process.start()
    try:
        yield
        for process in started:
            process.join()
    finally:
        for process in started:
            process.terminate()
    if any(process.exitcode for process in started):
        raise jobs.Problem("a process did not end well")


def main():
    """Trains in this process, and in others."""
    options = jobs.parse_options("Train an image classifier with PyTorch.", MODELS, ("adam", "sgd"))
    if options.threads and options.processes == 1:
        torch.set_num_threads(options.threads)
    training, unseen = images.split(options)
    if options.processes == 1:
        train(options, training, unseen, 0)
        return
    with tempfile.TemporaryDirectory() as folder:
        place = os.path.join(folder, "processes")
        with others(options, training, unseen, place):
            join(options, training, unseen, 0, place)


if __name__ == "__main__":
    jobs.run(main)
