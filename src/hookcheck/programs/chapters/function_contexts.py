"""What becomes of what a Function of one's own saves, writes to and is told, with hooks around it and without?

What its ``ctx`` saves is freed with its output, counts its own versions, and is found to be changed where it is. A
tensor whose history a write would replace refuses the write. And ``custom_fwd`` and ``custom_bwd`` tell backward under
which autocast forward ran.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hookcheck.contract.clause import PROMISE
from hookcheck.probe.garbage import survivors
from hookcheck.probe.lazy import torch
from hookcheck.programs.check import Check
from hookcheck.programs.host_changes import offered
from hookcheck.programs.nets import leaf, net
from hookcheck.programs.program import program

CHANGED = "modified by an inplace operation"


def function(forward: Callable[..., Any], backward: Callable[..., Any], **methods: Any) -> Any:
    """A Function of one's own."""
    methods.update(forward=forward, backward=backward)
    attributes = {name: staticmethod(method) for name, method in methods.items()}
    return type("Own", (torch.autograd.Function,), attributes)


def _marks(ctx: Any, x: Any) -> Any:
    ctx.mark_dirty(x)
    return x.mul_(2)


def _saving(saved: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A forward that gives ``2 x``, and saves what ``saved`` makes of x and of the output."""

    def forward(ctx: Any, x: Any) -> Any:
        y = 2 * x
        ctx.save_for_backward(saved(x, y))
        return y

    return forward


def _writing(ctx: Any, x: Any) -> Any:
    """A forward that doubles x in place, and saves it."""
    ctx.save_for_backward(_marks(ctx, x))
    return x


SAVES: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any], Any]]] = {
    "its input": (_saving(lambda x, y: x), lambda x: 1 * x),
    "its output": (_saving(lambda x, y: y), lambda x: 1 * x),
    "a view of its input": (_saving(lambda x, y: x.view(-1)), lambda x: 1 * x),
    "a view of its output": (_saving(lambda x, y: y.view(-1)), lambda x: 1 * x),
    "what it wrote to": (_writing, lambda x: 1 * x),
    "the view that it wrote to": (_writing, lambda x: (1 * x)[:1]),
}
"""What a Function saves: its forward, and what it is given of a leaf."""


HOOKS: dict[str, Callable[[Any], Any]] = {
    "no hook": lambda y: None,
    "tensor hook": lambda y: y.register_hook(lambda gradient: None),
    "Node hook": lambda y: y.grad_fn.register_hook(lambda *gradients: None),
    "full backward hook": lambda y: None,
}
"""What puts a hook of each kind on what a Function gives; that of the module is there before."""


@program("LT-14", PROMISE, since="1.13", source="FunctionCtx.save_for_backward, 'prevent leaks'; pytorch#94990")
def what_a_function_saves_is_freed(check: Check) -> None:
    """Whatever a Function saves with ``save_for_backward``, its ``ctx`` is freed when its output is dropped, after a
    backward and without one, with a hook on the output, on its Node, on the module around it or none."""
    for name, (forward, source) in SAVES.items():
        for hook, register in HOOKS.items():
            for runs in (False, True):

                def play(
                    note: Any,
                    forward: Any = forward,
                    source: Any = source,
                    register: Any = register,
                    full: bool = hook == "full backward hook",
                    runs: bool = runs,
                ) -> None:
                    def noted(ctx: Any, x: Any) -> Any:
                        note("ctx", ctx)
                        return forward(ctx, x)

                    doubles = function(noted, lambda ctx, gradient: ctx.saved_tensors[0] * gradient)
                    module = net(lambda module, x: doubles.apply(source(x)))
                    if full:
                        module.register_full_backward_hook(lambda *given: None)
                    y = module(leaf(3.0))
                    register(y)
                    if runs:
                        y.backward()

                what = f"{name}, {hook}, {'after a backward' if runs else 'no backward'}"
                check.equal(f"what is left, saved is {what}", survivors(play), [])


@program("ST-34", PROMISE, since="1.8", source="saved_tensors_hooks; Tensor._version; pytorch#60195, pytorch#128611")
def versions_of_what_is_unpacked(check: Check) -> None:
    """What is unpacked counts its own versions: to change it in place counts for the tensor that was saved if the two
    share their memory, and else not; and a gradient that needs what was unpacked is refused once that was changed."""
    given = {
        "no hooks": None,
        "the tensor itself": lambda tensor: tensor,
        "a view of it": lambda tensor: tensor.view(-1),
        "another tensor": lambda tensor: torch.full_like(tensor, 3.0),
    }
    for name, pack in given.items():
        if pack and not offered((1, 10)):
            continue
        counts, x = list[int](), leaf(3.0)

        def backward(ctx: Any, gradient: Any, counts: list[int] = counts, x: Any = x) -> Any:
            (saved,) = ctx.saved_tensors
            before = x._version
            with torch.no_grad():
                saved.detach().mul_(1)
            counts.append(x._version - before)
            return 2 * gradient * saved

        saves = function(_saving(lambda x, y: x), backward)
        if pack is None:
            y = saves.apply(x)
        else:
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda packed: packed):
                y = saves.apply(x)
        y.backward()
        check.equal(f"{name}: versions that the saved tensor counts", counts, [int(name != "another tensor")])
        check.equal(f"{name}: gradient", x.grad, [6])
    of_second_derivatives(check)


def of_second_derivatives(check: Check) -> None:
    """The gradient of a gradient needs what the first backward unpacked."""
    saves = function(_saving(lambda x, y: x), lambda ctx, gradient: gradient * ctx.saved_tensors[0] ** 2)
    x = leaf(3.0)
    h = 1 * x
    (gradient,) = torch.autograd.grad(saves.apply(h), h, create_graph=True)
    with torch.no_grad():
        h.mul_(10)
    check.raises("what was unpacked is changed", RuntimeError, gradient.backward, CHANGED)


@program("IP-11", PROMISE, since="1.8", source="notes of release 1.9, in-place changes of views; pytorch#14707")
def views_that_refuse_a_write(check: Check) -> None:
    """A view that a Function of one's own gives, that was made without grad mode, or that is one of several refuses to
    be changed in place where that would replace its history, so that hooks on its Node would be passed by."""
    x = leaf(1.0, 2.0)
    triples = function(lambda ctx, x: (3 * x.detach()).view(-1), lambda ctx, gradient: 3 * gradient)
    with torch.no_grad():
        alone = x[:1]
    views: dict[str, Any] = {
        "of a Function": triples.apply(x),
        "made without grad mode": alone,
        "one of several": (1 * x).unbind()[0],
        "of one of several": (1 * x).view(2, 1).unbind()[0].view(-1),
    }
    for name, view in views.items():
        for recorded in (True, False) if name == "of a Function" else (True,):

            def write(view: Any = view, recorded: bool = recorded) -> None:
                with torch.set_grad_enabled(recorded):
                    view.mul_(2)
                # without grad mode the history is replaced when it is asked for
                assert view.grad_fn is not None

            check.raises(
                f"a view {name}, changed {'in' if recorded else 'without'} grad mode", RuntimeError, write, "view"
            )


def doubling(device: str, states: list[Any], casts: bool, sets_up: bool) -> Any:
    """A Function that doubles under custom_fwd and custom_bwd, and notes whether autocast is on."""

    def forward(*arguments: Any) -> Any:
        states.append(torch.is_autocast_enabled(device))
        return 2 * arguments[-1]

    def backward(ctx: Any, gradient: Any) -> Any:
        states.append(torch.is_autocast_enabled(device))
        return 2 * gradient

    amp: Any = torch.amp
    wrapped = amp.custom_fwd(forward, device_type=device, cast_inputs=torch.float32 if casts else None)
    setup = {"setup_context": lambda ctx, inputs, output: None} if sets_up else {}
    return function(wrapped, amp.custom_bwd(backward, device_type=device), **setup)


@program("AU-12", PROMISE, since="2.4", source="torch.amp.custom_fwd, custom_bwd, 'autocast state'; pytorch#132388")
def functions_that_know_their_autocast(check: Check) -> None:
    """Under ``custom_fwd`` and ``custom_bwd`` backward runs with the autocast state of forward, which ``cast_inputs``
    switches off, be ``ctx`` set up in forward or by ``setup_context``, and a hook on the input gets its gradient."""
    device = check.device.partition(":")[0]
    for way in ("with ctx", "with setup_context"):
        for casts in (False, True):
            states, x, log = list[Any](), torch.tensor([3.0], device=check.device, requires_grad=True), list[Any]()
            x.register_hook(lambda gradient, log=log: log.append(gradient.tolist()))
            with torch.autocast(device, dtype=torch.bfloat16):
                y = doubling(device, states, casts, way == "with setup_context").apply(x)
            what = f"{way}, {'cast' if casts else 'as they come'}"
            check.works(f"{what}: backward", y.backward)
            if len(states) == 2:
                check.equal(f"{what}: autocast in forward and backward", states, [not casts, not casts])
                check.equal(f"{what}: hook", log, [[2.0]])
