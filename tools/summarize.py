#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counts the single tests in logs of `meson test`, names those that failed or were skipped.

    tools/summarize.py [--label TEXT] LOG.json...

A program that speaks TAP (bats) or is made with cmocka counts with the tests inside it, any other
as one. The last line is "N passed, N failed, N skipped"; the status is 1 if any failed or none ran.
"""

import argparse
import json
import re
import sys

TAP_LINE = re.compile(r"^(not )?ok \d+ (?:- )?(.*?)(?:\s+# skip\s*(.*))?$", re.IGNORECASE)
CMOCKA_LINE = re.compile(r"^\[\s*(OK|FAILED|SKIPPED)\s*\] (\w+)$")
EXCERPT_LINES = 60


class Counts:
    """What became of the tests: passed is a number, failed and skipped are lists of lines."""

    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []

    def line(self):
        return f"{self.passed} passed, {len(self.failed)} failed, {len(self.skipped)} skipped"


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"


def count_tap(name, output, counts):
    """Counts the TAP lines of output; returns how many there were."""
    seen = 0
    for line in output.splitlines():
        match = TAP_LINE.match(line)
        if not match:
            continue
        seen += 1
        failed, title, reason = match.groups()
        if failed:
            counts.failed.append(f"{name}: {title}")
        elif reason is not None:
            counts.skipped.append(f"{name}: {title}: {reason or 'no reason given'}")
        else:
            counts.passed += 1
    return seen


def count_cmocka(name, output, counts):
    """Counts what cmocka printed; returns how many tests there were."""
    results, said = {}, {}
    before = ""
    for line in output.splitlines():
        match = CMOCKA_LINE.match(line)
        if match:
            results[match.group(2)] = match.group(1)
        elif before.startswith("[ RUN"):
            said[before.split("]")[1].strip()] = line.strip()
        before = line
    for title, result in results.items():
        if result == "OK":
            counts.passed += 1
        elif result == "SKIPPED":
            counts.skipped.append(f"{name}: {title}: {said.get(title, 'no reason given')}")
        else:
            counts.failed.append(f"{name}: {title}")
    return len(results)


def count_test(test, counts):
    """Counts one line of Meson's log."""
    name, result = test["name"], test["result"]
    output = test.get("stdout", "") + "\n" + test.get("stderr", "")
    if result == "SKIP" and not any(TAP_LINE.match(line) for line in output.splitlines()):
        counts.skipped.append(f"{name}: {last_line(output)}")
        return
    failed_before = len(counts.failed)
    inside = count_tap(name, output, counts) or count_cmocka(name, output, counts)
    good = result in ("OK", "SKIP", "EXPECTEDFAIL")
    if good and not inside:
        counts.passed += 1
    if not good and len(counts.failed) == failed_before:
        counts.failed.append(f"{name}: {result.lower()}, status {test.get('returncode')}")
    if len(counts.failed) > failed_before:
        excerpt = output.strip().splitlines()[-EXCERPT_LINES:]
        print(f"--- {name} failed; the end of what it printed:")
        print("\n".join("    " + line for line in excerpt))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--label", default="")
    parser.add_argument("logs", nargs="+")
    arguments = parser.parse_args()
    counts = Counts()
    for path in arguments.logs:
        try:
            with open(path, encoding="utf-8", errors="replace") as log:
                for line in log:
                    count_test(json.loads(line), counts)
        except (OSError, ValueError) as error:
            counts.failed.append(f"{path}: {error}")
    for line in counts.failed:
        print(f"failed: {line}")
    for line in counts.skipped:
        print(f"skipped: {line}")
    print(arguments.label + counts.line())
    return 1 if counts.failed or not counts.passed else 0


if __name__ == "__main__":
    sys.exit(main())
