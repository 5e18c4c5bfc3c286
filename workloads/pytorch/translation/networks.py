# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Networks that translate. Both take source words [sentences, words] (0: none), their numbers of words [sentences] on the
CPU, and target words [sentences, words], and return scores of the next target words [sentences, words, vocabulary]."""

import math

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Recurrent(nn.Module):
    """Two layers of LSTM that read, two that write, and attention over what was read: Luong, Pham and Manning (2015), with
    the score "general" and without input feeding. Published: a width of 512."""

    def __init__(self, source_words, target_words, width=128, layers=2, dropout=0.0):
        super().__init__()
        self.source = nn.Embedding(source_words, width, padding_idx=0)
        self.target = nn.Embedding(target_words, width, padding_idx=0)
        self.reader = nn.LSTM(width, width, layers, batch_first=True, dropout=dropout)
        self.writer = nn.LSTM(width, width, layers, batch_first=True, dropout=dropout)
        self.score = nn.Linear(width, width, bias=False)
        self.combine = nn.Linear(2 * width, width, bias=False)
        self.last = nn.Linear(width, target_words, bias=False)

    def forward(self, source, lengths, target):
        packed = pack_padded_sequence(self.source(source), lengths, batch_first=True, enforce_sorted=False)
        packed, state = self.reader(packed)
        read, _ = pad_packed_sequence(packed, batch_first=True, total_length=source.shape[1])
        written, _ = self.writer(self.target(target), state)
        scores = self.score(written) @ read.transpose(1, 2)
        weights = scores.masked_fill((source == 0)[:, None], -math.inf).softmax(-1)
        return self.last(torch.tanh(self.combine(torch.cat([weights @ read, written], -1))))


class Transformer(nn.Module):
    """The encoder and decoder of Vaswani et al. (2017), with sinusoids for positions, and the output's weights are those of
    the target embedding. Published: "base", a width of 512, 8 heads, 6 layers each, 2048 inside."""

    def __init__(self, source_words, target_words, width=64, heads=4, layers=2, inside=256, dropout=0.0):
        super().__init__()
        self.width = width
        self.source = nn.Embedding(source_words, width, padding_idx=0)
        self.target = nn.Embedding(target_words, width, padding_idx=0)
        for embedding in self.source, self.target:
            nn.init.normal_(embedding.weight, std=width**-0.5)
        self.dropout = nn.Dropout(dropout)
        self.body = nn.Transformer(width, heads, layers, layers, inside, dropout, batch_first=True)
        # Evaluate like training, and not with nested tensors, of which PyTorch warns.
        self.body.encoder.enable_nested_tensor = self.body.encoder.use_nested_tensor = False
        self.last = nn.Linear(width, target_words, bias=False)
        self.last.weight = self.target.weight

    def embedded(self, embedding, words):
        """Embeddings with positions."""
        place = torch.arange(words.shape[1], device=words.device)[:, None]
        steps = torch.arange(0, self.width, 2, device=words.device) * (-math.log(1e4) / self.width)
        angles = place * steps.exp()
        positions = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
        return self.dropout(embedding(words) * math.sqrt(self.width) + positions)

    def forward(self, source, lengths, target):
        del lengths
        length = target.shape[1]
        later = torch.ones(length, length, dtype=torch.bool, device=target.device).triu(1)
        none = source == 0
        states = self.body(self.embedded(self.source, source), self.embedded(self.target, target), tgt_mask=later,
                           src_key_padding_mask=none, tgt_key_padding_mask=target == 0,
                           memory_key_padding_mask=none)  # fmt: skip
        return self.last(states)


# By model and size: the class with its arguments, the learning rate of Adam, and the steps until it is reached.
NETWORKS = {
    ("lstm", "small"): (Recurrent, {}, 4e-3, 1),
    ("lstm", "published"): (Recurrent, {"width": 512, "dropout": 0.2}, 1e-3, 1),
    ("transformer", "small"): (Transformer, {}, 3e-3, 100),
    ("transformer", "published"): (Transformer, {"width": 512, "heads": 8, "layers": 6, "inside": 2048, "dropout": 0.1},
                                   7e-4, 4000),
}  # fmt: skip
