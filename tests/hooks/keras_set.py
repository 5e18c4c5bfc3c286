# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Trainings with Keras of 400 samples in batches of 8, for tests/cli/hooks_keras.bats: keras_set.py WAY...
Prints the batches of training and validation in each epoch."""

import os
import sys

import numpy as np

if os.environ.get("KERAS") == "2":
    import tf_keras as keras
else:
    import keras

x = np.random.default_rng(1).standard_normal((400, 8), dtype="float32")
y = np.arange(400) % 3


class Count(keras.callbacks.Callback):
    """Counts batches."""

    def on_epoch_begin(self, epoch, logs=None):
        self.trained = self.tested = 0

    def on_train_batch_end(self, batch, logs=None):
        self.trained += 1

    def on_test_batch_end(self, batch, logs=None):
        self.tested += 1

    def on_epoch_end(self, epoch, logs=None):
        print("%d/%d" % (self.trained, self.tested), end=" ")


class Batches(keras.utils.Sequence if hasattr(keras.utils, "Sequence") else keras.utils.PyDataset):
    """Batches that the script forms."""

    def __len__(self):
        return 50

    def __getitem__(self, index):
        return x[index * 8 : index * 8 + 8], y[index * 8 : index * 8 + 8]


def train(way):
    """Three epochs; a prediction of all samples."""
    layers = [keras.layers.Input((8,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(3)]
    model = keras.Sequential(layers)
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    options = {"epochs": 3, "verbose": 0, "callbacks": [Count()]}
    if way == "arrays":
        model.fit(x, y, 8, validation_data=(x, y), **options)
    elif way == "other":
        model.fit(x, y, batch_size=10, **options)
    elif way == "steps":
        model.fit(x, y, batch_size=8, steps_per_epoch=25, **options)
    elif way == "sequence":
        model.fit(Batches(), validation_data=Batches(), **options)
    else:
        import tensorflow as tf

        data = tf.data.Dataset.from_tensor_slices((x, y))
        batches = data.batch(8)
        if way == "dataset":
            model.fit(data.shuffle(100).batch(8).prefetch(2), validation_data=batches, **options)
        elif way == "endless":
            endless = data.repeat().batch(8)
            model.fit(endless, steps_per_epoch=50, validation_data=batches, validation_steps=20, **options)
        elif way == "repeated":
            model.fit(batches.repeat(), steps_per_epoch=50, **options)
        elif way == "unknown":
            model.fit(batches.filter(lambda *_: True), **options)
    assert len(model.predict(x, verbose=0)) == 400
    print()


for name in sys.argv[1:]:
    train(name)
