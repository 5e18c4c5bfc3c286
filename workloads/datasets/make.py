#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Creates synthetic datasets for the workloads; the same seed gives the same data.

    make.py jpeg --images 2000 --classes 10 --seed 1 FOLDER

jpeg: a folder of JPEG images with a folder for each class, as read by torchvision's ImageFolder.
Sizes vary about like those of ImageNet: log-normal with a mean of 115 kB (the training set of
ILSVRC 2012 has 147.9 GB in 1,281,167 files), in proportions of 4 to 3. Each class has plane waves of
its own under noise, so that it can be learned. Needs python3-pil and python3-numpy.

Prints the required space first, and fails if the file system has less.
"""

import argparse
import math
import os
import shutil
import sys
import time
from pathlib import Path

import numpy
from PIL import Image

MEAN_BYTES, SPREAD = 115_000, 0.5  # of the logarithm
SMALLEST, LARGEST = 0.15, 5.0  # of the mean
QUALITY = 85
WAVES = 3


def positive(text):
    """A number of an option, at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number


def picture(random, waves, width, height, noise):
    """One image of a class: its waves with phases of their own, and noise. uint8 [height, width, 3]."""
    x = numpy.linspace(0, 2 * math.pi, width, dtype=numpy.float32)
    y = numpy.linspace(0, 2 * math.pi, height, dtype=numpy.float32)[:, None]
    pixels = random.standard_normal((height, width, 3), dtype=numpy.float32)
    pixels *= noise
    pixels += 128
    for across, down, *tint in waves:
        phase = random.uniform(0, 2 * math.pi)
        wave = numpy.cos(x * (across * 8 - 4) + y * (down * 8 - 4) + numpy.float32(phase))
        pixels += wave[:, :, None] * (numpy.array(tint, numpy.float32) * 60 - 30)
    return pixels.clip(0, 255).astype(numpy.uint8)


def encoded_bytes(random, waves, noise, path):
    """The size of an image of mean dimensions with this noise, in bytes."""
    Image.fromarray(picture(random, waves, *edges(1), noise)).save(path, quality=QUALITY)
    return path.stat().st_size


def edges(times):
    """Width and height of an image of `times` the mean size."""
    height = 375 * math.sqrt(times)
    return round(height * 4 / 3), round(height)


def noise_for_mean(random, waves, path):
    """The noise with which an image of 500 by 375 pixels takes MEAN_BYTES."""
    low, high = 0.0, 100.0
    for _ in range(12):
        middle = (low + high) / 2
        if encoded_bytes(random, waves, middle, path) < MEAN_BYTES:
            low = middle
        else:
            high = middle
    path.unlink()
    return high


def check_space(folder, needed):
    """Prints the required space; exits if there is less."""
    free = shutil.disk_usage(folder).free
    print(f"{needed / 1e6:.0f} MB in {folder}, of {free / 1e6:.0f} MB free", flush=True)
    if needed > free * 0.95:
        sys.exit(f"make.py: {folder}: no space for {needed / 1e6:.0f} MB")


def make_jpeg(options):
    """The folder of images."""
    folder = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        sys.exit(f"make.py: {folder}: expected an empty folder")
    random = numpy.random.default_rng(options.seed)
    times = random.lognormal(-(SPREAD**2) / 2, SPREAD, options.images).clip(SMALLEST, LARGEST)
    check_space(folder, times.sum() * MEAN_BYTES)
    waves = random.uniform(size=(options.classes, WAVES, 5))
    noise = noise_for_mean(random, waves[0], folder / "trial.jpeg")
    classes = random.integers(options.classes, size=options.images)
    for number in range(options.classes):
        (folder / f"class{number:03}").mkdir()
    told = time.monotonic()
    for number, (kind, size) in enumerate(zip(classes, times)):
        image = Image.fromarray(picture(random, waves[kind], *edges(size), noise))
        image.save(folder / f"class{kind:03}" / f"{number:07}.jpeg", quality=QUALITY)
        if time.monotonic() - told > 2 and sys.stderr.isatty():
            told = time.monotonic()
            print(f"\r{number + 1} of {options.images}", end="", file=sys.stderr, flush=True)
    os.sync()


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description="Make a synthetic dataset.")
    kinds = parser.add_subparsers(dest="kind", required=True)
    jpeg = kinds.add_parser("jpeg", help="a folder of JPEG images, sized as ImageNet's")
    jpeg.add_argument("--images", type=positive, default=1000)
    jpeg.add_argument("--classes", type=positive, default=10)
    jpeg.add_argument("--seed", type=int, default=1)
    jpeg.add_argument("folder", type=Path)
    jpeg.set_defaults(make=make_jpeg)
    options = parser.parse_args()
    options.make(options)


if __name__ == "__main__":
    main()
