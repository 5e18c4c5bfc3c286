# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""What every Python of a recorded job starts with, by its PYTHONPATH: it waits for a framework.

Site imports this in place of the `sitecustomize` that comes next in path order, which is imported
at the end, as if this one were not there. In between, one finder is put before the others: it does
nothing until a framework is imported, and then loads what marks it. Read by any Python, so nothing
here is newer than Python 2.7; below 3.7, nothing is done. Never fails the job.
"""

import os
import sys

# A framework's module, and the module beside this file that hooks it (hook(framework, name)).
FRAMEWORKS = {
    "jax": "strain_jax",
    "keras": "strain_keras",
    "tf_keras": "strain_keras",
    "torch": "strain_torch",
}


class Loader(object):
    """A framework's own loader, with the hook after it; leaves no trace in the module."""

    def __init__(self, loader, name, entry):
        self._loader = loader
        self._name = name
        self._entry = entry

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        """As the framework's own loader does."""
        return self._loader.create_module(spec)

    def exec_module(self, module):
        """Runs the framework's own code, then the hook."""
        end = None
        try:
            module.__spec__.loader = module.__loader__ = self._loader
            end = self._entry.begin(self._name)
        except Exception as error:
            self._entry.tell("off %s: %r" % (self._name, error))
        try:
            self._loader.exec_module(module)
        finally:
            if end:
                end(module)


class Entry(object):
    """The finder: of frameworks once, and of the hooks' own modules, which are on no path."""

    def __init__(self, folder):
        self.folder = folder
        self.waiting = dict(FRAMEWORKS)

    def find_spec(self, name, path=None, target=None):
        """The next finder's answer, with the hook behind it; nothing for all other names."""
        if name in self.waiting:
            return self._find_framework(name, path, target)
        if name.startswith("strain_") and path is None:
            return self._find_own(name)
        return None

    def _find_framework(self, name, path, target):
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = None if finder is self or find is None else find(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = Loader(spec.loader, name, self)
                return spec
        return None

    def _find_own(self, name):
        location = os.path.join(self.folder, name + ".py")
        if not os.path.isfile(location):
            return None
        from importlib.util import spec_from_file_location

        return spec_from_file_location(name, location)

    def begin(self, name):
        """The framework is about to run; returns what is called with it when it has."""
        import strain_hook

        return strain_hook.begin(self, name, self.waiting.pop(name))

    def tell(self, line):
        """Appends a line to what the run is told of this process."""
        try:
            path = os.path.join(os.path.dirname(self.folder), "hook-%d" % os.getpid())
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(handle, (line.replace("\n", " ")[:900] + "\n").encode("utf-8", "replace"))
            finally:
                os.close(handle)
        except Exception:
            pass


def list_opened(entry, folder):
    """For `strain advise --stalls`: which files this process reads."""
    try:
        import strain_opened

        strain_opened.install(folder)
    except Exception as error:
        entry.tell("missing opened: %r" % error)


def enter():
    """Takes this folder off the path, puts the finder before the others, and says so once a run."""
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != folder]
    sys.path_importer_cache.pop(folder, None)
    if sys.version_info < (3, 7):
        return
    entry = Entry(folder)
    sys.meta_path.insert(0, entry)
    if os.environ.get("STRAIN_OPENED"):
        list_opened(entry, os.environ["STRAIN_OPENED"])
    entered = os.path.join(os.path.dirname(folder), "entered")
    if not os.path.exists(entered):
        os.close(os.open(entered, os.O_WRONLY | os.O_CREAT, 0o600))


try:
    enter()
except Exception:
    pass
# The next one's failure, that there is none included, is to site what it always was.
sys.modules.pop("sitecustomize", None)
import sitecustomize  # noqa: E402
