# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""Lists the files that this process opens for reading, for `strain advise` (--stalls, --from --verify).

Each path goes once, ended by NUL, to `opened-PID` in the folder that STRAIN_OPENED names; children
of a fork go on in their parent's file.
"""

import os
import sys

import strain_folder

MAX_PATHS = 100_000
READS_ONLY = os.O_WRONLY | os.O_RDWR


class Opened:
    """An audit hook for `open`. It cannot be removed; after a failure or enough files it is idle."""

    def __init__(self, folder):
        name = f"opened-{os.getpid()}"
        self._list = strain_folder.open_in(folder, name, os.O_WRONLY | os.O_APPEND)
        self._seen = set()
        self._rests = False

    def __call__(self, event, arguments):
        if event == "open" and not self._rests:
            try:
                self._note(*arguments)
            except Exception:
                self._rests = True

    def _note(self, path, _mode, flags):
        if flags & READS_ONLY or not isinstance(path, (str, bytes)):
            return
        raw = os.path.abspath(os.fsencode(path))
        if raw in self._seen:
            return
        self._seen.add(raw)
        os.write(self._list, raw + b"\0")
        self._rests = len(self._seen) >= MAX_PATHS


def install(folder):
    """Starts listing. Needs Python 3.8."""
    sys.addaudithook(Opened(folder))
