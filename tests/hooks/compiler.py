# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""What torch._dynamo tells of its compilations, without PyTorch: compiler.py FOLDER, of the hooks."""

import logging
import sys
import threading
import types

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import strain_compile
import strain_spans

spans, told = [], []
strain_spans.put = lambda name, began_ns, ended_ns: spans.append((name, began_ns, ended_ns))
begin, end = [], []
handler = types.SimpleNamespace(register_start_callback=begin.append, register_end_callback=end.append,
                                clear=lambda: (begin.clear(), end.clear()))  # fmt: skip
sys.modules["torch._dynamo.callback"] = types.SimpleNamespace(callback_handler=handler)
hook = types.SimpleNamespace(on=True)
strain_compile.Compiler(hook, told.extend)


def compiles(*arguments):
    """PyTorch 2.3 calls without arguments, 2.9 with one."""
    for callback in begin + end:
        callback(*arguments)


compiles()
compiles(object())
assert [name for name, began_ns, ended_ns in spans if began_ns <= ended_ns] == 2 * ["torch.compile"], spans
end[0]()  # an end without a beginning
begin[0]()
other = threading.Thread(target=end[0])  # the last of several threads ends elsewhere
other.start()
other.join()
end[0]()
assert len(spans) == 2
handler.clear()  # torch._dynamo.reset()
compiles()
assert len(spans) == 3
spans.pop()
hook.on = False
compiles()
assert len(spans) == 2
hook.on = True

# The words of PyTorch 2.6 and 2.15.
log = logging.getLogger("torch._dynamo.convert_frame")
log.propagate = False
seen = []
log.addHandler(type("Keep", (logging.Handler,), {"emit": lambda self, record: seen.append(record.getMessage())})())
words = "torch._dynamo hit config.%s (%s)\n   function: %s\n   last reason: %s\nsee %s"
log.warning("torch._dynamo hit config.")
log.warning(words, "recompile_limit", 8, "no place", "0/7", "there")
log.warning("another warning: %s", "x")
assert told == [], told
strain_compile.Compiler(hook, told.extend)
log.warning(words, "recompile_limit", 8, "'forward' (/there/net.py:31)", "0/7", "there")
log.warning(words, "recompile_limit", 8, "'other' (/there/net.py:90)", "0/7", "there")
assert told == [("compile_limit_at", "/there/net.py:31"), ("compile_limit", "8")], told
assert len(seen) == 5, seen
