"""The private names of torch's hooks that programs read or write, and since when each is as it is."""

from __future__ import annotations

MODULE_FILE = "https://github.com/pytorch/pytorch/blob/main/torch/nn/modules/module.py"
TENSOR_FILE = "https://github.com/pytorch/pytorch/blob/main/torch/_tensor.py"
OPTIMIZER_FILE = "https://github.com/pytorch/pytorch/blob/main/torch/optim/optimizer.py"

_FLAGS = "hooks with flags are listed in a second table, which must be changed with it"
_GLOBAL = "it is one for the whole process, and what is left in it acts on every module"

PRIVATE: dict[str, tuple[str, str, str]] = {
    "_backward_hooks": ("1.8", "a module's holds legacy or full hooks, never both", MODULE_FILE),
    "_backward_pre_hooks": ("2.0", "modules pickled by an older release lack it", MODULE_FILE),
    "_forward_hooks": ("2.0", _FLAGS, MODULE_FILE),
    "_forward_pre_hooks": ("2.0", _FLAGS, MODULE_FILE),
    "_forward_hooks_with_kwargs": ("2.0", "modules pickled by an older release lack it", MODULE_FILE),
    "_forward_pre_hooks_with_kwargs": ("2.0", "modules pickled by an older release lack it", MODULE_FILE),
    "_forward_hooks_always_called": ("2.1", "modules pickled by an older release lack it", MODULE_FILE),
    "_is_full_backward_hook": ("1.8", "it stays set when the last hook is removed", MODULE_FILE),
    "_state_dict_hooks": ("2.5", "it holds public and private post-hooks alike", MODULE_FILE),
    "_state_dict_pre_hooks": ("2.0", "modules pickled by an older release lack it", MODULE_FILE),
    "_load_state_dict_pre_hooks": ("1.13", "it holds wrappers of the hooks that were given", MODULE_FILE),
    "_load_state_dict_post_hooks": ("1.12", "modules pickled by an older release lack it", MODULE_FILE),
    "_post_accumulate_grad_hooks": ("2.1", "it is None as long as there is no hook", TENSOR_FILE),
    "_global_forward_hooks": ("1.7", _GLOBAL, MODULE_FILE),
    "_global_forward_pre_hooks": ("1.7", _GLOBAL, MODULE_FILE),
    "_global_backward_hooks": ("1.8", _GLOBAL, MODULE_FILE),
    "_global_backward_pre_hooks": ("2.0", _GLOBAL, MODULE_FILE),
    "_global_is_full_backward_hook": ("1.8", "it stays set when the last hook is removed", MODULE_FILE),
    "_global_forward_hooks_always_called": ("2.1", _GLOBAL, MODULE_FILE),
    "_global_forward_hooks_with_kwargs": ("2.6", _GLOBAL, MODULE_FILE),
    "_global_parameter_registration_hooks": ("2.0", _GLOBAL, MODULE_FILE),
    "_global_buffer_registration_hooks": ("2.0", _GLOBAL, MODULE_FILE),
    "_global_module_registration_hooks": ("2.0", _GLOBAL, MODULE_FILE),
    "_register_state_dict_hook": ("1.7", "since 2.5 there is register_state_dict_post_hook", MODULE_FILE),
    "_register_load_state_dict_pre_hook": (
        "1.7", "since 2.5 there is register_load_state_dict_pre_hook, which passes the module as well", MODULE_FILE,
    ),
    "_optimizer_step_pre_hooks": ("2.0", "the hooks are of one optimizer", OPTIMIZER_FILE),
    "_optimizer_step_post_hooks": ("2.0", "the hooks are of one optimizer", OPTIMIZER_FILE),
    "_global_optimizer_pre_hooks": ("2.0", "it is one for the whole process", OPTIMIZER_FILE),
    "_global_optimizer_post_hooks": ("2.0", "it is one for the whole process", OPTIMIZER_FILE),
}  # fmt: skip
"""For each name: the release since which it is as it is now, what to know of it, and where it is defined."""
