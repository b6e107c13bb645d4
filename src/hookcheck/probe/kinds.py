"""Which hook kinds are there, since when, and by which function is each registered? Data only; torch is not needed."""

from __future__ import annotations

from dataclasses import dataclass

from hookcheck.errors import HookcheckError


@dataclass(frozen=True)
class HookKind:
    """One way to be called by torch.

    ``variant`` is ``legacy`` or ``full``. ``scope`` is ``module`` (``register`` is a method of ``nn.Module``) or
    ``global`` (``register`` is a function of ``torch.nn.modules.module``). ``since`` is the first release that has it.
    """

    name: str
    variant: str
    scope: str
    register: str
    since: str


KINDS = {
    kind.name: kind
    for kind in (
        HookKind("backward", "legacy", "module", "register_backward_hook", "1.7"),
        HookKind("full_backward", "full", "module", "register_full_backward_hook", "1.8"),
        HookKind("global_backward", "legacy", "global", "register_module_backward_hook", "1.7"),
        HookKind("global_full_backward", "full", "global", "register_module_full_backward_hook", "1.8"),
    )
}
"""The hook kinds by name, in the order in which reports list them."""


def kind_named(name: str) -> HookKind:
    """The hook kind of that name.

    Raises:
        HookcheckError: there is none.
    """
    if name not in KINDS:
        raise HookcheckError(f"unknown hook kind {name!r}; choose from {', '.join(KINDS)}")
    return KINDS[name]
