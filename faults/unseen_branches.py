"""Why is it that nothing sees a branch of torch's hook code being forced? A reason for each that `hookcheck kill-matrix
--branches` lists on torch 2.13.0."""

from __future__ import annotations

from fnmatch import fnmatchcase

HOOKS, TRACKER, GRAPH, MODULE = (
    "torch.utils.hooks.", "torch.utils.module_tracker.ModuleTracker.", "torch.autograd.graph.",
    "torch.nn.modules.module.",
)  # fmt: skip

SAME = "what follows does the same in that case"
ONLY_A_CHECK = "a check of torch's own that cannot fail from outside"
ACCELERATOR = "it is about memory of an accelerator"
ADDRESS = "what has no memory has the address 0 as well; to take 0 for all costs memory alone"
EMPTY = "it goes through tables that are empty, or notes what is not asked"

REASONS: dict[str, str] = {
    HOOKS + "BackwardHook._apply_on_tensors: never: len(*) == 0": ONLY_A_CHECK,
    HOOKS + "BackwardHook._apply_on_tensors: always: t.grad_fn.name() == *": "each of them has that name",
    HOOKS + "BackwardHook.setup_output_hook*: never: self.output_tensors_index is None": ONLY_A_CHECK,
    HOOKS + "BackwardHook.setup_output_hook*: always: self.user_pre_hooks": SAME,
    HOOKS + "BackwardHook.setup_output_hook*: always: local_grad_outputs is not None": "they were put there before",
    HOOKS + "RemovableHandle.__getstate__: never: self.extra_dict_ref is None": "since 2.0 it is a tuple, empty or not",
    TRACKER
    + "_maybe_set_engine_callback: never: self._has_callback": "the callback is queued again, and does the same",
    TRACKER + "_get_mod_name: always: mod not in self._seen_modules": "names are given again, and are the same",
    TRACKER + "_fw_*_hook: always: tensors": "a multi-grad hook on no tensor is never called",
    GRAPH + "Node.__subclasshook__: always: subclass is not None in *": ONLY_A_CHECK,
    GRAPH + "_get_grad_fn_or_grad_acc: always: t.*": "the Node behind a view of a result is the result's own",
    GRAPH + "get_gradient_edge: *: isinstance(grad_fn, torch._C._FunctionBase)": "the graph lives without a token, too",
    GRAPH + "save_on_cpu.__init__.pack_to_cpu: always: not tensor.is_sparse *": ACCELERATOR,
    GRAPH + "register_multi_grad_hook: always: mode == 'any'": ONLY_A_CHECK,
    GRAPH + "register_multi_grad_hook.*: never: id == -1": ONLY_A_CHECK,
    GRAPH + "register_multi_grad_hook.*: never: nb_calls is None": ONLY_A_CHECK,
    GRAPH + "register_multi_grad_hook.*: always: curr_count == 0": "it counts again, which mends what MG-09 shows",
    GRAPH + "_get_tid: *": ADDRESS,
    GRAPH + "_get_sid: never: *": ADDRESS,
    GRAPH + "_swap_with_cloned.*unpack_hook: never: not _allow_mutation_on_saved_tensors_enabled": SAME,
    GRAPH + "_CloneArgBeforeMutateMode.*: always: arg.alias_info.is_write in *": "views are copied too: only memory",
    GRAPH
    + "_CloneArgBeforeMutateMode.*maybe_clone: always: sid in ctx.sid_to_tid": "it is empty for what is not there",
    GRAPH + "_register_logging_hooks_on_whole_graph.iter_graph: never: not roots": SAME,
    GRAPH + "_register_logging_hooks_on_whole_graph.iter_graph: always: node is not None": ONLY_A_CHECK,
    MODULE + "Module._maybe_warn*: always: not isinstance(inputs, torch.Tensor)": "arguments come as a tuple",
    MODULE + "Module._maybe_warn*: never: len(out_grad_fn) == 0 or *": "the Node of the hook is one of the outputs'",
    MODULE + "Module._call_impl: never: not (self._backward_hooks or *": "what has no hooks takes the longer way, too",
    MODULE + "Module._call_impl.inner: always: self._* or _global_*": EMPTY,
    MODULE + "Module._call_impl.inner: always: _global_* or self._*": EMPTY,
    MODULE + "Module._call_impl.inner: always: * in self._forward_hooks_always_called or *": EMPTY,
    MODULE + "Module.__setattr__: always: output is not None (2)": "it is None that is registered there",
    MODULE + "_has_any_global_hook: never: _global_forward_hooks_* in *": "where there is such a flag there is a hook",
}
"""By the name of a branch, with the wildcards of a shell but for brackets."""


def matches(pattern: str, branch: str) -> bool:
    """Whether a pattern of `REASONS` is of the branch of that name."""
    return fnmatchcase(branch, pattern.replace("[", "[[]"))


def reason(branch: str) -> str:
    """Why nothing sees the branch of that name being forced; empty where that is not known."""
    return next((why for pattern, why in REASONS.items() if matches(pattern, branch)), "")
