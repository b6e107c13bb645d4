"""What becomes of what a Function of one's own saves, writes to and is told, with hooks around it and without?

What its ``ctx`` saves is freed with its output, counts its own versions, and is found to be changed where it is. A
tensor whose history a write would replace refuses the write. And ``custom_fwd`` and ``custom_bwd`` tell backward under
which autocast forward ran.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from hookcheck.contract.clause import PROMISE
from hookcheck.probe.garbage import survivors
from hookcheck.probe.lazy import torch
from hookcheck.programs.check import Check
from hookcheck.programs.handles import LEAF, MODULE, NODE, OUTPUT, call_hooked, kinds, restored
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
        for recorded in (True, False):

            def write(view: Any = view, recorded: bool = recorded) -> None:
                with torch.set_grad_enabled(recorded):
                    view.mul_(2)
                # without grad mode the history is replaced when it is asked for
                assert view.grad_fn is not None

            check.raises(
                f"a view {name}, changed {'in' if recorded else 'without'} grad mode", RuntimeError, write, "view"
            )


class Token:
    """What can be referred to weakly, and may hold a tensor."""

    tensor: Any = None


def _play_function(note: Any, method: str, sets_up: bool) -> None:
    """Runs a Function, and notes what one of its methods returns."""

    def noted(name: str, value: Any) -> Any:
        if name == method:
            note("what it returned", value)
        return value

    setup = {"setup_context": lambda ctx, inputs, output: noted("setup_context", Token())} if sets_up else {}
    doubles = function(
        lambda *given: noted("forward", 2 * given[-1]), lambda ctx, gradient: noted("backward", 2 * gradient), **setup
    )
    doubles.apply(leaf(3.0)).backward()


def _play_hook(note: Any, kind: str) -> None:
    """Runs a module with a hook of one kind, and notes what the hook returns."""

    def hook(*given: Any) -> Any:
        def copied(gradient: Any) -> Any:
            copy = None if gradient is None else 1 * gradient
            if copy is not None:
                note("what it returned", copy)
            return copy

        gradients = given[1] if isinstance(given[0], torch.nn.Module) else given[0]
        return tuple(map(copied, gradients)) if isinstance(gradients, tuple) else copied(gradients)

    x = torch.tensor([[2.0]], requires_grad=True)
    with restored():
        y, _ = call_hooked(kind, torch.nn.Linear(1, 1), x, hook)
        (y * y).backward()


def _play_tangent(note: Any, sets_up: bool) -> None:
    """Runs a Function in forward mode, and notes what its jvp returns."""

    def tangent(ctx: Any, given: Any) -> Any:
        result = 2 * given
        note("what it returned", result)
        return result

    methods: Any = {"jvp": tangent, **({"setup_context": lambda ctx, inputs, output: None} if sets_up else {})}
    doubles = function(lambda *given: 2 * given[-1], lambda ctx, gradient: 2 * gradient, **methods)
    forward_ad = import_module("torch.autograd.forward_ad")
    with forward_ad.dual_level():
        doubles.apply(forward_ad.make_dual(leaf(3.0), torch.tensor([1.0])))


def _play_saved(note: Any, which: str, way: str) -> None:
    """Saves a tensor under a pair of hooks, and notes what one of them returns."""

    def pack(tensor: Any) -> Any:
        packed = Token()
        packed.tensor = tensor.detach()
        if which == "pack":
            note("what it returned", packed)
        return packed

    def unpack(packed: Any) -> Any:
        tensor = 1 * packed.tensor
        if which == "unpack":
            note("what it returned", tensor)
        return tensor

    x = leaf(3.0)
    if way == "a context":
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            y = x * x
    else:
        y = x.sin()
        y.grad_fn._raw_saved_self.register_hooks(pack, unpack)
    y.backward()


@program("LT-17", PROMISE, since="1.7", source="torch.autograd.Function; torch.Tensor.register_hook; pytorch#188034")
def what_is_returned_is_freed(check: Check) -> None:
    """What a method of a Function or a hook returns is freed once the graph is dropped."""
    methods = [("forward", False), ("backward", False)]
    if offered((2, 0)):
        methods += [("forward", True), ("backward", True), ("setup_context", True)]
    for method, sets_up in methods:
        way = "with setup_context" if sets_up else "with ctx"

        def play(note: Any, method: str = method, sets_up: bool = sets_up) -> None:
            _play_function(note, method, sets_up)

        check.equal(f"{method} of a Function {way}, what is left", survivors(play), [])
    for kind in kinds(MODULE, LEAF, OUTPUT, NODE):
        if "forward" in kind or "legacy" in kind or "post-" in kind:
            continue  # these return no gradients
        check.equal(f"{kind}, what is left", survivors(lambda note, kind=kind: _play_hook(note, kind)), [])
    for which in ("pack", "unpack") if offered((1, 11)) else ():
        for way in ("a context", "one saved tensor"):
            left = survivors(lambda note, which=which, way=way: _play_saved(note, which, way))
            check.equal(f"{which} hook of {way}, what is left", left, [])
    for sets_up in (False, True) if offered((2, 0)) else ():
        left = survivors(lambda note, sets_up=sets_up: _play_tangent(note, sets_up))
        check.equal(f"jvp of a Function with {'setup_context' if sets_up else 'ctx'}, what is left", left, [])


@program("IP-12", PROMISE, since="1.10", source="notes on autograd, 'Inference Mode'; pytorch#77967")
def inference_tensors_have_no_node(check: Check) -> None:
    """An inference tensor has no Node, whose hooks would wait in vain: what would give it one is refused."""
    with torch.inference_mode():
        tensor = torch.ones(2)

    def doubled(ctx: Any, x: Any) -> Any:
        with torch.inference_mode():
            return 2 * x

    def given(forward: Callable[..., Any]) -> Callable[[], Any]:
        return lambda: function(forward, lambda ctx, gradient: (gradient, None)).apply(leaf(1.0, 2.0), tensor)

    ways: dict[str, Callable[[], Any]] = {
        "a view of it": lambda: tensor.view(1, 2),
        "requires_grad_": tensor.requires_grad_,
        "a product in place": lambda: tensor.mul_(leaf(1.0, 2.0)),
        "a Function that makes it": given(lambda ctx, x, tensor: doubled(ctx, x)),
        "a Function that is given it and returns it": given(lambda ctx, x, tensor: tensor),
        "a Function that returns an alias": given(lambda ctx, x, tensor: tensor.detach()),
        "a Function that writes to it": given(lambda ctx, x, tensor: _marks(ctx, tensor)),
    }
    for name, act in ways.items():
        try:
            result = act()
            held = result.is_inference() and result.grad_fn is not None
        except RuntimeError:
            held = False  # refused
        check.equal(f"{name}: has a Node", held, False)


def doubling(device: str, states: list[Any], dtypes: list[str], casts: bool, sets_up: bool) -> Any:
    """A Function that doubles under custom_fwd and custom_bwd, and notes whether autocast is on, and to what."""

    def forward(*arguments: Any) -> Any:
        states.append(torch.is_autocast_enabled(device))
        dtypes.append(str(torch.get_autocast_dtype(device)))
        return 2 * arguments[-1]

    def backward(ctx: Any, gradient: Any) -> Any:
        states.append(torch.is_autocast_enabled(device))
        dtypes.append(str(torch.get_autocast_dtype(device)))
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
            dtypes, usual = list[str](), torch.get_autocast_dtype(device)
            lower = torch.float16 if usual == torch.bfloat16 else torch.bfloat16  # not that outside of the region
            with torch.autocast(device, dtype=lower):
                y = doubling(device, states, dtypes, casts, way == "with setup_context").apply(x)
            what = f"{way}, {'cast' if casts else 'as they come'}"
            check.works(f"{what}: backward", y.backward)
            if len(states) == 2:
                check.equal(f"{what}: autocast in forward and backward", states, [not casts, not casts])
                if not casts:
                    check.equal(f"{what}: its dtype in forward and backward", dtypes, [str(lower)] * 2)
                check.equal(f"{what}: hook", log, [[2.0]])
