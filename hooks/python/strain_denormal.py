# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""Whether this thread computes with denormal numbers, which are many times slower on most CPUs.

On x86-64 the control and status register of SSE (MXCSR) has a flag that an operand was denormal (DE).
It stays set until it is cleared. fetestexcept() of the C library leaves it out, and so does Python: hardly any
program but one with intrinsics of the CPU (_MM_GET_EXCEPTION_STATE) reads it. See Intel 64 and IA-32
Architectures Software Developer's Manual, volume 1, 10.2.3.
"""

import ctypes
import platform

MXCSR = 7  # the word of glibc's and musl's fenv_t
DENORMAL = 2  # the flag


class Flag:
    """The calling thread's. Raises where it cannot be read."""

    def __init__(self):
        if platform.machine() != "x86_64":
            raise RuntimeError("not x86-64")
        self._libm = ctypes.CDLL("libm.so.6")
        self._environment = (ctypes.c_uint32 * 16)()

    def take(self):
        """Whether it is set; clears it."""
        words = self._environment
        if self._libm.fegetenv(words) != 0:
            raise OSError("fegetenv failed")
        if not words[MXCSR] & DENORMAL:
            return False
        words[MXCSR] &= ~DENORMAL
        if self._libm.fesetenv(words) != 0:
            raise OSError("fesetenv failed")
        return True
