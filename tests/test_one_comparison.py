"""No number is compared by a bound of the caller's: the table of tolerances has them all."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TABLE = "hookcheck.oracle.tolerance"
OURS = f"{TABLE}.assert_close"
SOURCES = [
    path
    for folder in ("src", "conformance", "tests", "benchmarks")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if not path.match(f"{TABLE.replace('.', '/')}.py")
]
COMPARISONS = frozenset(
    re.findall(
        r"\w+",
        "assert_close allclose assert_allclose isclose approx atol rtol rel_tol abs_tol assert_almost_equal "
        "assert_approx_equal assert_array_almost_equal assert_array_almost_equal_nulp assert_array_max_ulp "
        "assertAlmostEqual",
    )
)
"""Functions that compare numbers by a bound, and what other functions call that bound."""


def names(node: ast.AST) -> Iterator[str]:
    """What the node says: a name, an attribute, an argument, a key, a definition, or what it imports from elsewhere."""
    if isinstance(node, ast.Name) and not OURS.endswith(f".{node.id}"):
        yield node.id
    elif isinstance(node, ast.Attribute) and ast.unparse(node) != OURS:
        yield node.attr
    elif isinstance(node, (ast.keyword, ast.arg)):
        yield node.arg or ""
    elif isinstance(node, ast.Constant):
        yield str(node.value)
    elif isinstance(node, ast.FunctionDef):
        yield node.name
    elif isinstance(node, ast.ImportFrom):
        yield from (alias.name for alias in node.names if f"{node.module}.{alias.name}" != OURS)


def comparisons(text: str) -> list[int]:
    """The lines of a program on which numbers are compared by another bound than one of the table."""
    return sorted(
        {
            getattr(node, "lineno", 0)
            for node in ast.walk(ast.parse(text))
            for name in names(node)
            if name in COMPARISONS
        }
    )


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_table_alone_compares_numbers(path: Path) -> None:
    assert not comparisons(path.read_text("utf-8")), f"use assert_close or close of {TABLE} on these lines"


@pytest.mark.parametrize("path", sorted((ROOT / "src").rglob("*.j2")), ids=lambda path: path.name)
def test_what_is_written_for_others_has_its_bound_from_the_table(path: Path) -> None:
    assert not COMPARISONS.intersection(re.findall(r"\w+", path.read_text("utf-8")))


@pytest.mark.parametrize(
    "planted",
    [
        "assert np.allclose(a, b)",
        "assert torch.allclose(a, b)",
        "np.testing.assert_allclose(a, b)",
        "from numpy.testing import assert_allclose as same",
        "compare = np.isclose",
        "assert math.isclose(a, b)",
        "from math import isclose",
        "assert a == pytest.approx(b)",
        "from pytest import approx",
        "torch.testing.assert_close(a, b)",
        "from torch.testing import assert_close",
        "from .primitives import assert_close",
        "np.testing.assert_almost_equal(a, b)",
        "compare(a, b, atol=0)",
        "compare(a, b, rtol=0)",
        "compare(a, b, rel_tol=0)",
        "compare(a, b, abs_tol=0)",
        "compare(a, b, **{'atol': 0})",
        "def compare(a, b, rtol): ...",
        "rtol = 1e-3",
        "def assert_close(a, b): ...",
    ],
)
def test_a_comparison_of_its_own_is_found(planted: str) -> None:
    assert comparisons(f"import math\n\n{planted}\n") == [3]


@pytest.mark.parametrize(
    "planted",
    [
        f"from {TABLE} import assert_close",
        "assert_close(a, b)",
        "assert close(a, b, 'float64', 'cpu')",
        "assert np.array_equal(a, b)",
        "'close to what allclose would do'",
    ],
)
def test_what_goes_by_the_table_is_none(planted: str) -> None:
    assert not comparisons(planted)
