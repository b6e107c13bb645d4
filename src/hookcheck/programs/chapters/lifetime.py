"""What do hooks keep alive once they are removed, or what they were registered on is gone?

A hook lives as long as what it is registered on, or until it is removed by its handle, which holds neither. A graph
holds what its backward needs until it is dropped, and hooks that refer to it are freed with it.
"""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import product
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.garbage import Note, growth, survivors
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.chapters.saved_tensors_hooks import hooked
from hookcheck.programs.check import Check
from hookcheck.programs.handles import (
    EARLY,
    GLOBAL,
    KINDS,
    LEAF,
    MODULE,
    NODE,
    OUTPUT,
    SEVERAL,
    call_hooked,
    kinds,
    restored,
)
from hookcheck.programs.program import program

SOURCE = "torch.utils.hooks.RemovableHandle; torch.nn.Module.register_forward_hook; torch.Tensor.register_hook"


class Refused(Exception):
    """What a hook raises."""


def net_and_input() -> tuple[Any, Any]:
    """A module, and an input of it that requires grad."""
    return nn.Linear(1, 1), torch.tensor([[2.0]], requires_grad=True)


def hook_that_notes(note: Note, calls: Counter[str]) -> Callable[..., None]:
    """A hook that counts its calls, and notes every tensor that it gets; tensors alone can be weakly referred to."""

    def hook(*args: Any) -> None:
        calls["hook"] += 1
        for given in args:
            for part in given if isinstance(given, (tuple, list)) else [given]:
                if isinstance(part, torch.Tensor):
                    note("tensor that the hook got", part)

    return hook


Act = Callable[[Any, Any, Any], object]
"""What is done with a module, its input and its output."""


def nothing_survives(check: Check, act: Act, says: str) -> None:
    """States of each kind of hook that nothing is left of a module, its input, its output and the hook after ``act``
    when they are dropped."""
    for kind in kinds():

        def play(note: Note, kind: str = kind) -> None:
            net, x = net_and_input()
            calls = Counter[str]()
            hook = hook_that_notes(note, calls)
            y, handle = call_hooked(kind, net, x, hook)
            for name, thing in (("module", net), ("weight", net.weight), ("input", x), ("output", y)):
                note(name, thing)
            for name, of in (("hook", hook), ("its closure", calls)):
                note(name, of)
            act(net, x, y)
            if KINDS[kind][0] == GLOBAL:
                handle.remove()

        with restored():
            check.equal(f"{kind}, {says}", survivors(play), [])


@program("LT-01", PROMISE, since="1.7", source=SOURCE)
def nothing_is_kept_after_a_backward(check: Check) -> None:
    """When a module, its input and its output are dropped after a backward, they are freed with the hook and every
    tensor that it got."""
    nothing_survives(check, run_backward, "after a backward")


@program("LT-02", PROMISE, since="1.7", source=SOURCE)
def nothing_is_kept_without_a_backward(check: Check) -> None:
    """So they are if no backward was run, or one that retains the graph."""
    nothing_survives(check, lambda net, x, y: None, "without a backward")
    nothing_survives(check, lambda net, x, y: (y * y).backward(retain_graph=True), "retained")
    if hasattr(nn.Module, "register_load_state_dict_pre_hook"):
        module = nn.Identity()
        module.register_load_state_dict_pre_hook(lambda *arguments: None)
        known = weakref.ref(module)
        del module
        check.true("a module with a hook on loading is freed as soon as it is dropped", known() is None)


def run_backward(net: Any, x: Any, y: Any) -> None:
    """Runs backward of the output's square: that its cotangent is part of the graph is what makes cycles."""
    (y * y).backward()


def differentiate(net: Any, x: Any, y: Any) -> None:
    """Runs backward of a gradient."""
    torch.autograd.grad(y * y, x, create_graph=True)[0].backward()


def create_graph(net: Any, x: Any, y: Any) -> None:
    """Runs a backward whose gradients have a graph, and drops what it wrote: that refers to it, as is documented."""
    (y * y).backward(create_graph=True)
    x.grad = None
    net.zero_grad(set_to_none=True)


@program("LT-03", PROMISE, since="1.7", source=f"{SOURCE}; torch.autograd.grad")
def nothing_is_kept_of_a_graph_of_gradients(check: Check) -> None:
    """So they are if a gradient was differentiated, or made with ``create_graph`` and dropped."""
    nothing_survives(check, differentiate, "differentiated")
    nothing_survives(check, create_graph, "reset")


@program("LT-04", PROMISE, since="1.7", source=SOURCE)
def nothing_is_kept_after_an_exception(check: Check) -> None:
    """So they are if the hook raised."""
    for kind in kinds():

        def play(note: Note, kind: str = kind) -> None:
            net, x = net_and_input()
            calls = Counter[str]()
            noting = hook_that_notes(note, calls)

            def hook(*args: Any) -> None:
                noting(*args)
                raise Refused

            for name, thing in (("module", net), ("weight", net.weight), ("input", x)):
                note(name, thing)
            for name, of in (("hook", hook), ("its closure", calls)):
                note(name, of)
            with restored(), suppress(Refused):
                y, _ = call_hooked(kind, net, x, hook)
                note("output", y)
                run_backward(net, x, y)

        check.equal(f"{kind}, after it raised", survivors(play), [])


UNPACK = "unpack hook"


def call_refused(kind: str, net: Any, x: Any, hook: Callable[..., None]) -> Any:
    """What a module gives for the square of ``x``, with a hook of one kind or one that unpacks what is saved."""
    if kind == UNPACK:
        with hooked(lambda tensor: tensor, hook):
            return net(x * x)
    return call_hooked(kind, net, x, hook)[0]


@program("LT-11", PROMISE, since="1.7", source=f"{SOURCE}; torch's FAQ, 'My out of memory exception handler'")
def nothing_waits_after_an_exception(check: Check) -> None:
    """When a hook raises, what that backward had yet to run is freed at once, with all that it holds; by the next
    backward at the latest."""
    unpacks = hasattr(getattr(torch.autograd, "graph", None), "saved_tensors_hooks")
    for kind in [*kinds(), UNPACK] if unpacks else kinds():
        for again in (True, False):

            def play(note: Note, kind: str = kind, again: bool = again) -> None:
                net, x = net_and_input()
                other = torch.tensor([[3.0]], requires_grad=True)

                def watch(gradient: Any) -> None:
                    raise AssertionError("the rest of that backward was run")

                def hook(*args: Any) -> None:
                    raise RuntimeError("refused")

                other.register_hook(watch)
                note("leaf", other)
                note("its hook", watch)  # up to 1.9 weak references to a tensor that only torch holds are dead
                with suppress(RuntimeError):
                    waiting = other * 5  # made first, and therefore run last
                    y = call_refused(kind, net, x, hook)
                    (y * y + waiting).backward()
                if again:
                    torch.ones(1, requires_grad=True).exp().backward()

            with restored():
                when = "after the next backward" if again else "at once"
                check.equal(f"{kind} that raises, what waits {when}", survivors(play), [])


@program("LT-05", PROMISE, since="1.7", source=SOURCE)
def a_removed_hook_is_freed(check: Check) -> None:
    """A hook that is removed is freed with its closure, although what it was registered on lives on."""
    for kind in kinds():
        alive: list[Any] = []

        def play(note: Note, kind: str = kind, alive: list[Any] = alive) -> None:
            net, x = net_and_input()
            calls = Counter[str]()
            hook = hook_that_notes(note, calls)
            for name, of in (("hook", hook), ("its closure", calls)):
                note(name, of)
            y, handle = call_hooked(kind, net, x, hook)
            run_backward(net, x, y)
            check.true(f"{kind} was called", calls["hook"] > 0)
            handle.remove()
            alive.extend([net, x, handle] if KINDS[kind][0] in EARLY else [net, x, handle, y])

        with restored():
            left = survivors(play)
            check.equal(f"{kind}, and its closure", [name for name in left if name in ("hook", "its closure")], [])


@program("LT-06", PROMISE, since="1.7", source=SOURCE)
def a_hook_that_stays_keeps_no_tensors(check: Check) -> None:
    """A hook that stays on a module keeps nothing of what it was called with after that is dropped."""
    for kind in kinds(MODULE, GLOBAL):
        alive: list[Any] = []

        def play(note: Note, kind: str = kind, alive: list[Any] = alive) -> None:
            net, x = net_and_input()
            y, handle = call_hooked(kind, net, x, hook_that_notes(note, Counter()))
            note("input", x)
            note("output", y)
            run_backward(net, x, y)
            net.zero_grad(set_to_none=True)
            alive.extend([net, handle])

        with restored():
            check.equal(f"{kind}, tensors", survivors(play), [])
            alive[-1].remove()


@program("LT-12", PROMISE, since="1.7", source="pytorch#74831")
def gradients_do_not_outlive_a_backward(check: Check) -> None:
    """The gradients that a hook gets are freed when the backward ends, although the output is kept with the graph, and
    whether an input of the module requires grad or none does."""
    takes_gradients = [kind for kind in kinds(MODULE, GLOBAL, OUTPUT, NODE, SEVERAL) if "forward" not in kind]
    for kind, requires_grad in product(takes_gradients, (True, False)):
        if KINDS[kind][0] == SEVERAL and not requires_grad:
            continue  # one of the several is made of the input alone
        alive: list[Any] = []
        calls = Counter[str]()

        def play(
            note: Note,
            kind: str = kind,
            requires_grad: bool = requires_grad,
            alive: list[Any] = alive,
            calls: Counter[str] = calls,
        ) -> None:
            net, x = net_and_input()
            y, handle = call_hooked(kind, net, x.requires_grad_(requires_grad), hook_that_notes(note, calls))
            (y * y).backward(retain_graph=True)
            net.zero_grad(set_to_none=True)
            alive.extend([net, y, handle])

        says = f"{kind}, where {'an' if requires_grad else 'no'} input requires grad"
        with restored():
            check.equal(f"{says}: gradients that are left", survivors(play), [])
            check.calls(f"{says}: calls", calls["hook"], 1)
            alive[-1].remove()


@program("LT-07", PROMISE, since="1.7", source=SOURCE)
def a_handle_keeps_nothing(check: Check) -> None:
    """A handle keeps neither the hook nor what that was registered on, and can be removed when they are gone."""
    for kind in kinds(MODULE, LEAF, OUTPUT, NODE, SEVERAL):
        handles: list[Any] = []

        def play(note: Note, kind: str = kind, handles: list[Any] = handles) -> None:
            net, x = net_and_input()
            calls = Counter[str]()
            hook = hook_that_notes(note, calls)
            y, handle = call_hooked(kind, net, x, hook)
            for name, thing in (("module", net), ("weight", net.weight), ("input", x), ("output", y)):
                note(name, thing)
            for name, of in (("hook", hook), ("its closure", calls)):
                note(name, of)
            run_backward(net, x, y)
            handles.append(handle)

        check.equal(f"{kind}, what its handle keeps", survivors(play), [])
        check.works(f"{kind}, removed afterwards", handles[0].remove)


def step(kind: str, act: Act) -> None:
    """Registers a hook, calls a module, does something with what comes of it, and removes the hook."""
    net, x = net_and_input()
    y, handle = call_hooked(kind, net, x, lambda *args: None)
    act(net, x, y)
    handle.remove()


@program("LT-08", PROMISE, since="1.7", source=SOURCE)
def objects_do_not_grow_in_number(check: Check) -> None:
    """Iterations that register a hook, run forward and backward, with ``create_graph`` or without, and remove the hook
    leave no objects behind."""
    for kind in kinds():
        with restored():
            check.equal(f"{kind}, more objects", growth(lambda kind=kind: step(kind, run_backward)), {})
        with restored():
            says = f"{kind}, more objects with create_graph"
            check.equal(says, growth(lambda kind=kind: step(kind, create_graph)), {})


@program("LT-09", PROMISE, since="1.10", source="torch.autograd.graph.saved_tensors_hooks")
def hooks_for_saved_tensors_keep_nothing(check: Check) -> None:
    """Hooks for saved tensors are freed with what they packed when the graph is dropped, after a backward or without
    one."""

    def play(note: Note, backward: bool) -> None:
        calls = Counter[str]()

        def pack(tensor: Any) -> Any:
            calls["hooks"] += 1
            packed = tensor.detach()
            note("packed", packed)
            return packed

        def unpack(packed: Any) -> Any:
            calls["hooks"] += 1
            return packed

        x = torch.tensor([2.0], requires_grad=True)
        with hooked(pack, unpack):
            y = (x * x).exp()
        for name, thing in (("pack", pack), ("unpack", unpack), ("closure", calls), ("input", x), ("output", y)):
            note(name, thing)
        if backward:
            y.backward()
        check.true("hooks were called" if backward else "pack was called", calls["hooks"] > 2)

    check.equal("left after a backward", survivors(partial(play, backward=True)), [])
    check.equal("left without a backward", survivors(partial(play, backward=False)), [])


@program("LT-10", PIN, since="2.0", source="torch.autograd.graph.register_multi_grad_hook")
def multi_grad_hooks_keep_leaves_until_removed(check: Check) -> None:
    """A multi-grad hook on leaves refers to their nodes, which refer to the leaves: neither is freed when the user
    drops them, unless the hook is removed."""

    def play(note: Note, remove: bool) -> None:
        x = torch.tensor([2.0], requires_grad=True)

        def hook(gradients: Any) -> None:
            pass

        handle = torch.autograd.graph.register_multi_grad_hook((x,), hook)
        note("leaf", x)
        note("hook", hook)
        (x * 3).backward()
        if remove:
            handle.remove()

    check.equal("kept", survivors(partial(play, remove=False)), ["hook", "leaf"])
    check.equal("kept after it is removed", survivors(partial(play, remove=True)), [])


ON_A_GRAPH: dict[str, Callable[[Any, Any, Any], Any]] = {
    "hook on a result": lambda leaf, result, hook: result.register_hook(hook),
    "post-hook of a result's Node": lambda leaf, result, hook: result.grad_fn.register_hook(hook),
    "pre-hook of a result's Node": lambda leaf, result, hook: result.grad_fn.register_prehook(hook),
    "post-hook of a leaf's Node": lambda leaf, result, hook: result.grad_fn.next_functions[0][0].register_hook(hook),
}


@program("LT-13", PROMISE, since="1.7", source="torch.Tensor.register_hook; pytorch#102174")
def a_graph_holds_its_hooks(check: Check) -> None:
    """While a graph is held, the garbage collector takes none of its hooks, whatever they refer to."""

    def graph(register: Callable[[Any, Any, Any], Any], log: list[Any]) -> Any:
        leaf = torch.tensor([1.0], requires_grad=True)
        result = 2 * leaf
        nodes = (result.grad_fn, result.grad_fn.next_functions[0][0])
        register(leaf, result, lambda *gradients: log.append(nodes))
        return 3 * result

    for name, register in ON_A_GRAPH.items():
        if "pre-hook" in name and not hasattr(graph(lambda *parts: None, []).grad_fn, "register_prehook"):
            continue
        log: list[Any] = []
        output = graph(register, log)
        gc.collect()
        output.backward()
        check.calls(f"calls of a {name}", len(log), 1)
