# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""The rules of others that find the largest batch size, from their publications, and a search for the truth."""

import math

LIGHTNING_FIRST = 2  # the size from which its BatchSizeFinder doubles
LIGHTNING_STEPS = 3  # of a trial
AUTOBATCH_SIZES = (1, 2, 4, 8, 16)
AUTOBATCH_DEFAULT = 16  # its answer where the fit gives none
AUTOBATCH_MOST = 1024


def doubling_and_bisection(fits, most):
    """Lightning's BatchSizeFinder in the mode "binsearch": doubles until a size does not fit, then bisects. 0: not even
    one sample fits."""
    low, high, size = 0, most + 1, min(LIGHTNING_FIRST, most)
    while high - low > 1:
        if fits(size):
            low = size
        else:
            high = size
        size = min(2 * low, most) if high > most else (low + high) // 2
    return low


def thesis_line(points, limit):
    """Tripathi 2019: where the line through two points (batch size, bytes) meets the limit. None: it does not."""
    (first, first_bytes), (second, second_bytes) = points
    slope = (second_bytes - first_bytes) / (second - first)
    return math.floor((limit - first_bytes + slope * first) / slope) if slope > 0 else None


def fitted_line(points):
    """Slope and intercept of the polynomial of first degree by least squares."""
    n = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    squares = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / squares
    return slope, mean_y - slope * mean_x


def autobatch(points, free, fraction, logarithmic):
    """Ultralytics' AutoBatch: the fit over in-process batches (batch size, bytes), solved for a share of the free memory.
    Releases since 2025 fit the logarithms, those before it the numbers. Sizes that used no more memory than the one
    before are left out; an answer outside of 1 to 1024 is replaced by the default."""
    rising = [point for before, point in zip([(0, 0), *points], points) if point[1] > before[1]]
    if len(rising) < 2:
        return AUTOBATCH_DEFAULT
    if logarithmic:
        slope, intercept = fitted_line([(math.log(x), math.log(y)) for x, y in rising])
        exponent = (math.log(free * fraction) - intercept) / slope if slope > 0 else math.inf
        batch = round(math.exp(exponent)) if exponent < 100 else math.inf
    else:
        slope, intercept = fitted_line(rising)
        batch = int((free * fraction - intercept) / slope) if slope > 0 else math.inf
    return batch if 1 <= batch <= AUTOBATCH_MOST else AUTOBATCH_DEFAULT


def largest_near(passes, start, most):
    """The largest size that passes, to within half a per cent: steps away from `start`, each twice as far as the one
    before, until the answer lies between two sizes, then bisects. 0: nothing passes."""
    low, high, step = 0, most + 1, max(1, start // 50)
    size = max(1, min(start, most))
    while high - low > max(1, low // 200):
        if passes(size):
            low = size
            size = min(low + step, most) if high > most else (low + high) // 2
        else:
            high = size
            size = max(high - step, 1) if low == 0 else (low + high) // 2
        step *= 2
    return low
