"""What do hooks see of DTensors? Gradients are DTensors too; what turns one into the other decides their placements.

A DTensor is a tensor that several processes hold together: sharded, replicated or in parts that are yet to be summed.
``distribute_module`` makes them of parameters, and of inputs and outputs by hooks.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.chapters.parallel import scale, state_hooks_of_a_weight
from hookcheck.programs.check import Check
from hookcheck.programs.host_changes import offered
from hookcheck.programs.processes import of_two, process_group
from hookcheck.programs.program import program

DTENSOR = "torch.distributed.tensor.DTensor"


def tensor() -> Any:
    """The package of DTensors."""
    return import_module("torch.distributed.tensor")


def mesh(processes: int = 1) -> Any:
    """A mesh of so many processes in a row."""
    return torch.distributed.init_device_mesh("cpu", (processes,))


def distributed(placement: Any, *numbers: float) -> Any:
    """A leaf that is a DTensor, of which this process holds ``numbers``."""
    return tensor().DTensor.from_local(torch.tensor(numbers), mesh(), [placement]).requires_grad_()


def kind(value: Any) -> str:
    """How a tensor is placed, or "plain" where it is no DTensor."""
    return repr(value.placements[0]) if hasattr(value, "placements") else "plain"


def held(value: Any) -> Any:
    """The numbers of a tensor that this process holds."""
    return None if value is None else getattr(value, "to_local", lambda: value)().tolist()


def _without_gradient() -> Any:
    """A Function that gives its input negated, and no gradient."""
    ways = {"forward": staticmethod(lambda ctx, x: -x), "backward": staticmethod(lambda *_: None)}
    return type("Barrier", (torch.autograd.Function,), ways)


TURNS: dict[str, Callable[[Any], Any]] = {
    "to_local": lambda d: d.to_local(),
    "redistribute": lambda d: d.redistribute(placements=[tensor().Replicate()]),
    "full_tensor": lambda d: d.full_tensor(),
}
"""What turns a DTensor into a tensor, or into another DTensor."""


@program("DT-01", PROMISE, since="2.6", source=f"{DTENSOR}; pytorch#173865, pytorch#173123")
def absent_gradients_stay_absent(check: Check) -> None:
    """Where no gradient comes back to what a DTensor was turned into, or what was turned into one, it gets none."""
    with process_group(check):
        plain = torch.tensor([1.0, 2.0], requires_grad=True)
        turned = tensor().DTensor.from_local(plain, mesh(), [tensor().Shard(0)])
        check.works("from_local", lambda: _without_gradient().apply(turned).sum().backward())
        check.equal("from_local: gradient", held(plain.grad), None)
        for name, turn in TURNS.items():
            leaf = distributed(tensor().Shard(0), 1.0, 2.0)
            check.works(name, lambda leaf=leaf, turn=turn: _without_gradient().apply(turn(leaf)).sum().backward())
            check.equal(f"{name}: gradient", held(leaf.grad), None)


LOCALLY: dict[str, Callable[[Any, Any], Any]] = {
    "to_local": lambda d, to: d.to_local(),
    "to_local, gradient": lambda d, to: d.to_local(grad_placements=[to]),
    "redistribute to": lambda d, to: d.redistribute(mesh(), [to]).to_local(),
}
"""How the local tensor of a DTensor is come to, perhaps with another placement."""


@program("DT-02", PROMISE, since="2.6", source=f"{DTENSOR}.from_local, .to_local, .redistribute; pytorch#173454")
def gradients_have_the_placements_that_are_promised(check: Check) -> None:
    """The gradient of a DTensor whose local tensor is used is placed as it is, or as ``grad_placements`` says; so is
    that of one that is redistributed. Where the DTensor is in parts, its gradient is replicated."""
    with process_group(check):
        shard, replicate, part = tensor().Shard(0), tensor().Replicate(), tensor().Partial()
        for place, usual in ((shard, shard), (replicate, replicate), (part, replicate)):
            for way, to in (
                ("to_local", None),
                ("to_local, gradient", shard),
                ("to_local, gradient", replicate),
                ("to_local, gradient", part),
                ("redistribute to", shard),
                ("redistribute to", replicate),
            ):
                log: list[Any] = []
                leaf = distributed(place, 1.0, 2.0)
                leaf.register_hook(lambda grad, log=log: log.append((kind(grad), grad.to_local().tolist())))
                (LOCALLY[way](leaf, to) * torch.tensor([3.0, 5.0])).sum().backward()
                expected = (repr(to if way == "to_local, gradient" else usual), [3.0, 5.0])
                name = f"{place!r}, {way} {to!r}" if to else f"{place!r}, {way}"
                check.equal(f"{name}: what the hook gets", log, [expected])
                check.equal(f"{name}: gradient", (kind(leaf.grad), held(leaf.grad)), expected)


@program("DT-03", PROMISE, since="2.6", source=DTENSOR)
def every_kind_of_hook_gets_dtensors(check: Check) -> None:
    """What is given to hooks on a DTensor, on a Node that made one, and on saved tensors is a DTensor."""
    with process_group(check):
        log: dict[str, list[Any]] = {}

        def noting(name: str) -> Callable[..., Any]:
            def note(*given: Any) -> Any:
                leaves = import_module("torch.utils._pytree").tree_leaves(given)
                log.setdefault(name, []).append([kind(t) for t in leaves if isinstance(t, torch.Tensor)])
                return given[0] if "saved" in name else None

            return note

        leaf = distributed(tensor().Shard(0), 1.0, 2.0)
        leaf.register_hook(noting("leaf"))
        leaf.register_post_accumulate_grad_hook(noting("accumulated"))
        with torch.autograd.graph.saved_tensors_hooks(noting("saved"), noting("saved, unpacked")):
            square = leaf * leaf
        square.retain_grad()
        square.register_hook(noting("tensor"))
        square.grad_fn.register_prehook(noting("pre-hook of a Node"))
        square.grad_fn.register_hook(noting("hook of a Node"))
        torch.autograd.graph.register_multi_grad_hook([leaf, square], noting("several"))
        (3 * square).to_local().sum().backward()
        shard = "Shard(dim=0)"
        # Saved are both factors; a hook of a Node gets the gradients of both inputs, and that of its output.
        expected = {"leaf": [1], "accumulated": [1], "saved": [1, 1], "saved, unpacked": [1, 1], "tensor": [1]}
        expected |= {"pre-hook of a Node": [1], "hook of a Node": [3], "several": [2]}
        for name, counts in expected.items():
            check.order(name, log.get(name, []), [[shard] * count for count in counts])
        check.equal(
            "gradients", [held(leaf.grad), held(square.grad), kind(square.grad)], [[6.0, 12.0], [3.0, 3.0], shard]
        )


def inputs_in(module: Any, inputs: Any, mesh: Any) -> Any:
    """Makes a DTensor of a module's one input, replicated since nothing else is said."""
    return torch.distributed.tensor.DTensor.from_local(inputs[0], mesh)


def output_out(module: Any, output: Any, mesh: Any) -> Any:
    """Makes a plain tensor of a module's output."""
    return output.to_local()


@program("DT-04", PROMISE, since="2.6", source="torch.distributed.tensor.distribute_module")
def inputs_and_outputs_are_distributed_by_hooks(check: Check) -> None:
    """``input_fn`` and ``output_fn`` of ``distribute_module`` are a forward pre-hook and a forward hook: hooks that
    were there before see what there was, hooks that come later see what they made of it."""
    with process_group(check):
        for form in ("three arguments", "two arguments"):
            log: list[Any] = []
            module = scale()
            module.register_forward_pre_hook(lambda m, args, log=log: log.append(("pre, before", kind(args[0]))))
            module.register_forward_hook(lambda m, args, y, log=log: log.append(("post, before", kind(y))))
            two = (lambda x, mesh: inputs_in(None, x, mesh), lambda y, mesh: output_out(None, y, mesh))
            come, go = two if form == "two arguments" else (inputs_in, output_out)

            def distribute(module: Any = module, come: Any = come, go: Any = go) -> None:
                tensor().distribute_module(module, mesh(), None, come, go)

            if form == "two arguments":
                check.warns(f"{form}: deprecation", FutureWarning, distribute, "input_fn that takes two arguments")
            else:
                distribute()
            if offered((2, 7)):
                check.raises(f"{form}: another time", RuntimeError, distribute, "should only be called once")
            module.register_forward_pre_hook(lambda m, args, log=log: log.append(("pre, after", kind(args[0]))))
            module.register_forward_hook(lambda m, args, y, log=log: log.append(("post, after", kind(y))))
            module.register_full_backward_hook(lambda m, gi, go, log=log: log.append((held(gi[0]), held(go[0]))))
            x = torch.tensor([3.0], requires_grad=True)
            module(x).mul(7).backward()
            replicated = "Replicate()"
            expected = [("pre, before", "plain"), ("pre, after", replicated), ("post, before", replicated)]
            check.order(f"{form}: hooks", log, [*expected, ("post, after", "plain"), ([14.0], [7.0])])
            check.equal(f"{form}: gradients", [x.grad, held(module.w.grad)], [[14.0], [21.0]])


@program("DT-06", PIN, since="2.6", source="torch.distributed.tensor.distribute_module")
def a_weight_keeps_its_hooks_when_distributed(check: Check) -> None:
    """Hooks on a parameter that were registered before or after ``distribute_module`` are called once in a backward, or
    they are refused aloud: none is lost without a word."""
    with process_group(check):
        distribute = tensor().distribute_module
        state_hooks_of_a_weight(
            check, "distribute_module", lambda module: distribute(module, mesh(), None, inputs_in, output_out)
        )


@program("DT-10", PROMISE, since="2.6", source="torch.distributed.tensor.debug.CommDebugMode; pytorch#191392")
def comm_debug_mode_leaves_hooks_alone(check: Check) -> None:
    """In a CommDebugMode a module may be called often, its hooks run, and when it ends no hook of it is left."""
    with process_group(check):
        mode = import_module("torch.distributed.tensor.debug").CommDebugMode
        for times in (1, 2):
            log: list[str] = []
            inner = scale()
            outer = nn.Sequential(inner)
            inner.register_forward_hook(lambda *_, log=log: log.append("forward"))
            inner.register_full_backward_hook(lambda *_, log=log: log.append("backward"))

            def run(outer: Any = outer, times: int = times) -> None:
                with mode():
                    for _ in range(times):
                        outer(torch.tensor([3.0], requires_grad=True)).backward()

            name = f"{times} call{'s' if times > 1 else ''}"
            check.works(name, run)
            check.order(f"{name}: hooks", log, ["forward", "backward"] * times)
            left = [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in (inner, outer)]
            check.equal(f"{name}: hooks of each module after it", left, [1, 0])
            module = import_module("torch.nn.modules.module")
            kinds = ("forward_hooks", "forward_pre_hooks", "backward_hooks", "backward_pre_hooks")
            check.equal(f"{name}: hooks on all modules", [len(getattr(module, f"_global_{k}")) for k in kinds], [0] * 4)


def _gradients(rank: int) -> list[Any]:
    """What the first of two processes gets for a gradient of 1 there and 2 in the other, by ``grad_placements``."""
    place, here = tensor(), mesh(2)
    part, gradients = {"grad_placements": [place.Partial()]}, []  # type: tuple[Any, list[Any]]
    offered = "grad_placements" in place.DTensor.from_local.__kwdefaults__
    for come, go in (({}, {}), ({}, part), (part, part)):
        x = torch.tensor([5.0], requires_grad=True)
        if come and not offered:
            continue
        (place.DTensor.from_local(x, here, [place.Replicate()], **come).to_local(**go) * (rank + 1)).sum().backward()
        gradients.append(x.grad.tolist())
    return gradients


@program("DT-12", PROMISE, since="2.6", source=f"{DTENSOR}.to_local, .from_local, 'grad_placements'", alone=True)
def grad_placements_say_what_is_summed(check: Check) -> None:
    """With two processes a gradient of a replicated DTensor is the process's own; where ``to_local`` is told that it is
    a part, it is the sum of both, unless ``from_local`` is told to leave the parts apart."""
    gradients = of_two(check, _gradients)
    for name, got, expected in zip(("as it is", "parts summed", "parts apart"), gradients, ([1.0], [3.0], [1.0])):
        check.equal(name, got, expected)
