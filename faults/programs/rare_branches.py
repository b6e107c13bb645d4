"""Faults where torch's hook code seldom comes: branches of it that are always or never taken."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial

import torch
from torch.nn.modules import module as torch_module

from ..branches import ALWAYS, NEVER, SKIPPED, branches
from ..engine import Fault
from ..registering import edited

HOOKS, MODULE, TRACKER, GRAPH, TENSOR = (
    "torch.utils.hooks", "torch.nn.modules.module", "torch.utils.module_tracker", "torch.autograd.graph",
    "torch._tensor",
)  # fmt: skip
ALL_OF_LOADING = "module._load_state_dict_post_hooks.values()"


def _taken(module: str, function: str, forced: str, text: str) -> AbstractContextManager[None]:
    """A branch of torch's code that is taken always or never."""
    chosen = next(b for b in branches(module) if (b.function, b.forced) == (function, forced) and text in b.name)
    return chosen.fault.patch()


def _fault(clause: str, module: str, function: str, forced: str, text: str) -> Fault:
    what = f"rare branches: {forced}: {text} in {function}"
    return Fault(what, partial(_taken, module, function, forced, text), (clause,), since="2.13")


FAULTS = (
    _fault("RB-01", HOOKS, "RemovableHandle.__getstate__", SKIPPED, "self.extra_dict_ref"),
    _fault("RB-01", HOOKS, "RemovableHandle.__setstate__", ALWAYS, "len(state) < 3 or state[2] is None"),
    _fault("RB-02", MODULE, "Module.add_module", ALWAYS, "output is not None"),
    _fault("RB-03", MODULE, "Module._call_impl", ALWAYS, "hook_result is not None"),
    _fault("RB-04", TRACKER, "ModuleTracker._maybe_set_engine_callback", ALWAYS, "self._has_callback"),
    _fault("RB-04", TRACKER, "ModuleTracker._get_append_fn.fn", NEVER, "name in self.parents"),
    _fault("RB-04", TRACKER, "ModuleTracker._get_pop_fn.fn", ALWAYS, "is_bw"),
    _fault("RB-04", TRACKER, "ModuleTracker._get_append_fn.fn", NEVER, "is_bw (2)"),
    _fault("RB-04", TRACKER, "ModuleTracker._fw_post_hook", ALWAYS, "isinstance(a, torch.Tensor) in"),
    _fault("RB-05", MODULE, "_has_any_global_hook", NEVER, "_global_forward_pre_hooks in"),
    _fault("RB-06", GRAPH, "Node.__subclasshook__", ALWAYS, "cls is Node in"),
    _fault("RB-06", GRAPH, "Node.__subclasshook__", NEVER, "subclass is not None and subclass is getattr"),
    _fault("RB-07", GRAPH, "increment_version", NEVER, "isinstance(tensor, torch.Tensor)"),
    _fault("RB-08", HOOKS, "BackwardHook.setup_output_hook.fn.hook", ALWAYS, "isinstance(res, tuple) in"),
    _fault("RB-09", HOOKS, "BackwardHook.setup_output_hook.fn.hook", NEVER, "local_grad_outputs is not None"),
    _fault("RB-10", GRAPH, "_register_logging_hooks_on_whole_graph.fmt", NEVER, "t is None"),
    _fault("RB-10", GRAPH, "_register_logging_hooks_on_whole_graph.iter_graph", NEVER, "fn in seen in"),
    _fault("RB-10", GRAPH, "_get_grad_fn_or_grad_acc", NEVER, "isinstance(t, GradientEdge)"),
    _fault("RB-10", GRAPH, "_engine_run_backward", ALWAYS, "attach_logging_hooks"),
    _fault("RB-11", GRAPH, "_CloneArgBeforeMutateMode.__torch_dispatch__.maybe_clone", NEVER, "handle in ctx.cloned"),
    _fault("RB-12", MODULE, "Module._call_impl.inner", ALWAYS, "isinstance(v, torch.Tensor)"),
    _fault("RB-13", MODULE, "Module.load_state_dict.load", NEVER, "out is not None"),
    Fault(
        "rare branches: a hook after loading may return what is false",
        lambda: edited(torch.nn.Module, "load_state_dict", ("out is not None", "out")),
        ("RB-13",),
        kinds=(),
        since="1.13",
    ),
    _fault("RB-14", MODULE, "_WrappedHook.__setstate__", NEVER, "state['module'] is None"),
    _fault("RB-14", MODULE, "_WrappedHook.__call__", NEVER, "module is None"),
    _fault("RB-15", MODULE, "register_module_full_backward_hook", NEVER, "_global_is_full_backward_hook is False"),
    Fault(
        "rare branches: a pre-hook decides that all modules take full hooks",
        lambda: edited(
            torch_module,
            "register_module_full_backward_pre_hook",
            (
                "    handle = ",
                "    global _global_is_full_backward_hook\n    _global_is_full_backward_hook = True\n    handle = ",
            ),
        ),
        ("RB-15",),
        kinds=(),
        since="2.0",
    ),
    *(
        _fault("RB-16", TENSOR, f"Tensor.{name}", NEVER, "has_torch_function_unary(self)")
        for name in ("register_hook", "register_post_accumulate_grad_hook")
    ),
    *(
        _fault("RB-17", TENSOR, f"Tensor.{name}", NEVER, "self.is_quantized")
        for name in ("__deepcopy__", "_reduce_ex_internal")
    ),
    Fault(
        "rare branches: hooks on loading are left out where a tensor does not fit",
        lambda: edited(torch.nn.Module, "load_state_dict", (ALL_OF_LOADING, f"() if error_msgs else {ALL_OF_LOADING}")),
        ("RB-18",),
        kinds=(),
        since="2.13",
    ),
    Fault(
        "rare branches: a hook on loading holds the copy that it is of",
        lambda: edited(
            torch_module._WrappedHook,
            "__setstate__",
            ('weakref.ref(state["module"])', 'lambda module=state["module"]: module'),
        ),
        ("RB-14",),
        kinds=(),
        since="1.13",
    ),
)
