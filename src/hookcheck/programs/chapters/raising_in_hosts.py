"""What is left where a hook raises in a module that torch shards, reduces, distributes or compiles?

What torch put around the module has taken notes of the step that did not end: which gradients are there, which
parameters are whole. The error comes out as it is; then the hook is removed, and another step is run.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.chapters.distributed_tensors import held, inputs_in, mesh, output_out, tensor
from hookcheck.programs.chapters.parallel import scale
from hookcheck.programs.chapters.raising_in_contexts import Deliberate, attempted
from hookcheck.programs.chapters.sharded import FSDP1, FSDP2, sharded, wrapped
from hookcheck.programs.chapters.torch_compile import BACKENDS, fresh
from hookcheck.programs.check import Check, NotOffered
from hookcheck.programs.host_changes import offered
from hookcheck.programs.nets import leaf
from hookcheck.programs.processes import process_group
from hookcheck.programs.program import program
from hookcheck.programs.reducing import DISTRIBUTED, distributed, reducing
from hookcheck.programs.watching import noting

Act = Callable[[], Any]


def refuse(*_: Any) -> Any:
    """A hook of any kind that raises."""
    raise Deliberate


PLACES: dict[str, Callable[[Any], Any]] = {
    "forward pre-hook": lambda module: module.register_forward_pre_hook(refuse),
    "forward hook": lambda module: module.register_forward_hook(refuse),
    "full backward pre-hook": lambda module: module.register_full_backward_pre_hook(refuse),
    "full backward hook": lambda module: module.register_full_backward_hook(refuse),
    "hook on the output": lambda module: module.register_forward_hook(
        lambda module, args, output: output.register_hook(refuse) and None
    ),
    "hook on the weight": lambda module: module.w.register_hook(refuse),
    "post-accumulate hook": lambda module: module.w.register_post_accumulate_grad_hook(refuse),
}
"""What registers a hook that raises, on a module or on what belongs to it, and gives its handle."""

SINCE = {"full backward pre-hook": (2, 0), "post-accumulate hook": (2, 1)}
"""The releases that some of them came with."""

IN_FORWARD = ("forward pre-hook", "forward hook")
ON_WEIGHTS = ("hook on the weight", "post-accumulate hook")

RIGHT = [[6.0, 6.0], [6.0], [4.0]]
"""The gradients of x and of both weights in 3·(2·x), where x is 1 and 1: of each weight the other one, twice."""


def two() -> Any:
    """3·(2·x), of two modules."""
    return nn.Sequential(scale(2.0), scale(3.0))


def step(root: Any, weights: list[Any]) -> Any:
    """The gradients of x and of the weights after a step; or, where it raises, what: DistributedDataParallel refuses a
    step in these words."""
    for weight in weights:
        weight.grad = None
    x = leaf(1.0, 1.0)
    try:
        root(x).sum().backward()
    except Exception as error:
        unfinished = "finished reduction in the prior iteration" in str(error)
        return "refused" if unfinished else type(error).__name__
    return [held(tensor.grad) for tensor in (x, *weights)]


def broken_off(check: Check, name: str, root: Any, net: Any, place: str, part: int) -> list[str]:
    """Runs a step that a hook breaks off, and states that its error comes out, and that a hook that is always called
    was called; gives what two other hooks, which stay, note from now on."""
    calls: list[str] = []
    called: list[str] = []
    net[1].register_forward_hook(noting(calls, "forward"))
    net[0].register_full_backward_hook(noting(calls, "backward"))
    always = {"always_call": True} if offered((2, 1)) else {}
    handle = root.register_forward_hook(noting(called, "always"), **always)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some say where the error arose, and FSDP looks at .grad of its views
        with PLACES[place](net[part]):
            check.equal(
                f"{name}: what comes out", attempted(lambda: root(leaf(1.0, 1.0)).sum().backward()), "Deliberate"
            )
    due = ["always"] if always or place not in IN_FORWARD else []
    check.order(f"{name}: hooks that are always called", called, due)
    handle.remove()
    calls.clear()
    return calls


def state_steps(
    check: Check, host: str, wrap: Callable[[Any], Any], places: Any, parts: Any = (0, 1), mend: Any = None
) -> None:
    """States that a step after one that a hook breaks off has the right gradients, and calls the hooks that there are;
    ``mend`` is what the root is given to in between. The weights are those that an optimizer would have."""
    for place in places:
        if not offered(SINCE.get(place, (1, 8))):
            continue
        for part in parts:
            net = two()
            root = wrap(net)
            weights = list(root.parameters())
            name = f"{host}{place} of {'the first' if part == 0 else 'the second'}"
            calls = broken_off(check, name, root, net, place, part)
            if mend:
                mend(root)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                check.equal(f"{name}: gradients of the next step", step(root, weights), RIGHT)
            check.order(f"{name}: hooks in it", calls, ["forward", "backward"])


@program("SM-04", PIN, since="1.10", source=f"{DISTRIBUTED}; 'Expected to have finished reduction'")
def hooks_raise_under_ddp(check: Check) -> None:
    """Where a hook raises under DistributedDataParallel, in forward or in backward, the next step is right; or, where
    gradients were already there, it is refused as one whose reduction did not end. A new wrapper is right again."""
    with process_group(check):
        for setting in ("", "find_unused_parameters"):
            for place in PLACES:
                if not offered(SINCE.get(place, (1, 8))):
                    continue
                for part in (0, 1):
                    net, log = two(), list[Any]()
                    weights = list(net.parameters())
                    wrapper = distributed(net, **({setting: True} if setting else {}))
                    wrapper.register_comm_hook(None, reducing(log, 10.0))
                    which = "the first" if part == 0 else "the second"
                    name = f"{setting}{', ' if setting else ''}{place} of {which}"
                    calls = broken_off(check, name, wrapper, net, place, part)
                    log.clear()
                    after, reduced = step(wrapper, weights), [[6.0, 6.0], [60.0], [40.0]]
                    refused = place not in IN_FORWARD and isinstance(after, str)
                    check.equal(f"{name}: gradients of the next step", after, "refused" if refused else reduced)
                    if not refused:
                        check.order(f"{name}: hooks in it", calls, ["forward", "backward"])
                        check.order(f"{name}: buckets in it", log, [[4.0, 6.0]])
                    del wrapper
                    wrapper = distributed(net)
                    wrapper.register_comm_hook(None, reducing(log, 100.0))
                    again = step(wrapper, weights)
                    check.equal(f"{name}: gradients under a new wrapper", again, [[6.0, 6.0], [600.0], [400.0]])


@program(
    "DT-13", PIN, since="2.6", source="torch.distributed.tensor.distribute_module; undocumented: what errors leave"
)
def hooks_raise_among_dtensors(check: Check) -> None:
    """Where a hook raises in a module with DTensors for parameters, the error comes out, and the next step calls the
    other hooks and has the gradients that there would be without it."""
    with process_group(check):
        state_steps(check, "", lambda net: tensor().distribute_module(net, mesh(), None, inputs_in, output_out), PLACES)


@program("SM-05", PIN, since="2.6", source="torch.compile; undocumented: what errors leave behind")
def hooks_raise_in_compiled_code(check: Check) -> None:
    """Where a hook raises in a compiled module, be it traced or not, the error comes out, and the next step calls the
    other hooks and has the gradients that there would be without it."""
    tried = (("forward pre-hook",), ("full backward hook", "hook on the weight"))
    for backend, places in zip(BACKENDS, tried):
        with fresh():
            compiled = partial(torch.compile, backend=backend)
            state_steps(check, f"{backend}, ", compiled, places, (1,))


def _each(net: Any) -> Any:
    """A net under fully_shard, each of its parts by itself."""
    for part in net:
        sharded(part)
    return sharded(net)


@program("DS-45", PROMISE, since="2.6", source=f"{FSDP2}, reset_iter_state; undocumented: errors in forward")
def hooks_raise_under_fully_shard(check: Check) -> None:
    """Where a hook raises in forward under fully_shard the next step is right, and where one raises in backward, the
    step after ``reset_iter_state``: in whichever module it was, and whether each is sharded or all are as one."""
    with process_group(check):
        for host, wrap in (("each sharded, ", _each), ("sharded as one, ", sharded)):
            root = wrap(two())
            if not hasattr(root, "reset_iter_state"):
                raise NotOffered("this torch has no FSDPModule.reset_iter_state")
            state_steps(check, host, wrap, IN_FORWARD)
            places = [place for place in PLACES if place not in (*IN_FORWARD, "hook on the weight")]
            state_steps(check, host, wrap, places, mend=lambda root: root.reset_iter_state())


@program("DS-46", PIN, since="1.13", source=f"{FSDP1}, 'use_orig_params'; undocumented: what errors leave behind")
def hooks_raise_in_fsdp(check: Check) -> None:
    """Where a hook raises under FullyShardedDataParallel, in forward or in backward, the error comes out, and the next
    step gives the parameters that an optimizer has the gradients that there would be without it."""
    with process_group(check):
        state_steps(check, "", wrapped, [place for place in PLACES if place not in ON_WEIGHTS])
