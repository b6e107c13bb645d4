"""What do hooks see where processes of DistributedDataParallel have different numbers of inputs?

In ``join`` a process whose inputs are used up takes part in the reductions of the others, with gradients of zero, until
all are done: comm hooks are called for it, and hooks of the module are not.
"""

from __future__ import annotations

from typing import Any

from hookcheck.contract.clause import PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.nets import leaf, net
from hookcheck.programs.processes import of_two
from hookcheck.programs.program import program
from hookcheck.programs.reducing import DISTRIBUTED, distributed, future_of

INPUTS = ([3.0], [5.0, 7.0])
"""What the two processes have to train on."""

WAYS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "an unused parameter": {},
    "divided by who is left": {"divide_by_initial_world_size": False},
    "a comm hook": {},
    "throwing": {"throw_on_early_termination": True},
}
"""Ways to join, by what they ask ``join`` for."""


def _watched(log: dict[str, list[Any]], unused: bool) -> Any:
    """A module that gives w·x, where w is 2, with hooks that note what they get; perhaps with another parameter."""
    module = net(lambda module, x: module.w * x, w=nn.Parameter(torch.tensor([2.0])))
    if unused:
        module.v = nn.Parameter(torch.tensor([1.0]))
    module.register_forward_pre_hook(lambda module, args: log["input"].append(args[0].item()))
    module.register_forward_hook(lambda module, args, output: log["output"].append(output.item()))
    module.register_full_backward_hook(lambda module, gi, go: log["backward"].append((gi[0].item(), go[0].item())))
    module.w.register_hook(lambda gradient: log["weight"].append(gradient.item()))
    return module


def _summing(log: list[Any]) -> Any:
    """A comm hook that notes the bucket and sums it over the processes."""

    def reduced(bucket: Any) -> Any:
        tensor = bucket.buffer()
        log.append(tensor.tolist())
        torch.distributed.all_reduce(tensor)
        return future_of(tensor)

    return lambda state, bucket: reduced(bucket)


def _trained(rank: int, way: str) -> dict[str, list[Any]]:
    """What hooks note of one process that trains on its inputs, and the gradient after each of them."""
    log: dict[str, list[Any]] = {name: [] for name in NAMES}
    unused = way == "an unused parameter"
    module = _watched(log, unused)
    wrapper = distributed(module, find_unused_parameters=unused)
    if way == "a comm hook":
        wrapper.register_comm_hook(None, _summing(log["bucket"]))
    try:
        with wrapper.join(**WAYS[way]):
            for value in INPUTS[rank]:
                module.w.grad = None
                wrapper(leaf(value)).backward()
                log["gradient"].append(module.w.grad.item())
            module.w.data.fill_(10.0 + rank)
    except RuntimeError as error:
        log["raised"].append("exhausted" in str(error))
    log["weight in the end"].append(module.w.item())
    return log


NAMES = ("input", "output", "backward", "weight", "gradient", "bucket", "raised", "weight in the end")


def _in_all_ways(rank: int) -> list[Any]:
    """What both processes note, by way."""
    logs = {way: _trained(rank, way) for way in WAYS}
    both: list[Any] = [None, None]
    torch.distributed.all_gather_object(both, logs)
    return both


def _due(rank: int, way: str) -> dict[str, list[Any]]:
    """What hooks must note. The first reduction has 3 and 5, the second, which the first process only stands in for,
    0 and 7; the process that joins last says what the weight is in the end."""
    throws = way == "throwing"
    values = INPUTS[rank][: 1 if throws else None]
    second = {"divided by who is left": 7.0, "a comm hook": 7.0}.get(way, 3.5)
    first = 8.0 if way == "a comm hook" else 4.0
    return {
        "input": values,
        "output": [2 * value for value in values],
        "backward": [(2.0, 1.0)] * len(values),
        "weight": values,
        "gradient": [first, second][: len(values)],
        "bucket": [[[3.0], [0.0]], [[5.0], [7.0]]][rank] if way == "a comm hook" else [],
        "raised": [True] if throws else [],
        # where it throws, nobody says what it is: the first had set its own, the second had not come to that
        "weight in the end": [(10.0, 2.0)[rank]] if throws else [11.0],
    }


@program("DD-18", PROMISE, since="1.10", source=f"{DISTRIBUTED}.join, 'shadow'; DDP Communication Hooks", alone=True)
def hooks_while_processes_join(check: Check) -> None:
    """In ``join`` hooks of the module run for the inputs of their own process alone; a comm hook is called in both for
    each reduction, with zeros where the inputs are used up, which count in the mean unless they are not to."""
    for rank, logs in enumerate(of_two(check, _in_all_ways)):
        for way in WAYS:
            for name, expected in _due(rank, way).items():
                check.order(f"process {rank}, {way}: {name}", logs[way][name], expected)
