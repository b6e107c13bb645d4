"""What becomes of hooks under the utilities of modules, and what do those promise that are made of hooks themselves?

Conversion, moving, sharing, freezing, ``apply`` and parametrization leave a module's hooks where they are and call
none. Pruning, ``weight_norm`` and ``spectral_norm`` are forward pre-hooks themselves, which compute the weight before
each call.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.host_changes import offered
from hookcheck.programs.processes import process_group
from hookcheck.programs.program import program
from hookcheck.programs.watching import noting

PRUNE = "torch.nn.utils.prune"


def _linear(*weights: float) -> Any:
    """``y = weights @ x``, without a bias."""
    net: Any = nn.Linear(len(weights), 1, bias=False)
    net.weight.data = torch.tensor([weights])
    return net


def _hooked() -> tuple[Any, list[Any]]:
    """A module ``y = 3 x`` with forward and backward hooks, and what they note."""
    net, log = _linear(3.0), []
    net.register_forward_pre_hook(lambda module, args: log.append(("pre", module is net, args[0].tolist())))
    net.register_forward_hook(lambda module, args, output: log.append(("forward", module is net, output.tolist())))
    register = getattr(net, "register_full_backward_hook", net.register_backward_hook)
    register(lambda module, grad_input, grad_output: log.append(("backward", module is net, grad_output[0].tolist())))
    return net, log


def _run(net: Any) -> None:
    """One forward and backward on the input 1, in which grad_output is 2."""
    x = torch.ones(1, 1, dtype=net.weight.dtype, requires_grad=True)
    (2 * net(x)).sum().backward()


def _due(output: float) -> list[Any]:
    """What the hooks of `_hooked` note of `_run`."""
    return [("pre", True, [[1.0]]), ("forward", True, [[output]]), ("backward", True, [[2.0]])]


def _emptied(net: Any) -> None:
    """Takes new memory for the weight, and fills it with 5."""
    net.to_empty(device=net.weight.device)
    nn.init.constant_(net.weight, 5.0)


def _keeps_hooks(check: Check, acts: dict[str, tuple[Callable[[Any], Any], float]]) -> None:
    """States that no hook is called by any of ``acts``, and that all are afterwards, on the output that is given."""
    for what, (act, output) in acts.items():
        net, log = _hooked()
        act(net)
        check.order(f"hooks called by {what}", log, [])
        _run(net)
        check.order(f"hooks after {what}", log, _due(output))
        net(torch.ones(1, 1, dtype=net.weight.dtype))
        check.calls(f"calls in a second forward after {what}", len(log) - 3, 2)


@program("MU-01", PIN, since="1.7", source="torch.nn.Module.to, double, cpu; relied on by all who move hooked models")
def conversions_keep_hooks(check: Check) -> None:
    """A module keeps its hooks where it is converted to another dtype or moved, and no hook is called by that."""
    _keeps_hooks(
        check,
        {
            ".to(dtype)": (lambda net: net.to(torch.float64), 3.0),
            ".double()": (lambda net: net.double(), 3.0),
            ".to(device)": (lambda net: net.to(net.weight.device), 3.0),
            ".to(tensor)": (lambda net: net.to(torch.ones(1, dtype=torch.float64)), 3.0),
            ".type(dtype)": (lambda net: net.type(torch.float64), 3.0),
            **({".to_empty(device)": (_emptied, 5.0)} if hasattr(nn.Module, "to_empty") else {}),
        },
    )


@program(
    "MU-02", PIN, since="1.7", source="torch.nn.Module.share_memory, zero_grad, requires_grad_, train, load_state_dict"
)
def other_acts_keep_hooks(check: Check) -> None:
    """A module keeps its hooks under ``share_memory``, ``zero_grad``, ``requires_grad_``, ``train`` and loading."""
    _keeps_hooks(
        check,
        {
            "share_memory": (lambda net: net.share_memory(), 3.0),
            "zero_grad": (lambda net: net.zero_grad(), 3.0),
            "requires_grad_": (lambda net: net.requires_grad_(False), 3.0),
            "eval and train": (lambda net: net.eval().train(), 3.0),
            "load_state_dict": (lambda net: net.load_state_dict({"weight": torch.full((1, 1), 5.0)}), 5.0),
            "apply": (lambda net: net.apply(lambda module: nn.init.constant_(module.weight, 7.0)), 7.0),
            "a place in a Sequential": (nn.Sequential, 3.0),
        },
    )


@program(
    "MU-03", PROMISE, since="1.7", source="torch.nn.Module.apply; 'recursively to every submodule as well as self'"
)
def apply_registers_hooks_everywhere(check: Check) -> None:
    """``apply`` calls its function on every submodule once, children first: hooks can be registered so."""
    net: Any = nn.Sequential(_linear(2.0), nn.Sequential(_linear(3.0)))
    names = {module: name for name, module in net.named_modules()}
    applied: list[str] = []
    log: list[str] = []
    handles: list[Any] = []

    def attach(module: Any) -> None:
        applied.append(names[module])
        handles.append(module.register_forward_hook(lambda module, args, output: log.append(names[module])))

    check.true("apply gives the module itself", net.apply(attach) is net)
    check.order("modules that apply comes to", applied, ["0", "1.0", "1", ""])
    check.order("hooks that apply calls", log, [])
    net(torch.ones(1, 1))
    check.order("hooks in a forward", log, ["0", "1.0", "1", ""])
    for handle in handles:
        handle.remove()
    net(torch.ones(1, 1))
    check.calls("calls once all are removed", len(log) - 4, 0)


@program("MU-04", PIN, since="1.9", source="torch.nn.utils.parametrize.register_parametrization; a class of its own")
def parametrizing_keeps_hooks(check: Check) -> None:
    """A module keeps its hooks when it is parametrized, which gives it another class, and when that is undone."""
    from torch.nn.utils import parametrize

    class Doubled(nn.Module):
        def forward(self, weight: Any) -> Any:
            return 2 * weight

    net, log = _hooked()
    parametrize.register_parametrization(net, "weight", Doubled())
    check.order("hooks that parametrizing calls", log, [])
    _run(net)
    check.order("hooks of a parametrized module", log, _due(6.0))
    log.clear()
    net.register_forward_hook(lambda module, args, output: output + 1)
    check.equal("output under a hook that is registered then", net(torch.ones(1, 1)), [[7]])
    for weight in (5.0, 3.0):
        net.parametrizations.weight.original.data.fill_(weight)
        with parametrize.cached():
            check.equal(f"output within cached: 2 · {weight} + 1", net(torch.ones(1, 1)), [[2 * weight + 1]])
    log.clear()
    parametrize.remove_parametrizations(net, "weight")
    _run(net)
    check.order("hooks once that is undone", log, _due(6.0))
    check.equal("output once that is undone", net(torch.ones(1, 1)), [[7]])


@program("MU-05", PIN, since="1.9", source="torch.nn.utils.parametrize; the parametrization is a module that is called")
def a_parametrization_has_hooks(check: Check) -> None:
    """Hooks of the parametrizations of a weight, of each of a stack and of their list, are called each time the weight
    is read, once within ``cached``, and never once that is undone."""
    from torch.nn.utils import parametrize

    class Times(nn.Module):
        def __init__(self, factor: float) -> None:
            super().__init__()
            self.factor = factor

        def forward(self, weight: Any) -> Any:
            return self.factor * weight

    net, log = _linear(3.0), list[str]()
    for factor in (2.0, 5.0):
        parametrize.register_parametrization(net, "weight", Times(factor))
    parts = net.parametrizations.weight
    for name, part in {"first": parts[0], "second": parts[1], "list": parts}.items():
        part.register_forward_pre_hook(noting(log, f"{name}, before"))
        part.register_forward_hook(noting(log, name))
        part.register_full_backward_hook(noting(log, f"{name}, backward"))
    read = ["list, before", "first, before", "first", "second, before", "second", "list"]
    check.equal("the weight: 5 · 2 · 3", net.weight, [[30]])
    check.order("calls in a read", log, read)
    log.clear()
    output = net(torch.ones(1, 1))
    check.order("calls in a forward", log, read)
    log.clear()
    output.sum().backward()
    check.order(
        "calls in a backward", [word for word in log if "list" not in word], ["second, backward", "first, backward"]
    )
    check.equal("gradient of the original", parts.original.grad, [[10]])
    log.clear()
    with parametrize.cached():
        net(torch.ones(1, 1))
        net(torch.ones(1, 1))
    check.order("calls in two forwards within cached", log, read)
    with suppress(ValueError), parametrize.cached():
        net(torch.ones(1, 1))
        raise ValueError("on purpose")
    log.clear()
    check.equal("the weight after an error within cached", net.weight, [[30]])
    check.order("calls in a read after that", log, read)
    parametrize.remove_parametrizations(net, "weight")
    log.clear()
    net(torch.ones(1, 1)).sum().backward()
    check.order("calls once that is undone", log, [])
    check.equal("the weight once that is undone", net.weight, [[30]])
    of_two_originals(check)


def of_two_originals(check: Check) -> None:
    """The same of a parametrization that computes the weight of two tensors, which came with torch 1.10."""
    from torch.nn.utils import parametrize

    class Sum(nn.Module):
        def forward(self, first: Any, second: Any) -> Any:
            return first + second

        def right_inverse(self, weight: Any) -> Any:
            return weight - 1, torch.ones_like(weight)

    if not offered((1, 10)):
        return
    net, log = _linear(3.0), list[str]()
    parametrize.register_parametrization(net, "weight", Sum())
    (part,) = net.parametrizations.weight
    part.register_forward_pre_hook(noting(log, "before"))
    part.register_forward_hook(lambda module, args, output: log.append("after") or 10 * output)
    check.equal("a weight of two originals: 10 (2 + 1)", net.weight, [[30]])
    check.order("calls in a read of it", log, ["before", "after"])


@program("MU-06", PIN, since="1.7", source="torch.nn.Sequential.__getitem__, torch.nn.ModuleList.__getitem__")
def containers_share_modules_and_no_hooks(check: Check) -> None:
    """What is taken out of a container has the modules themselves, with their hooks, and no hook of the container."""
    kinds: tuple[Any, ...] = (nn.Sequential, nn.ModuleList)
    for kind in kinds:
        parts = [_linear(2.0), _linear(3.0), _linear(5.0)]
        net: Any = kind(*parts) if kind is nn.Sequential else kind(parts)
        log: list[str] = []
        number_of = {part: number for number, part in enumerate(parts)}
        for part, number in number_of.items():
            part.register_forward_hook(lambda module, args, output, log=log, number=number: log.append(str(number)))
        net.register_forward_hook(lambda module, args, output, log=log: log.append("all"))
        taken = {
            "a slice": net[1:],
            "a step": net[::2],
            "another one of its parts": kind(*net) if kind is nn.Sequential else kind(net),
        }
        due = {"a slice": [1, 2], "a step": [0, 2], "another one of its parts": [0, 1, 2]}
        if kind is nn.Sequential and offered((2, 0)):
            taken["twice itself"], due["twice itself"] = net * 2, [0, 1, 2] * 2
        for what, other in taken.items():
            name = f"{kind.__name__}: {what}"
            check.equal(f"{name}: the modules", [number_of.get(part) for part in other], due[what])
            check.calls(f"{name}: hooks of its own", len(other._forward_hooks), 0)
            log.clear()
            x = torch.ones(1, 1)
            for part in [other] if kind is nn.Sequential else other:
                x = part(x)
            check.order(f"{name}: hooks in a call", log, [*map(str, due[what])])


@program("PN-01", PROMISE, since="1.7", source=f"{PRUNE}.BasePruningMethod.apply, is_pruned, remove")
def pruning_is_a_pre_hook(check: Check) -> None:
    """Pruning adds a forward pre-hook, by which ``is_pruned`` knows it and which ``remove`` takes off for good."""
    prune: Any = import_module(PRUNE)
    net = _linear(3.0, 5.0)
    log: list[Any] = []
    net.register_forward_pre_hook(lambda module, args: log.append(module.weight.tolist()))
    check.equal("is_pruned before", prune.is_pruned(net), False)
    prune.custom_from_mask(net, "weight", torch.tensor([[1.0, 0.0]]))
    check.equal("is_pruned after", prune.is_pruned(net), True)
    check.equal("is_pruned of what has it inside", prune.is_pruned(nn.Sequential(net)), True)
    kinds = [isinstance(hook, prune.BasePruningMethod) for hook in net._forward_pre_hooks.values()]
    check.equal("pre-hooks, and which prune", kinds, [False, True])
    x = torch.ones(1, 2)
    check.equal("output: 3 + 0", net(x), [[3]])
    net.weight_orig.data.fill_(7.0)
    check.equal("the weight before a call", net.weight, [[3, 0]])
    check.equal("output: 7 + 0", net(x), [[7]])
    check.order("the weight as an earlier pre-hook sees it", log, [[[3.0, 0.0]], [[3.0, 0.0]]])
    prune.remove(net, "weight")
    check.equal("is_pruned once it is removed", prune.is_pruned(net), False)
    check.equal("the weight once it is removed", net.weight, [[7, 0]])
    check.true("the weight is a parameter again", isinstance(net.weight, nn.Parameter))
    check.equal("output once it is removed", net(x), [[7]])
    check.calls("calls of the other pre-hook", len(log), 3)
    check.calls("pre-hooks that are left", len(net._forward_pre_hooks), 1)
    check.raises("removing it again", ValueError, lambda: prune.remove(net, "weight"), "has to be pruned")


@program(
    "PN-02", PROMISE, since="1.7", source="torch.nn.utils.weight_norm, spectral_norm; 'before every forward() call'"
)
def norms_are_pre_hooks(check: Check) -> None:
    """``weight_norm`` and ``spectral_norm`` (hook form) compute the weight anew before each call of the module."""
    x = torch.ones(1, 2)
    net = torch.nn.utils.weight_norm(_linear(3.0, 4.0))  # g = 5, v = (3, 4): weight = g * v / 5
    check.equal("g of weight_norm", net.weight_g, [[5]])
    net.weight_g.data.fill_(10.0)
    check.equal("the weight before a call", net.weight, [[3, 4]])
    check.equal("output of forward itself, which calls no hook", net.forward(x), [[7]])
    check.equal("output of a call: 6 + 8", net(x), [[14]])
    check.equal("the weight after a call", net.weight, [[6, 8]])
    torch.nn.utils.remove_weight_norm(net)
    check.calls("pre-hooks once weight_norm is removed", len(net._forward_pre_hooks), 0)
    check.equal("output once weight_norm is removed", net(x), [[14]])

    rnn = nn.RNN(1, 1, nonlinearity="relu", bias=False)  # it keeps its weights in a list besides
    nn.init.constant_(rnn.weight_ih_l0, 3.0)
    torch.nn.utils.weight_norm(rnn, "weight_ih_l0")
    rnn.weight_ih_l0_g.data.fill_(10.0)
    check.equal("output of a call of an nn.RNN: 10·1", rnn(torch.ones(1, 1, 1))[0], [[[10]]])

    net = torch.nn.utils.spectral_norm(_linear(3.0, 4.0))  # of one row: weight / its length
    check.equal("output of a call under spectral_norm: 0.6 + 0.8", net(x), [[1.4]])
    net.weight_orig.data = torch.tensor([[0.0, -2.0]])
    check.equal("the weight before a call under spectral_norm", net.weight, [[0.6, 0.8]])
    for _ in range(2):  # the power iteration of one step a call is exact on a single row
        output = net(x)
    check.equal("output of a call under spectral_norm: 0 - 1", output, [[-1]])
    torch.nn.utils.remove_spectral_norm(net)
    check.calls("pre-hooks once spectral_norm is removed", len(net._forward_pre_hooks), 0)


@program("MU-07", PIN, since="1.8", source="torch.optim.swa_utils.AveragedModel, update_bn; 'one pass over data'")
def averaging_meets_hooks(check: Check) -> None:
    """``update_bn`` calls a model once with each batch, forward hooks and all, in training mode and without gradients;
    ``update_parameters`` calls no hook, and an AveragedModel keeps the hooks that it got."""
    swa: Any = import_module("torch.optim.swa_utils")
    for name in ("update_bn", "update_parameters"):
        net = nn.Sequential(_linear(3.0), nn.BatchNorm1d(1)).eval()
        averaged, log = swa.AveragedModel(net).eval(), list[Any]()
        parts = {"model": averaged, "net": averaged.module, "linear": averaged.module[0], "norm": averaged.module[1]}
        for word, part in parts.items():
            part.register_forward_pre_hook(noting(log, f"{word}, before"))
            part.register_forward_hook(noting(log, word))
            part.register_full_backward_hook(noting(log, f"{word}, backward"))
        net.register_forward_hook(noting(log, "the model that is averaged"))
        due = ["model, before", "net, before", "linear, before", "linear", "norm, before", "norm", "net", "model"]
        modes: list[Any] = []
        averaged.register_forward_hook(
            lambda module, args, output, modes=modes: modes.append((module.training, torch.is_grad_enabled()))
        )
        if name == "update_bn":
            batches = (torch.tensor([[1.0], [3.0]]), [torch.tensor([[5.0], [7.0]]), "a label"])
            swa.update_bn(batches, averaged)
            check.order("hooks in update_bn", log, due * 2)
            check.equal("training and grad mode in update_bn", modes, [(True, False)] * 2)
            check.equal("the mean of the batches: 3 · 4", averaged.module[1].running_mean, [12])
            check.true("the mode is that of before", not averaged.training)
            check.equal("the momentum is that of before", averaged.module[1].momentum, 0.1)
        else:
            for weight in (5.0, 7.0):
                net[0].weight.data.fill_(weight)
                averaged.update_parameters(net)
            check.order("hooks in update_parameters", log, [])
            check.equal("the average of 5 and 7", averaged.module[0].weight, [[6]])
        log.clear()
        x = torch.ones(2, 1, requires_grad=True)
        averaged(x).sum().backward()
        back = [f"{word}, backward" for word in ("norm", "linear", "net", "model")]
        check.order(f"hooks in a run after {name}", log, [*due, *back])


@program("DS-17", PROMISE, since="2.5", source="torch.distributed.tensor.distribute_module; 'input_fn', 'output_fn'")
def distribute_module_registers_hooks(check: Check) -> None:
    """``distribute_module`` makes ``input_fn`` a pre-hook and ``output_fn`` a forward hook of the top module."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, distribute_module, distribute_tensor

    net = nn.Sequential(_linear(3.0))
    log: list[Any] = []

    def entering(module: Any, args: Any, mesh: Any) -> Any:
        log.append(("input_fn", module is net, args[0].to_local().tolist()))
        return (args[0] + 1,)

    def leaving(module: Any, output: Any, mesh: Any) -> Any:
        log.append(("output_fn", module is net, output.to_local().tolist()))
        return output.to_local() + 10

    with process_group(check):
        mesh = init_device_mesh("cpu", (1,))
        distribute_module(net, mesh, input_fn=entering, output_fn=leaving)
        counts = [(len(m._forward_pre_hooks), len(m._forward_hooks)) for m in net.modules()]
        check.equal("hooks of the top module and of its child", counts, [(1, 1), (0, 0)])
        output = net(distribute_tensor(torch.ones(1, 1), mesh, [Replicate()]))
    check.order("hooks in a call", log, [("input_fn", True, [[1.0]]), ("output_fn", True, [[6.0]])])
    check.equal("output: 3 * (1 + 1) + 10", output, [[16]])
