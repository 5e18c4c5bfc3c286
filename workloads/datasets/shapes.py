# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Images of shapes, for networks that draw them or find them.

Image number n depends only on the seed and n, like those of synthetic.py: of the stream (seed, 7, n), six numbers for
the whole image and six for each shape, then noise. An image is made when it is asked for, as if it was decoded.

`one` is a shape of a plain colour on a gradient. `scene` has several shapes on noise, with their boxes; its classes are
five shapes in four colours, twenty as in Pascal VOC, or the first of these.
"""

import numpy
import synthetic

STREAM_SHAPES = 7
NUMBERS = 6  # for the image, and for each shape
SHAPES = 5
COLOURS = numpy.array([(220, 60, 50), (60, 200, 80), (70, 90, 230), (230, 210, 60)])
CLASSES = SHAPES * len(COLOURS)


def fractions(seed, number, rows):
    """Random numbers of an image, from 0 to below 1: float64 [rows, 6]."""
    random = synthetic.draws(seed, STREAM_SHAPES, numpy.array([number], numpy.uint64), rows * NUMBERS)
    return (random.reshape(rows, NUMBERS) >> numpy.uint64(11)) / 2.0**53


def mask(shape, height, width):
    """Which pixels of a box belong to a shape: bool [height, width]."""
    down = (numpy.arange(height)[:, None] + 0.5) / height * 2 - 1
    across = (numpy.arange(width) + 0.5) / width * 2 - 1
    if shape == 0:  # a disc
        return down**2 + across**2 <= 1
    if shape == 1:  # a rectangle
        return numpy.ones((height, width), bool)
    if shape == 2:  # a triangle
        return abs(across) <= (down + 1) / 2
    if shape == 3:  # a ring
        return abs(numpy.sqrt(down**2 + across**2) - 0.75) <= 0.25
    return (abs(down) <= 0.33) | (abs(across) <= 0.33)  # a cross


def one(seed, number, edge):
    """A disc, rectangle or triangle on a gradient from top to bottom: uint8 [edge, edge, 3]."""
    above, below, colour, place = fractions(seed, number, 4)
    fade = numpy.linspace(0, 1, edge)[:, None, None]
    image = (above[:3] * (1 - fade) + below[:3] * fade) * 100 + numpy.zeros((1, edge, 1))
    size = int(edge * (0.3 + 0.3 * place[0]))
    top, left = (place[1:3] * (edge - size)).astype(int)
    inside = mask(int(place[3] * 3), size, size)
    image[top : top + size, left : left + size][inside] = 155 + colour[:3] * 100
    return image.astype(numpy.uint8)


def scene(seed, number, height, width, most, classes):
    """Up to `most` shapes that do not touch, on noise. Their edges are an eighth to a half of the image's shorter one.

    Returns the image, uint8 [height, width, 3]; boxes, float32 [shapes, 4]: left, top, right, bottom in pixels; classes
    from 1, int64 [shapes].
    """
    random = fractions(seed, number, 1 + most)
    noise = synthetic.draws(seed, STREAM_SHAPES + 1, numpy.array([number], numpy.uint64), height * width * 3 // 8 + 1)
    image = noise.astype("<u8", copy=False).view(numpy.uint8)[0, : height * width * 3].reshape(height, width, 3) // 3 + 60
    boxes, kinds = [], []
    for across, down, wide, high, kind, light in random[1 : 2 + int(random[0, 0] * most)]:
        right, bottom = (numpy.array([wide, high]) * 0.375 + 0.125) * min(height, width)
        right, bottom = int(right), int(bottom)
        left, top = int(across * (width - right)), int(down * (height - bottom))
        right, bottom = left + right, top + bottom
        if any(left <= box[2] and right >= box[0] and top <= box[3] and bottom >= box[1] for box in boxes):
            continue
        kind = int(kind * classes)
        colour = COLOURS[kind // SHAPES] * (0.7 + 0.3 * light)
        image[top:bottom, left:right][mask(kind % SHAPES, bottom - top, right - left)] = colour
        boxes.append((left, top, right, bottom))
        kinds.append(kind + 1)
    return image, numpy.array(boxes, numpy.float32), numpy.array(kinds, numpy.int64)
