# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""The models of the JAX job, with the same layers as those of the PyTorch job. A new model is a row
of MODELS: a function of the number of classes and the images' edge that returns a layer."""

from jobs import Model
from layers import (added, batch_normalisation, convolution, dense, dropout, flatten, max_pooling,
                    mean, relu, resized, serial)  # fmt: skip


def cnn(classes, image_size):
    """Table 1 of Torres, Barrios and Denneulin (2021): 89,450 parameters at 32x32."""
    del image_size
    return serial(
        convolution(32, 3), relu, max_pooling(2, 2), convolution(64, 3), relu, max_pooling(2, 2),
        convolution(64, 3), relu, flatten, dense(32), relu, dense(classes),
    )  # fmt: skip


def alexnet(classes, image_size):
    """Krizhevsky (2014), as in torchvision: 61,100,840 parameters with 1000 classes."""
    edge = (image_size - 7) // 4 + 1  # after the first convolution, then after each pooling
    for _ in range(3):
        edge = (edge - 3) // 2 + 1
    # torchvision averages the result to 6x6; with 224 pixels it already is 6x6.
    fit = [] if edge == 6 else [resized(6)]
    return serial(
        convolution(64, 11, 4, 2), relu, max_pooling(3, 2),
        convolution(192, 5, 1, 2), relu, max_pooling(3, 2),
        convolution(384, 3, 1, 1), relu, convolution(256, 3, 1, 1), relu,
        convolution(256, 3, 1, 1), relu, max_pooling(3, 2), *fit, flatten,
        dropout(0.5), dense(4096), relu, dropout(0.5), dense(4096), relu, dense(classes),
    )  # fmt: skip


def resnet50(classes, image_size):
    """He et al. (2016) with the stride in the 3x3 convolution: 25,557,032 parameters with 1000
    classes."""
    del image_size

    def normalised(filters, window, strides=1):
        return serial(convolution(filters, window, strides, window // 2, bias=False),
                      batch_normalisation())  # fmt: skip

    def block(filters, strides, widened):
        main = serial(normalised(filters, 1), relu, normalised(filters, 3, strides), relu,
                      normalised(4 * filters, 1))  # fmt: skip
        shortcut = normalised(4 * filters, 1, strides) if widened else serial()
        return [added(main, shortcut), relu]

    blocks = []
    for stage, count in enumerate((3, 4, 6, 3)):
        for number in range(count):
            blocks += block(64 << stage, 2 if stage and not number else 1, not number)
    return serial(normalised(64, 7, 2), relu, max_pooling(3, 2, 1), *blocks, mean, dense(classes))


MODELS = {
    "cnn": Model(cnn, 32, 18, 1e-3),
    "alexnet": Model(alexnet, 224, 63, 1e-4),
    "resnet50": Model(resnet50, 224, 32, 1e-3),
}
