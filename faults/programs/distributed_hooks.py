"""Faults in when hooks of DistributedDataParallel run, and in what others see beside them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch

from ..engine import Fault, added, replaced
from ..registering import edited
from .state_dict_hooks import Patch, registering, silenced

WRAPPER = torch.nn.parallel.DistributedDataParallel


def _wrapper(name: str, *changes: tuple[str, str]) -> Patch:
    """Edits a method of DistributedDataParallel."""
    return edited(WRAPPER, name, *changes)


def _join(name: str, *changes: tuple[str, str]) -> Patch:
    """Edits a method of the context that stands in for processes."""
    return edited(import_module("torch.distributed.algorithms.join").Join, name, *changes)


def _gradients_twice() -> Patch:
    """Has what stands between a network and what its loss uses double gradients."""
    sink = import_module("torch.nn.parallel.distributed")._DDPSink

    def make(original: Any) -> Any:
        return staticmethod(lambda ctx, *grads: tuple(g if g is None else 2 * g for g in original(ctx, *grads)))

    return replaced(sink, "backward", make)


REGISTERED = """    for hook, state in self._comm_hooks:
        dist._register_comm_hook(self.reducer, state, hook)
    if self.static_graph:"""
SYNCS, MOVING = "and self.require_backward_grad_sync", "not self.static_graph"
OUTPUT = "output = _tree_unflatten_with_rref("

EDITS: tuple[tuple[str, Any, tuple[str, ...]], ...] = (
    (
        "drops keyword arguments of the call",
        lambda: _wrapper("_run_ddp_forward", ("self.module(*inputs, **kwargs)", "self.module(*inputs)")),
        ("DD-08",),
    ),
    (
        "stays in no_sync after an error",
        lambda: _wrapper("no_sync", ("try:\n        yield\n    finally:\n        ", "yield\n    if True:\n        ")),
        ("DD-01",),
    ),
    (
        "leaves no_sync by one inside it",
        lambda: _wrapper("no_sync", ("= old_require_backward_grad_sync", "= True")),
        ("DD-01",),
    ),
    (
        "reduces within no_sync",
        lambda: _wrapper("_post_forward", ("and self.require_backward_grad_sync", "")),
        ("DD-01",),
    ),
    (
        "reduces nothing of a static graph after no_sync",
        lambda: _wrapper(
            "_post_forward",
            (SYNCS, f"{SYNCS} and (self.require_forward_param_sync or {MOVING})"),
        ),
        ("DD-01",),
    ),
    (
        "gives a comm hook no state",
        lambda: _wrapper("register_comm_hook", ("(self.reducer, state,", "(self.reducer, None,")),
        ("DD-03",),
    ),
    (
        "takes a comm hook that says it takes something else",
        lambda: _wrapper("_check_comm_hook", ("!= dist.GradBucket", "!= sig.parameters['bucket'].annotation")),
        ("DD-03",),
    ),
    (
        "calls hooks of buffers ahead of forward",
        lambda: _wrapper(
            "_register_buffer_comm_hook",
            ("location=comm_hook_location", "location=_BufferCommHookLocation.PRE_FORWARD"),
        ),
        ("DD-04",),
    ),
    (
        "gives hooks of buffers those that were there at first",
        lambda: _wrapper("_sync_buffers", ("self._assign_modules_buffers()", "pass")),
        ("DD-04",),
    ),
    (
        "gives hooks of buffers those that are to be ignored",
        lambda: _wrapper("_assign_modules_buffers", ("if buffer_name not in self.parameters_to_ignore", "")),
        ("DD-04",),
    ),
    (
        "awaits no future of a hook of buffers",
        lambda: _wrapper("_sync_module_buffers", ("if futs is not None", "if False")),
        ("DD-04",),
    ),
    (
        "gives a list in the place of a structure",
        lambda: _wrapper("_post_forward", (OUTPUT, f"output = output_placeholders or {OUTPUT[9:]}")),
        ("DD-08",),
    ),
    (
        "copies what is no result of autograd",
        lambda: _wrapper(
            "_post_forward", ("output_placeholders[i] = output\n", "output_placeholders[i] = output + 0\n")
        ),
        ("DD-08",),
    ),
    (
        "reduces parameters that are to be ignored",
        lambda: _wrapper(
            "_build_params_for_reducer", ('and f"{module_name}.{param_name}" not in self.parameters_to_ignore', "")
        ),
        ("DD-02",),
    ),
    (
        "loses hooks of the wrapper in a copy",
        lambda: _wrapper("__getstate__", ("return attrs", "return {**attrs, '_forward_hooks': {}}")),
        ("DD-09",),
    ),
    (
        "copies its comm hook",
        lambda: _wrapper("__setstate__", ("    if self.static_graph:", REGISTERED)),
        ("DD-09",),
    ),
    (
        "says that it runs after an error",
        lambda: _wrapper(
            "_inside_ddp_forward",
            ("try:\n        yield\n    finally:\n        Dist", "yield\n    if True:\n        Dist"),
        ),
        ("DD-10",),
    ),
    (
        "changes the gradient after which others are reduced",
        lambda: _wrapper("_delayed_all_reduce_hook", ("return grad", "return grad * 0")),
        ("DD-11",),
    ),
    (
        "reduces delayed parameters with the others",
        lambda: _wrapper("__init__", ("self.parameters_to_ignore.add(name)", "pass")),
        ("DD-11",),
    ),
    ("hands on gradients twice", _gradients_twice, ("DD-07",)),
    (
        "gives zeros to what the loss leaves out",
        lambda: edited(
            import_module("torch.nn.parallel.distributed")._DDPSink,
            "forward",
            ("ctx.set_materialize_grads(False)", "pass"),
        ),
        ("DD-07",),
    ),
    (
        "clones no output where it looks for unused parameters",
        lambda: added(WRAPPER, "_ddp_sink_clone", property(lambda self: False, lambda self, value: None)),
        ("DD-08",),
    ),
    (
        "has hooks of parameters replace nothing",
        lambda: registering("register_hook", silenced, torch.Tensor),
        ("DD-06",),
    ),
)

JOINS: tuple[tuple[str, tuple[str, str], str], ...] = (
    (
        "asks the last that takes part alone",
        ("for joinable in self._joinables", "for joinable in self._joinables[-1:]"),
        "__init__",
    ),
    ("drops keyword arguments", ("join_hook(**kwargs)", "join_hook()"), "__init__"),
    ("calls no post-hook", ("join_hook.post_hook(is_last_joiner)", "pass"), "__exit__"),
    ("says that no process is the last", ("is_last_joiner = True", "is_last_joiner = False"), "__exit__"),
    ("swallows errors", ("or type:\n        return", "or type:\n        return True"), "__exit__"),
    ("has all of them tell the others", ("not join_config.is_first_joinable or ", ""), "notify_join_context"),
)

FAULTS = (
    *(Fault(f"DistributedDataParallel {what}", patch, clauses, (), "2.13") for what, patch, clauses in EDITS),
    *(
        Fault(f"Join {what}", lambda name=name, change=change: _join(name, change), ("DD-05",), (), "1.10")
        for what, change, name in JOINS
    ),
)
