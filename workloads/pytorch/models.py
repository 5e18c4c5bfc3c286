# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""The models of the PyTorch job. A new model is a row of MODELS."""

from jobs import Model
from torch import nn


def cnn(classes=10, image_size=32):
    """Table 1 of Torres, Barrios and Denneulin (2021): 89,450 parameters at 32x32."""
    edge = ((image_size - 2) // 2 - 2) // 2 - 2  # after two poolings
    return nn.Sequential(
        nn.Conv2d(3, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 64, 3), nn.ReLU(),
        nn.Flatten(), nn.Linear(64 * edge * edge, 32), nn.ReLU(), nn.Linear(32, classes),
    )  # fmt: skip


def of_torchvision(name, **arguments):
    """A model of torchvision, without weights."""

    def make(classes=1000, image_size=224):
        import torchvision  # noqa: PLC0415  the CNN needs none

        del image_size  # these end with an average over the remaining image
        # The parameter for no weights differs between versions; no weights is the default of all.
        return getattr(torchvision.models, name)(num_classes=classes, **arguments)

    return make


def inception3(classes=1000, image_size=299):
    """The auxiliary head needs images of 299 pixels; with smaller ones it is left out."""
    whole = image_size >= 299
    make = of_torchvision("inception_v3", init_weights=True, aux_logits=whole)
    return make(classes, image_size)


MODELS = {
    "cnn": Model(cnn, 32, 18, 1e-3),
    "alexnet": Model(of_torchvision("alexnet"), 224, 63, 1e-4),
    "vgg16": Model(of_torchvision("vgg16"), 224, 32, 1e-4),
    "inception3": Model(inception3, 299, 75, 1e-3),
    "resnet34": Model(of_torchvision("resnet34"), 224, 32, 1e-3),
    "resnet50": Model(of_torchvision("resnet50"), 224, 32, 1e-3),
}
