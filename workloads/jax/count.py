# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Prints the number of parameters of each model at its native image size, with 1000 classes except for the CNN."""

import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here, os.path.dirname(here), os.path.join(os.path.dirname(here), "datasets")]

import jax
from models import MODELS

for name, model in MODELS.items():
    made = model.make(10 if name == "cnn" else 1000, model.image_size)
    size = (model.image_size, model.image_size, 3)
    shapes = jax.eval_shape(lambda key: made.init(key, size)[0], jax.random.PRNGKey(0))
    print(name, sum(leaf.size for leaf in jax.tree_util.tree_leaves(shapes)))
