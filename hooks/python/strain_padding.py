# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""How much of PyTorch's batches is padding: sequences of tokens that are shorter than the longest of their batch, or than a
fixed length, end (or begin) with a value of their own. Only integers on the host are looked at, in a few batches."""

from collections.abc import Mapping
from itertools import islice

LOOKS = 1 << 10  # batches: the first, the second, the fourth, and so on, up to this one
ITEMS = 16  # of a batch, searched for tokens
ELEMENTS = 1 << 14  # of a tensor that are looked at: too few for PyTorch to start threads
SHORTEST = 8  # elements of a sequence
WORDS = 16  # different values, more than a mask or a one-hot vector has
CHUNKS = 16  # pieces of ELEMENTS that are looked at


def look(torch, batch):
    """Of the first tensor of tokens in a batch: elements that are padding, those of them after the end (or before the start) of the
    longest sequence, all, and sequences. (0, 0, 0, 0): there is none."""
    places = [batch]
    for place in places:
        if isinstance(place, torch.Tensor):
            tokens = _first_sequences(torch, place)
            if tokens is not None:
                return _count(torch, tokens)
        elif isinstance(place, (tuple, list)):
            places.extend(place[: max(ITEMS - len(places), 0)])
        elif isinstance(place, Mapping):
            places.extend(islice(place.values(), max(ITEMS - len(places), 0)))
    return 0, 0, 0, 0


def _first_sequences(torch, tensor):
    """The first rows of a tensor of tokens; None if it is none."""
    if tensor.dtype not in (torch.int64, torch.int32) or tensor.dim() != 2 or tensor.device.type != "cpu":
        return None
    rows = ELEMENTS // max(tensor.shape[1], 1)
    if min(rows, tensor.shape[0]) < 2 or tensor.shape[1] < SHORTEST:
        return None
    chunks = tensor[: CHUNKS * rows].split(rows)
    return chunks if len(torch.unique(chunks[0])) > WORDS else None


def _count(torch, chunks):
    """Padding is on the side that has more of it: most sequences are padded at their end, those of models that generate text
    also before their start. There, one token of all sequences is a mark of the start."""
    rows, columns = sum(len(tokens) for tokens in chunks), chunks[0].shape[1]
    after = _padding(torch, [tokens.flip(1) for tokens in chunks])
    before = _padding(torch, chunks)
    padding, least = before if before[0] > max(after[0], 2 * rows) else after
    return padding, least * rows, rows * columns, rows


def _padding(torch, chunks):
    """What comes before the first element of a sequence that differs from the most frequent first value: the sum over all
    sequences, and the least."""
    first = chunks[0][:, 0]
    value = first.mode().values
    if int((first == value).sum()) < 2:
        return 0, 0
    total, least = 0, chunks[0].shape[1]
    for tokens in chunks:
        others = tokens != value
        counts = others.to(torch.uint8).argmax(1)
        counts[~others.any(1)] = tokens.shape[1]  # an empty sequence
        total += int(counts.sum())
        least = min(least, int(counts.min()))
    return total, least
