"""Do the hooks that torch itself registers keep what the utilities promise that are made of them?

Pruning, ``weight_norm`` and ``spectral_norm`` compute a tensor in a forward pre-hook, and keep states loadable by
hooks; a lazy module learns its sizes in one; ``checkpoint_wrapper`` hides itself from states by hooks; quantisation
observes by them. Each may be there twice on one module, be undone for one tensor alone, meet a state that was saved
without it, and hooks of a user.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import product
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check, NotOffered
from hookcheck.programs.host_changes import offered, quantization
from hookcheck.programs.program import program
from hookcheck.programs.watching import noting

PRUNE = "torch.nn.utils.prune"
PAIR = ("weight_ih", "weight_hh")
"""The tensors of `cell`."""


@dataclass(frozen=True)
class Computed:
    """What computes a tensor of a module in a pre-hook: how it is done and undone, what it computes the tensor from,
    and what comes of -8 there for a tensor of one number that was 4."""

    do: Callable[[Any, str], Any]
    undo: Callable[[Any, str], Any]
    source: str
    of_minus_8: float


def computed() -> dict[str, Computed]:
    """Each of them, by name."""
    prune: Any = import_module(PRUNE)
    norms: Any = import_module("torch.nn.utils")
    return {
        "pruning": Computed(prune.identity, prune.remove, "_orig", -8.0),
        "weight_norm": Computed(norms.weight_norm, norms.remove_weight_norm, "_g", -8.0),  # g * v / |v|, and v is 4
        "spectral_norm": Computed(norms.spectral_norm, norms.remove_spectral_norm, "_orig", -1.0),  # w / |w|
    }


def cell() -> Any:
    """A module of two tensors of one number, 4 each."""
    net: Any = nn.RNNCell(1, 1, bias=False)
    for parameter in net.parameters():
        parameter.data.fill_(4.0)
    return net


def quietly(act: Callable[[], Any]) -> Any:
    """What ``act`` gives, without the warnings that it is deprecated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return act()


def linear(*weights: float) -> Any:
    """``y = weights @ x``, without a bias."""
    net: Any = nn.Linear(len(weights), 1, bias=False)
    net.weight.data = torch.tensor([weights])
    return net


@program("HT-01", PIN, since="1.7", source=f"{PRUNE}.remove, torch.nn.utils.remove_weight_norm, remove_spectral_norm")
def two_tensors_are_computed_apart(check: Check) -> None:
    """Where two tensors of a module are computed before each call, undoing that for one of them leaves the other."""
    for (name, way), (one, other) in product(computed().items(), (PAIR, PAIR[::-1])):
        net, what = cell(), f"{name}, undone for {one}"
        for tensor in PAIR:
            quietly(partial(way.do, net, tensor))
        check.calls(f"{what}: pre-hooks for two", len(net._forward_pre_hooks), 2)
        quietly(partial(way.undo, net, one))
        check.calls(f"{what}: pre-hooks for the other", len(net._forward_pre_hooks), 1)
        names = [tensor for tensor, _ in net.named_parameters() if tensor in PAIR]
        check.equal(f"{what}: parameters again", names, [one])
        with suppress(AttributeError):  # it was undone for the other one, which a fact has told of
            getattr(net, f"{other}{way.source}").data.fill_(-8.0)
            net(torch.ones(1, 1))
        check.equal(f"{what}: the other, of -8", getattr(net, other), [[way.of_minus_8]])
        before = getattr(net, one).tolist()
        net(torch.ones(1, 1))
        check.equal(f"{what}: the one, after a call", getattr(net, one), before)
        if name == "spectral_norm":
            check.equal(f"{what}: versions in the state", versions(net), {f"{other}.version": 1})
            with suppress(ValueError):
                way.undo(net, other)
            check.equal(f"{what}, and for the other: versions in the state", versions(net), {})


def versions(net: Any) -> Any:
    """Of which version the states of a module's spectral norms are, as its state dict says."""
    return net.state_dict()._metadata[""].get("spectral_norm", {})


@program("HT-02", PIN, since="1.7", source="torch.nn.utils.weight_norm; 'Cannot register two weight_norm hooks'")
def a_norm_is_there_once(check: Check) -> None:
    """A norm in the form of a hook refuses to be put on a tensor that it is on, and leaves all as it was."""
    for name in ("weight_norm", "spectral_norm"):
        net, way = cell(), computed()[name]
        quietly(partial(way.do, net, "weight_ih"))
        keys = [*net.state_dict()]
        again = partial(quietly, partial(way.do, net, "weight_ih"))
        check.raises(f"{name} again", RuntimeError, again, f"Cannot register two {name} hooks")
        check.calls(f"{name}: pre-hooks", len(net._forward_pre_hooks), 1)
        check.equal(f"{name}: keys of the state", [*net.state_dict()], keys)


@program("HT-09", PIN, since="1.7", source="torch.nn.utils.spectral_norm.SpectralNorm.compute_weight, its comments")
def a_norm_comes_nearer_in_training(check: Check) -> None:
    """A ``spectral_norm`` comes nearer to the singular vectors with each call in training, in eval it takes those that
    there are; and one backward goes through several calls in training."""
    net, x = nn.Linear(2, 2, bias=False), torch.ones(1, 2, requires_grad=True)
    net.weight.data.copy_(torch.tensor([[3.0, 1.0], [0.0, 2.0]]))
    quietly(partial(nn.utils.spectral_norm, net))
    net.weight_u.copy_(torch.tensor([1.0, 0.0]))  # of which neither this nor its image is singular
    for mode, moved in {"eval": False, "train": True}.items():
        before = net.weight_u.tolist()
        getattr(net, mode)()
        outputs = [net(x), net(x)]
        check.true(f"whether the vector moves in {mode}", (net.weight_u.tolist() != before) is moved)
        check.works(f"one backward of two calls in {mode}", (outputs[0] - outputs[1]).sum().backward)


@program("HT-03", PROMISE, since="1.7", source=f"{PRUNE}.PruningContainer, 'combining successive pruning calls'")
def pruning_adds_up(check: Check) -> None:
    """A tensor that is pruned again has one pre-hook, which keeps what was pruned before; a pruning that fails leaves
    the module as it was; and the masks are in the state."""
    prune: Any = import_module(PRUNE)

    class Failing(prune.BasePruningMethod):
        """A method that finds no mask."""

        PRUNING_TYPE = "unstructured"

        def compute_mask(self, t: Any, default_mask: Any) -> Any:
            raise ValueError("no mask is found")

    net, x = linear(3.0, 5.0, 7.0), torch.ones(1, 3)
    check.raises("a method that fails", ValueError, lambda: Failing.apply(net, "weight"), "no mask is found")
    check.equal("parameters after that", [name for name, _ in net.named_parameters()], ["weight"])
    check.calls("pre-hooks after that", len(net._forward_pre_hooks), 0)
    prune.custom_from_mask(net, "weight", torch.tensor([[1.0, 0.0, 1.0]]))
    prune.custom_from_mask(net, "weight", torch.tensor([[0.0, 1.0, 1.0]]))
    check.calls("pre-hooks of a tensor that is pruned twice", len(net._forward_pre_hooks), 1)
    check.equal("output: 0 + 0 + 7", net(x), [[7]])
    kinds = [
        [type(method).__name__ for method in hook]
        for hook in net._forward_pre_hooks.values()
        if hasattr(hook, "__iter__")
    ]
    check.equal("what the hook holds", kinds, [["CustomFromMask", "CustomFromMask"]])
    other = linear(1.0, 1.0, 1.0)
    prune.identity(other, "weight")
    check.works("the state in another one that is pruned", partial(other.load_state_dict, net.state_dict()))
    check.equal("output of the other one", other(x), [[7]])


def across(check: Check, name: str, there: Any, here: Any) -> None:
    """States that the state of ``there`` goes into ``here``, which then gives the same output."""
    x = torch.ones(1, 2)
    check.works(f"{name}: the state is loaded", partial(here.load_state_dict, there.state_dict()))
    check.equal(f"{name}: the output", here(x), there(x).tolist())


@program(
    "HT-04", PROMISE, since="1.8", source="torch.nn.utils.parametrizations.weight_norm; its load_state_dict pre-hook"
)
def states_go_across(check: Check) -> None:
    """The state of a module whose tensors are computed by hooks goes into another one of its kind, and gives the same
    output; that of ``weight_norm`` goes into its newer form too."""
    for name in ("weight_norm", "spectral_norm"):
        there, here = (
            quietly(partial(computed()[name].do, linear(*w), "weight")).eval() for w in ((3.0, 4.0), (1.0, 2.0))
        )
        across(check, name, there, here)
    check.equal("spectral_norm: the version in the state", versions(there), {"weight.version": 1})
    older = {"weight": torch.tensor([[0.6, 0.8]]), "weight_orig": torch.tensor([[6.0, 8.0]]), "weight_u": torch.ones(1)}
    here = quietly(partial(nn.utils.spectral_norm, linear(1.0, 2.0))).eval()
    check.works("spectral_norm: a state of torch 0.4", partial(here.load_state_dict, older))
    check.equal("spectral_norm: the output with that: 0.6 + 0.8", here(torch.ones(1, 2)), [[1.4]])
    parametrizations = getattr(nn.utils, "parametrizations", None)
    if hasattr(parametrizations, "weight_norm"):
        older = quietly(partial(nn.utils.weight_norm, linear(3.0, 4.0)))
        older.weight_g.data.fill_(10.0)
        older(torch.ones(1, 2))
        across(check, "weight_norm, newer", older, parametrizations.weight_norm(linear(1.0, 2.0)))
        newer = nn.Sequential(parametrizations.weight_norm(linear(1.0, 2.0)))
        across(check, "weight_norm, newer, of a child", nn.Sequential(older), newer)


@program("HT-12", PROMISE, since="1.9", source="torch.nn.utils.parametrize.register_parametrization, cached")
def hooks_on_parametrizations(check: Check) -> None:
    """Hooks on a parametrization, and on the list of those of a tensor, are called once each time that the tensor is
    computed, also after another one has come to the list; under ``cached`` that is once in all."""
    parametrize: Any = import_module("torch.nn.utils.parametrize")
    net, second, log = linear(3.0), nn.Identity(), list[str]()
    parametrize.register_parametrization(net, "weight", nn.Identity())
    each = net.parametrizations.weight
    for name, module in {"list": each, "first": each[0], "second": second}.items():
        module.register_forward_pre_hook(noting(log, f"{name}, before"))
        module.register_forward_hook(noting(log, name))
    parametrize.register_parametrization(net, "weight", second)
    one_after_the_other = ["list, before", "first, before", "first", "second, before", "second", "list"]
    for what, cached, calls in (("", False, 2), (", cached", True, 1), (", no longer cached", False, 2)):
        log.clear()
        with parametrize.cached() if cached else nullcontext():
            outputs = [net(torch.ones(1, 1)).item() for _ in range(2)]
        check.order(f"hooks in two calls{what}", log, one_after_the_other * calls)
        check.equal(f"outputs of two calls{what}", outputs, [3, 3])
    nets = [linear(factor) for factor in (3.0, 5.0)]
    for one in nets:
        parametrize.register_parametrization(one, "weight", nn.Identity())
    with parametrize.cached():
        check.equal("outputs of two modules, cached", [one(torch.ones(1, 1)).item() for one in nets], [3, 5])


@program("HT-05", PROMISE, since="1.13", source="torch.nn.modules.lazy.LazyModuleMixin; cls_to_become")
def a_lazy_module_becomes_an_ordinary_one(check: Check) -> None:
    """A lazy module is an ordinary one after its first call, in which hooks of the user run, and keeps no hook of its
    own; a state that is loaded before gives it its sizes and its numbers."""
    if not hasattr(nn, "LazyLinear"):
        raise NotOffered("this torch has no lazy modules")
    for name, loaded in {"called": None, "loaded, then called": linear(3.0, 4.0).state_dict()}.items():
        net: Any = nn.LazyLinear(1, bias=False)
        log: list[str] = []
        net.register_forward_pre_hook(lambda module, args, log=log: log.append("pre"))
        net.register_forward_hook(lambda module, args, output, log=log: log.append("forward"))
        if loaded:
            check.works(f"{name}: loading", partial(net.load_state_dict, loaded))
        output = check.works(f"{name}: the call", partial(net, torch.ones(1, 2)))
        check.order(f"{name}: hooks in the first call", log, ["pre", "forward"])
        check.true(f"{name}: an ordinary Linear", type(net) is nn.Linear)
        check.equal(f"{name}: shape of the weight", tuple(net.weight.shape), (1, 2))
        counts = [len(net._forward_pre_hooks), len(net._forward_hooks), len(net._load_state_dict_pre_hooks)]
        check.equal(f"{name}: pre-hooks, forward hooks, load pre-hooks", counts, [1, 1, 0])
        check.equal(f"{name}: attributes beside those of a Linear", sorted(vars(net).keys() - vars(linear(1.0))), [])
        if loaded:
            check.equal(f"{name}: output: 3 + 4", output, [[7]])
    net = nn.LazyLinear(1, bias=False)
    check.raises("a first call that fails", AttributeError, partial(net, None), "shape")
    check.works("the call after it", partial(net, torch.ones(1, 2)))
    check.true("an ordinary Linear after it", type(net) is nn.Linear)


@program(
    "HT-06", PIN, since="2.0", source="torch.distributed.algorithms._checkpoint.checkpoint_wrapper; its state hooks"
)
def a_wrapper_hides_itself_from_states(check: Check) -> None:
    """``checkpoint_wrapper`` leaves no trace in a state, which so goes into the module itself, and the other way; and a
    call of it runs the hooks of the module."""
    try:
        wrapper: Any = import_module("torch.distributed.algorithms._checkpoint.checkpoint_wrapper")
    except ImportError as missing:
        raise NotOffered("this torch has no checkpoint_wrapper") from missing
    inner = linear(3.0, 4.0)
    log: list[str] = []
    inner.register_forward_hook(lambda module, args, output: log.append("forward"))
    wrapped = nn.Sequential(wrapper.checkpoint_wrapper(inner))
    check.equal("keys of the state", [*wrapped.state_dict()], ["0.weight"])
    across(check, "plain", wrapped, nn.Sequential(linear(1.0, 2.0)))
    across(check, "wrapped", nn.Sequential(linear(5.0, 6.0)), wrapped)
    check.order("hooks of the module, in a call each", log, ["forward", "forward"])


@program(
    "HT-07",
    PIN,
    since="2.0",
    source="torch.distributed.optim._apply_optimizer_in_backward, 'after the gradient has been",
)
def an_optimizer_steps_in_backward(check: Check) -> None:
    """Optimizers that are applied in backward step once in each, with the gradient of all uses of the parameter, after
    its own hooks; then the gradient is let go of, so that nothing is left for the next backward; and where no hook is
    registered, or it is removed, all is as it was."""
    try:
        optim: Any = import_module("torch.distributed.optim")
    except ImportError as missing:
        raise NotOffered("this torch is built without torch.distributed") from missing
    handles = import_module("torch.distributed.optim.apply_optimizer_in_backward").param_to_optim_hook_handle_map
    for name, rates, options in (
        ("one optimizer", [0.25], {}),
        ("two optimizers", [0.25, 0.5], {}),
        *([("without a hook", [0.25], {"register_hook": False})] if offered((2, 1)) else []),
        ("removed", [0.25], {}),
    ):
        net, log = linear(1.0), list[Any]()
        for rate in rates:
            optim._apply_optimizer_in_backward(torch.optim.SGD, net.parameters(), {"lr": rate}, **options)
        optimizers = net.weight._in_backward_optimizers
        check.equal(f"{name}: rates", [optimizer.param_groups[0]["lr"] for optimizer in optimizers], rates)
        net.weight.register_hook(lambda grad, log=log, net=net: log.append(("hook", grad.item(), net.weight.item())))
        for optimizer in optimizers:
            optimizer.register_step_pre_hook(
                lambda optimizer, *_, log=log, net=net: log.append(
                    (optimizer.param_groups[0]["lr"], getattr(net.weight.grad, "item", str)(), net.weight.item())
                )
            )
        if name == "removed":
            for handle in handles[net.weight]:
                handle.remove()
        weight, stepping, due = 1.0, name.endswith(("optimizer", "optimizers")), list[Any]()
        for _ in range(2):
            # the gradient is 3 and, of the second use, 4
            (net(torch.tensor([[3.0]])) + net(torch.tensor([[4.0]]))).sum().backward()
            due.append(("hook", 7.0, weight))
            for rate in rates if stepping else ():
                due.append((rate, 7.0, weight))
                weight -= 7 * rate
        check.order(f"{name}: hooks with gradient and weight", [each for each in log if each[1] != ""], due)
        check.equal(f"{name}: the weight after two backwards", net.weight, [[weight]])
        check.equal(f"{name}: what is left of gradients", net.weight.grad, None if stepping else [[14]])


# A Linear of 3.01 and 3.99, called with (1, 1) and (1, 0), gives 7 and 3.01: of 255 steps up to 7 the 110th is nearest.
OBSERVED, IN_STEPS = [[7.0], [3.01]], [[7.0], [110 * 7 / 255]]


@dataclass(frozen=True)
class Observing:
    """A way to observe: the class and options of what quantises, whether it is a pre-hook, which numbers it has seen,
    smallest and largest, and what hooks of a user get of the output."""

    quantises: bool
    options: dict[str, Any]
    before: bool
    seen: tuple[float, float]
    handed_on: list[list[float]]
    since: tuple[int, int] = (1, 8)

    def observer(self) -> Any:
        """What makes the observer of a module."""
        q = quantization()
        if not self.quantises:
            return q.MinMaxObserver
        kind = q.MovingAverageMinMaxObserver if self.options else q.MinMaxObserver
        return q.FakeQuantize.with_args(observer=kind, quant_min=0, quant_max=255, dtype=torch.quint8, **self.options)


OBSERVINGS = {
    "an observer": Observing(False, {}, False, (3.01, 7.0), OBSERVED),
    "a fake quantisation": Observing(True, {}, False, (3.01, 7.0), IN_STEPS),
    "one without memory": Observing(True, {"averaging_constant": 1}, True, (0.0, 1.0), OBSERVED, (1, 12)),
}
"""The ways to observe, by name; one without memory observes what a module is given."""


def whose(table: Any) -> list[str]:
    """Of each hook of a table, whether it is torch's."""
    return ["torch" if hook.__module__.startswith("torch.") else "user" for hook in table.values()]


@program(
    "HT-08",
    PROMISE,
    since="1.8",
    source="torch.ao.quantization.prepare, 'added observer modules and forward_hooks', convert, swap_module",
)
def observers_come_and_go(check: Check) -> None:
    """After ``prepare`` each module that is observed has one hook for that, before those of a user, which get what it
    hands on; after ``convert`` it is gone, of modules that are not converted as well, and a user's hooks are there."""
    for name, way in OBSERVINGS.items():
        if not offered(way.since):
            continue
        part, log = linear(3.01, 3.99), []  # type: tuple[Any, list[Any]]
        net: Any = nn.Sequential(part).eval()
        net.qconfig = quantization().QConfig(activation=way.observer(), weight=quantization().default_weight_observer)
        part.register_forward_pre_hook(lambda module, args: None)
        part.register_forward_hook(lambda module, args, output, log=log: (log.append(output.tolist()), output * 0)[1])
        prepared = quietly(partial(quantization().prepare, net))[0]
        check.order(f"{name}: pre-hooks", whose(prepared._forward_pre_hooks), ["torch"] * way.before + ["user"])
        check.order(f"{name}: forward hooks", whose(prepared._forward_hooks), ["torch"] * (not way.before) + ["user"])
        x = torch.tensor([[1.0, 1.0], [1.0, 0.0]])
        check.equal(f"{name}: output", prepared(x), [[0], [0]])
        check.equal(f"{name}: what a user's hook gets", log, [way.handed_on])
        observer = prepared.activation_post_process
        observer = getattr(observer, "activation_post_process", observer)
        check.equal(f"{name}: what it has seen", [observer.min_val.item(), observer.max_val.item()], [*way.seen])
        for what, mapping in {"converted": None, "left as it is": {nn.Identity: nn.Identity}}.items():
            result = quietly(partial(quantization().convert, copy.deepcopy(nn.Sequential(prepared)), mapping=mapping))
            tables = [
                whose(table) for part in result.modules() for table in (part._forward_pre_hooks, part._forward_hooks)
            ]
            check.equal(f"{name}, {what}: hooks", [hooks for hooks in tables if hooks], [["user"], ["user"]])
            check.true(f"{name}, {what}: the same module", (type(result[0]) is nn.Linear) is bool(mapping))
