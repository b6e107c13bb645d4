"""The chapters of the contract that are programs: each module is one. Importing this package declares them all."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

for _module in sorted(iter_modules(__path__), key=lambda module: module.name):
    import_module(f"{__name__}.{_module.name}")
