# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""A generator of images of 64x64 pixels and its critic, like those of DCGAN (Radford et al. 2016). The critic has no batch
normalisation, because its gradient is penalised for each image (Gulrajani et al. 2017). Published: a width of 64."""

from torch import nn

NOISE = 128  # numbers from which an image is made
WIDTHS = {"small": 8, "published": 64}


def generator(width):
    """From noise [images, 128] to images [images, 3, 64, 64], -1 to 1."""
    layers = [nn.Linear(NOISE, 8 * width * 16), nn.Unflatten(1, (8 * width, 4, 4)), nn.BatchNorm2d(8 * width), nn.ReLU()]
    for factor in 4, 2, 1:
        layers += [nn.ConvTranspose2d(2 * factor * width, factor * width, 4, 2, 1, bias=False),
                   nn.BatchNorm2d(factor * width), nn.ReLU()]  # fmt: skip
    return nn.Sequential(*layers, nn.ConvTranspose2d(width, 3, 4, 2, 1), nn.Tanh())


def critic(width):
    """From images [images, 3, 64, 64] to a number for each [images, 1], larger for real ones."""
    layers = [nn.Conv2d(3, width, 4, 2, 1), nn.LeakyReLU(0.2)]
    for factor in 1, 2, 4:
        layers += [nn.Conv2d(factor * width, 2 * factor * width, 4, 2, 1), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(8 * width * 16, 1))
