# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Prints the number of parameters of each model at its native image size, with 1000 classes except for the CNN."""

import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here, os.path.dirname(here), os.path.join(os.path.dirname(here), "datasets")]

import keras
import models

for name, model in models.MODELS.items():
    size = model.image_size
    made = models.make(keras, name, 10 if name == "cnn" else 1000, size, size)
    print(name, sum(weights.shape.num_elements() for weights in made.trainable_weights))
