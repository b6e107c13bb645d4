"""The functions and context managers that register hooks: what each registers, and since which release."""

from __future__ import annotations

from dataclasses import dataclass, field

MODULE, TENSOR, LEAF, NODE, OPTIMIZER, OTHER = "module", "tensor", "leaf tensor", "Node", "optimizer", "other"
"""What a receiver can be. A leaf tensor is a tensor; ``OTHER`` is known to be none of torch's."""


@dataclass(frozen=True)
class Api:
    """One way to register a hook.

    ``owner`` is what the method belongs to, or None for a function or class of torch. ``arguments`` is how many the
    hook is called with, None where it takes no hook. ``keywords`` gives the release that brought each option.
    """

    name: str
    kind: str
    owner: str | None
    arguments: int | None
    since: str = "1.7"
    keywords: dict[str, str] = field(default_factory=dict)
    returns_none: bool = False
    """Whether torch raises where the hook returns anything but None."""

    @property
    def link(self) -> str:
        """The page of PyTorch's documentation, or of its source for what has none."""
        homes = {MODULE: "torch.nn.Module", TENSOR: "torch.Tensor", NODE: "torch.autograd.graph.Node"}
        homes[OPTIMIZER] = "torch.optim.Optimizer"
        if self.name.startswith("_"):
            return "https://github.com/pytorch/pytorch/blob/main/torch/nn/modules/module.py"
        home = homes.get(self.owner or "")
        if home is not None:
            page = f"{home}.{self.name}"
            return (
                f"https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#{page}"
                if self.owner == MODULE
                else f"https://docs.pytorch.org/docs/stable/generated/{page}.html"
            )
        return "https://docs.pytorch.org/docs/stable/autograd.html"


_ORDER = {"prepend": "2.0"}
_CALL = {**_ORDER, "with_kwargs": "2.0"}
_STATE = {"prepend": "2.1"}

_APIS = (
    Api("register_forward_pre_hook", "forward_pre", MODULE, 2, "1.7", _CALL),
    Api("register_forward_hook", "forward", MODULE, 3, "1.7", {**_CALL, "always_call": "2.1"}),
    Api("register_backward_hook", "backward", MODULE, 3),
    Api("register_full_backward_hook", "full_backward", MODULE, 3, "1.8", _ORDER),
    Api("register_full_backward_pre_hook", "full_backward_pre", MODULE, 2, "2.0", _ORDER),
    Api("register_state_dict_pre_hook", "state_dict_pre", MODULE, 3, "2.0"),
    Api("register_state_dict_post_hook", "state_dict_post", MODULE, 4, "2.5", returns_none=True),
    Api("register_load_state_dict_pre_hook", "load_state_dict_pre", MODULE, 8, "2.5"),
    Api("register_load_state_dict_post_hook", "load_state_dict_post", MODULE, 2, "1.12", returns_none=True),
    Api("_register_state_dict_hook", "state_dict_post (private)", MODULE, 4),
    Api(
        "_register_load_state_dict_pre_hook", "load_state_dict_pre (private)", MODULE, 7, "1.7", {"with_module": "1.10"}
    ),
    Api("register_hook", "tensor", TENSOR, 1),
    Api("register_post_accumulate_grad_hook", "post_accumulate_grad", TENSOR, 1, "2.1", returns_none=True),
    Api("retain_grad", "retain_grad", TENSOR, None),
    Api("register_hook", "node", NODE, 2),
    Api("register_prehook", "node_pre", NODE, 1, "2.0"),
    Api("register_step_pre_hook", "optimizer_step_pre", OPTIMIZER, 3, "2.0"),
    Api("register_step_post_hook", "optimizer_step_post", OPTIMIZER, 3, "2.0"),
    Api("register_state_dict_pre_hook", "optimizer_state_dict_pre", OPTIMIZER, 1, "2.1", _STATE),
    Api("register_state_dict_post_hook", "optimizer_state_dict_post", OPTIMIZER, 2, "2.1", _STATE),
    Api("register_load_state_dict_pre_hook", "optimizer_load_state_dict_pre", OPTIMIZER, 2, "2.1", _STATE),
    Api("register_load_state_dict_post_hook", "optimizer_load_state_dict_post", OPTIMIZER, 1, "2.1", _STATE),
    Api("register_module_forward_pre_hook", "global_forward_pre", None, 2),
    Api("register_module_forward_hook", "global_forward", None, 3, "1.7", {"with_kwargs": "2.6", "always_call": "2.1"}),
    Api("register_module_backward_hook", "global_backward", None, 3),
    Api("register_module_full_backward_hook", "global_full_backward", None, 3, "1.8"),
    Api("register_module_full_backward_pre_hook", "global_full_backward_pre", None, 2, "2.0"),
    Api("register_module_parameter_registration_hook", "parameter_registration", None, 3, "2.0"),
    Api("register_module_buffer_registration_hook", "buffer_registration", None, 3, "2.0"),
    Api("register_module_module_registration_hook", "module_registration", None, 3, "2.0"),
    Api("register_optimizer_step_pre_hook", "global_optimizer_step_pre", None, 3, "2.0"),
    Api("register_optimizer_step_post_hook", "global_optimizer_step_post", None, 3, "2.0"),
    Api("register_multi_grad_hook", "multi_grad", None, 1, "2.0", {"mode": "2.3"}),
    Api("saved_tensors_hooks", "saved_tensors", None, 1, "1.10"),
    Api("save_on_cpu", "save_on_cpu", None, None, "1.10"),
    Api("disable_saved_tensors_hooks", "disable_saved_tensors", None, None, "1.13"),
    Api("node_creation_hook", "node_creation", None, 1, "2.14"),
)

METHODS: dict[str, tuple[Api, ...]] = {}
FUNCTIONS: dict[str, Api] = {}
for _api in _APIS:
    if _api.owner is None:
        FUNCTIONS[_api.name] = _api
    else:
        METHODS[_api.name] = (*METHODS.get(_api.name, ()), _api)

UNRELATED_TOO = {"register_hook", "register_prehook", "retain_grad"}
"""Method names that libraries with nothing of torch use as well: without a known receiver nothing is certain."""
