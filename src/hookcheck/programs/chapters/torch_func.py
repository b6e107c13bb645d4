"""What becomes of hooks under the transforms of torch.func? Forward hooks run in them; full ones are refused.

``torch.func.functional_call`` calls a module with parameters that it is given, hooks and all; ``vmap``, ``grad`` and
``jacrev`` run forward hooks, and refuse or pass by the full backward hooks.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.nets import net
from hookcheck.programs.program import program
from hookcheck.programs.watching import noting

REFUSED = "setup_context"
FULL = {
    "register_full_backward_hook": lambda module, grad_input, grad_output: None,
    "register_full_backward_pre_hook": lambda module, grad_output: None,
}
"""The hooks that put an identity of their own around a module."""


def _func() -> Any:
    return import_module("torch.func")


def _scale() -> Any:
    """A module that gives w·x, with w = 2."""

    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.tensor(2.0))

        def forward(self, x: Any) -> Any:
            return self.w * x

    return Scale()


def _number(value: Any) -> Any:
    """What torch gives, which may have a grad_fn still, or None."""
    return value if value is None else value.detach()


@program("TF-01", PROMISE, since="2.0", source="torch.func.functional_call")
def functional_call_runs_hooks(check: Check) -> None:
    """Under functional_call the forward hooks and full backward hooks of a module run, each once."""
    net = _scale()
    log: list[Any] = []
    net.register_forward_hook(lambda module, args, output: log.append(("forward", args[0].item(), output.item())))
    net.register_full_backward_hook(lambda module, gi, go: log.append(("backward", gi[0].item(), go[0].item())))
    w, x = torch.tensor(5.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    output = _func().functional_call(net, {"w": w}, (x,))
    check.equal("output", _number(output), 15.0)
    output.backward()
    check.equal("gradients of the given parameter and of x", [w.grad, x.grad], [3.0, 5.0])
    check.order("hooks", log, [("forward", 3.0, 15.0), ("backward", 5.0, 1.0)])
    forms: dict[str, tuple[Any, Any, Any]] = {
        "one argument": ({"w": w}, x, None),
        "a keyword": ({"w": w}, (), {"x": x}),
        "two dictionaries": (({}, {"w": w}), (x,), None),
    }
    for what, given in forms.items():
        net, calls = _scale(), list[Any]()

        def note(module: Any, args: Any, kwargs: Any, *output: Any, calls: list[Any] = calls) -> None:
            calls.append([module.w.item(), [each.item() for each in args], [*kwargs], len(output)])

        net.register_forward_pre_hook(note, with_kwargs=True)
        net.register_forward_hook(note, with_kwargs=True)
        check.equal(f"{what}: output", _number(_func().functional_call(net, *given)), 15.0)
        args, names = ([], ["x"]) if what == "a keyword" else ([3.0], [])
        check.equal(f"{what}: w, arguments, keywords in the hooks", calls, [[5.0, args, names, n] for n in (0, 1)])


@program("TF-02", PIN, since="2.0", source="torch.func.functional_call")
def hooks_see_the_given_parameters(check: Check) -> None:
    """Under functional_call forward hooks find the given parameters in the module, and backward hooks its own."""
    net = _scale()
    log: list[tuple[str, float]] = []
    net.register_forward_pre_hook(lambda module, args: log.append(("pre", module.w.item())))
    net.register_forward_hook(lambda module, args, output: log.append(("forward", module.w.item())))
    net.register_full_backward_hook(lambda module, gi, go: log.append(("backward", module.w.item())))
    weight, given = net.w, torch.tensor(5.0, requires_grad=True)
    _func().functional_call(net, {"w": given}, (torch.tensor(3.0, requires_grad=True),)).backward()
    check.order("w in the hooks", log, [("pre", 5.0), ("forward", 5.0), ("backward", 2.0)])
    check.true("w of the module is its own again", net.w is weight)
    check.equal("its gradient and that of the given one", [weight.grad, given.grad], [None, 3.0])
    counting = _scale()
    counting.register_buffer("calls", torch.tensor(0.0))
    counting.register_forward_hook(lambda module, args, output: setattr(module, "calls", module.calls + 1))
    state = {"calls": torch.tensor(5.0)}
    _func().functional_call(counting, state, (torch.tensor(3.0),))
    check.equal("a buffer that a hook assigns: given, its own", [state["calls"], counting.calls], [6.0, 0.0])


@program("TF-03", PIN, since="2.0", source="torch.func.vmap; functorch#638")
def vmap_without_gradients_works(check: Check) -> None:
    """Without gradients vmap runs a module with full hooks, calls its forward hook once, and its full hooks never."""
    net = _scale()
    shapes: list[Any] = []
    calls: list[str] = []
    net.register_forward_hook(lambda module, args, output: shapes.append(list(output.shape)))
    net.register_full_backward_hook(lambda module, grad_input, grad_output: calls.append("hook"))
    net.register_full_backward_pre_hook(lambda module, grad_output: calls.append("pre-hook"))
    with torch.no_grad():
        output = _func().vmap(net)(torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    check.equal("output", output, [[2, 4], [6, 8], [10, 12]])
    check.equal("shapes in the forward hook", shapes, [[2]])
    check.order("full hooks", calls, [])


@program("TF-04", PROMISE, since="2.0", source="torch.func.vmap; functorch#638")
def hooks_under_vmap_are_called(check: Check) -> None:
    """Hooks on what vmap runs are called in the backward that follows, as they are without vmap."""
    net = _scale()
    calls: list[str] = []
    net.register_full_backward_hook(lambda module, grad_input, grad_output: calls.append("module"))
    net.w.register_hook(lambda grad: calls.append("parameter"))

    def hooked(x: Any) -> Any:
        output = net(x)
        output.register_hook(lambda grad: calls.append("output"))
        return output

    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (_func().vmap(net)(x) * torch.tensor([1.0, 10.0, 100.0])).sum().backward()
    check.equal("gradients of x and w", [x.grad, net.w.grad], [[2.0, 20.0, 200.0], 321.0])
    check.calls("calls of a hook on the parameter", calls.count("parameter"), 1)
    check.calls("calls of a full backward hook", calls.count("module"), 1)
    check.works("a hook on the output, registered under vmap", lambda: _func().vmap(hooked)(x))


def _refuses(check: Check, transform: Any) -> None:
    """States that a transform refuses the hooks that put an identity around a module, and runs others."""
    for name, hook in FULL.items():
        net = _scale()
        getattr(net, name)(hook)
        check.raises(name, RuntimeError, lambda net=net: transform(net)(torch.tensor(3.0)), REFUSED)
    net = _scale()
    net.register_forward_hook(lambda module, args, output: 10 * output)
    check.equal("with a forward hook", _number(transform(net)(torch.tensor(3.0))), 20.0)

    def hooked(x: Any) -> Any:
        output = 2 * x
        output.register_hook(lambda grad: 100 * grad)
        return output

    check.equal("with a hook on a tensor", _number(transform(hooked)(torch.tensor(3.0))), 200.0)


@program("TF-05", PIN, since="2.0", source="torch.func.grad; pytorch#99556")
def grad_refuses_full_hooks(check: Check) -> None:
    """torch.func.grad raises on full backward hooks and pre-hooks; forward hooks and hooks on tensors work in it."""
    _refuses(check, _func().grad)


@program("TF-06", PIN, since="2.0", source="torch.func.jacrev; functorch#1124")
def jacrev_refuses_full_hooks(check: Check) -> None:
    """torch.func.jacrev raises on full backward hooks and pre-hooks; jacfwd, which runs no backward, calls none."""
    _refuses(check, _func().jacrev)
    net = _scale()
    calls: list[None] = []
    net.register_full_backward_hook(lambda module, grad_input, grad_output: calls.append(None))
    check.equal("jacfwd with a full backward hook", _number(_func().jacfwd(net)(torch.tensor(3.0))), 2.0)
    check.calls("calls of that hook", len(calls), 0)


@program(
    "TF-07",
    PIN,
    since="2.0",
    source="torch.func, torch.autograd.graph.saved_tensors_hooks; pytorch#122729",
)
def saved_tensors_hooks_are_refused(check: Check) -> None:
    """grad and jacrev raise under saved-tensors hooks; vmap and jacfwd do not."""
    packed: list[None] = []

    def square(x: Any) -> Any:
        return x * x

    def under_hooks(transform: Any, x: Any) -> Any:
        hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: (packed.append(None), t)[1], lambda t: t)
        with hooks:
            return transform(square)(x)

    x = torch.tensor(3.0)
    for name in ("grad", "jacrev"):
        transform = getattr(_func(), name)
        check.raises(name, RuntimeError, lambda t=transform: under_hooks(t, x), "saved tensor hooks")
        check.equal(f"{name} without them", _number(transform(square)(x)), 6.0)
    result = check.works("jacfwd", lambda: under_hooks(_func().jacfwd, x))
    if result is not None:
        check.equal("derivative by jacfwd", _number(result), 6.0)
    packed.clear()
    result = check.works("vmap", lambda: under_hooks(_func().vmap, torch.tensor([1.0, 2.0], requires_grad=True)))
    if result is not None:
        check.equal("squares by vmap", _number(result), [1, 4])
        check.true("the pack hook is called under vmap", bool(packed), "call")


@program("TF-08", PROMISE, since="2.0", source="torch.func.grad; pytorch#99556")
def grad_of_a_hooked_module(check: Check) -> None:
    """torch.func.grad gives the gradient of a module that has a full backward hook."""
    net = _scale()
    handle = net.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    gradient = check.works("grad under the hook", lambda: _func().grad(net)(torch.tensor(3.0)))
    if gradient is not None:
        check.equal("gradient", _number(gradient), 2.0)
    handle.remove()
    gradient = check.works("grad once it is removed", lambda: _func().grad(net)(torch.tensor(3.0)))
    check.equal("gradient once it is removed", _number(gradient), 2.0)


@program("TF-09", PROMISE, since="2.0", source="torch.func.jacrev; functorch#1124")
def jacobians_of_a_hooked_module(check: Check) -> None:
    """vmap of jacrev gives the Jacobian for each sample of a module that has a full backward hook."""
    net = nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    jacobian = _func().vmap(_func().jacrev(net))
    samples = torch.ones(3, 2)
    handle = net.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    jacobians = check.works("Jacobians under the hook", lambda: jacobian(samples))
    if jacobians is not None:
        check.equal("the Jacobians", _number(jacobians), 3 * [[[1, 2], [3, 4]]])
    handle.remove()
    jacobians = check.works("Jacobians once it is removed", lambda: jacobian(samples))
    check.equal("the Jacobians once it is removed", _number(jacobians), 3 * [[[1, 2], [3, 4]]])


FAILING = ("register_forward_pre_hook", "register_forward_hook", "forward", "a submodule", "a name that is not there")
"""Where a call raises that was given parameters: in a hook, in the module or in what is in it, or before that."""


@program("TF-10", PROMISE, since="2.0", source="torch.func.functional_call, 'by replacing the module parameters'")
def a_failing_functional_call_leaves_nothing(check: Check) -> None:
    """After a functional_call that raises, wherever it does, a module has its own parameters and buffers again, and the
    hooks that it had, which the next call meets, as those of its parameters do."""
    for where in FAILING:
        log: list[Any] = []
        failing = [True]

        def fails(*_: Any, failing: list[bool] = failing) -> None:
            if failing:
                raise ValueError("on purpose")

        part = net(lambda module, x: x)
        if where == "a submodule":
            part.register_forward_hook(fails)

        def forward(module: Any, x: Any, where: str = where, fails: Any = fails) -> Any:
            if where == "forward":
                fails()
            return module.part(module.w * x + module.shift)

        module = net(forward, w=2.0, part=part)
        module.register_buffer("shift", torch.tensor(1.0))
        for kind in ("forward_pre_hook", "forward_hook", "full_backward_hook"):
            getattr(module, f"register_{kind}")(noting(log, kind))
        module.w.register_hook(noting(log, "the parameter's"))
        if where.startswith("register"):
            getattr(module, where)(fails)
        originals = [module.w, module.shift]
        given = {"w": torch.tensor(5.0), "shift": torch.tensor(7.0)}
        if where == "a name that is not there":
            given["v"] = torch.tensor(11.0)
        x = torch.tensor(3.0, requires_grad=True)
        call = partial(_func().functional_call, module, given, (x,), strict=True)
        error, says = (RuntimeError, "Unexpected key") if "v" in given else (ValueError, "on purpose")
        check.raises(f"{where}: the call", error, call, says)
        check.true(f"{where}: what is its own", module.w is originals[0] and module.shift is originals[1])
        failing.clear()
        log.clear()
        output = module(x)
        check.equal(f"{where}: the next output: 2 · 3 + 1", _number(output), 7.0)
        output.backward()
        check.equal(f"{where}: its gradient", module.w.grad, 3.0)
        due = ["forward_hook", "forward_pre_hook", "full_backward_hook", "the parameter's"]
        check.equal(f"{where}: hooks in that run", sorted(log), due)


@program("TF-11", PROMISE, since="2.0", source="torch.func.grad, torch.inference_mode; pytorch#177318")
def transforms_call_hooks_in_inference_mode(check: Check) -> None:
    """In inference mode the transforms that compute gradients compute what they do outside of it, and call hooks on
    tensors."""
    func = _func()
    for name, transform in {
        "grad": func.grad,
        "vjp": lambda f: lambda x: func.vjp(f, x)[1](torch.tensor(1.0))[0],
        "jacrev": func.jacrev,
    }.items():
        calls: list[float] = []

        def square(x: Any, calls: list[float] = calls) -> Any:
            if x.requires_grad:
                x.register_hook(lambda grad: calls.append(1.0))
            return x * x

        with torch.inference_mode():
            result = check.works(f"{name} in inference mode", lambda t=transform, f=square: t(f)(torch.tensor(3.0)))
        check.equal(f"{name}: gradient of x² at 3", result, 6.0)
        check.calls(f"{name}: calls of a hook on x", len(calls), 1)


@program("TF-12", PROMISE, since="2.0", source="torch.func.functional_call, tie_weights; pytorch#86708, pytorch#164759")
def shared_parameters_are_given_and_put_back(check: Check) -> None:
    """functional_call gives a parameter to each name under which a module has it, be the parameter there twice or the
    module that has it, and then the module has its own again, whichever names it was given by, and so do its hooks."""
    functional_call: Any = _func().functional_call
    inner, tied = _scale(), _scale()
    tied.v = tied.w
    hosts: dict[str, tuple[Any, Any, tuple[str, ...]]] = {
        # each multiplies twice
        "a parameter of two names": (net(lambda m, x: m.part.v * m.part(x), part=tied), tied, ("part.w", "part.v")),
        "a module of two names": (net(lambda m, x: m.b(m.a(x)), a=inner, b=inner), inner, ("a.w", "b.w")),
    }
    for what, (host, part, names) in hosts.items():
        weight, log = part.w, list[float]()
        part.register_forward_hook(lambda module, args, output, log=log: log.append(module.w.item()))
        for name in names:
            given, x = torch.tensor(5.0, requires_grad=True), torch.tensor(3.0)
            parameters = {name: given}
            output = functional_call(host, parameters, (x,))
            output.backward()
            calls = 2 if part is inner else 1
            check.equal(f"{what}, by {name}: output: 5 · 5 · 3", _number(output), 75.0)
            check.equal(f"{what}, by {name}: gradient of what is given: 2 · 5 · 3", given.grad, 30.0)
            check.equal(f"{what}, by {name}: the weight in the hook", log, [5.0] * calls)
            check.order(f"{what}, by {name}: the names in the dictionary after it", [*parameters], [name])
            check.true(f"{what}, by {name}: the weight is the module's own after it", part.w is weight)
            log.clear()
            check.equal(f"{what}, by {name}: output of the next call: 2 · 2 · 3", _number(host(x)), 12.0)
            log.clear()
            part.w = weight  # whatever was left there


@program("TF-13", PROMISE, since="2.0", source="torch.func.functionalize; torch.autograd.forward_ad; pytorch#192629")
def tangents_in_hooks_under_transforms(check: Check) -> None:
    """A forward hook reads the tangents of a dual tensor, and what it returns carries its tangent on, where a module is
    called, by functional_call too, under functionalize and under vmap."""
    fw: Any = torch.autograd.forward_ad
    func, x = _func(), torch.tensor([3.0, 4.0])
    ways: dict[str, Any] = {
        "a call": lambda net, dual: net(dual),
        "functional_call": lambda net, dual: func.functional_call(net, {}, (dual,)),
        "functionalize": lambda net, dual: func.functionalize(net)(dual),
    }
    for way, act in ways.items():
        seen: list[Any] = []

        def hook(module: Any, args: Any, output: Any, seen: list[Any] = seen) -> Any:
            tangents = [fw.unpack_dual(tensor).tangent for tensor in (args[0], output)]
            seen.append([None if tangent is None else tangent.sum().item() for tangent in tangents])
            return 10 * output

        scale = _scale()
        scale.register_forward_hook(hook)
        with fw.dual_level():
            result = fw.unpack_dual(act(scale, fw.make_dual(x, torch.tensor([1.0, 1.0]))))
            check.equal(f"{way}: output: 10 · 2 x", _number(result.primal), [60, 80])
            check.equal(f"{way}: its tangent", _number(result.tangent), [20, 20])
        check.equal(f"{way}: sums of the tangents that the hook reads", seen, [[2.0, 4.0]])
