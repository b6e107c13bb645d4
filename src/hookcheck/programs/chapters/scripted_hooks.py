"""Which hooks does TorchScript compile? Those of whatever a compiled method calls, and not torch's own pre-hooks.

A script holds the hooks of a module and runs them as in eager; a method that is exported calls the parts of its module
and so runs theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from hookcheck.contract.clause import PIN
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.program import program

HOOKS: dict[str, tuple[Callable[[], Any], float]] = {
    "register_forward_hook": (lambda: import_module("hookcheck.probe.scripted").adds_one, 7.0),
    "register_forward_pre_hook": (lambda: import_module("hookcheck.probe.scripted").triples, 18.0),
}
"""What registers a hook that a script can have, such a hook, and what 2x is with it at 3: 2·3 + 1, or 2·(3·3)."""

EXPORTING: dict[str, Callable[[], Any]] = {
    "Exporting": lambda: import_module("hookcheck.probe.scripted").Exporting,
    "ExportingAlone": lambda: import_module("hookcheck.probe.scripted").ExportingAlone,
}
"""Classes of modules with an exported method, by name: with a forward, and without. What torch could not compile once,
it refuses for another reason the next time, so each time a class is made of them that it has not seen."""

PLACES: dict[str, Callable[[Any], list[Any]]] = {
    "the part": lambda net: [net.inner],
    "the module": lambda net: [net],
    "both": lambda net: [net.inner, net],
}
"""Which modules have the hook."""


@program("TR-18", PIN, since="1.8", source="torch.jit.export, 'used as an entry point'; pytorch#76026, pytorch#49544")
def exported_methods_run_hooks_of_parts(check: Check) -> None:
    """A method that is exported runs the hooks of the parts that it calls as in eager, and not those of its own module,
    whether or not that has a forward which is compiled as well."""
    x = torch.tensor([3.0])
    for class_name, module in EXPORTING.items():
        for register, (hook, due_of_part) in HOOKS.items():
            for place, hooked in PLACES.items():
                net = type(class_name, (module(),), {})()
                for on in hooked(net):
                    getattr(on, register)(hook())
                due = 6.0 if place == "the module" else due_of_part
                fact = f"{class_name}, {register} on {place}"
                check.equal(f"{fact}: in eager", net.twice(x), [due])
                script = check.works(f"{fact}: scripting", partial(torch.jit.script, net))
                if script is not None:
                    check.equal(f"{fact}: in the script", script.twice(x), [due])


def normed() -> tuple[Any, str]:
    """A Linear whose weight (3, 4) a pre-hook computes of its norm, and the name of what that is in."""
    return nn.utils.weight_norm(weighing()), "weight_g"


def pruned() -> tuple[Any, str]:
    """A Linear whose weight (3, 4) a pre-hook computes of a mask, and the name of what is masked."""
    return import_module("torch.nn.utils.prune").identity(weighing(), "weight"), "weight_orig"


def weighing() -> Any:
    """A Linear that gives 3x + 4y."""
    linear = nn.Linear(2, 1, bias=False)
    linear.weight.data.copy_(torch.tensor([[3.0, 4.0]]))
    return linear


@program(
    "TR-17", PIN, since="1.8", source="torch.nn.utils.weight_norm, 'recomputes before every forward'; pytorch#30754"
)
def what_a_pre_hook_computes_is_in_the_graph(check: Check) -> None:
    """A tensor that a pre-hook of torch computes is computed in what is traced of its module, and in a script of it: of
    the numbers that there are in each call, whether they changed before or after it was made."""
    for name, make in {"weight_norm": normed, "pruned": pruned}.items():
        for way in ("jit.trace", "jit.script"):
            for turn in ("before", "after"):
                net, source = make()
                if turn == "before":
                    getattr(net, source).data.mul_(2)
                fact = f"{name}, {way}, changed {turn}"
                act = partial(torch.jit.trace, net, torch.ones(1, 2))
                result = check.works(fact, act if way == "jit.trace" else partial(torch.jit.script, net))
                if result is not None:
                    if turn == "after":
                        getattr(result, source).data.mul_(2)
                    check.equal(f"{fact}: 2·(3 + 4)", result(torch.ones(1, 2)), [[14]])
