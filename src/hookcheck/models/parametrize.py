"""One test for each clause and model, in the way of scikit-learn's ``parametrize_with_checks``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import pytest

from hookcheck.errors import HookcheckError
from hookcheck.hooks.kinds import KINDS
from hookcheck.models.check import check_module, usable_kinds
from hookcheck.models.judging import clauses_of
from hookcheck.models.result import KNOWN, NEW, ModelCheck

Make = Callable[[], Any]
"""Gives ``(model, args)`` or ``(model, args, kwargs)``."""


class _Checked:
    """A model that is checked once, when the first of its tests runs."""

    def __init__(self, make: Make, options: Mapping[str, Any]) -> None:
        self.make = make
        self.options = options

    @cached_property
    def result(self) -> ModelCheck:
        return check_module(*call_make(self.make), **self.options)


class ClauseCheck:
    """Whether hooks on a model keep one clause; called by the test."""

    def __init__(self, checked: _Checked, clause: str) -> None:
        """Of what is checked once, the verdicts on ``clause``."""
        self._checked = checked
        self.clause = clause

    def __call__(self) -> None:
        """Fails where the clause is not kept; what the ledger knows is an expected failure, with its reason."""
        __tracebackhide__ = True
        verdicts = [v for v in self._checked.result.judged if v.clause == self.clause]
        new = [
            f"{v.kind} on {v.subject}: {v.gap}: {v.observed} instead of {v.expected}"
            for v in verdicts
            if v.verdict == NEW
        ]
        assert not new, "\n".join([f"{self.clause} is not kept:", *new[:10]])
        known = next((v for v in verdicts if v.verdict == KNOWN), None)
        if known is not None:
            pytest.xfail(f"known: {known.why} ({known.link})")
        if not verdicts:
            pytest.skip(f"nothing on this model is about {self.clause}")


def parametrize_with_clauses(
    makes: Sequence[Make], expected_failures: Mapping[str, str] | None = None, **options: Any
) -> pytest.MarkDecorator:
    """Parametrizes a test that takes ``check`` and calls it: once for each clause and each of ``makes``.

    ``expected_failures`` maps ids of clauses to reasons: these tests are to fail, and fail if they pass. ``options``
    are those of `hookcheck.check_module`.

    Raises:
        HookcheckError: no function is given, an expected failure has no reason, or it names no clause of these kinds.
    """
    expected = dict(expected_failures or {})
    if not makes or not all(map(callable, makes)):
        raise HookcheckError("give functions that make a model and its arguments: [make_a, make_b]")
    kinds = usable_kinds(options.get("kinds"))
    clauses = list(dict.fromkeys(clause.id for kind in kinds for clause in clauses_of(KINDS[kind])))
    for id, reason in expected.items():
        if id not in clauses:
            raise HookcheckError(f"no hook kind here is judged by {id}; choose from {', '.join(clauses)}")
        if not isinstance(reason, str) or not reason.strip():
            raise HookcheckError(f"an expected failure needs a reason: expected_failures={{{id!r}: 'why'}}")
    checked = [(getattr(make, "__name__", "model"), _Checked(make, options)) for make in makes]
    return pytest.mark.parametrize(
        "check",
        [
            pytest.param(
                ClauseCheck(model, id),
                id=f"{name}-{id}",
                marks=[pytest.mark.xfail(reason=expected[id], strict=True)] if id in expected else [],
            )
            for name, model in checked
            for id in clauses
        ],
    )


def call_make(make: Make) -> tuple[Any, Any, Any]:
    """Model, args and kwargs, as ``make`` gives them.

    Raises:
        HookcheckError: it raises, or gives something else.
    """
    try:
        given = make()
    except Exception as error:
        text = " ".join(str(error).split())
        raise HookcheckError(f"{make.__name__}() raises {type(error).__name__}: {text}") from error
    if not isinstance(given, tuple) or len(given) not in (2, 3):
        raise HookcheckError(f"{make.__name__}() must return (model, args) or (model, args, kwargs)")
    model, args, *rest = given
    return model, args, rest[0] if rest else None
