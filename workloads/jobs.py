# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Common to the training jobs in Python: their options and output lines.

    cnn: 89450 parameters, 3200 images, batch size 32, 2 workers, cpu
    epoch 1/3  loss 0.9133  accuracy 0.672  9.7 s  1320 images/s
    validation 1/3  loss 0.6291  accuracy 0.801  0.3 s  2950 images/s
"""

import argparse
import collections
import contextlib
import os
import subprocess
import sys

import synthetic

# The function that makes a model; the edge of the images in its publication, and of the smallest
# possible ones; the learning rate of Adam; for a model of clips, the number of frames and the fewest possible.
Model = collections.namedtuple("Model", "make image_size smallest learning_rate frames fewest_frames", defaults=(0, 0))


class Problem(Exception):
    """An error that ends the job with one line."""


def at_least(smallest):
    """A type of options: integers of at least `smallest`."""

    def number(text):
        value = int(text)
        if value < smallest:
            raise argparse.ArgumentTypeError(f"{text} is not at least {smallest}")
        return value

    number.__name__ = "number"
    return number


def known_dataset(text):
    """The name of a dataset, or a folder."""
    if text not in synthetic.SAMPLES and not os.path.isdir(text):
        raise argparse.ArgumentTypeError(f"expected dt1, dt2 or a folder, found '{text}'")
    return text


def parse_options(description, models, optimizers=()):
    """The command line, the same for each framework, except that optimizers, steps and frames can be chosen only where
    optimizers are given."""
    positive, any_number = at_least(1), at_least(0)
    parser = argparse.ArgumentParser(description=description)
    add = parser.add_argument
    add("--model", choices=sorted(models), default="cnn")
    add("--dataset", type=known_dataset, default="dt1",
        help="dt1 (60,000 images), dt2 (600,000), or a folder of images")  # fmt: skip
    add("--batch-size", type=positive, default=32, help="images in a batch, of all processes")
    add("--workers", type=any_number, default=2, help="loader workers of each process; 0: none")
    add("--epochs", type=positive, default=3)
    add("--samples", type=positive, help="so many images instead of the dataset's")
    add("--validation-samples", type=any_number, default=0, help="so many others, after each epoch")
    add("--image-size", type=positive,
        help="resize to so many pixels (what the model was made for)")  # fmt: skip
    add("--classes", type=positive, help="the model's outputs (the dataset's classes)")
    add("--threads", type=positive, help="threads that compute, in each process")
    add("--processes", type=positive, default=1, help="so many train together, data-parallel")
    add("--seed", type=int, default=1, help="of images, weights and orders")
    if optimizers:
        add("--optimizer", choices=optimizers, default=optimizers[0])
        add("--steps", type=positive, help="end each pass after so many batches")
        add("--frames", type=positive, help="frames of a clip, for models of clips")
    options = parser.parse_args()
    model = models[options.model]
    options.image_size = options.image_size or model.image_size
    if options.image_size < model.smallest:
        parser.error(f"{options.model} needs images of at least {model.smallest} pixels")
    if optimizers:
        choose_frames(options, model, parser)
    if options.batch_size % options.processes:
        parser.error(f"{options.processes} processes cannot share batches of {options.batch_size}")
    return options


def choose_frames(options, model, parser):
    """Sets the frames of a clip; 0: the model is of images."""
    if options.frames and not model.frames:
        parser.error(f"{options.model} is a model of images, not of clips: --frames does not apply")
    options.frames = options.frames or model.frames
    if options.frames < model.fewest_frames:
        parser.error(f"{options.model} needs clips of at least {model.fewest_frames} frames")


def check_samples(options, samples):
    """Ends the job if the samples do not fill a batch: only complete batches are used."""
    for count, what in (samples, "samples"), (options.validation_samples, "validation samples"):
        if count < options.batch_size and (count != 0 or what == "samples"):
            raise Problem(f"{count} {what} do not fill a batch of {options.batch_size}")


def announce(options, parameters, samples, device, native_size=None):
    """Prints the settings of the training. native_size: the edge of the dataset's images, if they have the same."""
    text = f"{options.model}: {parameters} parameters, {samples} images, "
    text += f"batch size {options.batch_size}, {options.workers} workers, {device}"
    if options.processes > 1:
        text += f", {options.processes} processes"
    if native_size and native_size != options.image_size:
        text += f", images resized from {native_size} to {options.image_size} pixels"
    print(text, flush=True)


def say(what, epoch, options, loss, accuracy, count, seconds):
    """Prints the line of a pass."""
    print(f"{what} {epoch}/{options.epochs}  loss {loss:.4f}  accuracy {accuracy:.3f}  "
          f"{seconds:.1f} s  {count / seconds:.0f} images/s", flush=True)  # fmt: skip


def images_of(folder):
    """Paths of the images in a folder of folders, the class number of each, and the number of classes."""
    kinds = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    found = [(os.path.join(folder, kind, name), number) for number, kind in enumerate(kinds)
             for name in sorted(os.listdir(os.path.join(folder, kind)))]  # fmt: skip
    return [path for path, _ in found], [number for _, number in found], len(kinds)


@contextlib.contextmanager
def others(environments):
    """Starts this program once for each environment. All end together."""
    started = []
    try:
        for environment in environments:
            started.append(subprocess.Popen([sys.executable, *sys.argv], env=environment))
        yield
        failed = [process for process in started if process.wait() != 0]
    finally:
        for process in started:
            process.kill()
    if failed:
        raise Problem("a process did not end well")


def run(main):
    """Calls main. A Problem or a lack of memory gives one line and status 1."""
    try:
        main()
    except Problem as problem:
        sys.exit(f"{os.path.basename(sys.argv[0])}: {problem}")
    except MemoryError as error:
        sys.exit(f"{os.path.basename(sys.argv[0])}: MemoryError: {error}")
