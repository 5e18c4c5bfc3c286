# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""The datasets of the JAX job, and the threads that prepare their batches."""

import collections
from concurrent.futures import ThreadPoolExecutor

import jobs
import numpy
import synthetic

MARGIN = 4  # pixels by which a crop may move
AHEAD = 2  # batches per worker
STREAM_AUGMENT = 5


def normalised(images):
    """Normalises values from 0 to 1; float32 of the same shape."""
    return (images - images.mean((1, 2), keepdims=True)) / numpy.float32(0.1)


class Synthetic:
    """dt1 or dt2, in memory."""

    class_count = synthetic.CLASSES

    def __init__(self, samples, seed, first, training):
        self.images, self.classes = synthetic.images(samples, seed, first)
        self.samples, self.seed, self.training = samples, seed, training
        self.edge = synthetic.EDGE

    def batch(self, indices, epoch):
        """Normalised images and classes. For training, images are cropped, maybe mirrored, and brighter
        or darker, depending on their number and the epoch. indices: int64 [any]."""
        images = self.images[indices]
        if self.training:
            numbers = (indices + epoch * self.samples).astype(numpy.uint64)
            images = self.augmented(images, numbers)
        return normalised(images), self.classes[indices]

    def augmented(self, images, numbers):
        """Crops of the same size, with mirrored edges."""
        random = synthetic.draws(self.seed, STREAM_AUGMENT, numbers, 4)
        left, top = synthetic.below(random[:, :2], 2 * MARGIN + 1).T
        around = ((0, 0), (MARGIN, MARGIN), (MARGIN, MARGIN), (0, 0))
        larger = numpy.pad(images, around, "reflect")
        along = numpy.arange(self.edge)
        mirrored = (random[:, 2] >> numpy.uint64(63)).astype(bool)[:, None]
        across = left[:, None] + numpy.where(mirrored, along[::-1], along)
        down = top[:, None] + along
        images = larger[numpy.arange(len(images))[:, None, None], down[:, :, None], across[:, None]]
        bright = 0.9 + synthetic.below(random[:, 3], 200) / numpy.float32(1000)
        return numpy.clip(images * bright[:, None, None, None].astype(numpy.float32), 0, 1)


class Folder:
    """Some files of a folder with a folder for each class, decoded and cropped."""

    def __init__(self, found, indices, image_size, seed, training):
        paths, classes, self.class_count = found
        self.paths = [paths[index] for index in indices]
        self.classes = numpy.array([classes[index] for index in indices])
        self.edge, self.seed, self.samples = image_size, seed, len(indices)
        self.training = training

    def batch(self, indices, epoch):
        """Images, normalised, and classes."""
        images = numpy.stack([self.image(index, epoch) for index in indices])
        return (images - numpy.float32(0.5)) / numpy.float32(0.1), self.classes[indices]

    def image(self, index, epoch):
        """float32 [edge, edge, 3], 0 to 1; for training a crop, maybe mirrored."""
        from PIL import Image  # noqa: PLC0415  dt1 and dt2 need none

        size = (self.edge, self.edge)
        with Image.open(self.paths[index]) as file:
            if not self.training:
                image = file.convert("RGB").resize(size, Image.BILINEAR)
                return numpy.asarray(image, numpy.float32) / 255
            random = numpy.random.default_rng([self.seed, epoch, index])
            area = file.width * file.height * random.uniform(0.08, 1)
            ratio = random.uniform(3 / 4, 4 / 3)
            width = min(file.width, max(1, round((area * ratio) ** 0.5)))
            height = min(file.height, max(1, round((area / ratio) ** 0.5)))
            left = random.integers(file.width - width + 1)
            top = random.integers(file.height - height + 1)
            part = (left, top, left + width, top + height)
            image = file.convert("RGB").resize(size, Image.BILINEAR, part)
        image = numpy.asarray(image, numpy.float32) / 255
        return image[:, ::-1] if random.integers(2) else image


def split(options):
    """Training and validation images (None: no validation) by --dataset and --samples."""
    held_out = options.validation_samples
    if options.dataset in synthetic.SAMPLES:
        samples = options.samples or synthetic.SAMPLES[options.dataset]
        jobs.check_samples(options, samples)
        unseen = Synthetic(held_out, options.seed, samples, False) if held_out else None
        return Synthetic(samples, options.seed, 0, True), unseen
    try:
        import PIL  # noqa: F401, PLC0415
    except ImportError:
        raise jobs.Problem("folders of images need Pillow (make frameworks)") from None
    found = jobs.images_of(options.dataset)
    samples = min(options.samples or len(found[0]), len(found[0]) - held_out)
    jobs.check_samples(options, samples)
    drawn = numpy.random.default_rng(options.seed).permutation(len(found[0]))
    size, seed = options.image_size, options.seed
    unseen = Folder(found, drawn[:held_out], size, seed, False) if held_out else None
    return Folder(found, drawn[held_out:][:samples], size, seed, True), unseen


def shares(images, options, rank, epoch):
    """Indices of one process's share of each batch; the batches do not depend on the number of processes."""
    order = numpy.arange(images.samples)
    if images.training:
        order = numpy.random.default_rng([options.seed, epoch]).permutation(images.samples)
    size = options.batch_size
    for start in range(0, images.samples - size + 1, size):
        yield order[start : start + size][rank :: options.processes]


class Loader:
    """Batches, prepared in advance by threads."""

    def __init__(self, options, rank):
        self.options, self.rank = options, rank
        self.workers = ThreadPoolExecutor(options.workers) if options.workers else None

    def batches(self, images, epoch):
        """The batches of an epoch."""
        todo = shares(images, self.options, self.rank, epoch)
        if not self.workers:
            yield from (images.batch(indices, epoch) for indices in todo)
            return
        ahead = collections.deque()
        for indices in todo:
            ahead.append(self.workers.submit(images.batch, indices, epoch))
            if len(ahead) > AHEAD * self.options.workers:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
