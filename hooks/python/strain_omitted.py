# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""What PyTorch's backward computes for nothing.

Parameters of modules that get gradients which no optimizer uses: a backbone that was to be frozen, a
teacher called without torch.no_grad(). Looked at once, in the third step: which parameters of the modules
that were called with gradients have one, and which of these are an optimizer's. If none is, the
optimizers hold copies (as with FP16 weights of Apex), and nothing is known.

Embeddings with most of the parameters and dense gradients: each step zeroes, fills and applies a gradient
of the whole table for the few rows of a batch. A table that another layer shares needs all of it.

Large matrices of zeros among the arguments and the tensors of these modules (strain_zeros.py).

Functions that the script has registered with modules and parameters, which watch their outputs and
gradients at each step. They are counted, not called.

Backward passes of one step that each keep the graph for the next (retain_graph=True), as where each of
several losses has its own: they go through the part that the losses share again and again. Counted in
the first steps, and told if all of them have some.

Gradients that ranks exchange in several passes of one step, as DistributedDataParallel does where gradients are accumulated
outside of no_sync(): the last exchange would do. It decides in forward, so that calls of it are counted, too, in the first two
steps, in which all calls are seen.

Gradients that are zeroed before a step uses them: those that the generator of a GAN gets from the loss of its
discriminator, if its images were not detached. A few parameters of each optimizer are looked at before and after each
backward pass: whether it gave them gradients. If another optimizer steps then, and they are zeroed, they were computed
for nothing; the run has that if it happens about as often as their own steps.
"""

import weakref

from strain_zeros import Zeros

STEPS = 3
MODULES = 8  # called directly, not by another one
MOST = 0.5  # of the parameters
COUNTED = 8  # steps whose backward passes are counted
EXCHANGED = 2  # steps whose exchanges of gradients are counted
FOLLOWED = 24  # steps in which zeroed gradients are looked for: a few of each model's, where one has five
LOOKED_AT = 4  # parameters of an optimizer


class Omitted:
    """What is known before the third step. left: the steps until then; 0: it is over."""

    __slots__ = ("left", "_modules", "_zeros", "_tell")

    def __init__(self, torch, tell):
        self.left = STEPS
        self._zeros = Zeros(torch)
        self._modules = {}  # by id: weak references
        self._tell = tell

    def called(self, module, arguments):
        """The outermost module is called with gradients."""
        if id(module) not in self._modules and len(self._modules) < MODULES:
            self._modules[id(module)] = weakref.ref(module)
            if next(module.parameters(), None) is not None:  # not a loss
                self._zeros.look(arguments)

    def stepped(self, optimizers):
        """An optimizer's step has ended; gradients are still there."""
        self.left = max(0, self.left - 1)  # another thread may end it meanwhile
        if self.left:
            return
        updated = optimizers.tensors()
        used = omitted = 0
        seen = set()
        for reference in self._modules.values():
            module = reference()
            for tensor in module.parameters() if module is not None else ():
                if tensor.grad is None or id(tensor) in seen:
                    continue
                seen.add(id(tensor))
                if id(tensor) in updated:
                    used += tensor.numel()
                else:
                    omitted += tensor.numel()
        watching = [code for reference in self._modules.values() for code in _watching(reference())]
        dense = sum(_dense_embeddings(reference(), updated) for reference in self._modules.values())
        for reference in self._modules.values():
            module = reference()
            if module is not None and used:
                self._zeros.look_within(module)
        self._modules.clear()
        if used and self._zeros.facts():
            self._tell(self._zeros.facts())
        if used and omitted:
            self._tell((("optimizer_parameters", str(used)), ("optimizer_parameters_omitted", str(omitted))))
        if dense > MOST * used:
            self._tell((("optimizer_embeddings", str(dense)),))
        if watching:
            place = "%s:%d" % (watching[0].co_filename, watching[0].co_firstlineno)
            self._tell((("optimizer_callbacks", str(len(watching))), ("optimizer_callback_at", place)))


def _watching(module):
    """The code of the functions that run in forward and backward of a module's layers and parameters, without PyTorch's own."""
    for layer in module.modules() if module is not None else ():
        places = [getattr(layer, name, None) for name in ("_forward_hooks", "_backward_hooks")]
        places += [tensor._backward_hooks for tensor in layer.parameters(recurse=False)]
        for functions in places:
            for function in list(functions.values()) if functions else ():
                code = getattr(getattr(function, "func", function), "__code__", None)
                if code is not None and "/torch/" not in code.co_filename:
                    yield code


def _dense_embeddings(module, updated):
    """Parameters in the tables of a module that get dense gradients, though no other layer uses them."""
    tables, others = {}, set()
    for layer in module.modules() if module is not None else ():
        if type(layer).__name__ in ("Embedding", "EmbeddingBag"):
            if not layer.sparse and layer.weight.grad is not None and id(layer.weight) in updated:
                tables[id(layer.weight)] = layer.weight.numel()
        else:
            others.update(id(tensor) for tensor in layer.parameters(recurse=False))
    return sum(count for key, count in tables.items() if key not in others)


class Repeated:
    """Backward passes between two steps. left: the steps until it is over."""

    __slots__ = ("left", "_passes", "_kept", "_model", "_models", "_least_passes", "_least_kept", "_least_synced", "_tell")

    def __init__(self, tell):
        self.left = COUNTED
        self._passes = self._kept = 0
        self._model = None  # id of the last one called whose gradients will be exchanged
        self._models = []  # those of the passes
        self._least_passes = self._least_kept = self._least_synced = 1 << 30
        self._tell = tell

    def called(self, module):
        """The outermost module is called with gradients."""
        if vars(module).get("require_backward_grad_sync") is True:
            self._model = id(module)

    def passed(self, arguments, options, stepping):
        """A backward pass begins, with the arguments of torch.autograd.backward(). stepping: an optimizer has called it in a
        closure, and uses the gradients of each of its passes."""
        if self._model is not None and not stepping:
            self._models.append(self._model)
        self._model = None
        keeps = options.get("retain_graph", arguments[2] if len(arguments) > 2 else None)
        higher = options.get("create_graph", arguments[3] if len(arguments) > 3 else False)
        self._passes += 1
        self._kept += bool(keeps and not higher)

    def stepped(self):
        """An optimizer's step has ended."""
        self.left = max(0, self.left - 1)
        self._least_passes = min(self._least_passes, self._passes)
        self._least_kept = min(self._least_kept, self._kept)
        if self.left >= COUNTED - EXCHANGED:
            self._least_synced = min(self._least_synced, len(self._models) if len(set(self._models)) == 1 else 0)
        self._passes = self._kept = 0
        self._model, self._models = None, []
        if not self.left and self._least_kept > 0:
            self._tell((("optimizer_backwards", str(self._least_passes)), ("optimizer_backwards_kept", str(self._least_kept))))
        if self.left == COUNTED - EXCHANGED and self._least_synced > 1:
            self._tell((("optimizer_backwards_synced", str(self._least_synced)),))


class _Gradients:
    """Those of one optimizer: in how many passes they came, and what became of them."""

    __slots__ = ("tensors", "ids", "fresh", "waited", "used", "zeroed", "steps", "times_zeroed", "last", "entered")

    def __init__(self, optimizer):
        tensors = [tensor for group in optimizer.param_groups for tensor in group["params"]]
        self.ids = {id(tensor) for tensor in tensors}
        places = {i * (len(tensors) - 1) // max(1, LOOKED_AT - 1) for i in range(LOOKED_AT)}
        self.tensors = [weakref.ref(tensors[place]) for place in places] if tensors else []
        self.fresh = 0  # passes since they were used or zeroed
        self.waited = False  # another optimizer has stepped since
        self.used = self.zeroed = self.steps = self.times_zeroed = 0
        self.last = set()  # whether these passes met this optimizer's model first: it was called last
        self.entered = set()  # the same of those whose gradients were zeroed

    def look(self):
        """What tells gradients from later ones; () if there are none."""
        gradients = [tensor.grad for tensor in (reference() for reference in self.tensors) if tensor is not None]
        return tuple((id(gradient), gradient._version) for gradient in gradients if gradient is not None)

    def reset(self):
        """They are used or zeroed."""
        self.fresh = 0
        self.waited = False
        self.last = set()


class Discarded:
    """Gradients that no step uses. left: the steps until it is over."""

    __slots__ = ("left", "_model", "_before", "_by", "_tell")

    def __init__(self, tell):
        self.left = FOLLOWED
        self._model = None  # weak: the one called last
        self._before = ()  # the optimizers' gradients when the pass began
        self._by = {}  # by an optimizer's id
        self._tell = tell

    def called(self, module):
        """The outermost module is called with gradients."""
        if next(module.parameters(), None) is not None:  # not a loss
            self._model = weakref.ref(module)

    def pass_begins(self):
        """A backward pass begins."""
        self._before = tuple((known, known.look()) for known in self._by.values())

    def pass_ends(self):
        """It has ended."""
        model, self._model = self._model and self._model(), None
        met = {id(tensor) for tensor in model.parameters()} if model is not None else None
        before, self._before = self._before, ()
        for known, state in before:
            if known.look() != state:
                known.fresh += 1
                known.last.add(None if met is None else not known.ids.isdisjoint(met))

    def stop(self):
        """Nothing is known."""
        self.left = 0
        self._by.clear()
        self._model = None
        self._before = ()

    def stepped(self, optimizer):
        """An optimizer's step has ended."""
        if not self.left:
            return
        self.left -= 1
        known = self._by.get(id(optimizer))
        if known is None:
            known = self._by[id(optimizer)] = _Gradients(optimizer)
        for other in self._by.values():
            other.waited = other.waited or other.fresh > 0
        known.steps += 1
        known.used += known.fresh
        known.reset()
        if not self.left:
            self._finish()

    def zeroes(self, parameters):
        """Gradients of these are about to be zeroed. Those of passes after which no optimizer has stepped
        may have been used by the script itself, which copies or normalises them."""
        ids = {id(tensor) for tensor in parameters}
        for known in self._by.values():
            if not known.ids.isdisjoint(ids):
                if known.fresh and known.waited:
                    known.zeroed += known.fresh
                    known.times_zeroed += 1
                    known.entered |= known.last
                known.reset()

    def _finish(self):
        known = list(self._by.values())
        apart = all(one.ids.isdisjoint(other.ids) for one in known for other in known if one is not other)
        wasting = [one for one in known if one.times_zeroed >= 2 and 2 * one.times_zeroed >= one.steps]
        if len(known) > 1 and apart and wasting:
            # Through a model that was called before others, for nothing: worse than for its parameters alone.
            worst = max(wasting, key=lambda one: (one.entered == {False}, one.zeroed / (one.zeroed + one.used)))
            facts = [("optimizer_passes_used", str(worst.used)), ("optimizer_passes_zeroed", str(worst.zeroed))]
            if worst.entered in ({False}, {True}):
                facts.append(("optimizer_zeroed_model", "last" if True in worst.entered else "earlier"))
            self._tell(tuple(facts))
        self.stop()
