#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Trains Faster R-CNN with PyTorch to find shapes in noise (datasets/shapes.py).

An ordinary training script, without any code for measurements. Needs python3-torchvision. See ../../README.md.
"""

import collections
import os
import sys

workloads = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path += [os.path.join(workloads, "pytorch"), workloads, os.path.join(workloads, "datasets")]

import common
import jobs
import shapes
import torch

# Images of a dataset: their number, height and width, the most shapes in one, the number of classes, and the model. Pascal
# VOC 2007 has 5,011 images for training, most of them of 500x375 pixels, with 2.5 objects on average.
Size = collections.namedtuple("Size", "images height width most classes model")
SIZES = {
    "small": Size(400, 96, 128, 3, 3, "fasterrcnn_small"),
    "published": Size(5011, 375, 500, 6, shapes.CLASSES, "fasterrcnn_resnet101"),
}
MODELS = "fasterrcnn_small", "fasterrcnn_resnet50", "fasterrcnn_resnet101"
LEARNING_RATE = {"small": 2e-3, "published": 1e-4}
OVERLAP, SURE = 0.5, 0.5  # of a box that counts as found


class Scenes(torch.utils.data.Dataset):
    """Images, float32 [3, height, width], 0 to 1, with boxes [shapes, 4] and labels [shapes]."""

    def __init__(self, samples, seed, size, first=0):
        self.samples, self.seed, self.size, self.first = samples, seed, size, first

    def __len__(self):
        return self.samples

    def __getitem__(self, number):
        size = self.size
        image, boxes, kinds = shapes.scene(
            self.seed, self.first + number, size.height, size.width, size.most, size.classes
        )
        image = torch.from_numpy(image).permute(2, 0, 1).float() / 255
        return image, {"boxes": torch.from_numpy(boxes), "labels": torch.from_numpy(kinds)}


def collate(samples):
    """Images and targets of a batch: sizes of images may differ."""
    return tuple(zip(*samples))


def to_device(images, targets, device):
    """The same on the device."""
    targets = [{name: value.to(device, non_blocking=True) for name, value in t.items()} for t in targets]
    return [image.to(device, non_blocking=True) for image in images], targets


def train_epoch(model, loader, optimizer, device):
    """One pass over the images; returns scores, and the number of images."""
    model.train()
    mean = common.Mean()
    for batch in loader:
        images, targets = to_device(*batch, device)
        optimizer.zero_grad(set_to_none=True)
        loss = sum(model(images, targets).values())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()
        mean.add(len(images), loss)
    return {"loss": mean.means()[0]}, mean.weight, "images"


def found(target, answer):
    """Number of shapes of which a sure box has the class and at least half of the area, as intersection over union; and
    number of sure boxes."""
    from torchvision.ops import box_iou  # noqa: PLC0415

    sure = answer["scores"] >= SURE
    boxes, labels = answer["boxes"][sure], answer["labels"][sure]
    if not len(boxes):
        return 0, 0
    good = (box_iou(target["boxes"], boxes) >= OVERLAP) & (target["labels"][:, None] == labels)
    return int(good.any(1).sum()), len(boxes)


@torch.no_grad()
def validate(model, loader, device):
    """Recall and precision of other images."""
    model.eval()
    wanted = right = boxes = images = 0
    for batch in loader:
        inputs, targets = to_device(*batch, device)
        for target, answer in zip(targets, model(inputs)):
            some, all_boxes = found(target, answer)
            right, boxes, wanted = right + some, boxes + all_boxes, wanted + len(target["labels"])
        images += len(inputs)
    return {"recall": right / wanted, "precision": right / max(boxes, 1)}, images, "images"


def loader_of(dataset, options, device):
    """A loader of complete batches, and its order."""
    order = common.Order(len(dataset), options)
    return common.make_loader(dataset, options, device, batch_size=options.batch_size, sampler=order,
                              collate_fn=collate), order  # fmt: skip


def main():
    """Trains."""
    parser = jobs.new_parser("Train Faster R-CNN with PyTorch.", batch_size=4)
    parser.add_argument("--model", choices=MODELS, help="fasterrcnn_small, or as published fasterrcnn_resnet101")
    parser.add_argument("--image-size", type=jobs.at_least(32), help="the shorter edge of the model's input, in pixels")
    jobs.add_size(parser)
    jobs.add_validation(parser)
    jobs.add_training(parser, ("adam", "sgd"))
    options = parser.parse_args()
    size = SIZES[options.size]
    options.model = options.model or size.model
    edge = options.image_size or {"small": size.height, "published": 600}[options.size]
    samples = options.samples or size.images
    jobs.check_samples(options, samples)
    device = common.begin(options)
    try:
        import networks  # noqa: PLC0415  needs torchvision
    except ImportError as error:
        raise jobs.Problem(f"{error} (python3-torchvision)") from None
    loader, order = loader_of(Scenes(samples, options.seed, size), options, device)
    unseen = None
    if options.validation_samples:
        unseen, _ = loader_of(Scenes(options.validation_samples, options.seed, size, samples), options, device)
    model = networks.NETWORKS[options.model](size.classes + 1, edge).to(device)
    optimizer = common.make_optimizer(options, model.parameters(), LEARNING_RATE[options.size])
    jobs.announce(options, common.count_parameters(model), samples, device.type)
    common.passes(options, order, lambda: train_epoch(model, loader, optimizer, device),
                  unseen and (lambda: validate(model, unseen, device)))  # fmt: skip


if __name__ == "__main__":
    jobs.run(main)
