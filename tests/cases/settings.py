# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""What surrounds the runs of a case: files, and limits by cgroups (v1)."""

import os
import time

MIB = 1 << 20


class Skip(Exception):
    """What a case needs is not on this machine."""


class Setting:
    """What surrounds a run: files and cgroups, made before and removed after."""

    def __init__(self, folder):
        self.folder = folder
        self.groups = []

    def group(self, controller, settings):
        """A cgroup (v1) below the present one, with these settings."""
        path = own_cgroup(controller) + "/strain-case-%d" % os.getpid()
        try:
            os.makedirs(path, exist_ok=True)
            self.groups.append(path)
            for name, value in settings:
                with open(path + "/" + name, "w") as file:
                    file.write(value)
        except OSError as error:
            self.after()
            raise Skip("no cgroup of controller %s: %s" % (controller, error)) from error
        return path

    def before(self, injected):
        """Arguments for the job, made ready."""
        return []

    def prefix(self, injected):
        """What is run in front of the job."""
        return []

    def enter(self, injected):
        """Runs in the process that becomes `strain run`."""

    def after(self):
        """Puts everything away."""
        for group in self.groups:
            for _ in range(50):
                try:
                    os.rmdir(group)
                    break
                except OSError:
                    time.sleep(0.1)
        self.groups = []


class CpusetSetting(Setting):
    """One CPU for the job: by a cpuset, where one can be made, else by affinity."""

    def prefix(self, injected):
        if not injected:
            return []
        try:
            path = self.group("cpuset", [("cpuset.cpus", "0"), ("cpuset.mems", "0")])
        except Skip:
            return ["taskset", "-c", "0"]
        return ["sh", "-c", 'echo $$ >"$0" && exec "$@"', path + "/cgroup.procs"]


class AffinitySetting(Setting):
    """One CPU for the job, by affinity."""

    def prefix(self, injected):
        return ["taskset", "-c", "0"] if injected else []


class CheckpointSetting(Setting):
    """A place to save."""

    def before(self, injected):
        return ["--checkpoint", self.folder + "/saved"] if injected else []


class DiskSetting(Setting):
    """A dataset on a disk that a cgroup slows down; without the injection it is in memory."""

    file_bytes = 160 * MIB
    image_bytes = 25000
    read_rate = 30 * MIB

    def __init__(self, folder):
        super().__init__(folder)
        self.path = folder + "/data"

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
