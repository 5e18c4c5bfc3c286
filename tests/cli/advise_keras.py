# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""A small network of Keras whose memory follows its batch size, for the tests of strain advise."""

import argparse

import keras
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--data", choices=("arrays", "dataset", "generator"), default="arrays")
parser.add_argument("--ignore", action="store_true", help="the batch size")
arguments = parser.parse_args()

keras.utils.set_random_seed(1)
random = np.random.default_rng(1)
x = random.standard_normal((8000, 24, 24, 1), dtype="float32")
y = random.integers(0, 10, 8000)
first = keras.Input((24, 24, 1))
layers = [keras.layers.Conv2D(24, 3, activation="relu", padding="same") for _ in range(3)]
model = keras.Sequential([first, *layers, keras.layers.Flatten(), keras.layers.Dense(10)])
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
saves = keras.callbacks.ModelCheckpoint("model.weights.h5", save_weights_only=True)
options = {"epochs": 50, "verbose": 0, "callbacks": [saves]}


def batches():
    """Batches without end, each of 16."""
    while True:
        yield x[:16], y[:16]


size = 16 if arguments.ignore else arguments.batch_size
if arguments.data == "arrays":
    model.fit(x, y, size, validation_split=0.2, **options)
elif arguments.data == "generator":
    model.fit(batches(), steps_per_epoch=100, **options)
else:
    import tensorflow as tf

    data = tf.data.Dataset.from_tensor_slices((x, y))
    test = data.take(1000).batch(size)
    model.fit(data.batch(size, drop_remainder=True).prefetch(1), validation_data=test, **options)
