"""What becomes of hooks where a module is traced, scripted or exported? They are recorded, dropped or refused.

Each of them turns a module into a graph: what a forward hook computes becomes a part of it, or is left out, and
backward hooks are refused or dropped.
"""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.compiling import fresh
from hookcheck.programs.host_changes import offered
from hookcheck.programs.program import program

REFUSED = "backward hooks assigned"


def _outer() -> Any:
    """A module that gives 2x, as its child does."""
    return import_module("hookcheck.probe.scripted").Outer()


@program("TR-01", PROMISE, since="1.7", source="torch.jit.script; pytorch#34329")
def a_scripted_module_runs_its_hooks(check: Check) -> None:
    """A scripted module gives what the module gives in eager, forward hooks and pre-hooks of the module and its child
    included."""
    adds_one = import_module("hookcheck.probe.scripted").adds_one
    triples = import_module("hookcheck.probe.scripted").triples
    x = torch.tensor([3.0])
    for place, hooks in (("child", 1), ("root", 1), ("both", 2)):
        net, other = _outer(), _outer()
        for number in {"child": [1], "root": [0], "both": [0, 1]}[place]:
            [*net.modules()][number].register_forward_hook(adds_one)
            [*other.modules()][number].register_forward_pre_hook(triples)
        check.equal(f"{place}: output in eager", net(x), [6 + hooks])
        check.equal(f"{place}: output of the script", torch.jit.script(net)(x), [6 + hooks])
        check.equal(f"{place}: output in eager under pre-hooks", other(x), [6 * 3**hooks])
        check.equal(f"{place}: output of the script under pre-hooks", torch.jit.script(other)(x), [6 * 3**hooks])


def _loaded(script: Any) -> Any:
    """What comes of a script that is saved."""
    file = io.BytesIO()
    torch.jit.save(script, file)
    file.seek(0)
    return torch.jit.load(file)


MAKES = {
    "loaded": ((1, 8), _loaded),
    "copied": ((1, 8), copy.deepcopy),
    "frozen": ((1, 8), lambda script: torch.jit.freeze(script)),
    "optimized for inference": ((1, 10), lambda script: torch.jit.optimize_for_inference(script)),
}
"""What is made of a script, since which release, and how."""


@program("TR-10", PROMISE, since="1.8", source="torch.jit.freeze, 'will clone it'; save, load, optimize_for_inference")
def what_is_made_of_a_script_runs_its_hooks(check: Check) -> None:
    """What is made of a scripted module gives what that gives, forward hooks and pre-hooks of the module and its child
    included: saved and loaded, copied, frozen, optimized for inference."""
    x = torch.tensor([3.0])
    for name, (since, make) in MAKES.items():
        for place in ("child", "root") if offered(since) else ():
            net = _outer().eval()
            part = net.inner if place == "child" else net
            part.register_forward_pre_hook(import_module("hookcheck.probe.scripted").triples)
            part.register_forward_hook(import_module("hookcheck.probe.scripted").adds_one)
            check.equal(f"{name}, {place}: output", make(torch.jit.script(net))(x), [19])


@program("TR-02", PROMISE, since="1.7", source="torch.jit.script; pytorch#53421")
def a_hook_does_not_keep_from_scripting(check: Check) -> None:
    """A module with a forward hook that TorchScript cannot compile, such as a lambda, is scripted all the same."""
    net = _outer()
    x = torch.tensor([3.0])
    handle = net.inner.register_forward_hook(lambda module, args, output: None)
    check.equal("output in eager", net(x), [6])
    scripted = check.works("scripting under a lambda", lambda: torch.jit.script(net))
    if scripted is not None:
        check.equal("output of the script", scripted(x), [6])
    handle.remove()
    scripted = check.works("scripting without it", lambda: torch.jit.script(net))
    check.equal("output of the script without it", scripted and scripted(x), [6])


@program("TR-03", PROMISE, since="1.7", source="torch.jit.ignore; pytorch#75556")
def an_ignored_hook_is_not_compiled(check: Check) -> None:
    """A forward hook under torch.jit.ignore is left alone by the compiler."""
    net = _outer()
    x = torch.tensor([3.0])
    handle = net.inner.register_forward_hook(import_module("hookcheck.probe.scripted").ignored)
    check.equal("output in eager", net(x), [6])
    scripted = check.works("scripting under an ignored hook", lambda: torch.jit.script(net))
    if scripted is not None:
        check.equal("output of the script", scripted(x), [6])
    handle.remove()
    scripted = check.works("scripting without it", lambda: torch.jit.script(net))
    check.equal("output of the script without it", scripted and scripted(x), [6])


@program("TR-04", PIN, since="1.8", source="torch.jit.trace; pytorch#20862")
def a_module_with_backward_hooks_is_traced(check: Check) -> None:
    """A module with backward hooks can be traced: they do not matter to what is exported."""
    x = torch.tensor([3.0])
    for name in ("register_full_backward_hook", "register_backward_hook"):
        net = _outer()
        handle = getattr(net.inner, name)(lambda module, grad_input, grad_output: None)
        traced = check.works(f"{name}: tracing", lambda net=net: torch.jit.trace(net, x))
        if traced is not None:
            check.equal(f"{name}: output of the trace", traced(x), [6])
        handle.remove()
        traced = check.works(f"{name}: tracing once it is removed", lambda net=net: torch.jit.trace(net, x))
        check.equal(f"{name}: output of that trace", traced and traced(x), [6])


@program("TR-05", PIN, since="1.8", source="torch.jit.trace; pytorch#20862")
def a_trace_records_forward_hooks(check: Check) -> None:
    """torch.jit.trace records what forward hooks do, calls them no more, and refuses modules with backward hooks."""
    log: list[str] = []
    net = _outer()
    net.register_forward_pre_hook(lambda module, args: (log.append("pre"), (args[0] + 10,))[1])
    net.inner.register_forward_hook(lambda module, args, output: (log.append("post"), output + 1)[1])
    traced = torch.jit.trace(net, torch.tensor([1.0]), check_trace=False)
    check.order("hooks while it is traced", log, ["pre", "post"])
    check.equal("output of the trace", traced(torch.tensor([3.0])), [27])  # 2·(3 + 10) + 1
    check.order("hooks in all", log, ["pre", "post"])
    for place in ("root", "child"):
        for name in ("register_full_backward_hook", "register_backward_hook"):
            net = _outer()
            getattr(net if place == "root" else net.inner, name)(lambda module, grad_input, grad_output: None)
            refused = lambda net=net: torch.jit.trace(net, torch.tensor([1.0]))  # noqa: E731
            check.raises(f"{place}: {name}", ValueError, refused, REFUSED)


@program("TR-06", PIN, since="1.8", source="torch.fx.symbolic_trace; what it does with hooks is not documented")
def fx_keeps_the_hooks_of_leaves(check: Check) -> None:
    """torch.fx drops the hooks of the root, records those of modules that it traces, and keeps those of leaves."""
    log: list[str] = []

    def noting(name: str, number: int) -> Any:
        return lambda module, args, output: (log.append(f"{name}: {type(output).__name__}"), output + number)[1]

    net = nn.Sequential(nn.Sequential(nn.ReLU()), nn.ReLU())
    net.register_forward_hook(noting("root", 1000))
    net[0].register_forward_hook(noting("inner", 10))
    net[1].register_forward_hook(noting("leaf", 1))
    net[0][0].register_full_backward_hook(lambda module, grad_input, grad_output: (5 * grad_input[0],))
    x = torch.tensor([3.0], requires_grad=True)
    check.equal("output in eager", net(x), [1014])
    log.clear()
    graph = import_module("torch.fx").symbolic_trace(net)
    output = graph(x)
    output.backward()
    check.equal("output of the graph", output, [14])
    check.equal("gradient, through a backward hook of a leaf", x.grad, [5])
    check.order("hooks in tracing and in a call", log, ["inner: Proxy", "leaf: Tensor"])

    class Factor(nn.Module):
        def forward(self, x: Any, factor: float = 1.0) -> Any:
            return factor * x

    class ByKeyword(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.leaf = Factor(), nn.ReLU()

        def forward(self, x: Any) -> Any:
            return self.leaf(input=self.inner(x, factor=3.0))

    ByKeyword.forward.__annotations__.clear()  # torch 1.8 takes them for classes, and here they are texts
    named = ByKeyword()
    named.inner.register_forward_hook(noting("inner", 10))
    named.leaf.register_forward_hook(noting("leaf", 1))
    check.equal("output where parts are called by keyword", import_module("torch.fx").symbolic_trace(named)(x), [20])


def _exported(net: Any) -> Any:
    """The module of the exported program of ``net``."""
    return import_module("torch.export").export(net, (torch.tensor([1.0, 2.0]),)).module()


@program("TR-07", PIN, since="2.1", source="torch.export.export; what it does with hooks is not documented")
@fresh()
def export_keeps_forward_hooks(check: Check) -> None:
    """torch.export records what forward hooks and pre-hooks of a child do."""
    net = _outer()
    net.inner.register_forward_pre_hook(lambda module, args: (args[0] + 10,))
    net.inner.register_forward_hook(lambda module, args, output: output + 1)
    x = torch.tensor([3.0, 4.0])
    check.equal("output in eager", net(x), [27, 29])
    check.equal("output of the exported program", _exported(net)(x), [27, 29])


@program("TR-08", PROMISE, since="2.1", source="torch.export.export; pytorch#196819")
@fresh()
def export_keeps_the_roots_hooks(check: Check) -> None:
    """torch.export records what forward hooks and pre-hooks of the root do."""
    net = _outer()
    x = torch.tensor([3.0, 4.0])
    check.equal("output without hooks", _exported(net)(x), [6, 8])
    net.register_forward_pre_hook(lambda module, args: (args[0] + 10,))
    net.register_forward_hook(lambda module, args, output: output + 1)
    check.equal("output in eager", net(x), [27, 29])
    exported = check.works("export", lambda: _exported(net))
    if exported is not None:
        check.equal("output of the exported program", exported(x), [27, 29])


def _input(of: Any) -> Any:
    """The first Node of a graph."""
    return next(iter(of.graph.nodes))


def _negates(of: Any, what: Any) -> Any:
    """A new Node of a graph that negates what another one gives."""
    return of.graph.call_function(torch.neg, (what,))


def _erases(of: Any) -> list[Any]:
    node = _negates(of, _input(of))
    of.graph.erase_node(node)
    return [node]


def _replaces(of: Any) -> list[Any]:
    old = _negates(of, _input(of))
    user, _ = _negates(of, old), _negates(of, old)
    old.replace_all_uses_with(_input(of), delete_user_cb=lambda node: node is user)
    return [old, _input(of).name, user]


ACTS = {
    "create_node": lambda of: [_negates(of, _input(of))],
    "erase_node": _erases,
    "replace_node": _replaces,
    "deepcopy": lambda of: [copy.deepcopy(of)],
}
"""What calls each kind of hook on a GraphModule, and gives what the hook is called with."""


@program("TR-09", PIN, since="2.4", source="torch.fx.GraphModule._register_create_node_hook and its siblings")
def hooks_on_what_becomes_of_a_graph(check: Check) -> None:
    """A hook on what is made of a GraphModule, or of the Nodes of its graph, is called once each time until it is
    unregistered, on copies as well; nothing is called that cannot be."""
    for kind, act in ACTS.items():
        of, log = import_module("torch.fx").symbolic_trace(nn.Identity()), list[Any]()
        if not hasattr(of, f"_register_{kind}_hook"):
            continue

        def hook(*args: Any, log: list[Any] = log, **kwargs: Any) -> None:
            log.extend([*args, *kwargs.values()])

        for way in ("register", "unregister"):
            a_number = partial(getattr(of, f"_{way}_{kind}_hook"), 1)
            check.raises(f"{kind}: {way} a number", AssertionError, a_number, "must be a callable")
        getattr(of, f"_register_{kind}_hook")(hook)
        check.equal(f"{kind}: what the hook is called with", log, act(of))
        copied = copy.deepcopy(of)
        log.clear()
        check.equal(f"{kind}, on a copy: what the hook is called with", log, act(copied))
        getattr(of, f"_unregister_{kind}_hook")(hook)
        log.clear()
        act(of)
        check.equal(f"{kind}, unregistered: what the hook is called with", log, [])


def _namesake(module: Any, input: Any, output: Any) -> Any:
    return output


_namesake.__name__ = "adds_one"


@program("TR-15", PIN, since="1.8", source="torch.jit.script; its hooks are not documented; pytorch#49544")
def hooks_belong_to_one_script(check: Check) -> None:
    """A script runs several hooks in the order in which they are in eager, and those of the very module that was
    scripted: not those of another one of its class, and not those that came or went later, which it refuses to take
    itself; two hooks of one name are refused."""
    adds_one = import_module("hookcheck.probe.scripted").adds_one
    doubles = import_module("hookcheck.probe.scripted").doubles
    x = torch.tensor([3.0])
    for names, hooks, due in (
        ("add, double", [adds_one, doubles], 14),
        ("double, add", [doubles, adds_one], 13),
        ("double, double, add", [doubles, doubles, adds_one], 25),
    ):
        for place in ("root", "child"):
            net = _outer()
            for hook in hooks:
                (net if place == "root" else net.inner).register_forward_hook(hook)
            check.equal(f"{names}, {place}: output in eager", net(x), [due])
            check.equal(f"{names}, {place}: output of the script", torch.jit.script(net)(x), [due])
    first, second = _outer(), _outer()
    handle = first.inner.register_forward_hook(adds_one)
    script = torch.jit.script(first)
    check.equal("another one of the class", torch.jit.script(second)(x), [6])
    check.equal("the one with a hook, once more", torch.jit.script(first)(x), [7])
    handle.remove()
    check.equal("a script of it once the hook is removed", torch.jit.script(first)(x), [6])
    check.equal("the script that had been made", script(x), [7])
    for name in ("register_forward_hook", "register_forward_pre_hook"):
        check.raises(f"{name} on a script", RuntimeError, partial(getattr(script, name), adds_one), "not supported")
    for name, register in (("two", "register_forward_hook"), ("two pre-hooks", "register_forward_pre_hook")):
        net = _outer()
        getattr(net, register)(adds_one)
        getattr(net, register)(_namesake)
        check.raises(f"{name} of one name", RuntimeError, partial(torch.jit.script, net), "unique names")


CALLS: dict[str, tuple[Any, Callable[[], Any], int]] = {
    "left at its default": (lambda net, x: net(x), lambda: import_module("hookcheck.probe.scripted").Leaving, 6),
    "given by keyword": (
        lambda net, x: net(x, factor=4.0),
        lambda: import_module("hookcheck.probe.scripted").Naming,
        12,
    ),
    "given by position": (lambda net, x: net(x, 4.0), lambda: import_module("hookcheck.probe.scripted").Giving, 12),
}
"""What calls a module with a factor, the class of modules that call their child so, and what comes of 3."""


def _unseen(kind: Any) -> Any:
    """A module that torch has not compiled: what it could not compile once it refuses for another reason afterwards,
    and what it could, hooks and all, it does not compile again."""
    return type(kind.__name__, (kind,), {})()


SCRIPTED: dict[str, tuple[Any, int]] = {
    "forward_pre_hook": (lambda: import_module("hookcheck.probe.scripted").passes_on, 0),
    "forward_hook": (lambda: import_module("hookcheck.probe.scripted").adds_ten, 10),
}
"""What gives a hook of each kind that scripts call, and what more comes of it."""


@program("TR-16", PROMISE, since="1.8", source="torch.jit.script; register_forward_pre_hook; pytorch#51885")
def hooks_of_a_script_whose_forward_has_a_default(check: Check) -> None:
    """A scripted module with a forward hook or pre-hook gives what the module gives in eager, whether an argument that
    has a default is given by position, given by keyword or left out."""
    _given_to_scripts(check)
    _given_to_children(check)


def _given_to_scripts(check: Check) -> None:
    x = torch.tensor([3.0])
    for kind, (hook, more) in SCRIPTED.items():
        net = _unseen(import_module("hookcheck.probe.scripted").Scaled)
        getattr(net, f"register_{kind}")(hook())
        script = torch.jit.script(net)
        for name, (call, _, due) in CALLS.items():
            what = f"{kind}, {name}"
            check.equal(f"{what}: output in eager", call(net, x), [due + more])
            output = check.works(f"{what}: call of the script", partial(call, script, x))
            if output is not None:
                check.equal(f"{what}: output of the script", output, [due + more])


def _given_to_children(check: Check) -> None:
    x = torch.tensor([3.0])
    for kind, (hook, more) in SCRIPTED.items():
        for name, (_, parent, due) in CALLS.items():
            what, root = f"{kind}, {name}, child", _unseen(parent())
            root.inner = _unseen(import_module("hookcheck.probe.scripted").Scaled)
            getattr(root.inner, f"register_{kind}")(hook())
            check.equal(f"{what}: output in eager", root(x), [due + more])
            script = check.works(f"{what}: scripting", partial(torch.jit.script, root))
            if script is not None:
                check.equal(f"{what}: output of the script", script(x), [due + more])
