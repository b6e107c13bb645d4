"""How can what speaks of torch be read without torch? ``torch`` and ``nn`` here are imported when they are first used.

Programs are declared in modules that commands such as ``hookcheck list`` read too, on machines without torch. So a
class that has a base in torch stands inside a function, or in a module that is itself one of these.
"""

from __future__ import annotations

from importlib import import_module
from sys import modules
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import nn
else:

    class Lazily(ModuleType):
        """A module that is imported when an attribute of it is first asked for."""

        def __getattr__(self, name: str) -> Any:
            """The attribute of the module itself."""
            return getattr(modules.get(self.__name__) or import_module(self.__name__), name)

    torch, nn = Lazily("torch"), Lazily("torch.nn")

__all__ = ["nn", "torch"]
