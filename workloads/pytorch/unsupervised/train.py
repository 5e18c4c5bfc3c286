#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Trains a Wasserstein GAN with gradient penalty (Gulrajani et al. 2017) with PyTorch, to draw images like those of
datasets/shapes.py.

An ordinary training script, without any code for measurements: each batch of real images trains the critic, and each
fifth one also the generator. See ../../README.md.
"""

import os
import sys

workloads = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path += [os.path.join(workloads, "pytorch"), workloads, os.path.join(workloads, "datasets")]

import common
import jobs
import networks
import shapes
import torch
from torch.nn import functional

EDGE = 64
SAMPLES = {"small": 3200, "published": 1_281_167}  # published: as many as ImageNet has
BATCH_SIZE = {"small": 32, "published": 64}
LEARNING_RATE = {"small": 1e-3, "published": 1e-4}
PENALTY = 10
DIRECTIONS = 256  # along which distributions are compared
COARSE = 16  # edge of the images that are compared


class Drawings(torch.utils.data.Dataset):
    """Images from number `first` on: float32 [3, 64, 64], -1 to 1."""

    def __init__(self, samples, seed, first=0):
        self.samples, self.seed, self.first = samples, seed, first

    def __len__(self):
        return self.samples

    def __getitem__(self, number):
        image = torch.from_numpy(shapes.one(self.seed, self.first + number, EDGE))
        return image.permute(2, 0, 1) / 127.5 - 1


def noise_of(count, device, generator=None):
    """What images are made from: float32 [count, 128]."""
    return torch.randn(count, networks.NOISE, generator=generator).to(device)


def penalty(critic, real, fake):
    """Mean of the squared difference of the critic's gradient from 1, between real and generated images."""
    mix = torch.rand(len(real), 1, 1, 1, device=real.device)
    between = (mix * real + (1 - mix) * fake).requires_grad_()
    (gradient,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return ((gradient.flatten(1).norm(dim=1) - 1) ** 2).mean()


def train_critic(generator, critic, optimizer, real):
    """A step of the critic. Returns its loss, and its estimate of the distance between real and generated images."""
    with torch.no_grad():
        fake = generator(noise_of(len(real), real.device))
    optimizer.zero_grad(set_to_none=True)
    estimate = critic(real).mean() - critic(fake).mean()
    loss = PENALTY * penalty(critic, real, fake) - estimate
    loss.backward()
    optimizer.step()
    return loss, estimate


def train_generator(generator, critic, optimizer, count, device):
    """A step of the generator."""
    optimizer.zero_grad(set_to_none=True)
    critic.requires_grad_(False)
    loss = -critic(generator(noise_of(count, device))).mean()
    loss.backward()
    optimizer.step()
    critic.requires_grad_(True)


def train_epoch(generator, critic, optimizers, loader, options, device):
    """One pass over the images; returns scores, and the number of images."""
    generator.train()
    mean = common.Mean()
    for number, real in enumerate(loader, 1):
        real = real.to(device, non_blocking=True)
        mean.add(len(real), *train_critic(generator, critic, optimizers[1], real))
        if number % options.critic_steps == 0:
            train_generator(generator, critic, optimizers[0], len(real), device)
    return dict(zip(("loss", "estimate"), mean.means())), mean.weight, "images"


def coarse(images):
    """What is compared of images: their averages of 4x4 pixels. [images, 768]."""
    return functional.adaptive_avg_pool2d(images, COARSE).flatten(1).cpu()


@torch.no_grad()
def compare(generator, loader, options, device):
    """The distance of generated images from others than those trained on, without the critic: the mean difference of
    sorted projections on random directions (the sliced Wasserstein distance)."""
    generator.eval()
    random = torch.Generator().manual_seed(options.seed)
    real, fake = [], []
    for images in loader:
        real.append(coarse(images))
        fake.append(coarse(generator(noise_of(len(images), device, random))))
    directions = torch.randn(real[0].shape[1], DIRECTIONS, generator=random)
    directions /= directions.norm(dim=0)
    sorted_real, sorted_fake = ((torch.cat(part) @ directions).sort(0)[0] for part in (real, fake))
    return {"distance": (sorted_real - sorted_fake).abs().mean().item()}, len(sorted_real), "images"


def loader_of(dataset, options, device):
    """A loader of complete batches, and its order."""
    order = common.Order(len(dataset), options)
    return common.make_loader(dataset, options, device, batch_size=options.batch_size, sampler=order), order


def main():
    """Trains."""
    parser = jobs.new_parser("Train a Wasserstein GAN with PyTorch.", batch_size=None)
    parser.add_argument("--model", choices=("wgan",), default="wgan")
    parser.add_argument("--critic-steps", type=jobs.at_least(1), default=5, help="of which the last one is followed by "
                        "one of the generator")  # fmt: skip
    jobs.add_size(parser)
    jobs.add_validation(parser)
    jobs.add_training(parser, ("adam", "sgd"))
    options = parser.parse_args()
    options.batch_size = options.batch_size or BATCH_SIZE[options.size]
    samples = options.samples or SAMPLES[options.size]
    jobs.check_samples(options, samples)
    device = common.begin(options)
    loader, order = loader_of(Drawings(samples, options.seed), options, device)
    unseen = None
    if options.validation_samples:
        unseen, _ = loader_of(Drawings(options.validation_samples, options.seed, samples), options, device)
    width = networks.WIDTHS[options.size]
    generator, critic = networks.generator(width).to(device), networks.critic(width).to(device)
    optimizers = [common.make_optimizer(options, model.parameters(), LEARNING_RATE[options.size], betas=(0.5, 0.9))
                  for model in (generator, critic)]  # fmt: skip
    parameters = common.count_parameters(generator) + common.count_parameters(critic)
    jobs.announce(options, parameters, samples, device.type)
    common.passes(options, order, lambda: train_epoch(generator, critic, optimizers, loader, options, device),
                  unseen and (lambda: compare(generator, unseen, options, device)))  # fmt: skip


if __name__ == "__main__":
    jobs.run(main)
