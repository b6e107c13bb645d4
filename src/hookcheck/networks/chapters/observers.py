"""What may a hook change by being there? Nothing: a hook that returns None is an observer.

Outputs, gradients of inputs and parameters, and whether there is a gradient at all must be, bit by bit, what they are
without the hook; nothing may raise or warn that did not before. The last two clauses hold the run with hooks against
the formulas: so a fault of both runs shows as well, and so does a hook that acts where what it returns is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from hookcheck.contract.clause import NOT_JUDGED, NOTHING, PROMISE, Judgement, Subject, clause
from hookcheck.contract.finding import Finding, Rounded
from hookcheck.contract.site import (
    ARGUMENT,
    AS_WITHOUT_HOOKS,
    CLOSE,
    EQUAL,
    KEPT_ALIVE,
    PROCESS,
    RAISES,
    VALUE,
    WARNS,
    Site,
)
from hookcheck.hooks.kinds import HookKind
from hookcheck.networks.case import Case
from hookcheck.networks.gradients import as_copied
from hookcheck.oracle.graph import Tensor, newest
from hookcheck.oracle.tolerance import close
from hookcheck.probe.observation import Array, Copy, Layout, Standing, numbers, same

MODULE = "torch.nn.Module.register_full_backward_hook"
RETURN = f"{MODULE}, 'optionally return a new gradient'"
LEAK = f"{MODULE}; pytorch#74831, pytorch#82528"
VIEWS = f"{MODULE}, 'will receive a view of each Tensor'; torch.autograd, 'Default gradient layouts'"
Beside = TypeVar("Beside", Standing, Layout)
MISSING = "nothing of that name"
"""What stands for a value that there is in one of two runs only."""

FORMULAS = "the formulas of the oracle, each proved in tests/"


def _any(kind: HookKind) -> bool:
    return True


def _observing(kind: HookKind) -> bool:
    return kind.observes


@clause("OB-01", PROMISE, Subject.RUN, "1.8", MODULE, of=_observing)
def raises_nothing(case: Case, _: None) -> Judgement:
    """An observing hook makes neither forward nor backward raise."""
    if case.forbidden:
        return NOTHING
    if case.observed.raised is None or case.plain.raised is not None:
        return None
    return Finding(Site(PROCESS), RAISES, "the run ends as it does without hooks", case.observed.raised)


@clause("OB-02", PROMISE, Subject.RUN, "1.8", MODULE, of=_observing)
def changes_no_output(case: Case, _: None) -> Judgement:
    """An observing hook leaves every output as it is, bit by bit, and requiring grad as it did; where a CUDA device has
    no kernel that sums in one order, it may round differently."""
    if case.observed.raised or case.plain.raised:
        return NOTHING
    alike = same(case.plain.values, case.observed.values)
    with_hooks, without = (dict(_flat({} if alike else run.values)) for run in (case.observed, case.plain))
    judged: list[Judgement] = []
    for name in {**without, **with_hooks}:
        plain, hooked = without.get(name, MISSING), with_hooks.get(name, MISSING)
        if not same(plain, hooked):
            value = case.expected.trace.names.get(name)
            judged.append(_unlike(case, name, plain, hooked, value.array if isinstance(value, Tensor) else None))
    for name, flag in case.plain.requires_grad.items():
        if case.observed.requires_grad.get(name) != flag:
            judged.append(Finding(Site(ARGUMENT, f"{name}.requires_grad"), AS_WITHOUT_HOOKS, flag, not flag))
    return _first(judged)


@clause("OB-03", PROMISE, Subject.RUN, "1.8", RETURN, of=_observing)
def changes_no_gradient(case: Case, _: None) -> Judgement:
    """An observing hook leaves the gradients of inputs and parameters as they are, bit by bit; where a CUDA device has
    no kernel that sums in one order, it may round differently."""
    return _gradients(case, lambda plain, hooked: plain is None or hooked is None or same(plain, hooked))


@clause("OB-04", PROMISE, Subject.RUN, "1.8", RETURN, of=_observing)
def keeps_none_apart_from_zero(case: Case, _: None) -> Judgement:
    """An observing hook leaves a ``.grad`` that is None as None, and no ``.grad`` becomes None."""
    return _gradients(case, lambda plain, hooked: (plain is None) == (hooked is None))


@clause("OB-05", PROMISE, Subject.WARNING, "1.8", MODULE, of=_observing)
def warns_of_nothing(case: Case, warning: tuple[str, str] | None) -> Judgement:
    """An observing hook brings no warning with it."""
    return Finding(Site(PROCESS), WARNS, None, ": ".join(warning)) if warning else None


@clause("OB-06", PROMISE, Subject.RUN, "1.8", MODULE, of=_observing)
def draws_no_random_number(case: Case, _: None) -> Judgement:
    """An observing hook leaves torch's random state as it is without the hook."""
    if case.observed.raised or case.plain.raised:
        return NOTHING
    if case.observed.random == case.plain.random:
        return None
    return Finding(
        Site(VALUE, "torch.random.get_rng_state()"), AS_WITHOUT_HOOKS, "that of the run without hooks", "another one"
    )


@clause("OB-07", PROMISE, Subject.RUN, "1.8", VIEWS, of=_observing)
def changes_no_object(case: Case, _: None) -> Judgement:
    """An observing hook leaves which object each tensor is, its class and layout, its version and strides, and whether
    it is a view and a leaf, and class, layout and strides of each ``.grad`` and whether it requires grad; but a full
    backward hook puts a view in the place of what goes into or comes out of a module, which of a parameter is none, the
    stride of an axis of one entry means nothing, nor do those of
    a tensor without entries, and what ``torch.autograd.grad`` gives, or a backward leaves in the ``.grad`` of an
    intermediate, is whatever backward came to, be it the cotangent itself."""
    if case.observed.raised or case.plain.raised:
        return NOTHING
    standings = _changed(case.plain.standings, case.observed.standings)
    views = case.views if standings and case.kind.variant == "full" else frozenset()
    for name, plain, hooked in standings:
        if name.partition("[")[0] in case.asked:
            continue
        if hooked.view and not views.isdisjoint((name, hooked.object)):
            kind = hooked.kind if "Parameter" in plain.kind else plain.kind
            plain = hooked._replace(version=plain.version, strides=plain.strides, kind=kind)
        apart = plain != hooked and _apart(plain, hooked, dict(_flat(case.plain.values)).get(name))
        if apart:
            return Finding(Site(ARGUMENT, name), AS_WITHOUT_HOOKS, *apart)
    for name, before, after in _changed(case.plain.layouts, case.observed.layouts):
        apart = _apart(before, after, case.plain.gradients[name])
        if apart:
            return Finding(Site(ARGUMENT, f"{name}.grad"), AS_WITHOUT_HOOKS, *apart)
    return None


@clause("OB-08", PROMISE, Subject.RUN, "1.8", LEAK, of=_observing)
def keeps_nothing_alive(case: Case, _: None) -> Judgement:
    """When a run is over and nothing refers to it, an observing hook keeps neither the module nor any tensor alive;
    that of several leaves must be removed for it."""
    if case.observed.raised:
        return NOTHING
    alive = [name for name in case.observed.alive if name not in case.plain.alive]
    return Finding(Site(VALUE), KEPT_ALIVE, [], alive) if alive else None


@clause("AG-01", PROMISE, Subject.RUN, "1.7", FORMULAS, of=_any)
def leaves_hold_the_gradients(case: Case, _: None) -> Judgement:
    """With hooks on everything, the gradient of every input and parameter is what the formulas give; with hooks that
    act, what they give with what the hooks return in its place."""
    if case.plain.raised:
        return Finding(Site(PROCESS, "without hooks"), RAISES, None, case.plain.raised)
    if case.observed.raised:
        return NOTHING
    for name, gradient in case.observed.gradients.items():
        expected = case.expected.leaf_gradients.get(name)
        # None and zero are told apart by OB-04, with what there is without hooks; for hooks that act there is no such.
        nothing = expected is None or (not case.kind.observes and not expected.any())
        absent = nothing and (gradient is None or not gradient.any())
        dtype = case.expected.trace.leaves[name].dtype
        if not absent and (expected is None or not case.close(gradient, expected, dtype)):
            return Finding(Site(VALUE, f"{name}.grad"), CLOSE, expected, gradient)
    return None if case.observed.gradients else NOTHING


@clause("AG-02", PROMISE, Subject.RUN, "1.7", FORMULAS, of=_any)
def values_are_as_computed(case: Case, _: None) -> Judgement:
    """With hooks on everything, what the network gives is what the formulas give; with hooks that act, what they give
    with what the hooks return in its place."""
    if case.observed.raised or case.plain.raised:
        return NOTHING
    for name, value in case.observed.values.items():
        expected = newest(case.expected.trace.names[name])
        if name in case.asked and not case.kind.observes:  # as in AG-01
            expected = _or_none(value, expected)
        if not case.agrees(value, expected):
            return Finding(Site(VALUE, name), EQUAL, as_copied(expected), value)
    return None


def _or_none(values: Copy, expected: Any) -> Any:
    """What is expected of several gradients, with None for zeros where None was given."""
    if not isinstance(values, tuple) or len(values) != len(expected):
        return expected
    zeros = [isinstance(e, Tensor) and not e.array.any() for e in expected]
    return tuple(None if zero and v is None else e for v, e, zero in zip(values, expected, zeros))


def _gradients(case: Case, agree: Callable[[Array | None, Array | None], bool]) -> Judgement:
    if case.observed.raised or not case.plain.gradients:
        return NOTHING
    if case.same_gradients:
        return None
    judged = [
        _unlike(case, f"{name}.grad", plain, hooked, case.expected.leaf_gradients.get(name))
        for name, plain in case.plain.gradients.items()
        for hooked in [case.observed.gradients.get(name)]
        if not agree(plain, hooked)
    ]
    return _first(judged)


def _first(judged: list[Judgement]) -> Judgement:
    """The first finding among them, or else that something is not judged, or nothing."""
    return next((j for j in judged if isinstance(j, Finding)), judged[0] if judged else None)


def _unlike(case: Case, name: str, plain: Copy, hooked: Copy, expected: Array | None = None) -> Judgement:
    """That a value is not what it is without hooks, by more than the order of torch's sums explains or by no more.

    It explains as well that both are off from what the formulas give, each by no more than rounding does on this
    network.
    """
    rounded = False
    if isinstance(plain, np.ndarray) and isinstance(hooked, np.ndarray) and plain.dtype == hooked.dtype:
        rounded = close(numbers(hooked), numbers(plain), case.expected.dtype, case.device) or (
            expected is not None and case.alike(plain, expected) and case.alike(hooked, expected)
        )
    if rounded and case.unordered:
        return NOT_JUDGED
    return Finding(Site(VALUE, name), AS_WITHOUT_HOOKS, plain, Rounded(hooked) if rounded else hooked)


def _changed(plain: Mapping[str, Beside], hooked: Mapping[str, Beside]) -> list[tuple[str, Beside, Beside]]:
    """What differs, by name; what there is in one run only is for other clauses."""
    return [(name, side, hooked[name]) for name, side in plain.items() if hooked.get(name, side) != side]


def _apart(plain: Standing | Layout, hooked: Standing | Layout, copy: Copy) -> tuple[str, str] | None:
    """The properties in which a tensor differs, in words; None if in none but strides that mean nothing."""
    shape = copy.shape if isinstance(copy, np.ndarray) else ()
    idle = {i for i, size in enumerate(shape) if size == 1 or 0 in shape}
    before, after = (
        side._replace(strides=tuple(stride for i, stride in enumerate(side.strides) if i not in idle))
        for side in (plain, hooked)
    )
    names = [name for name, a, b in zip(plain._fields, before, after) if a != b]
    expected, observed = (", ".join(f"{n} {getattr(side, n)}" for n in names) for side in (plain, hooked))
    return (expected, observed) if names else None


def _flat(copy: Copy, name: str = "") -> Iterator[tuple[str, Copy]]:
    if isinstance(copy, dict):
        for key, item in copy.items():
            yield from _flat(item, f"{name}[{key}]" if name else key)
    elif isinstance(copy, (tuple, list)):
        yield f"type({name})", type(copy).__name__
        for i, item in enumerate(copy):
            yield from _flat(item, f"{name}[{i}]")
    else:
        yield name, copy
