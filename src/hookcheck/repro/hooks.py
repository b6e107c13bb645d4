"""How is a hook of a kind written in a script? Its parameters, and what it returns where it acts."""

from __future__ import annotations

from hookcheck.oracle import acts
from hookcheck.probe import kinds
from hookcheck.probe.kinds import HookKind

PARAMETERS = {
    kinds.BACKWARD: ("module", "grad_input", "grad_output"),
    kinds.BACKWARD_PRE: ("module", "grad_output"),
    kinds.FORWARD_PRE: ("module", "args"),
    kinds.FORWARD: ("module", "args", "output"),
    kinds.POST_ACCUMULATE: ("leaf",),
    kinds.MULTI_GRAD: ("gradients",),
    kinds.NODE: ("grad_inputs", "grad_outputs"),
    kinds.NODE_PRE: ("grad_outputs",),
}
"""What a hook is called with, by what it is called for; hooks on tensors with the gradient alone."""


def parameters(kind: HookKind) -> str:
    """What stands between the parentheses of a hook."""
    names = PARAMETERS.get(kind.call, ("gradient",))
    return ", ".join((*names[:2], "kwargs", *names[2:]) if kind.kwargs else names)


def returned(kind: HookKind) -> str:
    """The expression that the first hook of a chain returns; empty where hooks look on. See `hookcheck.oracle.acts`."""
    return _scaled(kind, f"{acts.FIRST}[i % {len(acts.FIRST)}]" if kind.acts.backward else str(acts.FORWARD[0]))


def returned_later(kind: HookKind) -> str:
    """The expression that a later hook of a chain returns, of ``factor``."""
    return _scaled(kind, "factor")


def later_factors(kind: HookKind) -> tuple[float, ...]:
    """What the later hooks of a chain scale by, in the order of their calls."""
    return acts.LATER if kind.acts.backward else acts.FORWARD[1:]


def _scaled(kind: HookKind, factor: str) -> str:
    if kind.acts.backward:
        gradients = "grad_input" if kind.acts.grad_input else "grad_output"
        return f"tuple(scaled(g, {factor}) for i, g in enumerate({gradients}))"
    if kind.acts.args:
        return f"(*(scaled(value, {factor}) for value in args[:1]), *args[1:])"
    if kind.acts.outputs:
        plain = 'isinstance(output, tuple) and not hasattr(output, "_fields")'
        return f"tuple(scaled(o, {factor}) for o in output) if {plain} else scaled(output, {factor})"
    return ""
