"""What do the tools of tensor parallelism do by hooks? Styles turn inputs and outputs, as DTensors, on their way.

The styles of ``parallelize_module`` register a forward pre-hook and a forward hook; ``input_reshard`` opens hooks on
saved tensors in the one and closes them in the other; ``loss_parallel`` changes what a cross entropy's backward does.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any

from hookcheck.contract.clause import PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.chapters.distributed_tensors import (
    distributed,
    held,
    inputs_in,
    kind,
    mesh,
    output_out,
    tensor,
)
from hookcheck.programs.check import Check
from hookcheck.programs.nets import net
from hookcheck.programs.processes import process_group
from hookcheck.programs.program import program

STYLES = "torch.distributed.tensor.parallel"


def _linear() -> Any:
    """A linear module of two features: x·[[1, 3], [2, 4]] + [5, 6]."""
    linear = nn.Linear(2, 2)
    linear.weight.data.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    linear.bias.data.copy_(torch.tensor([5.0, 6.0]))
    return linear


@program("DT-05", PROMISE, since="2.6", source="torch.distributed.tensor.distribute_module; pytorch#171709")
def frozen_parameters_stay_frozen(check: Check) -> None:
    """A parameter that requires no grad requires none when it is distributed, and its hooks are not called."""
    parallel = import_module(STYLES)
    with process_group(check):
        for name, distribute in (
            ("distribute_module", lambda m: tensor().distribute_module(m, mesh(), None, inputs_in, output_out)),
            ("ColwiseParallel", lambda m: parallel.parallelize_module(m, mesh(), parallel.ColwiseParallel())),
            ("RowwiseParallel", lambda m: parallel.parallelize_module(m, mesh(), parallel.RowwiseParallel())),
        ):
            for frozen in ("weight", "bias"):
                module = _linear()
                getattr(module, frozen).requires_grad_(False)
                distribute(module)
                module(torch.tensor([[1.0, 10.0]])).sum().backward()
                got = {key: value.grad is not None for key, value in module.named_parameters()}
                check.equal(
                    f"{name}, {frozen} frozen: what has a gradient", got, {**dict.fromkeys(got, True), frozen: False}
                )


ROLES: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "ColwiseParallel": ("ColwiseParallel", {}, "Replicate()", "plain"),
    "ColwiseParallel that gives DTensors": (
        "ColwiseParallel",
        {"use_local_output": False},
        "Replicate()",
        "Shard(dim=1)",
    ),
    "RowwiseParallel": ("RowwiseParallel", {}, "Shard(dim=1)", "plain"),
    "RowwiseParallel that gives DTensors": (
        "RowwiseParallel",
        {"use_local_output": False},
        "Shard(dim=1)",
        "Replicate()",
    ),
}
"""Styles of a linear module: what its forward is given, and what its caller gets (their docstrings)."""


@program("DT-07", PROMISE, since="2.6", source=f"{STYLES}.ColwiseParallel, RowwiseParallel")
def styles_work_by_hooks(check: Check) -> None:
    """A style of ``parallelize_module`` turns the input and the output of a module in hooks after those that there
    were: hooks that come later see what these made of them, and full backward hooks the gradients of just that."""
    parallel = import_module(STYLES)
    with process_group(check):
        layout = {"input_layouts": tensor().Replicate()}
        for name, (style, options, inside, outside) in ROLES.items():
            for given in ("plain", "Replicate()"):
                log: list[Any] = []
                module = _linear()
                module.register_forward_pre_hook(lambda m, args, log=log: log.append(("pre, before", kind(args[0]))))
                parallel.parallelize_module(module, mesh(), getattr(parallel, style)(**layout, **options))
                module.register_forward_pre_hook(lambda m, args, log=log: log.append(("pre, after", kind(args[0]))))
                module.register_forward_hook(lambda m, args, y, log=log: log.append(("post, after", kind(y))))
                module.register_full_backward_hook(
                    lambda m, gi, go, log=log: log.append((kind(go[0]), held(gi[0].full_tensor()), held(go[0])))
                )
                x = torch.tensor([[1.0, 10.0]], requires_grad=True)
                passed = x if given == "plain" else inputs_in(None, (x,), mesh())
                output = module(passed)
                fact = f"{name}, given {given}"
                check.equal(f"{fact}: output", held(output), [[26.0, 49.0]])
                local = output if outside == "plain" else output.to_local()
                (local * torch.tensor([1.0, 2.0])).sum().backward()
                # The gradient of the input is [1, 2]·W = [7, 10]; of the weight, [1, 2] by [1, 10].
                expected: list[Any] = [("pre, before", given), ("pre, after", inside)]
                expected += [("post, after", outside), (outside, [[7.0, 10.0]], [[1.0, 2.0]])]
                check.order(f"{fact}: hooks", log, expected)
                gradients = [x.grad, held(module.weight.grad), held(module.bias.grad)]
                check.equal(f"{fact}: gradients", gradients, [[[7.0, 10.0]], [[1.0, 10.0], [2.0, 20.0]], [1.0, 2.0]])


@program("DT-08", PROMISE, since="2.6", source=f"{STYLES}.PrepareModuleInput, PrepareModuleOutput, SequenceParallel")
def inputs_and_outputs_are_prepared(check: Check) -> None:
    """Inputs and outputs are prepared one by one as a style says, positional and by keyword, and what it says nothing
    of is left; an input of SequenceParallel is sharded along the sequence, whatever it was."""
    parallel, place = import_module(STYLES), tensor()
    with process_group(check):
        shard, replicate, log = place.Shard(0), place.Replicate(), []  # type: tuple[Any, Any, list[Any]]
        module = net(lambda module, a, n, b, c: (log.append([kind(a), n, kind(b), c]), (2 * a, n, 3 * b))[1])
        keywords = {"input_kwarg_layouts": {"b": replicate}, "desired_input_kwarg_layouts": {"b": shard}}
        given, wished = (shard, None), (replicate, None)
        come = parallel.PrepareModuleInput(input_layouts=given, desired_input_layouts=wished, **keywords)
        outs = {"output_layouts": (replicate, None, shard), "desired_output_layouts": (shard, None, replicate)}
        for style in (come, parallel.PrepareModuleOutput(**outs, use_local_output=False)):
            parallel.parallelize_module(module, mesh(), style)
        module.register_full_backward_hook(lambda m, gi, go: log.append([held(gi[0]), *map(held, go)]))
        a, b = (torch.tensor([value, value], requires_grad=True) for value in (1.0, 5.0))
        output = module(a, "n", b=b, c=7)
        kinds = [kind(output[0]), output[1], kind(output[2])]
        check.equal("what the caller gets", kinds, ["Shard(dim=0)", "n", "Replicate()"])
        (output[0].to_local() + 10 * output[2].to_local()).sum().backward()
        expected = [["Replicate()", "n", "Shard(dim=0)", 7], [[2.0, 2.0], [1.0, 1.0], None, [10.0, 10.0]]]
        check.order("what forward and the backward hook get", log, expected)
        check.equal("gradients", [a.grad, b.grad], [[2.0, 2.0], [30.0, 30.0]])
        for name in ("plain", "Replicate()"):
            norm, log = nn.LayerNorm(2), []
            parallel.parallelize_module(norm, mesh(), parallel.SequenceParallel())
            norm.register_forward_pre_hook(lambda m, args, log=log: log.append(kind(args[0])))
            norm.register_forward_hook(lambda m, args, y, log=log: log.append(kind(y)))
            x = torch.ones(1, 2, 2)
            norm(x if name == "plain" else place.DTensor.from_local(x, mesh(), [replicate]))
            check.order(f"SequenceParallel, given {name}", log, ["Shard(dim=1)"] * 2)


def _loss_parallel() -> Any:
    return import_module(STYLES).loss_parallel()


def _cross_entropy(logits: Any) -> Any:
    return nn.functional.cross_entropy(logits, torch.tensor([0]))


def _log_softmax(logits: Any) -> Any:
    return nn.functional.log_softmax(logits, 1).to_local()[0, 0]


@program("DT-09", PROMISE, since="2.6", source=f"{STYLES}.loss_parallel; pytorch#190746")
def hooks_under_loss_parallel(check: Check) -> None:
    """Under ``loss_parallel`` a hook on logits that are sharded by class gets the gradient that it gets without it, of
    a cross entropy and of what else is made of a softmax; an exception leaves nothing of it behind."""
    with process_group(check):
        # Of two equal logits the softmax is [½, ½].
        for name, loss, gradient in (
            ("cross_entropy", _cross_entropy, [-0.5, 0.5]),
            ("log_softmax", _log_softmax, [0.5, -0.5]),
        ):
            log: list[Any] = []
            logits = distributed(tensor().Shard(1), [0.0, 0.0])
            logits.register_hook(log.append)
            with _loss_parallel():
                loss(logits).backward()
            observed = [(kind(g), g.to_local().tolist()) for g in log]
            check.equal(f"{name}: what a hook on the logits gets", observed, [("Shard(dim=1)", [gradient])])

        def fail(grad: Any) -> None:
            raise RuntimeError("as the hook was to")

        place, here = tensor(), mesh()

        def stopped() -> None:
            sharded = place.distribute_tensor(torch.zeros(1, 2, requires_grad=True), here, [place.Shard(1)])
            sharded.register_hook(fail)
            with _loss_parallel():
                _cross_entropy(sharded).backward()

        check.raises("a hook that raises", RuntimeError, stopped, "as the hook was to")
        whole, target = (place.DTensor.from_local(x, here) for x in (torch.zeros(1, 2), torch.tensor([0])))
        check.works("cross_entropy after it", lambda: nn.functional.cross_entropy(whole, target))
        with _loss_parallel():
            pass  # its end takes away what the exception has left


def _close_hooks() -> None:
    """Closes the hooks on saved tensors that are still open in this thread."""
    with suppress(RuntimeError):  # none is open any more
        while True:
            torch._C._autograd._pop_saved_tensors_default_hooks()


def _raises(module: Any, x: Any) -> Any:
    raise RuntimeError("as forward was to")


@program("DT-11", PROMISE, since="2.6", source=f"{STYLES}.input_reshard.input_reshard")
def resharded_inputs_come_back(check: Check) -> None:
    """What a module under ``input_reshard`` saves is sharded until the backward; hooks on saved tensors that are open
    around it are called for what comes after it, also where its forward raised."""
    with process_group(check):
        reshard = import_module(f"{STYLES}.input_reshard").input_reshard
        for name, forward, fails in (
            ("a forward", lambda module, x: x * x, False),
            ("a forward that raises", _raises, True),
        ):
            log: list[str] = []
            module = reshard(net(forward), mesh(), 0)
            x = distributed(tensor().Replicate(), 1.0, 2.0)
            with torch.autograd.graph.saved_tensors_hooks(lambda t, log=log: (log.append("packed"), t)[1], lambda t: t):
                with suppress(RuntimeError):
                    output = module(x)
                x * x
            check.equal(f"{name}: hooks called after it", log, ["packed", "packed"])
            if not fails:
                check.equal(f"{name}: what comes back", kind(output.grad_fn._saved_self), "Replicate()")
                output.to_local().sum().backward()
                check.equal(f"{name}: gradient", held(x.grad), [2.0, 4.0])
            _close_hooks()
