"""How is a hook of a kind written in a script? Its parameters, and what it returns where it acts."""

from __future__ import annotations

from hookcheck.oracle.acts import BACKWARD as FACTORS
from hookcheck.oracle.acts import FORWARD as FACTOR
from hookcheck.probe.kinds import BACKWARD, BACKWARD_PRE, FORWARD, FORWARD_PRE, POST_ACCUMULATE, HookKind

PARAMETERS = {
    BACKWARD: ("module", "grad_input", "grad_output"),
    BACKWARD_PRE: ("module", "grad_output"),
    FORWARD_PRE: ("module", "args"),
    FORWARD: ("module", "args", "output"),
    POST_ACCUMULATE: ("leaf",),
}
"""What a hook is called with, by what it is called for; hooks on tensors with the gradient alone."""


def parameters(kind: HookKind) -> str:
    """What stands between the parentheses of a hook."""
    names = PARAMETERS.get(kind.call, ("gradient",))
    return ", ".join((*names[:2], "kwargs", *names[2:]) if kind.kwargs else names)


def returned(kind: HookKind) -> str:
    """The expression that a hook which acts returns; empty for one that looks on. See `hookcheck.oracle.acts`."""
    if kind.acts.backward:
        gradients = "grad_input" if kind.acts.grad_input else "grad_output"
        return f"tuple(scaled(g, {FACTORS}[i % {len(FACTORS)}]) for i, g in enumerate({gradients}))"
    if kind.acts.args:
        return f"(*(scaled(value, {FACTOR}) for value in args[:1]), *args[1:])"
    if kind.acts.outputs:
        plain = 'isinstance(output, tuple) and not hasattr(output, "_fields")'
        return f"tuple(scaled(o, {FACTOR}) for o in output) if {plain} else scaled(output, {FACTOR})"
    return ""
