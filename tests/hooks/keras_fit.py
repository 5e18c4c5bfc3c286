# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Small trainings with Keras, for tests/cli/hooks_keras.bats: keras_fit.py WAY. Prints each loss in
all its digits."""

import os
import sys
import time

import numpy as np

if os.environ.get("KERAS") == "2":
    import tf_keras as keras
else:
    import keras

SAMPLES, SIZE = 100, 16


def arrays(samples=SAMPLES):
    """Images and labels, the same each time."""
    random = np.random.default_rng(1)
    x = random.standard_normal((samples, 8, 8, 1), dtype="float32")
    return x, random.integers(0, 10, samples)


def network(**options):
    """A compiled model, the same each time."""
    keras.utils.set_random_seed(1)
    layers = [keras.layers.Input((8, 8, 1)), keras.layers.Flatten(), keras.layers.Dense(32, "relu"),
              keras.layers.Dropout(0.2), keras.layers.Dense(10)]  # fmt: skip
    model = keras.Sequential(layers)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(), loss, **options)
    return model


def tell(history):
    """All losses, to the last bit."""
    for name, values in sorted(history.history.items()):
        print(name, *(float(value).hex() for value in values))


def fit():
    """Two epochs of six batches of 16 and one of 4, validated and saved after each."""
    x, y = arrays()
    saves = keras.callbacks.ModelCheckpoint("model.keras")
    model = network()
    options = {"batch_size": SIZE, "epochs": 2, "verbose": 0, "callbacks": [saves]}
    tell(model.fit(x, y, validation_data=(x[:32], y[:32]), **options))


def eagerly():
    """Layers of which each operation is dispatched by itself."""
    x, y = arrays(320)
    tell(network(run_eagerly=True).fit(x, y, batch_size=4, epochs=8, verbose=0))


def debugging():
    """Settings of TensorFlow that were left on."""
    import tensorflow as tf

    tf.config.experimental.enable_op_determinism()
    tf.debugging.enable_check_numerics()
    tf.data.experimental.enable_debug_mode()
    x, y = arrays(320)
    data = tf.data.Dataset.from_tensor_slices((x, y.astype("float32"))).batch(4)
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.layers.Input((8, 8, 1)), keras.layers.Flatten(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    tell(model.fit(data, epochs=2, verbose=0))


def slow():
    """Every batch takes 30 ms to prepare, in a data set of TensorFlow's."""
    import tensorflow as tf

    def prepare(x, y):
        time.sleep(0.03)
        return x, y

    def shaped(x, y):
        x, y = tf.numpy_function(prepare, [x, y], [tf.float32, tf.int64])
        return tf.ensure_shape(x, [None, 8, 8, 1]), tf.ensure_shape(y, [None])

    data = tf.data.Dataset.from_tensor_slices(arrays(640)).batch(SIZE, drop_remainder=True)
    tell(network().fit(data.map(shaped).prefetch(1), epochs=2, verbose=0))


def several():
    """Four steps in a call, and saved in the middle of an epoch."""
    x, y = arrays(320)
    model = network(steps_per_execution=4)
    saves = keras.callbacks.ModelCheckpoint("model.weights.h5", save_weights_only=True, save_freq=8)
    tell(model.fit(x, y, batch_size=SIZE, epochs=2, verbose=0, callbacks=[saves]))


def raises():
    """A fit that is left by an exception, and one after it."""
    x, y = arrays()
    model = network()

    class Stop(keras.callbacks.Callback):
        """Ends the third batch of the first fit."""

        def on_train_batch_end(self, batch, logs=None):
            if batch == 2:
                raise RuntimeError("enough")

    try:
        model.fit(x, y, batch_size=SIZE, verbose=0, callbacks=[Stop()])
    except RuntimeError as error:
        print(error)
    tell(model.fit(x, y, batch_size=SIZE, epochs=1, verbose=0))
    model.predict(x, verbose=0)
    print(float(model.evaluate(x, y, verbose=0)).hex())


def forks():
    """A child in the middle of a fit, with one of its own."""
    x, y = arrays()

    class Fork(keras.callbacks.Callback):
        """In the third batch."""

        def on_train_batch_end(self, batch, logs=None):
            child = os.fork() if batch == 2 else -1
            if child == 0:
                inner = keras.callbacks.CallbackList([])
                inner.on_train_begin()
                inner.on_epoch_begin(8)
                inner.on_epoch_end(8)
                os._exit(0)
            if child > 0:
                os.waitpid(child, 0)

    tell(network().fit(x, y, batch_size=SIZE, verbose=0, callbacks=[Fork()]))


def sequence(workers=1):
    """Batches of a PyDataset, the last one smaller, and batches of a generator, of any size."""
    x, y = arrays()

    class Batches(keras.utils.PyDataset):
        def __len__(self):
            return -(-SAMPLES // SIZE)

        def __getitem__(self, at):
            time.sleep(0.03)
            part = slice(at * SIZE, min((at + 1) * SIZE, SAMPLES))
            return x[part], y[part]

    def sizes():
        for size in (4, 8, 12, 16):
            yield x[:size], y[:size]

    model = network()
    tell(model.fit(Batches(workers=workers), validation_data=Batches(), epochs=2, shuffle=False, verbose=0))
    tell(model.fit(sizes(), epochs=1, verbose=0))


def threads():
    """The same, prepared by three threads."""
    sequence(3)


def generator():
    """Batches from a generator, until there are none."""
    x, y = arrays()

    def batches():
        for begin in range(0, SAMPLES, SIZE):
            time.sleep(0.02)
            yield x[begin : begin + SIZE], y[begin : begin + SIZE]

    tell(network().fit(batches(), epochs=1, verbose=0))


def taped(compiled=True):
    """Two epochs around a tape, a validation after each."""
    import tensorflow as tf

    x, y = arrays()
    model, optimizer = network(), keras.optimizers.SGD(0.1)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    test = tf.function(model)
    step = tf.function(step) if compiled else step
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(SIZE)
    others = tf.data.Dataset.from_tensor_slices(x[:64]).batch(SIZE)
    for _ in range(2):
        for batch in data:
            loss = step(*batch)
        for batch in others:
            test(batch)
        print(float(loss).hex())


def agent():
    """predict() twice before each step, as an agent that learns while it acts; a function that is traced anew for
    each number."""
    import tensorflow as tf

    x, y = arrays()
    model = network()
    scale = tf.function(lambda value, by: value * by)
    for begin in range(0, 20 * SIZE, SIZE):
        at = begin % (SAMPLES - SIZE)
        guesses = [model.predict(x[at : at + SIZE], verbose=0) for _ in range(2)]
        loss = model.train_on_batch(x[at : at + SIZE], y[at : at + SIZE])
        loss = scale(tf.constant(float(np.ravel(loss)[0])), begin + 1)
    print(float(loss).hex(), guesses[0].sum().hex() if hasattr(guesses[0].sum(), "hex") else guesses[0].sum())


def eager():
    """The same, and nothing is compiled."""
    taped(False)


if __name__ == "__main__":
    ways = {"fit": fit, "slow": slow, "several": several, "raises": raises, "generator": generator}
    ways.update(debugging=debugging, eagerly=eagerly, sequence=sequence, threads=threads, forks=forks)
    ways.update(taped=taped, eager=eager, agent=agent)
    ways[sys.argv[1]]()
