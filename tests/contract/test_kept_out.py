"""Does every condition that keeps something from being drawn or judged stand in the table, and nothing else?"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import hookcheck
import hookcheck.clauses
from hookcheck.contract.clause import CLAUSES
from hookcheck.contract.kept_out import KEPT_OUT
from hookcheck.contract.ledger import load
from hookcheck.programs.situations.fitting import REASONS
from hookcheck.topology.contexts import CONTEXTS
from hookcheck.topology.families.tensors_in_contexts import REFUSED
from hookcheck.topology.tensors import SPARSE_GRADIENT, TENSORS

ROOT = Path(hookcheck.__file__).parent
SILENT = {"NOTHING", "NOT_JUDGED"}
ENTRIES = {entry.id for entry in load()}


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def attributes(test: ast.AST) -> set[str]:
    """What a test asks for, each in full: ``case.observed.raised``."""
    expressions = {ast.unparse(n) for n in ast.walk(test) if isinstance(n, ast.Attribute)}
    return {name for name in expressions if not any(other.startswith(f"{name}.") for other in expressions)}


def in_judges(tree: ast.AST) -> Iterator[str]:
    """What clauses ask for before they say nothing of a subject, and what is counted as not judged."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and any(
            isinstance(step, ast.Return) and step.value is not None and names(step.value) & SILENT for step in node.body
        ):
            yield from (f"networks {name}" for name in attributes(node.test))
        if isinstance(node, ast.IfExp) and (names(node.body) | names(node.orelse)) & SILENT:
            yield from (f"networks {name}" for name in attributes(node.test))
        if isinstance(node, ast.If) and any("unjudged" in names(step) for step in node.body):
            yield from (f"networks.judge {c.func.id}" for c in calls(node.test) if c.func.id != "isinstance")


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name))


def in_examine(tree: ast.AST) -> Iterator[str]:
    """What leaves a case without clauses, or without a run."""
    for node in ast.walk(tree):
        if isinstance(node, ast.IfExp) and "()" in map(ast.unparse, (node.body, node.orelse)):
            yield from (f"networks.examine {name}" for name in attributes(node.test))
        if isinstance(node, ast.If) and any(isinstance(step, ast.Return) for step in node.body):
            yield from (f"networks.examine {name}" for name in attributes(node.test))
            yield from (f"networks.examine {c.func.id}" for c in calls(node.test))


def in_families(tree: ast.Module, module: str) -> Iterator[str]:
    """Filters, and what is drawn but not from a constant of names."""
    owners = [
        *((f.name, f) for f in functions(tree)),
        *((ast.unparse(n.targets[0]), n) for n in tree.body if isinstance(n, ast.Assign)),
    ]
    for name, owner in owners:
        for node in ast.walk(owner):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("filter", "assume"):
                yield f"families.{module}.{name} {ast.unparse(node.func).rpartition('.')[2]}"
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.NotIn):
                side = node.comparators[0]
                if isinstance(side, ast.Name) and side.id.isupper() and side.id != "FAMILIES":
                    yield f"families.{module}.{name} {side.id}"


def in_machine(tree: ast.AST) -> Iterator[str]:
    """What an act is changed to, and which acts are not possible."""
    for function in functions(tree):
        for node in ast.walk(function):
            if function.name == "fitted" and isinstance(node, ast.Call) and ast.unparse(node.func) == "replace":
                yield from (f"machine.fitted {keyword.arg}" for keyword in node.keywords)
            if function.name == "possible" and isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
                yield from (f"machine.possible {name}" for name in names(node.args[1]))


def in_probe(tree: ast.AST) -> Iterator[str]:
    """The functions that say why something is not run."""
    for function in functions(tree):
        if (ast.get_docstring(function) or "").startswith(("Why this torch", "Why hooks")):
            yield f"probe.run.{function.name}"


def in_layers(text: str, module: str) -> Iterator[str]:
    """The releases from which on a layer is drawn though earlier ones have it: those that name a program of the chapter
    on layers, which says what is wrong before, in the docstring of a property or in the comment of an attribute."""
    tree, lines = ast.parse(text), text.splitlines()
    for function in functions(tree):
        if function.name.endswith("since") and "LY-" in (ast.get_docstring(function) or ""):
            yield f"layers.{module}.{function.name}"
    for node in ast.walk(tree):
        name = ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else ""
        if name.endswith("since") and "LY-" in lines[node.lineno - 1]:  # type: ignore[attr-defined]
            yield f"layers.{module}.{name}"


def conditions() -> set[str]:
    def tree(path: Path) -> ast.Module:
        return ast.parse(path.read_text(encoding="utf-8"))

    places = {"situations.fitting REASONS", "families.tensors_in_contexts REFUSED"}
    for path in (ROOT / "networks").rglob("*.py"):
        places.update(in_judges(tree(path)))
    for path in (ROOT / "topology" / "families").glob("*.py"):
        places.update(in_families(tree(path), path.stem))
    for path in (ROOT / "topology" / "layers").glob("*.py"):
        places.update(in_layers(path.read_text(encoding="utf-8"), path.stem))
    places.update(in_examine(next(f for f in functions(tree(ROOT / "networks" / "examine.py")) if f.name == "examine")))
    places.update(in_machine(tree(ROOT / "programs" / "machine" / "model.py")))
    places.update(in_probe(tree(ROOT / "probe" / "run.py")))
    judge = tree(ROOT / "programs" / "situations" / "judge.py")
    places.update(f"situations.judge {name}" for name in names(judge) if name == "LATER")
    return places


def test_every_condition_stands_in_the_table() -> None:
    assert sorted(conditions() - KEPT_OUT.keys()) == [], "add them to KEPT_OUT of contract/kept_out.py, with a reason"
    assert sorted(KEPT_OUT.keys() - conditions()) == [], "take them out of KEPT_OUT"


@pytest.mark.parametrize("place", KEPT_OUT)
def test_each_has_a_reason_and_names_what_there_is(place: str) -> None:
    exclusion = KEPT_OUT[place]
    assert exclusion.why.strip()
    assert set(exclusion.clauses) <= CLAUSES.keys()
    assert set(exclusion.entries) <= ENTRIES


def test_each_pair_of_choices_that_does_not_go_together_has_a_reason() -> None:
    assert all(reason.why.strip() for reason in REASONS)
    assert all(refusal.why.strip() and set(refusal.contexts) <= CONTEXTS.keys() for refusal in REFUSED)
    assert all(set(refusal.classes) <= {*TENSORS, SPARSE_GRADIENT} for refusal in REFUSED)


@pytest.mark.parametrize(
    ("source", "places"),
    [
        ("def judge(case):\n    if case.odd.thing:\n        return NOTHING", ["networks case.odd.thing"]),
        ("def judge(case):\n    return None if case.due else NOTHING", ["networks case.due"]),
        ("def judge(case):\n    if case.odd:\n        return None", []),
    ],
)
def test_a_condition_of_a_judge_is_found(source: str, places: list[str]) -> None:
    assert list(in_judges(ast.parse(source))) == places


def test_a_condition_of_a_family_is_found() -> None:
    source = "def draw():\n    return [k for k in kinds if k not in ODD], sides.filter(fits)"
    assert sorted(in_families(ast.parse(source), "odd")) == ["families.odd.draw ODD", "families.odd.draw filter"]


def test_a_program_on_layers_is_there_for_a_release_that_is_left_out() -> None:
    clauses = {id for place, exclusion in KEPT_OUT.items() if place.startswith("layers.") for id in exclusion.clauses}
    assert clauses == {id for id in CLAUSES if id.startswith("LY-")}
