"""A network as a drawn graph: what flows where, from the inputs through every call and operation to backward.

A module of several steps is two boxes, where its call begins and where it ends: the gradients there are what a hook on
it gets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hookcheck.topology.model import (
    Apply,
    Backward,
    Call,
    Composite,
    Grad,
    Leak,
    Module,
    Recurse,
    Sequential,
    Statement,
    Topology,
    Within,
    walk,
)
from hookcheck.topology.primitive import Layer
from hookcheck.topology.tree import Literal, Pack, Ref, Tree

INPUT, STEP, CALL, BACKWARD = "input", "step", "call", "backward"
IN, OUT = "grad_input", "grad_output"
"""The two sides of a call: gradients of what goes in, and of what comes out."""

MOST = 60
"""The most boxes that a drawing holds; a larger network is read as code."""


@dataclass(frozen=True)
class Box:
    """A box of the drawing. ``sort`` is one of the words above; ``calls`` are the calls, as ``net.fc#0``, that have
    their inputs (`IN`) or outputs (`OUT`) at it."""

    label: str
    sort: str
    calls: frozenset[tuple[str, str]] = frozenset()


@dataclass
class Diagram:
    """Boxes, and arrows between them by their places."""

    boxes: list[Box] = field(default_factory=list)
    arrows: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True)
class _At:
    """A value that the box at ``place`` gives."""

    place: int


class TooLarge(Exception):
    """The network has more than `MOST` boxes."""


def diagram(topology: Topology) -> Diagram | None:
    """The drawing of ``topology``; None where it would have more than `MOST` boxes."""
    try:
        return _Drawing(topology).drawn
    except TooLarge:
        return None


class _Drawing:
    """The main program, followed step by step; a value is the place of the box that gives it, or a container."""

    def __init__(self, topology: Topology) -> None:
        self.drawn = Diagram()
        self.modules = dict(walk(topology.module))
        self.ties = dict(topology.ties)
        self.counts: dict[str, int] = {}
        self.leaked: dict[Any, Any] = {}
        names: dict[str, Any] = {"leaked": self.leaked}
        for given in topology.inputs:
            grad = ", requires grad" if given.requires_grad else ""
            shape = " × ".join(map(str, given.shape)) or "scalar"
            names[given.name] = self.box(f"{given.name}: {shape}{grad}", INPUT, [])
        self.follow(topology.main, "", names)

    def box(self, label: str, sort: str, sources: list[Any], calls: frozenset[tuple[str, str]] = frozenset()) -> _At:
        if len(self.drawn.boxes) == MOST:
            raise TooLarge
        place = len(self.drawn.boxes)
        self.drawn.boxes.append(Box(label, sort, calls))
        self.drawn.arrows += [(source, place) for source in dict.fromkeys(_boxes(sources))]
        return _At(place)

    def follow(self, body: tuple[Statement, ...], path: str, names: dict[str, Any]) -> None:
        for statement in body:
            if isinstance(statement, Call):
                given = [*statement.args, *(tree for _, tree in statement.kwargs)]
                values = [self.value(tree, names) for tree in given]
                keywords = {key: self.value(tree, names) for key, tree in statement.kwargs}
                names[statement.out] = self.call(_joined(path, statement.target), values, keywords)
            elif isinstance(statement, Apply):
                name = type(statement.op).__name__
                values = [self.value(tree, names) for tree in statement.args]
                names[statement.out] = self.box(name, STEP, values)
            elif isinstance(statement, Recurse):
                value, depth = self.value(statement.value, names), names[statement.depth]
                names[statement.out] = self.call(path, [value, depth - 1], {}) if depth else value
            elif isinstance(statement, Leak):
                self.leaked[statement.name] = self.value(statement.value, names)
            elif isinstance(statement, Within):
                self.follow(statement.body, path, names)
            elif isinstance(statement, (Backward, Grad)):
                roots = [self.value(tree, names) for tree in (*statement.outputs, *statement.cotangents)]
                label = "autograd.grad" if isinstance(statement, Grad) else "backward"
                end = self.box(label, BACKWARD, roots)
                if statement.out:
                    names[statement.out] = tuple(end for _ in statement.inputs)

    def call(self, target: str, args: list[Any], keywords: dict[str, Any]) -> Any:
        path = self.canonical(target)
        module = self.modules[path]
        number = self.counts[path] = self.counts.get(path, -1) + 1
        name = ".".join(["net", path] if path else ["net"])
        subject = f"{name}#{number}"
        again = f", call {number + 1}" if number else ""
        if not isinstance(module, (Composite, Sequential)):
            label = f"{name}: {_kind(module)}{again}"
            return self.box(label, CALL, args, frozenset({(subject, IN), (subject, OUT)}))
        entry = self.box(f"{name} begins{again}", CALL, args, frozenset({(subject, IN)}))
        inside = [_inside(value, entry) for value in args]
        if isinstance(module, Sequential):
            result: Any = inside[0] if inside else None
            for child in range(len(module.children)):
                result = self.call(_joined(path, str(child)), [result], {})
        else:
            within = {key: _inside(value, entry) for key, value in keywords.items()}
            names: dict[str, Any] = {**dict(zip(module.takes, inside)), **within, "leaked": self.leaked}
            self.follow(module.body, path, names)
            result = self.value(module.gives, names)
        end = self.box(f"{name} ends{again}", CALL, [result], frozenset({(subject, OUT)}))
        return _inside(result, end)

    def value(self, tree: Tree, names: dict[str, Any]) -> Any:
        if isinstance(tree, Literal):
            return tree.value
        if isinstance(tree, Pack):
            items = [self.value(item, names) for item in tree.items]
            return dict(zip(tree.keys, items)) if tree.keys else tuple(items)
        box = names.get(tree.name)  # a parameter has no box
        for part in tree.path if isinstance(tree, Ref) else ():
            key = part[1:] if isinstance(part, str) and part.startswith(".") else part
            if isinstance(box, dict):
                box = box.get(key)
            elif isinstance(box, tuple) and isinstance(key, int) and key < len(box):
                box = box[key]
        return box

    def canonical(self, target: str) -> str:
        """The path by which a module is registered first, of one that has several."""
        for tied, first in self.ties.items():
            if target == tied or target.startswith(f"{tied}."):
                return first + target[len(tied) :]
        return target


def _boxes(value: Any) -> Iterator[int]:
    if isinstance(value, _At):
        yield value.place
    elif isinstance(value, (dict, tuple, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _boxes(item)


def _inside(value: Any, at: _At) -> Any:
    """``value`` as it is behind the boundary ``at``: in the same containers."""
    if isinstance(value, dict):
        return {key: _inside(item, at) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(_inside(item, at) for item in value)
    return at if isinstance(value, _At) else value


def _joined(path: str, target: str) -> str:
    return f"{path}.{target}" if path and target else path or target


def _kind(module: Module) -> str:
    return type(module).__name__ if isinstance(module, Layer) else "module"
