"""How do programs see what hooks do? By nets that show what passes through them, and hooks that keep what they get."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hookcheck.probe.lazy import nn
from hookcheck.programs.nets import net, times


def given() -> Any:
    """A module whose output is what its ``forward`` gets: ``(args, kwargs)``."""
    return net(lambda module, *args, **kwargs: (args, kwargs))


def nested() -> tuple[Any, Any]:
    """A module that multiplies by 2, and one around it that multiplies by 3."""
    inner = times(2.0)
    return inner, net(lambda module, x: 3 * module.inner(x), inner=inner)


def linear(weight: float | None = None) -> Any:
    """A module of torch's own with one parameter, ``weight``, of one number."""
    module = nn.Linear(1, 1, bias=False)
    if weight is not None:
        nn.init.constant_(module.weight, weight)
    return module


def globally(kind: str, hook: Any, **options: Any) -> Any:
    """Registers ``hook`` for all modules: with ``register_module_`` and the kind, say ``forward_hook``."""
    return getattr(nn.modules.module, f"register_module_{kind}")(hook, **options)


def noting(log: list[Any], word: Any) -> Callable[..., None]:
    """A hook of any kind that appends ``word`` to ``log`` and changes nothing."""
    return lambda *arguments: log.append(word)


def keeping(log: list[Any]) -> Callable[..., None]:
    """A hook of any kind that appends its arguments to ``log``, as a tuple, and changes nothing."""
    return lambda *arguments: log.append(arguments)


@dataclass
class Bound:
    """What a hook of any kind is a method of: ``hook`` appends ``bound`` to ``log`` and changes nothing."""

    log: list[Any]

    def hook(self, *arguments: Any) -> None:
        """The hook."""
        self.log.append("bound")
