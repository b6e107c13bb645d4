"""Where the boxes of a drawing stand: in layers, by Sugiyama's method (the library grandalf)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from grandalf.graphs import Edge, Graph, Vertex
from grandalf.layouts import SugiyamaLayout

from hookcheck.report.diagram import IN, Box, Diagram

CHARACTER, HEIGHT, GAP = 7.2, 28, 24
"""In pixels: the width of a character, the height of a box, and the room between two layers."""

MARGIN = 6

MARK = 2
"""How many characters stand before the label of a box that is marked as wrong."""


@dataclass(frozen=True)
class PlacedBox:
    """A box with its upper left corner and its width; ``wrong`` marks the call that the deviation is about."""

    box: Box
    x: float
    y: float
    width: float
    wrong: bool


@dataclass(frozen=True)
class PlacedArrow:
    """An arrow as a path of SVG; ``wrong`` marks the gradient that is wrong, which runs against it."""

    path: str
    wrong: bool


@dataclass(frozen=True)
class Placed:
    """A drawing of ``width`` × ``height`` pixels."""

    boxes: tuple[PlacedBox, ...]
    arrows: tuple[PlacedArrow, ...]
    width: float
    height: float


class _View:
    """What grandalf asks of a vertex: its size, and where to note its centre."""

    def __init__(self, width: float) -> None:
        self.w, self.h = width, HEIGHT
        self.xy = (0.0, 0.0)


class _Numbered:
    """grandalf keeps what it draws in sets: they have one order in every process only where hashes are no addresses."""

    data: int

    def __hash__(self) -> int:
        return self.data


class _Vertex(_Numbered, Vertex):  # type: ignore[misc]
    pass


class _Edge(_Numbered, Edge):  # type: ignore[misc]
    pass


def place(drawn: Diagram, subject: str, side: str) -> Placed:
    """``drawn`` with every box in its place.

    ``subject`` is the call that deviates, or another text; ``side`` is `IN` or `OUT` where its gradients of that side
    do, or empty.
    """
    vertices: list[Any] = [_Vertex(number) for number in range(len(drawn.boxes))]
    wrong = [any(call == subject for call, _ in box.calls) for box in drawn.boxes]
    for vertex, box, is_wrong in zip(vertices, drawn.boxes, wrong):
        vertex.view = _View(2 * MARGIN + CHARACTER * (len(box.label) + MARK * is_wrong))
    graph = Graph(vertices, [_Edge(vertices[a], vertices[b], data=n) for n, (a, b) in enumerate(drawn.arrows)])
    bends: dict[tuple[int, int], list[tuple[float, float]]] = {}
    left = 0.0
    for component in graph.C:
        layout = SugiyamaLayout(component)
        layout.xspace, layout.yspace = 18, GAP
        layout.init_all()
        layout.draw()
        views = [vertex.view for vertex in component.sV]
        shift = left + MARGIN - min(view.xy[0] - view.w / 2 for view in views)
        for view in views:
            view.xy = view.xy[0] + shift, view.xy[1]
        for edge in component.sE:
            ends = edge.v[0].data, edge.v[1].data
            ranks = sorted(layout.grx[v].rank for v in edge.v)
            between = layout.ctrls.get(edge, {})
            dummies = [between[rank] for rank in range(ranks[0] + 1, ranks[1]) if rank in between]
            bends[ends] = [(d.view.xy[0] + shift, d.view.xy[1]) for d in dummies]
        left = max(view.xy[0] + view.w / 2 for view in views)
    top = min((vertex.view.xy[1] for vertex in vertices), default=0.0) - HEIGHT / 2 - MARGIN
    marked = [(subject, side) in box.calls for box in drawn.boxes]
    boxes = tuple(
        PlacedBox(
            box=box,
            x=round(vertex.view.xy[0] - vertex.view.w / 2, 1),
            y=round(vertex.view.xy[1] - HEIGHT / 2 - top, 1),
            width=round(vertex.view.w, 1),
            wrong=is_wrong,
        )
        for vertex, box, is_wrong in zip(vertices, drawn.boxes, wrong)
    )
    arrows = []
    for a, b in drawn.arrows:
        start, end = vertices[a].view.xy, vertices[b].view.xy
        via = sorted(bends.get((a, b), []), key=lambda point: point[1])
        points = [(start[0], start[1] + HEIGHT / 2), *via, (end[0], end[1] - HEIGHT / 2 - 2)]
        path = "M" + "L".join(f"{x:.1f} {y - top:.1f}" for x, y in points)
        arrows.append(PlacedArrow(path, marked[b] if side == IN else marked[a]))
    bottom = max((box.y for box in boxes), default=0.0) + HEIGHT + MARGIN
    return Placed(boxes, tuple(arrows), round(left + MARGIN, 1), round(bottom, 1))
