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
    "jax": "strain_jax",
    "keras": "strain_keras",
    "tf_keras": "strain_keras",
    "torch": "strain_torch",
}


class Entry(object):
    def __init__(self, folder):
        self.folder = folder
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
            with open("%s/hook-%d" % (os.path.dirname(self.folder), os.getpid()), "a") as words:
                words.write(line.replace("\n", " ")[:400] + "\n")
        except Exception:
            pass


def keep_compiled(cached):
    # For the next start, though Python was told to keep nothing: the folder is the run's own.
    if os.path.dirname(cached) == os.path.join(here, "__pycache__"):
        sys.dont_write_bytecode = False
        try:
            __loader__.get_code(__name__)
        finally:
            sys.dont_write_bytecode = True


try:
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if p != here]
    sys.path_importer_cache.pop(here, None)
    if sys.version_info >= (3, 7):
        entry = Entry(here)
        sys.meta_path.insert(0, entry)
        entered = os.path.dirname(here) + "/entered"
        if not os.path.exists(entered):
            open(entered, "w").close()
        cached = globals().get("__cached__")
        if sys.dont_write_bytecode and cached and not os.path.exists(cached):
            keep_compiled(cached)
        if os.environ.get("STRAIN_OPENED"):  # strain advise --stalls: which files this one reads
            import strain_opened

            strain_opened.install(os.environ["STRAIN_OPENED"])
except Exception:
    pass
# The next one's failure, that there is none included, is to site what it always was.
sys.modules.pop("sitecustomize", None)
import sitecustomize  # noqa: E402
