#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""read_run.py RUN prints its samples: entity, kind, name, metric, seconds, value, one to a line;
read_run.py --spans RUN its spans: id, kind, name, start and end in ns, parent, samples.
It is docs/format.md in code, with nothing but the standard library and libzstd."""
import sqlite3
import sys
import zlib
from ctypes import CDLL, c_size_t, c_ulonglong, create_string_buffer
from itertools import islice

MISSING = -(2**63)
EVERY, MINIMUM, MEAN, MAXIMUM = range(4)  # aggregates
zstd = CDLL("libzstd.so.1")
zstd.ZSTD_getFrameContentSize.restype = c_ulonglong
zstd.ZSTD_decompress.restype = c_size_t

def decompress(frame):
    size = c_size_t(len(frame))
    length = zstd.ZSTD_getFrameContentSize(frame, size)
    out = create_string_buffer(length if length <= 64 << 20 else 0)
    if zstd.ZSTD_decompress(out, c_size_t(len(out)), frame, size) != length:
        raise ValueError("no zstd frame")
    return out.raw

def varint(stream):
    byte = next(stream)
    return byte if byte < 128 else byte & 127 | varint(stream) << 7

def unzigzag(number):
    return (number >> 1) ^ -(number & 1)

def read_packed(stream, n):
    """Yields n numbers that are split into symbols and bits."""
    symbols, bits = bytes(islice(stream, n)), int.from_bytes(bytes(stream), "little")
    for symbol in symbols:
        low = max((symbol >> 2) - 1, 0)
        yield symbol if symbol < 8 else (4 + (symbol & 3)) << low | bits & ((1 << low) - 1)
        bits >>= low

def read_column(stream, rows):
    """Returns the column's values, MISSING where one was not read."""
    kind, packed, gaps = (code := next(stream)) & 63, code & 64, code & 128
    if kind == 0:
        return [MISSING] * rows
    runs = [varint(stream) for _ in range(varint(stream))] if gaps else [rows]
    rest = sum(runs[::2]) - 1
    unit = varint(stream) if kind in (2, 3, 4) else 0
    values = [unzigzag(varint(stream))]
    delta = unzigzag(varint(stream)) if kind == 5 else 0
    if unit:
        numbers = read_packed(stream, rest) if packed else (varint(stream) for _ in range(rest))
    for number in numbers if unit else [0] * rest:
        residual = unzigzag(number) * unit
        delta = delta + residual if kind in (4, 5) else residual
        value = (values[0] if kind == 2 else values[-1]) + delta
        values.append((value + 2**63) % 2**64 - 2**63)  # sums wrap at 64 bits
    read = iter(values)
    return [MISSING if i % 2 else next(read) for i, run in enumerate(runs) for _ in range(run)]

def read_block(codec, payload, clock):
    """Returns times in microseconds and (metric id, aggregate, values) of each column."""
    if zlib.crc32(payload[:-4]) != int.from_bytes(payload[-4:], "little"):
        raise ValueError("its checksum does not match")
    stream = iter(payload[:-4])
    flags, rows, n = next(stream), varint(stream), varint(stream)
    metrics = [varint(stream) for _ in range(n)]
    aggregates = bytes(islice(stream, n)) if flags & 1 else [EVERY] * n
    columns = iter(decompress(bytes(stream))) if codec == 2 else stream
    parts = [iter(bytes(islice(columns, varint(columns)))) for _ in range(n + 1)]
    times, *values = [read_column(part, rows) for part in parts]
    return [clock[i] for i in times] if flags & 2 else times, zip(metrics, aggregates, values)

def read_samples(run, entity):
    """Yields (metric name, seconds, value or "") of an entity; of thinned gauges the mean."""
    metrics = {row[0]: row[1:] for row in run.execute("SELECT id, name, scale FROM metric")}
    blocks = """SELECT b.id, b.codec, b.payload, c.codec, c.payload FROM block b
        LEFT JOIN clock c ON c.id = b.clock WHERE b.entity = ? ORDER BY b.t_first, b.id"""
    for number, codec, payload, clock_codec, clock_payload in run.execute(blocks, (entity,)):
        try:
            clock = read_block(clock_codec, clock_payload, [])[0] if clock_payload else []
            times, columns = read_block(codec, payload, clock)
        except (ValueError, IndexError, StopIteration, RuntimeError) as error:
            print(f"damaged block {number}: {error}", file=sys.stderr)
            continue
        for metric, aggregate, values in columns:
            name, scale = metrics[metric]
            for t, value in zip(times, values if aggregate in (EVERY, MEAN) else []):
                yield name, t / 1e6, "" if value == MISSING else value * scale

def read_spans(run):
    """Yields id, kind, name, start, end, parent, samples: rows first, then those in blocks."""
    yield from run.execute("SELECT id, kind, name, start_ns, end_ns, parent, samples FROM span")
    for codec, words, payload in run.execute("SELECT codec, words, payload FROM span_block"):
        strings = words.decode().split("\0")
        starts, columns = read_block(codec, payload, [])
        for start, length, word, number, distance, _, samples in zip(
            starts, *(values for _, _, values in columns)
        ):
            yield (number, strings[4 * word + 1], strings[4 * word], start, start + length,
                   number - distance if distance else None, samples if samples >= 0 else None)

def print_spans(path):
    for span in read_spans(sqlite3.connect(f"file:{path}?mode=ro", uri=True)):
        print(*span, sep="\t")

def main(path):
    run = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    if run.execute("PRAGMA application_id").fetchone()[0] != 0x73747261:
        sys.exit(f"{path}: not a run file")
    for entity, kind, name in run.execute("SELECT id, kind, name FROM entity").fetchall():
        for metric, seconds, value in read_samples(run, entity):
            print(entity, kind, name, metric, f"{seconds:.6f}", value, sep="\t")

if __name__ == "__main__":
    (print_spans if sys.argv[1] == "--spans" else main)(sys.argv[-1])
