# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""What a training loop (strain_loop.py) learns from calls of models if no loader shows its progress.

Only the outermost call of a module is used, and only while no pass over a loader is in progress (but for the last
rule):

- A call with gradients is forward, and so is the time between the last one and backward (the loss).
  Calls in close succession, such as those of a recurrent cell, are one span.
- A call of a model in evaluation mode is a validation: immediately if that model was just seen to train,
  else from the third in a row without gradients (one or two are a teacher's or a target network's, which may have
  been trained before).
- Other calls without gradients are forward: a policy acts, or a generator makes the input of its
  critic. If a loader feeds the training, they begin no iteration: between its passes they make
  pictures or samples to look at.
- Where environments of reinforcement learning run, a call without gradients acts in them, and is forward, too.
- Between an iteration and the request for the next batch of a pass, the third such call of a model in evaluation
  mode shows that all of them are a validation, unless they follow each step. One or two are no phase.
"""

from time import monotonic_ns

from strain_ring import FORWARD, VALIDATION

GAP_NS = 100000  # calls no further apart are one span: between them is only the loop itself
FIRST_TURN = 1, 1  # after the first step of the first epoch
IN_A_ROW = 3  # calls of a model not known to train, until they are a validation
MODELS_KEPT = 256
JUST = 2  # backwards ago at most
SEARCHED = 8  # arguments searched for a tensor

TRAINS, EVALUATES, BESIDE = 1, 2, 3


class Calls:
    """The outermost calls of one thread. All times are from monotonic_ns."""

    __slots__ = ("loop", "inside", "began_ns", "ended_ns", "kind", "row", "turn", "turned", "acts", "trained",
                 "validates", "samples", "environment")  # fmt: skip

    def __init__(self, loop):
        self.loop = loop
        self.inside = False  # an outermost call is in progress
        self.began_ns = 0  # start of the span that is held, because it may continue; 0: none
        self.ended_ns = 0
        self.kind = 0  # of the call in progress; 0: it is not marked
        self.row = []  # starts and ends of evaluations that may be a validation
        self.turn = None  # (epoch, number of the next iteration), if they are between two of a pass
        self.turned = None  # where such evaluations were so many last
        self.acts = False  # they follow each step: an agent acts, pictures are made, teachers are asked
        self.trained = {}  # id of a module called in training mode with gradients: number of backwards then
        self.validates = False  # a validation is in progress
        self.samples = -1  # in the first call since the last backward
        self.environment = False  # one has run

    def begins(self, module, gradients):
        """The outermost module is called."""
        self.kind = 0
        if self.loop.is_free():
            if self.turn is not None:
                self._settle_row()
                self.turn = None
            self.kind = self._kind_of(module, gradients)
            (self._trains, self._evaluates, self._goes_beside)[self.kind - 1](module, monotonic_ns())
        elif not (gradients or module.training or self.acts) and self.loop.has_turned(self.validates):
            self._evaluates_between(module)

    def ends(self):
        """Ends the call begun last."""
        if self.kind:
            self.ended_ns = monotonic_ns()
            if self.kind == EVALUATES and self.row:  # a phase within the call may have settled it
                self.row[-1][1] = self.ended_ns

    def _kind_of(self, module, gradients):
        training = module.training
        known = id(module) in self.trained
        if gradients and (training or not known):
            return TRAINS
        if training or self.environment or not (self.trained or self.loop.has_optimizer()):  # nothing trains: inference
            return EVALUATES if self.validates else BESIDE
        return EVALUATES if self.validates or self.loop.between_iterations() else BESIDE

    def _trains(self, module, now_ns):
        if self.row or self.validates:
            self._settle_row()
            self.end_validation()
        if module.training and (len(self.trained) < MODELS_KEPT or id(module) in self.trained):
            self.trained[id(module)] = self.loop.backwards
        self._span(now_ns)

    def _goes_beside(self, module, now_ns):
        self._settle_row()
        if self.is_outside():
            self.kind = 0
        else:
            self._span(now_ns)

    def is_outside(self):
        """Whether a loader feeds the training, and no iteration is in progress."""
        return self.loop.training is not None and not self.loop.in_iteration

    def _span(self, now_ns):
        """A span of forward begins or continues."""
        if self.began_ns and now_ns - self.ended_ns > GAP_NS:
            self._flush()
        self.loop.call_begins(now_ns, self.kind == TRAINS)
        if not self.began_ns:
            self.began_ns = now_ns

    def _evaluates(self, module, now_ns):
        between = self.turn is not None
        if self.validates or between and len(self.row) >= IN_A_ROW:  # it is none, however many there are
            return
        self._flush()
        self.row.append([now_ns, now_ns])
        if between and (len(self.row) < IN_A_ROW or self._follows_each_step()):
            return
        if self._just_trained(module) or len(self.row) >= IN_A_ROW:
            began_ns = self.row[0][0]
            self.row.clear()
            self.loop.validation_begins()
            self.loop.ring.begin(VALIDATION, began_ns)
            self.validates = True

    def _just_trained(self, module):
        trained = self.trained.get(id(module))
        return trained is not None and self.loop.backwards - trained <= JUST

    def _follows_each_step(self):
        """Whether the evaluations are no validation: they also followed the step before, or follow the first."""
        before, self.turned = self.turned, self.turn
        epoch, number = self.turn
        self.acts = self.acts or before == (epoch, number - 1)
        return self.acts or self.turn == FIRST_TURN

    def _evaluates_between(self, module):
        """A model is evaluated after an iteration of a pass that goes on."""
        turn = self.loop.epoch, self.loop.iteration
        if self.turn != turn:
            self.row.clear()
            self.turn = turn
        self.kind = EVALUATES
        self._evaluates(module, monotonic_ns())

    def acts_in_environment(self):
        """An environment is about to run. What was called before is settled."""
        self.environment = True
        self.settle()

    def _settle_row(self):
        """Drops a row too short to be a validation."""
        if self.row:
            row, self.row = self.row, []
            between, self.turn = self.turn is not None, None
            if between or self.is_outside():
                return
            for began_ns, ended_ns in row:
                self.loop.call_begins(began_ns, False)
                self.began_ns, self.ended_ns = began_ns, ended_ns
                self._flush()

    def _flush(self):
        if self.began_ns:
            loop = self.loop
            loop.ring.begin(FORWARD, self.began_ns)
            loop.last_ns = loop.ring.end(self.ended_ns)
            self.began_ns = 0

    def end_validation(self):
        """Ends the validation at its last call."""
        if self.validates:
            self.validates = False
            self.loop.last_ns = self.loop.ring.end(self.ended_ns)

    def settle(self):
        """Something else follows: writes what is held."""
        if self.row:
            self._settle_row()
        if self.validates:
            self.end_validation()
        if self.began_ns:
            self._flush()

    def backward_begins(self, now_ns):
        """Forward includes the last call and the loss after it, until now. Returns its samples."""
        if self.row or self.validates:
            self._settle_row()
            self.end_validation()
        if self.began_ns:
            loop = self.loop
            loop.ring.begin(FORWARD, self.began_ns)
            loop.last_ns = loop.ring.end(now_ns)
            loop.anchor_ns = self.began_ns = 0
        samples, self.samples = self.samples, -1
        return samples

    def guess_samples(self, tensor, arguments):
        """The first dimension of the first argument with two or more: a single sample has only one."""
        if self.kind == TRAINS and self.samples < 0:
            for argument in arguments[:SEARCHED]:
                if isinstance(argument, tensor):
                    if argument.dim() > 1:
                        self.samples = argument.shape[0]
                    return self.samples >= 0
        return False
