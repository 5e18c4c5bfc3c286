# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""Loops of any kind are marked alike, however brief their iterations are: calls in random order, once
with all iterations brief and once with none. loop.py FOLDER [FOLDER]: of the hooks; of those to compare
with."""

import importlib
import random
import sys

sys.dont_write_bytecode = True
ROUNDS = 400
EPOCHS = 6
ENDLESS = 12  # batches of a loader without a length


class Marks:
    """In place of a ring: what is marked, mark by mark."""

    def __init__(self, ring):
        self.marks = []
        self.ring = ring
        self.last_ns = 0
        for name in ("point", "epoch", "epoch_end", "iteration", "iteration_end", "iteration_cancel",
                     "hold", "note", "take_held", "write"):  # fmt: skip
            setattr(self, name, getattr(ring.Ring, name).__get__(self))
        for name in vars(ring.Ring):
            if name.startswith("_hold") or name == "_write_by":
                setattr(self, name, getattr(ring.Ring, name).__get__(self))
        self._own_epochs = self._own_iterations = False
        self._writer = {name: getattr(self, "own_" + name) for name in
                        ("put", "begin", "end", "end_now", "turn", "step")}  # fmt: skip
        self.__dict__.update(self._writer)

    def keep(self, time_ns, *mark):
        """Times never go back."""
        self.last_ns = max(self.last_ns, time_ns or self.ring.monotonic_ns())
        self.marks.append((self.last_ns, *mark))
        return self.last_ns

    def own_put(self, kind, name, number, extra, time_ns):
        """As the ring's."""
        return self.keep(time_ns, kind, name, number, extra)

    def own_begin(self, name, time_ns=0, samples=0):
        """As the ring's."""
        return self.keep(time_ns, "begin", name, samples)

    def own_end(self, time_ns=0):
        """As the ring's."""
        return self.keep(time_ns, "end")

    def own_end_now(self):
        """As the ring's."""
        return self.end()

    def own_turn(self, number, began_ns, time_ns):
        """As the ring's."""
        self.iteration(number, began_ns)
        self.begin(self.ring.DATA, time_ns)

    def own_step(self, forward_ns, backward_ns, between_ns, optimizer_ns, samples, time_ns):
        """As the ring's, which writes whole spans of the three phases."""
        for name, began_ns, ended_ns in ((self.ring.FORWARD, forward_ns, backward_ns),
                                         (self.ring.BACKWARD, backward_ns, between_ns),
                                         (self.ring.OPTIMIZER, optimizer_ns, time_ns)):  # fmt: skip
            self.begin(name, began_ns)
            self.end(ended_ns)
        self.iteration_end(samples, time_ns)


class Clock:
    """Goes on with each call of the loop's functions, not with each look at it."""

    def __init__(self):
        self.now_ns = 10**9

    def __call__(self):
        return self.now_ns


class Job:
    """Calls the functions of a loop as a job would that does anything in any order."""

    def __init__(self, modules, brief_ns):
        self.module, ring, pass_module, _ = modules
        self.clock = Clock()
        for module in modules:
            module.monotonic_ns = self.clock
        self.module.BRIEF_NS = brief_ns
        self.ring = Marks(ring)
        self.loop = self.module.Loop(self.ring, True)
        self.loaders = [pass_module.Loader() for _ in range(3)]
        self.runs = []
        self.closures = []
        self.model = type("Model", (), {"training": False})

    def iterate(self, which, gradients, length):
        """A loader is iterated over."""
        began_ns = self.clock.now_ns
        self.clock.now_ns += 5
        loader = self.loaders[which % 3]
        self.runs.append(self.loop.iterate(loader, gradients, began_ns, length))

    def fetch(self, which, samples):
        """A batch, or the end."""
        run = self.runs[-1 - which % min(len(self.runs), 2)]
        self.loop.next_begins(run)
        self.clock.now_ns += 7
        over = run.batches >= (run.length or ENDLESS)
        self.loop.next_ends(run, None if over else samples)
        if over:
            self.loop.exhausted(run)

    def backward(self, inside):
        """With something inside it, at times."""
        if self.loop.backward_begins():
            self.clock.now_ns += 3
            if inside == 1:
                assert not self.loop.backward_begins()
            elif inside == 2:
                self.phase(6)
            self.loop.backward_ends()

    def step(self, optimizer, inside):
        """With a closure, a fetch, or another step inside it, at times."""
        self.loop.step_begins(optimizer, inside == 1)
        self.clock.now_ns += 4
        if inside == 1:
            self.backward(0)
        elif inside == 2:
            self.loop.step_begins(optimizer + 1, False)
            self.loop.step_ends(optimizer + 1)
        elif inside == 3:
            self.fetch(0, 8)
        elif inside == 4:
            self.runs[-1].left()
        self.loop.step_ends(optimizer)

    def evaluate(self, times, inside):
        """A model in evaluation mode, without gradients."""
        calls = self.loop.calls
        for _ in range(times):
            self.clock.now_ns += 6
            seen = not self.loop.stage  # as in the patch of modules
            if seen:
                calls.begins(self.model, False)
            self.clock.now_ns += 6
            if inside:
                self.phase(6)
            if seen:
                calls.ends()

    def phase(self, name):
        """A checkpoint, or a collective."""
        self.loop.phase_begins(name)
        self.clock.now_ns += 2
        self.loop.phase_ends()

    def transfer(self, ago):
        """A tensor to the device."""
        self.loop.transferred(self.clock.now_ns - ago)

    def do(self, calls):
        """All of them. Returns the marks."""
        for name, *arguments in calls:
            self.clock.now_ns += 11
            getattr(self, name)(*arguments)
        self.loop.finish()
        return self.ring.marks


def calls(chaos):
    """Mostly an ordinary loop, with something else now and then."""
    for epoch in range(EPOCHS):
        length = random.choice((0, 3, 20))
        yield "iterate", int(random.random() < chaos), random.random() > chaos / 2, length
        for _ in range((length or ENDLESS) + 1):
            yield from batch(chaos)
        if epoch % 3 == 2:
            yield "iterate", 2, False, 2  # a validation
            for _ in range(3):
                yield "fetch", 0, 8


def batch(chaos):
    """What a loop does of one."""
    if random.random() < chaos / 10:
        yield "iterate", random.randrange(3), random.random() < 0.7, random.choice((0, 2, 30))
    if random.random() < 1 - chaos / 3:
        yield "fetch", int(random.random() < chaos / 3), random.choice((-1, 8, 8, 8, 0))
    if random.random() < chaos:
        yield random.choice((("phase", 6), ("phase", 8), ("transfer", 5), ("transfer", 10**7)))
    if random.random() < 1 - chaos / 3:
        yield "backward", random.randrange(3) if random.random() < chaos else 0
    if random.random() < chaos / 3:
        yield random.choice((("phase", 6), ("phase", 8), ("transfer", 1)))
    if random.random() < 1 - chaos / 3:
        odd = random.random() < chaos
        yield "step", random.choice((1, 5)) if odd else 1, random.randrange(5) if odd else 0
    if random.random() < chaos:
        yield "evaluate", random.randrange(1, 6), random.random() < chaos


def load(folder):
    """The modules of the hooks that are looked at."""
    sys.path.insert(0, folder)
    names = ("strain_loop", "strain_ring", "strain_pass", "strain_calls")
    for name in names:
        sys.modules.pop(name, None)
    try:
        loop, ring = (importlib.import_module(name) for name in names[:2])
        return loop, ring, sys.modules.get("strain_pass", loop), sys.modules["strain_calls"]
    finally:
        sys.path.remove(folder)


brief = load(sys.argv[1])
other = load(sys.argv[2] if len(sys.argv) > 2 else sys.argv[1])
stages = 0
for seed in range(ROUNDS):
    random.seed(seed)
    job = list(calls((seed % 8) / 20))
    ours = Job(brief, 10**9)
    together = ours.ring.own_step

    def counted(*times, together=together):
        global stages
        stages += 1
        together(*times)

    ours.ring._writer["step"] = ours.ring.step = counted
    marks, theirs = ours.do(job), Job(other, 0).do(job)
    differ = [pair for pair in zip(marks, theirs) if pair[0] != pair[1]]
    assert marks == theirs, (seed, len(marks), len(theirs), differ[:1])
assert stages > 10 * ROUNDS, stages
