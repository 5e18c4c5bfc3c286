#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Trains the CNN of Torres, Barrios and Denneulin (2021) on synthetic images with PyTorch.

An ordinary training script: it knows nothing of being measured. With Debian's or Ubuntu's PyTorch
(python3-torch, 1.13 or newer) run it with the distribution's own Python:

    /usr/bin/python3 train.py --dataset dt1 --batch-size 32 --workers 2 --epochs 3 --samples 12800

The dataset lies in memory as float32, 12 kB an image; forked loader workers share it. Instead of
dt1 or dt2 it can be a folder of images with a folder for each of at most 10 classes, as
workloads/datasets/make.py writes it: they are decoded and cut by the workers (needs
python3-torchvision). It trains on a GPU where PyTorch sees one. A line is printed for each epoch:

    epoch 1/3  loss 0.9133  accuracy 0.672  9.7 s  1320 images/s
"""

import argparse
import math
import os
import time

# OpenMP's threads would spin while they wait, beside the loader's workers; it reads this as it is
# loaded, with torch.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, Subset

SAMPLES = {"dt1": 60_000, "dt2": 600_000}
EDGE, COLOURS, CLASSES = 32, 3, 10
MARGIN = 4  # pixels by which a crop may move


class SyntheticImages(Dataset):
    """Images of 10 classes, each the sum of three plane waves of its class, and noise.

    images: float32 [samples, 3, 32, 32], about 0 to 1. classes: int64 [samples].
    """

    def __init__(self, samples, seed, chunk=2000):
        generator = torch.Generator().manual_seed(seed)
        waves = torch.rand(CLASSES, 3, 3, generator=generator)  # class, wave, (across, down, phase)
        self.tints = torch.rand(CLASSES, 3, COLOURS, generator=generator) * 2 - 1
        self.classes = torch.randint(CLASSES, (samples,), generator=generator)
        self.images = torch.rand(samples, COLOURS, EDGE, EDGE, generator=generator)
        for start in range(0, samples, chunk):
            part = slice(start, start + chunk)
            self._add_waves(self.images[part], self.classes[part], waves, generator)

    def _add_waves(self, images, classes, waves, generator):
        """Scales noise down and adds the waves of each image's class, with phases of its own."""
        images.mul_(0.3).add_(0.35)
        along = torch.arange(EDGE) / EDGE * 2 * math.pi
        for wave in range(3):
            across, down, phase = waves[classes, wave].unbind(1)
            strength = torch.rand(len(classes), generator=generator) * 0.12
            phase = phase + (torch.rand(len(classes), generator=generator) - 0.5) * 0.7
            x = (across * 8 - 4)[:, None] * along + (phase * 2 * math.pi)[:, None]
            y = (down * 8 - 4)[:, None] * along
            # cos(x + y), without a cosine per pixel
            plane = y.cos()[:, :, None] * x.cos()[:, None] - y.sin()[:, :, None] * x.sin()[:, None]
            tint = self.tints[classes, wave] * strength[:, None]
            images.add_(tint[:, :, None, None] * plane[:, None])

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        """One sample, augmented: a moved crop, mirrored or not, brighter or darker, normalised."""
        left, top = torch.randint(2 * MARGIN + 1, (2,)).tolist()
        image = functional.pad(self.images[index], [MARGIN] * 4, mode="reflect")
        image = image[:, top : top + EDGE, left : left + EDGE]
        if torch.rand(()) < 0.5:
            image = image.flip(2)
        image = (image * (0.9 + 0.2 * torch.rand(()))).clamp(0, 1)
        mean = image.mean(dim=(1, 2), keepdim=True)
        return (image - mean) / 0.1, self.classes[index]


def folder_of_images(path):
    """Images of a folder, augmented as is usual: a part of each, mirrored or not, normalised."""
    from torchvision import datasets, transforms

    steps = [transforms.RandomResizedCrop(EDGE), transforms.RandomHorizontalFlip(),
             transforms.ToTensor(), transforms.Normalize([0.5] * COLOURS, [0.1] * COLOURS)]  # fmt: skip
    return datasets.ImageFolder(path, transforms.Compose(steps))


def make_dataset(options):
    """What --dataset and --samples say."""
    if options.dataset in SAMPLES:
        return SyntheticImages(options.samples or SAMPLES[options.dataset], options.seed)
    dataset = folder_of_images(options.dataset)
    return Subset(dataset, range(min(options.samples or len(dataset), len(dataset))))


def cnn():
    """The published layers: 89,450 parameters."""
    return nn.Sequential(
        nn.Conv2d(COLOURS, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 64, 3), nn.ReLU(),
        nn.Flatten(), nn.Linear(64 * 4 * 4, 32), nn.ReLU(), nn.Linear(32, CLASSES),
    )  # fmt: skip


def train_epoch(model, loader, optimizer, device):
    """One pass over the data; returns mean loss, accuracy and the number of images."""
    loss_sum = torch.zeros((), device=device)
    correct = torch.zeros((), dtype=torch.int64, device=device)
    count = 0
    for images, classes in loader:
        images = images.to(device, non_blocking=True)
        classes = classes.to(device, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        outputs = model(images)
        loss = functional.cross_entropy(outputs, classes)
        loss.backward()
        optimizer.step()
        loss_sum += loss.detach() * len(classes)
        correct += (outputs.detach().argmax(1) == classes).sum()
        count += len(classes)
    return loss_sum.item() / count, correct.item() / count, count


def positive(text):
    """An option's number, at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number


def known_dataset(text):
    """A dataset's name, or a folder."""
    if text not in SAMPLES and not os.path.isdir(text):
        raise argparse.ArgumentTypeError(f"expected dt1, dt2 or a folder, found '{text}'")
    return text


def parse_options():
    """The command line."""
    parser = argparse.ArgumentParser(description="Train a small CNN on synthetic images.")
    parser.add_argument("--dataset", type=known_dataset, default="dt1",
                        help="dt1 (60,000 images), dt2 (600,000), or a folder of images")  # fmt: skip
    parser.add_argument("--batch-size", type=positive, default=32)
    parser.add_argument("--workers", type=int, default=2, help="loader processes; 0: none")
    parser.add_argument("--epochs", type=positive, default=3)
    parser.add_argument("--samples", type=positive, help="so many images instead of the dataset's")
    parser.add_argument("--threads", type=positive, help="threads that compute (PyTorch's default)")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main():
    """Trains and prints a line per epoch."""
    options = parse_options()
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dataset = make_dataset(options)
    loader = DataLoader(dataset, batch_size=options.batch_size, shuffle=True,
                        num_workers=options.workers, persistent_workers=options.workers > 0,
                        pin_memory=device.type == "cuda")  # fmt: skip
    model = cnn().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    parameters = sum(p.numel() for p in model.parameters())
    print(f"cnn: {parameters} parameters, {len(dataset)} images, batch size {options.batch_size}, "
          f"{options.workers} workers, {device}", flush=True)  # fmt: skip
    for epoch in range(1, options.epochs + 1):
        start = time.perf_counter()
        loss, accuracy, count = train_epoch(model, loader, optimizer, device)
        seconds = time.perf_counter() - start
        print(f"epoch {epoch}/{options.epochs}  loss {loss:.4f}  accuracy {accuracy:.3f}  "
              f"{seconds:.1f} s  {count / seconds:.0f} images/s", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
