"""Networks that have one thing more: a copy of a tensor on its way, or an input that requires grad where it did not.

And those that have one layer in the place of another.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from hookcheck.repro.reduce import Content, decoded, edited
from hookcheck.topology.codec import encode
from hookcheck.topology.layers.activation import Tanh
from hookcheck.topology.model import Topology
from hookcheck.topology.ops.moving import Clone

COPY = "copy"
"""The name of a copied tensor."""


def grown(topology: Topology) -> Iterator[Topology]:
    """Networks with one thing more, whether they run or not; a plain copy before one that is contiguous."""
    content = encode(topology)
    yield from decoded(edited(content, _requiring_grad))
    for op in (Clone(), Clone(contiguous=True)):
        yield from decoded(edited(content, partial(_copied, encode(op))))


def by_another_layer(topology: Topology) -> Iterator[Topology]:
    """The network with a layer of one operation in the place of its only one, whether it runs or not."""
    content = encode(topology)
    if content["module"]["type"] not in ("Composite", "Sequential"):
        inputs = [{**i, "requires_grad": True} for i in content["inputs"]]
        yield from decoded(iter([{**content, "module": encode(Tanh()), "inputs": inputs}]))


def _requiring_grad(part: Content) -> Iterator[Content]:
    if isinstance(part, dict) and part.get("type") == "Input" and not part.get("requires_grad"):
        yield {**part, "requires_grad": True}


def _copied(op: Content, part: Content) -> Iterator[Content]:
    """Statements of which one is given a copy; a body that gives one."""
    if isinstance(part, list):
        for i, statement in enumerate(part):
            args = statement.get("args", []) if isinstance(statement, dict) else []
            for j, arg in enumerate(args):
                if arg.get("type") == "Ref":
                    changed = {**statement, "args": [*args[:j], _ref(), *args[j + 1 :]]}
                    yield [*part[:i], _copying(arg, op), changed, *part[i + 1 :]]
    elif isinstance(part, dict) and part.get("type") == "Composite" and part["gives"].get("type") == "Ref":
        yield {**part, "body": [*part["body"], _copying(part["gives"], op)], "gives": _ref()}


def _copying(ref: Content, op: Content) -> Content:
    return {"type": "Apply", "out": COPY, "op": op, "args": [ref]}


def _ref() -> Content:
    return {"type": "Ref", "name": COPY}
