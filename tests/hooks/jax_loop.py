# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Small training loops on JAX, for tests/cli/hooks_jax.bats: jax_loop.py WAY. Prints losses in all
their digits."""

import sys
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

SAMPLES, SIZE = 320, 16


def arrays():
    """Rows and labels, the same each time."""
    random = np.random.default_rng(1)
    return random.standard_normal((SAMPLES, 64), dtype="float32"), random.integers(0, 10, SAMPLES)


def begin():
    """Parameters, the same each time."""
    one, two = jax.random.split(jax.random.PRNGKey(0))
    return {"a": 0.1 * jax.random.normal(one, (64, 32)), "b": 0.1 * jax.random.normal(two, (32, 10))}


def loss_of(parameters, x, y):
    """Cross-entropy of two layers."""
    scores = jax.nn.relu(x @ parameters["a"]) @ parameters["b"]
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(scores) * jax.nn.one_hot(y, 10), -1))


def descend(parameters, gradients):
    """A step of gradient descent."""
    return jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, parameters, gradients)


@partial(jax.jit, donate_argnums=0)
def step(parameters, x, y):
    """All of a step in one."""
    loss, gradients = jax.value_and_grad(loss_of)(parameters, x, y)
    return descend(parameters, gradients), loss


@jax.jit
def accuracy(parameters, x, y):
    """For an evaluation."""
    return jnp.mean(jnp.argmax(jax.nn.relu(x @ parameters["a"]) @ parameters["b"], -1) == y)


def batches(rest_s=0.0):
    """Rows and labels, 16 at a time."""
    x, y = arrays()
    for at in range(0, SAMPLES, SIZE):
        time.sleep(rest_s)
        yield x[at : at + SIZE], y[at : at + SIZE]


def one():
    """Two epochs of 20 steps, each batch after 10 ms, the loss read each time; and evaluated."""
    parameters = begin()
    for _ in range(2):
        for x, y in batches(0.01):
            parameters, loss = step(parameters, x, y)
            last = float(loss)
        print(last.hex(), float(sum(accuracy(parameters, x, y) for x, y in batches())))


def eager():
    """Only the gradients are compiled; the update calls small jitted functions: one twice, a counter that
    gets its results back, and one whose results are gone before it is called with new arrays."""
    gradient = jax.jit(jax.value_and_grad(loss_of))
    scale = jax.jit(lambda gradients, rate: jax.tree_util.tree_map(lambda g: g * rate, gradients))
    count, correct = jax.jit(lambda n: n + 1), jax.jit(lambda moment, n: moment / (1 - 0.9 ** n))
    parameters, n = begin(), jax.numpy.zeros((), "int32")
    for _ in range(2):
        for x, y in batches():
            loss, gradients = gradient(parameters, x, y)
            time.sleep(0.01)
            n = count(n)
            for leaf in jax.tree_util.tree_leaves(gradients) * 3:
                correct(leaf * 0.1, n)
            one, two = scale(gradients, 0.05), scale(gradients, 0.05)
            parameters = jax.tree_util.tree_map(lambda p, g, h: p - g - h, parameters, one, two)
    print(float(loss).hex())


def growing():
    """Each batch has one row more than the last: the step is compiled for each."""
    x, y = arrays()
    parameters = begin()
    for size in range(SIZE, 2 * SIZE):
        parameters, loss = step(parameters, x[:size], y[:size])
        loss.block_until_ready()
    print(float(loss).hex())


def two():
    """The gradient and the update are functions of their own; a key is split beside them."""
    gradient, update = jax.jit(jax.value_and_grad(loss_of)), jax.jit(descend)
    split = jax.jit(lambda key: jax.random.split(key)[0])
    parameters, key = begin(), jax.random.PRNGKey(3)
    for x, y in batches():
        key = split(key)
        loss, gradients = gradient(parameters, x, y)
        parameters = update(parameters, gradients)
    print(float(loss).hex())


def loader():
    """Batches come from a DataLoader of PyTorch, which is not trained here."""
    sys.path.append("/usr/lib/python3/dist-packages")
    from torch import tensor
    from torch.utils.data import DataLoader, TensorDataset

    x, y = arrays()
    rows = DataLoader(TensorDataset(tensor(x.tolist()), tensor(y.tolist())), batch_size=SIZE)
    parameters = begin()
    for _ in range(2):
        for x, y in rows:
            parameters, loss = step(parameters, np.array(x.tolist()), np.array(y.tolist()))
        print(float(loss).hex())


def kinds():
    """What a jitted function can be asked for is there."""
    lowered = step.lower(begin(), *next(batches()))
    assert lowered.compile() is not None
    assert isinstance(step, jax.stages.Wrapped)
    assert step.__name__ == "step" and step.__doc__ == "All of a step in one."

    class Model:
        """Has a jitted method."""

        @partial(jax.jit, static_argnums=0)
        def double(self, x):
            """Twice."""
            return 2 * x

    assert float(Model().double(2.0)) == 4.0
    assert float(jax.grad(jax.jit(lambda x: x * x))(3.0)) == 6.0
    assert jax.vmap(jax.jit(lambda x: x + 1))(jnp.zeros(3)).sum() == 3
    assert jax.jit(jax.jit(lambda x: x + 1))(1.0) == 2
    try:
        jax.jit(lambda x: x.missing)(1.0)
    except AttributeError as error:
        print(type(error).__name__)
    deleted = jnp.ones(3)
    deleted.delete()
    try:
        deleted.block_until_ready()
    except RuntimeError:
        print("deleted")


if __name__ == "__main__":
    {"one": one, "two": two, "growing": growing, "eager": eager, "loader": loader, "kinds": kinds}[sys.argv[1]]()
