#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Trains a network with PyTorch to translate between two synthetic languages (datasets/language.py).

An ordinary training script, without any code for measurements: sentences of similar length share a batch, which is padded
to the longest of them. See ../../README.md.
"""

import os
import sys

workloads = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path += [os.path.join(workloads, "pytorch"), workloads, os.path.join(workloads, "datasets")]

import common
import jobs
import language
import torch
from language import BEGIN, END, PAD
from networks import NETWORKS
from torch.nn import functional

POOL = 50  # batches whose sentences are sorted by length


class Buckets(common.Order):
    """Batches of sentences of similar length, in random order."""

    def __init__(self, lengths, options):
        super().__init__(len(lengths), options)
        self.lengths, self.batch_size = torch.from_numpy(lengths), options.batch_size

    def __len__(self):
        return self.batches

    def __iter__(self):
        order = self.permutation()
        pools = [pool[self.lengths[pool].argsort()] for pool in order.split(POOL * self.batch_size)]
        batches = [batch for pool in pools for batch in pool.split(self.batch_size) if len(batch) == self.batch_size]
        generator = torch.Generator().manual_seed(self.epoch)
        chosen = torch.randperm(len(batches), generator=generator)[: self.batches]
        return (batches[number].tolist() for number in chosen.tolist())


def collate(pairs):
    """A batch. source: int64 [sentences, words]; lengths: of the sources, int64 [sentences]; target: int64
    [sentences, words], from BEGIN to END; ntokens, nsentences: number of target words to predict, and of sentences, as
    fairseq names them."""
    sources = [torch.from_numpy(source).long() for source, _ in pairs]
    ends = torch.tensor([BEGIN]), torch.tensor([END])
    targets = [torch.cat([ends[0], torch.from_numpy(target).long(), ends[1]]) for _, target in pairs]
    pad = torch.nn.utils.rnn.pad_sequence
    return {
        "source": pad(sources, batch_first=True, padding_value=PAD),
        "lengths": torch.tensor([len(source) for source in sources]),
        "target": pad(targets, batch_first=True, padding_value=PAD),
        "ntokens": sum(len(target) - 1 for target in targets),
        "nsentences": len(pairs),
    }


def forward(model, batch, device):
    """Loss per target word, and the number of words that were predicted correctly."""
    source, target = (batch[name].to(device, non_blocking=True) for name in ("source", "target"))
    scores = model(source, batch["lengths"], target[:, :-1]).flatten(0, 1)
    wanted = target[:, 1:].flatten()
    loss = functional.cross_entropy(scores, wanted, ignore_index=PAD)
    return loss, ((scores.detach().argmax(-1) == wanted) & (wanted != PAD)).sum()


def train_epoch(model, loader, optimizer, schedule, device):
    """One pass over the pairs; returns scores, and the number of words."""
    model.train()
    mean = common.Mean()
    for batch in loader:
        optimizer.zero_grad(set_to_none=True)
        loss, correct = forward(model, batch, device)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        schedule.step()
        mean.add(batch["ntokens"], loss, correct / batch["ntokens"])
    return dict(zip(("loss", "accuracy"), mean.means())), mean.weight, "tokens"


@torch.no_grad()
def validate(model, loader, device):
    """The same without training."""
    model.eval()
    mean = common.Mean()
    for batch in loader:
        loss, correct = forward(model, batch, device)
        mean.add(batch["ntokens"], loss, correct / batch["ntokens"])
    return dict(zip(("loss", "accuracy"), mean.means())), mean.weight, "tokens"


def make_schedule(optimizer, warm_up):
    """The learning rate rises for so many steps, then falls with the square root of their number, if there are many."""

    def factor(step):
        return min((step + 1) / warm_up, (max(warm_up, 1000) / max(step + 1, warm_up, 1000)) ** 0.5)

    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


def loader_of(count, size, options, device, first=0):
    """A loader of pairs, and its order."""
    pairs = language.Pairs(count, options.seed, size, first)
    order = Buckets(pairs.source_ends[1:] - pairs.source_ends[:-1], options)
    return common.make_loader(pairs, options, device, batch_sampler=order, collate_fn=collate), order


def main():
    """Trains."""
    parser = jobs.new_parser("Train a network with PyTorch to translate.", "sentences")
    parser.add_argument("--model", choices=sorted({model for model, _ in NETWORKS}), default="lstm")
    jobs.add_size(parser)
    jobs.add_validation(parser)
    jobs.add_training(parser, ("adam", "sgd"))
    options = parser.parse_args()
    size = language.SIZES[options.size]
    samples = options.samples or size.pairs
    jobs.check_samples(options, samples)
    device = common.begin(options)
    loader, order = loader_of(samples, size, options, device)
    unseen = None
    if options.validation_samples:
        unseen, _ = loader_of(options.validation_samples, size, options, device, samples)
    make, arguments, learning_rate, warm_up = NETWORKS[options.model, options.size]
    model = make(size.source_words, size.target_words, **arguments).to(device)
    optimizer = common.make_optimizer(options, model.parameters(), learning_rate)
    schedule = make_schedule(optimizer, warm_up)
    jobs.announce(options, common.count_parameters(model), samples, device.type, what="sentences")
    common.passes(options, order, lambda: train_epoch(model, loader, optimizer, schedule, device),
                  unseen and (lambda: validate(model, unseen, device)))  # fmt: skip


if __name__ == "__main__":
    jobs.run(main)
