"""What is a legacy hook to be called with, as a hook on a Node, in each release? As rows of a script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hookcheck.networks.case import Case
from hookcheck.oracle.last_node import Forms, NodeCall, node_calls
from hookcheck.releases import releases
from hookcheck.repro.gradients import Gradients
from hookcheck.topology.last_node import Release

Row = tuple[str, int, tuple[tuple[Any, ...], ...]]
"""A module's path, how many calls there may be in passes through other passes, and the calls that are due.

Each of these has the gradient of the first output, whether it is certain to come, and by releases what the Node hands
on since then; None stands for what is not known.
"""


def rows(case: Case, gradients: Gradients) -> Iterator[Row]:
    """One for each module that is called."""
    expected = case.expected
    minors = sorted({_minor(release.torch) for release in releases()}, reverse=True)
    older = [(minor, list(node_calls(expected.trace, expected.plain, minor))) for minor in minors]
    for path, answers in case.as_nodes.items():
        due = [(i, call) for i, call in enumerate(expected.of_first_output) if call.call.path == path]
        calls = (_call(call, [(minor, found[i]) for minor, found in older], gradients) for i, call in due)
        yield path, answers.room, tuple(calls)


def _call(newest: NodeCall, older: Sequence[tuple[Release, NodeCall]], gradients: Gradients) -> tuple[Any, ...]:
    dtype = gradients.expected.topology.dtype

    def told(forms: Forms) -> Any:
        return tuple(tuple(gradients.entry(gradient, dtype) for gradient in form) for form in forms)

    groups: list[tuple[Release, Forms]] = [(older[0][0], newest.forms)]
    for minor, call in older:
        same = _same(call.forms, groups[-1][1])
        groups[-1:] = [(minor, groups[-1][1])] if same else [groups[-1], (minor, call.forms)]
    handed_on = {since: told(forms) for since, forms in groups}
    gradient = gradients.entry(newest.gradient, dtype)
    return gradient, newest.certain, handed_on if newest.known else None


def _same(one: Forms, other: Forms) -> bool:
    pairs = [(a, b) for form, same in zip(one, other) for a, b in zip(form, same)]
    return [*map(len, one)] == [*map(len, other)] and all(
        (a is None) == (b is None) and (a is None or b is None or np.array_equal(a, b, equal_nan=True))
        for a, b in pairs
    )


def _minor(version: str) -> Release:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)
