# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""The models of the TensorFlow job, with the same layers as those of the PyTorch job. A new model is a row
of MODELS: a function of Keras (3, or 2 as tf_keras), the number of classes and the images' edge, which
returns the layers between the image and the classes' logits as a function."""

from jobs import Model


def in_a_row(layers):
    """A function that calls the layers in sequence."""

    def call(x):
        for layer in layers:
            x = layer(x)
        return x

    return call


def cnn(keras, classes, image_size):
    """Table 1 of Torres, Barrios and Denneulin (2021): 89,450 parameters at 32x32."""
    del image_size
    layers = keras.layers
    return in_a_row([
        layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(2),
        layers.Conv2D(64, 3, activation="relu"), layers.MaxPooling2D(2),
        layers.Conv2D(64, 3, activation="relu"), layers.Flatten(),
        layers.Dense(32, activation="relu"), layers.Dense(classes),
    ])  # fmt: skip


def alexnet(keras, classes, image_size):
    """Krizhevsky (2014), as in torchvision: 61,100,840 parameters with 1000 classes."""
    layers = keras.layers

    def convolution(filters, window, padding, strides=1):
        return [layers.ZeroPadding2D(padding),
                layers.Conv2D(filters, window, strides, activation="relu")]  # fmt: skip

    def pooling():
        return [layers.MaxPooling2D(3, 2)]

    edge = (image_size - 7) // 4 + 1  # after the first convolution, then after each pooling
    for _ in range(3):
        edge = (edge - 3) // 2 + 1
    # torchvision averages the result to 6x6; with 224 pixels it already is 6x6.
    fit = [] if edge == 6 else [layers.Resizing(6, 6, interpolation="nearest")]
    return in_a_row([
        *convolution(64, 11, 2, 4), *pooling(), *convolution(192, 5, 2), *pooling(),
        *convolution(384, 3, 1), *convolution(256, 3, 1), *convolution(256, 3, 1), *pooling(),
        *fit, layers.Flatten(),
        layers.Dropout(0.5), layers.Dense(4096, activation="relu"),
        layers.Dropout(0.5), layers.Dense(4096, activation="relu"), layers.Dense(classes),
    ])  # fmt: skip


def resnet50(keras, classes, image_size):
    """He et al. (2016) with the stride in the 3x3 convolution: 25,557,032 parameters with 1000
    classes, without the running means and variances of batch normalisation."""
    del image_size
    layers = keras.layers

    def convolution(x, filters, window, strides=1):
        if window > 1:
            x = layers.ZeroPadding2D(window // 2)(x)
        x = layers.Conv2D(filters, window, strides, use_bias=False)(x)
        return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)

    def block(x, filters, strides, widened):
        shortcut = convolution(x, 4 * filters, 1, strides) if widened else x
        x = layers.ReLU()(convolution(x, filters, 1))
        x = layers.ReLU()(convolution(x, filters, 3, strides))
        return layers.ReLU()(layers.Add()([convolution(x, 4 * filters, 1), shortcut]))

    def call(x):
        x = layers.ReLU()(convolution(x, 64, 7, 2))
        x = layers.MaxPooling2D(3, 2)(layers.ZeroPadding2D(1)(x))
        for stage, blocks in enumerate((3, 4, 6, 3)):
            for number in range(blocks):
                x = block(x, 64 << stage, 2 if stage and not number else 1, not number)
        return layers.Dense(classes)(layers.GlobalAveragePooling2D()(x))

    return call


MODELS = {
    "cnn": Model(cnn, 32, 18, 1e-3),
    "alexnet": Model(alexnet, 224, 63, 1e-4),
    "resnet50": Model(resnet50, 224, 32, 1e-3),
}


def make(keras, name, classes, image_size, native_size):
    """A model for images of native_size; resizes them if image_size differs."""
    image = keras.layers.Input((native_size, native_size, 3))
    x = image
    if native_size != image_size:
        x = keras.layers.Resizing(image_size, image_size)(x)
    return keras.Model(image, MODELS[name].make(keras, classes, image_size)(x))
