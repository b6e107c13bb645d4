"""Do hooks that meet compiled code do what they do in eager, wherever they are registered?

Compiled code may register hooks itself, its results may have hooks of their own, and modules that differ in nothing may
have hooks that differ in nothing. What is compiled, and how often, is a matter of speed; what hooks get is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.compiling import BACKENDS, dynamo, fresh, recording, scaling
from hookcheck.programs.program import program

ACTING: dict[str, tuple[Any, float, float]] = {
    "register_forward_pre_hook": (lambda module, args: (args[0] + 1,), 8.0, 2.0),
    "register_forward_hook": (lambda module, args, output: output + 1, 7.0, 2.0),
    "register_full_backward_pre_hook": (lambda module, grad_output: (10 * grad_output[0],), 6.0, 20.0),
    "register_full_backward_hook": (lambda module, grad_input, grad_output: (10 * grad_input[0],), 6.0, 20.0),
}
"""A hook that acts, of each kind that a module takes, with output and gradient of 2x at 3 under it: 2·(3 + 1), 2·3 + 1
and 2·3; 2 and 10·2."""


def hooks_of(module: Any) -> int:
    """How many hooks on its calls and its backward a module has."""
    tables = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")
    return sum(len(getattr(module, table)) for table in tables)


def hooking(module: Any, register: str, hook: Any) -> Callable[[Any], Any]:
    """What registers the hook on the module, calls that, and removes the hook."""

    def call(x: Any) -> Any:
        handle = getattr(module, register)(hook)
        y = module(x)
        handle.remove()
        return y

    return call


def called_with(call: Callable[[Any], Any], value: float) -> tuple[float, float]:
    """What ``call`` gives at a number, and the gradient there."""
    x = torch.tensor(value, requires_grad=True)
    y = call(x)
    y.backward()
    return y.item(), x.grad.item()


@program("CC-01", PIN, since="2.1", source="torch.nn.Module.register_forward_hook and its siblings; pytorch#149921")
@fresh()
def compiled_code_hooks_a_module(check: Check) -> None:
    """A hook that compiled code registers on a module, calls it under and removes acts as in eager, of each kind and in
    each call, and nothing is left of it; such code is one graph."""
    for register, (hook, output, gradient) in ACTING.items():
        dynamo().reset()
        whole = torch.compile(hooking(scaling(), register, hook), backend="eager", fullgraph=True)
        check.works(f"{register}: one graph", partial(whole, torch.tensor(3.0)))
        for backend in BACKENDS:
            dynamo().reset()
            module = scaling()
            compiled = torch.compile(hooking(module, register, hook), backend=backend)
            for turn in ("first", "second"):
                check.equal(f"{register}, {backend}: {turn} call", called_with(compiled, 3.0), (output, gradient))
            check.calls(f"{register}, {backend}: hooks left", hooks_of(module), 0)
            check.equal(f"{register}, {backend}: without it", called_with(module, 3.0), (6.0, 2.0))


def _pair(x: Any) -> tuple[Any, Any]:
    """2x, and what is made of it: 6x."""
    y = 2 * x
    return y, 3 * y


def _from_inside(x: Any) -> tuple[Any, Any]:
    """A view of 2x, and what is made of that: 6x."""
    y = (2 * x).view(1)
    return y, 3 * y.sum()


@program("CC-02", PROMISE, since="2.1", source="torch.Tensor.register_hook, 'every time a gradient with respect to the")
@fresh()
def hooks_on_a_result_that_another_is_made_of(check: Check) -> None:
    """Of two results of compiled code of which the second is made of the first, a hook on the first gets the gradient
    that comes through the second, as in eager, and what it returns counts; and so does ``retain_grad``."""
    for name, function in {"a result": _pair, "a view": _from_inside}.items():
        for way in ("plain", *BACKENDS):
            dynamo().reset()
            call = function if way == "plain" else torch.compile(function, backend=way)
            for losses, due in (("the second", 3.0), ("both", 4.0)):  # 3, and 1 more of the first itself
                log: list[Any] = []
                x = torch.tensor(1.0, requires_grad=True)
                first, second = call(x)
                first.retain_grad()
                first.register_hook(lambda grad, log=log: log.append(grad if grad is None else grad.sum().item()))
                first.register_hook(lambda grad: grad if grad is None else 10 * grad)
                (second if losses == "the second" else second + first.sum()).sum().backward()
                fact = f"{name}, {way}, {losses}"
                check.equal(f"{fact}: the hook", log, [due])
                check.equal(f"{fact}: retained", None if first.grad is None else first.grad.sum(), 10 * due)
                check.equal(f"{fact}: gradient", x.grad, 20 * due)


LOOKING: dict[str, tuple[str, Any, dict[str, bool]]] = {
    "no hook": ("", None, {}),
    "pre-hooks": ("register_forward_pre_hook", lambda module, args: None, {}),
    "pre-hooks with keywords": (
        "register_forward_pre_hook", lambda module, args, kwargs: None, {"with_kwargs": True},
    ),
    "forward hooks": ("register_forward_hook", lambda module, args, output: None, {}),
    "forward hooks with keywords": (
        "register_forward_hook", lambda module, args, kwargs, output: None, {"with_kwargs": True},
    ),
    "forward hooks that are always called": (
        "register_forward_hook", lambda module, args, output: None, {"always_call": True},
    ),
}  # fmt: skip
"""What registers a hook that looks on, the hook, and with which options."""


def layers(register: str, hook: Any, options: dict[str, bool], place: str) -> Iterator[Any]:
    """Three modules that differ in nothing, each with a Linear in it and a hook on itself or on that."""

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(1, 1)

        def forward(self, x: Any) -> Any:
            return self.inner(x)

    for _ in range(3):
        layer = Layer()
        if register:
            getattr(layer if place == "itself" else layer.inner, register)(hook, **options)
        yield layer


@program("CC-03", PIN, since="2.6", source="torch.compile, inlining of modules; pytorch#125836, pytorch#170110")
@fresh()
def equal_layers_with_equal_hooks_are_compiled_once(check: Check) -> None:
    """Layers that differ in nothing are compiled once with the same hook on each of them as without hooks, wherever it
    is and whatever its options are."""
    for name, (register, hook, options) in LOOKING.items():
        for place in ("itself", "its Linear"):
            dynamo().reset()
            graphs: list[list[str]] = []
            backend = recording(graphs)
            for layer in layers(register, hook, options, place):
                torch.compile(layer, backend=backend)(torch.ones(1, 1))
            check.calls(f"{name} on {place}: graphs", len(graphs), 1)


@program("CC-04", PIN, since="2.5", source="torch.compiler.disable; torch.nn.Module.compile; pytorch#142358")
@fresh()
def a_disabled_hook_leaves_the_module_compiled(check: Check) -> None:
    """A hook that is not to be compiled is called each time with numbers, and the forward of its module is compiled all
    the same, whichever way the module is compiled."""
    for name, (register, _, options) in LOOKING.items():
        if not register:
            continue
        for place in ("itself", "its Linear"):
            for way in ("torch.compile", "Module.compile"):
                dynamo().reset()
                graphs: list[list[str]] = []
                backend = recording(graphs)
                log: list[Any] = []
                looking = torch.compiler.disable(lambda *arguments, log=log: log.append(type(arguments[1][0])))
                layer = next(layers(register, looking, options, place))
                call = torch.compile(layer, backend=backend) if way == "torch.compile" else layer
                if way == "Module.compile":
                    layer.compile(backend=backend)
                for _ in range(2):
                    call(torch.ones(1, 1))
                fact = f"{name} on {place}, {way}"
                check.order(f"{fact}: what it got", log, [torch.Tensor] * 2)
                check.true(f"{fact}: there is a graph", len(graphs) > 0)
