#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bottlenecks that are put in on purpose: does the verdict name them?

Each case runs a training job twice, with the injection and without it. The truth is what removing
it gains, measured: 1 - time without / time with. The verdict of the first run must name the case's
class, its share must agree with the truth within 10 points, and it must not be wrong with high
confidence.

    run.py [--repeats N] [--quick] [CASE...]

--quick, for the test suite, runs only the injected half of what needs no privilege, and asks only
that the cause is among those that were found: it holds on a busy machine too.

Needs STRAIN (the program) and BUILD_ROOT (for onednn-train) in the environment. Exit status: 0 all
right, 1 a case failed, 77 nothing could be run.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

BUILD = os.environ.get("BUILD_ROOT", "build")
STRAIN = os.environ.get("STRAIN", BUILD + "/strain")
TRAIN = BUILD + "/workloads/onednn/onednn-train"
AGREEMENT = 0.10
OTHERS = 0.25  # CPUs that other programs may use while a case is measured
ATTEMPTS = 4
MIB = 1 << 20


class Skip(Exception):
    """What a case needs is not on this machine."""


class Case:
    """A job, what is put in, and what the verdict should say.

    plain: arguments of both runs; injected: further ones of the injected run. Environment
    and what is run in front of the job likewise. quick: the injected arguments for the test suite.
    """

    def __init__(self, name, expected, plain, injected, **more):
        self.name, self.expected = name, expected.split("|")
        self.plain, self.injected = plain.split(), injected.split()
        self.clean = more.get("clean", "").split()
        self.environment = more.get("environment", {})
        self.prefix = more.get("prefix", "").split()
        self.quick = more.get("quick")
        self.setting = more.get("setting", Setting)


class Setting:
    """What surrounds a run: files and cgroups, made before and removed after."""

    def __init__(self, folder):
        self.folder = folder

    def before(self, injected):
        """Arguments for the job, made ready."""
        return []

    def enter(self, injected):
        """Runs in the process that becomes `strain run`."""

    def after(self):
        """Puts everything away."""


class CheckpointSetting(Setting):
    """A place to save."""

    def before(self, injected):
        return ["--checkpoint", self.folder + "/saved"] if injected else []


class DiskSetting(Setting):
    """A dataset on a disk that a cgroup slows down; without the injection it is in memory."""

    file_bytes = 160 * MIB
    image_bytes = 25000
    read_rate = 30 * MIB
    memory_limit = None

    def __init__(self, folder):
        super().__init__(folder)
        self.path = folder + "/data"
        self.groups = []

    def make_file(self):
        """Real blocks: what is sparse needs no reading."""
        if not os.path.exists(self.path):
            with open(self.path, "wb") as file:
                block = os.urandom(MIB)
                for _ in range(self.file_bytes // MIB):
                    file.write(block)
                os.fsync(file.fileno())

    def cool(self):
        """Drops the file from the page cache; it is clean."""
        with open(self.path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def warm(self):
        with open(self.path, "rb") as file:
            while file.read(MIB):
                pass

    def device(self):
        """The whole disk's number, which the throttle wants."""
        number = os.stat(self.path).st_dev
        link = "/sys/dev/block/%d:%d" % (os.major(number), os.minor(number))
        if not os.path.exists(link):
            raise Skip("%s is on no disk" % self.folder)
        if os.path.exists(link + "/partition"):
            link = os.path.dirname(os.path.realpath(link))
        with open(link + "/dev") as file:
            return file.read().strip()

    def group(self, controller, settings):
        """A cgroup (v1) below the present one, with these settings."""
        path = own_cgroup(controller) + "/strain-case-%d" % os.getpid()
        try:
            os.makedirs(path, exist_ok=True)
            for name, value in settings:
                with open(path + "/" + name, "w") as file:
                    file.write(value)
        except OSError as error:
            raise Skip("no cgroup of controller %s: %s" % (controller, error)) from error
        self.groups.append(path)

    def throttle(self):
        rate = "%s %d" % (self.device(), self.read_rate)
        self.group("blkio", [("blkio.throttle.read_bps_device", rate)])

    def before(self, injected):
        self.make_file()
        if injected:
            self.cool()
            self.throttle()
        else:
            self.warm()
        return ["--data", self.path, "--image-bytes", str(self.image_bytes)]

    def enter(self, injected):
        for group in self.groups:
            with open(group + "/cgroup.procs", "w") as file:
                file.write("0")

    def after(self):
        for group in self.groups:
            for _ in range(50):
                try:
                    os.rmdir(group)
                    break
                except OSError:
                    subprocess.run(["sleep", "0.1"], check=True)
        self.groups = []


class MemorySetting(DiskSetting):
    """The same disk in both runs; memory for less than the dataset in one of them."""

    memory_limit = 100 * MIB

    def before(self, injected):
        self.make_file()
        self.cool()
        if injected:
            limit = str(self.memory_limit)
            self.group("memory", [("memory.limit_in_bytes", limit)])
            self.throttle()
        else:
            self.warm()
            self.throttle()
        return ["--data", self.path, "--image-bytes", str(self.image_bytes)]


def own_cgroup(controller):
    """Where this process is in a v1 hierarchy."""
    with open("/proc/self/cgroup") as file:
        for line in file:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            if controller in controllers.split(","):
                return "/sys/fs/cgroup/%s%s" % (controller, path.rstrip("/"))
    raise Skip("no cgroup v1 controller %s" % controller)


CASES = [
    Case("a transform that spins", "input", "-n 6400 -e 2 -w 1 -t 1", "--prepare-us 1200",
         quick="-n 320 -e 2 -w 1 -t 1 --prepare-us 3000"),
    Case("a slow disk, cold", "storage", "-n 6400 -e 1 -w 2 -t 1", "", setting=DiskSetting),
    Case("one CPU for four workers", "contention", "-n 6400 -e 2 -w 4 -t 1 --prepare-us 150", "",
         prefix="taskset -c 0"),
    Case("OpenMP threads that spin", "threads", "-n 3200 -e 1 -w 4 -t 2 --prepare-us 1500", "",
         environment={"OMP_WAIT_POLICY": "active"}),
    Case("memory below the dataset", "memory", "-n 6400 -e 2 -w 2 -t 1", "",
         setting=MemorySetting),
    Case("a script that is the limit", "host", "-n 6400 -e 2 -w 1 -t 1", "--step-us 8000",
         quick="-n 1280 -e 2 -w 1 -t 1 --model tiny --step-us 20000"),
    Case("a model that is large", "compute", "-e 2 -w 1 -t 1", "-n 640 --model wide",
         clean="-n 640 --model tiny", quick="-n 640 -e 2 -w 1 -t 1 --model wide"),
    Case("one slow worker of four", "input", "-n 3200 -e 2 -w 4 -t 1",
         "--slow-worker 2 --slow-worker-us 4000",
         quick="-n 1600 -e 2 -w 4 -t 1 --model tiny --slow-worker 2 --slow-worker-us 3000"),
    Case("one slow rank of two", "ranks", "-n 1600 -e 2 -t 1 --ranks 2",
         "--slow-rank 1 --slow-rank-us 40000",
         quick="-n 800 -e 2 -t 1 --ranks 2 --slow-rank 1 --slow-rank-us 40000"),
    Case("a validation pass", "validation", "-n 3200 -e 2 -w 1 -t 1", "--validate 100",
         quick="-n 640 -e 3 -w 1 -t 1 --validate 60"),
    Case("a checkpoint every epoch", "checkpoint", "-n 3200 -e 3 -w 1 -t 1",
         "--checkpoint-bytes 400000000", setting=CheckpointSetting),
]


def training_seconds(path):
    """From the first iteration to the end of what belongs to training."""
    query = ("SELECT min(start_ns) FILTER (WHERE kind = 'iteration') AS first, max(end_ns) AS last"
             " FROM span WHERE kind = 'iteration' OR name IN ('validation', 'checkpoint')")
    shown = subprocess.run([STRAIN, "sql", "--json", path, query], check=True, capture_output=True)
    row = json.loads(shown.stdout)[0]
    return (row["last"] - row["first"]) / 1e9


def record(case, setting, injected, path, arguments=None):
    """One run: the document of `strain show --json`, and how long training took."""
    extra = setting.before(injected)
    if arguments is None:
        arguments = case.plain + (case.injected if injected else case.clean)
    environment = dict(os.environ, OMP_WAIT_POLICY="passive")
    command = [STRAIN, "run", "-o", path, "--"]
    if injected:
        environment.update(case.environment)
        command += case.prefix
    command += [TRAIN] + arguments + extra
    try:
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL,
                       stderr=subprocess.PIPE, check=True,
                       preexec_fn=lambda: setting.enter(injected))
    except subprocess.CalledProcessError as error:
        print(error.stderr.decode(), file=sys.stderr)
        raise
    finally:
        setting.after()
    shown = subprocess.run([STRAIN, "show", "--json", path], check=True, capture_output=True)
    return json.loads(shown.stdout), training_seconds(path)


def others(document):
    """CPUs that neither the job nor the recorder used."""
    job, recording = document["job"], document["recording"]
    return job["host_cpus_used"] - job["cpus_used"] - (recording["cpu_ratio"] or 0)


def record_quietly(case, setting, injected, folder):
    """The quietest of a few attempts; the first that is quiet enough."""
    best = None
    for attempt in range(ATTEMPTS):
        path = "%s/%s-%d.strain" % (folder, "with" if injected else "without", attempt)
        if os.path.exists(path):
            os.remove(path)
        document, seconds = record(case, setting, injected, path)
        noise = others(document)
        if best is None or noise < best[2]:
            best = document, seconds, noise
        if noise <= OTHERS:
            break
    return best


def share_of(document, names):
    for cause in document["verdict"]["causes"]:
        if cause["cause"] in names:
            return cause["share"]["value"]
    return 0.0


class Result:
    """One repeat of a case."""

    def __init__(self, case, truth, document, noise):
        verdict = document["verdict"]
        self.truth, self.noise = truth, noise
        self.named = verdict["bottleneck"]
        self.confidence = verdict["confidence"]
        self.share = share_of(document, case.expected)
        self.right = self.named in case.expected
        self.agrees = abs(self.share - truth) <= AGREEMENT
        self.wrong_and_sure = not self.right and self.confidence == "high"


def measure(case, repeats, folder):
    results = []
    for _ in range(repeats):
        setting = case.setting(folder)
        document, with_s, noise = record_quietly(case, setting, True, folder)
        _, without_s, other_noise = record_quietly(case, setting, False, folder)
        truth = max(0.0, 1 - without_s / with_s)
        results.append(Result(case, truth, document, max(noise, other_noise)))
    return results


def report(case, results):
    right = sum(result.right for result in results)
    agree = sum(result.agrees for result in results)
    sure = sum(result.wrong_and_sure for result in results)
    median = statistics.median
    print("%-26s %5.0f %% %-12s %5.0f %%  %-6s  %d/%d named, %d/%d agree%s%s" % (
        case.name, 100 * median(r.truth for r in results), results[0].named,
        100 * median(r.share for r in results), results[0].confidence, right, len(results), agree,
        len(results), ", %d WRONG WITH HIGH CONFIDENCE" % sure if sure else "",
        "" if all(r.noise <= OTHERS for r in results) else "  (beside others)"), flush=True)
    if os.environ.get("VERBOSE"):
        for r in results:
            print("    truth %.2f named %s share %.2f %s noise %.2f" % (
                r.truth, r.named, r.share, r.confidence, r.noise))
    return right == len(results) and agree == len(results) and not sure


def run_quick(case, folder):
    """The cause is found: first, or beside a lack of CPUs, which a busy machine is."""
    setting = case.setting(folder)
    document, _ = record(case, setting, True, folder + "/quick.strain", case.quick.split())
    os.remove(folder + "/quick.strain")
    verdict = document["verdict"]
    share = share_of(document, case.expected)
    found = verdict["bottleneck"] in case.expected or (
        share > 0 and verdict["bottleneck"] == "contention")
    print("%-26s %-12s %3.0f %%  %s%s" % (case.name, verdict["bottleneck"], 100 * share,
                                         verdict["confidence"], "" if found else "  NOT FOUND"))
    if not found:
        print(json.dumps(verdict, indent=1))
    return found


def run(case, options, folder):
    """True: it passed, False: it did not, None: it was skipped."""
    try:
        if options.quick:
            return run_quick(case, folder) if case.quick else None
        return report(case, measure(case, options.repeats, folder))
    except Skip as reason:
        print("%-26s skipped: %s" % (case.name, reason))
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("cases", nargs="*", help="words of their names; all where none is given")
    options = parser.parse_args()
    if not os.access(TRAIN, os.X_OK):
        print("onednn-train is not built")
        return 77
    chosen = [case for case in CASES
              if not options.cases or any(word in case.name for word in options.cases)]
    if not options.quick:
        print("%-26s %7s %-12s %7s  %-6s" % ("CASE", "TRUTH", "VERDICT", "SHARE", "SURE"))
    with tempfile.TemporaryDirectory(prefix="strain-cases-", dir=os.environ.get("TMPDIR")) as folder:
        results = [run(case, options, folder) for case in chosen]
    ran = [result for result in results if result is not None]
    return 77 if not ran else 0 if all(ran) else 1


if __name__ == "__main__":
    sys.exit(main())
