# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""How much of PyTorch's batches is padding: sequences of tokens that are shorter than the longest of their batch, or than a
fixed length, end with a value of their own. Only integers on the host are looked at, in a few batches."""

from collections.abc import Mapping
from itertools import islice

LOOKS = 1 << 10  # batches: the first, the second, the fourth, and so on, up to this one
ITEMS = 16  # of a batch, searched for tokens
ELEMENTS = 1 << 14  # of a tensor that are looked at: too few for PyTorch to start threads
SHORTEST = 8  # elements of a sequence
WORDS = 16  # different values, more than a mask or a one-hot vector has


def look(torch, batch):
    """Elements of the first tensor of tokens in a batch that are padding, and all of them. (0, 0): there is none."""
    places = [batch]
    for place in places:
        if isinstance(place, torch.Tensor):
            tokens = _first_sequences(torch, place)
            if tokens is not None:
                return _count(torch, tokens), tokens.numel()
        elif isinstance(place, (tuple, list)):
            places.extend(place[: max(ITEMS - len(places), 0)])
        elif isinstance(place, Mapping):
            places.extend(islice(place.values(), max(ITEMS - len(places), 0)))
    return 0, 0


def _first_sequences(torch, tensor):
    """The first rows of a tensor of tokens; None if it is none."""
    if tensor.dtype not in (torch.int64, torch.int32) or tensor.dim() != 2 or tensor.device.type != "cpu":
        return None
    rows = min(tensor.shape[0], ELEMENTS // max(tensor.shape[1], 1))
    if rows < 2 or tensor.shape[1] < SHORTEST:
        return None
    tokens = tensor[:rows]
    return tokens if len(torch.unique(tokens)) > WORDS else None


def _count(torch, tokens):
    """Elements after the last one of each sequence that differs from the most frequent last value."""
    padding = tokens[:, -1].mode().values
    if int((tokens[:, -1] == padding).sum()) < 2:
        return 0
    return int((tokens != padding).flip(1).to(torch.uint8).argmax(1).sum())
