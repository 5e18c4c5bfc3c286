# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes paper.sweep from a kept run: paper_sweep.py RUN.

Two batch sizes by two frameworks, three repeats each, whose epochs last what is known; one trial of it ran out
of memory, one has no epochs.
"""

import os
import shutil
import sqlite3
import sys

SECONDS = {
    ("32", "pytorch"): (1.20, 1.22, 1.21),
    ("32", "tensorflow"): (1.5, 1.6, 1.4),
    ("128", "pytorch"): (0.90, 0.91, 0.92),
    ("128", "tensorflow"): (1.45, 1.5, 1.55),
}


def make(n, name, labels, epoch_s, status=0, **keys):
    """The n-th run."""
    shutil.copy(sys.argv[1], name)
    os.chmod(name, 0o644)
    run = sqlite3.connect(name)
    run.execute("DELETE FROM label")
    # Other programs ran beside the trace, which is another test's matter.
    run.execute("UPDATE metric SET name = 'system.cpu.time.' || name WHERE name = 'system.cpu.time.user'")
    run.executemany("INSERT INTO label VALUES (?, ?)", labels.items())
    if epoch_s:
        run.execute(
            "UPDATE span SET start_ns = number * ?1, end_ns = (number + 1) * ?1 WHERE kind = 'epoch'",
            (int(epoch_s * 1e9),),
        )
    else:
        run.execute("DELETE FROM span WHERE kind = 'epoch'")
    run.execute("UPDATE run SET value = ? WHERE key = 'status'", (str(status),))
    for key, value in keys.items():
        run.execute("INSERT OR REPLACE INTO run VALUES (?, ?)", (key, value))
    run.execute("UPDATE run SET value = value + ? WHERE key = 'start_utc_ns'", (n * 10**10,))
    run.commit()
    run.close()


def main():
    """The command line."""
    os.mkdir("paper.sweep")
    os.chdir("paper.sweep")
    with open("plan.yaml", "w", encoding="ascii") as plan:
        plan.write("command: x\n")
    n = 0
    for trial, ((batch, framework), repeats) in enumerate(SECONDS.items(), 1):
        for repeat, epoch_s in enumerate(repeats, 1):
            labels = {"batch_size": batch, "framework": framework, "sweep": "paper"}
            make(n, f"{trial:04}-{repeat}.strain", {**labels, "trial": str(trial), "repeat": str(repeat)}, epoch_s)
            n += 1
    labels = {"framework": "pytorch", "sweep": "paper", "repeat": "1"}
    memory = {"outcome": "out_of_memory", "outcome_text": "out of device memory: tried to allocate 2 GiB"}
    make(n, "0005-1.strain", {"batch_size": "512", "trial": "5", **labels}, 1, 256, **memory)
    make(n + 1, "0006-1.strain", {"batch_size": "1024", "trial": "6", **labels}, None)


if __name__ == "__main__":
    main()
