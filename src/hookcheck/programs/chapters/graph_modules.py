"""What becomes of hooks where a graph that torch.fx made is run, changed, copied or taken apart?

A GraphModule is a module: hooks on it are called where it is called. The modules of which its graph has no parts are
those of the module that was traced, hooks and all, whatever is made of the graph.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.handles import KINDS, MODULE, kinds
from hookcheck.programs.host_changes import offered
from hookcheck.programs.program import program
from hookcheck.programs.watching import noting

GRAPH_MODULE = "torch.fx.GraphModule"


def _fx() -> Any:
    return import_module("torch.fx")


def _traced() -> Any:
    """The GraphModule of a module with one part."""
    return _fx().symbolic_trace(nn.Sequential(nn.Tanh()))


def _backward(module: Any) -> None:
    """Calls a module, and goes backward from what it gives."""
    module(torch.ones(1, 1, requires_grad=True)).sum().backward()


def _set_again(module: Any) -> None:
    module.graph = module.graph


def _with_a_node_more(module: Any) -> None:
    """Adds to a graph a Node that negates what it gives."""
    *_, last, end = module.graph.nodes
    with module.graph.inserting_before(end):
        end.args = (module.graph.call_function(torch.neg, (last,)),)
    module.recompile()


CHANGES: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda module: None,
    "compiled again": lambda module: module.recompile(),
    "with its graph set again": _set_again,
    "with a Node more": _with_a_node_more,
    "without what it does not use": lambda module: module.delete_all_unused_submodules(),
}
"""What is done to a GraphModule that has a hook."""

RUNS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "an Interpreter": lambda module: _fx().Interpreter(module).run,
    "a Transformer": lambda module: _fx().Transformer(module).transform(),
    "another GraphModule": lambda module: _fx().GraphModule(module, module.graph),
}
"""What runs the graph of a GraphModule, which is not called itself."""


@program("TR-11", PROMISE, since="1.10", source=f"{GRAPH_MODULE}, 'GraphModule is an nn.Module'")
def hooks_on_a_graph_module(check: Check) -> None:
    """A hook of each kind on a GraphModule is called once in each call of it, also after its graph was changed, set
    again or compiled again; what runs its graph without calling it calls no such hook."""
    for kind in kinds(MODULE):
        for name, change in CHANGES.items():
            module, log = _traced(), list[str]()
            handle = getattr(module, KINDS[kind][1])(noting(log, kind))
            change(module)
            _backward(module)
            check.order(f"{kind}, {name}", log, [kind])
            handle.remove()
            _backward(module)
            check.order(f"{kind}, {name}: once it is removed", log, [kind])
        for name, run in RUNS.items():
            module, log = _traced(), list[str]()
            getattr(module, KINDS[kind][1])(noting(log, kind))
            _backward(run(module))
            check.order(f"{kind}, {name}", log, [])
    module, log, x = _traced(), list[str](), torch.ones(1, 1)
    module.register_forward_pre_hook(noting(log, "pre"))
    module.register_forward_hook(noting(log, "forward"))
    output = check.works("a call by keyword", partial(module, input=x))
    check.equal("output of a call by keyword", output, module.forward(x))
    check.order("hooks of a call by keyword", log, ["pre", "forward"])


def _with_another(module: Any, part: Any) -> Any:
    """The module with a part more, in a place that is made for it, which its graph calls last."""
    module.add_submodule("place.part", part)
    *_, last, end = module.graph.nodes
    with module.graph.inserting_before(end):
        end.args = (module.graph.call_module("place.part", (last,)),)
    module.recompile()
    return module


def _split(module: Any, whole: Any) -> Any:
    """The graph in two parts."""
    split: Any = import_module("torch.fx.passes.split_module").split_module
    return split(module, whole, lambda node: int(node.target == "1"))


def _makes(whole: Any) -> dict[str, Callable[[Any], Any]]:
    """What may be made of the graph of a module."""
    makes: dict[str, Callable[[Any], Any]] = {
        "the GraphModule": lambda module: module,
        "a copy": copy.copy,
        **RUNS,
        "a GraphModule of the module": lambda module: _fx().GraphModule(whole, module.graph),
        "a GraphModule of a dict": lambda module: _fx().GraphModule({"0": whole[0], "1": whole[1]}, module.graph),
    }
    if offered((2, 0)):
        makes["a module that is split"] = partial(_split, whole=whole)
    return makes


@program("TR-12", PIN, since="1.10", source=f"{GRAPH_MODULE}; that parts are shared is not documented")
def parts_of_a_graph_are_shared(check: Check) -> None:
    """Whatever is made of a graph, the modules that it calls are those that were traced: hooks on them and on their
    parameters are called once, with the gradients that they have, those of a part that is added as well."""
    for name in _makes(nn.Sequential(nn.Tanh(), nn.Tanh())):
        whole, log = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Softplus()), list[Any]()
        part: Any = whole[0]
        nn.init.constant_(part.weight, 2.0)
        part.register_forward_hook(lambda module, args, output, log=log: log.append(("forward", output.tolist())))
        part.register_full_backward_hook(lambda module, gi, go, log=log: log.append(("backward", len(gi), len(go))))
        part.weight.register_hook(lambda gradient, log=log: log.append(("weight", [*gradient.shape])))
        run = _makes(whole)[name](_fx().symbolic_trace(whole))
        check.equal(f"{name}: hooks while it is made", log, [])
        _backward(run)
        due = [("backward", 1, 1), ("forward", [[2.0]]), ("weight", [1, 1])]  # the weight, 2, times 1
        check.equal(f"{name}: hooks", sorted(log), due)
    added, log = nn.Tanh(), list[Any]()
    added.register_forward_hook(noting(log, "added"))
    _backward(_with_another(_traced(), added))
    check.order("a part that is added: hooks", log, ["added"])


def _tracing() -> bool:
    """Whether torch.fx is tracing, where this torch can say so. Newer ones warn of the older name."""
    tracer = import_module("torch.fx._symbolic_trace")
    asked = getattr(tracer, "is_fx_symbolic_tracing", None) or getattr(tracer, "is_fx_tracing", lambda: False)
    return bool(asked())


@program("TR-13", PROMISE, since="1.10", source="torch.fx.symbolic_trace; torch.jit.trace")
def an_error_ends_tracing(check: Check) -> None:
    """After a hook raised while a module was traced, by torch.fx or by torch.jit, modules are called as before, with
    their hooks."""
    x = torch.ones(1, 1)
    traces: dict[str, Callable[[Any], Any]] = {
        "torch.fx.symbolic_trace": lambda module: _fx().symbolic_trace(module),
        "torch.jit.trace": lambda module: torch.jit.trace(module, x),
    }

    def refuse(*args: Any) -> None:
        raise ValueError("refused")

    for name, trace in traces.items():
        inner, log = nn.Sequential(nn.Tanh()), list[str]()
        net = nn.Sequential(inner, nn.Tanh())
        handle = inner.register_forward_hook(refuse)
        check.raises(f"{name}: tracing", ValueError, partial(trace, net), "refused")
        check.equal(f"{name}: whether torch.fx is tracing", _tracing(), False)
        handle.remove()
        for module in net.modules():
            module.register_forward_hook(lambda module, args, output, log=log: log.append(type(output).__name__))
        check.works(f"{name}: a call afterwards", partial(net, x))
        check.order(f"{name}: what hooks are given then", log, ["Tensor"] * 4)
        log.clear()
        check.works(f"{name}: tracing it then", partial(trace, nn.Sequential(nn.Tanh())))


@program("TR-14", PIN, since="2.6", source=f"{GRAPH_MODULE}._set_replace_hook; torch.export passes rely on it")
def a_hook_for_a_while(check: Check) -> None:
    """A hook that is set for a while is called where a Node is replaced then, and no more once its context is left, be
    it by an error."""
    for way in ("as usual", "by an error"):
        module, log = _traced(), list[Any]()

        def replace(module: Any = module) -> Any:
            first = next(iter(module.graph.nodes))
            node = module.graph.call_function(torch.neg, (first,))
            user = module.graph.call_function(torch.neg, (node,))
            node.replace_all_uses_with(first)
            return [node.name, user.name]

        def note(log: list[Any] = log, **names: Any) -> None:
            log.append([names["old"].name, names["user"].name])

        try:
            with module._set_replace_hook(note):
                due = [replace()]
                if way == "by an error":
                    raise ValueError
        except ValueError:
            pass
        check.equal(f"{way}: in the context", log, due)
        replace()
        check.equal(f"{way}: afterwards", log, due)
    module, log = _traced(), list[Any]()
    first, second = [*module.graph.nodes][:2]
    with module._set_replace_hook(lambda **names: log.append([names["old"].name, names["new"], names["user"].name])):
        other = module.graph.call_function(torch.neg, (first,))
        second.replace_input_with(first, other)
    check.equal("one input: what the hook is called with", log, [[first.name, other.name, second.name]])
    if hasattr(module, "_register_deepcopy_hook"):
        module, copies = _traced(), list[Any]()
        module._register_deepcopy_hook(copies.append)
        copied = copy.deepcopy(module)
        check.true("a copy: the hook gets it", len(copies) == 1 and copies[0] is copied, "argument")
