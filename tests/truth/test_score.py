#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of tests/truth/score with made-up verdicts."""

import sys
import unittest
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

sys.dont_write_bytecode = True
PATH = str(Path(__file__).resolve().with_name("score"))
SPEC = spec_from_loader("score", SourceFileLoader("score", PATH))
score = module_from_spec(SPEC)
SPEC.loader.exec_module(score)


def truth(**more):
    """The truth about a run."""
    return {"right": ["input"], "partly": ["threads"], "removes": "worker", "gain": 2.0, "held_out": False,
            "source": "own", "cause": "slow loader", **more}  # fmt: skip


def page(named="input", confidence="medium", gain="estimated", times=1.8, causes=(), count=10):
    """The output of strain show."""
    advice = {"gain": gain, "action": "4 workers", "settings": [], "times_faster": {"value": times}}
    return {"verdict": {"bottleneck": named, "confidence": confidence, "headline": "words", "suggestions": [advice],
                        "causes": [{"cause": c} for c in causes]}, "iterations": {"count": count}}  # fmt: skip


def row(known=None, **shown):
    """A scored row."""
    return score.score("job", known or truth(), page(**shown))


class Score(unittest.TestCase):
    """Each figure."""

    def test_classes(self):
        self.assertEqual(row()["class"], "right")
        self.assertEqual(row(named="threads")["class"], "partly")
        self.assertEqual(row(named="host", causes=["host", "input"])["class"], "partly")
        self.assertEqual(row(named="host", causes=["host", "cpu", "input"])["class"], "wrong")
        self.assertEqual(row(truth(right=["leak"]), named="compute", causes=["compute", "x", "leak"])["class"], "right")

    def test_removal_decides(self):
        weak = truth(right=["checkpoint"], removal="none", gain=1.01)
        self.assertEqual(row(weak, named="compute")["class"], "right")
        self.assertEqual(row(truth(right=["checkpoint"], removal="none", gain=1.3), named="compute")["class"], "wrong")
        threads = truth(right=["compute"], removal="OMP_NUM_THREADS=1: fewer", partly=[], gain=1.4)
        self.assertEqual(row(threads, named="threads")["class"], "right")
        self.assertEqual(row({**threads, "gain": 1.1}, named="threads")["class"], "wrong")

    def test_promises(self):
        self.assertAlmostEqual(row()["error"], 0.1)
        self.assertIsNone(row(gain="at most")["error"])
        self.assertIsNone(row(truth(removes="disk"))["error"])
        self.assertIsNone(row(truth(gain=None))["error"])
        self.assertTrue(row(truth(gain=1.0))["hollow"])
        self.assertFalse(row(truth(gain=1.2))["hollow"])

    def test_counts(self):
        self.assertIsNone(row()["counts"])
        self.assertTrue(row(truth(own_count=10))["counts"])
        self.assertFalse(row(truth(own_count=11))["counts"])

    def test_figures(self):
        rows = [row(), row(named="threads"), row(named="host", confidence="high")]
        got = {name: value for name, value, _ in score.figures(rows)}
        self.assertEqual(got["cause named right (partly counts half)"], "50% of 3")
        self.assertEqual(got["wrong with high confidence"], "1")
        self.assertEqual(got["right, of verdicts with medium confidence"], "75% of 2")

    def test_worse(self):
        old = {"job": {"class": "right", "confidence": "medium"}}
        self.assertEqual(list(score.worse([row()], old)), [])
        self.assertEqual(len(list(score.worse([row(named="threads")], old))), 1)
        wrong = {"job": {"class": "wrong", "confidence": "low"}}
        self.assertEqual(len(list(score.worse([row(named="host", confidence="high")], wrong))), 1)
        self.assertEqual(list(score.worse([row(named="host", confidence="low")], wrong)), [])
        self.assertEqual(list(score.worse([row(named="host")], {})), [])

    def test_markdown(self):
        text = score.markdown([row(named="host"), row(truth(held_out=True))])
        self.assertIn("## Held out: 1 jobs", text)
        self.assertIn("expected input; said: words", text)


if __name__ == "__main__":
    unittest.main()
