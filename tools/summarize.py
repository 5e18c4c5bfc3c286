#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counts the single tests in logs of `meson test`, names those that failed or were skipped.

    tools/summarize.py [--label TEXT] [--again LOG.json] LOG.json...
    tools/summarize.py --names-of-failed LOG.json...
    tools/summarize.py --passed SUITE LOG.json...     the status is 0 if all of it ran and passed

A program that speaks TAP (bats) or is made with cmocka counts with the tests inside it, any other
as one. What stands in the log of a second run counts as there; what it passed only there is named.
The last line is "N passed, N failed, N skipped"; the status is 1 if any failed or none ran.
"""

import argparse
import json
import os
import re
import sys

TAP_LINE = re.compile(r"^(not )?ok \d+ (?:- )?(.*?)(?:\s+# skip\s*(.*))?$", re.IGNORECASE)
CMOCKA_LINE = re.compile(r"^\[\s*(OK|FAILED|SKIPPED)\s*\] (\w+)$")
EXCERPT_LINES = 60
GOOD = ("OK", "SKIP", "EXPECTEDFAIL")


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


def has_failed(test):
    """Whether Meson says so of a line of its log."""
    return test["result"] not in GOOD


def print_excerpt(test, words):
    """The end of what a test printed."""
    print(f"--- {test['name']} {words}; the end of its output:")
    for line in output_of(test).strip().splitlines()[-EXCERPT_LINES:]:
        print("    " + line)


def output_of(test):
    return test.get("stdout", "") + "\n" + test.get("stderr", "")


def count_test(test, counts):
    """Counts one line of Meson's log."""
    name, result = test["name"], test["result"]
    output = output_of(test)
    if result == "SKIP" and not any(TAP_LINE.match(line) for line in output.splitlines()):
        counts.skipped.append(f"{name}: {last_line(output)}")
        return
    failed_before = len(counts.failed)
    inside = count_tap(name, output, counts) or count_cmocka(name, output, counts)
    if not has_failed(test) and not inside:
        counts.passed += 1
    if has_failed(test) and len(counts.failed) == failed_before:
        counts.failed.append(f"{name}: {result.lower()}, status {test.get('returncode')}")
    if len(counts.failed) > failed_before:
        print_excerpt(test, "failed")


def read_log(path):
    """The lines of a log of Meson's."""
    with open(path, encoding="utf-8", errors="replace") as log:
        return [json.loads(line) for line in log]


def second_run(path):
    """What ran again, by name; nothing where nothing had to."""
    return {test["name"]: test for test in read_log(path)} if path and os.path.exists(path) else {}


def bare_name(test):
    """A test's name as `meson test NAME` takes it: without its suites."""
    return test["name"].rsplit(" / ", 1)[-1]


def suites_of(test):
    """The suites of a test: Meson says "project:one+other / name"."""
    return test["name"].rsplit(" / ", 1)[0].split(":")[-1].split("+")


def has_passed(suite, paths):
    """Whether there are tests of this suite, and all of them ran and passed the first time."""
    results = [test["result"] for path in paths if os.path.exists(path) for test in read_log(path)
               if suite in suites_of(test)]  # fmt: skip
    return bool(results) and set(results) == {"OK"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--label", default="")
    parser.add_argument("--again", metavar="LOG", help="of those that ran a second time")
    parser.add_argument("--names-of-failed", action="store_true")
    parser.add_argument("--passed", metavar="SUITE")
    parser.add_argument("logs", nargs="+")
    arguments = parser.parse_args()
    if arguments.names_of_failed:
        failed = [test for path in arguments.logs for test in read_log(path) if has_failed(test)]
        print("\n".join(bare_name(test) for test in failed))
        return 0
    if arguments.passed:
        return 0 if has_passed(arguments.passed, arguments.logs) else 1
    counts = Counts()
    unsteady = []
    try:
        again = second_run(arguments.again)
        for test in [test for path in arguments.logs for test in read_log(path)]:
            second = again.get(test["name"], test)
            if has_failed(test) and not has_failed(second):
                print_excerpt(test, "failed beside others and passed by itself")
                unsteady.append(test["name"])
            count_test(second, counts)
    except (OSError, ValueError) as error:
        counts.failed.append(str(error))
    for line in counts.skipped:
        print(f"skipped: {line}")
    for line in unsteady:
        print(f"unsteady: {line}: failed beside others, passed by itself")
    for line in counts.failed:
        print(f"failed: {line}")
    print(arguments.label + counts.line())
    return 1 if counts.failed or not counts.passed else 0


if __name__ == "__main__":
    sys.exit(main())
