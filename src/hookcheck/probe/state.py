"""How is torch's process-wide state kept as it was? One context manager around everything that a case does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn.modules import module as torch_module

_TABLES = tuple(name for name in vars(torch_module) if name.startswith("_global_"))


@contextmanager
def preserved() -> Iterator[None]:
    """On leaving, even by an exception, puts back what a case may have changed in the process.

    That is: every global hook table and flag of ``torch.nn.modules.module`` (the flag of the global hook family is
    sticky: torch itself never resets it), grad mode, default dtype, and the random state of CPU and CUDA devices. What
    a module keeps (its hook family is as sticky) needs no care, since every case builds modules of its own.
    """
    tables = {name: _copy(getattr(torch_module, name)) for name in _TABLES}
    grad, dtype, random = torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_rng_state()
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        for name, value in tables.items():
            _restore(name, value)
        torch.set_grad_enabled(grad)
        torch.set_default_dtype(dtype)
        torch.set_rng_state(random)
        if cuda:
            torch.cuda.set_rng_state_all(cuda)


def _copy(value: Any) -> Any:
    return dict(value) if isinstance(value, dict) else value


def _restore(name: str, value: Any) -> None:
    current = getattr(torch_module, name)
    if isinstance(current, dict):  # other modules of torch hold the table itself, so its content is what goes back
        if current != value:
            current.clear()
            current.update(value)
    elif current is not value:
        setattr(torch_module, name, value)
