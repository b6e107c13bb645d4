"""Faults in how contexts end where a hook raises in them: something that they set stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from ..engine import Fault, replaced

CLASSES = {
    "autocast": ("torch", "autocast"),
    "saved_tensors_hooks": ("torch.autograd.graph", "saved_tensors_hooks"),
    "detect_anomaly": ("torch.autograd", "detect_anomaly"),
    "one thread": ("torch.autograd", "set_multithreading_enabled"),
    "dual_level": ("torch.autograd.forward_ad", "dual_level"),
    "a function mode": ("torch.overrides", "TorchFunctionMode"),
    "a dispatch mode": ("torch.utils._python_dispatch", "TorchDispatchMode"),
}
"""Contexts that are classes."""

GENERATORS = {
    "disable_saved_tensors_hooks": ("torch.autograd.graph", "disable_saved_tensors_hooks"),
    "grad": ("torch._functorch.eager_transforms", "grad_increment_nesting"),
    "jvp": ("torch._functorch.eager_transforms", "jvp_increment_nesting"),
    "vmap": ("torch._functorch.vmap", "vmap_increment_nesting"),
    "set_checkpoint_early_stop": ("torch.utils.checkpoint", "set_checkpoint_early_stop"),
    "set_checkpoint_debug_enabled": ("torch.utils.checkpoint", "set_checkpoint_debug_enabled"),
}
"""Contexts that are generators, those of transforms among them."""


@contextmanager
def _stays(module: str, name: str) -> Iterator[None]:
    """A context is not left by an exception; it is once there is no fault any more."""
    open_still: list[Callable[[], Any]] = []

    def make(original: Any) -> Any:
        def leave(self: Any, kind: Any = None, *error: Any) -> Any:
            if kind is None:
                return original(self, kind, *error)
            open_still.append(lambda: original(self, None, None, None))
            return None

        return leave

    with replaced(getattr(import_module(module), name), "__exit__", make):
        yield
    for leave in reversed(open_still):
        with suppress(RuntimeError):  # what ran the program may have left it
            leave()


@contextmanager
def _stays_open(module: str, name: str) -> Iterator[None]:
    """The same of one that is a generator."""
    open_now: list[Any] = []

    def make(original: Any) -> Any:
        @contextmanager
        def enter(*args: Any, **options: Any) -> Iterator[Any]:
            open_now.append(original(*args, **options))
            yield open_now[-1].__enter__()
            open_now.pop().__exit__(None, None, None)

        return enter

    with replaced(import_module(module), name, make):
        yield
    for entered in reversed(open_now):
        with suppress(RuntimeError):
            entered.__exit__(None, None, None)


def _fault(name: str, patch: Any, path: tuple[str, str], since: str) -> Fault:
    return Fault(f"a hook that raises leaves {name} set", lambda: patch(*path), ("SM-03",), (), since)


FAULTS = (
    *(_fault(name, _stays, path, "2.0") for name, path in CLASSES.items()),
    *(_fault(name, _stays_open, path, "2.2") for name, path in GENERATORS.items()),
)
