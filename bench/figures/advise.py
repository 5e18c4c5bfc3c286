# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""The answers of `strain advise` beside the truth, and beside the rules of others on the same jobs and limits.

The truth of the largest batch size is found twice. By runs of 10 steps under the limit, three for each size: two epochs of 5 steps, each
with validation, because the second epoch holds what the validation left behind (its workers, for example). And by runs of 200 steps, one
for each size: a size that passes 10 steps may fail in the hundredth (a worker that collects cycles of objects copies the pages that it
shared with the training process). The truth of rates is a grid of batch sizes and workers. Results are kept in a file, so that the benchmark can be
made in parts: a row of that file is one run.
"""

import argparse
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
from collections import namedtuple
from pathlib import Path

from finders import (
    AUTOBATCH_SIZES, LIGHTNING_STEPS, autobatch, doubling_and_bisection, largest_near, thesis_line,
)  # fmt: skip
from harness import BUILD, PYTHON, ROOT, STRAIN, Result, descendants, environment, median, trainer_script
from trials import Kept, OutOfTime, answer_of, held_bytes, run_job

MIB = 2**20
STEPS, EPOCHS, REPEATS = 5, 2, 3  # of the truth: 10 steps
LONG_STEPS, LONG_EPOCHS = 100, 2  # of a long run
LONG_PATIENCE_S = 600
SAMPLES = 2048  # of the dataset, and as many to validate
GRID_BATCHES, GRID_WORKERS = (16, 32, 64, 128), (0, 1, 2, 3)
GRID_S = 4.0  # of the epoch that is measured, roughly
CELL_REPEATS = 4
WORKERS = (0, 1, 2, 4)  # whose memory is measured
PSS_S, PSS_JOB_S = 0.1, 3.0  # between two readings; of an epoch, roughly
IMAGES = 1600  # JPEG files, of 115 kB
OVERLAP = 8  # the norm of src/probe/rate_model.h
AHEAD = 0.1  # a loader is ahead if the training process waits for less of its time

# arguments of the job; its present batch size; three limits in MiB; roughly the seconds of a sample;
# whether it was left alone while advise was built
Job = namedtuple("Job", "arguments batch limits sample_s held_out")
JOBS = {
    "cnn": Job(["--model", "cnn"], 16, (260, 300, 400), 0.0006, False),
    "resnet34": Job(["--model", "resnet34", "--image-size", "32"], 16, (980, 1000, 1040), 0.012, False),
    "lstm": Job(["--model", "lstm"], 16, (260, 290, 320), 0.015, False),
    "alexnet": Job(["--model", "alexnet", "--image-size", "64"], 16, (2460, 2500, 2540), 0.02, True),
    "resnet50": Job(["--model", "resnet50", "--image-size", "32"], 8, (1050, 1100, 1150), 0.02, True),
    "densenet121": Job(["--model", "densenet121", "--image-size", "32"], 8, (500, 560, 620), 0.02, True),
    "conv3d": Job(["--model", "conv3d", "--frames", "8"], 8, (230, 280, 330), 0.015, True),
}
OPTIMIZERS = ("adam", "sgd")
MALLOC = {
    "default": {},
    "pinned": {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536", "MALLOC_TOP_PAD_": "65536"},
}  # fmt: skip
PARTS = ("largest", "safe", "workers", "grid")

Cell = namedtuple("Cell", "model optimizer malloc limit")  # limit in MiB


class Text:
    """A line without an aim."""

    def __init__(self, text):
        self.text = text

    def line(self):
        """The text of the line."""
        return self.text


# The job ---------------------------------------------------------------------------------------------------------------


def variables(malloc):
    """The environment of a job."""
    return {"OMP_NUM_THREADS": "1", **MALLOC[malloc]}


def command(cell, batch, workers, *more):
    """The job with one computing thread, and so many samples that the dataset does not depend on the batch size."""
    return [PYTHON, trainer_script(), *JOBS[cell.model].arguments, "--optimizer", cell.optimizer, "--threads", "1",
            "--batch-size", str(batch), "--workers", str(workers), *more]  # fmt: skip


def validated(cell, batch, workers, *more):
    """The same with validation after each epoch."""
    return command(cell, batch, workers, "--samples", str(SAMPLES), "--validation-samples", str(SAMPLES), *more)


def trial(kept, cell, batch, kind, repeat=0):
    """One run under the limit. kind: "truth" (with validation) or "finder" (as Lightning's: without)."""

    def measure():
        if kind == "truth":
            epochs = max(EPOCHS, math.ceil(STEPS * EPOCHS / min(STEPS, SAMPLES // batch)))  # a large batch: fewer steps each
            job = validated(cell, batch, 1, "--steps", str(STEPS), "--epochs", str(epochs))
        else:
            job = command(cell, batch, 1, "--samples", str(SAMPLES), "--steps", str(LIGHTNING_STEPS), "--epochs", "1")
        found = run_job(job, variables(cell.malloc), cell.limit * MIB)
        return {"passed": found["passed"], "seconds": found["seconds"]}

    return kept.get([kind, *cell, batch, repeat], measure)


# The largest batch size ------------------------------------------------------------------------------------------------


def bisected(kept, cell):
    """Doubling and bisection: the answer, its runs and seconds."""
    made = {}

    def fits(batch):
        made[batch] = trial(kept, cell, batch, "finder")
        return made[batch]["passed"]

    return doubling_and_bisection(fits, SAMPLES), len(made), sum(run["seconds"] for run in made.values())


def truth_of(kept, cell, start):
    """The largest batch size that passes three of three runs."""

    def passes(batch):
        return all(trial(kept, cell, batch, "truth", repeat)["passed"] for repeat in range(REPEATS))

    return largest_near(passes, start, SAMPLES)


def passes_long(kept, cell, batch, workers):
    """Whether 200 steps under the limit pass, with validation after each epoch."""

    def measure():
        steps = min(LONG_STEPS, SAMPLES // batch)
        epochs = max(LONG_EPOCHS, math.ceil(LONG_EPOCHS * LONG_STEPS / steps))
        job = validated(cell, batch, workers, "--steps", str(LONG_STEPS), "--epochs", str(epochs))
        return {"passed": run_job(job, variables(cell.malloc), cell.limit * MIB, None, LONG_PATIENCE_S)["passed"]}

    return kept.get(["long", *cell, batch, workers], measure)["passed"]


def long_truth_of(kept, cell, start, most):
    """The largest batch size that passes 200 steps. most: the largest that passes 10."""
    return largest_near(lambda batch: batch <= most and passes_long(kept, cell, batch, 1), start, SAMPLES)


def peak(kept, cell, batch):
    """The memory of the job in bytes, without a limit, and the seconds of the run."""

    def measure():
        seen = []
        job = validated(cell, batch, 1, "--steps", str(STEPS), "--epochs", str(EPOCHS))
        found = run_job(job, variables(cell.malloc), 0, lambda group, *_: seen.append(held_bytes(group)))
        return {"peak": max(seen), "seconds": found["seconds"]}

    return kept.get(["peak", *cell[:3], batch], measure)


def in_process(kept, cell):
    """Memory of batches in one process."""

    def measure():
        script = ROOT / "bench/batches_in_process.py"
        sizes = ",".join(map(str, AUTOBATCH_SIZES))
        found = subprocess.run([PYTHON, "-B", script, sizes, *JOBS[cell.model].arguments], check=True, text=True,
                               env={**environment(), **variables(cell.malloc)}, capture_output=True)  # fmt: skip
        return json.loads(found.stdout)

    return kept.get(["in process", cell.model, cell.malloc], measure)


def answer(kept, cell, dataset=()):
    """What strain advise prints for the job. dataset: options that replace the validated dataset."""

    def measure():
        batch = f"{{batch_size={JOBS[cell.model].batch}}}"
        job = command(cell, batch, "{workers=1}", *dataset, "--epochs", "1000")
        if not dataset:
            job = validated(cell, batch, "{workers=1}", "--epochs", "1000")
        with tempfile.TemporaryDirectory(prefix="strain-bench-") as folder:
            asked = [str(STRAIN), "advise", "--json", "--memory", f"{cell.limit}MiB", "-o", f"{folder}/advice"]
            return answer_of([*asked, *kept.asked, "--", *job], variables(cell.malloc), 900)

    return kept.get(["advise", *cell, *dataset, *kept.asked], measure)


def rules(kept, cell):
    """The answers of the rules that make no check. None: the rule gives none."""
    limit, first = cell.limit * MIB, JOBS[cell.model].batch
    points = [(batch, peak(kept, cell, batch)["peak"]) for batch in (first, 2 * first)]
    found = {"two-probe line": thesis_line(points, limit)}
    measured = in_process(kept, cell)
    free = limit - measured["before"] - measured["model"]
    for share in 0.6, 1.0:
        found[f"AutoBatch {share:.0%}"] = autobatch(measured["points"], free, share, True)
        found[f"AutoBatch {share:.0%}, not log"] = autobatch(measured["points"], free, share, False)
    return found


Largest = namedtuple("Largest", "cell truth long_truth value low high fit verify seconds all_seconds others bisection_s runs")


def largest(kept, cell):
    """Everything about the largest batch size of one cell; text if strain gives no answer."""
    ours = answer(kept, cell)
    size, runs, seconds = bisected(kept, cell)
    said = ours.get("largest_batch", {})
    truth = truth_of(kept, cell, int(said.get("value") or size or 1))
    others = {**rules(kept, cell), "doubling and bisection": size}
    if said.get("value") is None:
        why = ours.get("error") or said.get("missing") or "no value"
        return f"{name_of(cell)}: no answer ({why}); truth {truth}; {listed(others)}"
    steps = [run["step"] for run in ours["runs"]]
    of_size = sum(run["seconds"] for run in ours["runs"] if run["step"] in ("now", "line", "verify"))
    long_truth = long_truth_of(kept, cell, min(truth, int(said["value"])) or 1, truth)
    return Largest(cell, truth, long_truth, said["value"], said["low"], said["high"], steps.count("now") + steps.count("line"),
                   steps.count("verify"), of_size, ours["seconds"], others, seconds, runs)  # fmt: skip


def name_of(cell):
    """A cell in words."""
    return f"{cell.model} {cell.optimizer}, {cell.malloc} malloc, {cell.limit} MiB"


def listed(others):
    """Answers of others in words."""
    return ", ".join(f"{name} {'none' if size is None else size}" for name, size in others.items())


def row(found):
    """One cell in words."""
    return Text(f"  {name_of(found.cell)}: {found.value:.0f} ({found.low:.0f} to {found.high or math.inf:.0f}), truth {found.truth}, of {LONG_EPOCHS * LONG_STEPS} steps {found.long_truth}; "
                f"{found.fit}+{found.verify} probes, {found.seconds:.0f} s, all of advise {found.all_seconds:.0f} s; "
                f"{listed(found.others)} ({found.runs} runs, {found.bisection_s:.0f} s)")  # fmt: skip


def errors_of(cells, truth_of_cell, value):
    """Relative errors of the answers that exist; others count as wholly wrong."""
    return [abs((value(cell) or 0) / truth_of_cell(cell) - 1) for cell in cells]


def middle_and_worst(errors):
    """Errors in words."""
    return f"{median(errors):.1%}, worst {max(errors):.1%}"


def error_lines(what, pinned, cells, truth):
    """The errors against one truth, a function of the cell."""
    ours = errors_of(cells, truth, lambda cell: cell.value)
    beside = "; ".join(f"{name} {middle_and_worst(errors_of(cells, truth, lambda cell, name=name: cell.others[name]))}"
                       for name in cells[0].others)  # fmt: skip
    met = median(ours) <= (0.02 if pinned else 0.08) and (not pinned or max(ours) <= 0.05)
    yield Result(f"error of the largest batch, {what}", middle_and_worst(ours), beside, f"{len(cells)} cells",
                 "median 2 %, worst 5 %" if pinned else "median 8 %", met)  # fmt: skip
    inside = sum(cell.low <= truth(cell) <= (math.inf if cell.high is None else cell.high) for cell in cells)
    yield Result(f"  interval holds the truth, {what}", f"{inside} of {len(cells)}", "", f"{inside / len(cells):.0%}",
                 "at least 90 %", inside >= 0.9 * len(cells))  # fmt: skip
    unsafe = sum(cell.value > truth(cell) for cell in cells)
    beside = ", ".join(f"{name} {sum((cell.others[name] or 0) > truth(cell) for cell in cells)}" for name in cells[0].others)
    yield Result(f"  answers above the truth, {what}", str(unsafe), beside, f"of {len(cells)}", "0", unsafe == 0)


def largest_lines(group, malloc, cells):
    """The figures of a group of cells with one allocator."""
    what, pinned = f"{group}, {malloc} malloc", malloc == "pinned"
    yield from error_lines(f"truth of {STEPS * EPOCHS} steps, {what}", pinned, cells, lambda cell: cell.truth)
    lasting = [cell for cell in cells if cell.long_truth > 0]
    if lasting:
        yield from error_lines(f"truth of {LONG_EPOCHS * LONG_STEPS} steps, {what}", pinned, lasting, lambda cell: cell.long_truth)
    fit, verify = max(cell.fit for cell in cells), max(cell.verify for cell in cells)
    most = (2, 1) if pinned else (4, 3)
    yield Result(f"  probes to fit and to verify, {what}", f"at most {fit} and {verify}",
                 f"doubling and bisection {max(cell.runs for cell in cells)}", "", f"{most[0]} and {most[1]}",
                 fit <= most[0] and verify <= most[1])  # fmt: skip
    for least, above, aim in (65, 500, 1 / 3), (501, math.inf, 1 / 4):
        timed = [cell for cell in cells if least <= cell.truth <= above]
        if timed:
            share = median([cell.all_seconds / cell.bisection_s for cell in timed])
            alone = median([cell.seconds / cell.bisection_s for cell in timed])
            yield Result(f"  time, truth above {least - 1}, {what}", f"{share:.2f} of doubling and bisection",
                         f"{alone:.2f} for the largest batch alone", f"{len(timed)} cells", f"at most {aim:.2f}",
                         share <= aim)  # fmt: skip


def largest_part(kept, cells):
    """The lines of the largest batch size."""
    found = gathered(largest, kept, cells)
    for item in found:
        yield Text("  " + item) if isinstance(item, str) else row(item)
    found = [item for item in found if not isinstance(item, str) and item.truth > 0]
    for held_out, group in (False, "models looked at"), (True, "models held out"):
        for malloc in MALLOC:
            some = [item for item in found if JOBS[item.cell.model].held_out == held_out and item.cell.malloc == malloc]
            if some:
                yield from largest_lines(group, malloc, some)


def gathered(measure, kept, cells):
    """measure(kept, cell) of each cell, as far as there is time."""
    found = []
    for cell in cells:
        try:
            found.append(measure(kept, cell))
        except OutOfTime:
            found.append(f"{name_of(cell)}: not finished")  # others may be kept already
        except RuntimeError as error:
            found.append(f"{name_of(cell)}: not measured: {error}")
    return found


# Advised batch sizes in long runs --------------------------------------------------------------------------------------


def long_runs(kept, cell):
    """Runs the advised configuration and the largest batch size under the limit: (batch size, workers, passed) each."""
    ours = answer(kept, cell)
    advised, most = ours.get("advised", {}), ours.get("largest_batch", {}).get("value")
    chosen = {(advised.get("batch_size"), advised.get("workers")), (most and int(most), 1)}
    found = []
    for batch, workers in sorted(c for c in chosen if c[0] and c[1] is not None and c[0] <= SAMPLES):
        found.append((batch, workers, passes_long(kept, cell, batch, workers)))
    return cell, found


def safe_part(kept, cells):
    """The lines of long runs."""
    ran = [item for item in gathered(long_runs, kept, cells) if not isinstance(item, str)]
    for malloc in MALLOC:
        runs = [(cell, run) for cell, found in ran if cell.malloc == malloc for run in found]
        if runs:
            failed = [f"{name_of(cell)}: batch size {run[0]}, {run[1]} workers" for cell, run in runs if not run[2]]
            yield Result(f"advised and largest batches that fail in {LONG_EPOCHS * LONG_STEPS} steps, {malloc} malloc",
                         str(len(failed)), "; ".join(failed), f"of {len(runs)} runs", "0", not failed)  # fmt: skip


# Memory of workers -----------------------------------------------------------------------------------------------------


def pss_of(pid):
    """Proportional memory of a process in bytes; 0: it has ended."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return 1024 * int(re.search(r"^Pss:\s+(\d+)", text, re.MULTILINE)[1])


def job_bytes(kept, cell, workers):
    """The PSS of the job's processes in bytes: the median of the run's second half."""

    def measure():
        seen = []

        def look(_, pid, seconds):
            if int(seconds / PSS_S) > len(seen):
                seen.append(sum(pss_of(process) for process in [pid, *descendants(pid)]))

        steps = math.ceil(PSS_JOB_S / JOBS[cell.model].sample_s / JOBS[cell.model].batch)
        job = command(cell, JOBS[cell.model].batch, workers, "--samples", str(SAMPLES), "--steps", str(steps), "--epochs", "2")
        run_job(job, variables(cell.malloc), 0, look)
        return median(seen[len(seen) // 2 :])

    return kept.get(["pss", *cell[:3], workers], measure)


def workers_of(kept, cell):
    """The memory of a worker as answered, and that of the job by number of workers."""
    ours = answer(kept, cell)
    each = ours.get("memory", {}).get("worker")
    if each is None:
        raise RuntimeError("no memory of a worker in the answer")
    return cell, each, {workers: job_bytes(kept, cell, workers) for workers in WORKERS}


def workers_part(kept, cells):
    """The lines of the workers' memory, for each job once."""
    once = {cell[:3]: cell for cell in cells}.values()
    for found in gathered(workers_of, kept, once):
        if isinstance(found, str):
            yield Text("  " + found)
            continue
        cell, each, seen = found
        off = [workers * each / (seen[workers] - seen[0]) - 1 for workers in WORKERS[2:]]
        whole = [(seen[1] + (workers - 1) * each) / seen[workers] - 1 for workers in WORKERS[2:]]
        yield Result(f"memory of {' and '.join(map(str, WORKERS[2:]))} workers from one, {cell.model}, {cell.malloc} malloc",
                     f"{each / MIB:.1f} MiB each",
                     "PSS of the job " + ", ".join(f"with {w}: {b / MIB:.1f} MiB" for w, b in seen.items()),
                     f"{listed_shares(off)} of what they add, {listed_shares(whole)} of the job", "5 %",
                     max(map(abs, off)) <= 0.05)  # fmt: skip


def listed_shares(values):
    """Relative differences in words."""
    return " and ".join(f"{value:+.1%}" for value in values)


# The grid --------------------------------------------------------------------------------------------------------------


def jpeg_files():
    """A folder of JPEG files in the build folder."""
    folder = BUILD / f"bench/images-{IMAGES}"
    if not folder.exists():
        subprocess.run([PYTHON, ROOT / "workloads/datasets/make.py", "jpeg", "--images", str(IMAGES), folder],
                       check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    return folder


def dataset_of(cell, preparation):
    """Options of the job: samples in memory that are cropped, or JPEG files that are decoded. An epoch is so long that its start
    is a small part of it."""
    if preparation == "heavy":
        return ["--dataset", str(jpeg_files()), "--samples", str(IMAGES - IMAGES % max(GRID_BATCHES))]
    return ["--samples", str(SAMPLES * max(1, math.ceil(GRID_S / JOBS[cell.model].sample_s / SAMPLES)))]


def steps_of(cell, preparation, batch):
    """Iterations of an epoch of a cell, and what a sample takes, roughly."""
    each = JOBS[cell.model].sample_s if preparation == "light" else max(0.01, JOBS[cell.model].sample_s)
    samples = int(dataset_of(cell, preparation)[-1])
    return min(samples // batch, max(8, math.ceil(GRID_S / each / batch))), each


def measured_rate(kept, cell, preparation, batch, workers, repeat=0, cpus=0):
    """Samples per second of the second of two epochs, and the seconds of the run. cpus: the only one to run on, less 1."""

    def measure():
        dataset = dataset_of(cell, preparation)
        steps, each = steps_of(cell, preparation, batch)
        epochs = 1 + math.ceil(GRID_S / (each * batch * steps))
        job = command(cell, batch, workers, *dataset, "--steps", str(steps), "--epochs", str(epochs))
        job = ["taskset", "-c", str(cpus - 1), *job] if cpus else job
        found = run_job(job, variables(cell.malloc))
        rates = [float(text) for text in re.findall(r"^epoch .* (\d+) images/s$", found["output"], re.MULTILINE)]
        return {"rate": statistics.harmonic_mean(rates[1:]), "seconds": found["seconds"]}

    return kept.get(["rate", *cell[:3], *dataset_of(cell, preparation)[-1:], preparation, batch, workers, repeat, cpus], measure)


def deviation(model, batch):
    """Computing over that of the line, interpolated between the batch sizes that ran."""
    points = [(math.log(point["batch_size"]), math.log(point["factor"])) for point in model["compute_deviation"]]
    place = min(max(math.log(batch), points[0][0]), points[-1][0])
    for (left, low), (right, high) in zip(points, points[1:]):
        if place <= right:
            return math.exp(low + (high - low) * (place - left) / (right - left))
    return math.exp(points[0][1])


def iteration_s(model, handover, batch, workers, epoch_samples):
    """The time of an iteration by the equations of rate_model.h from the parameters in the answer, with what an epoch of so
    many samples begins with."""
    cpus = os.cpu_count()
    prepare = model["prepare_per_sample_s"] or 0
    compute = model["compute_per_iteration_s"] + model["compute_per_sample_s"] * batch
    own = model["main_cpu_per_iteration_s"] + model["main_cpu_per_sample_s"] * batch
    if workers == 0:
        return model["alone"] * compute * deviation(model, batch) + prepare * batch
    sending = model["send_per_batch_s"] or 0
    computing, preparing = (compute + handover) * deviation(model, batch), sending + prepare * batch
    bounds = [computing, preparing / workers, model["cpu_loss"] * (own + prepare * batch) / cpus]
    start = 0
    if model["start_per_worker_s"] is not None:
        filling = preparing * max(1, workers / cpus) + computing - max(preparing / workers, computing)
        start = (workers * model["start_per_worker_s"] + filling) * batch / epoch_samples
    return sum(bound**OVERLAP for bound in bounds) ** (1 / OVERLAP) + start


def predictor(cell, preparation, ours):
    """A function of batch size and workers that returns the predicted rate. The answer has no table of them: the model is
    evaluated here, through the rate of the present configuration. The handover is not in the answer either: it is the
    wait of the probes whose loader was ahead."""
    model, runs = ours["rate_model"], ours["runs"]
    waits = [run["data_wait_s"] for run in runs if run["workers"] and run["data_wait_s"] is not None and
             run["iteration_s"] and run["data_wait_s"] < AHEAD * run["iteration_s"]]  # fmt: skip
    handover = median(waits) if waits else 0
    now = runs[0]
    epoch_samples = model["epoch_samples"] or math.inf
    seconds = iteration_s(model, handover, now["batch_size"], now["workers"], epoch_samples)
    scale = now["rate"] * seconds / now["batch_size"]

    def predicted(batch, workers):
        epoch_samples = steps_of(cell, preparation, batch)[0] * batch  # the grid's epochs are shorter
        return scale * batch / iteration_s(model, handover, batch, workers, epoch_samples)

    return predicted


Grid = namedtuple("Grid", "cell preparation ours rates seconds repeats advised one_cpu")


def grid(kept, cell, preparation):
    """All rates of a grid, and those that belong to the answer."""
    ours = answer(kept, cell, tuple(dataset_of(cell, preparation)))
    if ours.get("rate_model") is None:
        raise RuntimeError(ours.get("error") or "no model of throughput in the answer")
    places = [(batch, workers) for batch in GRID_BATCHES for workers in GRID_WORKERS]
    random.Random(1).shuffle(places)
    found = {place: measured_rate(kept, cell, preparation, *place) for place in places}
    rates = {place: run["rate"] for place, run in found.items()}
    repeats = [measured_rate(kept, cell, preparation, GRID_BATCHES[1], GRID_WORKERS[1], repeat)["rate"]
               for repeat in range(1, 1 + CELL_REPEATS)]  # fmt: skip
    place = ours["advised"]["batch_size"], ours["advised"]["workers"]
    advised = rates.get(place) or measured_rate(kept, cell, preparation, *place)["rate"]
    for choice in ours["by_batch"] or []:  # predicted with an interval
        place = choice["batch_size"], choice["workers"]
        if preparation == "light" and place[0] <= 2 * max(GRID_BATCHES) and place not in rates:
            rates[place] = measured_rate(kept, cell, preparation, *place)["rate"]
    one = next((choice for choice in ours["by_cpus"] or [] if choice["cpus"] == 1), None)
    one_cpu = one and (one, measured_rate(kept, cell, preparation, one["batch_size"], one["workers"], 0, 1)["rate"])
    return Grid(cell, preparation, ours, rates, sum(run["seconds"] for run in found.values()), repeats, advised, one_cpu)


def percentile(values, share):
    """The value below which a share of all lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]


def grid_lines(found):
    """The lines of one grid."""
    ours, rates = found.ours, found.rates
    what = f"{found.cell.model}, {found.preparation} preparation, {found.cell.malloc} malloc"
    probed = {(run["batch_size"], run["workers"]) for run in ours["runs"]}
    predicted = predictor(found.cell, found.preparation, ours)
    off = {place: predicted(*place) / rate - 1 for place, rate in rates.items() if place not in probed}
    for (batch, workers), rate in sorted(rates.items()):
        note = "probed" if (batch, workers) in probed else f"{off[batch, workers]:+.1%}"
        yield Text(f"    batch size {batch}, {workers} workers: {rate:.0f}/s, predicted {predicted(batch, workers):.0f} ({note})")
    errors = [abs(x) for x in off.values()]
    mean = statistics.mean(errors)
    yield Result(f"rate of configurations not probed, {what}", f"mean error {mean:.1%}",
                 f"a configuration that is repeated differs by {spread(found.repeats):.1%}",
                 f"95th percentile {percentile(errors, 0.95):.1%}, {len(errors)} configurations", "5 %, 12 %",
                 mean <= 0.05 and percentile(errors, 0.95) <= 0.12)  # fmt: skip
    told = [(c["batch_size"], c["workers"], c["rate_low"], c["rate_high"]) for c in ours["by_batch"] or []]
    told = [(rates[b, w], low, high) for b, w, low, high in told if (b, w) in rates and (b, w) not in probed]
    if told:
        held = sum(low <= rate <= high for rate, low, high in told)
        yield Result(f"  intervals of predicted rates, {what}", f"{held} of {len(told)} hold the rate", "",
                     f"{held / len(told):.0%}", "85 to 95 %", 0.85 <= held / len(told) <= 0.95)  # fmt: skip
    yield from advised_lines(found, what)


def spread(values):
    """The widest difference between repeats, relative to their median."""
    return (max(values) - min(values)) / median(values)


def advised_lines(found, what):
    """The advised configuration beside the best of the grid and the usual numbers of workers."""
    ours, rates = found.ours, found.rates
    best = max(rates, key=rates.get)
    batch, workers = ours["advised"]["batch_size"], ours["advised"]["workers"]
    cpus = len(os.sched_getaffinity(0))
    usual = max((rates[b, cpus] for b in GRID_BATCHES if (b, cpus) in rates), default=math.nan)
    default = rates.get((JOBS[found.cell.model].batch, cpus), math.nan)
    yield Result(f"  advised configuration, {what}", f"batch size {batch}, {workers} workers: {found.advised:.0f}/s",
                 f"best of the grid {best[0]} and {best[1]}: {rates[best]:.0f}/s; workers = CPUs = PyTorch's suggestion ({cpus}): "
                 f"{default:.0f}/s, with the best batch size {usual:.0f}/s", f"{found.advised / rates[best]:.0%} of the best",
                 "at least 95 %", found.advised >= 0.95 * rates[best])  # fmt: skip
    share = ours["seconds"] / found.seconds
    yield Result(f"  time, {what}", f"{ours['seconds']:.0f} s", f"the grid {found.seconds:.0f} s", f"{share:.2f}",
                 "at most 0.10", share <= 0.1)  # fmt: skip
    if found.one_cpu:
        choice, rate = found.one_cpu
        yield Result(f"  on one CPU, {what}", f"{choice['rate']:.0f}/s predicted", f"measured {rate:.0f}/s",
                     f"{choice['rate'] / rate - 1:+.1%}", "10 %", abs(choice["rate"] / rate - 1) <= 0.1)  # fmt: skip


def grid_part(kept, cells, preparations):
    """The lines of the grids, for each job once, with the largest limit."""
    once = {cell[:3]: cell._replace(limit=2048) for cell in cells if cell.optimizer == OPTIMIZERS[0]}.values()
    for preparation in preparations:
        for found in gathered(lambda kept, cell, preparation=preparation: grid(kept, cell, preparation), kept, once):
            if isinstance(found, str):
                yield Text("  " + found)
            else:
                yield from grid_lines(found)


# Everything ------------------------------------------------------------------------------------------------------------


def words_of(known):
    """A type of options: names separated by commas."""

    def words(text):
        unknown = [word for word in text.split(",") if word not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"expected some of {','.join(known)}, found '{unknown[0]}'")
        return text.split(",")

    return words


def parse(words):
    """The options."""
    parser = argparse.ArgumentParser(prog="bench/run advise", description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--only", type=words_of(PARTS), default=list(PARTS), metavar="PART,...", help=f"these parts: {','.join(PARTS)}")
    add("--models", type=words_of(JOBS), default=list(JOBS), metavar="MODEL,...", help=",".join(JOBS))
    add("--optimizers", type=words_of(OPTIMIZERS), default=list(OPTIMIZERS), metavar="NAME,...")
    add("--malloc", type=words_of(MALLOC), default=list(MALLOC), metavar="NAME,...")
    add("--limits", type=words_of("123"), default=["1", "2", "3"], metavar="N,...",
        help="the first, second and third limit of each model")  # fmt: skip
    add("--preparation", type=words_of(("light", "heavy")), default=["light", "heavy"], metavar="NAME,...")
    add("--minutes", type=float, default=math.inf, help="start no run after so many")
    add("--probe-limit", metavar="TIME", help="strain advise --limit TIME, where other load would prolong its probes")
    add("--results", default=str(BUILD / "bench/advise.jsonl"), metavar="FILE", help="keep the results there")
    return parser.parse_args(words)


def measure(options=None):
    """Yields the lines."""
    options = options or parse([])
    kept = Kept(options.results, options.minutes, ["--limit", options.probe_limit] if options.probe_limit else [])
    cells = [Cell(model, optimizer, malloc, JOBS[model].limits[int(limit) - 1]) for model in options.models
             for malloc in options.malloc for optimizer in options.optimizers for limit in options.limits]  # fmt: skip
    parts = {"largest": largest_part, "safe": safe_part, "workers": workers_part,
             "grid": lambda *given: grid_part(*given, options.preparation)}  # fmt: skip
    for name in options.only:
        yield from parts[name](kept, cells)
    if sys.stdout.isatty():
        print(f"results: {options.results}", file=sys.stderr)
