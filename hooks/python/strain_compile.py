# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""What torch.compile does while the job runs (PyTorch 2.3 and newer).

Each compilation is a span `torch.compile` of the thread that needs the code. A function that is compiled more often
than PyTorch's limit runs uncompiled from then on; PyTorch logs a warning, and the run gets:

    compile_limit_at  "train.py:40", where the first such function begins
    compile_limit     how many graphs it has
"""

import logging
import sys
import threading
from time import monotonic_ns

import strain_hook
import strain_spans

GAVE_UP = "torch._dynamo hit config."


class Compiler:
    """Listens to torch._dynamo, which has been imported. Raises if it cannot be listened to."""

    def __init__(self, hook, tell):
        self.hook = hook
        self.tell = tell
        self.gave_up = False
        self.began = 0, 0  # thread and time of the outermost compilation of all threads, which callbacks tell
        self.handler = sys.modules["torch._dynamo.callback"].callback_handler
        self._register()
        self.clear = self.handler.clear
        self.handler.clear = self._clear  # of torch._dynamo.reset()
        logging.getLogger("torch._dynamo.convert_frame").addFilter(self._read)

    def _register(self):
        self.handler.register_start_callback(self._begins)
        self.handler.register_end_callback(self._ends)

    def _clear(self):
        self.clear()
        self._register()

    def _begins(self, *_):
        self.began = threading.get_ident(), monotonic_ns()

    def _ends(self, *_):
        (thread, began_ns), self.began = self.began, (0, 0)
        if thread == threading.get_ident() and self.hook.on:
            strain_spans.put("torch.compile", began_ns, monotonic_ns())

    def _read(self, record):
        """A filter of a logger, which passes all records."""
        try:
            if not self.gave_up and self.hook.on and str(record.msg).startswith(GAVE_UP):
                self.gave_up = True
                self._tell_limit(*record.args[:3])
        except Exception:
            pass  # other words in this version: the reader is not worth the job's log
        return True

    def _tell_limit(self, limit, graphs, function):
        """function: "'forward' (/home/me/net.py:31)"."""
        path, _, line = function.rpartition(" (")[2].rstrip(")").rpartition(":")
        self.tell((("compile_limit_at", "%s:%s" % (strain_hook.short_path(path), int(line))),))
        if limit in ("recompile_limit", "cache_size_limit"):
            self.tell((("compile_limit", "%d" % graphs),))
