# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Prints the number of parameters of each model at its published size: of image classifiers at their native image size,
with 1000 classes except for the CNN; of Faster R-CNN with the 91 classes of COCO. (torchvision publishes 41,755,286 for
ResNet-50 with frozen batch normalisation, whose 53,120 values are trained here.)

The weights are not initialised: drawing 200 million takes a while.
"""

import importlib.util
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here, os.path.dirname(here), os.path.join(os.path.dirname(here), "datasets")]

import language
import torch
from models import MODELS

for function in "kaiming_uniform_", "kaiming_normal_", "uniform_", "normal_", "trunc_normal_", "xavier_uniform_":
    setattr(torch.nn.init, function, lambda tensor, *_, **__: tensor)


def networks(application):
    """The module `networks` of an application."""
    path = os.path.join(here, application, "networks.py")
    spec = importlib.util.spec_from_file_location(application, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tell(name, *models):
    """Prints a line."""
    print(name, sum(parameter.numel() for model in models for parameter in model.parameters()))


def classifiers():
    """Models of images."""
    for name, model in MODELS.items():
        tell(name, model.make(10 if name == "cnn" else 1000, model.image_size))


def others():
    """Those of the other applications."""
    words = language.SIZES["published"]
    for (name, size), (make, arguments, *_) in networks("translation").NETWORKS.items():
        if size == "published":
            tell(f"translation/{name}", make(words.source_words, words.target_words, **arguments))
    detection = networks("detection")
    for name, make in detection.NETWORKS.items():
        if name != "fasterrcnn_small":
            tell(f"detection/{name}", make(91, 800))
    wgan = networks("unsupervised")
    tell("unsupervised/wgan", *(make(wgan.WIDTHS["published"]) for make in (wgan.generator, wgan.critic)))
    a3c = networks("reinforcement")
    tell("reinforcement/a3c", a3c.Agent(3, *a3c.WIDTHS["published"]))


if __name__ == "__main__":
    if sys.argv[1:] != ["others"]:
        classifiers()
    if sys.argv[1:] != ["images"]:
        others()
