"""What do hooks see in the stages of a pipeline?

A schedule of ``torch.distributed.pipelining`` cuts a batch into microbatches, and runs each through stages that may be
in several processes. Some schedules split a backward: the gradients of the inputs come first, those of the weights when
there is time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from importlib import import_module
from typing import Any

from hookcheck.contract.clause import PROMISE
from hookcheck.contract.site import CALL
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check, NotOffered
from hookcheck.programs.host_changes import offered
from hookcheck.programs.nets import leaf, net
from hookcheck.programs.processes import of_two
from hookcheck.programs.program import program

PIPELINES = "torch.distributed.pipelining"

SEEN = {
    "input": ([1.0, 10.0], [2.0, 20.0]),
    "output": ([2.0, 20.0], [6.0, 60.0]),
    "output gradient": ([15.0, 21.0], [5.0, 7.0]),  # 3·5 and 3·7
    "accumulated": ([15.0, 225.0], [10.0, 150.0]),  # 1·15 + 10·21, 2·5 + 20·7
}
"""What hooks see in the two processes, where 5 and 7 times what the last stage gives of 1 and 10 are the loss. The
input of the first stage requires no grad."""

TWO = (0, 1)
"""The ranks of two processes, and the numbers of two steps."""


def _two_steps(rank: int, module: Any, seen: Any) -> list[Any]:
    """What was ``seen`` in both processes, in each of two steps of a pipeline of which the module is a stage."""
    pipelining: Any = import_module(PIPELINES)
    steps, both = list[Any](), list[Any]((None, None))
    ends = [torch.zeros(1, 1, requires_grad=needs) for needs in (rank > 0, True)]
    stage = pipelining.PipelineStage(module, rank, 2, torch.device("cpu"), *ends)
    schedule = pipelining.ScheduleGPipe(stage, 2, lambda output, target: (output * target).sum())
    batch, target = torch.tensor([[1.0], [10.0]]), torch.tensor([[5.0], [7.0]])
    for _ in TWO:
        seen.clear()
        module.w.grad = None
        schedule.step(target=target) if rank else schedule.step(batch)
        steps.append(seen.copy())
    torch.distributed.all_gather_object(both, steps)
    return both


def _on_the_input(module: Any, register: Callable[[Any], Any]) -> None:
    """Has a forward pre-hook of a module call ``register`` with each input."""
    module.register_forward_pre_hook(lambda module, args: register(args[0]) and None)


def _on_the_output(module: Any, register: Callable[[Any], Any]) -> None:
    """Has a forward hook of a module call ``register`` with each output."""
    module.register_forward_hook(lambda module, args, output: register(output) and None)


def _of_stages(rank: int) -> list[Any]:
    """What hooks see of stages that give 2x and 3x, and of their outputs and weights."""
    log = defaultdict[str, "list[float]"](list)

    def note(name: str, value: Any) -> None:
        log[name].append(value.item())

    module = _weighted(rank + 2.0)
    module.register_forward_pre_hook(lambda module, args: note("input", args[0]))
    module.register_forward_hook(lambda module, args, output: note("output", output))
    _on_the_output(module, lambda output: output.register_hook(lambda gradient: note("output gradient", gradient)))
    module.w.register_post_accumulate_grad_hook(lambda w: note("accumulated", w.grad))
    return _two_steps(rank, module, log)


def _of_inputs(rank: int) -> list[Any]:
    """What hooks see on the inputs of these stages."""
    module, log = _weighted(rank + 2.0), list[float]()
    if rank:  # that of the first stage requires no grad
        _on_the_input(module, lambda x: x.register_hook(lambda gradient: log.append(gradient.item())))
    return _two_steps(rank, module, log)


@program("DD-16", PROMISE, since="2.6", source=f"{PIPELINES}.ScheduleGPipe; pytorch#185331", alone=True)
def hooks_of_a_pipeline_in_two_processes(check: Check) -> None:
    """Forward hooks on a stage, and hooks on its input, its output and its weight, are called once for each microbatch,
    with its own values and gradients, in every step of a pipeline.

    A full backward hook makes views of the outputs, which torch 2.6 could not detach."""
    if offered((2, 9)) and not offered((2, 10)):
        raise NotOffered("a pipeline of torch 2.9 sends eight bytes first where four are received, which gloo refuses")
    of_inputs = of_two(check, _of_inputs)
    for rank in TWO:
        first, second = of_inputs[rank]
        check.equal(f"process {rank}, step 0: input gradient", first, [15.0, 21.0] if rank else [], CALL)
        check.equal(f"process {rank}, step 1: input gradient", second, [15.0, 21.0] if rank else [], CALL)
    of_stages = of_two(check, _of_stages)
    for rank in TWO:
        for step in TWO:
            for name, due in SEEN.items():
                seen = of_stages[rank][step].get(name, [])
                check.equal(f"process {rank}, step {step}: {name}", seen, due[rank], CALL)


def _offered(name: str) -> Any:
    """A module of torch's pipelines."""
    if not torch.distributed.is_available():
        raise NotOffered("this torch is built without torch.distributed")
    return import_module(name)


def _split(output: Any, x: Any, weights: list[Any]) -> None:
    """A backward as schedules such as ZBVZeroBubble split it: for the input, and later for the weights."""
    halves = import_module(f"{PIPELINES}._backward")
    _, groups = halves.stage_backward_input([output], None, [x], iter(weights))
    halves.stage_backward_weight(iter(weights), groups)


Hook = Callable[[Any], Any]

TENFOLD: dict[str, tuple[Callable[[Any, Hook], Any], float, list[float]]] = {
    "hook on the output": (
        lambda module, ten: _on_the_output(module, lambda y: y.register_hook(ten)),
        5.0,
        [100.0, 150.0],
    ),
    "hook before the Node": (
        lambda module, ten: _on_the_output(module, lambda y: y.grad_fn.register_prehook(lambda g: (ten(*g),))),
        5.0,
        [100.0, 150.0],
    ),
    "hook on the module": (
        lambda module, ten: module.register_full_backward_hook(lambda module, gi, go: (ten(*gi),)),
        10.0,
        [100.0, 15.0],
    ),
    "hook on the weight": (lambda module, ten: module.w.register_hook(ten), 15.0, [10.0, 150.0]),
    "hook after the weight": (
        lambda module, ten: module.w.register_post_accumulate_grad_hook(lambda w: setattr(w, "grad", ten(w.grad))),
        15.0,
        [10.0, 150.0],
    ),
}
"""By kind what puts a hook that gives ten times its gradient on 2x, followed by 5x, at x = 3; what the hook gets; and
the gradients of x and of the first weight after it: 10 and 15, or ten times that where they lie behind the hook."""


@program("DD-17", PROMISE, since="2.6", source=f"Tensor.register_hook; {PIPELINES}; pytorch#144530")
def hooks_in_a_split_backward(check: Check) -> None:
    """Where a schedule splits a backward, first for the input and then for the weights, hooks are called once, with the
    gradient of a whole backward, and what they return counts once."""
    _offered(PIPELINES)
    for kind, (put, gradient, after) in TENFOLD.items():
        for way, act in (("whole", lambda output, *rest: output.backward()), ("split", _split)):
            log: list[float] = []
            first, second, x = _weighted(2.0), _weighted(5.0), leaf(3.0)
            put(first, lambda grad, log=log: (log.append(grad.item()), 10 * grad)[1])
            act(second(first(x)), x, [first.w, second.w])
            check.equal(f"{way}, {kind}: gradient of another weight", second.w.grad, [6.0])
            check.order(f"{way}, {kind}: gradients that it gets", log, [gradient])
            check.equal(f"{way}, {kind}: gradients after it", [x.grad.item(), first.w.grad.item()], after)
    for way, act in (("whole", lambda output, *rest: output.backward()), ("split", _split)):
        first, second, x, log = _weighted(2.0), _weighted(5.0), leaf(3.0), list[float]()
        second.w.register_hook(lambda grad, log=log: log.append(grad.item()))
        for _ in range(2):
            act(second(first(x)), x, [first.w, second.w])
        check.order(f"{way}, twice: gradients that a hook on the weight gets", log, [6.0, 6.0])
        check.equal(f"{way}, twice: gradients", [p.grad.item() for p in (x, first.w, second.w)], [20.0, 30.0, 12.0])


def _weighted(weight: float) -> Any:
    """A module that gives ``weight * x``."""
    module = net(lambda module, x: module.w * x)
    module.w = nn.Parameter(torch.tensor([weight]))
    return module
