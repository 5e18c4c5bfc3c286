# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Faster R-CNN (Ren et al. 2015) of torchvision, without trained weights. `classes` includes the background."""

from torch import nn
from torchvision import ops
from torchvision.models import detection
from torchvision.models.detection import anchor_utils, backbone_utils


def small(classes, edge):
    """A backbone of six convolutions with one map of features, and narrower heads: it learns on CPUs, in a minute."""
    layers = []
    for inputs, outputs in (3, 16), (16, 32), (32, 64):
        layers += [nn.Conv2d(inputs, outputs, 3, 2, 1), nn.BatchNorm2d(outputs), nn.ReLU(),
                   nn.Conv2d(outputs, outputs, 3, 1, 1), nn.BatchNorm2d(outputs), nn.ReLU()]  # fmt: skip
    backbone = nn.Sequential(*layers)
    backbone.out_channels = 64
    sizes = tuple(edge * part // 32 for part in (5, 9, 14))  # shapes have an eighth to a half of the edge
    return detection.FasterRCNN(
        backbone, min_size=edge, max_size=2 * edge, image_mean=[0.4] * 3, image_std=[0.2] * 3,
        rpn_anchor_generator=anchor_utils.AnchorGenerator((sizes,), ((0.5, 1.0, 2.0),)),
        box_roi_pool=ops.MultiScaleRoIAlign(["0"], 5, 2),
        box_head=detection.faster_rcnn.TwoMLPHead(64 * 25, 128),
        box_predictor=detection.faster_rcnn.FastRCNNPredictor(128, classes),
        rpn_pre_nms_top_n_train=200, rpn_post_nms_top_n_train=50, rpn_pre_nms_top_n_test=200,
        rpn_post_nms_top_n_test=50, box_batch_size_per_image=32, rpn_batch_size_per_image=64,
        box_detections_per_img=10,
    )  # fmt: skip


def of_resnet(name, norm):
    """With a feature pyramid on a ResNet. norm: its normalisation; all layers are trained."""

    def make(classes, edge):
        options = {"norm_layer": norm, "trainable_layers": 5}
        try:
            backbone = backbone_utils.resnet_fpn_backbone(backbone_name=name, weights=None, **options)
        except TypeError:  # before torchvision 0.13
            backbone = backbone_utils.resnet_fpn_backbone(name, False, **options)
        return detection.FasterRCNN(backbone, classes, min_size=edge, max_size=1333 * edge // 800)

    return make


NETWORKS = {
    "fasterrcnn_small": small,
    "fasterrcnn_resnet50": of_resnet("resnet50", nn.BatchNorm2d),
    "fasterrcnn_resnet101": of_resnet("resnet101", nn.BatchNorm2d),
}
