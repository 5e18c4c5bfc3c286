# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""Libraries beside PyTorch whose calls belong to a training loop.

- Environments of reinforcement learning (gymnasium, gym, Stable-Baselines3): a step or a reset is a span,
  `environment`, of a thread that calls PyTorch's models. An environment made by `make` is wrapped in one that
  enforces the order of calls: that class is patched, and those that wait for environments in other processes.
- fastai has optimizers of its own, and torchdata a loader of its own.
- A call of `generate` of transformers is a span, `transformers.generate`: the rollouts of trl's trainers.

Each is patched when its module has been imported. gymnasium is often imported before PyTorch: its calls are marked from
then on; fastai and torchdata import PyTorch themselves.
"""

import sys
import threading
from time import monotonic_ns

import strain_hook

ENVIRONMENTS = "gym", "gymnasium", "stable_baselines3.common.vec_env"


def hook(module, report):
    """Patches the module, which has just been imported."""
    name = module.__name__
    torch = getattr(sys.modules.get("strain_torch"), "installed", [])[-1:]
    if name in ENVIRONMENTS:
        hooks = strain_hook.Hook(name, report)
        hooks.feature("environments of %s" % name, _patch, hooks, module)
    elif name == "transformers.generation.utils":
        hooks = strain_hook.Hook(name, report)
        hooks.feature("generate", hooks.patch, module.GenerationMixin, "generate", _timed)
    elif torch and name == "fastai.optimizer":
        torch[0].hook.feature("optimizers of fastai", torch[0].hook_optimizer, module.Optimizer)
    elif torch:
        torch[0].hook.feature("loaders of torchdata", torch[0].hook_loader, module.StatefulDataLoader)


def _patch(hooks, module):
    found = list(_places(module))
    if not found:
        raise RuntimeError("no class of environments is known")
    for owner, name in found:
        hooks.patch(owner, name, _later)


def _places(module):
    """Classes and the names of their methods in which environments run."""
    for package, kind, names in (
        ("wrappers.common", "OrderEnforcing", ("step", "reset")),
        ("wrappers.order_enforcing", "OrderEnforcing", ("step", "reset")),
        ("vector.async_vector_env", "AsyncVectorEnv", ("step_wait", "reset_wait")),
        ("", "DummyVecEnv", ("step_wait", "reset")),
        ("", "SubprocVecEnv", ("step_wait", "reset")),
    ):
        owner = sys.modules.get(module.__name__ + "." * bool(package) + package)
        owner = getattr(owner, kind, None)
        for name in names:
            if name in vars(owner or object):
                yield owner, name


def _timed(original):
    """The outermost call goes to a ring of its own: marks of phases are written within it."""
    import strain_spans

    local = threading.local()

    def generate(*arguments, **options):
        if getattr(local, "generates", False):  # assisted decoding, by another model
            return original(*arguments, **options)
        local.generates, began_ns = True, monotonic_ns()
        try:
            return original(*arguments, **options)
        finally:
            local.generates = False
            strain_spans.put("transformers.generate", began_ns, monotonic_ns())

    return generate


def _later(original):
    """PyTorch's hooks mark it, once they are there."""
    marked = None

    def environment(*arguments, **options):
        nonlocal marked
        if marked is None:
            strain_torch = sys.modules.get("strain_torch")
            if strain_torch is None or not strain_torch.installed:
                return original(*arguments, **options)
            marked = strain_torch.installed[-1].wrap_environment(original)
        return marked(*arguments, **options)

    return environment
