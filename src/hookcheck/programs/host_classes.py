"""Classes of modules that torch meets as those of a user: with methods of their own, or made for one call."""

from __future__ import annotations

from functools import cache
from typing import Any

from hookcheck.programs.host_changes import Module


@cache
def own_methods(kind: type) -> type:
    """A subclass with methods of its own, which all do what those of ``kind`` do; it is pickled by that."""

    class Own(kind):
        def __reduce__(self) -> Any:
            return blank, (kind,), self.__getstate__() if hasattr(object, "__getstate__") else vars(self)

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return super().__call__(*args, **kwargs)

        def __getattr__(self, name: str) -> Any:
            return super().__getattr__(name)

        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value)

        def __setstate__(self, state: Any) -> None:
            super().__setstate__(state)

        def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
            super()._save_to_state_dict(destination, prefix, keep_vars)

        def _load_from_state_dict(self, *args: Any) -> None:
            super()._load_from_state_dict(*args)

    Own.__name__ = kind.__name__
    return Own


def blank(kind: type) -> Module:
    """A module with methods of its own, which pickle gives its state once it knows it: hooks may refer to it."""
    return object.__new__(own_methods(kind))


def with_methods(module: Module) -> Module:
    """The module, as one of a subclass with methods of its own."""
    module.__class__ = own_methods(type(module))
    return module


def temporary(module: Module) -> Module:
    """The module, which has each call run by another one with its attributes; that one dies as the call returns, and is
    equal to it meanwhile, though not the same. Under a legacy backward hook it is called itself: such a hook raises
    where its module is gone, as networks in replicas show."""
    kind: Any = type(module)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self._is_full_backward_hook is False:
            return kind.__call__(self, *args, **kwargs)
        other: Any = object.__new__(type(self))
        object.__setattr__(other, "__dict__", vars(self))
        return kind.__call__(other, *args, **kwargs)

    def equal(self: Any, other: Any) -> bool:
        return vars(self) is getattr(other, "__dict__", None)

    methods = {"__call__": call, "__eq__": equal, "__hash__": lambda self: id(vars(self))}
    module.__class__ = type(kind.__name__, (kind,), methods)
    return module
