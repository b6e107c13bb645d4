"""What becomes of hooks on parameters where a module is converted, loaded, moved, frozen or shared?

A hook belongs to the tensor that it was registered on. So it stays where a module is converted, moved, frozen or loaded
by copying, all of which keep its parameters, and is gone where another parameter takes the place. Nor does it leave a
leaf that is handed to an operation.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.host_changes import offered
from hookcheck.programs.processes import process_group
from hookcheck.programs.program import program
from hookcheck.programs.watching import noting

TENSOR = "torch.Tensor.register_hook"
POST = "torch.Tensor.register_post_accumulate_grad_hook"


def _hooked() -> tuple[Any, list[Any]]:
    """A module ``y = weight * x`` whose weight has hooks of every kind, and what they note: their gradients."""
    net: Any = nn.Linear(1, 1, bias=False)
    log: list[Any] = []
    net.weight.register_hook(lambda grad: log.append(("tensor", grad.tolist())))
    if hasattr(net.weight, "register_post_accumulate_grad_hook"):
        net.weight.register_post_accumulate_grad_hook(lambda weight: log.append(("accumulated", weight.grad.tolist())))
    return net, log


def _due(grad: Any) -> list[Any]:
    """What the hooks of `_hooked` note of a gradient."""
    offered = ("tensor", "accumulated") if hasattr(torch.Tensor, "register_post_accumulate_grad_hook") else ("tensor",)
    return [(kind, grad) for kind in offered]


def _step(net: Any) -> None:
    """One backward in which the gradient of the weight is 2."""
    net.weight.grad = None
    (2 * net.weight).sum().backward()


def _keeps_hooks(check: Check, acts: dict[str, Callable[[Any], Any]]) -> None:
    """States that hooks are called once, after each of ``acts`` as before it, also if a backward came before that."""
    for what, act in acts.items():
        for when in ("before any backward", "after a backward"):
            net, log = _hooked()
            weight = net.weight
            if when == "after a backward":
                _step(net)
            log.clear()
            act(net)
            check.true(f"the parameter is the same after {what} {when}", net.weight is weight)
            _step(net)
            check.order(f"hooks after {what} {when}", log, _due([[2.0]]))


def _swapping(act: Callable[[Any], Any]) -> Callable[[Any], None]:
    """Does ``act`` while modules swap their parameters for converted ones instead of changing their data."""

    def swapped(net: Any) -> None:
        before = torch.__future__.get_swap_module_params_on_conversion()
        torch.__future__.set_swap_module_params_on_conversion(True)
        try:
            act(net)
        finally:
            torch.__future__.set_swap_module_params_on_conversion(before)

    return swapped


@program("PH-01", PIN, since="1.7", source=f"torch.nn.Module.to, {TENSOR}; relied on by DeepSpeed")
def conversions_keep_hooks(check: Check) -> None:
    """A parameter keeps its hooks where its module is converted to another dtype or moved: it stays the same object."""
    _keeps_hooks(
        check,
        {
            ".to(dtype)": lambda net: net.to(torch.float64),
            ".double()": lambda net: net.double(),
            ".to(device)": lambda net: net.to(net.weight.device),
            ".cpu()": lambda net: net.cpu(),
        },
    )
    net, _ = _hooked()
    _step(net)
    check.equal(
        "dtype of a gradient once its module is converted", str(net.double().weight.grad.dtype), "torch.float64"
    )


@program("PH-02", PIN, since="1.7", source=f"torch.Tensor.data, {TENSOR}; relied on by DeepSpeed")
def new_data_keeps_hooks(check: Check) -> None:
    """A parameter keeps its hooks where ``.data`` is set, to another dtype or shape too: they get gradients like it."""
    _keeps_hooks(
        check,
        {
            ".data = of the same kind": lambda net: setattr(net.weight, "data", torch.ones(1, 1)),
            ".data = of another dtype": lambda net: setattr(net.weight, "data", torch.ones(1, 1, dtype=torch.float64)),
        },
    )
    net, log = _hooked()
    net.weight.data = torch.ones(3)
    _step(net)
    check.order("hooks after .data = of another shape", log, _due([2.0, 2.0, 2.0]))


@program("PH-03", PIN, since="1.7", source=f"torch.nn.Module.load_state_dict, {TENSOR}")
def loading_keeps_hooks(check: Check) -> None:
    """A parameter keeps its hooks where its module loads a state_dict by copying, which calls none of them."""
    _keeps_hooks(check, {"load_state_dict": lambda net: net.load_state_dict({"weight": torch.ones(1, 1)})})
    net, log = _hooked()
    net.load_state_dict({"weight": torch.full((1, 1), 5.0)})
    check.order("hooks that loading calls", log, [])
    check.equal("the weight that is loaded", net.weight, [[5]])


@program("PH-04", PIN, since="1.7", source=f"torch.nn.Module.requires_grad_ and its like, {TENSOR}")
def other_acts_keep_hooks(check: Check) -> None:
    """A parameter keeps its hooks under ``zero_grad``, ``requires_grad_``, ``share_memory``, ``eval``, ``apply``."""
    _keeps_hooks(
        check,
        {
            "zero_grad": lambda net: net.zero_grad(),
            "requires_grad_": lambda net: net.requires_grad_(False).requires_grad_(True),
            "share_memory": lambda net: net.share_memory(),
            "eval and train": lambda net: net.eval().train(),
            "apply": lambda net: net.apply(lambda module: nn.init.zeros_(module.weight)),
        },
    )


@program("PH-05", PIN, since="1.7", source=f"{TENSOR}; hooks belong to the tensor")
def another_parameter_has_no_hooks(check: Check) -> None:
    """A parameter that takes the place of another has none of its hooks; the other keeps them."""
    net, log = _hooked()
    old = net.weight
    net.weight = nn.Parameter(torch.ones(1, 1))
    _step(net)
    check.order("hooks of the new parameter", log, [])
    (2 * old).sum().backward()
    check.order("hooks of the old one", log, _due([[2.0]]))
    log.clear()
    (2 * nn.Parameter(old)).sum().backward()
    check.order("hooks of one that is made of the old one", log, [])


@program("U-14", PIN, since="2.1", source=f"torch.nn.Module.load_state_dict, 'assign'; {TENSOR}, {POST}")
def assignment_drops_hooks(check: Check) -> None:
    """Loading with ``assign=True`` drops a parameter's hooks with it; ``.to()`` and ``.data =`` keep them."""
    net, log = _hooked()
    old = net.weight
    net.to(torch.float64)
    net.weight.data = torch.ones(1, 1)
    _step(net)
    check.order("hooks after .to() and .data =", log, _due([[2.0]]))
    log.clear()
    net.load_state_dict({"weight": torch.full((1, 1), 5.0)}, assign=True)
    check.true("the parameter is another one", net.weight is not old)
    check.equal("the weight that is loaded", net.weight, [[5]])
    _step(net)
    check.order("hooks after loading with assign=True", log, [])
    check.equal("the gradient", net.weight.grad, [[2]])
    net.weight.requires_grad_(False)
    net.load_state_dict({"weight": torch.ones(1, 1)}, assign=True)
    check.equal("whether a frozen weight requires grad, once another one is assigned", net.weight.requires_grad, False)


@program("PH-06", PIN, since="2.3", source="torch.__future__.set_swap_module_params_on_conversion; undocumented")
def swapping_drops_hooks(check: Check) -> None:
    """Where modules swap parameters on conversion their hooks are dropped, though they stay the same objects."""
    for what, act in (
        (".to(dtype)", lambda net: net.to(torch.float64)),
        ("load_state_dict", lambda net: net.load_state_dict({"weight": torch.ones(1, 1)})),
    ):
        net, log = _hooked()
        weight = net.weight
        _swapping(act)(net)
        check.true(f"the parameter is the same after {what}", net.weight is weight)
        _step(net)
        check.order(f"hooks after {what}", log, [])
        check.equal(f"the gradient after {what}", net.weight.grad, [[2]])
    net = nn.Linear(1, 1)
    net.weight.requires_grad_(False)
    net(torch.ones(1, 1)).backward()
    check.works("converting what has a gradient", lambda: _swapping(lambda net: net.to(torch.float64))(net))
    frozen = [net.weight.requires_grad, net.bias.requires_grad]
    check.equal("converting what has a gradient: which need one after it", frozen, [False, True])
    check.equal("converting what has a gradient: it", [net.bias.grad, net.bias.grad.dtype], [[1], torch.float64])
    for number, which in enumerate(("first", "second") if offered((2, 4)) else ()):  # 2.3 refuses what has a graph
        pair = [nn.Parameter(torch.ones(1)) for _ in range(2)]
        y = 2 * pair[number]
        torch.utils.swap_tensors(*pair)
        check.raises(f"backward of what was made of the {which} before", RuntimeError, y.backward, "swap_tensors")


@program("PH-07", PROMISE, since="2.3", source=f"{TENSOR}, {POST}; 'called every time'")
def hooks_can_be_registered_after_swapping(check: Check) -> None:
    """A hook that is registered after modules swapped parameters is called, whatever hooks there were before."""
    kinds: dict[str, Any] = {"register_hook": lambda log: lambda grad: log.append(grad.tolist())}
    kinds["register_post_accumulate_grad_hook"] = lambda log: lambda weight: log.append(weight.grad.tolist())
    for kind, hook in kinds.items():
        for before in ("no hook", "a hook", "a parameter from a pickle"):
            net: Any = nn.Linear(1, 1, bias=False)
            log: list[Any] = []
            if before == "a hook":
                getattr(net.weight, kind)(hook([]))
            if before == "a parameter from a pickle":  # which has an empty table of hooks
                net.weight = pickle.loads(pickle.dumps(net.weight))
            _swapping(lambda net: net.to(torch.float64))(net)
            getattr(net.weight, kind)(hook(log))
            _step(net)
            check.order(f"calls of {kind} after swapping, where there was {before}", log, [[[2.0]]])


@program("PH-08", PIN, since="2.1", source="pytorch#117913")
def assignment_keeps_hooks(check: Check) -> None:
    """Hooks on ``module.weight`` go on being called after ``load_state_dict`` with ``assign=True``."""
    net, log = _hooked()
    _step(net)
    check.order("hooks before loading", log, _due([[2.0]]))
    log.clear()
    net.load_state_dict({"weight": torch.full((1, 1), 5.0)}, assign=True)
    _step(net)
    check.order("hooks after loading", log, _due([[2.0]]))


@program("PH-11", PROMISE, since="2.1", source="load_state_dict, assign; pytorch#188166, pytorch#188346")
def assignment_leaves_the_rest(check: Check) -> None:
    """Loading with ``assign=True`` leaves the state dict as it is, so that a later loading from it that copies keeps
    the parameters and their hooks; and what was one parameter under two names is one after it."""
    state = nn.Linear(1, 1, bias=False).state_dict()
    before = {name: dict(entry) for name, entry in state._metadata.items()}
    nn.Linear(1, 1, bias=False).load_state_dict(state, assign=True)
    check.equal("metadata of the state dict", {name: dict(entry) for name, entry in state._metadata.items()}, before)
    net, log = _hooked()
    net.load_state_dict(state)
    _step(net)
    check.order("hooks after a loading that copies", log, _due([[2.0]]))
    for assign in (False, True):
        parts: list[Any] = [nn.Linear(1, 1, bias=False) for _ in range(2)]
        parts[1].weight = parts[0].weight
        tied: Any = nn.Sequential(*parts)
        tied.load_state_dict(tied.state_dict(), assign=assign)
        check.true(f"one parameter under two names, assign={assign}", parts[0].weight is parts[1].weight)


def _register(kind: str, x: Any, node: Any, hook: Callable[..., None]) -> Any:
    """Registers a hook of one kind on a leaf, or on the Node that accumulates its gradient."""
    if kind == "multi-grad hook":
        return torch.autograd.graph.register_multi_grad_hook((x,), hook)
    owner, name = {
        "tensor hook": (x, "register_hook"),
        "post-accumulate-grad hook": (x, "register_post_accumulate_grad_hook"),
        "Node hook": (node, "register_hook"),
        "Node pre-hook": (node, "register_prehook"),
    }[kind]
    return getattr(owner, name)(hook)


def _leaf_kinds() -> list[str]:
    """The kinds of `_register` that this torch has."""
    later = {
        "Node pre-hook": (type((torch.ones(1, requires_grad=True) * 2).grad_fn), "register_prehook"),
        "multi-grad hook": (getattr(torch.autograd, "graph", None), "register_multi_grad_hook"),
        "post-accumulate-grad hook": (torch.Tensor, "register_post_accumulate_grad_hook"),
    }
    return ["tensor hook", "Node hook", *(kind for kind, (owner, name) in later.items() if hasattr(owner, name))]


def _leaf_keeps_hooks(check: Check, name: str, operation: Callable[[Any], Any]) -> None:
    """States that hooks on a leaf are called after an ``operation`` took it, until they are removed: those that were
    there before, and those that are registered then."""
    for mode in ("grad mode", "no grad mode"):
        for kind in _leaf_kinds():
            x, log = nn.Parameter(torch.ones(1)), list[str]()
            node = x.view_as(x).grad_fn.next_functions[0][0]  # hooks on it go with it: it stays until the end
            handle = _register(kind, x, node, noting(log, "before"))
            with torch.set_grad_enabled(mode == "grad mode"):
                operation(x)
            what = f"{kind}, {name} in {mode}"
            (2 * x).sum().backward()
            _register(kind, x, node, noting(log, "after"))
            (2 * x).sum().backward()
            handle.remove()
            (2 * x).sum().backward()
            # one alone, then both, then the other alone
            check.order(f"{what}: calls", log, ["before", "before", "after", "after"])
            check.equal(f"{what}: gradient", x.grad, [6])  # 2 of each backward


@program("PH-09", PROMISE, since="1.13", source=f"{TENSOR}, {POST}, 'called every time'; pytorch#134945")
def an_operation_without_a_formula_keeps_hooks(check: Check) -> None:
    """Hooks on a leaf and on its Node go on being called after an operation of which autograd has no formula took the
    leaf, those that are registered then as well: in grad mode and without, whatever the operation gives."""
    operations: dict[str, tuple[str, Callable[[Any], Any]]] = {
        "an operation that gives another tensor": ("act(Tensor x) -> Tensor", lambda x: x.detach() * 2),
        "an operation that gives nothing": ("act(Tensor x) -> ()", lambda x: None),
        "an operation that gives its input": ("act(Tensor(a) x) -> Tensor(a)", lambda x: x),
        "an operation that writes to its input": ("act(Tensor(a!) x) -> Tensor(a!)", lambda x: x),
    }
    for name, (schema, act) in operations.items():
        space = f"own_{uuid4().hex}"  # a process can define an operation of one name once
        library = torch.library.Library(space, "DEF")
        library.define(schema)
        library.impl("act", act, "CompositeExplicitAutograd")
        _leaf_keeps_hooks(check, name, getattr(torch.ops, space).act)


@program("PH-10", PROMISE, since="1.8", source=f"torch.distributed.broadcast; {TENSOR}, {POST}; pytorch#134945")
def a_collective_keeps_hooks(check: Check) -> None:
    """Hooks on a leaf and on its Node go on being called after processes exchanged the leaf, in grad mode and without,
    those that are registered then as well."""
    distributed: Any = torch.distributed
    exchanges: dict[str, Callable[[Any], Any]] = {
        "broadcast": lambda x: distributed.broadcast(x, src=0),
        "all_reduce": lambda x: distributed.all_reduce(x),
        "all_gather": lambda x: distributed.all_gather([torch.empty(1)], x),
    }
    with process_group(check):
        for name, exchange in exchanges.items():
            _leaf_keeps_hooks(check, name, exchange)


@program(
    "PH-12", PROMISE, since="1.7", source=f"{TENSOR}, 'every time a gradient with respect to the Tensor is computed'"
)
def what_is_made_of_a_tensor_leads_to_its_hooks(check: Check) -> None:
    """A hook on a tensor is called once, with the gradient, where that comes through what is made of the tensor: a copy
    in another dtype or layout, or the tensor itself where there is nothing to change."""
    tensors: dict[str, Callable[[], Any]] = {
        "a leaf": lambda: torch.ones(2, 2, requires_grad=True),
        "a leaf in another order": lambda: torch.ones(2, 2).t().requires_grad_(),
        "a result": lambda: 3 * torch.ones(2, 2, requires_grad=True),
    }
    makes: dict[str, Callable[[Any], Any]] = {
        "contiguous": lambda x: x.contiguous(),
        "to its dtype": lambda x: x.to(x.dtype),
        "to another dtype": lambda x: x.to(torch.float64),
        "to its device": lambda x: x.to(x.device),
        "double": lambda x: x.double(),
        "type": lambda x: x.type(torch.float64),
        "clone": lambda x: x.clone(),
    }
    for form, tensor in tensors.items():
        for name, make in makes.items():
            x, log = tensor(), list[Any]()
            x.register_hook(lambda gradient, log=log: log.append((str(gradient.dtype), gradient.tolist())))
            (2 * make(x)).sum().backward()
            check.order(f"{form}, {name}: calls", log, [("torch.float32", [[2.0, 2.0], [2.0, 2.0]])])
