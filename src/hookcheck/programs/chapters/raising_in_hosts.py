"""What is left where a hook raises in a module that torch shards, reduces, distributes or compiles?

What torch put around the module has taken notes of the step that did not end: which gradients are there, which
parameters are whole. The error comes out as it is; then the hook is removed, and another step is run.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import product
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.chapters.distributed_tensors import held, inputs_in, mesh, output_out, tensor
from hookcheck.programs.chapters.sharded import FSDP1, FSDP2, sharded, wrapped
from hookcheck.programs.check import Check
from hookcheck.programs.compiling import BACKENDS, fresh
from hookcheck.programs.host_changes import offered
from hookcheck.programs.processes import process_group
from hookcheck.programs.program import program
from hookcheck.programs.reducing import DISTRIBUTED, distributed, future_of
from hookcheck.programs.watching import noting


def refuse(*_: Any) -> Any:
    """A hook of any kind that raises."""
    raise ValueError("on purpose")


PLACES: dict[str, Callable[[Any], Any]] = {
    "forward pre-hook": lambda module: module.register_forward_pre_hook(refuse),
    "forward hook": lambda module: module.register_forward_hook(refuse),
    "full backward pre-hook": lambda module: module.register_full_backward_pre_hook(refuse),
    "full backward hook": lambda module: module.register_full_backward_hook(refuse),
    "hook on the output": lambda module: module.register_forward_hook(
        lambda module, args, output: output.register_hook(refuse) and None
    ),
    "hook on the weight": lambda module: module.weight.register_hook(refuse),
    "post-accumulate hook": lambda module: module.weight.register_post_accumulate_grad_hook(refuse),
}
"""What registers a hook that raises, on a module or on what belongs to it, and gives its handle."""

SINCE = {"full backward pre-hook": (2, 0), "post-accumulate hook": (2, 1)}
"""The releases that some of them came with."""

IN_FORWARD = ("forward pre-hook", "forward hook")
ON_WEIGHTS = ("hook on the weight", "post-accumulate hook")


def two() -> Any:
    """3·(2·x), of two modules; where x is 1 and 1, its gradients are 6, those of each weight twice the other one."""
    net = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False))
    net.load_state_dict({"0.weight": torch.tensor([[2.0]]), "1.weight": torch.tensor([[3.0]])})
    return net


def step(root: Any, weights: list[Any]) -> Any:
    """The gradients of x and of the weights after a step."""
    torch.optim.SGD(weights, 1.0).zero_grad(set_to_none=True)
    x = torch.ones(2, 1, requires_grad=True)
    root(x).sum().backward()
    return [tensor.grad for tensor in (x, *weights)]


def broken_off(root: Any, net: Any, place: str, part: int) -> None:
    """Runs a step that a hook breaks off."""
    with PLACES[place](net[part]), suppress(ValueError):
        root(torch.ones(2, 1, requires_grad=True)).sum().backward()


def tried(places: Any, parts: Any) -> Any:
    """The places that this torch offers, each with each part, and the name of both."""
    for place in places:
        for part in parts if offered(SINCE.get(place, (1, 8))) else ():
            yield place, part, f"{place} of {'the second' if part else 'the first'}"


def state_hooks(
    check: Check, name: str, wrap: Callable[[Any], Any], place: str, part: int, reset: bool = False
) -> None:
    """States that the error of a hook that breaks a step off comes out, that a hook that is always called is, and that
    the next step calls the hooks that there are, if it comes to its end."""
    net, calls = two(), list[str]()
    net[1].register_forward_hook(noting(calls, "forward"))
    net[0].register_full_backward_hook(noting(calls, "backward"))
    root, always = wrap(net), {"always_call": True} if offered((2, 1)) else {}
    weights = list(root.parameters())
    handle = root.register_forward_hook(noting(calls, "always"), **always)
    with PLACES[place](net[part]):
        check.raises(f"{name}: what comes out", ValueError, lambda: step(root, weights), "on purpose")
    due = ["always"] if always or place not in IN_FORWARD else []
    check.order(f"{name}: hooks that are always called", [call for call in calls if call == "always"], due)
    handle.remove()
    if reset:
        root.reset_iter_state()
    calls.clear()
    with suppress(Exception):  # whether it comes to its end is another fact
        step(root, weights)
        check.order(f"{name}: hooks in the next step", calls, ["forward", "backward"])


def state_steps(
    check: Check, host: str, wrap: Callable[[Any], Any], places: Any, parts: Any = (0, 1), reset: bool = False
) -> None:
    """States that a step after one that a hook breaks off has the right gradients, and calls the hooks that there are;
    with ``reset`` fully_shard is told to forget it. The weights are those that an optimizer would have."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some say where the error arose, and FSDP looks at .grad of its views
        for place, part, which in tried(places, parts):
            net, name = two(), f"{host}{which}"
            root = wrap(net)
            weights = list(root.parameters())
            broken_off(root, net, place, part)
            if reset:
                root.reset_iter_state()
            after = check.works(f"{name}: next step", partial(step, root, weights))
            if after is not None:
                due = [[[6.0], [6.0]], [[6.0]], [[4.0]]]
                check.equal(f"{name}: gradients of the next step", [*map(held, after)], due)
            state_hooks(check, name, wrap, place, part, reset)


REFUSED = "finished reduction in the prior iteration"
"""In these words DistributedDataParallel refuses a step."""


def _reducing(net: Any, factor: float, **options: Any) -> Any:
    """The net in DistributedDataParallel, which multiplies gradients by ``factor`` as it reduces them."""
    wrapper = distributed(net, **options)
    wrapper.register_comm_hook(None, lambda state, bucket: future_of(factor * bucket.buffer()))
    return wrapper


@program("SM-04", PIN, since="1.10", source=f"{DISTRIBUTED}; 'Expected to have finished reduction'")
def hooks_raise_under_ddp(check: Check) -> None:
    """Where a hook raises under DistributedDataParallel, in forward or in backward, the next step is right; or, where
    gradients were already there, it is refused as one whose reduction did not end. A new wrapper is right again."""
    with process_group(check):
        for setting in ("", "find_unused_parameters"):
            for place, part, which in tried(PLACES, (0, 1)):
                net, name = two(), f"{setting}{', ' if setting else ''}{which}"
                weights, options = list(net.parameters()), {setting: True} if setting else {}
                wrapper = _reducing(net, 10.0, **options)
                broken_off(wrapper, net, place, part)
                try:
                    after = step(wrapper, weights)
                    check.equal(f"{name}: gradients of the next step", after, [[[6.0], [6.0]], [[60.0]], [[40.0]]])
                except RuntimeError as error:
                    words = str(error) if place not in IN_FORWARD else "no refusal is due"
                    check.true(f"{name}: the refusal names the step before", REFUSED in words)
                del wrapper
                again, due = step(_reducing(net, 100.0), weights), [[[6.0], [6.0]], [[600.0]], [[400.0]]]
                check.equal(f"{name}: gradients under a new wrapper", again, due)
                state_hooks(check, name, distributed, place, part)


@program(
    "DT-13", PIN, since="2.6", source="torch.distributed.tensor.distribute_module; undocumented: what errors leave"
)
def hooks_raise_among_dtensors(check: Check) -> None:
    """Where a hook raises in a module with DTensors for parameters, the error comes out, and the next step calls the
    other hooks and has the gradients that there would be without it."""
    with process_group(check):
        distribute = tensor().distribute_module
        state_steps(check, "", lambda net: distribute(net, mesh(), None, inputs_in, output_out), PLACES)


@program("SM-05", PIN, since="2.6", source="torch.compile; undocumented: what errors leave behind")
def hooks_raise_in_compiled_code(check: Check) -> None:
    """Where a hook raises in a compiled module, be it traced or not, the error comes out, and the next step calls the
    other hooks and has the gradients that there would be without it."""
    # With a hook on a weight the net has none of its own at first: those that come later go unnoticed (TC-02, TC-30).
    places = [place for place in PLACES if place not in ON_WEIGHTS]
    for backend, place, part in product(BACKENDS, places, (0, 1)):
        with fresh():
            state_steps(check, f"{backend}, ", partial(torch.compile, backend=backend), (place,), (part,))


def _each(net: Any) -> Any:
    """A net under fully_shard, each of its parts by itself."""
    for part in net:
        sharded(part)
    return sharded(net)


@program("DS-45", PROMISE, since="2.13", source=f"{FSDP2}, reset_iter_state; undocumented: errors in forward")
def hooks_raise_under_fully_shard(check: Check) -> None:
    """Where a hook raises in forward under fully_shard the next step is right, and where one raises in backward, the
    step after ``reset_iter_state``: in whichever module it was, and whether each is sharded or all are as one."""
    with process_group(check):
        for host, wrap in (("sharded as one, ", sharded), ("each sharded, ", _each)):
            state_steps(check, host, wrap, IN_FORWARD)
            places = [place for place in PLACES if place not in (*IN_FORWARD, "hook on the weight")]
            state_steps(check, host, wrap, places, reset=True)


@program("DS-46", PIN, since="1.13", source=f"{FSDP1}, 'use_orig_params'; undocumented: what errors leave behind")
def hooks_raise_in_fsdp(check: Check) -> None:
    """Where a hook raises under FullyShardedDataParallel, in forward or in backward, the error comes out, and the next
    step gives the parameters that an optimizer has the gradients that there would be without it."""
    with process_group(check):
        state_steps(check, "", wrapped, [place for place in PLACES if place not in ON_WEIGHTS])
