#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bottlenecks that are put in on purpose: does the verdict name them?

A case runs a training job without the injection, with it, without it again, and so on: each run
with it is held against those before and after it, so that a machine that becomes slower meanwhile
does not count. The truth is what removing it gains, measured: 1 - time without / time with. The
verdict of the run with it must name the case's class, its share must agree with the truth within 10
points, and it must not be wrong with high confidence; nor may the verdict of a run without it be, by
naming what is not there.

    run.py [--repeats N] [--keep FOLDER] [CASE...]    all cases where none is named; --list
    run.py --table FOLDER                             what the runs kept there say, read anew

--quick, for the test suite, runs only the injected half of what needs no privilege, and asks only
that the cause is among those that were found: it holds on a busy machine too.

Needs STRAIN (the program) and BUILD_ROOT (for onednn-train) in the environment; VERBOSE=1 prints
each repeat. Exit status: 0 all right, 1 a case failed, 77 nothing could be run.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

from settings import (AffinitySetting, CheckpointSetting, CpusetSetting, DiskSetting,
                      MemorySetting, Setting, Skip)  # fmt: skip

BUILD = os.environ.get("BUILD_ROOT", "build")
STRAIN = os.environ.get("STRAIN", BUILD + "/strain")
TRAIN = BUILD + "/workloads/onednn/onednn-train"
PYTHON = "/usr/bin/python3"  # the distribution's, which has its PyTorch
TORCH_JOB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_job.py")
AGREEMENT = 0.10
NOTHING = 0.05  # what the injection cost, at most, to have cost nothing: no verdict names less
OTHERS = 0.15  # CPUs that other programs may use while a case is measured
ATTEMPTS = 4


def program(name):
    """The command of a workload."""
    if name == "onednn":
        if not os.access(TRAIN, os.X_OK):
            raise Skip("onednn-train is not built")
        return [TRAIN]
    if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, check=False).returncode:
        raise Skip("no PyTorch (make frameworks)")
    return [PYTHON, TORCH_JOB]


class Case:
    """A job, what is put in, and what the verdict should say.

    plain: arguments of both runs; injected, clean: further ones of either. Environment of the
    injected run likewise; None: not set. quick: the injected arguments for the test suite.
    """

    def __init__(self, name, expected, plain, injected, **more):
        self.name, self.expected = name, expected.split("|")
        self.plain, self.injected = plain.split(), injected.split()
        self.clean = more.get("clean", "").split()
        self.environment = more.get("environment", {})
        self.program = more.get("program", "onednn")
        self.quick = more.get("quick")
        self.setting = more.get("setting", Setting)

    def command(self, injected):
        return program(self.program) + self.plain + (self.injected if injected else self.clean)


CASES = [
    Case("a transform that spins", "input", "-n 6400 -e 3 -w 1 -t 1", "--prepare-us 1200",
         quick="-n 320 -e 2 -w 1 -t 1 --prepare-us 3000"),
    Case("a slow disk, cold", "storage", "-n 6400 -e 1 -w 2 -t 1", "", setting=DiskSetting),
    Case("one CPU for four workers", "contention", "-n 6400 -e 2 -w 4 -t 1 --prepare-us 150", "",
         setting=CpusetSetting),
    Case("the same by affinity", "contention", "-n 6400 -e 2 -w 4 -t 1 --prepare-us 150", "",
         setting=AffinitySetting),
    Case("OpenMP threads that spin", "threads", "-n 3200 -e 1 -w 4 --prepare-us 1500", "-t 2",
         clean="-t 1", environment={"OMP_WAIT_POLICY": "active"}),
    Case("two ranks whose threads spin", "threads", "-n 6400 -e 1 -w 1 --ranks 2 --prepare-us 300",
         "-t 2", clean="-t 1", environment={"OMP_WAIT_POLICY": "active"}),
    Case("memory below the dataset", "memory", "-n 6400 -e 2 -w 2 -t 1", "",
         setting=MemorySetting),
    Case("a script that is the limit", "host|not-known", "-n 6400 -e 2 -w 1 -t 1", "--step-us 8000",
         quick="-n 1280 -e 2 -w 1 -t 1 --model tiny --step-us 20000"),
    Case("a model that is large", "compute", "-e 2 -w 1 -t 1", "-n 640 --model wide",
         clean="-n 640 --model tiny", quick="-n 640 -e 2 -w 1 -t 1 --model wide"),
    Case("one slow worker of four", "input", "-n 3200 -e 2 -w 4 -t 1",
         "--slow-worker 2 --slow-worker-us 4000",
         quick="-n 1600 -e 2 -w 4 -t 1 --model tiny --slow-worker 2 --slow-worker-us 3000"),
    Case("one slow rank of two", "ranks", "-n 1600 -e 2 -t 1 --ranks 2",
         "--slow-rank 1 --slow-rank-us 40000",
         quick="-n 800 -e 2 -t 1 --ranks 2 --slow-rank 1 --slow-rank-us 40000"),
    Case("a validation pass", "validation", "-n 3200 -e 4 -w 1 -t 1", "--validate 100",
         quick="-n 2560 -e 3 -w 1 -t 1 --validate 240"),
    Case("a checkpoint every epoch", "checkpoint", "-n 3200 -e 3 -w 1 -t 1",
         "--checkpoint-bytes 400000000", setting=CheckpointSetting),
    Case("PyTorch: a model that is tiny", "host", "--model tiny --edge 4 --samples 40000 --epochs 2",
         "--batch-size 8", clean="--batch-size 400", program="torch"),
    Case("PyTorch: threads beside workers", "threads", "--samples 3200 --workers 3 --prepare-us 800",
         "--threads 2", clean="--threads 1", environment={"OMP_WAIT_POLICY": None}, program="torch"),
    Case("PyTorch: a transform that spins", "input", "--workers 1 --samples 3200 --epochs 2",
         "--prepare-us 1200", program="torch"),
    Case("PyTorch: a report after each epoch", "between", "--samples 1600 --epochs 24 --batch-size 64",
         "--report-ms 400", quick="--samples 1600 --epochs 6 --batch-size 64 --report-ms 400",
         program="torch"),
]  # fmt: skip


def training_seconds(path):
    """From the first iteration to the end of what belongs to training."""
    query = ("SELECT min(start_ns) FILTER (WHERE kind = 'iteration') AS first, max(end_ns) AS last"
             " FROM span WHERE kind = 'iteration' OR name IN ('validation', 'checkpoint')")  # fmt: skip
    said = subprocess.run([STRAIN, "sql", "--json", path, query], check=True, capture_output=True)
    (row,) = json.loads(said.stdout)
    return (row["last"] - row["first"]) / 1e9


class Run:
    """One recorded run: its verdict, and how long training took."""

    def __init__(self, path):
        shown = subprocess.run([STRAIN, "show", "--json", path], check=True, capture_output=True)
        document = json.loads(shown.stdout)
        job, recording = document["job"], document["recording"]
        self.seconds = training_seconds(path)
        self.verdict = document["verdict"]
        self.cpus = job["cpus"]
        # CPUs that neither the job nor the recorder used.
        self.noise = job["host_cpus_used"] - job["cpus_used"] - (recording["cpu_ratio"] or 0)

    def share(self, names):
        for cause in self.verdict["causes"]:
            if cause["cause"] in names:
                return cause["share"]["value"]
        return 0.0


def record(case, setting, injected, path, command=None):
    """Records one run."""
    command = command or case.command(injected)
    environment = dict(os.environ, OMP_WAIT_POLICY="passive")
    if injected:
        environment.update(case.environment)
    environment = {name: value for name, value in environment.items() if value is not None}
    try:
        command = setting.prefix(injected) + command + setting.before(injected)
        subprocess.run([STRAIN, "run", "-o", path, "--"] + command, env=environment, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                       preexec_fn=lambda: setting.enter(injected))  # fmt: skip
    except subprocess.CalledProcessError as error:
        print(error.stderr.decode(), file=sys.stderr)
        raise
    finally:
        setting.after()
    return Run(path)


def record_quietly(case, setting, injected, path):
    """The quietest of a few attempts; the first that is quiet enough. Its file is at the path."""
    best = None
    for _ in range(ATTEMPTS):
        attempt = path.replace(".strain", "-attempt.strain")
        if os.path.exists(attempt):
            os.remove(attempt)
        run = record(case, setting, injected, attempt)
        if best is None or run.noise < best.noise:
            best = run
            os.replace(attempt, path)
        if run.noise <= OTHERS:
            break
    return best


class Result:
    """One repeat of a case."""

    def __init__(self, case, before, injected, after):
        without_s = (before.seconds + after.seconds) / 2
        self.case = case.name
        self.truth = max(0.0, 1 - without_s / injected.seconds)
        self.noise = max(before.noise, injected.noise, after.noise)
        self.named = injected.verdict["bottleneck"]
        self.confidence = injected.verdict["confidence"]
        self.share = injected.share(case.expected)
        self.cpus = injected.cpus
        self.right = self.named in case.expected
        # The machine was full already, say: there is nothing to be named, and that must not be said.
        self.nothing = self.truth < NOTHING
        self.agrees = abs(self.share - self.truth) <= AGREEMENT
        self.clean = []  # of the runs without it: what is named, how surely, and the case's share
        self.sure = self.right == self.nothing and self.confidence == "high"  # and wrong
        for run in before, after:
            named, confidence = run.verdict["bottleneck"], run.verdict["confidence"]
            self.clean.append((named, confidence, run.share(case.expected)))
            self.sure |= named in case.expected and confidence == "high"

    def line(self):
        """For those who want to see each repeat."""
        clean = ", ".join("%s %s (%.2f)" % one for one in self.clean)
        return "    truth %.2f named %s share %.2f %s, %g CPUs, noise %.2f; without: %s" % (
            self.truth, self.named, self.share, self.confidence, self.cpus, self.noise, clean)  # fmt: skip


def paths(case, folder, repeat):
    """Where the three runs of a repeat are."""
    name = "".join(c if c.isalnum() else "-" for c in case.name)
    return ["%s/%s-%d-%s.strain" % (folder, name, repeat, which)
            for which in ("before", "with", "after")]  # fmt: skip


def measure(case, repeats, folder):
    """Yields a Result for each repeat. The run after one is the run before the next."""
    setting = case.setting(folder)
    repeat = 0
    before, last = None, None
    for _ in range(repeats):
        while os.path.exists(paths(case, folder, repeat)[0]):
            repeat += 1
        first, second, third = paths(case, folder, repeat)
        if before:
            os.link(last, first)
        else:
            before = record_quietly(case, setting, False, first)
        injected = record_quietly(case, setting, True, second)
        after = record_quietly(case, setting, False, third)
        yield Result(case, before, injected, after)
        before, last = after, third


def measured(case, folder):
    """The Results of repeats that were kept."""
    kept = [paths(case, folder, repeat) for repeat in range(100)]
    return [Result(case, *map(Run, files)) for files in kept if all(map(os.path.exists, files))]


def report(results):
    """A line for a case: how it went."""
    counted = [result for result in results if not result.nothing]
    right = sum(result.right for result in counted)
    agree = sum(result.agrees for result in results)
    sure = sum(result.sure for result in results)
    median = statistics.median
    names = [result.named for result in results]
    print("%-32s %5.0f %% %-12s %5.0f %%  %-6s  %d/%d named, %d/%d agree%s%s%s" % (
        results[0].case, 100 * median(r.truth for r in results), max(names, key=names.count),
        100 * median(r.share for r in results), results[0].confidence, right, len(counted), agree,
        len(results), "" if len(counted) == len(results) else ", of which %d cost nothing" % (
            len(results) - len(counted)), ", %d WRONG WITH HIGH CONFIDENCE" % sure if sure else "",
        "" if all(r.noise <= OTHERS for r in results) else "  (beside others)"), flush=True)  # fmt: skip
    if os.environ.get("VERBOSE"):
        for result in results:
            print(result.line(), flush=True)
    return right == len(counted) and agree == len(results) and not sure


def print_head():
    print("%-32s %7s %-12s %7s  %-6s" % ("CASE", "TRUTH", "VERDICT", "SHARE", "SURE"))


def print_table(folder):
    """True: all right."""
    print_head()
    results = [measured(case, folder) for case in CASES]
    return all([report(one) for one in results if one])


def run_quick(case, folder):
    """The cause is found: first, or beside a lack of CPUs, which a busy machine is."""
    path = folder + "/quick.strain"
    command = program(case.program) + case.quick.split()
    quick = record(case, case.setting(folder), True, path, command)
    os.remove(path)
    named, share = quick.verdict["bottleneck"], quick.share(case.expected)
    found = named in case.expected or (share > 0 and named == "contention")
    print("%-32s %-12s %3.0f %%  %s%s" % (case.name, named, 100 * share,
                                         quick.verdict["confidence"], "" if found else "  NOT FOUND"))
    if not found:
        print(json.dumps(quick.verdict, indent=1))
    return found


def run(case, options, folder):
    """True: it passed, False: it did not, None: it was skipped."""
    try:
        if options.quick:
            return run_quick(case, folder) if case.quick else None
        return report(list(measure(case, options.repeats, folder)))
    except Skip as reason:
        print("%-32s skipped: %s" % (case.name, reason))
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--keep", metavar="FOLDER", help="the runs stay there, beside earlier ones")
    parser.add_argument("--table", metavar="FOLDER", help="run nothing: what is kept there")
    parser.add_argument("cases", nargs="*", help="words of their names; all where none is given")
    options = parser.parse_args()
    chosen = [case for case in CASES
              if not options.cases or any(word in case.name for word in options.cases)]  # fmt: skip
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    if options.table:
        return 0 if print_table(options.table) else 1
    if not options.quick:
        print_head()
    with tempfile.TemporaryDirectory(prefix="strain-cases-") as folder:
        results = [run(case, options, options.keep or folder) for case in chosen]
    ran = [result for result in results if result is not None]
    return 77 if not ran else 0 if all(ran) else 1


if __name__ == "__main__":
    sys.exit(main())
