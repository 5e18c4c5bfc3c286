# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""What the tests of hooks have in place of the run: the report, and patches that replace each other."""

import functools

_originals = {}


class Said:
    """The report to the run."""

    def __init__(self):
        self.lines = []

    def say(self, key, value):
        """Keeps a line."""
        self.lines.append((key, value))


def patch(owner, name, wrap):
    """As strain_hook.Hook.patch, but always around the original."""
    original = _originals.setdefault((owner, name), getattr(owner, name))
    setattr(owner, name, functools.wraps(original)(wrap(original)))


def unpatch():
    """Restores all originals."""
    for (owner, name), original in _originals.items():
        setattr(owner, name, original)
