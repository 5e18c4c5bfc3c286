#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Trains an image classifier with TensorFlow and Keras, on synthetic images or a folder of JPEG
files.

An ordinary training script, without any code for measurements. Run it with a Python that has
TensorFlow (`make frameworks` installs one):

    .frameworks/python/bin/python train.py --dataset dt1 --batch-size 32 --epochs 3 --samples 12800

The workers are threads of tf.data. Several processes are workers of a
MultiWorkerMirroredStrategy, which Keras 3 does not support: they use Keras 2 (tf_keras).
See ../README.md.
"""

import contextlib
import json
import os
import socket
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
workloads = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [workloads, os.path.join(workloads, "datasets")]

import jobs
import models


def lines(keras, options, count):
    """A callback that prints the line of each pass."""

    class Lines(keras.callbacks.Callback):
        """Validation begins when training ends."""

        def on_epoch_begin(self, epoch, logs=None):
            self.epoch, self.begun = epoch + 1, {"epoch": time.perf_counter()}

        def on_test_begin(self, logs=None):
            self.begun["validation"] = time.perf_counter()

        def on_epoch_end(self, epoch, logs=None):
            now = time.perf_counter()
            middle = self.begun.get("validation", now)
            jobs.say("epoch", self.epoch, options, logs["loss"], logs["accuracy"], count,
                     middle - self.begun["epoch"])  # fmt: skip
            if "val_loss" in logs:
                whole = options.validation_samples // options.batch_size * options.batch_size
                jobs.say("validation", self.epoch, options, logs["val_loss"],
                         logs["val_accuracy"], whole, now - middle)  # fmt: skip

    return Lines()


def set_devices(tf, options, rank):
    """Sets a GPU for each process, else the CPUs; and the number of threads."""
    if options.threads:
        tf.config.threading.set_intra_op_parallelism_threads(options.threads)
    gpus = tf.config.list_physical_devices("GPU")
    if options.processes > 1 and len(gpus) >= options.processes:
        tf.config.set_visible_devices(gpus[rank], "GPU")
    return "gpu" if gpus else "cpu"


def train(options, rank):
    """The work of each process."""
    import tensorflow as tf  # noqa: PLC0415  a wrong option does not need it

    if options.processes > 1:
        import tf_keras as keras  # noqa: PLC0415
    else:
        import keras  # noqa: PLC0415
    import images  # noqa: PLC0415

    device = set_devices(tf, options, rank)
    strategy = tf.distribute.get_strategy()
    if options.processes > 1:
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
    training, unseen = images.split(options)
    with strategy.scope():
        keras.utils.set_random_seed(options.seed)
        model = models.make(keras, options.model, options.classes or training.class_count,
                            options.image_size, training.edge)  # fmt: skip
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        rate = models.MODELS[options.model].learning_rate
        model.compile(keras.optimizers.Adam(rate), loss, metrics=["accuracy"])

    def batches(what):
        if options.processes == 1:
            return images.batches(what, options, 0)
        return strategy.distribute_datasets_from_function(
            lambda context: images.batches(what, options, rank)
        )

    steps = training.samples // options.batch_size
    more = {}
    if unseen:
        more = {"validation_data": batches(unseen),
                "validation_steps": unseen.samples // options.batch_size}  # fmt: skip
    if rank == 0:
        parameters = sum(int(tf.size(weights)) for weights in model.trainable_weights)
        jobs.announce(options, parameters, training.samples, device, training.edge)
        more["callbacks"] = [lines(keras, options, steps * options.batch_size)]
    if options.processes > 1:
        more["steps_per_epoch"] = steps
    model.fit(batches(training), epochs=options.epochs, shuffle=False, verbose=0, **more)


def free_addresses(count):
    """Unused ports of this machine."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]


def cluster(addresses, rank):
    """The description of the other processes for TensorFlow."""
    return json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": rank}})


def main():
    """Trains in this process, and in others, which are started with TF_CONFIG."""
    options = jobs.parse_options("Train an image classifier with TensorFlow.", models.MODELS)
    given = os.environ.get("TF_CONFIG")
    if options.processes == 1 or given:
        train(options, json.loads(given)["task"]["index"] if given else 0)
        return
    addresses = free_addresses(options.processes)
    ranks = range(1, options.processes)
    with jobs.others({**os.environ, "TF_CONFIG": cluster(addresses, rank)} for rank in ranks):
        os.environ["TF_CONFIG"] = cluster(addresses, 0)
        train(options, 0)


if __name__ == "__main__":
    jobs.run(main)
