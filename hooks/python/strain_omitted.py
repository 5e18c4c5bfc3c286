# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""Parameters of PyTorch's modules that get gradients which no optimizer uses: a backbone that was to be
frozen, a teacher called without torch.no_grad().

Backward computes these gradients for nothing. Looked at once, in the third step: which parameters of the
modules that were called with gradients have one, and which of these are an optimizer's. If none is, the
optimizers hold copies (as with FP16 weights of Apex), and nothing is known.
"""

import weakref

STEPS = 3
MODULES = 8  # called directly, not by another one


class Omitted:
    """What is known before the third step. left: the steps until then; 0: it is over."""

    __slots__ = ("left", "_modules", "_tell")

    def __init__(self, tell):
        self.left = STEPS
        self._modules = {}  # by id: weak references
        self._tell = tell

    def called(self, module):
        """The outermost module is called with gradients."""
        if id(module) not in self._modules and len(self._modules) < MODULES:
            self._modules[id(module)] = weakref.ref(module)

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
        self._modules.clear()
        if used and omitted:
            self._tell((("optimizer_parameters", str(used)), ("optimizer_parameters_omitted", str(omitted))))
