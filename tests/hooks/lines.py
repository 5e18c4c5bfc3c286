# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Samples of lines: whose frames count, what the thread leaves behind, and where time goes."""

import _thread
import gc
import os
import signal
import sys
import tempfile
import threading
import time
import types

sys.path.insert(0, sys.argv[1])

import strain_lines
from strain_lines import FINE_S, Fine, Lines, Places, stack_of

FOLDER = tempfile.mkdtemp()
strain_lines.ENDS_S = 60  # however busy the machine is
NEVER = ((1000, 1000),)  # the thread sleeps until it is told to end


def stack(*frames):
    """A stack of (file, line, function), the innermost first."""
    outer = None
    for name, line, function in reversed(frames):
        code = types.SimpleNamespace(co_filename=name, co_name=function)
        outer = types.SimpleNamespace(f_code=code, f_lineno=line, f_back=outer)
    return outer


def test_whose_line_counts():

    def look(frame):
        return Places().classify(stack_of(frame, 200))

    torch, pil = "/usr/lib/python3/dist-packages/torch/", "/usr/lib/python3/dist-packages/PIL/Image.py"
    main = ("/home/me/train.py", 9, "main")
    loader, worker = (torch + "utils/data/dataloader.py", 1, "next"), (torch + "utils/data/_utils/worker.py", 2, "loop")
    assert look(stack(main)) == ("", 9, "/home/me/train.py", "main")
    # The outermost phase, the innermost line of the user.
    assert look(stack((torch + "nn/modules/linear.py", 1, "forward"), ("/home/me/model.py", 5, "forward"),
                      (torch + "nn/modules/module.py", 1, "call"), main)) == ("forward", 5, "/home/me/model.py", "forward")  # fmt: skip
    assert look(stack((torch + "autograd/__init__.py", 1, "backward"), main)) == ("backward", 9, "/home/me/train.py", "main")
    # What backward and the optimizer call of the script's own.
    root, step = ("/home/me/own.py", 3, "root"), ("/home/me/own.py", 7, "step")
    optimizer, context = (torch + "optim/optimizer.py", 1, "wrapper"), (torch + "utils/_contextlib.py", 1, "decorate_context")
    assert look(stack(root, step, optimizer, main)) == ("own optimizer", 3, "/home/me/own.py", "root")
    assert look(stack(root, step, context, optimizer, main))[0] == "own optimizer"
    assert look(stack(root, (torch + "optim/lr_scheduler.py", 1, "get_lr"), main))[0] == "own optimizer"
    assert look(stack(root, (torch + "autograd/__init__.py", 1, "backward"), main))[0] == "own backward"
    assert look(stack(optimizer, main)) == ("optimizer", 9, "/home/me/train.py", "main")
    cast = (os.path.dirname(os.__file__) + "/typing.py", 1, "cast")
    assert look(stack(cast, (torch + "optim/adam.py", 1, "step"), optimizer, main))[0] == "optimizer"
    # A checkpoint's forward pass, in the script's backward pass; and its backward pass.
    module, engine = (torch + "nn/modules/module.py", 1, "call"), (torch + "autograd/__init__.py", 1, "backward")
    model, checkpoint = ("/home/me/model.py", 5, "forward"), (torch + "utils/checkpoint.py", 1, "backward")
    assert look(stack(model, module, checkpoint, engine, main)) == ("recomputed", 5, "/home/me/model.py", "forward")
    assert look(stack(engine, checkpoint, engine, main))[0] == "backward"
    assert look(stack(model, module, checkpoint, module, main))[0] == "forward"
    assert look(stack(model, checkpoint, main))[0] == ""
    # Keras' fit is a step, but for callbacks and the wait for a batch; functions of ours are phases.
    keras, ours = "/venv/lib/python3/site-packages/keras/src/", sys.argv[1]
    fit = (keras + "backend/tensorflow/trainer.py", 1, "fit")
    mine, callbacks = ("/home/me/own.py", 3, "norms"), (keras + "callbacks/callback_list.py", 2, "on_train_batch_end")
    assert look(stack(fit, main)) == ("step", 9, "/home/me/train.py", "main")
    assert look(stack(mine, callbacks, fit, main)) == ("", 3, "/home/me/own.py", "norms")
    assert look(stack(fit, mine, callbacks, fit, main))[0] == ""
    assert look(stack(mine, (ours + "/strain_keras.py", 1, "__next__"), fit, main))[0] == "data"
    assert look(stack((ours + "/strain_jax.py", 1, "call"), main)) == ("step", 9, "/home/me/train.py", "main")
    assert look(stack(mine, (ours + "/strain_jax.py", 1, "jit"), main))[0] == ""
    # PyTorch's files are in no phase while they are imported, except for what imports them.
    importing = ("<frozen importlib._bootstrap>", 7, "_call_with_frames_removed")
    imported = (torch + "optim/adam.py", 3, "Adam"), (torch + "optim/adam.py", 1, "<module>"), importing
    imported += (torch + "autograd/__init__.py", 2, "<module>"), importing
    assert look(stack(*imported, main)) == ("", 9, "/home/me/train.py", "main")
    assert look(stack(*imported, (torch + "nn/modules/module.py", 1, "call"), main))[0] == "forward"
    # Within a loader, a package's line is better than that of the loop.
    assert look(stack((pil, 7, "load"), loader, main)) == ("data", 7, pil, "load")
    assert look(stack(loader, main)) == ("data", 9, "/home/me/train.py", "main")
    # A worker's stack continues with that of the process that forked it.
    assert look(stack((pil, 7, "load"), ("/home/me/data.py", 3, "item"), worker, loader, main)) == ("data", 3, "/home/me/data.py", "item")
    assert look(stack((pil, 7, "load"), worker, loader, main)) == ("data", 7, pil, "load")
    assert look(stack((os.path.dirname(os.__file__) + "/queue.py", 7, "get"), worker, loader, main)) is None
    # What torch.compile has written is not the user's.
    written = ("/tmp/torchinductor_me/6l/c6l5j7.py", 303, "call")
    assert look(stack(written, engine, main)) == ("backward", 9, "/home/me/train.py", "main")
    # A program that is an installed package itself.
    tool = "/usr/lib/python3/dist-packages/tool/train.py"
    assert look(stack((torch + "functional.py", 1, "sort"), (tool, 4, "fit"))) == ("", 4, tool, "fit")


def test_a_lambda_is_its_callers_where_that_defines_it():
    if sys.version_info < (3, 11):
        return
    found = []

    def look():
        return Places().classify(stack_of(sys._getframe(1), 200))[3]

    def merge():
        return min([0], key=lambda _: found.append(look()) or 0)

    def given(function):
        return function()

    merge()
    assert found == ["merge"] and given(lambda: look()) == "<lambda>"  # pylint: disable=unnecessary-lambda


def test_a_closure_is_not_the_optimizers():

    def look(*frames):
        return Places().classify(stack_of(stack(*frames), 200))

    packages = "/usr/lib/python3/dist-packages/"
    torch, precision = packages + "torch/", packages + "lightning/pytorch/plugins/precision/precision.py"
    main, closure = ("/home/me/train.py", 9, "main"), ("/home/me/train.py", 8, "closure")
    metric, model = ("/home/me/train.py", 4, "auroc"), ("/home/me/model.py", 5, "forward")
    module, engine = (torch + "nn/modules/module.py", 1, "call"), (torch + "autograd/__init__.py", 1, "backward")
    wrapper, context = (torch + "optim/optimizer.py", 1, "wrapper"), (torch + "utils/_contextlib.py", 1, "decorate_context")
    adam = ((torch + "optim/adam.py", 1, "step"), (torch + "optim/optimizer.py", 1, "_use_grad"), wrapper, main)
    search = ((torch + "optim/lbfgs.py", 1, "_directional_evaluate"), (torch + "optim/lbfgs.py", 1, "step"), context, wrapper, main)
    watched = (sys.argv[1] + "/strain_torch.py", 1, "_in_closure")
    own = (("/home/me/own.py", 7, "step"), context, wrapper, main)
    for calls in adam, search, (context,) + adam, (watched,) + adam, (watched, context) + search, (watched,) + own:
        assert look(metric, closure, *calls) == ("forward", 4, "/home/me/train.py", "auroc"), calls
        assert look(model, module, closure, *calls)[0] == "forward"
        assert look(engine, closure, *calls)[:2] == ("backward", 8)
        assert look(metric, engine, closure, *calls)[0] == "own backward"
    # The optimizer's own work, between calls of its closure.
    assert look(*adam) == ("optimizer", 9, "/home/me/train.py", "main")
    assert look(*own) == ("own optimizer", 7, "/home/me/own.py", "step")
    # Lightning calls its training step, and what follows the backward pass, in such a closure.
    training_step = ("/home/me/train.py", 5, "training_step")
    strategy, wrap = (packages + "lightning/pytorch/strategies/strategy.py", 1, "training_step"), (precision, 1, "_wrap_closure")
    for calls in adam, (watched,) + adam:
        assert look(metric, training_step, strategy, wrap, *calls)[0] == "forward"
        assert look(engine, strategy, wrap, *calls)[:2] == ("backward", 9)
        assert look(metric, (precision, 1, "_after_closure"), wrap, *calls)[0] == ""
        assert look(metric, (precision, 1, "post_backward"), strategy, wrap, *calls)[0] == ""


def test_a_few_looks():
    lines = Lines(FOLDER, strain_lines.FEW, _thread.get_ident())
    intervals = list(lines._intervals())
    assert len(intervals) == 600 and sum(intervals[:100]) < 11 and intervals[-1] == 1


def test_the_switch_interval_is_what_it_was():
    sys.setswitchinterval(0.005)
    assert Fine.begin() and sys.getswitchinterval() == FINE_S
    assert not Fine.begin()  # another thread
    Fine.end()
    assert sys.getswitchinterval() == 0.005
    sys.setswitchinterval(0.0001)  # the job's own, which is shorter
    short = sys.getswitchinterval()
    assert not Fine.begin()
    assert sys.getswitchinterval() == short
    for own in 0.0007, 0.0123:
        sys.setswitchinterval(own)
        before = sys.getswitchinterval()
        assert Fine.begin()
        Fine.end()
        assert sys.getswitchinterval() == before
    assert Fine.begin()
    sys.setswitchinterval(0.002)  # by the job, meanwhile
    Fine.end()
    assert abs(sys.getswitchinterval() - 0.002) < 1e-9
    sys.setswitchinterval(0.005)
    os.register_at_fork(after_in_child=Fine.end)
    assert Fine.begin()
    child = os.fork()
    if child == 0:
        os._exit(0 if sys.getswitchinterval() == 0.005 and Fine.usual_s is None else 1)
    Fine.end()
    assert os.waitpid(child, 0)[1] == 0


def test_the_collector_is_as_it_was():
    lines = Lines(FOLDER, strain_lines.FEW, _thread.get_ident())
    threshold = gc.get_threshold()
    for enabled in True, False:
        for first in 0, 1, 700, 1 << 20:
            gc.set_threshold(first)
            (gc.enable if enabled else gc.disable)()
            assert lines._look(False)[0][3] == "test_the_collector_is_as_it_was"
            assert gc.isenabled() == enabled
    gc.enable()
    gc.set_threshold(*threshold)


def spin(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def test_where_time_goes_and_that_it_ends():
    lines = Lines(FOLDER, ((0.01, 1000),), _thread.get_ident())
    _thread.start_new_thread(lines.run, ())
    assert threading.active_count() == 1
    began = time.monotonic()
    while time.monotonic() < began + 3:
        spin(0.002)
        time.sleep(0.003)
    assert lines.end()
    name = FOLDER + "/lines-%d" % os.getpid()
    rows = [row.split("\t") for row in open(name) if "\t" in row]
    found = {}
    for row in rows:
        found[row[4]] = found.get(row[4], 0) + int(row[0])
    ran = found.get("spin\n", 0) / sum(found.values())
    print("looks: %s" % found, "of 40 % running and 60 % asleep:", "%.0f %%" % (100 * ran))
    assert 0.05 < ran < 0.9, found
    os.unlink(name)


class Panel:
    """Another thread of the script."""

    def render(self, until):
        total = 0
        while time.monotonic() < until:
            total += 1

    def beat(self, until):
        while time.monotonic() < until:
            time.sleep(0.05)


def test_where_other_threads_are():
    until = time.monotonic() + 2
    others = [threading.Thread(target=function, args=(until,)) for function in (Panel().render, Panel().beat)]
    for other in others:
        other.start()
    lines = Lines(FOLDER, ((0.01, 50),), _thread.get_ident())
    looks = 0
    while time.monotonic() < until:
        lines.count(0)
        looks += 1
        time.sleep(0.02)
    for other in others:
        other.join()
    names = {place[3] for place in lines._counts if place[0] == "thread"}
    assert names == {"Panel.render" if sys.version_info >= (3, 11) else "render"}, names  # what sleeps is not counted
    assert sum(n for place, n in lines._counts.items() if place[0] == "") == looks


def test_a_stop_in_the_middle_of_a_look():
    lines = Lines(FOLDER, NEVER, _thread.get_ident())
    lines._stop.release()
    lines.count(0.001)  # looks again with a short switch interval, and is told to end there
    assert lines._over and sys.getswitchinterval() == 0.005
    lines = Lines(FOLDER, ((0.001, 1),) + NEVER, _thread.get_ident())
    lines.count = lambda waited_s: setattr(lines, "_over", True)
    _thread.start_new_thread(lines.run, ())
    assert lines._stopped.acquire(True, strain_lines.ENDS_S)  # and does not sleep any more
    lines = Lines(FOLDER, NEVER, _thread.get_ident())
    _thread.start_new_thread(lines.run, ())
    assert lines.end()


def test_signals_go_to_the_job():
    got = []
    signal.signal(signal.SIGUSR1, lambda *_: got.append(1))
    lines = Lines(FOLDER, NEVER, _thread.get_ident())
    _thread.start_new_thread(lines.run, ())
    time.sleep(0.05)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    os.kill(os.getpid(), signal.SIGUSR1)
    assert signal.SIGUSR1 in signal.sigpending()  # no other thread has taken it
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
    assert lines.end()
    assert got == [1]


def test_the_thread_that_steps_is_looked_at():
    strain_lines._installed = lines = Lines(FOLDER, ((10, 1000),), 0)
    thread = threading.Thread(target=strain_lines.install, args=(FOLDER, strain_lines.FEW))
    thread.start()
    thread.join()
    assert lines._thread == thread.ident
    strain_lines._installed = None


def test_one_thread_for_each_process_and_a_few_workers():
    strain_lines._looking = os.getpid()
    assert strain_lines._start(FOLDER, strain_lines.FEW) is None
    for _ in range(20):
        strain_lines.look_at_worker(FOLDER)
    assert sum(name.startswith("looking-") for name in os.listdir(FOLDER)) == strain_lines.WORKERS_MAX


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print("passed", name)
