# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""Settings that help to find errors or to repeat results, make training slower, and may have been left on.

    detect_anomaly, profiler         PyTorch, in each of the first backward passes
    onednn_off                       PyTorch computes without oneDNN, which it has
    launch_blocking                  CUDA_LAUNCH_BLOCKING=1
    disable_jit, debug_nans, debug_infs    JAX (jax_...)
    op_determinism, data_debug, check_numerics    TensorFlow
    instruction_set                  a variable that limits a library to old instructions

Names of a framework that are private are read only where they exist; one that does not is a setting that is off.
"""

import os
import sys

PASSES = 8  # backward passes: what is on in all of them was left on
OLD = {
    "ATEN_CPU_CAPABILITY": ("default",),
    "DNNL_MAX_CPU_ISA": ("sse41", "avx"),
    "ONEDNN_MAX_CPU_ISA": ("sse41", "avx"),
    "OPENBLAS_CORETYPE": ("prescott", "core2", "nehalem"),
    "MKL_ENABLE_INSTRUCTIONS": ("sse4_2", "avx"),
}  # variables, and values that are slower than what today's processors have

found = set()  # in this process


def tell(report):
    """Reports what is on in this process, in addition to what was found before. Never fails."""
    for look in (_of_jax, _of_determinism, _of_data, _of_numerics, _of_variables):
        try:
            found.update(look())
        except Exception:
            pass
    if found:
        report.say("debug_settings", " ".join(sorted(found)))


class Passes:
    """What is on in each of the first backward passes of PyTorch."""

    __slots__ = ("left", "_torch", "_on")

    def __init__(self, torch):
        self.left = PASSES
        self._torch = torch
        self._on = None

    def begins(self, report):
        """One of these passes."""
        on = _of_pytorch(self._torch)
        self._on = on if self._on is None else self._on & on
        self.left = self.left - 1 if self._on else 0
        if not self.left:
            found.update(self._on)
            tell(report)


def _of_pytorch(torch):
    on = set()
    try:
        if torch.is_anomaly_enabled():
            on.add("detect_anomaly")
        if torch.autograd._profiler_enabled():
            on.add("profiler")
        if torch.backends.mkldnn.is_available() and not torch._C._get_mkldnn_enabled():
            on.add("onednn_off")
        if os.environ.get("CUDA_LAUNCH_BLOCKING") == "1" and torch.cuda.is_initialized():
            on.add("launch_blocking")
    except Exception:
        pass
    return on


def _of_jax():
    config = getattr(sys.modules.get("jax"), "config", None)
    return [name for name in ("debug_infs", "debug_nans", "disable_jit") if getattr(config, "jax_" + name, False) is True]


def _of_determinism():
    config = sys.modules["tensorflow.python.framework.config"]
    return ["op_determinism"] if config.is_op_determinism_enabled() else []


def _of_data():
    return ["data_debug"] if sys.modules["tensorflow.python.data.ops.debug_mode"].DEBUG_MODE else []


def _of_numerics():
    state = sys.modules["tensorflow.python.debug.lib.check_numerics_callback"]._state  # of this thread
    return ["check_numerics"] if hasattr(state, "check_numerics_callback") else []


def _of_variables():
    old = any(os.environ.get(name, "").lower() in values for name, values in OLD.items())
    return ["instruction_set"] if old else []
