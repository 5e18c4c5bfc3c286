# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Training loops as public scripts write them, each with its own count: counts.py CASE FILE. The file gets, as
JSON, what the case counted: iterations, samples (null where it has none that could be known), epochs, and
the phases that must be, or must not be, there."""

import atexit
import itertools
import json
import math
import os
import random
import shutil
import sys
import tempfile
import textwrap
import time
from collections import namedtuple
from collections.abc import Mapping

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

CASES = {}


def case(function):
    """Registers a case."""
    CASES[function.__name__] = function
    return function


class Count:
    """What the script itself counts."""

    def __init__(self):
        self.iterations = self.samples = self.epochs = 0
        self.phases, self.absent = [], []
        self.most = {}  # how often a phase may occur

    def step(self, samples=None):
        """An iteration was done."""
        self.iterations += 1
        self.samples = None if samples is None or self.samples is None else self.samples + samples


def mlp(inputs=8, outputs=2):
    """A model."""
    return nn.Sequential(nn.Linear(inputs, 16), nn.ReLU(), nn.Linear(16, outputs))


def rows(n=50, inputs=8, classes=2):
    """Samples and their classes."""
    return TensorDataset(torch.randn(n, inputs), torch.randint(classes, (n,)))


def sgd(model, rate=0.01):
    """Its optimizer."""
    return torch.optim.SGD(model.parameters(), lr=rate)


def update(model, rate=0.01):
    """Descends without an optimizer."""
    with torch.no_grad():
        for p in model.parameters():
            p -= rate * p.grad
            p.grad = None


# Loops over a loader ---------------------------------------------------------------------------------


@case
def plain(count):
    """pytorch/examples/mnist: trains, tests, with a last batch that is smaller."""
    model, train, test = mlp(), DataLoader(rows(50), 8), DataLoader(rows(30), 10)
    optimizer = sgd(model)
    for _ in range(3):
        model.train()
        for x, y in train:
            optimizer.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            count.step(len(x))
        count.epochs += 1
        model.eval()
        with torch.no_grad():
            for x, _ in test:
                model(x)
    count.phases += ["data", "forward", "backward", "optimizer", "validation"]


class Dicts(Dataset):
    """Samples as Hugging Face has them."""

    def __len__(self):
        return 30

    def __getitem__(self, index):
        return {"name": str(index), "input": torch.full((8,), float(index)), "label": index % 2}


def every_fourth(count, evaluate, sizes=(8, 8, 8, 8, 8, 8, 2)):
    """Calls evaluate(model) after every fourth step, in the middle of an epoch."""
    model, loader = mlp(), DataLoader(rows(sum(sizes)), 8, shuffle=True)
    optimizer, steps = sgd(model), 0
    for _ in range(4):
        for x, y in loader:
            optimizer.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            count.step(len(x))
            steps += 1
            if steps % 4 == 0:
                evaluate(model)
        count.epochs += 1


@case
def validated_within(count):
    """Batches that the script cuts out of held-out samples, between two steps."""
    held_out = torch.randn(40, 8)

    @torch.no_grad()
    def evaluate(model):
        model.eval()
        for i in range(0, 40, 8):
            model(held_out[i : i + 8]).sum().item()
        model.train()

    every_fourth(count, evaluate)
    count.phases = ["data", "forward", "backward", "optimizer", "validation"]


@case
def looked_at_within(count):
    """A copy of the model makes a sample or two between two steps, and a teacher is asked in each."""
    copy = mlp().eval()

    @torch.no_grad()
    def evaluate(model):
        copy(torch.randn(1, 8)).sum().item()
        copy(torch.randn(1, 8)).sum().item()

    every_fourth(count, evaluate)
    count.phases, count.absent = ["data", "forward", "backward", "optimizer"], ["validation"]


@case
def agent_within(count):
    """Experience is collected after each step."""
    policy, loader = mlp(), DataLoader(rows(50), 8)
    optimizer = sgd(policy)
    for _ in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            functional.cross_entropy(policy(x), y).backward()
            optimizer.step()
            policy.eval()
            with torch.no_grad():
                for _ in range(8):
                    policy(x[:2]).argmax(1)
            policy.train()
            count.step(len(x))
        count.epochs += 1
    count.phases, count.absent = ["data", "forward", "backward", "optimizer"], ["validation"]


@case
def teacher_within(count):
    """A teacher is asked once after each step."""
    teacher, model, loader = mlp().eval(), mlp(), DataLoader(rows(50), 8)
    optimizer = sgd(model)
    for _ in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            with torch.no_grad():
                teacher(x).sum().item()
            count.step(len(x))
        count.epochs += 1
    count.phases, count.absent = ["data", "forward", "backward", "optimizer"], ["validation"]


@case
def graphed(count):
    """weiaicunzai/pytorch-cifar100: the model is called before the loop, to draw its graph."""
    model, loader = mlp(), DataLoader(rows(50), 8)
    optimizer = sgd(model)
    model(torch.zeros(1, 8))
    for _ in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            count.step(len(x))
        count.epochs += 1
    count.iterations = None  # the call counts as one, without samples


@case
def dicts(count):
    """Batches are dicts, with strings first."""
    model, loader = mlp(), DataLoader(Dicts(), 7, shuffle=True)
    optimizer = sgd(model)
    for _ in range(2):
        for batch in loader:
            functional.cross_entropy(model(batch["input"]), batch["label"]).backward()
            optimizer.step()
            optimizer.zero_grad()
            count.step(len(batch["label"]))
        count.epochs += 1


class Pictures(Dataset):
    """Images of different sizes, each with several boxes."""

    def __len__(self):
        return 11

    def __getitem__(self, index):
        return torch.rand(3, 8 + index % 3, 9), {"boxes": torch.rand(1 + index % 4, 4)}


def find_boxes(count, collate):
    """A loop over batches that are lists, with a last batch that is smaller."""
    model, loader = nn.Conv2d(3, 4, 3), DataLoader(Pictures(), 4, collate_fn=collate)
    optimizer = sgd(model)
    for _ in range(2):
        for batch in loader:
            images, targets = batch if collate is not list else zip(*batch)
            loss = sum(model(x[None]).mean() * t["boxes"].mean() for x, t in zip(images, targets))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            count.step(len(images))
        count.epochs += 1


@case
def boxes(count):
    """pytorch/vision, references/detection: a batch is a tuple of images and one of targets."""
    find_boxes(count, lambda batch: tuple(zip(*batch)))


@case
def listed(count):
    """A batch is a list of samples."""
    find_boxes(count, list)


Pair = namedtuple("Pair", "target sample")


@case
def named(count):
    """Batches are named tuples of tuples."""

    def collate(samples):
        x, y = zip(*samples)
        return Pair((torch.stack(y),), (torch.stack(x), {"n": len(x)}))

    model, loader = mlp(), DataLoader(rows(20), 6, collate_fn=collate)
    optimizer = sgd(model)
    for batch in loader:
        functional.cross_entropy(model(batch.sample[0]), batch.target[0]).backward()
        optimizer.step()
        count.step(len(batch.sample[0]))
    count.epochs += 1


class Guarded(Mapping):
    """Items that are made when they are asked for; it has no get."""

    def __init__(self, x, y, values=True):
        self.of, self.has_values = {"x": x, "y": y}, values

    def __getitem__(self, key):
        return self.of[key]

    def __iter__(self):
        return iter(self.of)

    def __len__(self):
        return len(self.of)

    def get(self, key, default=None):
        """Not supported."""
        raise NotImplementedError(key)

    def values(self):
        """Not supported by some."""
        if not self.has_values:
            raise NotImplementedError
        return self.of.values()


def train_guarded(count, values):
    """A loop over batches in a container of the job's own."""

    def collate(samples):
        return Guarded(*(torch.stack(of) for of in zip(*samples)), values)

    model, loader = mlp(), DataLoader(rows(20), 6, collate_fn=collate)
    optimizer = sgd(model)
    for batch in loader:
        functional.cross_entropy(model(batch["x"]), batch["y"]).backward()
        optimizer.step()
        count.step(len(batch["x"]) if values else None)
    count.epochs += 1


@case
def guarded(count):
    """Batches are mappings that do not support all that a dict does."""
    train_guarded(count, True)


@case
def closed(count):
    """The same, where nobody can see what is in them."""
    train_guarded(count, False)


class Made(Dataset):
    """Its items are batches of 64."""

    def __len__(self):
        return 5

    def __getitem__(self, index):
        return (torch.randn(64, 8),)


@case
def made(count):
    """The data set makes the batches: the loader's batch size is 1."""
    model, loader = mlp(), DataLoader(Made(), 1, collate_fn=lambda batch: batch[0])
    optimizer = sgd(model)
    for (x,) in loader:
        model(x).sum().backward()
        optimizer.step()
        count.step(len(x))
    count.epochs += 1


def train_text(count, extra):
    """Batches of 4 sentences of 7 words, and validation on longer ones; a new loader in each of 70 epochs."""

    def collate(words):
        return lambda samples: {
            "ntokens": words * len(samples),
            "x": torch.stack([x for x, _ in samples]),
            **extra(len(samples)),
        }

    model = mlp()
    optimizer = sgd(model)
    for _ in range(70):
        for batch in DataLoader(rows(12), 4, collate_fn=collate(7)):
            model(batch["x"]).sum().backward()
            optimizer.step()
            count.step(len(batch["x"]))
        with torch.no_grad():
            for batch in DataLoader(rows(12), 4, collate_fn=collate(1000)):
                model(batch["x"])
        count.epochs += 1
    loader = DataLoader(rows(5), 5, num_workers=1)  # told after all that was said of tokens
    for x, _ in loader:
        model(x).sum().backward()
        optimizer.step()
        count.step(len(x))
    count.epochs += 1


@case
def sentences(count):
    """fairseq: batches say their tokens and their sentences."""
    train_text(count, lambda n: {"nsentences": n})


@case
def vocabulary(count):
    """ntokens is something else."""
    train_text(count, lambda n: {})


def gan_step(nets, optimizers, real, only_critic=False):
    """A step of dcgan: the discriminator on real and fake, then the generator."""
    (d, g), (of_d, of_g) = nets, optimizers
    d.zero_grad()
    ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
    loss = nn.BCEWithLogitsLoss()
    loss(d(real), ones).backward()
    fake = g(torch.randn(len(real), 4))
    loss(d(fake.detach()), zeros).backward()
    of_d.step()
    if not only_critic:
        g.zero_grad()
        loss(d(fake), ones).backward()
        of_g.step()


def gan():
    """Two networks and their optimizers."""
    nets = mlp(8, 1), mlp(4, 8)
    return nets, [torch.optim.Adam(net.parameters(), lr=1e-3) for net in nets]


@case
def dcgan(count):
    """pytorch/examples/dcgan: two optimizers step in each batch."""
    nets, optimizers = gan()
    loader = DataLoader(rows(60), 7)
    for _ in range(2):
        for i, (real, _) in enumerate(loader):
            gan_step(nets, optimizers, real)
            count.step(len(real))
            if i % 4 == 0:
                nets[1](torch.randn(5, 4))
        count.epochs += 1


@case
def critic(count):
    """A WGAN: the critic steps with each batch, the generator with every fifth."""
    nets, optimizers = gan()
    for _ in range(2):
        for i, (real, _) in enumerate(DataLoader(rows(60), 5)):
            gan_step(nets, optimizers, real, i % 5 != 4)
            count.step(len(real))
        count.epochs += 1


@case
def zipped(count):
    """CycleGAN: two loaders side by side."""
    nets, optimizers = gan()
    loaders = DataLoader(rows(40), 8), DataLoader(rows(44), 8)
    for _ in range(2):
        for (real, _), _ in zip(*loaders):
            gan_step(nets, optimizers, real)
            count.step(None)
        count.epochs += 1


@case
def accumulated(count):
    """Gradients of four batches; what is left at an epoch's end is a step, too."""
    model, loader = mlp(), DataLoader(rows(50), 5)
    optimizer = sgd(model)
    samples = 0
    for _ in range(2):
        for i, (x, y) in enumerate(loader):
            functional.cross_entropy(model(x), y).backward()
            samples += len(x)
            if i % 4 == 3 or i + 1 == len(loader):
                optimizer.step()
                optimizer.zero_grad()
                count.step(samples)
                samples = 0
        count.epochs += 1


@case
def left_early(count):
    """Each epoch is left with a batch in hand that is not used, and evaluated."""
    model, loader, test = mlp(), DataLoader(rows(50), 5), DataLoader(rows(10), 5)
    optimizer = sgd(model)
    for _ in range(3):
        for i, (x, y) in enumerate(loader):
            if i == 4:
                break
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            count.step(len(x))
        count.epochs += 1
        with torch.no_grad():
            for x, _ in test:
                model(x)


@case
def chunks(count):
    """Truncated backpropagation: a step for each chunk of a batch."""
    model, loader = mlp(4), DataLoader(rows(20), 5)
    optimizer = sgd(model)
    for x, y in loader:
        for part in x.split(4, 1):
            functional.cross_entropy(model(part), y).backward()
            optimizer.step()
            count.step(None)
    count.epochs += 1


@case
def by_hand(count):
    """yunjey/pytorch-tutorial, and word_language_model: no optimizer; the parameters are updated by hand."""
    model = mlp()
    for _ in range(2):
        for x, y in DataLoader(rows(50), 8):
            functional.cross_entropy(model(x), y).backward()
            update(model)
            count.step(len(x))
        count.epochs += 1


@case
def workers_anew(count):
    """Two workers, made anew in each of three epochs."""
    model, loader = mlp(), DataLoader(rows(48), 8, num_workers=2)
    optimizer = sgd(model)
    for _ in range(3):
        for x, y in loader:
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            count.step(len(x))
        count.epochs += 1
    count.phases += ["prepare"]


class Stream(IterableDataset):
    """Samples without a length."""

    def __iter__(self):
        return ((torch.full((8,), float(i)), i % 2) for i in range(26))


@case
def streamed(count):
    """An iterable data set."""
    model, loader = mlp(), DataLoader(Stream(), 4)
    optimizer = sgd(model)
    for _ in range(2):
        for x, y in loader:
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            count.step(len(x))
        count.epochs += 1


@case
def endless(count):
    """minGPT: the loader is asked again whenever it has no more, until there were enough."""
    model, loader = mlp(), DataLoader(rows(30), 8)
    optimizer, batches = sgd(model), iter(loader)
    while count.iterations < 21:
        try:
            x, y = next(batches)
        except StopIteration:
            batches = iter(loader)
            x, y = next(batches)
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        count.step(len(x))
    count.epochs = math.ceil(count.iterations / len(loader))


@case
def cycled(count):
    """itertools.cycle keeps the batches of the first pass: for the rest no loader is asked."""
    model = mlp()
    optimizer = sgd(model)
    for x, y in itertools.islice(itertools.cycle(DataLoader(rows(30), 10)), 8):
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        count.step(len(x))
    count.epochs = None


@case
def scaled(count):
    """AMP: every third step, whose gradients would overflow, is left out, as a scaler does."""
    model, loader = mlp(), DataLoader(rows(48), 4)
    optimizer, scaler = sgd(model), torch.cuda.amp.GradScaler(enabled=False)
    takes = itertools.cycle((True, True, False))
    step, optimizer.step = optimizer.step, lambda *_: step() if next(takes) else None
    for x, y in loader:
        loss = functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        count.step(len(x))
    count.epochs += 1


@case
def closures(count):
    """Lightning: forward and backward are in a closure of each step."""
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(2):
        for x, y in DataLoader(rows(30), 8):

            def closure(x=x, y=y):
                optimizer.zero_grad()
                loss = functional.cross_entropy(model(x), y)
                loss.backward()
                return loss

            optimizer.step(closure)
            count.step(len(x))
        count.epochs += 1
    count.phases += ["forward", "backward", "optimizer"]


@case
def looked_at(count):
    """A batch is looked at first, and the model is shown one; then it is trained in the usual way."""
    loader, model = DataLoader(rows(30), 5), mlp()
    x, _ = next(iter(loader))
    model(x)
    optimizer = sgd(model)
    for _ in range(2):
        for x, y in loader:
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            count.step(len(x))
        count.epochs += 1


class Transform(nn.Module):
    """torchvision's transforms are modules, too."""

    def forward(self, x):
        """Scales."""
        return x * 2


class Transformed(Dataset):
    """Applies modules."""

    def __init__(self):
        self.transform = nn.Sequential(Transform(), Transform())

    def __len__(self):
        return 24

    def __getitem__(self, index):
        return self.transform(torch.full((8,), float(index))), index % 2


@case
def transforms(count):
    """Modules that prepare samples are no forward, in the training process nor in workers."""
    model = mlp()
    optimizer = sgd(model)
    for workers in (0, 2):
        for x, y in DataLoader(Transformed(), 6, num_workers=workers):
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            count.step(len(x))
        count.epochs += 1


# Loops without a loader --------------------------------------------------------------------------------


@case
def whole(count):
    """GCN: all of the data in each step, then evaluated in evaluation mode, with gradients."""
    model, x, y = mlp(), torch.randn(20, 8), torch.randint(2, (20,))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(12):
        model.train()
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        count.step(20)
        model.eval()
        model(x).argmax(1)
    count.phases += ["forward", "backward", "optimizer", "validation"]


@case
def nanogpt(count):
    """A batch made by hand, micro steps, and a loss that is estimated now and then, at first, too."""
    model, data = nn.Sequential(nn.Embedding(16, 8), nn.Linear(8, 16)), torch.randint(16, (400,))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def get_batch():
        at = torch.randint(len(data) - 9, (6,))
        return (torch.stack([data[i + k : i + k + 8] for i in at]) for k in (0, 1))

    def loss_of(x, y):
        return functional.cross_entropy(model(x).view(-1, 16), y.view(-1))

    @torch.no_grad()
    def estimate_loss():
        model.eval()
        for _ in range(10):
            x, y = get_batch()
            loss_of(x, y).item()
        model.train()

    x, y = get_batch()
    for i in range(12):
        if i % 5 == 0:
            estimate_loss()
        for _ in range(3):
            loss = loss_of(x, y) / 3
            x, y = get_batch()
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        count.step(18)
    count.phases += ["forward", "backward", "optimizer", "validation"]


@case
def lbfgs(count):
    """pytorch/examples/time_sequence_prediction: closures called many times a step; and predicts."""
    model, x, y = mlp(8, 1), torch.randn(30, 8), torch.randn(30, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=5)
    for _ in range(6):

        def closure():
            optimizer.zero_grad()
            loss = functional.mse_loss(model(x), y)
            loss.backward()
            return loss

        optimizer.step(closure)
        count.step(None)
        with torch.no_grad():
            model(x)
    count.phases += ["forward", "backward", "optimizer"]


@case
def language(count):
    """word_language_model: an LSTM, no loader, no optimizer, evaluated after each epoch."""
    model = nn.ModuleDict({"e": nn.Embedding(16, 8), "r": nn.LSTM(8, 8), "o": nn.Linear(8, 16)})
    data = torch.randint(16, (41, 4))

    class Model(nn.Module):
        """All of it."""

        def __init__(self):
            super().__init__()
            self.parts = model

        def forward(self, x):
            """Scores."""
            return self.parts["o"](self.parts["r"](self.parts["e"](x))[0]).view(-1, 16)

    network, loss = Model(), nn.CrossEntropyLoss()
    for _ in range(2):
        network.train()
        for at in range(0, 40, 5):
            loss(network(data[at : at + 5]), data[at + 1 : at + 6].view(-1)).backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 0.25)
            update(network)
            count.step(None)
        network.eval()
        with torch.no_grad():
            for at in range(0, 40, 10):
                loss(network(data[at : at + 10]), data[at + 1 : at + 11].view(-1))
    count.phases += ["forward", "backward", "validation"]


@case
def tensors(count):
    """pytorch.org's first tutorial: neither modules nor optimizers."""
    x, y = torch.randn(20, 5), torch.randn(20, 1)
    w = torch.randn(5, 1, requires_grad=True)
    for _ in range(15):
        (x.mm(w) - y).pow(2).sum().backward()
        with torch.no_grad():
            w -= 1e-3 * w.grad
            w.grad.zero_()
        count.step(None)


@case
def reinforce(count):
    """pytorch/examples/reinforcement_learning: a policy acts, and learns once an episode."""
    policy = mlp(4, 2)
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    for _ in range(8):
        chances = []
        for _ in range(random.randrange(5, 20)):
            probabilities = functional.softmax(policy(torch.randn(4)), -1)
            chances.append(torch.distributions.Categorical(probabilities).log_prob(torch.tensor(0)))
        optimizer.zero_grad()
        (-torch.stack(chances).sum()).backward()
        optimizer.step()
        count.step(None)
    count.phases += ["forward", "backward", "optimizer"]
    count.absent += ["validation"]


# Libraries ---------------------------------------------------------------------------------------------


def package(files):
    """Makes the modules of a library's shape importable: {path: source}."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    for path, source in files.items():
        os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
        with open(os.path.join(folder, path), "w", encoding="ascii") as file:
            file.write(textwrap.dedent(source))
    sys.path.insert(0, folder)


class Repeated:
    """A sampler that repeats, as that of ultralytics and timm: it has no length."""

    def __init__(self, sampler):
        self.sampler = sampler

    def __iter__(self):
        while True:
            yield from iter(self.sampler)


class Recycled(DataLoader):
    """One iterator for all passes, made at the first; `made` makes it."""

    def __init__(self, *arguments, made=DataLoader.__iter__, **options):
        super().__init__(*arguments, **options)
        object.__setattr__(self, "batch_sampler", Repeated(self.batch_sampler))
        self.made, self.iterator = made, None

    def __len__(self):
        return len(self.batch_sampler.sampler)

    def __iter__(self):
        if self.iterator is None:
            self.iterator = self.made(self)
        for _ in range(len(self)):
            yield next(self.iterator)


def recycles(count, made, early=False):
    """Epochs and validations of loaders whose iterators never end."""
    model, loss = mlp(), nn.CrossEntropyLoss()
    train, test = Recycled(rows(50), 8, made=made, num_workers=1), Recycled(rows(30), 10, made=made)
    optimizer = sgd(model)
    if early:
        for loader in (train, test):
            loader.iterator = made(loader)
    for _ in range(3):
        model.train()
        for x, y in train:
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            count.step(len(x))
        count.epochs += 1
        model.eval()
        with torch.no_grad():
            for x, _ in test:
                model(x)
    count.phases += ["data", "forward", "backward", "optimizer", "validation"]


@case
def recycled(count):
    """timm's loader: the iterator is PyTorch's."""
    recycles(count, DataLoader.__iter__)


@case
def recycled_early(count):
    """yolov5's: both iterators are made before the first epoch."""
    recycles(count, DataLoader.__iter__, True)


@case
def recycled_by_hand(count):
    """ultralytics' loader asks PyTorch's for an iterator that no pass began."""
    recycles(count, DataLoader._get_iterator)


@case
def recycled_accumulated(count):
    """A step in every fourth batch, and validations that look at one batch: the last batches lead to no step."""
    model, train, test = mlp(), Recycled(rows(100), 10), Recycled(rows(30), 10)
    optimizer = sgd(model)
    next(iter(train))
    for _ in range(3):
        model.train()
        for i, (x, y) in enumerate(train):
            functional.cross_entropy(model(x), y).backward()
            if i % 4 == 3:
                optimizer.step()
                optimizer.zero_grad()
                count.step(None)
        count.step(None)  # the last two batches, which the end of the epoch ends
        count.epochs += 1
        model.eval()
        with torch.no_grad():
            for x, _ in test:
                model(x)
                time.sleep(0.05)
                break
    count.samples = None
    count.phases += ["data", "forward", "backward", "optimizer", "validation"]


@case
def recycled_once(count):
    """A sampler without a length, and a loader that has one, but whose iterators end."""

    class Once:
        """A batch sampler."""

        def __iter__(self):
            return iter([list(range(i, i + 10)) for i in range(0, 50, 10)])

    class Loader(DataLoader):
        """Knows its length."""

        def __len__(self):
            return 5

    model, loader = mlp(), Loader(rows(50), batch_sampler=Once())
    optimizer = sgd(model)
    for _ in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            count.step(len(x))
        count.epochs += 1
    count.phases += ["data", "forward", "backward", "optimizer"]


@case
def graphs(count):
    """torch_geometric: a batch is an object in which nobody finds a tensor."""

    class Batch:
        """Graphs."""

        def __init__(self, items):
            self.x = torch.stack([x for x, _ in items])
            self.y = torch.stack([y for _, y in items])

    model, loader = mlp(), DataLoader(rows(50), 8, collate_fn=Batch)
    optimizer = sgd(model)
    for _ in range(3):
        for batch in loader:
            optimizer.zero_grad()
            functional.cross_entropy(model(batch.x), batch.y).backward()
            optimizer.step()
            count.step(len(batch.y))
        count.epochs += 1
    count.phases += ["data", "forward", "backward", "optimizer"]


@case
def detected(count):
    """ultralytics: a dict that begins with the boxes of all images, of any number."""

    def join(items):
        boxes = [torch.randn(1 + i % 4, 4) for i, _ in enumerate(items)]
        return {"boxes": torch.cat(boxes), "files": [str(i) for i, _ in enumerate(items)],
                "image": torch.stack([x for x, _ in items]), "class": torch.stack([y for _, y in items])}  # fmt: skip

    model, loader = mlp(), DataLoader(rows(50), 8, collate_fn=join)
    optimizer = sgd(model)
    for _ in range(2):
        for batch in loader:
            optimizer.zero_grad()
            functional.cross_entropy(model(batch["image"]), batch["class"]).backward()
            optimizer.step()
            count.step(len(batch["image"]))
        count.epochs += 1
    count.phases += ["data", "forward", "backward", "optimizer"]


@case
def fastai(count):
    """fastai: its loader makes PyTorch's iterators itself, from an object that is no DataLoader, and has an optimizer
    that is none of PyTorch's."""
    package({"fastai/__init__.py": "", "fastai/optimizer.py": """
        import torch

        class Optimizer:
            def __init__(self, params, lr):
                self.parameters, self.lr = list(params), lr

            @property
            def param_groups(self):
                return [{"params": self.parameters, "lr": self.lr}]

            def zero_grad(self):
                for p in self.parameters:
                    if p.grad is not None:
                        p.grad.zero_()

            def step(self, closure=None):
                with torch.no_grad():
                    for p in self.parameters:
                        p -= self.lr * p.grad
        """})  # fmt: skip
    from fastai.optimizer import Optimizer

    plain = DataLoader(rows(50), 8)

    class Fake:
        """What PyTorch's iterators take from a loader."""

        def __init__(self, batches, workers):
            self.batches, self.num_workers = batches, workers
            self.dataset, self.prefetch_factor = self, 2
            self.persistent_workers = self.pin_memory = False

        def __iter__(self):
            return iter(self.batches)

        def __getattr__(self, name):
            if name in ("batch_size", "batch_sampler", "sampler", "batches"):
                raise AttributeError(name)
            return {"_dataset_kind": 1, "_auto_collation": False, "_index_sampler": itertools.count(0),
                    "collate_fn": _same}.get(name, getattr(plain, name, None))  # fmt: skip

    batches = list(plain)
    model = mlp()
    optimizer = Optimizer(model.parameters(), 0.01)
    for workers in (0, 0, 1):
        model.train()
        kind = torch.utils.data.dataloader._SingleProcessDataLoaderIter
        if workers:
            kind = torch.utils.data.dataloader._MultiProcessingDataLoaderIter
        for x, y in kind(Fake(batches, workers)):
            optimizer.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            count.step(len(x))
        count.epochs += 1
    count.phases += ["data", "forward", "backward", "optimizer"]


def _same(item):
    return item


def environments(name):
    """A library of environments in the shape of gym and gymnasium."""
    package({name + "/__init__.py": "import %s.wrappers.common" % name, name + "/wrappers/__init__.py": "",
             name + "/wrappers/common.py": """
        import time

        class OrderEnforcing:
            def reset(self):
                return [0.0] * 4

            def step(self, action):
                time.sleep(0.002)
                return [0.1] * 4, 1.0
        """})  # fmt: skip
    return __import__(name).wrappers.common.OrderEnforcing()


@case
def rollouts(count):
    """Stable-Baselines3's PPO: a policy acts in evaluation mode, then learns in a few steps."""
    environment, policy = environments("gymnasium"), mlp(4, 2)
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    for _ in range(6):
        policy.eval()
        seen, observed = [], environment.reset()
        for _ in range(16):
            with torch.no_grad():
                policy(torch.tensor([observed]))
            observed, _ = environment.step(0)
            seen.append(observed)
        policy.train()
        for part in torch.tensor(seen).split(8):
            optimizer.zero_grad()
            policy(part).pow(2).mean().backward()
            optimizer.step()
            count.step(8)
    count.phases += ["forward", "backward", "optimizer"]
    count.absent += ["validation"]


@case
def cloned(count):
    """A policy learns from a loader, and is tried in an environment after each epoch."""
    environment, policy = environments("gymnasium"), mlp(4, 2)
    optimizer, loader = sgd(policy), DataLoader(rows(40, 4), 8)
    for _ in range(3):
        policy.train()
        for x, y in loader:
            optimizer.zero_grad()
            functional.cross_entropy(policy(x), y).backward()
            optimizer.step()
            count.step(len(x))
        count.epochs += 1
        policy.eval()
        observed = environment.reset()
        for _ in range(8):
            with torch.no_grad():
                policy(torch.tensor([observed]))
            observed, _ = environment.step(0)
    count.phases += ["data", "forward", "backward", "optimizer"]


@case
def generated(count):
    """trl's GRPO: each batch is of prompts, for which the model generates the text that it learns from."""
    package({"transformers/__init__.py": "", "transformers/generation/__init__.py": "",
             "transformers/generation/utils.py": """
        import time

        class GenerationMixin:
            def generate(self, prompts):
                time.sleep(0.01)
                return prompts
        """})  # fmt: skip
    from transformers.generation.utils import GenerationMixin

    class Model(nn.Sequential, GenerationMixin):
        """Both."""

    model = Model(nn.Linear(8, 2))
    optimizer, loader = sgd(model), DataLoader(rows(80), 2)
    for x, y in loader:
        with torch.no_grad():
            x = model.generate(x)
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        count.step(len(x))
    count.epochs += 1
    count.phases += ["data", "forward", "backward", "optimizer"]


@case
def dqn(count):
    """A network acts without gradients; a target network, in evaluation mode, is asked in each step."""
    policy, target = mlp(4, 2), mlp(4, 2)
    target.eval()
    optimizer = torch.optim.RMSprop(policy.parameters())
    for i in range(30):
        with torch.no_grad():
            policy(torch.randn(1, 4)).max(1)
        if i < 10:
            continue
        values = policy(torch.randn(16, 4)).gather(1, torch.zeros(16, 1, dtype=torch.int64))
        with torch.no_grad():
            expected = target(torch.randn(16, 4)).max(1)[0]
        optimizer.zero_grad()
        functional.smooth_l1_loss(values, expected.unsqueeze(1)).backward()
        optimizer.step()
        count.step(16)
    count.absent += ["validation"]


@case
def actor_critic(count):
    """Two optimizers that step one after the other, each after a backward of its own."""
    actor, judge = mlp(4, 2), mlp(4, 1)
    optimizers = [torch.optim.Adam(net.parameters(), lr=1e-3) for net in (actor, judge)]
    for _ in range(9):
        states = torch.randn(12, 4)
        for net, optimizer in zip((actor, judge), optimizers):
            optimizer.zero_grad()
            net(states).pow(2).mean().backward()
            optimizer.step()
        count.step(None)


@case
def gan_alone(count):
    """A GAN of which batches are made by hand, with a checkpoint in between."""
    nets, optimizers = gan()
    for i in range(10):
        gan_step(nets, optimizers, torch.randn(6, 8))
        count.step(None)
        if i == 4:
            torch.save(nets[0].state_dict(), "checkpoint.pt")


@case
def seq2seq(count):
    """pytorch.org's translation tutorial: encoder and decoder, each with an optimizer, step together."""
    encoder, decoder = nn.GRUCell(4, 4), nn.GRUCell(4, 4)
    optimizers = [sgd(encoder), sgd(decoder)]
    for _ in range(11):
        for optimizer in optimizers:
            optimizer.zero_grad()
        hidden, loss = torch.zeros(1, 4), 0
        for _ in range(6):
            hidden = encoder(torch.randn(1, 4), hidden)
        for _ in range(5):
            hidden = decoder(torch.randn(1, 4), hidden)
            loss = loss + functional.mse_loss(hidden, torch.zeros(1, 4))
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        count.step(None)


@case
def one_after_another(count):
    """One model is trained, then another one, whose optimizer was there all the time."""
    models = mlp(), mlp()
    optimizers = [sgd(model) for model in models]
    for model, optimizer in zip(models, optimizers):
        for _ in range(6):
            model(torch.randn(4, 8)).sum().backward()
            optimizer.step()
            count.step(None)


@case
def ppo(count):
    """Acts without gradients, then learns from that in several passes."""
    policy = mlp(4, 2)
    optimizer = torch.optim.Adam(policy.parameters())
    for _ in range(3):
        with torch.no_grad():
            states = torch.stack([policy(torch.randn(4)) for _ in range(40)])
        inputs = torch.randn(len(states), 4)
        for _ in range(2):
            for part in inputs.split(10):
                optimizer.zero_grad()
                policy(part).sum().backward()
                optimizer.step()
                count.step(10)
    count.absent += ["validation"]


@case
def characters(count):
    """char-rnn: a model that is called for each character."""
    cell, out = nn.GRUCell(8, 8), nn.Linear(8, 16)
    embed = nn.Embedding(16, 8)
    optimizer = torch.optim.Adam(itertools.chain(*(m.parameters() for m in (cell, out, embed))))
    loss_of = nn.CrossEntropyLoss()
    for _ in range(7):
        hidden, loss = torch.zeros(5, 8), 0
        text = torch.randint(16, (5, 21))
        for at in range(20):
            hidden = cell(embed(text[:, at]), hidden)
            loss = loss + loss_of(out(hidden), text[:, at + 1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        count.step(None)


@case
def teacher(count):
    """Distillation without a loader: a teacher in evaluation mode is asked in each step."""
    model, old = mlp(), mlp().eval()
    optimizer = sgd(model)
    for _ in range(8):
        x = torch.randn(10, 8)
        with torch.no_grad():
            wanted = old(x)
        functional.mse_loss(model(x), wanted).backward()
        optimizer.step()
        optimizer.zero_grad()
        count.step(10)
    count.absent += ["validation"]


@case
def taught(count):
    """Distillation: the teacher is trained before, without a loader, then asked in each step."""
    model, old = mlp(), mlp()
    for learner, asked in ((old, None), (model, old.eval)):
        optimizer = sgd(learner)
        if asked:
            asked()
        for _ in range(40):
            x = torch.randn(10, 8)
            with torch.no_grad():
                wanted = old(x) if asked else torch.zeros(10, 2)
            functional.mse_loss(learner(x), wanted).backward()
            optimizer.step()
            optimizer.zero_grad()
            count.step(10)
    # The first times it is asked, it has just been trained.
    count.most["validation"] = 2


@case
def styled(count):
    """Neural style: the model is in evaluation mode, and an image is what is trained."""
    model, image = mlp().eval(), torch.randn(3, 8, requires_grad=True)
    optimizer = torch.optim.Adam([image])
    for _ in range(8):
        optimizer.zero_grad()
        model(image).pow(2).sum().backward()
        optimizer.step()
        count.step(3)
    count.absent += ["validation"]
    count.phases += ["forward"]


@case
def pictures(count):
    """A variational autoencoder: after each test its decoder makes pictures, of which nothing is learnt."""

    class Coder(nn.Module):
        """Its decoder is called by itself, too."""

        def __init__(self):
            super().__init__()
            self.encoder, self.first, self.second = mlp(8, 4), nn.Linear(4, 8), nn.Linear(8, 8)

        def decode(self, z):
            """Two calls of modules."""
            return self.second(functional.relu(self.first(z)))

        def forward(self, x):
            """There and back."""
            return self.decode(self.encoder(x))

    model = Coder()
    optimizer = sgd(model)
    train, test = DataLoader(rows(), batch_size=16), DataLoader(rows(20), batch_size=10)
    for _ in range(3):
        count.epochs += 1
        model.train()
        for x, _ in train:
            optimizer.zero_grad()
            functional.mse_loss(model(x), x).backward()
            optimizer.step()
            count.step(len(x))
        model.eval()
        with torch.no_grad():
            for x, _ in test:
                model(x)
            model.decode(torch.randn(6, 4))
    count.phases += ["validation"]


@case
def slow_forward(count):
    """What a step consists of, where its parts are long: forward and the script's own time."""
    model = mlp()
    optimizer = sgd(model)

    class Slow(nn.Module):
        """Takes 20 ms."""

        def forward(self, x):
            """As the model."""
            time.sleep(0.02)
            return model(x)

    slow = Slow()
    for _ in range(10):
        time.sleep(0.01)
        slow(torch.randn(4, 8)).sum().backward()
        optimizer.step()
        count.step(4)
    count.phases += ["forward"]


if __name__ == "__main__":
    torch.manual_seed(0)
    random.seed(0)
    torch.set_num_threads(1)
    counted = Count()
    CASES[sys.argv[1]](counted)
    with open(sys.argv[2], "w", encoding="ascii") as file:
        json.dump(vars(counted), file)
