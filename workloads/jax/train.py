#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Trains an image classifier with JAX, on synthetic images or a folder of JPEG files.

An ordinary training script, without any code for measurements. Run it with a Python that has JAX
(`make frameworks` installs one):

    .frameworks/python/bin/python train.py --dataset dt1 --batch-size 32 --epochs 3 --samples 12800

The workers are threads. Several processes share each batch, which is an array over all their devices.
See ../README.md.
"""

import os
import socket
import sys
import time
from functools import partial

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
workloads = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [workloads, os.path.join(workloads, "datasets")]

import images
import jax
import jax.numpy as jnp
import jobs
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from models import MODELS

COORDINATOR, RANK = "TRAIN_COORDINATOR", "TRAIN_RANK"  # environment of the processes that this one starts


def loss_of(model, size, parameters, state, x, classes, key):
    """Mean cross-entropy; sums of loss and correct images, and the new state."""
    if x.shape[1] != size:
        x = jax.image.resize(x, (len(x), size, size, 3), "bilinear")
    outputs, state = model.apply(parameters, state, x, key)
    logs = jax.nn.log_softmax(outputs)
    losses = -jnp.take_along_axis(logs, classes[:, None], 1)
    correct = (outputs.argmax(1) == classes).sum()
    return losses.mean(), (jnp.stack([losses.sum(), correct]), state)


def adam(parameters, gradients, means, squares, step, rate):
    """One step of Adam (Kingma and Ba 2015). step: from 1."""
    each = jax.tree_util.tree_map
    means = each(lambda m, g: 0.9 * m + 0.1 * g, means, gradients)
    squares = each(lambda s, g: 0.999 * s + 0.001 * g * g, squares, gradients)

    def updated(p, m, s):
        return p - rate * (m / (1 - 0.9**step)) / (jnp.sqrt(s / (1 - 0.999**step)) + 1e-8)

    return each(updated, parameters, means, squares), means, squares


def make_steps(model, options):
    """The compiled functions: a training step, and the score of a batch."""
    rate = MODELS[options.model].learning_rate

    @partial(jax.jit, donate_argnums=0)
    def train_step(carried, x, classes):
        parameters, state, means, squares, step = carried
        key = jax.random.fold_in(jax.random.PRNGKey(options.seed), step)
        scored = partial(loss_of, model, options.image_size)
        (_, (score, state)), gradients = jax.value_and_grad(scored, has_aux=True)(
            parameters, state, x, classes, key
        )
        after = adam(parameters, gradients, means, squares, step, rate)
        return (after[0], state, *after[1:], step + 1), score

    @jax.jit
    def score(carried, x, classes):
        return loss_of(model, options.image_size, *carried[:2], x, classes, None)[1][0]

    return train_step, score


class Devices:
    """The devices of a batch: one, or one per process."""

    def __init__(self, options):
        devices = jax.devices()[: options.processes]
        mesh = Mesh(devices, ("batch",))
        self.shared = NamedSharding(mesh, PartitionSpec("batch"))
        self.everywhere = NamedSharding(mesh, PartitionSpec())
        self.several = options.processes > 1
        self.name = devices[0].platform

    def put(self, array, sharding):
        """This process's part of an array."""
        if self.several:
            return jax.make_array_from_process_local_data(sharding, jax.device_get(array))
        return jax.device_put(array, sharding)

    def batch(self, x, classes):
        """A batch, with a share in each process."""
        return self.put(x, self.shared), self.put(classes, self.shared)

    def copies(self, tree):
        """A tree that each process has as a whole."""
        return jax.tree_util.tree_map(lambda leaf: self.put(leaf, self.everywhere), tree)


def train_pass(step, carried, batches, devices):
    """One pass over the data; returns the new state, and the sums of loss and correct images."""
    loss = correct = 0.0
    waiting = None
    for batch in batches:
        carried, score = step(carried, *devices.batch(*batch))
        if waiting is not None:  # one step later: the device already has the next one
            loss, correct = loss + float(waiting[0]), correct + float(waiting[1])
        waiting = score
    return carried, (loss + float(waiting[0]), correct + float(waiting[1]))


def score_pass(score, carried, batches, devices):
    """The same without training."""
    found = [score(carried, *devices.batch(*batch)) for batch in batches]
    return sum(float(each[0]) for each in found), sum(float(each[1]) for each in found)


def begin(options, model, edge, devices):
    """Parameters, state, Adam's means and squares, the step's number."""
    key = jax.random.PRNGKey(options.seed)
    parameters, state, _ = jax.jit(lambda key: model.init(key, (edge, edge, 3))[:2] + (0,))(key)
    zeros = jax.tree_util.tree_map(jnp.zeros_like, parameters)
    again = jax.tree_util.tree_map(jnp.zeros_like, parameters)
    return devices.copies((parameters, state, zeros, again, jnp.ones((), jnp.int32)))


def train(options, rank):
    """The work of each process."""
    training, unseen = images.split(options)
    devices = Devices(options)
    classes = options.classes or training.class_count
    model = MODELS[options.model].make(classes, options.image_size)
    carried = begin(options, model, options.image_size, devices)
    step, score = make_steps(model, options)
    loader = images.Loader(options, rank)
    if rank == 0:
        leaves = jax.tree_util.tree_leaves(carried[0])
        parameters = sum(leaf.size for leaf in leaves)
        jobs.announce(options, parameters, training.samples, devices.name, training.edge)
    for epoch in range(options.epochs):
        start = time.perf_counter()
        carried, found = train_pass(step, carried, loader.batches(training, epoch), devices)
        if rank == 0:
            say("epoch", epoch, options, found, training.samples, start)
        if unseen:
            start = time.perf_counter()
            found = score_pass(score, carried, loader.batches(unseen, epoch), devices)
            if rank == 0:
                say("validation", epoch, options, found, unseen.samples, start)


def say(what, epoch, options, found, samples, start):
    """Prints the line of a pass."""
    count = samples // options.batch_size * options.batch_size
    seconds = time.perf_counter() - start
    jobs.say(what, epoch + 1, options, found[0] / count, found[1] / count, count, seconds)


def join(options, coordinator, rank):
    """Joins the other processes, before any other use of JAX."""

    jax.distributed.initialize(coordinator, options.processes, rank)
    train(options, rank)
    jax.distributed.shutdown()  # waits for the others


def main():
    """Trains in this process, and in others."""
    options = jobs.parse_options("Train an image classifier with JAX.", MODELS)
    if options.threads:  # JAX reads it when it starts the threads of its CPU
        os.environ["NPROC"] = os.environ["PJRT_NPROC"] = str(options.threads)
    if options.processes == 1:
        train(options, 0)
    elif RANK in os.environ:
        join(options, os.environ[COORDINATOR], int(os.environ[RANK]))
    else:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            coordinator = f"127.0.0.1:{free.getsockname()[1]}"
        environment = {**os.environ, COORDINATOR: coordinator}
        ranks = range(1, options.processes)
        with jobs.others({**environment, RANK: str(rank)} for rank in ranks):
            join(options, coordinator, 0)


if __name__ == "__main__":
    jobs.run(main)
