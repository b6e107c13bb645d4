"""What torch.compile does with the hooks of a module.

``torch.compile`` traces the call of a module, and with it the forward hooks and forward pre-hooks that are there then.
Changes that come later are noticed for certain only with the flag
``torch._dynamo.config.skip_nnmodule_hook_guards`` set to False.
"""

from __future__ import annotations

from hookcheck.contract.programs import torch_compile as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
