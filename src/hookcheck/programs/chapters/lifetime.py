"""What do hooks keep alive once they are removed, or what they were registered on is gone?

A hook lives as long as what it is registered on, or until it is removed by its handle, which holds neither. A graph
holds what its backward needs until it is dropped, and hooks that refer to it are freed with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.garbage import Note, growth, survivors
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.chapters.saved_tensors_hooks import hooked
from hookcheck.programs.check import Check
from hookcheck.programs.program import program

SOURCE = "torch.utils.hooks.RemovableHandle; torch.nn.Module.register_forward_hook; torch.Tensor.register_hook"

MODULE, GLOBAL, LEAF, OUTPUT, NODE, SEVERAL = "module", "global", "leaf", "output", "node", "several"

KINDS = {
    "forward pre-hook": (MODULE, "register_forward_pre_hook"),
    "forward hook": (MODULE, "register_forward_hook"),
    "full backward hook": (MODULE, "register_full_backward_hook"),
    "full backward pre-hook": (MODULE, "register_full_backward_pre_hook"),
    "legacy backward hook": (MODULE, "register_backward_hook"),
    "global forward pre-hook": (GLOBAL, "register_module_forward_pre_hook"),
    "global forward hook": (GLOBAL, "register_module_forward_hook"),
    "global full backward hook": (GLOBAL, "register_module_full_backward_hook"),
    "global full backward pre-hook": (GLOBAL, "register_module_full_backward_pre_hook"),
    "global legacy backward hook": (GLOBAL, "register_module_backward_hook"),
    "tensor hook on a leaf": (LEAF, "register_hook"),
    "post-accumulate-grad hook": (LEAF, "register_post_accumulate_grad_hook"),
    "tensor hook on an output": (OUTPUT, "register_hook"),
    "node hook": (NODE, "register_hook"),
    "node pre-hook": (NODE, "register_prehook"),
    "multi-grad hook": (SEVERAL, "register_multi_grad_hook"),
}
"""The kinds of hooks that have a handle: on what and by which function they are registered."""


@cache
def squared() -> Any:
    """The class of a module that multiplies its input's square by a weight; one class, so that none is left behind."""

    class Squared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.tensor([3.0]))

        def forward(self, x: Any) -> Any:
            return self.weight * x * x

    return Squared


class Scene:
    """A module that multiplies its input's square by a weight, a leaf, and a hook of one kind on them.

    Everything is noted: the hook, what its closure holds, the module, and every tensor that passes. Nothing of it
    refers to the scene.
    """

    def __init__(self, kind: str, note: Note, raising: bool = False) -> None:
        """Makes it, with the hook not registered; one that is ``raising`` raises `Refused`."""
        self.owner, self.name = KINDS[kind]
        self.x = torch.tensor([2.0], requires_grad=True)
        self.net, self.y, self.handle = squared()(), None, None
        self.calls = calls = Calls()

        def hook(*args: Any) -> None:
            calls.count += 1
            for thing in tensors(args):
                note("tensor that the hook got", thing)
            if raising:
                raise Refused

        self.hook: Any = hook
        for name, thing in (("module", self.net), ("input", self.x), ("hook", hook), ("its closure", calls)):
            note(name, thing)
        note("weight", self.net.weight)
        self.note = note

    @property
    def on(self) -> Any:
        """What the hook is registered on."""
        if self.owner == SEVERAL:
            return torch.autograd.graph
        node = getattr(self.y, "grad_fn", None)
        return {MODULE: self.net, GLOBAL: torch.nn.modules.module, LEAF: self.x, OUTPUT: self.y, NODE: node}[self.owner]

    def register(self) -> None:
        """Registers the hook."""
        add = getattr(self.on, self.name)
        self.handle = add((self.y, self.x * 5), self.hook) if self.owner == SEVERAL else add(self.hook)

    def forward(self) -> Scene:
        """Calls the module, with the hook registered before or after it as it must be."""
        early = self.owner in (MODULE, GLOBAL, LEAF)
        if early:
            self.register()
        self.y = self.net(self.x)
        self.note("output", self.y)
        if not early:
            self.register()
        return self

    def backward(self, **kwargs: Any) -> Scene:
        """Runs backward of the output's square: that its cotangent is part of the graph is what makes cycles."""
        (self.y * self.y).backward(**kwargs)
        return self

    def reset(self) -> Scene:
        """Drops the gradients that backward wrote: with ``create_graph`` they refer to the graph, as is documented."""
        self.x.grad = self.net.weight.grad = None
        return self

    def second(self) -> None:
        """Runs backward of a gradient."""
        (gradient,) = torch.autograd.grad(self.y * self.y, self.x, create_graph=True)
        self.note("gradient", gradient)
        gradient.backward()


class Calls:
    """How often a hook was called."""

    count = 0


class Refused(Exception):
    """What a hook raises."""


def tensors(thing: Any) -> Iterator[Any]:
    """The tensors in tuples and lists of any depth; tensors alone can be weakly referred to."""
    if isinstance(thing, torch.Tensor):
        yield thing
    elif isinstance(thing, (tuple, list)):
        for item in thing:
            yield from tensors(item)


def kinds(*owners: str) -> list[str]:
    """The kinds that this torch has, on some things or on all."""
    has: dict[str, Any] = {
        MODULE: nn.Module,
        GLOBAL: torch.nn.modules.module,
        LEAF: torch.Tensor,
        OUTPUT: torch.Tensor,
        NODE: (torch.ones(1, requires_grad=True) * 2).grad_fn,
        SEVERAL: getattr(torch.autograd, "graph", None),
    }
    return [
        kind for kind, (owner, name) in KINDS.items() if (not owners or owner in owners) and hasattr(has[owner], name)
    ]


@contextmanager
def restored() -> Iterator[None]:
    """Puts global tables and flags back: hooks of one global family exclude those of the other."""
    from hookcheck.probe.state import preserved  # imports torch

    with preserved():
        yield


def nothing_survives(check: Check, act: Callable[[Scene], object], says: str, raising: bool = False) -> None:
    """States of each kind of hook that nothing of a scene is left after ``act`` when the scene is gone."""
    for kind in kinds():

        def play(note: Note, kind: str = kind) -> None:
            scene = Scene(kind, note, raising)
            act(scene)
            if scene.owner == GLOBAL and scene.handle is not None:
                scene.handle.remove()

        with restored():
            check.equal(f"{kind}, {says}", survivors(play), [])


@program("LT-01", PROMISE, since="1.7", source=SOURCE)
def nothing_is_kept_after_a_backward(check: Check) -> None:
    """When a module, its input and its output are dropped after a backward, they are freed with the hook and every
    tensor that it got."""
    nothing_survives(check, lambda scene: scene.forward().backward(), "after a backward")


@program("LT-02", PROMISE, since="1.7", source=SOURCE)
def nothing_is_kept_without_a_backward(check: Check) -> None:
    """So they are if no backward was run, or one that retains the graph."""
    nothing_survives(check, lambda scene: scene.forward(), "without a backward")
    nothing_survives(check, lambda scene: scene.forward().backward(retain_graph=True), "retained")


@program("LT-03", PROMISE, since="1.7", source=f"{SOURCE}; torch.autograd.grad")
def nothing_is_kept_of_a_graph_of_gradients(check: Check) -> None:
    """So they are if a gradient was differentiated, or made with ``create_graph`` and dropped."""

    nothing_survives(check, lambda scene: scene.forward().second(), "differentiated")
    nothing_survives(check, lambda scene: scene.forward().backward(create_graph=True).reset(), "reset")


@program("LT-04", PROMISE, since="1.7", source=SOURCE)
def nothing_is_kept_after_an_exception(check: Check) -> None:
    """So they are if the hook raised."""

    def refused(scene: Scene) -> None:
        with suppress(Refused):
            scene.forward().backward()

    nothing_survives(check, refused, "after it raised", raising=True)


@program("LT-05", PROMISE, since="1.7", source=SOURCE)
def a_removed_hook_is_freed(check: Check) -> None:
    """A hook that is removed is freed with its closure, although what it was registered on lives on."""
    for kind in kinds():
        alive: list[Any] = []

        def play(note: Note, kind: str = kind, alive: list[Any] = alive) -> None:
            scene = Scene(kind, note)
            scene.forward().backward()
            check.true(f"{kind} was called", scene.calls.count > 0)
            scene.handle.remove()
            alive.extend([scene.net, scene.x, scene.handle] + [scene.y] * (scene.owner in (OUTPUT, NODE, SEVERAL)))

        with restored():
            left = survivors(play)
            check.equal(f"{kind}, and its closure", [name for name in left if name in ("hook", "its closure")], [])


@program("LT-06", PROMISE, since="1.7", source=SOURCE)
def a_hook_that_stays_keeps_no_tensors(check: Check) -> None:
    """A hook that stays on a module keeps nothing of what it was called with after that is dropped."""
    for kind in kinds(MODULE, GLOBAL):
        alive: list[Any] = []

        def play(note: Note, kind: str = kind, alive: list[Any] = alive) -> None:
            scene = Scene(kind, note)
            alive.extend([scene.net, scene.hook])
            scene.forward().backward()
            scene.net.zero_grad()
            scene.net.weight.grad = None
            alive.append(scene.handle)

        with restored():
            expected = {"hook", "its closure", "module", "weight"}
            check.equal(f"{kind}, tensors", [name for name in survivors(play) if name not in expected], [])
            alive[-1].remove()


@program("LT-07", PROMISE, since="1.7", source=SOURCE)
def a_handle_keeps_nothing(check: Check) -> None:
    """A handle keeps neither the hook nor what that was registered on, and can be removed when they are gone."""
    for kind in kinds(MODULE, LEAF, OUTPUT, NODE, SEVERAL):
        handles: list[Any] = []

        def play(note: Note, kind: str = kind, handles: list[Any] = handles) -> None:
            scene = Scene(kind, note)
            scene.forward().backward()
            handles.append(scene.handle)

        check.equal(f"{kind}, what its handle keeps", survivors(play), [])
        check.works(f"{kind}, removed afterwards", handles[0].remove)


@program("LT-08", PROMISE, since="1.7", source=SOURCE)
def objects_do_not_grow_in_number(check: Check) -> None:
    """Iterations that register a hook, run forward and backward, with ``create_graph`` or without, and remove the hook
    leave no objects behind."""

    def ignore(name: str, thing: Any) -> None:
        pass

    def iteration(kind: str, create_graph: bool) -> None:
        scene = Scene(kind, ignore)
        scene.forward().backward(create_graph=create_graph).reset().handle.remove()

    for kind in kinds():
        for name, create_graph in (("more objects", False), ("more objects with create_graph", True)):
            with restored():
                check.equal(f"{kind}, {name}", growth(partial(iteration, kind, create_graph)), {})


@program("LT-09", PROMISE, since="1.10", source="torch.autograd.graph.saved_tensors_hooks")
def hooks_for_saved_tensors_keep_nothing(check: Check) -> None:
    """Hooks for saved tensors are freed with what they packed when the graph is dropped, after a backward or without
    one."""

    def play(note: Note, backward: bool) -> None:
        calls = Calls()

        def pack(tensor: Any) -> Any:
            calls.count += 1
            packed = tensor.detach()
            note("packed", packed)
            return packed

        def unpack(packed: Any) -> Any:
            calls.count += 1
            return packed

        x = torch.tensor([2.0], requires_grad=True)
        with hooked(pack, unpack):
            y = (x * x).exp()
        for name, thing in (("pack", pack), ("unpack", unpack), ("closure", calls), ("input", x), ("output", y)):
            note(name, thing)
        if backward:
            y.backward()
        check.true("hooks were called" if backward else "pack was called", calls.count > 2)

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
