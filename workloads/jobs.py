# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Common to the training jobs in Python: their options and output lines.

    cnn: 89450 parameters, 3200 images, batch size 32, 2 workers, cpu
    epoch 1/3  loss 0.9133  accuracy 0.672  9.7 s  1320 images/s
    validation 1/3  loss 0.6291  accuracy 0.801  0.3 s  2950 images/s

Applications other than image classification count other things than images, and have other scores than accuracy:

    transformer: 302480 parameters, 6400 sentences, batch size 32, 2 workers, cpu
    epoch 1/3  loss 2.9133  accuracy 0.372  9.7 s  5320 tokens/s
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


def new_parser(description, what="images", loader=True, **defaults):
    """A parser of the options common to all jobs. what: the samples in a batch; loader: whether there is one, which can
    have workers; defaults: of options, by name."""
    positive, any_number = at_least(1), at_least(0)
    parser = argparse.ArgumentParser(description=description)
    add = parser.add_argument
    add("--batch-size", type=positive, default=32, help=f"{what} in a batch, of all processes")
    if loader:
        add("--workers", type=any_number, default=2, help="loader workers of each process; 0: none")
    add("--epochs", type=positive, default=3)
    add("--samples", type=positive, help=f"so many {what} instead of the dataset's")
    add("--threads", type=positive, help="threads that compute, in each process")
    add("--seed", type=int, default=1, help=f"of {what}, weights and orders")
    parser.set_defaults(**defaults)
    return parser


def add_validation(parser):
    """The number of samples that a model is evaluated with."""
    parser.add_argument("--validation-samples", type=at_least(0), default=0, help="so many others, after each epoch")


def add_training(parser, optimizers):
    """Options of the jobs in PyTorch. The first optimizer is the default."""
    parser.add_argument("--optimizer", choices=optimizers, default=optimizers[0])
    parser.add_argument("--steps", type=at_least(1), help="end each pass after so many batches")


def add_size(parser):
    """Models and data that train in a minute on two CPUs, or those of publications."""
    parser.add_argument("--size", choices=("small", "published"), default="small",
        help="of the model and its data: small, or as published")  # fmt: skip


def parse_options(description, models, optimizers=()):
    """The command line of an image classifier, the same for each framework, except that optimizers, steps and frames can
    be chosen only where optimizers are given."""
    positive = at_least(1)
    parser = new_parser(description)
    add = parser.add_argument
    add("--model", choices=sorted(models), default="cnn")
    add("--dataset", type=known_dataset, default="dt1",
        help="dt1 (60,000 images), dt2 (600,000), or a folder of images")  # fmt: skip
    add_validation(parser)
    add("--image-size", type=positive,
        help="resize to so many pixels (what the model was made for)")  # fmt: skip
    add("--classes", type=positive, help="the model's outputs (the dataset's classes)")
    add("--processes", type=positive, default=1, help="so many train together, data-parallel")
    if optimizers:
        add_training(parser, optimizers)
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
    held_out = getattr(options, "validation_samples", 0)
    for count, what in (samples, "samples"), (held_out, "validation samples"):
        if count < options.batch_size and (count != 0 or what == "samples"):
            raise Problem(f"{count} {what} do not fill a batch of {options.batch_size}")


def announce(options, parameters, samples, device, native_size=None, what="images"):
    """Prints the settings of the training. native_size: the edge of the dataset's images, if they have the same."""
    text = f"{options.model}: {parameters} parameters, {samples} {what}, batch size {options.batch_size}, "
    text += f"{options.workers} workers, {device}" if hasattr(options, "workers") else device
    if getattr(options, "processes", 1) > 1:
        text += f", {options.processes} processes"
    if native_size and native_size != options.image_size:
        text += f", images resized from {native_size} to {options.image_size} pixels"
    print(text, flush=True)


def say(what, epoch, options, loss, accuracy, count, seconds):
    """Prints the line of a pass over images."""
    say_scores(what, epoch, options, {"loss": loss, "accuracy": accuracy}, count, "images", seconds)


def say_scores(what, epoch, options, scores, count, unit, seconds):
    """Prints the line of a pass. scores: name and value, loss first. unit: of count."""
    words = [f"{name} {value:.{4 if name == 'loss' else 3}f}" for name, value in scores.items()]
    print(f"{what} {epoch}/{options.epochs}", *words, f"{seconds:.1f} s", f"{count / seconds:.0f} {unit}/s",
          sep="  ", flush=True)  # fmt: skip


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
