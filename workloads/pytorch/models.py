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


class Rows(nn.Module):
    """A network of two LSTM layers that reads an image as the sequence of its rows, from the first to the last, and
    classifies the last state."""

    def __init__(self, classes=10, image_size=32, width=256):
        super().__init__()
        self.recurrent = nn.LSTM(3 * image_size, width, num_layers=2, batch_first=True)
        self.last = nn.Linear(width, classes)

    def forward(self, images):
        """images: [samples, 3, rows, columns]. Returns [samples, classes]."""
        rows = images.permute(0, 2, 1, 3).flatten(2)
        states, _ = self.recurrent(rows)
        return self.last(states[:, -1])


def conv3d(classes=10, image_size=32):
    """Convolutions of 3x3x3 over clips, with poolings like those of C3D (Tran et al. 2015), and a quarter of its width and
    half of its depth. The first pooling keeps the frames."""
    del image_size  # it ends with an average over the remaining clip
    return nn.Sequential(
        nn.Conv3d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool3d((1, 2, 2)),
        nn.Conv3d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool3d(2),
        nn.Conv3d(32, 64, 3, padding=1), nn.ReLU(),
        nn.Conv3d(64, 64, 3, padding=1), nn.ReLU(), nn.MaxPool3d(2),
        nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(64, classes),
    )  # fmt: skip


MODELS = {
    "cnn": Model(cnn, 32, 18, 1e-3),
    "alexnet": Model(of_torchvision("alexnet"), 224, 63, 1e-4),
    "vgg16": Model(of_torchvision("vgg16"), 224, 32, 1e-4),
    "inception3": Model(inception3, 299, 75, 1e-3),
    "resnet34": Model(of_torchvision("resnet34"), 224, 32, 1e-3),
    "resnet50": Model(of_torchvision("resnet50"), 224, 32, 1e-3),
    "resnet152": Model(of_torchvision("resnet152"), 224, 32, 1e-3),
    "densenet121": Model(of_torchvision("densenet121"), 224, 29, 1e-3),
    "densenet201": Model(of_torchvision("densenet201"), 224, 29, 1e-3),
    "conv3d": Model(conv3d, 32, 8, 1e-3, frames=16, fewest_frames=4),
    "lstm": Model(Rows, 32, 1, 1e-3),
}
