"""In which state of the program do hooks run: with which default device, dtype and modes, and under autocast or not?

What is set for a stretch of the program holds in the hooks that torch calls there: those of a forward where that is
called, those of a backward where that is started. In the second pass of a checkpoint, which runs in backward, hooks see
what they saw in the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from inspect import signature
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check, NotOffered
from hookcheck.programs.checkpoints import CHECKPOINT, COMPOSABLE, NON_REENTRANT, REENTRANT, as_module, tool, variants
from hookcheck.programs.host_changes import offered
from hookcheck.programs.nets import leaf, net
from hookcheck.programs.program import program

NOTE: ContextVar[str] = ContextVar("NOTE", default="not set")
"""A state that Python keeps, and torch knows nothing of."""


@dataclass(frozen=True)
class State:
    """Something that is set for a stretch of the program: ``within`` sets it, and gives what ``read`` then must."""

    within: Callable[[], AbstractContextManager[Any]]
    read: Callable[[], Any]


def states() -> dict[str, State]:
    """The states that this torch has, by name."""
    by_name = {"context variable": State(noted, NOTE.get), "default dtype": State(halved, torch.get_default_dtype)}
    if hasattr(torch, "autocast") and hasattr(torch, "is_autocast_cpu_enabled"):
        one = torch.ones(1, 1)  # on the device that programs run on, which hooks may not know
        autocast = partial(torch.autocast, one.device.type, dtype=torch.bfloat16)
        by_name["autocast"] = State(autocast, lambda: torch.mm(one, one).dtype)
    if hasattr(torch, "set_default_device"):
        by_name["default device"] = State(partial(torch.device, "meta"), lambda: torch.empty(0).device.type)
        for name, module, method in MODES:
            mode = spying(getattr(import_module(module), name), method)
            by_name[name] = State(mode, lambda mode=mode: mode.sees())
    return by_name


MODES = (
    ("TorchFunctionMode", "torch.overrides", "__torch_function__"),
    ("TorchDispatchMode", "torch.utils._python_dispatch", "__torch_dispatch__"),
)
"""The modes of torch, where they are, and what they are asked by."""


def spying(base: Any, method: str) -> Any:
    """A mode that knows whether it was asked."""

    def ask(self: Any, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        mode.asked = True
        return function(*args, **(kwargs or {}))

    def sees() -> bool:
        mode.asked = False
        torch.empty(0)
        return bool(mode.asked)

    mode: Any = type("Spying", (base,), {method: ask, "sees": staticmethod(sees), "asked": False})
    return mode


@contextmanager
def noted() -> Iterator[None]:
    """Sets the context variable."""
    token = NOTE.set("set")
    try:
        yield
    finally:
        NOTE.reset(token)


@contextmanager
def halved() -> Iterator[None]:
    """Makes float64 the default, which float32 was."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


Reading = Callable[[], Any]
Log = dict[str, Any]


def on_calls(read: Reading, log: Log, net: Any, x: Any) -> Any:
    """Registers hooks on a call, and hooks on its backward; gives the output of the call."""

    def note(kind: str, *_: Any) -> None:
        log[kind] = read()

    net.register_forward_pre_hook(partial(note, "forward_pre"))
    net.register_forward_hook(partial(note, "forward"))
    for kind in ("full_backward_pre", "full_backward"):
        if hasattr(net, f"register_{kind}_hook"):
            getattr(net, f"register_{kind}_hook")(partial(note, kind))
    x.register_hook(partial(note, "leaf"))
    if hasattr(x, "register_post_accumulate_grad_hook"):
        x.register_post_accumulate_grad_hook(partial(note, "post_accumulate_grad"))
    y = net(x)
    y.register_hook(partial(note, "tensor"))
    y.grad_fn.register_hook(partial(note, "Node"))
    return y


WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "backward": lambda y, x: y.backward(),
    "grad": lambda y, x: torch.autograd.grad(y, x),
}
"""How a backward is started."""

FORWARD = ("forward_pre", "forward")
"""The kinds of `on_calls` that a forward calls; a backward calls the others."""


def split(log: Log) -> tuple[Log, Log]:
    """What the hooks on forward noted, and those on backward."""
    return {k: v for k, v in log.items() if k in FORWARD}, {k: v for k, v in log.items() if k not in FORWARD}


@program("AB-01", PIN, since="1.8", source="torch.set_default_device; pytorch#84864, pytorch#172798")
def hooks_run_in_the_state_of_what_calls_them(check: Check) -> None:
    """Hooks of a forward run in the state in which the module is called, those of a backward in that in which the
    backward is started, whatever was set in forward."""
    for name, state in states().items():
        outside = state.read()
        with state.within():
            inside = state.read()
        check.true(f"{name}: it makes a difference", inside != outside)
        for way, start in WAYS.items():
            for place, due in {"inside": inside, "outside": outside}.items():
                log: Log = {}
                x = leaf(2.0)
                with state.within():
                    y = on_calls(state.read, log, nn.Identity(), x).sum()
                    if place == "inside":
                        start(y, x)
                if place == "outside":
                    start(y, x)
                forward, backward = split(log)
                check.equal(f"{name}, {way} {place}: hooks of forward", forward, dict.fromkeys(forward, inside))
                check.equal(f"{name}, {way} {place}: hooks of backward", backward, dict.fromkeys(backward, due))
                check.calls(f"{name}, {way} {place}: kinds of hooks on forward", len(forward), len(FORWARD))


@program("AB-02", PIN, since="1.8", source="torch.Tensor.backward; pytorch#96579")
def hooks_compute_with_subclasses(check: Check) -> None:
    """What a hook of a backward computes with a subclass of Tensor is of that class, be the root of the backward
    itself of one or not."""

    class Own(torch.Tensor):
        """A subclass as one has it that adds methods."""

    for name, root in {"plain": lambda y: y, "subclass": lambda y: y.as_subclass(Own)}.items():
        log: Log = {}
        instance = torch.ones(1).as_subclass(Own)
        y = root(on_calls(lambda instance=instance: type(instance + 1).__name__, log, nn.Identity(), leaf(2.0)))
        y.sum().backward()
        check.equal(f"a root that is {name}", log, dict.fromkeys(log, "Own"))
        check.true(f"a root that is {name}: there were hooks", "tensor" in log and "full_backward" in log)


@program("AB-03", PROMISE, since="1.8", source=f"{CHECKPOINT}, preserve_rng_state; pytorch#49757, pytorch#124788")
def the_second_pass_has_the_state_of_the_first(check: Check) -> None:
    """Hooks in the second pass of a checkpoint see the default device, autocast and random numbers of the first one,
    wherever the backward is started; and random numbers go on after it as they would without it."""
    restored = {name: state for name, state in states().items() if name in ("default device", "autocast")}
    one = torch.ones(1)
    for variant, checkpoint in variants().items():
        for name, state in {**restored, "random numbers": State(noted, lambda: torch.rand_like(one).item())}.items():
            log: list[Any] = []
            net, x = nn.Identity(), leaf(2.0)
            net.register_forward_pre_hook(lambda module, args, log=log, state=state: log.append(state.read()))
            with state.within():
                y = checkpoint(lambda x, net=net: net(x) * x, x)
            before = torch.get_rng_state()
            y.backward()
            check.equal(f"{name}, {variant}: the second pass", log[1:], log[:1])
            check.equal(f"{name}, {variant}: afterwards", torch.get_rng_state(), before)


@program("AB-04", PROMISE, since="2.1", source=f"{CHECKPOINT}, context_fn, 'under the first and second'; kwargs")
def each_pass_has_a_context(check: Check) -> None:
    """Hooks in the first pass of a non-reentrant checkpoint run under the first context of ``context_fn``, those in
    the second under the second; and both passes have the keyword arguments."""
    if "context_fn" not in signature(tool("checkpoint")).parameters:
        raise NotOffered("checkpoint has no context_fn")

    @contextmanager
    def named(name: str) -> Iterator[None]:
        token = NOTE.set(name)
        try:
            yield
        finally:
            NOTE.reset(token)

    class Product(nn.Module):
        def forward(self, x: Any, factor: float = 1.0) -> Any:
            return factor * x * x

    log: list[Any] = []
    net, x = Product(), leaf(2.0)
    net.register_forward_pre_hook(lambda module, args, kwargs: log.append((NOTE.get(), kwargs)), with_kwargs=True)
    contexts = lambda: (named("first"), named("second"))  # noqa: E731 -- what context_fn is called for
    y = variants()[NON_REENTRANT](net, x, context_fn=contexts, factor=3.0)
    y.backward()
    check.equal("context and keyword arguments of each pass", log, [(n, {"factor": 3.0}) for n in ("first", "second")])
    check.equal("gradient: 3 * 2 * 2", x.grad, [12])
    check.equal("the context afterwards", NOTE.get(), "not set")


@program("AB-05", PROMISE, since="1.8", source=f"{CHECKPOINT}, preserve_rng_state")
def random_numbers_between_the_passes(check: Check) -> None:
    """Where random numbers are drawn between the passes of a checkpoint, hooks of the second pass draw those of the
    first, and the numbers after it go on where they were; with ``preserve_rng_state=False`` those hooks draw the next
    ones."""
    forms = {name: (checkpoint, True) for name, checkpoint in variants().items()}
    for name in ({REENTRANT, NON_REENTRANT} & {*forms}) if offered((1, 11)) else ():
        forms[f"{name}, not preserved"] = partial(forms[name][0], preserve_rng_state=False), False
    if COMPOSABLE in forms and offered((2, 6)):
        composed = partial(import_module("torch.distributed._composable").checkpoint, preserve_rng_state=False)
        forms[f"{COMPOSABLE}, not preserved"] = lambda region, x: composed(as_module(region))(x), False
    for name, (checkpoint, preserved) in forms.items():
        log: list[Any] = []
        net, x = nn.Identity(), leaf(2.0)
        net.register_forward_pre_hook(lambda module, args, log=log: log.append(torch.rand(1, device="cpu").item()))
        y = checkpoint(lambda x, net=net: net(x) * x, x)
        torch.rand(1, device="cpu")
        before = torch.get_rng_state()
        generator = torch.Generator()
        generator.set_state(before)
        upcoming = torch.rand(1, generator=generator, device="cpu").item()
        y.backward()
        after = before if preserved else generator.get_state()
        check.equal(f"{name}: the second pass", log[1:], [log[0] if preserved else upcoming])
        check.equal(f"{name}: afterwards", torch.get_rng_state(), after)


@program("AB-06", PROMISE, since="1.8", source="torch.autograd.backward, create_graph; pytorch#90520")
def hooks_run_in_the_grad_mode_of_backward(check: Check) -> None:
    """A hook of each kind runs with grad mode off, and on where the backward builds a graph, whatever the mode around
    is; it may switch the mode, which is back for the next hook and after the backward."""
    for around in (True, False):
        for builds in (False, True):
            seen: dict[str, Any] = {}

            def noting(kind: str, seen: dict[str, Any] = seen) -> Callable[..., None]:
                def hook(*arguments: Any) -> None:
                    before = torch.is_grad_enabled()
                    with torch.enable_grad():
                        switched = (2 * torch.ones(1, requires_grad=True)).requires_grad
                    seen[kind] = [before, switched]

                return hook

            kinds = ["full backward hook", "tensor hook", "Node hook", "hook of a leaf"]
            x = torch.tensor([3.0], requires_grad=True)
            h = 1 * x
            module = net(lambda module, h: 2 * h)
            module.register_full_backward_hook(noting("full backward hook"))
            h.register_hook(noting("tensor hook"))
            h.grad_fn.register_hook(noting("Node hook"))
            x.register_hook(noting("hook of a leaf"))
            for owner, name, kind in (
                (module, "register_full_backward_pre_hook", "full backward pre-hook"),
                (h.grad_fn, "register_prehook", "Node pre-hook"),
                (x, "register_post_accumulate_grad_hook", "post-accumulate-grad hook"),
            ):
                if hasattr(owner, name):
                    getattr(owner, name)(noting(kind))
                    kinds.append(kind)
            y = module(h)
            with torch.set_grad_enabled(around):
                y.backward(create_graph=builds)
                after = torch.is_grad_enabled()
            x.grad = None  # which has the graph, and is in it
            what = f"{'graph' if builds else 'no graph'}, called {'with' if around else 'without'} grad mode"
            for kind in kinds:
                check.equal(f"{what}: {kind}", seen.get(kind), [builds, True])
            check.equal(f"{what}: after it", after, around)

    @torch.enable_grad()
    def raising(*arguments: Any) -> None:
        raise ValueError("a hook's own")

    module = nn.Identity()
    module.register_forward_hook(raising)
    with torch.no_grad():
        check.raises("an error of a hook that enable_grad decorates", ValueError, partial(module, x), "a hook's own")
        check.equal("grad mode after that error", torch.is_grad_enabled(), False)
    if offered((2, 3)):  # before, to decorate a hook set the mode for whatever came then
        modes: list[bool] = []
        decorated = torch.set_grad_enabled(False)(lambda *arguments: modes.append(torch.is_grad_enabled()))
        modes.append(torch.is_grad_enabled())
        with torch.enable_grad():
            module = nn.Identity()
            module.register_forward_hook(decorated)
            module(torch.ones(1))
            modes.append(torch.is_grad_enabled())
        torch.set_grad_enabled(True)
        check.equal("outside of, in and after a hook that set_grad_enabled decorates", modes, [True, False, True])
