# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""Files in a folder that an environment variable names.

An environment outlives the run that set it, and the folder's name is free for anyone then: only a
folder that is this user's alone is written to.
"""

import os


def open_in(directory, name, flags):
    """Makes or opens a file there, mode 0600; no link is followed. Raises OSError."""
    folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(folder)
        if status.st_uid != os.geteuid() or status.st_mode & 0o077:
            raise PermissionError("%s: not this user's alone" % directory)
        flags |= os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(name, flags, 0o600, dir_fd=folder)
    finally:
        os.close(folder)
