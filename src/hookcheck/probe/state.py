"""How is torch's process-wide state kept as it was? One context manager around everything that a case does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

import torch
from torch.nn.modules import module as torch_module


def _caching() -> dict[str, Any]:
    """The module of parametrizations, by how its caches are called."""
    with suppress(ImportError):  # torch has it since 1.9
        return {"_cache": import_module("torch.nn.utils.parametrize")}
    return {}


_GLOBAL: dict[str, Any] = {"_global_": torch_module, **_caching()}
_VARIABLES = [(module, name) for start, module in _GLOBAL.items() for name in vars(module) if name.startswith(start)]

_MODES = [
    (getattr(torch._C, f"_len_torch_{what}_stack"), import_module(module)._pop_mode)
    for what, module in (("function", "torch.overrides"), ("dispatch", "torch.utils._python_dispatch"))
    if hasattr(torch._C, f"_len_torch_{what}_stack")  # since 1.13
]
"""How many modes are entered of each sort, and what leaves the last one."""

_SAVING = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", lambda tracing: None)
"""The hooks on saved tensors that were entered last, where torch tells: since 2.1."""


@contextmanager
def preserved() -> Iterator[None]:
    """On leaving, even by an exception, puts back what a case may have changed in the process.

    That is: every global hook table and flag of ``torch.nn.modules.module`` (the flag of the global hook family is
    sticky: torch itself never resets it), the cache of parametrized weights (an error within ``cached`` must not leave
    it on), the function and dispatch modes and the hooks on saved tensors that are entered, grad mode, default dtype,
    and the random state of CPU and CUDA devices. What a module keeps (its hook family is as sticky) needs no care,
    since every case builds modules of its own.
    """
    held = [getattr(*variable) for variable in _VARIABLES]
    contents = [dict(value) if isinstance(value, dict) else None for value in held]
    depths, saving = [length() for length, _ in _MODES], _SAVING(True)
    grad, dtype, random = torch.is_grad_enabled(), torch.get_default_dtype(), torch.default_generator.get_state()
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        for (module, name), value, content in zip(_VARIABLES, held, contents):
            setattr(module, name, value)
            if content is not None and value != content:
                value.clear()  # other modules of torch hold the table itself, so its content is what goes back
                value.update(content)
        for (length, leave), depth in zip(_MODES, depths):
            while length() > depth:  # within one nothing compiles any more
                leave()
        while _SAVING(True) not in (None, saving):
            torch._C._autograd._pop_saved_tensors_default_hooks()
        if torch.is_grad_enabled() is not grad:
            torch.set_grad_enabled(grad)
        if torch.get_default_dtype() is not dtype:
            torch.set_default_dtype(dtype)
        torch.default_generator.set_state(random)
        if cuda:
            torch.cuda.set_rng_state_all(cuda)
