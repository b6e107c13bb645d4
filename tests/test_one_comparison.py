"""No number is compared by a bound of the caller's: the table of tolerances has them all."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TABLE = "hookcheck.oracle.tolerance"
OURS = f"{TABLE}.assert_close"
COMPARISONS = frozenset(
    re.findall(
        r"\w+",
        "assert_close allclose assert_allclose isclose approx atol rtol rel_tol abs_tol assert_almost_equal "
        "assert_approx_equal assert_array_almost_equal assert_array_almost_equal_nulp assert_array_max_ulp "
        "assertAlmostEqual assert_array_less",
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


DISTANCES = frozenset({"abs", "absolute", "fabs", "norm", "dist"})
"""Functions and methods that give how far two numbers, or tensors, are apart."""

READING = frozenset({"item", "tolist", "grad"})
"""What gives the numbers of a tensor."""


def by_distance(node: ast.AST) -> bool:
    """Whether it is ``abs(a - b) < bound`` in one of its forms: of numbers or tensors, the largest, a norm, the square,
    on either side, or ``round(a, 3) == b``."""
    if not isinstance(node, ast.Compare):
        return False
    sides = [node.left, *node.comparators]
    if any(isinstance(operator, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for operator in node.ops):
        return any(map(_is_distance, sides))
    rounded = (part for side in sides for part in ast.walk(side) if isinstance(part, ast.Call) and len(part.args) > 1)
    return any(isinstance(call.func, ast.Name) and call.func.id == "round" for call in rounded)


def _is_distance(side: ast.AST) -> bool:
    """Whether there is a difference in it of which it takes the size."""
    for part in ast.walk(side):
        if isinstance(part, ast.Call):
            name = getattr(part.func, "id", getattr(part.func, "attr", ""))
            if name in DISTANCES and any(_subtracts(inside) for inside in ast.walk(part)):
                return True
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Pow) and any(map(_subtracts, ast.walk(part.left))):
            return True
    return False


def _subtracts(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)


def by_digits(node: ast.AST) -> bool:
    """Whether what is read from a tensor must be equal to a number that no float is, such as 0.1."""
    if not isinstance(node, ast.Compare) or not all(isinstance(op, (ast.Eq, ast.NotEq)) for op in node.ops):
        return False
    parts = [part for side in (node.left, *node.comparators) for part in ast.walk(side)]
    inexact = (part for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, float))
    read = any(isinstance(part, ast.Attribute) and part.attr in READING for part in parts)
    return read and any(math.isfinite(c.value) and Fraction(repr(c.value)) != Fraction(c.value) for c in inexact)


def comparisons(text: str) -> list[int]:
    """The lines of a program on which numbers are compared by another bound than one of the table."""
    return sorted(
        {
            getattr(node, "lineno", 0)
            for node in ast.walk(ast.parse(text))
            if by_distance(node) or by_digits(node) or any(name in COMPARISONS for name in names(node))
        }
    )


@pytest.mark.parametrize("folder", ["src", "faults", "conformance", "tests", "benchmarks"])
def test_the_table_alone_compares_numbers(folder: str) -> None:
    paths = (path for path in (ROOT / folder).rglob("*.py") if not path.match(f"{TABLE.replace('.', '/')}.py"))
    lines = {str(path.relative_to(ROOT)): comparisons(path.read_text("utf-8")) for path in paths}
    assert {path: of for path, of in lines.items() if of} == {}, f"use assert_close or close of {TABLE} on these lines"


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
        "np.testing.assert_array_less(a, b)",
        "assert abs(a - b) < 1e-6",
        "assert 1e-6 >= abs(a - b)",
        "assert (a - b).abs().max() <= eps",
        "assert torch.abs(a - b).max().item() < eps",
        "assert np.abs(a - b).max() < eps",
        "assert (abs(a - b) < eps).all()",
        "assert np.linalg.norm(a - b) < eps",
        "assert torch.dist(a - b, c) < eps",
        "assert ((a - b) ** 2).sum() < eps",
        "assert math.fabs(a - b) > eps",
        "assert round(a, 3) == b",
        "assert b != round(a, 3)",
        "assert a.item() == 0.1",
        "assert a.tolist() == [0.1, 0.5]",
        "assert 0.3 != a.grad[0]",
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
        "assert torch.equal(a, b)",
        "assert a.tolist() == [0.5, 2.0]",
        "assert p == 0.1",
        "assert a - b < 3",
        "assert abs(a) < 3",
    ],
)
def test_what_goes_by_the_table_is_none(planted: str) -> None:
    assert not comparisons(planted)
