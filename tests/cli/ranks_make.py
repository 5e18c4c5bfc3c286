# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Writes the run file of a rank with known iterations.

    ranks_make.py BASE FILE NAME=VALUE... -- PHASE=MS,...xN...

BASE is a run without marks. Names in capitals, and `job`, are labels; others are keys of the run. Each word after -- is N equal
iterations: "forward=20,backward=80x19".
"""

import re
import shutil
import sqlite3
import sys

MS = 10**6
base, path, *words = sys.argv[1:]
split = words.index("--")
shutil.copy(base, path)
run = sqlite3.connect(path)
for table in ("finding", "span", "span_block", "label"):
    run.execute(f"DELETE FROM {table}")
for word in words[:split]:
    name, value = word.split("=", 1)
    label = name.isupper() or name == "job"
    run.execute(f"INSERT OR REPLACE INTO {'label' if label else 'run'} VALUES (?, ?)", (name, value))
iterations = []
for word in words[split + 1 :]:
    phases, number = re.fullmatch(r"(.*)x(\d+)", word).groups()
    iterations += [[(part.split("=")[0], float(part.split("=")[1])) for part in phases.split(",")]] * int(number)
at = 100 * MS
for number, phases in enumerate(iterations):
    begin = at
    for name, length in phases:
        run.execute("INSERT INTO span (name, kind, start_ns, end_ns, thread, attributes) VALUES (?, 'phase', ?, ?, 100, '{\"pid\":77}')",
                    (name, at, at + int(length * MS)))  # fmt: skip
        at += int(length * MS)
    run.execute("INSERT INTO span (name, kind, start_ns, end_ns, thread, number, samples, attributes) "
                "VALUES ('iteration', 'iteration', ?, ?, 100, ?, 16, '{\"pid\":77}')", (begin, at, number + 1))  # fmt: skip
end = run.execute("SELECT value FROM run WHERE key = 'end_ns'").fetchone()
if end:
    run.execute("UPDATE run SET value = ? WHERE key = 'end_ns'", (str(max(int(end[0]), at + 100 * MS)),))
run.commit()
