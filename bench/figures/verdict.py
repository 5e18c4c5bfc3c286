# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Whether the verdict names deliberate bottlenecks: tests/cases, five times each."""

import os
import statistics
import sys
import tempfile

from harness import BUILD, ROOT, Result

REPEATS = 5


def measure():
    """Yields a line for each case."""
    os.environ["BUILD_ROOT"] = str(BUILD)
    os.environ["STRAIN"] = str(BUILD / "strain")
    sys.path.insert(0, str(ROOT / "tests" / "cases"))
    import run as cases  # pylint: disable=import-outside-toplevel

    with tempfile.TemporaryDirectory(prefix="strain-cases-") as folder:
        for case in cases.CASES:
            try:
                results = list(cases.measure(case, REPEATS, folder))
            except cases.Skip as why:
                print(f"verdict of {case.name}: skipped: {why}", flush=True)
                continue
            counted = [result for result in results if not result.nothing]
            named = sum(result.right for result in counted)
            agree = sum(result.agrees for result in results)
            sure = sum(result.sure for result in results)
            truth = statistics.median(result.truth for result in results)
            share = statistics.median(result.share for result in results)
            yield Result(f"verdict of {case.name}",
                         f"{case.expected[0]} {100 * share:.0f} % (median)",
                         f"removing it gained {100 * truth:.0f} %",
                         f"named {named} of {len(counted)} times that it cost anything, within 10 points "
                         f"{agree} of {REPEATS}",
                         "all, 5, never wrong with high confidence",
                         named == len(counted) > 0 and agree == REPEATS and not sure)  # fmt: skip
