"""Why is it that nothing sees a branch of torch's hook code being forced? A reason for each that `hookcheck kill-matrix
--branches` lists on torch 2.13.0."""

from __future__ import annotations

from fnmatch import fnmatchcase

HOOKS, TRACKER, GRAPH, MODULE, TENSOR, OPTIMIZER = (
    "torch.utils.hooks.", "torch.utils.module_tracker.ModuleTracker.", "torch.autograd.graph.",
    "torch.nn.modules.module.", "torch._tensor.Tensor.", "torch.optim.optimizer.Optimizer.",
)  # fmt: skip

SAME = "what follows does the same in that case"
ONLY_A_CHECK = "a check of torch's own that cannot fail from outside"
ACCELERATOR = "it is about memory of an accelerator"
NO_MEMORY = "it is about tensors without memory, on which no backward runs"

REASONS: dict[str, str] = {
    HOOKS + "BackwardHook._apply_on_tensors: never: len(*) == 0": ONLY_A_CHECK,
    HOOKS + "BackwardHook._apply_on_tensors: always: t.grad_fn.name() == *": "each of them has that name",
    HOOKS + "BackwardHook.setup_output_hook*: never: self.output_tensors_index is None": ONLY_A_CHECK,
    HOOKS + "BackwardHook.setup_output_hook*: always: self.user_pre_hooks": SAME,
    HOOKS + "BackwardHook.setup_output_hook*: always: local_grad_outputs is not None": SAME,
    HOOKS + "RemovableHandle.__getstate__: never: self.extra_dict_ref is None": "since 2.0 it is a tuple, empty or not",
    TRACKER
    + "_maybe_set_engine_callback: never: self._has_callback": "the callback is queued again, and does the same",
    TRACKER + "_get_mod_name: always: mod not in self._seen_modules": "names are given again, and are the same",
    TRACKER + "_get_append_fn.fn: *: is_bw (2)": "a word of a log, of a module that is entered twice in a backward",
    TRACKER + "_fw_*_hook: always: tensors": "a multi-grad hook on no tensor is never called",
    TRACKER
    + "_fw_post_hook: always: isinstance(a, torch.Tensor) in *": "outputs that are no tensors raise, not judged",
    GRAPH + "Node.__subclasshook__: *: subclass is not None*": ONLY_A_CHECK,
    GRAPH + "_get_grad_fn_or_grad_acc: always: *": "of a result, too, the Node behind a view is its own",
    GRAPH + "_get_grad_fn_or_grad_acc: never: isinstance(t, GradientEdge)": "edges come here with the log on alone",
    GRAPH + "get_gradient_edge: *: isinstance(grad_fn, torch._C._FunctionBase)": "the graph lives without a token, too",
    GRAPH + "save_on_cpu.__init__.pack_to_cpu: *": ACCELERATOR,
    GRAPH + "register_multi_grad_hook: always: mode == 'any'": ONLY_A_CHECK,
    GRAPH + "register_multi_grad_hook.*: never: id == -1": ONLY_A_CHECK,
    GRAPH + "register_multi_grad_hook.*: never: nb_calls is None": ONLY_A_CHECK,
    GRAPH + "register_multi_grad_hook.*: always: curr_count == 0": "it counts again, and comes to the same number",
    GRAPH + "_get_?id: *": NO_MEMORY,
    GRAPH + "_swap_with_cloned.*unpack_hook: never: not _allow_mutation_on_saved_tensors_enabled": SAME,
    GRAPH + "_CloneArgBeforeMutateMode.*: always: arg.alias_info.is_write in *": "views are copied too: only memory",
    GRAPH
    + "_CloneArgBeforeMutateMode.*maybe_clone: always: sid in ctx.sid_to_tid": "it is empty for what is not there",
    GRAPH + "_register_logging_hooks_on_whole_graph.iter_graph: never: not roots": SAME,
    GRAPH + "_register_logging_hooks_on_whole_graph.iter_graph: always: node is not None": ONLY_A_CHECK,
    GRAPH + "_engine_run_backward: always: attach_logging_hooks": "Nodes get hooks that log nothing",
    MODULE + "Module._maybe_warn*: always: not isinstance(inputs, torch.Tensor)": "arguments come as a tuple",
    MODULE + "Module._maybe_warn*: never: len(out_grad_fn) == 0 or *": "the Node of the hook is one of the outputs'",
    MODULE + "Module._call_impl: never: not (self._backward_hooks or *": "what has no hooks takes the longer way, too",
    MODULE
    + "Module._call_impl.inner: always: * or *": "it goes through tables that are empty, or notes what is not asked",
    MODULE + "Module.__setattr__: always: output is not None (2)": "it is None that is registered there",
    MODULE + "_has_any_global_hook: never: _global_forward_hooks_* in *": "where there is such a flag there is a hook",
    TENSOR + "__deepcopy__: never: self.is_quantized": "what is quantised requires no grad, and so has no hooks",
    TENSOR + "_reduce_ex_internal: never: self.is_quantized": "what is quantised requires no grad, and so has no hooks",
}
"""By the name of a branch, with the wildcards of a shell but for brackets."""


def reason(branch: str) -> str:
    """Why nothing sees the branch of that name being forced; empty where that is not known."""
    return next((why for pattern, why in REASONS.items() if fnmatchcase(branch, pattern.replace("[", "[[]"))), "")
