# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies of runs as a slower recorder would have written them, and the differences of their figures."""

import contextlib
import json
import random
import shutil
import sqlite3
import statistics
import sys
import zlib
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "docs"))

from read_run import MISSING, read_block

ROWS_MAX = 4096  # per block


def varint(number):
    """An unsigned number, 7 bits a byte."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def signed(number):
    """A signed number; differences wrap at 64 bits."""
    number = (number + 2**63) % 2**64 - 2**63
    return varint(number << 1 if number >= 0 else (-number << 1) - 1)


def column(values):
    """A column of a block: differences to the previous value (kind 3), run-length coded if some are missing."""
    runs, there = [0], True
    for value in values:
        if (value != MISSING) != there:
            there = not there
            runs.append(0)
        runs[-1] += 1
    read = [value for value in values if value != MISSING]
    if not read:
        return bytes([0])
    gaps = b"" if len(runs) == 1 else varint(len(runs)) + b"".join(map(varint, runs))
    differences = (signed(b - a) for a, b in zip(read, read[1:]))
    return bytes([3 | (128 if gaps else 0)]) + gaps + varint(1) + signed(read[0]) + b"".join(differences)


def block(metrics, times, columns):
    """The payload of a block with times of its own, not compressed (codec 1)."""
    parts = [column(times), *map(column, columns)]
    body = b"".join([bytes([0]), varint(len(times)), varint(len(metrics)), *map(varint, metrics),
                     *(varint(len(part)) + part for part in parts)])  # fmt: skip
    return body + zlib.crc32(body).to_bytes(4, "little")


class Run:
    """The readings of a run in streams: one entity, and metrics that are read together."""

    def __init__(self, path):
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as base:
            keys = dict(base.execute("SELECT key, value FROM run"))
            self.interval_us = int(keys["interval_ns"]) // 1000
            self.end_us = int(keys["end_ns"]) // 1000
            self.metrics = {row[0]: row[1] for row in base.execute("SELECT id, name FROM metric")}
            self.kinds = dict(base.execute("SELECT id, kind FROM entity"))
            rows = base.execute("SELECT b.entity, b.source, b.codec, b.payload, c.codec, c.payload FROM block b "
                                "LEFT JOIN clock c ON c.id = b.clock ORDER BY b.t_first, b.id")  # fmt: skip
            self.streams = {}
            for entity, source, codec, payload, clock_codec, clock_payload in rows:
                clock = read_block(clock_codec, clock_payload, [])[0] if clock_payload else []
                times, columns = read_block(codec, payload, clock)
                columns = list(columns)
                if any(aggregate for _, aggregate, _ in columns):
                    raise ValueError(f"{path}: its oldest readings were merged to keep its size limit")
                key = entity, source, tuple(metric for metric, _, _ in columns)
                stream = self.streams.setdefault(key, ([], [[] for _ in columns]))
                stream[0].extend(times)
                for old, (_, _, values) in zip(stream[1], columns, strict=True):
                    old.extend(values)

    def is_tick(self, key):
        """Whether a stream is read at every tick: CPU time and memory of processes and of the job."""
        return key[1] == "processes" and "process.cpu.time" in (self.metrics[m] for m in key[2])

    def largest(self, name):
        """The largest reading of a metric of the job, or None."""
        values = [value for (entity, _, metrics), (_, columns) in self.streams.items()
                  for metric, column in zip(metrics, columns, strict=True)
                  if self.kinds[entity] == "job" and self.metrics[metric] == name
                  for value in column if value != MISSING]  # fmt: skip
        return max(values, default=None)

    def steady_us(self, key):
        """The reading interval of such streams, as the median over all entities; None: not known."""
        if self.is_tick(key):
            return self.interval_us
        steps = [b - a for other, (times, _) in self.streams.items() if other[1:] == key[1:]
                 for a, b in zip(times, times[1:])]  # fmt: skip
        return statistics.median(steps) if steps else None


def kept(times, interval, before, offset, ends, begins):
    """Indexes of the readings that ticks of this interval would have taken: the last one at each tick. ends: the
    entity ended at its last reading, so no later tick reads it. begins: the recorder read it at its start."""
    places = {}
    for place, time in enumerate(times):
        places[(time - offset) // interval] = place
    last = max(places)
    if ends and (last + 1) * interval + offset - times[-1] > 1.5 * before:
        del places[last]
    return sorted({*([0] if begins else []), *places.values()})


def fewer_looks(names, columns, share, chance):
    """Counters of looks, with each look kept at this probability. The sums are recomputed."""
    sums = [i for i, name in enumerate(names) if name in ("strain.wait.looks", "strain.wait.placed")]
    out = []
    for i, values in enumerate(columns):
        total, before, new = 0, 0, []
        for value in values:
            if value == MISSING:
                new.append(MISSING)
                continue
            total += sum(chance.random() < share for _ in range(value - before)) if i not in sums else 0
            before = value
            new.append(total)
        out.append(new)
    for i in sums:
        others = [c for j, c in enumerate(out) if j != i]
        out[i] = [MISSING if columns[i][row] == MISSING else sum(c[row] for c in others if c[row] != MISSING)
                  for row in range(len(out[i]))]  # fmt: skip
    return out


# Sources that are slowed besides the ticks: none; samples of waits; all others; all, like --interval does.
# Never the memory source (smaps): the cost of a reading sets its interval of seconds.
MODES = {"ticks": lambda origin: False, "waits": lambda origin: origin == "waits",
         "rest": lambda origin: origin not in ("waits", "memory"),
         "all": lambda origin: origin != "memory"}  # fmt: skip


def slower(run, source, target, interval_us, mode, offset):
    """Writes a copy of a run with the readings of a slower tick; other sources are slowed by mode (MODES).
    offset: start of the ticks, as a fraction of their interval."""
    factor = interval_us / run.interval_us
    shutil.copyfile(source, target)
    target.chmod(0o644)
    rows = []
    for key, (times, columns) in run.streams.items():
        entity, origin, metrics = key
        names = [run.metrics[metric] for metric in metrics]
        before = run.steady_us(key)
        if before and factor > 1 and (run.is_tick(key) or MODES[mode](origin)):
            lives_on = times[-1] > run.end_us - 2 * before
            ends = run.kinds[entity] == "process" and not lives_on \
                and "strain.memory.peak" not in names  # which is also read at the start of a process
            begins = times[0] < 2 * run.interval_us
            if origin == "waits":
                chance = random.Random(f"{entity} {names[0]} {offset}")
                columns = fewer_looks(names, columns, 1 / factor, chance)
            places = kept(times, before * factor, before, offset * before * factor, ends, begins)
            times = [times[i] for i in places]
            columns = [[values[i] for i in places] for values in columns]
        for at in range(0, len(times), ROWS_MAX):
            some = times[at:at + ROWS_MAX]
            payload = block(metrics, some, [values[at:at + ROWS_MAX] for values in columns])
            rows.append((entity, origin, some[0] * 1000, some[-1] * 1000, len(some), payload))
    with contextlib.closing(sqlite3.connect(target)) as base:
        base.execute("DELETE FROM block")
        base.execute("DELETE FROM clock")
        base.execute("DELETE FROM summary")
        base.execute("UPDATE run SET value = ? WHERE key = 'interval_ns'", (str(interval_us * 1000),))
        base.executemany("INSERT INTO block (entity, source, t_first, t_last, rows, codec, payload) "
                         "VALUES (?, ?, ?, ?, ?, 1, ?)", rows)  # fmt: skip
        base.commit()


def figures(page):
    """The compared figures, from `strain show --json`."""
    verdict, job, steps = page["verdict"], page["job"], page["iterations"]
    cause = (verdict["causes"] or [{}])[0]
    advice = (verdict["suggestions"] or [{}])[0]
    gain = advice.get("times_faster") or {}
    peak, bound = job["memory_peak_bytes"], job["memory_peak_at_most_bytes"]
    return {
        "cause": verdict["bottleneck"], "confidence": verdict["confidence"],
        "causes": [c["cause"] for c in verdict["causes"] or []],
        "share": (cause.get("share") or {}).get("value"),
        "promise": advice.get("gain"), "action": advice.get("action"), "gain": gain.get("value"),
        "peak": peak, "peak_kind": (job["memory_peak_source"], job["memory_kind"]),
        "peak_exact": None if peak is None else bound == peak, "memory_mean": job["memory_mean_bytes"],
        "cpu": job["cpus_used"], "cpu_p95": job["cpus_used_p95"],
        "iterations": json.dumps([steps, page["phases"]], sort_keys=True),
        "epochs": [(e["seconds"], e["cpus_used"], e["host_memory_peak_bytes"]) for e in page["epochs"]],
        "processes": sum(p["cpu_seconds"] is not None for p in page["processes"]),
        "growth": bool((job["memory_growth"] or {}).get("leak")),
    }  # fmt: skip


def change(new, old):
    """The relative change; None if one value is not known."""
    if new is None or old is None:
        return None
    return 0.0 if new == old else abs(new / old - 1) if old else None


def spread(values, scale=100, digits=1, unit=" %"):
    """Median and maximum of changes, as text."""
    values = [value for value in values if value is not None]
    if not values:
        return "-"
    return f"{statistics.median(values) * scale:.{digits}f}, {max(values) * scale:.{digits}f}{unit}"


def share_of(rows, differs):
    """The number of differences, as text."""
    return f"{sum(map(bool, map(differs, rows)))} of {len(rows)}"


def lines_of(pairs):
    """The rows of the table for pairs of figures, slower and full: (name, text)."""
    def same_action(new, old):
        return new["action"] == old["action"] and new["promise"] == old["promise"]

    epochs = [(a, b) for new, old in pairs for a, b in zip(new["epochs"], old["epochs"]) if b[0]]
    yield "another cause is first", share_of(pairs, lambda p: p[0]["cause"] != p[1]["cause"])
    yield "the same causes in another order, or others behind the first", share_of(
        pairs, lambda p: p[0]["cause"] == p[1]["cause"] and p[0]["causes"] != p[1]["causes"])
    yield "another confidence", share_of(pairs, lambda p: p[0]["confidence"] != p[1]["confidence"])
    yield "share of the first cause, points", spread(
        [abs(new["share"] - old["share"]) for new, old in pairs
         if new["cause"] == old["cause"] and None not in (new["share"], old["share"])], digits=2, unit="")
    yield "another first advice", share_of(pairs, lambda p: not same_action(*p))
    yield "estimated gain", spread([change(n["gain"], o["gain"]) for n, o in pairs if same_action(n, o)])
    yield "peak of memory", spread([change(n["peak"], o["peak"]) for n, o in pairs])
    yield "largest sum of anonymous memory read", spread([change(n["sampled"], o["sampled"]) for n, o in pairs], digits=2)
    yield "peak of another kind, or no longer exact", share_of(
        pairs, lambda p: (p[0]["peak_kind"], p[0]["peak_exact"]) != (p[1]["peak_kind"], p[1]["peak_exact"]))
    yield "mean of memory", spread([change(n["memory_mean"], o["memory_mean"]) for n, o in pairs])
    yield "mean CPUs", spread([change(n["cpu"], o["cpu"]) for n, o in pairs])
    yield "95th percentile of CPUs", spread([change(n["cpu_p95"], o["cpu_p95"]) for n, o in pairs])
    yield "iterations or phases differ", share_of(pairs, lambda p: p[0]["iterations"] != p[1]["iterations"])
    for name, least, most in (("under 0.2 s", 0, 0.2), ("0.2 to 0.5 s", 0.2, 0.5), ("0.5 to 2 s", 0.5, 2),
                              ("above 2 s", 2, 1e9)):  # fmt: skip
        some = [(a, b) for a, b in epochs if least <= b[0] < most]
        yield f"CPUs of epochs {name} ({len(some)})", spread([change(a[1], b[1]) for a, b in some])
        yield f"peak of epochs {name}", spread([change(a[2], b[2]) for a, b in some])
    yield "processes read, of those at the recorded rate", "{} of {}".format(
        sum(new["processes"] for new, _ in pairs), sum(old["processes"] for _, old in pairs))
