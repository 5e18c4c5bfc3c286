# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""The datasets dt1 and dt2: 60,000 and 600,000 images of 32x32 pixels, three colours, ten classes.

Pixels and classes are identical in each framework and on each machine, to the last bit: they are
computed from integers. Image number n depends only on the seed and n, so that a smaller dataset is
the beginning of a larger one. workloads/onednn/shared.c is the same in C.

Random numbers are SplitMix64's (Steele, Lea, Flood 2014), whose state is a counter: a stream for
(seed, a, b) begins at next(next(seed) ^ a) ^ b. Of the stream (seed, 1, 0), for each class and each
of three waves: turns across and down the image, in 1/1024, below +-4096; the phase; three colours
within +-127. Of the stream (seed, 3, n), for image n: its class; for each wave the offset of its
phase, at most 0.35 of a turn, and its strength below 256; then noise, eight values per number,
lowest byte first. A pixel is 128, noise within 40, and the waves: strength * cosine * colour
/ 2^17, rounded down, with the cosine from a table of 1024 integers within +-127. It is clipped to
0..255, and returned divided by 255.
"""

import memory
import numpy

SAMPLES = {"dt1": 60_000, "dt2": 600_000}
EDGE, COLOURS, CLASSES = 32, 3, 10
WAVES, TURN = 3, 1024
STREAM_CLASSES, STREAM_PIXELS = 1, 3
CHUNK = 1000  # images at a time

GOLDEN = numpy.uint64(0x9E3779B97F4A7C15)
MASK = (1 << 64) - 1


def mixed(state):
    """SplitMix64's output for states, uint64 of any shape."""
    z = (state ^ (state >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return z ^ (z >> numpy.uint64(31))


def draws(seed, a, b, count):
    """The first numbers of the streams (seed, a, b): uint64 [len(b), count]. b: uint64 [any]."""
    first = mixed(numpy.array([seed & MASK], numpy.uint64) + GOLDEN) ^ numpy.uint64(a)
    state = mixed(first + GOLDEN) ^ b
    steps = numpy.arange(1, count + 1, dtype=numpy.uint64) * GOLDEN
    return mixed(state[:, None] + steps)


def below(numbers, limit):
    """Integers from 0 to below a limit, which must be far below 2^32. int32."""
    top = numbers >> numpy.uint64(32)
    return ((top * numpy.uint64(limit)) >> numpy.uint64(32)).astype(numpy.int32)


def class_waves(seed):
    """Across, down, phase and colours of each class's waves: int32 [10, 3, 6]."""
    numbers = draws(seed, STREAM_CLASSES, numpy.zeros(1, numpy.uint64), CLASSES * WAVES * 6)
    numbers = numbers.reshape(CLASSES, WAVES, 6)
    waves = numpy.empty(numbers.shape, numpy.int32)
    waves[..., :2] = below(numbers[..., :2], 8 * TURN) - 4 * TURN
    waves[..., 2] = below(numbers[..., 2], TURN)
    waves[..., 3:] = below(numbers[..., 3:], 255) - 127
    return waves


def levels(first, count, seed):
    """Images first to first + count: uint8 [count, 32, 32, 3], and their classes, int32 [count]."""
    numbers = numpy.arange(first, first + count, dtype=numpy.uint64)
    random = draws(seed, STREAM_PIXELS, numbers, 1 + WAVES + EDGE * EDGE * COLOURS // 8)
    classes = below(random[:, 0], CLASSES)
    noise = numpy.ascontiguousarray(random[:, 1 + WAVES :]).astype("<u8", copy=False)
    pixels = noise.view(numpy.uint8).reshape(count, EDGE, EDGE, COLOURS).astype(numpy.int32)
    pixels = (pixels * 80 >> 8) + 88
    table = numpy.rint(127 * numpy.cos(numpy.arange(TURN) * (2 * numpy.pi / TURN)))
    table = table.astype(numpy.int32)
    along = numpy.arange(EDGE, dtype=numpy.int32)
    waves = class_waves(seed)[classes]
    for wave in range(WAVES):
        across, down, phase = waves[:, wave, :3].T
        off = below(random[:, 1 + wave] << numpy.uint64(32), 717) - 358
        strength = (random[:, 1 + wave] >> numpy.uint64(56)).astype(numpy.int32)
        angle = down[:, None, None] * along[:, None] + across[:, None, None] * along
        angle = ((angle >> 5) + (phase + off)[:, None, None]) & (TURN - 1)
        colours = waves[:, wave, 3:] * strength[:, None]
        pixels += table[angle][..., None] * colours[:, None, None] >> 17
    return pixels.clip(0, 255).astype(numpy.uint8), classes


def images(samples, seed, first=0):
    """Images from number `first` on: float32 [samples, 32, 32, 3], 0 to 1, and classes, int64.
    Raises MemoryError if they do not fit into the available memory."""
    memory.check(samples * (EDGE * EDGE * COLOURS * 4 + 8), f"{samples} images")
    pixels = numpy.empty((samples, EDGE, EDGE, COLOURS), numpy.float32)
    classes = numpy.empty(samples, numpy.int64)
    for start in range(0, samples, CHUNK):
        part = slice(start, min(start + CHUNK, samples))
        found, classes[part] = levels(first + start, part.stop - start, seed)
        numpy.divide(found, numpy.float32(255), out=pixels[part], dtype=numpy.float32)
    return pixels, classes
