#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""Reads a run file of strain with the standard library and libzstd: docs/format.md in code.

    read_run.py RUN                      one line per entity and metric: rows, missing, last value
    read_run.py RUN ENTITY_ID METRIC     seconds and value of each sample
"""

import ctypes
import ctypes.util
import sqlite3
import sys
import zlib

MISSING = -(2**63)
NONE, MINIMUM, MEAN, MAXIMUM = range(4)  # aggregates


def decompress(data):
    """Returns the bytes of one zstd frame, which says how long they are."""
    zstd = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
    zstd.ZSTD_getFrameContentSize.restype = ctypes.c_ulonglong
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    length = zstd.ZSTD_getFrameContentSize(data, ctypes.c_size_t(len(data)))
    if length > 64 << 20:
        raise ValueError("damaged block: no zstd frame")
    out = ctypes.create_string_buffer(length)
    n = zstd.ZSTD_decompress(out, ctypes.c_size_t(length), data, ctypes.c_size_t(len(data)))
    if n != length:
        raise ValueError("damaged block: zstd cannot decompress it")
    return out.raw


class Bytes:
    """A position in a block's bytes."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        self.at += n
        return self.data[self.at - n : self.at]

    def unsigned(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7


def unzigzag(value):
    return (value >> 1) ^ -(value & 1)


def wrap(value):
    """Sums wrap at 64 bits."""
    return (value + 2**63) % 2**64 - 2**63


def read_packed(column, n):
    """Yields n numbers that are split into symbols and bits."""
    symbols = column.take(n)
    bits = int.from_bytes(column.data[column.at :], "little")
    for symbol in symbols:
        more = max((symbol >> 2) - 1, 0)
        yield symbol if symbol < 8 else (4 + (symbol & 3)) << more | bits & ((1 << more) - 1)
        bits >>= more


def read_column(column, rows):
    """Returns the column's values, MISSING where one was not read."""
    code = column.take(1)[0]
    kind = code & 0x3F
    if kind == 0:
        return [MISSING] * rows
    runs = [column.unsigned() for _ in range(column.unsigned())] if code & 0x80 else [rows]
    present = sum(runs[::2])
    unit = column.unsigned() if kind in (2, 3, 4) else 0
    values = [unzigzag(column.unsigned())]
    step = unzigzag(column.unsigned()) if kind == 5 else 0
    packed = read_packed(column, present - 1) if code & 0x40 else None
    delta = 0
    for _ in range(present - 1):
        number = next(packed) if packed else column.unsigned() if unit else 0
        residual = unzigzag(number) * unit + step
        delta = delta + residual if kind == 4 else residual
        values.append(wrap((values[0] if kind == 2 else values[-1]) + delta))
    result, at = [], 0
    for i, run in enumerate(runs):
        result += values[at : at + run] if i % 2 == 0 else [MISSING] * run
        at += run if i % 2 == 0 else 0
    return result


def read_block(codec, payload, clock=None):
    """Returns times in microseconds and a list of (metric id, aggregate, values).

    clock: times of the clock that the block is on, for one that has no times of its own.
    """
    if zlib.crc32(payload[:-4]) != int.from_bytes(payload[-4:], "little"):
        raise ValueError("damaged block: its checksum does not match")
    header = Bytes(payload[:-4])
    flags = header.take(1)[0]
    rows, n = header.unsigned(), header.unsigned()
    metrics = [header.unsigned() for _ in range(n)]
    aggregates = list(header.take(n)) if flags & 1 else [NONE] * n
    body = header.data[header.at :]
    columns = Bytes(decompress(body) if codec == 2 else body)
    decoded = [read_column(Bytes(columns.take(columns.unsigned())), rows) for _ in range(n + 1)]
    times = [clock[place] for place in decoded[0]] if flags & 2 else decoded[0]
    return times, list(zip(metrics, aggregates, decoded[1:]))


def read_samples(run, entity):
    """Yields (metric name, seconds, value or None) of an entity; of thinned gauges the mean."""
    metrics = {i: (name, scale) for i, name, scale in run.execute("SELECT id, name, scale FROM metric")}
    blocks = """SELECT b.id, b.codec, b.payload, c.codec, c.payload FROM block b
        LEFT JOIN clock c ON c.id = b.clock WHERE b.entity = ? ORDER BY b.t_first, b.id"""
    for number, codec, payload, clock_codec, clock_payload in run.execute(blocks, (entity,)):
        try:
            clock = read_block(clock_codec, clock_payload)[0] if clock_payload else None
            times, columns = read_block(codec, payload, clock)
        except (ValueError, IndexError, TypeError) as error:
            print(f"block {number}: {error}", file=sys.stderr)
            continue
        for metric, aggregate, values in columns:
            name, scale = metrics[metric]
            if aggregate in (NONE, MEAN):
                for t, value in zip(times, values):
                    yield name, t / 1e6, None if value == MISSING else value * scale


def main():
    run = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
    if run.execute("PRAGMA application_id").fetchone()[0] != 0x73747261:
        sys.exit(f"{sys.argv[1]}: not a run file")
    if len(sys.argv) == 4:
        for name, t, value in read_samples(run, int(sys.argv[2])):
            if name == sys.argv[3]:
                print(f"{t:.6f} {'' if value is None else repr(value)}")
        return
    for entity, kind, name in run.execute("SELECT id, kind, name FROM entity").fetchall():
        series = {}
        for metric, t, value in read_samples(run, entity):
            series.setdefault(metric, []).append(value)
        for metric, values in series.items():
            print(entity, kind, name, metric, len(values), values.count(None), values[-1], sep="\t")


if __name__ == "__main__":
    main()
