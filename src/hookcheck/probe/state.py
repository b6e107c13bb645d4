"""How is torch's process-wide state kept as it was? One context manager around everything that a case does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.nn.modules import module as torch_module

_GLOBAL = {name: value for name, value in vars(torch_module).items() if name.startswith("_global_")}
_TABLES = [value for value in _GLOBAL.values() if isinstance(value, dict)]
_FLAGS = [name for name, value in _GLOBAL.items() if not isinstance(value, dict)]


@contextmanager
def preserved() -> Iterator[None]:
    """On leaving, even by an exception, puts back what a case may have changed in the process.

    That is: every global hook table and flag of ``torch.nn.modules.module`` (the flag of the global hook family is
    sticky: torch itself never resets it), grad mode, default dtype, and the random state of CPU and CUDA devices. What
    a module keeps (its hook family is as sticky) needs no care, since every case builds modules of its own.
    """
    tables = [*map(dict, _TABLES)]
    flags = [getattr(torch_module, name) for name in _FLAGS]
    grad, dtype, random = torch.is_grad_enabled(), torch.get_default_dtype(), torch.default_generator.get_state()
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        for table, content in zip(_TABLES, tables):
            if table != content:  # other modules of torch hold the table itself, so its content is what goes back
                table.clear()
                table.update(content)
        for name, flag in zip(_FLAGS, flags):
            setattr(torch_module, name, flag)
        if torch.is_grad_enabled() is not grad:
            torch.set_grad_enabled(grad)
        if torch.get_default_dtype() is not dtype:
            torch.set_default_dtype(dtype)
        torch.default_generator.set_state(random)
        if cuda:
            torch.cuda.set_rng_state_all(cuda)
