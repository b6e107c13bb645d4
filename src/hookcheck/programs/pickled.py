"""How do programs see hooks that went through pickle or copy? By hooks that can, which note what they do on the module.

A hook here is ``partial(note, word)``: it appends its word to a list that the module itself carries, so that what a
module came out of has a list of its own, and a hook that is given the wrong module shows.
"""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable, Iterator
from functools import partial
from inspect import signature
from typing import Any
from unittest.mock import patch

from hookcheck.probe.lazy import nn, torch

KINDS = (
    "register_forward_pre_hook",
    "register_forward_hook",
    "register_full_backward_pre_hook",
    "register_full_backward_hook",
    "register_state_dict_pre_hook",
    "_register_state_dict_hook",
    "register_state_dict_post_hook",
    "_register_load_state_dict_pre_hook",
    "register_load_state_dict_pre_hook",
    "register_load_state_dict_post_hook",
)
"""What registers a hook of each kind on a module, in the order in which `exercised` has them called."""


def note(word: Any, module: Any, *arguments: Any) -> None:
    """A hook, once it has its ``word``, that notes it on the module."""
    vars(module).setdefault("noted", []).append(word)


def noted(module: Any) -> list[Any]:
    """What hooks noted on ``module`` since it was last asked."""
    return list(vars(module).pop("noted", ()))


def offered_kinds() -> Iterator[str]:
    """Those of `KINDS` that this torch offers, and with which a hook gets the module."""
    for name in KINDS:
        register = getattr(nn.Module, name, None)
        if register and (
            name != "_register_load_state_dict_pre_hook" or "with_module" in signature(register).parameters
        ):
            yield name


def register(module: Any, name: str, hook: Any) -> Any:
    """Registers ``hook`` with the method ``name`` so that it gets the module."""
    return getattr(module, name)(
        hook, **({"with_module": True} if name == "_register_load_state_dict_pre_hook" else {})
    )


def exercised(module: Any) -> list[Any]:
    """Calls ``module`` forward and backward, saves and loads its state, and gives what hooks noted meanwhile."""
    noted(module)
    module(torch.ones(1, 1, requires_grad=True)).sum().backward()
    module.load_state_dict(module.state_dict())
    return noted(module)


def through_pickle(value: Any) -> Any:
    """What comes back from pickle."""
    return pickle.loads(pickle.dumps(value))


def through_save(value: Any, **options: Any) -> Any:
    """What comes back from ``torch.save`` and ``torch.load``, with ``options`` for the latter as far as it has them."""
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    options = {"weights_only": False, **options}
    return torch.load(file, **{key: options[key] for key in options if key in signature(torch.load).parameters})


WAYS: dict[str, Callable[[Any], Any]] = {
    "pickle": through_pickle,
    "torch.save": through_save,
    "deepcopy": copy.deepcopy,
}
"""The ways by which a module becomes another that is like it."""


def noting(word: Any) -> Any:
    """A hook of any kind that gets the module, which can be pickled."""
    return partial(note, word)


def module_read(pickled: bytes) -> list[Any]:
    """What hooks of a module note that comes from a pickle with its handles: all of them, and none once removed."""
    module, handles = pickle.loads(pickled)
    before = exercised(module)
    for handle in handles:
        handle.remove()
    return [before, exercised(module)]


def optimizer_read(pickled: bytes) -> dict[str, Any]:
    """What becomes of an optimizer that comes from a pickle: which tables of hooks are not empty, the weight after a
    step, and the hooks that are called in that step and in one of another optimizer of its class."""
    optimizer = pickle.loads(pickled)
    seen: dict[str, Any] = {"hooks": [name for name, table in vars(optimizer).items() if "hooks" in name and table]}
    parameter = optimizer.param_groups[0]["params"][0]
    for name in ("restored", "another"):
        # another one lets the class call hooks, and so is made once the restored one has stepped
        each = optimizer if name == "restored" else torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.5)
        for kind in ("step_pre", "step_post"):
            if hasattr(each, f"register_{kind}_hook"):
                getattr(each, f"register_{kind}_hook")(noting(kind))
        parameter.grad = torch.ones(1)
        each.step()
        seen[name] = noted(each)
    return {**seen, "weight": parameter.tolist()}


def read_by_a_class_of_no_optimizer(pickled: bytes) -> dict[str, Any]:
    """The same in this process, in which no optimizer of that class was made: making one lets its step call hooks."""
    step: Any = torch.optim.SGD.step
    with patch.object(torch.optim.SGD, "step", step.__wrapped__ if hasattr(step, "hooked") else step):
        return optimizer_read(pickled)
