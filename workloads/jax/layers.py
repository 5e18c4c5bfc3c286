# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Layers of neural networks in plain JAX.

A layer is two functions. init(key, shape) returns its parameters, its state and the shape of its output;
shape: [height, width, channels] or [features]. apply(parameters, state, x, key) returns the output
and the new state; x: float32 [batch, *shape]; without a key, the layer is not in training.
"""

import collections

import jax
import jax.numpy as jnp
from jax import lax

Layer = collections.namedtuple("Layer", "init apply")


def normal(key, shape, inputs):
    """Weights that preserve the scale of activations."""
    return jax.random.normal(key, shape) * inputs**-0.5


def convolution(filters, window, strides=1, padding=0, bias=True):
    """Windows of window x window."""

    def init(key, shape):
        height, width, channels = shape
        parameters = {"w": normal(key, (window, window, channels, filters), window**2 * channels)}
        if bias:
            parameters["b"] = jnp.zeros(filters)
        edges = [(edge + 2 * padding - window) // strides + 1 for edge in (height, width)]
        return parameters, (), (*edges, filters)

    def apply(parameters, state, x, key):
        around = [(padding, padding)] * 2
        y = lax.conv_general_dilated(x, parameters["w"], (strides, strides), around,
                                     dimension_numbers=("NHWC", "HWIO", "NHWC"))  # fmt: skip
        return y + parameters["b"] if bias else y, state

    return Layer(init, apply)


def dense(units):
    """A fully connected layer."""

    def init(key, shape):
        (inputs,) = shape
        parameters = {"w": normal(key, (inputs, units), inputs), "b": jnp.zeros(units)}
        return parameters, (), (units,)

    def apply(parameters, state, x, key):
        return x @ parameters["w"] + parameters["b"], state

    return Layer(init, apply)


def without_parameters(function, output_shape):
    """A layer that is a function of its input."""
    return Layer(lambda key, shape: ((), (), output_shape(shape)),
                 lambda parameters, state, x, key: (function(x), state))  # fmt: skip


relu = without_parameters(jax.nn.relu, lambda shape: shape)
flatten = without_parameters(lambda x: x.reshape(len(x), -1),
                             lambda shape: (shape[0] * shape[1] * shape[2],))  # fmt: skip
mean = without_parameters(lambda x: x.mean((1, 2)), lambda shape: shape[2:])


def max_pooling(window, strides, padding=0):
    """The maximum of each window."""

    def pool(x):
        around = [(0, 0), (padding, padding), (padding, padding), (0, 0)]
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, window, window, 1),
                                 (1, strides, strides, 1), around)  # fmt: skip

    def output_shape(shape):
        return (*((edge + 2 * padding - window) // strides + 1 for edge in shape[:2]), shape[2])

    return without_parameters(pool, output_shape)


def resized(edge):
    """Resizes to edge x edge, with the nearest pixels."""
    return without_parameters(
        lambda x: jax.image.resize(x, (len(x), edge, edge, x.shape[3]), "nearest"),
        lambda shape: (edge, edge, shape[2]))  # fmt: skip


def dropout(rate):
    """Drops a share of the inputs during training."""

    def apply(parameters, state, x, key):
        if key is None:
            return x, state
        kept = jax.random.bernoulli(key, 1 - rate, x.shape)
        return jnp.where(kept, x / (1 - rate), 0), state

    return Layer(lambda key, shape: ((), (), shape), apply)


def batch_normalisation(momentum=0.9, smallest=1e-5):
    """Normalises by mean and variance of the batch, or by the running ones."""

    def init(key, shape):
        ones, zeros = jnp.ones(shape[-1]), jnp.zeros(shape[-1])
        return {"scale": ones, "shift": zeros}, {"mean": zeros, "variance": ones}, shape

    def apply(parameters, state, x, key):
        now = state
        if key is not None:
            now = {"mean": x.mean((0, 1, 2)), "variance": x.var((0, 1, 2))}
            state = jax.tree_util.tree_map(
                lambda old, new: momentum * old + (1 - momentum) * new, state, now
            )
        scale = parameters["scale"] * lax.rsqrt(now["variance"] + smallest)
        return (x - now["mean"]) * scale + parameters["shift"], state

    return Layer(init, apply)


def serial(*layers):
    """Layers in sequence."""

    def init(key, shape):
        parameters, states = [], []
        for number, layer in enumerate(layers):
            parameter, state, shape = layer.init(jax.random.fold_in(key, number), shape)
            parameters.append(parameter)
            states.append(state)
        return parameters, states, shape

    def apply(parameters, states, x, key):
        after = []
        for number, (layer, parameter, state) in enumerate(zip(layers, parameters, states)):
            own = None if key is None else jax.random.fold_in(key, number)
            x, state = layer.apply(parameter, state, x, own)
            after.append(state)
        return x, after

    return Layer(init, apply)


def added(one, other):
    """The sum of the outputs of two layers for the same input."""

    def init(key, shape):
        first, second = one.init(key, shape), other.init(jax.random.fold_in(key, 1), shape)
        return [first[0], second[0]], [first[1], second[1]], first[2]

    def apply(parameters, states, x, key):
        x1, state1 = one.apply(parameters[0], states[0], x, key)
        x2, state2 = other.apply(parameters[1], states[1], x, key)
        return x1 + x2, [state1, state2]

    return Layer(init, apply)
