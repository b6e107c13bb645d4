"""What becomes of hooks under torch.compile? They are traced with the module, or break the graph, or go unnoticed.

``torch.compile`` traces the call of a module, and with it the forward hooks and forward pre-hooks that are there then.
Changes that come later are noticed for certain only with the flag
``torch._dynamo.config.skip_nnmodule_hook_guards`` set to False.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from importlib import import_module
from itertools import product
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE, UNSPECIFIED
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.compiling import (
    BACKENDS,
    CALL_HOOKS,
    PAGE,
    chain,
    derivative,
    dynamo,
    fresh,
    lazy_with_hooks,
    linear,
    recording,
    scaling,
)
from hookcheck.programs.program import program


@program("TC-01", PROMISE, since="2.1", source=CALL_HOOKS)
@fresh()
def forward_hooks_are_traced(check: Check) -> None:
    """Forward and forward pre-hooks that are there before compiling are traced into the graph, and run every time."""
    for backend in BACKENDS:
        log: list[str] = []
        call = torch.compile(_with_hooks(log), backend=backend, fullgraph=True)
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        # The pre-hook gives x + 10 and shift 10. The child gives 2·(x + 10), its hooks 6·(x + 10) and 1 more.
        output = call(x, shift=5)
        check.equal(f"{backend}: output", output, [67, 73])
        output.sum().backward()
        check.equal(f"{backend}: gradient", x.grad, [6, 6])
        check.equal(f"{backend}: output of the second call", call(x + 1, shift=5), [73, 79])
        check.order(f"{backend}: hooks in two calls", log, 2 * ["root pre", "first", "second", "root"])
        log = []
        lazy = lazy_with_hooks(log)
        call = torch.compile(lazy, backend=backend)
        call(torch.ones(2))  # has the weight made
        with torch.no_grad():
            lazy.weight.fill_(2.0)
        # The pre-hook gives 11 and 12, the module twice their sum, and the hook three times that.
        check.equal(f"{backend}: output of a module that was lazy", call(torch.tensor([1.0, 2.0])), [138])
        check.order(f"{backend}: hooks in two calls, of which the first is lazy", log, 2 * ["pre", "hook"])


def _with_hooks(log: list[str]) -> Any:
    """A module with a child, and hooks on both."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = scaling()

        def forward(self, x: Any, shift: int) -> Any:
            return self.inner(x) + shift

    def pre(module: Any, args: Any, kwargs: Any) -> Any:
        log.append("root pre")
        return (args[0] + 10,), {"shift": 2 * kwargs["shift"]}

    def root(module: Any, args: Any, kwargs: Any, output: Any) -> Any:
        log.append("root")
        return output - kwargs["shift"]

    def first(module: Any, args: Any, output: Any) -> Any:
        log.append("first")
        return 3 * output

    def second(module: Any, args: Any, output: Any) -> Any:
        log.append("second")
        return output + 1

    net = Net()
    net.register_forward_pre_hook(pre, with_kwargs=True)
    net.register_forward_hook(root, with_kwargs=True)
    net.inner.register_forward_hook(second)
    net.inner.register_forward_hook(first, prepend=True)
    net.inner.register_forward_hook(lambda module, args, output: None)
    return net


@program("TC-02", UNSPECIFIED, since="2.1", source=f"{PAGE}, 'skip_nnmodule_hook_guards'")
@fresh()
def later_changes_go_unnoticed(check: Check) -> None:
    """By default nothing guards the tables of hooks: what is added or removed after compiling goes unnoticed."""
    net = chain()
    call = torch.compile(lambda x: net(x), backend="eager")
    call(torch.tensor(1.0))
    added = net.parts[0].register_forward_hook(lambda module, args, output: output + 1)
    check.equal("output with a forward hook added later", call(torch.tensor(1.0)), 4.0)
    dynamo().reset()
    call(torch.tensor(1.0))
    added.remove()
    check.equal("output with a forward hook removed later", call(torch.tensor(1.0)), 6.0)


@program("TC-03", PROMISE, since="2.1", source=f"{PAGE}, 'skip_nnmodule_hook_guards'")
@fresh()
def later_changes_are_noticed_with_guards(check: Check) -> None:
    """With skip_nnmodule_hook_guards set to False, a hook that is added or removed later leads to a new compilation."""
    with dynamo().config.patch(skip_nnmodule_hook_guards=False):
        child = chain()
        _noticed(check, "child", child, child.parts[0], 2)  # what a hook on the first module adds is doubled
        root = chain()
        _noticed(check, "root", root, root, 1)


def _noticed(check: Check, place: str, net: Any, module: Any, added: int) -> None:
    """States what hooks on ``module``, which add 1 to what it gives, do to the compiled ``net``, which gives 4x."""
    dynamo().reset()
    call = torch.compile(lambda x: net(x), backend="eager")
    x = torch.tensor(1.0)
    check.equal(f"{place}: output before", call(x), 4.0)
    handle = module.register_forward_hook(lambda module, args, output: output + 1)
    check.equal(f"{place}: output with a forward hook", call(x), 4.0 + added)
    handle.remove()
    check.equal(f"{place}: output after its removal", call(x), 4.0)
    handle = module.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    check.equal(f"{place}: output with a pre-hook", call(x), 8.0)
    handle.remove()
    dynamo().reset()
    check.equal(f"{place}: gradient before", derivative(call, 1.0), 4.0)
    handle = module.register_full_backward_hook(lambda module, grad_input, grad_output: (10 * grad_input[0],))
    check.equal(f"{place}: gradient with a backward hook", derivative(call, 1.0), 40.0)
    handle.remove()
    check.equal(f"{place}: gradient after its removal", derivative(call, 1.0), 4.0)


@program("TC-06", PROMISE, since="2.1", source=f"{CALL_HOOKS}, \"hooks on 'allowed modules'\"")
@fresh()
def a_hook_on_an_allowed_module_breaks_the_graph(check: Check) -> None:
    """A hook on a module that dynamo calls opaquely, as the common ones of torch.nn, breaks the graph around it."""
    net = nn.Sequential(*(nn.Conv1d(1, 1, 1, bias=False) for _ in range(3)))
    for part in net:
        nn.init.constant_(part.weight, 2.0)
    net[1].register_forward_hook(lambda module, args, output: output + 1)
    graphs: list[list[str]] = []
    call = torch.compile(lambda x: net(x), backend=recording(graphs))
    check.equal("output", call(torch.ones(1, 1, 1)), [[[10]]])  # 2·(2·2·1 + 1)
    check.true("more than one graph", len(graphs) > 1)


@program("TC-07", UNSPECIFIED, since="2.1", source=f"{PAGE}, 'state_dict Hooks'")
@fresh()
def state_dict_hooks_are_not_supported(check: Check) -> None:
    """State-dict hooks are not supported: a function that would run them is not compiled as a whole."""
    net = scaling()
    net._register_state_dict_hook(lambda module, state, prefix, metadata: state.update({f"{prefix}w": 3 * state["w"]}))

    def weight() -> Any:
        return net.state_dict()["w"] * 1

    check.equal("weight, with graph breaks", torch.compile(weight, backend="eager")(), 6.0)
    dynamo().reset()
    whole = torch.compile(weight, backend="eager", fullgraph=True)
    check.raises("weight, as one graph", dynamo().exc.Unsupported, whole, "state_dict")


@program(
    "U-23",
    PIN,
    since="2.1",
    source="torch.compile, torch.nn.modules.module.register_module_forward_hook; pytorch#149502",
)
@fresh()
def a_global_hook_is_called_for_the_wrapper_too(check: Check) -> None:
    """A global forward hook is called for the wrapper that torch.compile makes of a module, too; torch warns of it."""
    log: list[str] = []

    def hook(module: Any, args: Any, output: Any) -> Any:
        log.append(type(module).__name__)
        return output + 1

    register = import_module("torch.nn.modules.module").register_module_forward_hook
    with register(hook):
        call = torch.compile(scaling(), backend=recording([]))
        output = check.warns("a warning", UserWarning, lambda: call(torch.tensor(1.0)), "fire an extra time")
    check.equal("output", output, 4.0)  # 2·1, and 1 for each call
    check.order("modules that it is called for", log, ["Scale", "OptimizedModule"])


@program("TC-09", PROMISE, since="2.1", source="pytorch#117758", alone=True)  # 2.2 remembers classes of modules
@fresh()
def a_later_forward_hook_counts_with_guards(check: Check) -> None:
    """With guards on the tables of hooks, a forward hook added after compiling counts on torch's own modules too."""
    child, root = _linears(), _linears()
    for place, net, module, expected in (("child", child, child[0], 6), ("root", root, root, 5)):
        dynamo().reset()
        with dynamo().config.patch(skip_nnmodule_hook_guards=False):
            call = torch.compile(lambda x, net=net: net(x), backend="aot_eager")
            check.equal(f"{place}: output before", call(torch.ones(1)), [4])
            module.register_forward_hook(lambda module, args, output: output + 1)
            check.equal(f"{place}: output with the hook", call(torch.ones(1)), [expected])


def _linears() -> Any:
    """Torch's own modules in torch's own container: 4x where x is positive."""
    return nn.Sequential(linear(), nn.ReLU(), linear())


@program("TC-10", PROMISE, since="2.1", source="torch.nn.Module.register_forward_hook; pytorch#104278")
@fresh()
def always_call_holds_under_compile(check: Check) -> None:
    """A forward hook with always_call is called although the compiled module raises; one without is not."""
    for backend in BACKENDS:
        log: list[str] = []
        net = _failing()
        net.register_forward_hook(_named(log, "always"), always_call=True)
        net.register_forward_hook(_named(log, "otherwise"))
        call = partial(torch.compile(net, backend=backend), torch.ones(1))
        check.raises(f"{backend}: the call", ValueError, call, "by itself")
        check.order(f"{backend}: hooks", log, ["always"])


def _named(log: list[str], name: str) -> Callable[..., None]:
    """A forward hook that notes its name."""
    return lambda module, args, output: log.append(name)


def _failing() -> Any:
    """A module that raises when it is called."""

    class Fails(nn.Module):
        def forward(self, x: Any) -> Any:
            raise ValueError("raised by itself")

    return Fails()


@program(
    "TC-16",
    PROMISE,
    since="2.1",
    source="torch.optim.Optimizer.register_step_pre_hook; 'called before optimizer step'",
    alone=True,  # torch takes the hooks off once in a process
)
def optimizers_keep_their_hooks(check: Check) -> None:
    """Compiling something leaves the hooks on the steps of all optimizers as they were, those that come later too."""

    def hooked(kind: str) -> tuple[Any, list[str]]:
        log: list[str] = []
        optimizer = getattr(torch.optim, kind)([nn.Parameter(torch.ones(1))], lr=1.0)
        optimizer.register_step_pre_hook(lambda *_: log.append("before"))
        optimizer.register_step_post_hook(lambda *_: log.append("after"))
        return optimizer, log

    kinds = ("SGD", "Adam", "Adagrad")
    optimizers = {f"{kind}, made before": hooked(kind) for kind in kinds}
    with fresh():
        torch.compile(lambda x: 2 * x, backend="eager")(torch.ones(1))
    optimizers.update({f"{kind}, made after": hooked(kind) for kind in kinds})
    for name, (optimizer, log) in optimizers.items():
        optimizer.step()
        check.order(f"hooks of {name}", log, ["before", "after"])


KINDS: dict[str, tuple[Callable[..., Any], Any]] = {
    "forward_hook": (lambda module, args, output: output + 1, (7.0, 2.0)),
    "forward_pre_hook": (lambda module, args: (args[0] + 1,), (8.0, 2.0)),
    "full_backward_hook": (lambda module, inputs, outputs: (10 * inputs[0],), (6.0, 20.0)),
    "full_backward_pre_hook": (lambda module, outputs: (10 * outputs[0],), (6.0, 20.0)),
}
"""A hook of each kind, and the output and the gradient that a module has with it that gives 2x, at 3."""


@program("TC-23", PROMISE, since="2.6", source=f"{CALL_HOOKS}; torch.nn.modules.module.register_module_forward_hook")
@fresh()
def a_hook_of_any_kind_is_seen_alone(check: Check) -> None:
    """A hook of any kind acts in compiled code though it is the only one, be it on the module or on all modules."""
    for backend, (kind, (hook, expected)), place in product(BACKENDS, KINDS.items(), ("the module", "all modules")):
        if backend == "aot_eager" and kind.startswith("forward"):  # TC-01 and networks have those
            continue
        dynamo().reset()
        net = scaling()
        owner, name = (nn.modules.module, "register_module_") if place == "all modules" else (net, "register_")
        with getattr(owner, f"{name}{kind}")(hook):
            x = torch.tensor(3.0, requires_grad=True)
            output = torch.compile(lambda x, net=net: net(x), backend=backend)(x)
            output.backward()
        check.equal(f"{backend}: {kind} on {place}", (output.item(), x.grad.item()), expected)


PARTS = {"modules of torch.nn": linear, "other modules": scaling}


@program("TC-30", PROMISE, since="2.1", source=f"{CALL_HOOKS}; {PAGE}, 'skip_nnmodule_hook_guards'")
@fresh()
def a_module_like_one_without_hooks_has_its_own(check: Check) -> None:
    """A hook that is there before a module is compiled acts, although one like it was compiled before without hooks;
    with skip_nnmodule_hook_guards set to False as well."""
    for guards in ("guards, ", ""):
        for whose, part in PARTS.items():
            for backend in BACKENDS:
                for kind, (hook, expected) in KINDS.items():
                    dynamo().reset()
                    plain = nn.Sequential(part())
                    net: Any = deepcopy(plain)
                    getattr(net[0], f"register_{kind}")(hook)
                    with dynamo().config.patch(skip_nnmodule_hook_guards=not guards):
                        _at_three(torch.compile(plain, backend=backend))
                        observed = _at_three(torch.compile(net, backend=backend))
                        check.equal(f"{guards}{whose}, {backend}: {kind}", observed, expected)


def _at_three(function: Callable[..., Any]) -> tuple[float, float]:
    """What a function gives at 3, and its derivative there."""
    x: Any = torch.tensor([3.0], requires_grad=True)
    output = function(x)
    output.backward()
    return output.item(), x.grad.item()


@program("TC-24", PROMISE, since="2.6", source=f"{PAGE}, 'skip_nnmodule_hook_guards'")
@fresh()
def other_hooks_are_noticed(check: Check) -> None:
    """With skip_nnmodule_hook_guards set to False, as many hooks that are others, or in another order, are noticed."""

    def adding(number: float) -> Callable[..., Any]:
        return lambda module, args, output: output + number

    factor = [10.0]

    def multiplying(module: Any, args: Any, output: Any) -> Any:
        return factor[0] * output

    with dynamo().config.patch(skip_nnmodule_hook_guards=False):
        net = scaling()
        call = torch.compile(lambda x: net(x), backend="eager")
        for name, hooks, expected in (
            ("in one order", (adding(1), multiplying), 30.0),  # 10·(2 + 1)
            ("in the other", (multiplying, adding(1)), 21.0),  # 10·2 + 1
            ("with another number", (multiplying, adding(5)), 25.0),
            ("with another function", (multiplying, lambda module, args, output: -output), -20.0),
        ):
            handles = [net.register_forward_hook(hook) for hook in hooks]
            check.equal(f"output {name}", call(torch.tensor(1.0)), expected)
            for handle in handles:
                handle.remove()
        net.register_forward_hook(multiplying)
        check.equal("output with one hook", call(torch.tensor(1.0)), 20.0)
        factor[0] = 100.0
        check.equal("output with another number in what it closes over", call(torch.tensor(1.0)), 200.0)
        net.register_forward_hook(adding(5))
        check.equal("output with one hook more", call(torch.tensor(1.0)), 205.0)


def _compiled(net: Any) -> Any:
    return torch.compile(lambda x: net(x), backend="eager")


def _without_compiling_the_first(net: Any) -> Any:
    net.parts[0] = torch.compiler.disable(net.parts[0])
    return net


@program("TC-25", PROMISE, since="2.6", source=f"{CALL_HOOKS}; torch.compiler.disable")
@fresh()
def hooks_that_are_not_traced(check: Check) -> None:
    """A hook that is not traced, as it breaks the graph or is not to be compiled, is called each time, with values."""

    def branching(module: Any, args: Any, output: Any) -> Any:
        return 10 * output if output.item() > 5 else output

    for name, wrap, prepared in (
        ("breaks", lambda hook: hook, _compiled),
        ("is disabled", torch.compiler.disable, _compiled),
        ("of a part that is disabled", lambda hook: hook, _without_compiling_the_first),
    ):
        dynamo().reset()
        log: list[Any] = []
        net = chain()
        net.parts[0].register_forward_pre_hook(wrap(lambda module, args, log=log: log.append(args[0].item())))
        net.parts[0].register_forward_hook(wrap(branching))
        call = prepared(net)
        outputs = [call(torch.tensor(value)).item() for value in (1.0, 3.0, 2.0)]
        check.equal(f"{name}: outputs", outputs, [4.0, 120.0, 8.0])  # 2·2·1, 2·10·(2·3), 2·2·2
        check.equal(f"{name}: what the pre-hook sees", log, [1.0, 3.0, 2.0])
