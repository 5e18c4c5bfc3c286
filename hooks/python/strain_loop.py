# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""Reconstructs a training loop from the calls of one thread.

The only known events are iterators over loaders, waits for batches, backwards and optimizer steps.
They give epochs, iterations with their samples, and phases:

- An iteration ends with the optimizer's step, and the next one begins there. With several optimizers,
  an iteration has one batch of the loader; without a loader, it ends with the step of the optimizer
  that steps last before all of them step again. Without any optimizer (p -= rate * p.grad) it has one
  backward.
- A pass over a loader that leads to a backward is an epoch of training; one without gradients, or
  that leads to no backward, is a validation. Until that is known, marks wait (Ring.hold): for three
  batches at most.
- Forward is the time from the end of the data, or of its transfer, to the start of backward. If no
  loader shows when the data has arrived, calls of models do (strain_calls.py).

A step calls six of these functions, each of which finds the caches filled by the step's own data, so
they must do little. When iterations are brief, an ordinary one goes through stages: its times after
the end of its data are only stored, and marked when it ends. If anything else happens in it, the
stored times are marked first, and the rest as it comes. For the rest of the loop, an iteration that
goes through stages has not begun.
"""

from time import monotonic_ns

import strain_collect
from strain_calls import Calls
from strain_pass import BESIDE, EVALUATION, TRAINING, UNKNOWN, Pass
from strain_ring import BACKWARD, CHECKPOINT, DATA, FORWARD, OPTIMIZER, STEP, TRANSFER, VALIDATION

ENVIRONMENT = "environment"
# Number of batches requested ahead of their backward (prefetching wrappers take one or two).
AHEAD = 2
FEEDING = 7  # upper bound of other loaders remembered
# An iteration after one as short as this is expected to be brief, too.
BRIEF_NS = 20000000
# Stages of a brief iteration.
NONE = 0  # not brief: marks are written immediately
WAITING = 1  # for its batch
READY = 2  # the batch is there
IN_BACKWARD = 3
BETWEEN = 4
IN_STEP = 5

# A transfer this long after the previous one belongs to the forward.
TRANSFER_GAP_NS = 1000000


class Loop:
    """One thread's loop, which marks into its ring. All times are from monotonic_ns."""

    # A dict of so many entries is in no cache: a step would cost twice as much.
    __slots__ = ("ring", "main", "device", "epoch", "in_epoch", "iteration", "in_iteration", "idle",
                 "samples", "last_ns", "step_ns", "anchor_ns", "weak", "in_forward", "stepping",
                 "closure_ns", "in_backward", "backwards", "stepped", "closer", "training", "current",
                 "feeding", "turning", "ordinary", "stage", "began_ns", "batch", "backward_ns",
                 "between_ns", "optimizer_ns", "made", "calls", "fetching", "cycle", "before",
                 "pending_ns", "pending", "computing", "in_environment")  # fmt: skip

    def __init__(self, ring, main=True, made=None):
        strain_collect.follow()
        self.ring = ring
        self.made = made  # optimizers that exist, in any thread; None: unknown
        self.main = main  # False: another thread; one that never trains only fetches for one that does
        self.device = None  # a DeviceClock
        self.epoch = 0  # number of the last epoch
        self.in_epoch = False
        self.iteration = 0  # number of the next iteration
        self.in_iteration = False
        self.idle = False  # the iteration has only waited so far
        self.samples = -1  # of the iteration; -1: no batch seen
        self.last_ns = 0  # of the last mark
        self.step_ns = 0  # end of the last iteration; 0: something else followed it
        self.anchor_ns = 0  # time from which it may be forward; 0: it is not
        self.weak = False  # anchor_ns is the end of a backward or a step
        self.in_forward = False
        self.stepping = None  # the id of the optimizer that is stepping
        self.closure_ns = 0  # start of its closure, or end of the last backward in it; 0: no closure
        self.computing = False  # the optimizer itself computes, between calls of its closure
        self.in_backward = False
        self.in_environment = False
        self.backwards = 0  # number of backwards begun
        self.stepped = None  # the optimizer that stepped last in this iteration
        self.closer = None  # the optimizer whose step ends an iteration
        self.training = None  # the training pass
        self.current = None  # the pass whose batches are being taken
        self.feeding = []  # loaders whose batches are used for training
        # For consecutive iterations:
        self.calls = Calls(self)
        self.fetching = False  # waiting for a batch
        # For several optimizers without a loader:
        self.cycle = []  # those that have stepped in this iteration
        self.before = ()  # those of the iteration before
        self.pending_ns = 0  # possible end of the iteration; marks wait until it is known
        self.pending = ()  # the state then: its samples, number of backwards
        self.turning = None  # the pass whose step has just ended an iteration; nothing followed yet
        self.ordinary = False  # it took the last batch of its only loader
        self.stage = NONE
        # Times kept from their stages on.
        self.began_ns = 0  # of the iteration
        self.batch = -1  # samples in its batch
        self.backward_ns = 0
        self.between_ns = 0
        self.optimizer_ns = 0

    # Passes ------------------------------------------------------------------------------------

    def iterate(self, loader, gradients, began_ns, length=0):
        """Handles an iterator over the loader, created between began_ns and now. Returns its pass."""
        new = Pass(loader, began_ns, length)
        new.ready_ns = monotonic_ns()
        self._not_brief()
        self.calls.settle()
        self._settle(True)
        loader.ahead.clear()
        self._leave_current(new)
        if new.role != BESIDE:
            self._enter(new, gradients)
        return new

    def _leave_current(self, new):
        """Ends the previous pass because another begins, or lets the new one run beside it."""
        old = self.current
        if old is None or old.over:
            if old is not None and old.role == UNKNOWN:
                self._decide(old, EVALUATION if old.batches > 0 else BESIDE)
            return
        if old.batches == 0 and old.loader is not new.loader:
            new.role = BESIDE  # zip(one, other)
        elif old.role == UNKNOWN:
            # After next(iter(loader)), only the wait is known.
            self._decide(old, EVALUATION if old.batches > 1 else BESIDE)
            self._end_validation(old)
        elif old.role == EVALUATION:
            self._end_validation(old)

    def _enter(self, new, gradients):
        training = self.training
        within = training is not None and not training.over and training.loader is not new.loader
        if not gradients or (new.loader.evaluates and not new.loader.trains):
            self.current = new
            self._become(new, EVALUATION)
        elif within and new.loader.trains:
            new.role = BESIDE  # a second loader that restarts while the first continues
        elif new.loader.trains:
            self.current = new
            self._become(new, TRAINING)
        else:
            self.current = new
            self.ring.hold()
            self._wait_for_workers(new)

    def _wait_for_workers(self, new):
        self.ring.begin(DATA, new.began_ns)
        self.last_ns = self.ring.end(new.ready_ns)

    def _become(self, new, role):
        """Begins the pass with its role, if that is known at the start."""
        new.role = role
        if role == TRAINING:
            self._begin_epoch(new)
        else:
            self._pause_iteration()
            self.ring.begin(VALIDATION, new.began_ns)
        self._wait_for_workers(new)

    def _decide(self, old, role):
        """The role of the pass whose marks were held is known now."""
        if role == EVALUATION and not self.main and self.backwards == 0:
            role = BESIDE
        old.role = role
        held = self.ring.take_held()
        forward = self.in_forward, self.anchor_ns, self.weak  # of the held marks, or after them
        self.in_forward = False
        if role == TRAINING:
            self._begin_epoch(old)
        elif role == EVALUATION:
            old.loader.evaluates = True
            old.loader.ahead.clear()
            self._pause_iteration()
            self.ring.begin(VALIDATION, old.began_ns)
        self.ring.write(held, FORWARD if role == EVALUATION else 0)
        self.in_forward, self.anchor_ns, self.weak = forward

    def _begin_epoch(self, new):
        self._end_epoch(new.began_ns)
        if self.in_iteration and self.idle:
            self._finish_iteration()  # what came before it, such as an environment, is none
        self.training = new
        self.epoch += 1
        self.in_epoch = True
        self.iteration = 0
        self.ring.epoch(self.epoch, new.began_ns)
        self._begin_iteration(new.began_ns)

    def is_free(self):
        """Whether neither a loader nor an open call shows the loop's progress."""
        if self.stage != NONE or self.in_backward or self.stepping is not None or self.fetching:
            return False
        run = self.current
        if run is not None and not run.over and run.role != BESIDE:
            return False
        run = self.training
        return run is None or (run.over and (run.left_ns > 0 or not run.loader.ahead))

    def _end_epoch(self, time_ns):
        if self.in_epoch:
            self._finish_iteration()
            self.ring.epoch_end(time_ns)
            self.in_epoch = False
            self.step_ns = 0

    def _end_endless(self, run):
        """An iterator that never ends does not tell that a pass of it has: all of its batches were used."""
        if run is not None and run.endless and run.complete() and not run.over and not run.loader.ahead:
            self.exhausted(run)

    def _end_validation(self, old, time_ns=0):
        if old.role == EVALUATION and not old.over:
            end_ns = time_ns or max(old.left_ns, self.last_ns)
            if old.batches > 0:
                self._forward_until(end_ns)
            self.last_ns = self.ring.end(end_ns)
            self.anchor_ns = 0
        old.over = True

    # Iterations --------------------------------------------------------------------------------

    def _begin_iteration(self, time_ns):
        self.in_iteration = self.idle = True
        self.samples = -1
        self.stepped = None
        self.ring.iteration(self.iteration, time_ns)
        self.iteration += 1

    def _need_iteration(self, now_ns):
        """Begins an iteration at the end of the last one, unless something else came in between."""
        if not self.in_iteration:
            self._begin_iteration(self.step_ns or now_ns)
            self.step_ns = 0

    def _end_iteration(self, time_ns):
        self.ring.iteration_end(self.samples, time_ns)
        if self.device:
            self.device.end()
            if self.training is None or self.training.over:  # no loader's batch comes next
                self.device.collect()
                self.device.begin(self.iteration)
        self.in_iteration = False
        self.before = tuple(self.cycle)
        self.cycle.clear()
        self.step_ns = time_ns
        self.last_ns = time_ns

    def _pause_iteration(self):
        """What follows belongs to no iteration, and to no epoch whose batches are used up."""
        run = self.training
        self._settle(True)
        self._end_endless(run)
        if run is not None and run.over:
            if run.left_ns and self.idle:  # a loop that was left after its last batch
                run.loader.ahead.clear()
            if not run.loader.ahead:
                self._end_epoch(self.last_ns)
        if self.stepped is not None or self._is_cycle_over():
            self._finish_iteration()
        self._end_forward(self.last_ns)
        self.step_ns = 0

    def _finish_iteration(self):
        """Ends the iteration at the last mark; one that only waited is withdrawn."""
        self._end_forward(self.last_ns)
        if self.in_iteration and self.idle:
            self.ring.iteration_cancel(self.last_ns)
            self.in_iteration = False
        elif self.in_iteration:
            self._end_iteration(self.last_ns)

    # Batches -----------------------------------------------------------------------------------

    def next_begins(self, run):
        """The thread begins to wait for a batch of the pass."""
        now_ns = monotonic_ns()
        if self.turning is not run:
            self._next_begins_elsewhere(run, now_ns)
            return
        # The ordinary case: the iteration ended, and the next one begins.
        began_ns = self.began_ns
        self.began_ns = step_ns = self.step_ns
        number = self.iteration
        self.ring.turn(number, step_ns, now_ns)
        self.iteration = number + 1
        self.turning = None
        self.stage = WAITING
        if now_ns - began_ns > BRIEF_NS or not self.ordinary:
            self._not_brief()
        if self.device:
            self.device.collect()

    def _next_begins_elsewhere(self, run, now_ns):
        self._not_brief()
        self._abandon_step()
        self.calls.settle()
        self.fetching = True
        if self.device:
            self.device.collect()
        if run is not self.current and run.role != BESIDE:
            self._resume(run)
        if run.role == UNKNOWN and run.batches > AHEAD:
            self._decide(run, EVALUATION)
        if run.role == EVALUATION and not run.over:
            self._forward_until(now_ns)
        else:
            self._end_forward(now_ns)
            if run.role == TRAINING:
                self._close_steps(now_ns)
                if not run.complete():
                    self._need_iteration(now_ns)
        self.ring.begin(DATA, now_ns)

    def next_ends(self, run, samples):
        """The batch has arrived, or the wait failed (samples None)."""
        self.anchor_ns = self.last_ns = self.ring.end_now()
        self.weak = self.fetching = False
        if samples is None:
            self._not_brief(self.last_ns)
            return
        run.batches += 1
        if self.device and run.role == TRAINING:
            self.device.begin(self.iteration - 1)
            if self.device.timing:
                self._not_brief(self.last_ns)
        if self.stage == WAITING:
            self.batch = samples
            self.stage = READY
        elif run.role != EVALUATION:
            self._feed(run, samples)

    def _feed(self, run, samples):
        loader = run.loader
        if loader not in self.feeding:
            self.feeding = self.feeding[-FEEDING:] + [loader]
        loader.ahead.append(samples)
        while len(loader.ahead) > AHEAD and run.role != UNKNOWN:
            self._add_samples(loader.ahead.popleft())

    def _take_samples(self):
        """A backward consumes a batch of each loader."""
        for loader in self.feeding:
            if loader.ahead:
                self._add_samples(loader.ahead.popleft())

    def _add_samples(self, samples):
        if samples >= 0:
            self.samples = max(self.samples, 0) + samples

    def exhausted(self, run):
        """There are no more batches."""
        self.anchor_ns = 0
        if run.role == EVALUATION:
            self._end_validation(run)
        elif run.role == UNKNOWN:
            self.ring.note(self.last_ns)
            if run.batches > AHEAD:
                self._decide(run, EVALUATION)
        elif run.role == TRAINING and not run.loader.ahead:
            if self.idle or not self.in_iteration:
                self._end_epoch(self.last_ns)
        run.over = True

    def _resume(self, run):
        """Batches of an earlier pass come again: the validation in between is over."""
        old = self.current
        if old is not None and old.role == UNKNOWN:
            self._decide(old, EVALUATION if old.batches > 1 else BESIDE)
        if old is not None:
            self._end_validation(old)
        self.current = run

    def _close_steps(self, now_ns):
        """The next batch is requested: the optimizer that stepped last ends iterations from now on."""
        if self.stepped is not None:
            self.closer = self.stepped
            if self.in_iteration:
                self._end_iteration(self.last_ns)
            self.stepped = None
        elif self._is_cycle_over():
            self._end_iteration(now_ns)  # the script updated its parameters itself

    def _is_cycle_over(self):
        """Whether the iteration has had its backward, if no optimizer will step."""
        return self.in_iteration and not self.idle and self.made is not None and self.made.count == 0

    def has_optimizer(self):
        """Whether any optimizer is known to exist."""
        return self.made is not None and self.made.count > 0

    def between_iterations(self):
        """Whether the iteration, if any, has only begun or is complete."""
        return not self.in_iteration or self.idle or self.pending_ns > 0 or self._is_cycle_over()

    def _settle(self, over):
        """Decides whether the pending iteration ended; what follows then belongs to the next one."""
        if not self.pending_ns:
            return
        held = self.ring.take_held()
        ended_ns, self.pending_ns = self.pending_ns, 0
        if over:
            last_ns, step_ns, stepped = self.last_ns, self.step_ns, self.stepped
            samples, (self.samples, backwards) = self.samples, self.pending
            self._end_iteration(ended_ns)
            self.closer = stepped
            if held:
                self._begin_iteration(ended_ns)
                self.samples = samples
                self.idle = backwards == self.backwards
                self.last_ns, self.step_ns = last_ns, 0
        else:
            self._add_samples(self.pending[0])
        self.ring.write(held)

    # Calls of models ---------------------------------------------------------------------------

    def call_begins(self, now_ns, trains):
        """A model is called while no loader shows the loop's progress; trains: with gradients."""
        self._turn_epoch()
        if trains and self._is_cycle_over():
            self._end_iteration(now_ns)
        self._need_iteration(now_ns)

    def _turn_epoch(self):
        run = self.training
        if run is not None and run.over and not run.loader.ahead and not self.in_iteration:
            self._end_epoch(self.last_ns)

    def has_turned(self, validates):
        """Whether an iteration of a pass has just ended, and nothing but evaluations followed."""
        run = self.training
        return self.turning is not None or not self.in_iteration and (
            validates or run is not None and run is self.current and not run.over and run.complete())

    def validation_begins(self):
        """A model is evaluated while no loader shows the loop's progress, or between two iterations."""
        self.turning = None
        self._pause_iteration()
        if self.in_iteration and self.idle:
            self._finish_iteration()

    # Steps -------------------------------------------------------------------------------------

    def transferred(self, began_ns):
        """A tensor was moved to the device, from began_ns to now."""
        if began_ns - self.anchor_ns > TRANSFER_GAP_NS and not self.weak:
            self._not_brief()
            self.enter_forward()
        elif self.stage != READY:
            self._not_brief()
            self.calls.settle()
        if self.training is None and self.step_ns:
            self._need_iteration(began_ns)  # without a loader, this shows that the next one has begun
        self.ring.begin(TRANSFER, began_ns)
        self.last_ns = self.anchor_ns = self.ring.end()
        self.weak = False
        if self.device:
            self.device.cut("transfer")

    def enter_forward(self):
        """Forward began at the anchor, where it may have begun."""
        if self.anchor_ns and not self.in_forward:
            self.ring.begin(FORWARD, self.anchor_ns)
            self.in_forward = True

    def is_in_forward(self):
        """Whether a loader's batch is there, and no backward has begun since."""
        return self.stage == READY or (
            self.stage == NONE and not self.in_backward and self.stepping is None
            and (self.in_forward or (self.anchor_ns > 0 and not self.weak))
        )

    def _end_forward(self, now_ns):
        if self.in_forward:
            self.last_ns = self.ring.end(now_ns)
            self.in_forward = False
        self.anchor_ns = 0

    def _forward_until(self, now_ns):
        self.enter_forward()
        self._end_forward(now_ns)

    def backward_begins(self):
        """Returns False for a backward within another, which is not the loop's."""
        if self.stage == READY:
            self.backward_ns = monotonic_ns()
            self.stage = IN_BACKWARD
            return True
        if self.stage == IN_BACKWARD or self.in_backward:
            return False
        self._not_brief()
        self._backward_begins(monotonic_ns())
        return True

    def _backward_begins(self, now_ns):
        run = self.current
        if run is not None and run.role != TRAINING:
            self._learns(now_ns)
        self.backwards += 1
        samples = self.calls.backward_begins(now_ns)
        run = self.training
        if (run is None or run.over) and self._is_cycle_over() and not self.idle:
            self._end_iteration(self.last_ns)
        if not self.in_iteration:
            self._need_iteration(now_ns)
        self.idle = False
        self._take_samples()
        run = self.training
        if run is None or run.over:  # else those of a call before the loop, to look at the model
            self._add_samples(samples)
        self._forward_until(now_ns)
        self.ring.begin(BACKWARD, now_ns)
        self.in_backward = True
        if self.device:
            self.device.cut("forward")

    def backward_ends(self):
        """Ends the backward for which backward_begins returned True."""
        if self.stage == IN_BACKWARD:
            self.between_ns = monotonic_ns()
            self.stage = BETWEEN
        else:
            self._backward_ends(monotonic_ns())

    def _backward_ends(self, now_ns):
        self.in_backward = False
        self.last_ns = self.anchor_ns = self.ring.end(now_ns)
        self.weak = True
        if self.closure_ns:
            self.closure_ns = self.last_ns
        run = self.training
        if (run is None or run.over) and not self.closure_ns:
            self.anchor_ns = 0
        if self.device:
            self.device.cut("backward")

    def _learns(self, now_ns):
        """The model is trained: the current pass is not a validation."""
        run = self.current
        if run is None or run.role in (TRAINING, BESIDE):
            return
        if run.role == UNKNOWN:
            outer = self.training
            beside = outer is not None and not outer.over and outer.loader is not run.loader
            self._decide(run, BESIDE if beside else TRAINING)
            run.loader.trains = True
        elif run.over:
            return
        else:
            self._end_validation(run, now_ns)
            if run.batches > 0 and run.loader.evaluates:
                run.loader.evaluates = False
                run.loader.trains = True
                run.over = False
                run.began_ns = run.ready_ns = now_ns
                run.role = TRAINING
                self._begin_epoch(run)

    def step_begins(self, optimizer, closure):
        """An optimizer's step begins; with a closure, forward and backward are inside it."""
        if self.stage == BETWEEN and optimizer == self.closer and not closure:
            self.optimizer_ns = monotonic_ns()
            self.stage = IN_STEP
        elif self.stepping is None and self.stage != IN_STEP:  # otherwise a step within another
            self._not_brief()
            self._step_begins(optimizer, closure, monotonic_ns())

    def _step_begins(self, optimizer, closure, now_ns, name=OPTIMIZER):
        run = self.current
        if run is not None and run.role != TRAINING:
            self._learns(now_ns)
        self.calls.settle()
        if self.pending_ns:
            self._settle(optimizer in self.cycle)
        elif optimizer in self.cycle and optimizer != self.closer:
            self.closer = optimizer  # the optimizer that ended iterations no longer steps
        if not self.in_iteration:
            self._need_iteration(now_ns)
        self.idle = False
        self.stepping = optimizer
        if closure:
            self.closure_ns = now_ns
            return
        self.closure_ns = 0
        if self.in_forward:
            self._end_forward(now_ns)
        self.anchor_ns = 0
        self.ring.begin(name, now_ns)

    def whole_begins(self, step, began_ns):
        """A compiled call that contains a whole step began at that time."""
        if self.stepping is None and self.stage != IN_STEP:
            self._not_brief()
            run = self.current
            if run is not None and run.role != TRAINING:
                self._learns(began_ns)
            self.backwards += 1
            if not self.in_iteration:
                self._need_iteration(began_ns)
            self._take_samples()
            self._end_forward(began_ns)
            self._step_begins(step, False, began_ns, STEP)

    def whole_ends(self, step):
        """Ends the step begun last and, whatever the number of optimizers, its iteration."""
        if self.stepping == step:
            made, self.made = self.made, None
            self.step_ends(step)
            self.made = made

    def closure_begins(self):
        """The optimizer calls its closure, for the loss and the gradients."""
        if self.closure_ns and not self.in_backward:
            self._not_brief()
            now_ns = monotonic_ns()
            if self.computing:
                self.computing = False
                self.last_ns = self.ring.end(now_ns)
                self.weak = True
            if self.weak or not self.anchor_ns:
                self.anchor_ns = now_ns
            self.weak = False

    def closure_ends(self):
        """The closure has returned; the optimizer itself continues."""
        if self.closure_ns and not self.in_backward and not self.computing:
            now_ns = monotonic_ns()
            if self.weak:
                self.anchor_ns = 0
            self._forward_until(now_ns)
            self.ring.begin(OPTIMIZER, now_ns)
            self.computing = True

    def step_ends(self, optimizer):
        """The step has ended, and often the iteration, too."""
        now_ns = monotonic_ns()
        run = self.training
        if self.stage != IN_STEP or optimizer != self.closer or run.over:
            self._step_ends(optimizer, run, now_ns)
            return
        self.ring.step(self.anchor_ns, self.backward_ns, self.between_ns, self.optimizer_ns,
                       self.batch, now_ns)  # fmt: skip
        self.stage = NONE
        self.weak = True
        self.anchor_ns = self.step_ns = self.last_ns = now_ns
        if run.batches != run.length:
            self.turning = run
        else:
            self._end_epoch(now_ns)

    def _not_brief(self, anchor_ns=0):
        """Writes the kept times: something other than an ordinary iteration's next part follows."""
        self.turning = None
        stage, self.stage = self.stage, NONE
        if stage == NONE:
            return
        self.in_iteration = self.idle = True
        self.samples = -1
        self.step_ns = 0
        self.closer = self.stepped
        self.stepped = None
        if stage == WAITING:
            self.anchor_ns = anchor_ns
        else:
            self.training.loader.ahead.append(self.batch)
        if stage >= IN_BACKWARD:
            self._backward_begins(self.backward_ns)
        if stage >= BETWEEN:
            self._backward_ends(self.between_ns)
        if stage == IN_STEP:
            self._step_begins(self.closer, False, self.optimizer_ns)

    def _step_ends(self, optimizer, run, now_ns):
        if optimizer != (self.closer if self.stage == IN_STEP else self.stepping):
            return  # a step within another
        self._not_brief()
        self.stepping = None
        self.stepped = optimizer
        if self.closure_ns:
            self._end_forward(now_ns)
            if not self.computing:
                self.ring.begin(OPTIMIZER, self.closure_ns)
            self.closure_ns = 0
            self.computing = False
        self.last_ns = self.ring.end(now_ns)
        if self.device:
            self.device.cut("optimizer")
        # In a loop over a loader another forward may follow; elsewhere nothing is known.
        goes_on = run is not None and not run.over
        self.anchor_ns = self.last_ns if goes_on else 0
        self.weak = True
        if run is not None:
            self._tell_training(run.loader)
        if self._is_last_step(optimizer, goes_on):
            self._end_iteration(self.last_ns)
        if run is not None and not self.in_iteration:
            complete = run.complete()
            if not run.loader.ahead and (run.over or complete):
                self._end_epoch(now_ns)
            elif run is self.current and goes_on and not complete:
                self.turning = run
                alone = self.feeding == [run.loader] and not run.loader.ahead
                self.ordinary = alone and self.backwards > 0 and self.closer == optimizer

    def _is_last_step(self, optimizer, goes_on):
        """Whether the iteration ends with this step; if that is unknown, marks wait."""
        if self.made is None or self.made.count < 2:
            return not goes_on or self.closer in (None, optimizer)
        if goes_on:
            self.closer = None  # it ends with the loader's next batch
            return False
        if optimizer not in self.cycle:
            self.cycle.append(optimizer)
        if optimizer == self.closer:
            return True
        if optimizer not in self.before:
            self.pending_ns = self.last_ns
            self.pending = self.samples, self.backwards
            self.samples = -1
            self.ring.hold()
        return False

    def _tell_training(self, loader):
        loader.trains = True
        if loader.told:
            told, loader.told = loader.told, None
            told()

    def _abandon_step(self):
        """A step that raised an exception has not ended."""
        if self.stepping is not None and (self.computing or not self.closure_ns):
            self.stepping = None
            self.computing = False
            self.closure_ns = 0
            self.last_ns = self.ring.end()

    # Other phases ------------------------------------------------------------------------------

    def phase_begins(self, name):
        """Begins a phase that can occur anywhere: a collective, a checkpoint."""
        self._not_brief()
        self.calls.settle()
        if name == CHECKPOINT:
            self._end_complete()
            self._pause_iteration()
        elif not self.weak:
            self.enter_forward()
        self.last_ns = self.ring.begin(name)

    def phase_ends(self):
        """Ends the phase begun last."""
        self._not_brief()
        self.last_ns = self.ring.end()
        if self.weak and self.anchor_ns:
            self.anchor_ns = self.last_ns

    def environment_begins(self):
        """An environment of reinforcement learning runs: calls of models without gradients act in it."""
        self._not_brief()
        self.calls.acts_in_environment()
        if self.is_free() and not self.calls.is_outside():
            self._need_iteration(monotonic_ns())
        self.last_ns = self.ring.begin(self.ring.number(ENVIRONMENT))
        self.in_environment = True

    def environment_ends(self):
        """Ends the span of the environment begun last."""
        self.in_environment = False
        self.phase_ends()

    def leave(self):
        """Leaves the loop to another framework. Returns False if it was trained in this one."""
        if self.backwards > 0 or self.stepped is not None:
            return False
        self._not_brief()
        self.calls.settle()
        self.ring.take_held()
        if self.current is not None:
            self._end_validation(self.current)
        return True

    def _end_complete(self):
        """Ends a validation whose batches were all taken, or that was left."""
        run = self.current
        if run is not None and run.role == EVALUATION and (run.left_ns or run.complete()):
            self._end_validation(run)

    def finish(self):
        """The process ends: writes held marks, and ends what is complete."""
        self._not_brief()
        self.calls.settle()
        self._settle(True)
        self._end_complete()
        self._end_endless(self.training)
        run = self.current
        if run is not None and run.role == UNKNOWN:
            self._decide(run, EVALUATION if run.batches > (not run.over) else BESIDE)
        if self.in_iteration and (self.idle or self.stepped is not None or self._is_cycle_over()):
            self._finish_iteration()
