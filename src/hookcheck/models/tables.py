"""The hooks that are on a module, tensor, optimizer or on all of them, read from torch's tables by one rule.

A table is a dict in an attribute whose name ends in ``_hooks``; the options of its hooks are attributes that are named
after it (``_forward_hooks_with_kwargs``). So a table that a later release brings is read as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from hookcheck.probe.lazy import torch

TENSOR_TABLES = ("_backward_hooks", "_post_accumulate_grad_hooks")
GLOBAL_OWNERS = ("torch.nn.modules.module", "torch.optim.optimizer")
_NAMES = {
    "_is_full_backward_hook": "full",
    "_global_is_full_backward_hook": "full",
}


@dataclass(frozen=True)
class TableHook:
    """One hook in a table of an object.

    ``key`` is its key there: the id of its handle, unless it was put there past torch's functions. ``options`` are the
    words for how it was registered: ``with_kwargs``, ``always_called``, ``full``, ``with_module``.
    """

    table: str
    key: Any
    function: Any
    options: tuple[str, ...]

    @property
    def kind(self) -> str:
        """The kind in words: ``forward_pre``, ``full_backward``, ``state_dict``; ``tensor`` for a tensor's."""
        words = self.table.strip("_")
        kind = words[: -len("_hooks")] if words.endswith("_hooks") else words
        return kind.replace("backward", "full_backward") if "full" in self.options else kind


def hooks_of(thing: Any) -> Iterator[TableHook]:
    """Every hook in the tables of a module, tensor, optimizer, or of a module of torch's own code."""
    tensor = isinstance(thing, torch.Tensor)
    attributes: Mapping[str, Any] = _tensor_tables(thing) if tensor else vars(thing)
    full = next((word for name, word in _NAMES.items() if attributes.get(name) is True), None)
    for name, table in list(attributes.items()):
        if not name.endswith("_hooks") or not isinstance(table, dict):
            continue
        options = {
            other[len(name) + 1 :]: content
            for other, content in attributes.items()
            if other.startswith(f"{name}_") and isinstance(content, dict)
        }
        for key, hook in list(table.items()):
            words = {word for word, content in options.items() if key in content}
            if full and name.endswith("_backward_hooks"):
                words.add(full)
            if getattr(hook, "with_module", False):
                words.add("with_module")
            yield TableHook("_tensor_hooks" if tensor and name == "_backward_hooks" else name, key, unwrapped(hook),
                       tuple(sorted(words)))  # fmt: skip


def unwrapped(hook: Any) -> Any:
    """The function that was registered; torch wraps those that are called before a state is loaded."""
    return hook.hook if type(hook).__name__ == "_WrappedHook" else hook


def global_hooks() -> Iterator[tuple[str, TableHook]]:
    """Every hook for all modules or all optimizers, with the name of the module of torch that keeps it."""
    for name in GLOBAL_OWNERS:
        for hook in hooks_of(import_module(name)):
            yield name, hook


def saved_tensors_pair() -> Any:
    """The innermost pair of saved-tensors hooks that is open in this thread, or None.

    A release that does not tell gives None.
    """
    ask = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)
    return ask(True) if ask else None


def _tensor_tables(tensor: Any) -> dict[str, Any]:
    with torch._C.DisableTorchFunction():
        return {name: getattr(tensor, name, None) for name in TENSOR_TABLES}


def function_name(function: Any) -> str:
    """What a function is called, with the module that defines it; of a partial, that of its function."""
    inner = getattr(function, "func", function)
    name = getattr(inner, "__qualname__", None) or type(inner).__qualname__
    return f"{getattr(inner, '__module__', None) or type(inner).__module__}.{name}"
