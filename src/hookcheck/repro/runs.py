"""Two runs of one function, a control and an experiment: how their lines become one body."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def forked(experiment: Sequence[str], control: Sequence[str]) -> list[str]:
    """One body for both, which go apart in one place; no block begins in it and ends outside of it."""
    ahead = _alike(experiment, control)
    behind = _alike(experiment[ahead:][::-1], control[ahead:][::-1])
    while True:
        a, b = (side[ahead : len(side) - behind] for side in (experiment, control))
        level = min(map(_indent, (*a, *b)), default=0)
        if behind and _indent(experiment[len(experiment) - behind]) > level:
            behind -= 1
        elif ahead and any(_indent(side[0]) > level for side in (a, b) if side):
            ahead -= 1
        else:
            break
    indent = " " * level
    fork = [f"{indent}if experiment:", *(f"    {line}" for line in a)] if a else []
    other = [f"{indent}{'else' if a else 'if not experiment'}:", *(f"    {line}" for line in b)] if b else []
    return [*experiment[:ahead], *fork, *other, *experiment[len(experiment) - behind :]]


def _alike(some: Sequence[str], others: Sequence[str]) -> int:
    """How many lines the two have in common as they begin."""
    return next((i for i, (a, b) in enumerate(zip(some, others)) if a != b), min(len(some), len(others)))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def spaced(body: Sequence[str]) -> Iterator[str]:
    """The lines of a function, with empty ones around each function in it, as formatters have them."""
    before, within = "", -1
    for line in body:
        indent = _indent(line)
        defines = line.lstrip().startswith("def ")
        ends = line.strip() and 0 <= indent <= within
        if before.strip() and ((defines and not before.lstrip().startswith("def ")) or ends):
            yield ""
        within = indent if defines and (within < 0 or ends) else -1 if ends else within
        before = line
        yield line
