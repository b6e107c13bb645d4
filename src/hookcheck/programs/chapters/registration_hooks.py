"""What do hooks promise that run where modules register parameters, buffers and submodules?

They are put on all modules and are called as ``hook(module, name, value)`` by ``register_parameter``,
``register_buffer``, ``register_module`` and assignments; what they return is registered instead.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.host_changes import offered
from hookcheck.programs.program import program
from hookcheck.programs.watching import globally, keeping, noting

MODULE = "torch.nn.modules.module.register_module_{}_registration_hook"
PARAMETER, BUFFER, SUBMODULE = (MODULE.format(kind) for kind in ("parameter", "buffer", "module"))


def exchange(what: Any, instead: Any, module: Any, name: str, registered: Any) -> Any:
    """A registration hook that registers ``instead`` in the place of ``what``."""
    return instead if registered is what else None


def refuses(*arguments: Any) -> None:
    """A registration hook that raises."""
    raise ValueError("refused")


@program("RG-01", PROMISE, since="2.0", source=PARAMETER)
def runs_for_parameters(check: Check) -> None:
    """On every registration of a parameter the hook gets module, name and parameter; what it returns is registered."""
    seen: list[Any] = []
    empty: Any = nn.Identity()
    first, second, third = (nn.Parameter(torch.ones(n)) for n in (1, 2, 3))
    with globally("parameter_registration_hook", keeping(seen)):
        linear = nn.Linear(2, 3)
        check.equal("parameters of a Linear", seen, [(linear, "weight", linear.weight), (linear, "bias", linear.bias)])
        check.true("the very parameter", seen[0][2] is linear.weight)
        seen.clear()
        empty.register_parameter("a", first)
        empty.b = second
        empty.b = third
        calls = [(empty, "a", first), (empty, "b", second), (empty, "b", third)]
        check.equal("register_parameter, assignment and assignment anew", seen, calls)
        seen.clear()
        frozen = nn.Parameter(torch.ones(1), requires_grad=False)
        empty.register_parameter("frozen", frozen)
        check.equal("a parameter that requires no grad", seen, [(empty, "frozen", frozen)])
        seen.clear()
        empty.register_parameter("c", None)
        nn.Linear(2, 3, bias=False)
        check.equal("names where there is no parameter", [call[1] for call in seen], ["weight"])
        seen.clear()
        empty.plain = torch.ones(1)
        empty.number = 1.0
        empty.child = nn.Identity()
        empty.register_buffer("buffer", torch.ones(1))
        check.calls("what is no parameter", len(seen), 0)
        if offered((2, 1)):
            linear.load_state_dict(linear.state_dict(), assign=True)
            check.equal("names of what is assigned by loading", [call[1] for call in seen], ["weight", "bias"])
        seen.clear()
        nn.utils.parametrize.register_parametrization(empty, "a", nn.Identity())
        check.equal("names of what is parametrized", [call[1] for call in seen], ["original"])
        cell = nn.RNNCell(1, 1)
        seen.clear()
        nn.utils.weight_norm(cell, "weight_ih")
        nn.utils.spectral_norm(cell, "weight_hh")
        import_module("torch.nn.utils.prune").identity(cell, "bias_ih")
        due = ["weight_ih_g", "weight_ih_v", "weight_hh_orig", "bias_ih_orig"]
        check.equal("names of what is normed and pruned", [call[1] for call in seen], due)
        listed, named = nn.ParameterList([first]), nn.ParameterDict({"key": first})
        seen.clear()
        listed[0] = named["key"] = second
        check.equal("items that are set in containers", seen, [(listed, "0", second), (named, "key", second)])

    empty = nn.Identity()
    with globally("parameter_registration_hook", partial(exchange, first, second)):
        with globally("parameter_registration_hook", partial(exchange, second, third)):
            empty.register_parameter("both", first)
        empty.register_parameter("one", first)
        empty.assigned = first
        empty.unchanged = third
    names = {name: id(parameter) for name, parameter in empty.named_parameters(remove_duplicate=False)}
    expected = {"both": id(third), "one": id(second), "assigned": id(second), "unchanged": id(third)}
    check.equal("parameters under hooks that return others", names, expected)
    check.true("what an attribute gives", empty.one is second)


@program("RG-02", PROMISE, since="2.0", source=BUFFER)
def runs_for_buffers(check: Check) -> None:
    """On every registration of a buffer the hook gets module, name and buffer; what it returns is registered."""
    seen: list[Any] = []
    empty: Any = nn.Identity()
    first, second, third = (torch.ones(n) for n in (1, 2, 3))
    with globally("buffer_registration_hook", keeping(seen)):
        norm: Any = nn.BatchNorm1d(2)
        names = ["running_mean", "running_var", "num_batches_tracked"]
        calls = [(norm, name, getattr(norm, name)) for name in names]
        check.equal("buffers of a BatchNorm1d", seen, calls)
        check.true("the very buffer", seen[0][2] is norm.running_mean)
        seen.clear()
        empty.register_buffer("a", first)
        empty.a = second
        empty.register_buffer("b", third, persistent=False)
        calls = [(empty, "a", first), (empty, "a", second), (empty, "b", third)]
        check.equal("register_buffer, assignment anew and persistent=False", seen, calls)
        check.equal("names in the state dict", list(empty.state_dict()), ["a"])
        empty.b = first
        check.equal("names in the state dict once both are assigned anew", list(empty.state_dict()), ["a"])
        seen.clear()
        empty.plain = torch.ones(1)
        empty.parameter = nn.Parameter(torch.ones(1))
        empty.child = nn.Identity()
        check.calls("what is no buffer", len(seen), 0)

    empty = nn.Identity()
    with globally("buffer_registration_hook", partial(exchange, first, second)):
        with globally("buffer_registration_hook", partial(exchange, second, third)):
            empty.register_buffer("both", first)
        empty.register_buffer("one", first)
        empty.register_buffer("assigned", third)
        empty.assigned = first
        empty.register_buffer("unchanged", third)
    lengths = {name: len(buffer) for name, buffer in empty._buffers.items()}
    expected = {"both": 3, "one": 2, "assigned": 2, "unchanged": 3}
    check.equal("lengths of buffers under hooks that return others", lengths, expected)
    check.equal("names of such buffers in the state dict", list(empty.state_dict()), list(expected))
    check.true("what an attribute gives", empty.one is second)


@program("RG-03", PROMISE, since="2.0", source=SUBMODULE)
def runs_for_submodules(check: Check) -> None:
    """On every registration of a submodule the hook gets module, name and submodule; what it returns is registered."""
    seen: list[Any] = []
    empty: Any = nn.Identity()
    first, second, third = nn.ReLU(), nn.Tanh(), nn.Sigmoid()
    with globally("module_registration_hook", keeping(seen)):
        sequential = nn.Sequential(first, second)
        check.equal("children of a Sequential", seen, [(sequential, "0", first), (sequential, "1", second)])
        seen.clear()
        empty.add_module("a", first)
        empty.register_module("b", second)
        empty.c = third
        empty.c = first
        calls = [(empty, "a", first), (empty, "b", second), (empty, "c", third), (empty, "c", first)]
        check.equal("add_module, register_module, assignment and assignment anew", seen, calls)
        seen.clear()
        chosen = nn.ModuleDict({"key": first})
        listed = nn.ModuleList([first])
        listed.append(second)
        sequential.append(third)
        calls = [(chosen, "key", first), (listed, "0", first), (listed, "1", second), (sequential, "2", third)]
        check.equal("containers", seen, calls)
        seen.clear()
        listed[1] = chosen["key"] = first
        check.equal("items that are set in containers", seen, [(listed, "1", first), (chosen, "key", first)])
        seen.clear()
        empty.number = 1.0
        empty.parameter = nn.Parameter(torch.ones(1))
        empty.register_buffer("buffer", torch.ones(1))
        check.calls("what is no module", len(seen), 0)

    empty = nn.Identity()
    with globally("module_registration_hook", partial(exchange, first, second)):
        with globally("module_registration_hook", partial(exchange, second, third)):
            empty.add_module("both", first)
        empty.add_module("one", first)
        empty.assigned = first
        empty.unchanged = third
    children = {"both": third, "one": second, "assigned": second, "unchanged": third}
    check.equal("submodules under hooks that return others", dict(empty._modules), children)
    check.true("what an attribute gives", empty.one is second)


@program("RG-04", PROMISE, since="2.0", source=f"{PARAMETER}, {BUFFER}, {SUBMODULE}")
def handles_remove(check: Check) -> None:
    """Registration hooks are global state, run in order of registration, and go with their handles."""
    values = {"parameter": nn.Parameter(torch.ones(1)), "buffer": torch.ones(1), "module": nn.Identity()}
    for kind in ("parameter", "buffer", "module"):
        log: list[str] = []
        hooks = getattr(nn.modules.module, f"_global_{kind}_registration_hooks")
        before = dict(hooks)

        def register(log: list[str] = log) -> list[str]:
            log.clear()
            empty = nn.Module()
            empty.register_parameter("parameter", nn.Parameter(torch.ones(1)))
            empty.register_buffer("buffer", torch.ones(1))
            empty.add_module("module", nn.Identity())
            return list(log)

        def assign(log: list[str] = log) -> list[str]:
            log.clear()
            empty: Any = nn.Module()
            empty.parameter = values["parameter"]
            empty.register_buffer("buffer", torch.ones(1))
            empty.buffer = values["buffer"]
            empty.module = values["module"]  # made before the hooks were there
            empty.module = None
            return list(log)

        handles = {word: globally(f"{kind}_registration_hook", noting(log, word)) for word in ("a", "b", "c")}
        check.order(f"three hooks for a {kind}", register(), ["a", "b", "c"])
        times = 1 if kind == "parameter" else 2  # a buffer is registered first, and a module becomes None
        check.order(f"three hooks for a {kind} that is assigned", assign(), times * ["a", "b", "c"])
        handles["b"].remove()
        handles["b"].remove()
        check.order(f"the second removed, twice, for a {kind}", register(), ["a", "c"])
        handles["a"].remove()
        handles["c"].remove()
        check.order(f"all removed for a {kind}", register(), [])
        with globally(f"{kind}_registration_hook", refuses):
            check.raises(f"what a hook raises for a {kind}", ValueError, register, "refused")
            one: Any = nn.Module()
            with suppress(ValueError):
                getattr(one, f"register_{kind}")("one", values[kind])
            check.true(f"a {kind} for which a hook raises is not there", not hasattr(one, "one"))
        check.equal(f"the table of hooks for a {kind}", dict(hooks), before)


@program("RG-05", PIN, since="2.0", source=f"{PARAMETER}, {BUFFER}, {SUBMODULE}")
def none_is_registered_too(check: Check) -> None:
    """Where None is registered, hooks for buffers and submodules get it, and those for parameters are not called."""
    seen: list[Any] = []
    empty: Any = nn.Identity()
    buffer, child = torch.ones(1), nn.ReLU()
    globally("parameter_registration_hook", keeping(seen))
    globally("buffer_registration_hook", keeping(seen))
    globally("module_registration_hook", keeping(seen))
    empty.register_parameter("parameter", None)
    empty.register_buffer("buffer", None)
    empty.add_module("child", None)
    empty.buffer = None
    empty.child = None
    names = ["buffer", "child", "buffer", "child"]
    check.equal("what hooks get", seen, [(empty, name, None) for name in names])
    globally("buffer_registration_hook", partial(exchange, None, buffer))
    globally("module_registration_hook", partial(exchange, None, child))
    empty.buffer = None
    empty.child = None
    check.true("a buffer that a hook returned for None", empty.buffer is buffer)
    check.true("a submodule that a hook returned for None", empty.child is child)


@program("RG-06", PROMISE, since="2.0", source=f"{PARAMETER}; pytorch#86148")
def linear_takes_what_hooks_return(check: Check) -> None:
    """A parameter-registration hook runs for each parameter of a Linear, which computes with what the hook returned."""
    returned: dict[str, Any] = {}

    def hook(module: Any, name: str, parameter: Any) -> Any:
        returned[name] = nn.Parameter(parameter)
        return returned[name]

    with globally("parameter_registration_hook", hook):
        linear = nn.Linear(2, 1)
    check.order("names", list(returned), ["weight", "bias"])
    check.true("weight is what the hook returned", linear.weight is returned["weight"])
    check.true("bias is what the hook returned", linear.bias is returned["bias"])
    for parameter in returned.values():
        parameter.data.fill_(3.0)  # only now: Linear draws its numbers after it has registered them
    check.equal("output", linear(torch.tensor([1.0, 2.0])), [12.0])  # 3 * 1 + 3 * 2 + 3
    returned.clear()
    linear.weight = nn.Parameter(torch.zeros(1, 2))
    check.order("names after remove()", list(returned), [])
    check.equal("output after remove()", linear(torch.tensor([1.0, 2.0])), [3.0])


@program("RG-07", PIN, since="2.0", source="torch.nn.Module.__setattr__; RemoteModule refuses parameters by it")
def assignments_go_through_the_class(check: Check) -> None:
    """A parameter that is assigned goes through ``register_parameter`` as the class of its module has it, and hooks run
    where that hands it on."""
    log: list[Any] = []

    class Refusing(nn.Module):
        def register_parameter(self, name: str, param: Any) -> None:
            log.append(("method", name))
            if name != "refused":
                super().register_parameter(name, param)

    def hook(module: Any, name: str, parameter: Any) -> None:
        log.append(("hook", name))

    empty: Any = Refusing()
    first, second = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(2))
    with globally("parameter_registration_hook", hook):
        empty.a = first
        empty.a = second
        empty.refused = first
        empty.a = None
    both = [("method", "a"), ("hook", "a")]
    check.order("what runs", log, [*both, *both, ("method", "refused"), ("method", "a")])
    check.equal("names of parameters", list(empty._parameters), ["a"])
