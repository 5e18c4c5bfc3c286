# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
#
# What every Python of a recorded job starts with, by its PYTHONPATH: it waits for a framework. Site
# imports this in place of the `sitecustomize` that is next in path order, which is imported at the
# end, as if this one were not there. In between, one finder is put before the others: it does
# nothing until a framework is imported. Short, because every start of a Python may have to read
# it; by any Python, so nothing here is newer than 2.7. Never fails the job.

import os
import sys

# A framework's module, and the module beside this file that hooks it.
FRAMEWORKS = {
    "fastai.optimizer": "strain_libraries",
    "gym": "strain_libraries",
    "gymnasium": "strain_libraries",
    "jax": "strain_jax",
    "keras": "strain_keras",
    "stable_baselines3.common.vec_env": "strain_libraries",
    "tf_keras": "strain_keras",
    "torch": "strain_torch",
    "transformers.generation.utils": "strain_libraries",
    "torchdata.stateful_dataloader.stateful_dataloader": "strain_libraries",
}


def is_own(directory):
    """Whether nobody else can make files there: what has this name by now may be another's."""
    status = os.lstat(directory)
    kind_and_others = status.st_mode & 0o170077
    return kind_and_others == 0o040000 and status.st_uid == os.geteuid()


def open_in(directory, name, flags):
    """A file of the marker directory, wherever that name leads later."""
    import strain_folder

    return strain_folder.open_in(directory, name, flags)


class Last(object):
    """Finds the package for marks (docs/markers.md) where nobody else has a module of that name."""

    def __init__(self, folder):
        self.folder = folder

    def find_spec(self, name, path=None, target=None):
        if name != "strain" or path is not None:
            return None
        from importlib.util import spec_from_file_location

        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:  # came after us
            look = getattr(finder, "find_spec", None)
            spec = look(name, path, target) if look else None
            if spec is not None:
                return spec
        return spec_from_file_location(name, os.path.join(self.folder, name + ".py"))


class Entry(object):
    def __init__(self, folder, directory):
        self.folder = folder
        self.directory = directory  # of marks
        self.waiting = dict(FRAMEWORKS)

    def find_spec(self, name, path=None, target=None):
        if name in self.waiting or name[:7] == "strain_":
            try:
                if name[:7] != "strain_":
                    import strain_hook

                    return strain_hook.find(self, name, path, target)
                location = os.path.join(self.folder, name + ".py")
                if path is None and os.path.isfile(location):
                    from importlib.util import spec_from_file_location

                    return spec_from_file_location(name, location)
            except Exception as error:
                self.waiting.pop(name, None)
                self.tell("off %s: %r" % (name, error))

    def tell(self, line):
        try:
            handle = open_in(self.directory, "hook-%d" % os.getpid(), os.O_WRONLY | os.O_APPEND)
            try:
                os.write(handle, (line.replace("\n", " ")[:400] + "\n").encode("utf-8", "replace"))
            finally:
                os.close(handle)
        except Exception:
            pass


try:
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if p != here]
    sys.path_importer_cache.pop(here, None)
    if sys.version_info >= (3, 8):
        sys.meta_path.append(Last(here))
    marks = os.environ.get("STRAIN_MARKERS")
    # Without it, or once it is gone, this is the environment of a run that has ended.
    if sys.version_info >= (3, 7) and marks and is_own(marks):
        entry = Entry(here, marks)
        sys.meta_path.insert(0, entry)
        if not os.path.lexists(marks + "/entered"):
            os.close(open_in(marks, "entered", os.O_WRONLY))
            sys.modules.pop("strain_folder", None)  # who imports no framework has no more of ours
        if os.environ.get("STRAIN_OPENED"):  # strain advise: which files this one reads
            import strain_opened

            strain_opened.install(os.environ["STRAIN_OPENED"])
        if os.environ.get("STRAIN_LINES") == "all":  # strain run --lines
            import strain_lines

            strain_lines.install(marks)
except Exception:
    pass
# The next one's failure, that there is none included, is to site what it always was.
sys.modules.pop("sitecustomize", None)
import sitecustomize  # noqa: E402
