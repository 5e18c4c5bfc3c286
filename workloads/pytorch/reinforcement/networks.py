# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""The network of A3C (Mnih et al. 2016) without LSTM, and optimizers whose statistics are shared between processes."""

import torch
from torch import nn

# By size: numbers of filters, and the width of the layer after them.
WIDTHS = {"small": (8, 16, 64), "published": (16, 32, 256)}


class Agent(nn.Module):
    """From frames, uint8 [states, 4, 84, 84], to the logits of actions [states, actions] and the values of the states
    [states]."""

    def __init__(self, actions, first, second, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(4, first, 8, 4), nn.ReLU(), nn.Conv2d(first, second, 4, 2), nn.ReLU(),
            nn.Flatten(), nn.Linear(second * 9 * 9, width), nn.ReLU(),
        )  # fmt: skip
        self.policy, self.value = nn.Linear(width, actions), nn.Linear(width, 1)
        for layer in self.policy, self.value:  # at first all actions are as likely
            nn.init.normal_(layer.weight, std=0.01)
            nn.init.zeros_(layer.bias)

    def forward(self, frames):
        seen = self.body(frames.float() / 255)
        return self.policy(seen), self.value(seen)[:, 0]


def shared_optimizer(options, parameters, learning_rate):
    """RMSProp or Adam whose statistics are in shared memory, like the parameters: forked processes train together."""
    if options.optimizer == "adam":
        optimizer = torch.optim.Adam(parameters, lr=learning_rate)
        names = "exp_avg", "exp_avg_sq"
    else:
        optimizer = torch.optim.RMSprop(parameters, lr=learning_rate, alpha=0.99, eps=1e-5)
        names = ("square_avg",)
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            state = {name: torch.zeros_like(parameter).share_memory_() for name in names}
            optimizer.state[parameter] = {"step": torch.zeros(()).share_memory_(), **state}
    return optimizer
