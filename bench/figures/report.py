# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""The report of a run of 24 hours: its size, and the time to open it in Chromium."""

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from harness import BUILD, STRAIN, Result, Skip, median, run_file

DAY_S, ROUNDS = 86400, 5


def open_seconds(chromium, page, profile):
    """The time from the start of a browser until the page is drawn."""
    start = time.perf_counter()
    subprocess.run(
        [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,2400",
         f"--user-data-dir={profile}", f"--screenshot={profile}/page.png", page.as_uri()],
        capture_output=True, check=True, timeout=120,
    )  # fmt: skip
    return time.perf_counter() - start


def measure():
    """Yields the lines."""
    make_run = BUILD / "tests/tools/make_run"
    with run_file() as path, tempfile.TemporaryDirectory() as folder:
        subprocess.run([make_run, path, str(DAY_S)], check=True, capture_output=True)
        page = Path(folder) / "report.html"
        start = time.perf_counter()
        made = subprocess.run([STRAIN, "report", path, "-o", page], capture_output=True, text=True,
                              check=False)  # fmt: skip
        if made.returncode:
            raise Skip(f"strain report: {made.stderr.strip()}")
        took = time.perf_counter() - start
        size = page.stat().st_size / 1e6
        yield Result("report of 24 hours", f"{size:.1f} MB", f"run file {path.stat().st_size / 1e6:.1f} MB",
                     f"made in {took:.1f} s", "under 5 MB", size < 5)  # fmt: skip
        chromium = shutil.which("chromium")
        if not chromium:
            raise Skip("no chromium to open it")
        empty = Path(folder) / "empty.html"
        empty.write_text("<!doctype html><title>empty</title>")
        bare, ours = [], []
        for _ in range(ROUNDS):
            bare.append(open_seconds(chromium, empty, folder))
            ours.append(open_seconds(chromium, page, folder))
        added = median(ours) - median(bare)
        yield Result("  opening it in Chromium", f"{median(ours):.2f} s",
                     f"an empty page {median(bare):.2f} s", f"{added:.2f} s more", "under 2 s",
                     added < 2)  # fmt: skip
