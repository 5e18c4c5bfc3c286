# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""How much of PyTorch's batches is padding: sequences of tokens that are shorter than the longest of their batch, or than a
fixed length, end with a value of their own. Only integers on the host are looked at, in a few batches."""

from collections.abc import Mapping
from itertools import islice

LOOKS = 1 << 10  # batches: the first, the second, the fourth, and so on, up to this one
ITEMS = 16  # of a batch, searched for tokens
LARGEST = 1 << 20  # elements of a tensor that is looked at
SHORTEST = 8  # elements of a sequence
WORDS = 16  # different values, more than a mask or a one-hot vector has


def look(torch, batch):
    """Elements of the first tensor of tokens in a batch that are padding, and all of them. (0, 0): there is none."""
    places = [batch]
    for place in places:
        if isinstance(place, torch.Tensor):
            if _is_sequences(torch, place):
                return _count(torch, place), place.numel()
        elif isinstance(place, (tuple, list)):
            places.extend(place[: max(ITEMS - len(places), 0)])
        elif isinstance(place, Mapping):
            places.extend(islice(place.values(), max(ITEMS - len(places), 0)))
    return 0, 0


def _is_sequences(torch, tensor):
    return (tensor.dtype in (torch.int64, torch.int32) and tensor.dim() == 2 and tensor.device.type == "cpu"
            and tensor.shape[0] > 1 and tensor.shape[1] >= SHORTEST and tensor.numel() <= LARGEST
            and len(torch.unique(tensor)) > WORDS)  # fmt: skip


def _count(torch, tokens):
    """Elements after the last one of each sequence that differs from the most frequent last value."""
    padding = tokens[:, -1].mode().values
    if int((tokens[:, -1] == padding).sum()) < 2:
        return 0
    return int((tokens != padding).flip(1).to(torch.uint8).argmax(1).sum())
