"""Which layers of ``torch.nn`` can a topology hold? One class each, one place each.

A layer is a frozen dataclass with its settings, its parameters, its source line, its NumPy forward and its NumPy VJP.
Every module of this folder is imported here, so a new layer needs no second entry.
"""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
