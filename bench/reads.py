# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""What the recorder reads of machine and job at its default rates: the arguments of the floor."""

from pathlib import Path

from harness import program

# Every so many ms (0: every tick), as in src/record/source/*.c. What is read of each process stands
# in floor.c.
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
# Of the job's own cgroup, by controller; "" is v2. The counter of CPU time serves two sources.
CGROUP_FILES = {
    "cpuacct": [("cpuacct.usage", 0), ("cpuacct.usage", 100), ("cpuacct.stat", 100)],
    "memory": [("memory.stat", 100), ("memory.usage_in_bytes", 100), ("memory.oom_control", 100),
               ("memory.kmem.usage_in_bytes", 100)],
    "": [("cpu.stat", 0), ("cpu.stat", 100), ("memory.stat", 100), ("memory.current", 100),
         ("memory.events", 100), ("memory.swap.current", 100), ("io.stat", 100),
         ("cpu.pressure", 100), ("memory.pressure", 100), ("io.pressure", 100)],
}  # fmt: skip


def mount_points():
    """Where each cgroup hierarchy is mounted: by controller, "" for v2."""
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
    """(path, ms) of what is read of the job's own cgroup; none where it has none."""
    mounts = mount_points()
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            if controller in CGROUP_FILES and controller in mounts and "/strain-" in path:
                for name, ms in CGROUP_FILES[controller]:
                    yield f"{mounts[controller]}{path}/{name}", ms


def floor_command(seconds, counter, pids):
    """The command that reads the same of these processes and does nothing with it.

    counter: the file in which it counts its ticks.
    """
    files = [*MACHINE_FILES.items(), *cgroup_files(pids[0])]
    return [program("floor"), str(seconds), counter, *(f"{ms}:{path}" for path, ms in files),
            *map(str, pids)]  # fmt: skip
