"""When do fully_shard and FSDP gather, reduce and free? Over several forwards, backwards and steps, with hooks there.

fully_shard gathers the parameters of a module when a gradient comes to one of its outputs; it reduces their gradients
and frees them when the gradients of its inputs are done. Steps may reduce nothing, and add up until one does.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from dataclasses import make_dataclass
from importlib import import_module
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.chapters.parallel import scale
from hookcheck.programs.chapters.sharded import FSDP1, FSDP2, SHARD, WHOLE, sharded, wrapped
from hookcheck.programs.check import Check, NotOffered
from hookcheck.programs.nets import net
from hookcheck.programs.processes import process_group
from hookcheck.programs.program import program

Pair = namedtuple("Pair", "first second")

HOLDS: dict[str, tuple[Callable[..., Any], Callable[[Any, int], Any]]] = {
    "a tuple": (lambda *two: two, lambda held, place: held[place]),
    "a list": (lambda *two: [*two], lambda held, place: held[place]),
    "a dict": (lambda *two: {**dict(enumerate(two))}, lambda held, place: held[place]),
    "a named tuple": (Pair, lambda held, place: held[place]),
    "dicts in a tuple": (lambda *two: ({"y": two[0]}, {"y": two[1]}), lambda held, place: held[place]["y"]),
    "a dataclass": (
        make_dataclass("Two", ["first", "second"]),
        lambda held, place: getattr(held, ("first", "second")[place]),
    ),
}
"""How a module may hold two outputs, and how one of them is picked."""


def watched(forward: Callable[..., Any], log: list[Any]) -> Any:
    """A module that computes ``forward(seen, *args, **kwargs)``, where ``seen(x)`` is w + x with w = 2: its backward
    needs no weight, and notes which class the module's weight has in it."""

    def run(module: Any, *args: Any, **kwargs: Any) -> Any:
        def seen(x: Any) -> Any:
            total = module.w + x
            if total.requires_grad:
                total.register_hook(lambda grad: log.append(type(module.w).__name__))
            return total

        return forward(seen, *args, **kwargs)

    module = net(run)
    module.w = nn.Parameter(torch.tensor([2.0]))
    return module


def within_a_root(module: Any, **options: Any) -> Any:
    """A module under fully_shard with these options, in one that is the root."""
    return sharded(nn.Sequential(sharded(module, **options)))


def noting_the_shard(module: Any, log: list[Any]) -> Any:
    """The module under fully_shard, with a post-accumulate-grad hook that notes the gradient of its weight."""
    module.w.register_post_accumulate_grad_hook(lambda weight: log.append(weight.grad.to_local().tolist()))
    return module


def x(value: float, requires_grad: bool = False) -> Any:
    """A tensor of one number."""
    return torch.tensor([value], requires_grad=requires_grad)


@program("DS-29", PROMISE, since="2.6", source=f"{FSDP2}, 'Similar backward hooks all-gather parameters'")
def each_output_has_parameters_gathered(check: Check) -> None:
    """In a backward the parameters of a module under fully_shard are whole, and after it they are sharded, whichever
    output it starts from and whatever holds the outputs, in training and in evaluation, in every step."""
    with process_group(check):
        for name, (hold, pick) in HOLDS.items():
            for training in (True, False):
                log: list[Any] = []
                module = watched(lambda seen, x, hold=hold: hold(3 * seen(x), 5 * seen(x)), log)
                root = within_a_root(module).train(training)
                for place, gradient in enumerate((3.0, 5.0)):
                    log.clear()
                    module.w.grad = None
                    pick(root(x(1.0)), place).backward()
                    mode = "training" if training else "evaluation"
                    log.append(type(module.w).__name__)
                    check.order(f"{name}, {mode}: backward from output {place}", log, [WHOLE, SHARD])
                    grad = module.w.grad
                    check.equal(f"{name}, {mode}: gradient from output {place}", grad and grad.to_local(), [gradient])


@program("DS-30", PROMISE, since="1.13", source=FSDP1)
def each_output_starts_a_backward_of_fsdp(check: Check) -> None:
    """Under FSDP a backward may start from any output of the module, whatever holds the outputs, in training and in
    evaluation, in every step."""
    with process_group(check):
        for name, (hold, pick) in HOLDS.items():
            for training in (True, False):
                module = net(
                    lambda module, x, hold=hold: hold(3 * module.w * x, 5 * module.w * x),
                    w=nn.Parameter(torch.tensor([2.0])),
                )
                root = wrapped(module).train(training)
                for place, gradient in enumerate((6.0, 10.0)):  # 3·x and 5·x
                    module.w.grad = None
                    mode = "training" if training else "evaluation"
                    fact = f"{name}, {mode}: backward from output {place}"
                    check.works(fact, lambda root=root, place=place, pick=pick: pick(root(x(2.0)), place).backward())
                    check.equal(f"{fact}: gradient", module.w.grad, [gradient])


@program("DS-31", PIN, since="2.6", source=f"{FSDP2}; RegisterPostBackwardFunction; pytorch#133498")
def inputs_get_gradients_after_the_shard(check: Check) -> None:
    """When hooks on inputs of a module under fully_shard run, positional or by keyword, nested or not, the gradient of
    its parameter is reduced, once and whole; an input that forward does not use gets no gradient."""
    with process_group(check):
        for name, by_keyword in (("positional and by keyword", False), ("by keyword alone", True)):
            module = sharded(
                net(lambda module, a, rest, unused: module.w * (a + rest["b"][0]), w=nn.Parameter(torch.tensor([2.0])))
            )
            log: list[Any] = []
            module.w.register_post_accumulate_grad_hook(
                lambda w, log=log: log.append(("w", w.grad.to_local().tolist()))
            )
            a, b, unused = (x(value, True) for value in (3.0, 5.0, 7.0))
            for word, tensor in (("a", a), ("b", b)):
                tensor.register_hook(lambda grad, word=word, log=log: log.append((word, grad.tolist())))
            rest = {"rest": {"b": [b]}, "unused": unused}
            (module(a=a, **rest) if by_keyword else module(a, **rest)).backward()
            check.equal(f"{name}: the first hook", log[0], ("w", [8.0]))  # a + b
            check.equal(f"{name}: the other hooks", sorted(log[1:]), [("a", [2.0]), ("b", [2.0])])
            check.equal(f"{name}: gradient of an input that is not used", unused.grad, None)


def _twice(output: Any) -> None:
    output.backward(retain_graph=True)
    output.backward()


def _two_steps(root: Any, x: Any) -> None:
    root(x).backward()
    root(x).backward()


WAYS: dict[str, tuple[Callable[[Any, Any], None], list[float], list[float]]] = {
    "two forwards, one backward": (lambda root, x: (root(x) + root(2 * x)).backward(), [6.0], [9.0]),
    "one forward, two backwards": (lambda root, x: _twice(root(x)), [3.0, 6.0], [6.0]),
    "a forward of a forward": (lambda root, x: root(root(x)).backward(), [12.0], [9.0]),  # 3(w + 3(w + x))
    "two steps": (_two_steps, [3.0, 6.0], [6.0]),
}
"""What may be done with 3·(w + x), which gradients of w a hook must meet, and which gradient x has in the end."""


@program("DS-32", PROMISE, since="2.6", source=f"{FSDP2}; FSDPState, FSDPParamGroup")
def several_forwards_and_backwards(check: Check) -> None:
    """Of a module under fully_shard there may be several forwards in a backward, and several backwards of a forward:
    each has the parameters whole, and each backward reduces all that it brings, once."""
    with process_group(check):
        for way, (act, gradients, of_x) in WAYS.items():
            for needs in (False, True):
                log: list[Any] = []
                module = watched(lambda seen, x: 3 * seen(x), log)
                root = within_a_root(module)
                noting_the_shard(module, log)
                value = x(1.0, needs)
                act(root, value)
                name = f"{way}, inputs that {'' if needs else 'do not '}require grad"
                # Two forwards there are in each: in two backwards, or in one, and then both come before the reduction.
                expected = (
                    [WHOLE, [gradients[0]], WHOLE, [gradients[-1]]] if gradients[1:] else [WHOLE] * 2 + [gradients]
                )
                check.order(name, log, expected)
                check.equal(f"{name}: gradient of x", value.grad, of_x if needs else None)


@program("DS-33", PROMISE, since="1.13", source=f"{FSDP1}.register_comm_hook; pytorch#106637")
def comm_hook_in_each_backward_of_fsdp(check: Check) -> None:
    """FSDP's comm hook is called once in each backward, with all that was added up, however many forwards it has and
    however often a forward is differentiated."""
    with process_group(check):
        for way, (act, gradients, of_x) in WAYS.items():
            log: list[Any] = []
            root = wrapped(net(lambda module, x: 3 * (module.w + x), w=nn.Parameter(torch.tensor([2.0]))))
            root.register_comm_hook(None, lambda state, grad, log=log: log.append(grad.tolist()))
            value = x(1.0, True)
            act(root, value)
            check.order(f"{way}: what the hook gets", log, [[gradient] for gradient in gradients])
            check.equal(f"{way}: gradient of x", value.grad, of_x)


@program("DS-34", PROMISE, since="2.6", source="torch.distributed.fsdp.FSDPModule.set_requires_gradient_sync")
def steps_without_reduction(check: Check) -> None:
    """While gradients are not to be reduced, no hook of the shard and no all-reduce hook is called, and the shard has
    no gradient; the next step that reduces brings all of them, also where they are reduced in another dtype."""
    with process_group(check):
        mixed = import_module("torch.distributed.fsdp").MixedPrecisionPolicy
        low = {"mp_policy": mixed(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)}
        for name, options in (("one dtype", {}), ("gradients in bfloat16 reduced in float32", low)):
            log: list[Any] = []
            module = noting_the_shard(sharded(scale(), **options), log)
            module.set_all_reduce_hook(lambda grad, log=log: log.append(("reduced", grad.tolist(), grad.dtype)))
            for value in (3.0, 4.0):
                module.set_requires_gradient_sync(False)
                module(x(value, True)).backward()
                check.order(f"{name}: hooks without reduction, of {value:g}", log, [])
                check.equal(f"{name}: gradient without reduction, of {value:g}", module.w.grad, None)
            module.set_requires_gradient_sync(True)
            for value, reduced, total in ((5.0, 12.0, 12.0), (6.0, 6.0, 18.0)):  # 3 + 4 + 5
                log.clear()
                module(x(value, True)).backward()
                check.order(f"{name}: hooks of {value:g}", log, [("reduced", [reduced], torch.float32), [total]])


@program("DS-35", PROMISE, since="1.13", source=f"{FSDP1}.no_sync")
def no_sync_of_fsdp(check: Check) -> None:
    """In ``no_sync`` FSDP's comm hook is not called; afterwards it gets all that was added up, also where the block was
    left by an exception."""
    with process_group(check):
        for name, error in (("after its end", None), ("after an exception", KeyError)):
            log: list[Any] = []
            root = wrapped(scale())
            root.register_comm_hook(None, lambda state, grad, log=log: log.append(grad.tolist()))

            def accumulate(root: Any = root, error: Any = error) -> None:
                with root.no_sync():
                    root(x(3.0)).backward()
                    root(x(4.0)).backward()
                    if error:
                        raise error("in the block")

            if error:
                check.raises(f"{name}: what leaves the block", error, accumulate, "in the block")
            else:
                accumulate()
            check.order(f"{name}: calls in the block", log, [])
            root(x(5.0)).backward()
            check.order(f"{name}: calls", log, [[12.0]])  # 3 + 4 + 5


@program("DS-36", PROMISE, since="2.6", source=f"{FSDP2}; set_requires_grad_if_needed")
def freezing_between_steps(check: Check) -> None:
    """A parameter under fully_shard may be frozen and thawed between steps: its hooks are called, and it has a
    gradient, in the steps in which it requires grad."""
    with process_group(check):
        log: list[Any] = []
        module = noting_the_shard(sharded(scale()), log)
        for step, requires in enumerate((True, False, True, False)):
            log.clear()
            module.w.grad = None
            module.w.requires_grad_(requires)
            value = x(3.0, True)
            module(value).backward()
            name = f"step {step}, {'' if requires else 'not '}requiring grad"
            check.order(f"{name}: hooks", log, [[3.0]] if requires else [])
            check.equal(f"{name}: whether there is a gradient", module.w.grad is not None, requires)
            check.equal(f"{name}: gradient of x", value.grad, [2.0])


STOPS = ("register_forward_pre_hook", "register_forward_hook", "register_full_backward_pre_hook")
"""What registers a hook that may raise in the middle of a step."""


@program("DS-37", PROMISE, since="2.6", source="torch.distributed.fsdp.FSDPModule.reset_iter_state")
def a_step_after_an_exception(check: Check) -> None:
    """After an exception of a hook, in forward or in backward, ``reset_iter_state`` lets the next step be as if there
    had been none."""
    with process_group(check):
        if not hasattr(import_module("torch.distributed.fsdp").FSDPModule, "reset_iter_state"):
            raise NotOffered("this torch has no FSDPModule.reset_iter_state")

        def fail(*arguments: Any) -> None:
            raise RuntimeError("as the hook was to")

        for register in STOPS:
            for needs in (False, True):
                log: list[Any] = []
                module = watched(lambda seen, x: 3 * seen(x), log)
                root = within_a_root(module)
                noting_the_shard(module, log)
                name = f"{register}, inputs that {'' if needs else 'do not '}require grad"
                handle = getattr(module, register)(fail)
                check.raises(
                    name, RuntimeError, lambda root=root, needs=needs: root(x(1.0, needs)).backward(), "as the"
                )
                handle.remove()
                root.reset_iter_state()
                check.equal(f"{name}: the weight after it", type(module.w).__name__, SHARD)
                log.clear()
                check.works(f"{name}: next step", lambda root=root, needs=needs: root(x(1.0, needs)).backward())
                check.order(f"{name}: hooks in the next step", log, [WHOLE, [3.0]])


STARTS: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], Any], float]] = {
    "an output": (lambda total: 3 * total, lambda output, total: output, 3.0),
    "a changed output": (lambda total: 3 * total, lambda output, total: output.mul_(5), 15.0),
    "a changed view": (lambda total: (3 * total).view(1), lambda output, total: output.mul_(5), 15.0),
    "a tensor from inside": (lambda total: 3 * total, lambda output, total: total, 1.0),
    "both": (lambda total: 3 * total, lambda output, total: output + 5 * total, 8.0),
}
"""What a module makes of w + x, and what a backward starts from, by the output and that sum; and the gradient of w,
which is that of x as well."""


@program("DS-44", PROMISE, since="2.6", source=f"{FSDP2}, 'all-gather parameters'; pytorch#173709, pytorch#181832")
def a_backward_starts_anywhere_in_a_module(check: Check) -> None:
    """In a backward the parameters of a module under fully_shard are whole, and their gradients are reduced, whether it
    starts from an output, from what was changed in place after forward, or from a tensor inside of the module."""
    with process_group(check):
        for start, (make, pick, gradient) in STARTS.items():
            for needs in (False, True):
                classes, reduced = list[Any](), list[Any]()

                def forward(module: Any, x: Any, make: Any = make, classes: list[Any] = classes) -> Any:
                    module.total = module.w + x
                    module.total.register_hook(lambda gradient: classes.append(type(module.w).__name__))
                    return make(module.total)

                module = net(forward)
                module.w = nn.Parameter(torch.tensor([2.0]))
                root, value = within_a_root(module), x(1.0, needs)
                noting_the_shard(module, reduced)
                pick(root(value), module.total).backward()
                name = f"{start}, {'an' if needs else 'no'} input requires grad"
                check.equal(f"{name}: the weight in backward", classes, [WHOLE])
                check.equal(f"{name}: the weight after it", type(module.w).__name__, SHARD)
                check.order(f"{name}: gradients that are reduced", reduced, [[gradient]])
                check.equal(f"{name}: gradient of x", value.grad, [gradient] if needs else None)
