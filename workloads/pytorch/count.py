# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Prints the number of parameters of each model at its native image size, with 1000 classes except for the CNN.

The weights are not initialised: drawing 200 million takes a while.
"""

import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here, os.path.dirname(here), os.path.join(os.path.dirname(here), "datasets")]

import torch
from models import MODELS

for function in "kaiming_uniform_", "kaiming_normal_", "uniform_", "normal_", "trunc_normal_":
    setattr(torch.nn.init, function, lambda tensor, *_, **__: tensor)

for name, model in MODELS.items():
    made = model.make(10 if name == "cnn" else 1000, model.image_size)
    print(name, sum(parameter.numel() for parameter in made.parameters()))
