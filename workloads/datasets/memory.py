# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""The memory available for a dataset, on the machine and in the cgroups of this process, so that a
dataset that does not fit gives an error message instead of being killed by the kernel."""

import os

ROOT = "/"  # folder of proc and sys


def read(*path):
    """The text of a small file; empty if it does not exist."""
    try:
        with open(os.path.join(ROOT, *path), encoding="ascii") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return ""


def number(text, name=None):
    """An integer, or the one after a name in lines of "NAME NUMBER"; None: there is none."""
    if name:
        text = next((line.split()[1] for line in text.splitlines()
                     if line.split()[:1] == [name]), "")  # fmt: skip
    return int(text) if text.strip().isdigit() else None


def of_machine():
    """Bytes that can be allocated before anything is killed, including swap. None: not known."""
    text = read("proc/meminfo")
    parts = [number(text, name) for name in ("MemAvailable:", "SwapFree:")]
    return None if parts[0] is None else (parts[0] + (parts[1] or 0)) * 1024


def of_cgroup(folder, names):
    """Bytes up to a cgroup's limit; the page cache does not count as used. None: no limit."""
    limit, used, cached = (name and read(folder, name) for name in names[:3])
    limit, used = number(limit), number(used)
    if limit is None or used is None or limit > 1 << 60:
        return None
    return max(0, limit - used + (number(cached, names[3]) or 0))


KINDS = {  # by controllers in a line of /proc/self/cgroup
    "": (("sys/fs/cgroup", "sys/fs/cgroup/unified"),
         ("memory.max", "memory.current", "memory.stat", "inactive_file")),
    "memory": (("sys/fs/cgroup/memory",), ("memory.limit_in_bytes", "memory.usage_in_bytes",
                                           "memory.stat", "total_inactive_file")),
}  # fmt: skip


def available():
    """The smallest amount, and its origin: (bytes or None, "this machine" or "cgroup /PATH")."""
    found = [(of_machine(), "this machine")]
    for line in read("proc/self/cgroup").splitlines():
        kind, path = line.split(":", 2)[1:]
        mounts, names = KINDS.get(kind, ((), ()))
        while path and names:  # limits of parent cgroups apply, too
            found += [(of_cgroup(mount + path, names), f"cgroup {path}") for mount in mounts]
            path = os.path.dirname(path) if path != "/" else ""
    found = [one for one in found if one[0] is not None]
    return min(found) if found else (None, "")


def check(needed, what):
    """Raises MemoryError if less than `needed` is available."""
    there, where = available()
    if there is not None and needed > there:
        raise MemoryError(f"{what} take {needed / 1e9:.1f} GB, {there / 1e9:.1f} GB are available "
                          f"({where}); --samples: fewer")  # fmt: skip
