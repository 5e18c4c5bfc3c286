# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Short runs of a training job in a cgroup with a memory limit, and a file that keeps their results."""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from harness import Skip, environment, inside

MEMORY = Path("/sys/fs/cgroup/memory")
SAMPLE_S = 0.005  # between two looks
PATIENCE_S = 150


class OutOfTime(Exception):
    """No time is left for another measurement."""


class Kept:
    """Results by key in a file of JSON lines. What is there is not measured again, so that an interrupted benchmark
    continues. asked: options of strain advise, which belong to its keys."""

    def __init__(self, path, minutes, asked=()):
        self.path = Path(path)
        self.asked = list(asked)
        self.until = time.monotonic() + 60 * minutes
        self.known = {}
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                with contextlib.suppress(ValueError):  # the last line, if writing it was interrupted
                    row = json.loads(line)
                    self.known[json.dumps(row["key"])] = row["result"]

    def get(self, key, measure):
        """The result of a key, a list; else that of measure(), which is kept."""
        name = json.dumps(key)
        if name not in self.known:
            if time.monotonic() >= self.until:
                raise OutOfTime
            self.known[name] = measure()
            with self.path.open("a") as file:
                file.write(json.dumps({"key": key, "result": self.known[name]}) + "\n")
        return self.known[name]


@contextlib.contextmanager
def memory_group(limit_bytes):
    """A cgroup v1 with a limit of memory, or without one (0). Processes that are left in it are killed."""
    group = MEMORY / f"strain-bench-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        raise Skip(f"no cgroup of the memory controller (v1): {error}") from error
    try:
        if limit_bytes:
            (group / "memory.limit_in_bytes").write_text(str(limit_bytes))
        yield group
    finally:
        for _ in range(100):
            for pid in (group / "cgroup.procs").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            with contextlib.suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.05)


def held_bytes(group):
    """What a limit limits and the kernel cannot reclaim: anonymous, shared and kernel memory."""
    rows = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    kernel = int((group / "memory.kmem.usage_in_bytes").read_text())
    return int(rows["rss"]) + int(rows["shmem"]) + kernel


def killed(group):
    """Whether the kernel killed a process of the group for lack of memory."""
    return "oom_kill 0" not in (group / "memory.oom_control").read_text()


def run_job(command, variables, limit_bytes=0, look=None, patience_s=PATIENCE_S):
    """Runs a job to its end. Returns whether it passed, its seconds and its output. Calls look(group, pid, seconds)
    meanwhile. A failure that is not for lack of memory raises an error."""
    with memory_group(limit_bytes) as group, tempfile.TemporaryFile("w+") as output:
        start = time.monotonic()
        with subprocess.Popen(inside(group, command), env={**environment(), **variables}, stdout=output,
                              stderr=subprocess.STDOUT, text=True) as process:  # fmt: skip
            try:
                while process.poll() is None:
                    if look:
                        look(group, process.pid, time.monotonic() - start)
                    if time.monotonic() - start > patience_s:
                        raise RuntimeError(f"took more than {patience_s} s: {' '.join(command)}")
                    time.sleep(SAMPLE_S)
            finally:
                process.kill()
        seconds = time.monotonic() - start
        lacked = killed(group)
        output.seek(0)
        text = output.read()
    if process.returncode and not lacked:
        last = text.strip().splitlines()[-1:] or ["no output"]
        raise RuntimeError(f"exit status {process.returncode}: {' '.join(command)}: {last[0]}")
    return {"passed": process.returncode == 0 and not lacked, "seconds": seconds, "output": text}


def answer_of(command, variables, seconds):
    """The JSON that a command of strain prints. If this process is ended, so is the command."""
    with subprocess.Popen(command, env={**environment(), **variables}, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:  # fmt: skip
        try:
            out, said = process.communicate(timeout=seconds)
        except BaseException:
            process.send_signal(signal.SIGINT)
            process.communicate()
            raise
    if process.returncode:
        last = said.strip().splitlines()[-1:] or ["no message"]
        return {"error": f"exit status {process.returncode}: {last[0]}"}
    return json.loads(out)
