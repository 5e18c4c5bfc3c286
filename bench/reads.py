# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""The files of machine and job that the recorder reads at its default rates: arguments of the floor."""

from pathlib import Path

from harness import program

# Interval in ms (0: every tick), as in src/record/source/*.c. The files of each process are in
# floor.c.
MACHINE_FILES = {
    "/proc/loadavg": 0,
    "/proc/stat": 100,
    "/proc/meminfo": 100,
    "/proc/diskstats": 100,
    "/proc/pressure/cpu": 100,
    "/proc/pressure/memory": 100,
    "/proc/pressure/io": 100,
    "/proc/vmstat": 1000,
    "/proc/net/dev": 1000,
}
# Files of the job's own cgroup, by controller; "" is v2. Two sources use the counter of CPU time.
CGROUP_FILES = {
    "cpuacct": [("cpuacct.usage", 0), ("cpuacct.usage", 100), ("cpuacct.stat", 100)],
    "memory": [("memory.stat", 100), ("memory.usage_in_bytes", 100), ("memory.oom_control", 100),
               ("memory.kmem.usage_in_bytes", 100)],
    "": [("cpu.stat", 0), ("cpu.stat", 100), ("memory.stat", 100), ("memory.current", 100),
         ("memory.events", 100), ("memory.swap.current", 100), ("io.stat", 100),
         ("cpu.pressure", 100), ("memory.pressure", 100), ("io.pressure", 100)],
}  # fmt: skip


def mount_points():
    """The mount point of each cgroup hierarchy, by controller; "" for v2."""
    found = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, after = line.split(" - ")
        kind, _, options = after.split(" ", 2)
        if kind == "cgroup2":
            found[""] = before.split()[4]
        elif kind == "cgroup":
            found.update({name: before.split()[4] for name in options.split(",")})
    return found


def cgroup_files(pid):
    """(path, ms) of the files of the job's own cgroup; empty if it has none."""
    mounts = mount_points()
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            if controller in CGROUP_FILES and controller in mounts and "/strain-" in path:
                for name, ms in CGROUP_FILES[controller]:
                    yield f"{mounts[controller]}{path}/{name}", ms


def floor_command(seconds, counter, pids):
    """The command that reads the same files of these processes, without using them.

    counter: the file for the number of its ticks.
    """
    files = [*MACHINE_FILES.items(), *cgroup_files(pids[0])]
    return [program("floor"), str(seconds), counter, *(f"{ms}:{path}" for path, ms in files),
            *map(str, pids)]  # fmt: skip
