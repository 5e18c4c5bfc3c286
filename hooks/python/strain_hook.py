# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""Shared parts of the frameworks' hooks: installation, patches that fail open, reports to the run.

The run learns of each process that imported a framework from a file in the marker directory,
`hook-PID`, of lines `KEY VALUE` (docs/hooks.md).
"""

import functools
import sys

MAX_LINES = 96


class Loader:
    """A framework's own loader, followed by the hook; leaves no trace in the module."""

    def __init__(self, loader, name, entry):
        self._loader = loader
        self._name = name
        self._entry = entry

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        """The same as the framework's own loader."""
        return self._loader.create_module(spec)

    def exec_module(self, module):
        """Runs the framework's own code, then the hook."""
        end = None
        try:
            module.__spec__.loader = module.__loader__ = self._loader
            end = begin(self._entry, self._name, self._entry.waiting.pop(self._name))
        except Exception as error:
            self._entry.tell("off %s: %s" % (self._name, describe(error)))
        try:
            self._loader.exec_module(module)
        except BaseException:
            module = None
            raise
        finally:
            if end:
                end(module)


def find(entry, name, path, target):
    """Returns the other finders' spec of a framework, with the hook added."""
    for finder in list(sys.meta_path):
        look = getattr(finder, "find_spec", None)
        spec = None if finder is entry or look is None else look(name, path, target)
        if spec is not None:
            if hasattr(spec.loader, "exec_module"):
                spec.loader = Loader(spec.loader, name, entry)
            return spec
    return None


class Report:
    """Reports of this process's hooks to the run, bounded."""

    def __init__(self, tell):
        self._tell = tell
        self._lines = 0
        self._told = set()

    def say(self, key, value):
        """Writes a line, once."""
        line = "%s %s" % (key, value)
        if line not in self._told and self._lines < MAX_LINES:
            self._told.add(line)
            self._lines += 1
            self._tell(line)


class Hook:
    """The hooks of one framework: its patches, and whether they are on."""

    def __init__(self, framework, report):
        self.framework = framework
        self.report = report
        self.on = True
        self._patches = []
        self._inherited = set()  # ids of wrappers of what a class did not define itself

    def patch(self, owner, name, wrap):
        """Replaces owner.name by wrap(owner.name). Raises if it does not exist."""
        original = getattr(owner, name)
        wrapper = functools.wraps(original)(wrap(original))
        if name not in vars(owner):
            self._inherited.add(id(wrapper))
        setattr(owner, name, wrapper)
        self._patches.append((owner, name, original, wrapper))

    def plain(self, function):
        """What was there before our patches."""
        for _, _, original, wrapper in reversed(self._patches):
            function = original if function is wrapper else function
        return function

    def unpatch(self, owner, name):
        """Removes one patch."""
        for place, (patched, called, original, wrapper) in enumerate(self._patches):
            if patched is owner and called == name and vars(owner).get(name) is wrapper:
                self._restore(owner, name, original, wrapper)
                del self._patches[place]
                return

    def _restore(self, owner, name, original, wrapper):
        if id(wrapper) in self._inherited:
            self._inherited.discard(id(wrapper))
            delattr(owner, name)
        else:
            setattr(owner, name, original)

    def feature(self, what, install, *arguments):
        """Installs one feature. On failure, its patches are undone and the run has the reason."""
        before = len(self._patches)
        try:
            install(*arguments)
        except Exception as error:
            self._undo(before)
            self.report.say("missing", "%s: %s" % (what, describe(error)))
            return False
        self.report.say("hooked", what)
        return True

    def fail(self, error):
        """One of our functions failed while the job ran: all hooks are off from now on."""
        if self.on:
            self.on = False
            self._undo(0)
            self.report.say("off", "%s: %s" % (self.framework, describe(error)))

    def switch(self, on):
        """Takes the patches out, or puts them back: for who measures what they cost. What all modules
        call stays, and does nothing: each change of their class would have Python look up anew what all of
        them have, which costs more than the hooks do."""
        self.on = on
        for owner, name, original, wrapper in self._patches:
            if name != "__call__":
                setattr(owner, name, wrapper if on else original)

    def _undo(self, first):
        for owner, name, original, wrapper in reversed(self._patches[first:]):
            # A wrapper that others put around ours is kept; ours then only calls the original.
            if getattr(owner, name, None) is wrapper:
                self._restore(owner, name, original, wrapper)
        del self._patches[first:]


# What a script or a launcher (torchrun) may set for the process; the job's own environment is known.
VARIABLES = "OMP_NUM_THREADS", "OMP_WAIT_POLICY", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"
LOOK_AFTER = 8  # steps, for the first of which much is compiled

_followers = []  # (framework, function by which its hook leaves this thread's loop)


def follow(framework, leave):
    """A hook that guesses a loop from its parts: leave() is called where another one knows better, and
    answers whether it may."""
    _followers.append((framework, leave))


def claim(framework):
    """This thread's loop is this framework's. Returns False if another one trains in it."""
    return all([leave() for follower, leave in _followers if follower != framework])


def look(report, beside=""):
    """This thread trains: reports settings for debugging, and takes the few samples of its lines (strain_lines.py), if
    the run has them. beside: the phase of those that are in no other."""
    import os

    try:  # the run, and its folder, may be over
        import strain_debug

        strain_debug.tell(report)
    except Exception as error:
        report.say("missing", "debug settings: %s" % describe(error))
    directory = os.environ.get("STRAIN_MARKERS")
    if not directory or "STRAIN_LINES" not in os.environ:
        return
    try:
        import strain_lines

        strain_lines.install(directory, strain_lines.FEW, beside)
    except Exception as error:
        report.say("missing", "lines: %s" % describe(error))


def describe(error):
    """An exception in one line, with its origin in our code."""
    place = ""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is not None:
        code = traceback.tb_frame.f_code
        place = " (%s:%d)" % (code.co_filename.rsplit("/", 1)[-1], traceback.tb_lineno)
    return "%s: %s%s" % (type(error).__name__, error, place)


def caller(packages):
    """"file.py:42": the frame that called, outside of these folders and of installed packages."""
    return caller_and_library(packages)[0]


def caller_and_library(packages):
    """The same, and the installed package that it called for this; None: it called directly."""
    import os

    ours = os.path.dirname(os.path.abspath(__file__))
    python = os.path.dirname(os.__file__) + os.sep  # contextlib, functools, ...
    found = library = None
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith((ours + os.sep,) + packages) and not name.startswith("<frozen"):
            place = "%s:%d" % (short_path(name), frame.f_lineno)
            if "site-packages" in name or "dist-packages" in name:
                found = found or place
                library = str(frame.f_globals.get("__name__")).partition(".")[0]
            elif not name.startswith(python):
                return place, library
        frame = frame.f_back
    return found, library


def short_path(name):
    """A path relative to the working directory, if it is below it."""
    import os

    name = os.path.abspath(name)
    here = os.getcwd()
    return os.path.relpath(name, here) if name.startswith(here.rstrip("/") + "/") else name


def _tell_variables(report):
    """Once, by the process's first framework: it makes its threads then."""
    global VARIABLES
    import os

    names, VARIABLES = VARIABLES, ()
    for name in names:
        value = os.environ.get(name)
        if value and len(value) < 64:
            report.say("process_" + name.lower().rstrip("_"), value)


def begin(entry, name, module_name):
    """A framework is about to be imported. Returns a function to call after the import."""
    import strain_ring

    report = Report(entry.tell)
    strain_ring.start(entry.directory)
    ring = strain_ring.here()
    if ring:
        ring.begin(strain_ring.IMPORT)

    def end(framework):
        try:
            if ring and ring is strain_ring.here():
                ring.end()
            if framework is not None:
                if module_name != "strain_libraries":
                    _tell_variables(report)
                __import__(module_name).hook(framework, report)
        except Exception as error:
            report.say("off", "%s: %s" % (name, describe(error)))

    return end
