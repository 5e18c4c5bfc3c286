# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""The datasets of the PyTorch job, and the order of samples."""

import jobs
import synthetic
import torch
from torch.nn import functional
from torch.utils.data import Dataset, Sampler, Subset

MARGIN = 4  # pixels by which a crop may move


class SyntheticImages(Dataset):
    """dt1 or dt2, in memory. The number of an item is epoch * samples + index: the augmentation of a
    sample depends on it, and not on the worker.

    images: float32 [samples, 3, 32, 32], 0 to 1. classes: int64 [samples].
    """

    edge = synthetic.EDGE
    class_count = synthetic.CLASSES

    def __init__(self, samples, seed, first=0, training=True):
        images, classes = synthetic.images(samples, seed, first)
        self.images = torch.from_numpy(images).permute(0, 3, 1, 2)
        self.classes = torch.from_numpy(classes)
        self.seed, self.training = seed, training

    def __len__(self):
        return len(self.images)

    def __getitem__(self, number):
        """One normalised sample; for training a crop, maybe mirrored or brighter."""
        index = number % len(self)
        image = self.images[index]
        if self.training:
            image = self.augmented(image, torch.Generator().manual_seed(self.seed * 2**33 + number))
        mean = image.mean(dim=(1, 2), keepdim=True)
        return (image - mean) / 0.1, self.classes[index]

    def augmented(self, image, generator):
        """A crop of the same size, with mirrored edges."""
        left, top, mirrored, bright = torch.rand(4, generator=generator).tolist()
        left, top = int(left * (2 * MARGIN + 1)), int(top * (2 * MARGIN + 1))
        image = functional.pad(image, [MARGIN] * 4, mode="reflect")
        image = image[:, top : top + self.edge, left : left + self.edge]
        if mirrored < 0.5:
            image = image.flip(2)
        return (image * (0.9 + 0.2 * bright)).clamp(0, 1)


class Folder(Dataset):
    """Images of a folder with a folder for each class, as workloads/datasets/make.py writes it."""

    def __init__(self, path, image_size, training):
        from torchvision import datasets, transforms  # noqa: PLC0415  dt1 and dt2 need none

        crop = [transforms.RandomResizedCrop(image_size), transforms.RandomHorizontalFlip()]
        if not training:
            crop = [transforms.Resize(image_size * 8 // 7), transforms.CenterCrop(image_size)]
        steps = [*crop, transforms.ToTensor(), transforms.Normalize([0.5] * 3, [0.1] * 3)]
        self.images = datasets.ImageFolder(path, transforms.Compose(steps))

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index]


class Numbered(Subset):
    """Some images of a folder, by numbers that may include the epoch."""

    edge = None  # sizes differ

    def __init__(self, folder, indices):
        super().__init__(folder, indices)
        self.class_count = len(folder.images.classes)

    def __getitem__(self, number):
        return self.dataset[self.indices[number % len(self.indices)]]


class Clips(Dataset):
    """Clips from the images of a dataset: float32 [3, frames, rows, columns]. Each image moves over the frames, by whole
    pixels, and leaves at one edge to come in at the other one. Its number gives the direction."""

    def __init__(self, images, frames):
        self.images, self.frames = images, frames
        self.edge, self.class_count = images.edge, images.class_count

    def __len__(self):
        return len(self.images)

    def __getitem__(self, number):
        image, kind = self.images[number]
        down, right = number % 3 - 1, number // 3 % 3 - 1  # pixels per frame
        frames = [image.roll((at * down, at * right), (1, 2)) for at in range(self.frames)]
        return torch.stack(frames, 1), kind


class Order(Sampler):
    """Numbers of one process's share of each batch; the batches do not depend on the number of processes."""

    def __init__(self, samples, options, rank):
        super().__init__(None)
        self.samples, self.seed = samples, options.seed
        batches = samples // options.batch_size
        batches = min(batches, options.steps or batches)
        self.count = batches * options.batch_size // options.processes
        self.rank, self.processes = rank, options.processes
        self.epoch = 0

    def __len__(self):
        return self.count

    def __iter__(self):
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        order = torch.randperm(self.samples, generator=generator)[self.rank :: self.processes]
        return iter((order[: self.count] + self.epoch * self.samples).tolist())


def split(options):
    """Training and validation images or clips (None: no validation) by --dataset and --samples."""
    training, unseen = split_images(options)
    if options.frames:
        return Clips(training, options.frames), unseen and Clips(unseen, options.frames)
    return training, unseen


def split_images(options):
    """The images themselves."""
    held_out = options.validation_samples
    if options.dataset in synthetic.SAMPLES:
        samples = options.samples or synthetic.SAMPLES[options.dataset]
        jobs.check_samples(options, samples)
        unseen = SyntheticImages(held_out, options.seed, samples, False) if held_out else None
        return SyntheticImages(samples, options.seed), unseen
    return split_folder(options, held_out)


def split_folder(options, held_out):
    """Validation images are drawn from the whole folder."""
    folder = Folder(options.dataset, options.image_size, True)
    samples = min(options.samples or len(folder), len(folder) - held_out)
    jobs.check_samples(options, samples)
    drawn = torch.randperm(len(folder), generator=torch.Generator().manual_seed(options.seed))
    unseen = None
    if held_out:
        whole = Folder(options.dataset, options.image_size, False)
        unseen = Numbered(whole, drawn[:held_out].tolist())
    return Numbered(folder, drawn[held_out : held_out + samples].tolist()), unseen
