"""Do titles say what is wrong, and in which contexts?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.clause import CLAUSES
from hookcheck.contract.finding import Finding
from hookcheck.contract.site import EQUAL, NONE, VALUE, Site
from hookcheck.contract.verdict import Deviation
from hookcheck.contract.words import stated
from hookcheck.programs.program import Program
from hookcheck.repro.words import called, how, title_of_program, under
from hookcheck.topology.contexts import CONTEXTS
from hookcheck.topology.model import Apply, Within
from hookcheck.topology.ops.arithmetic import Add
from hookcheck.topology.ops.inplace import ScaleInplace
from hookcheck.topology.ops.reduction import MaxOver
from hookcheck.topology.ops.tensors import AsTensor
from hookcheck.topology.tree import Ref

from .cases import LINEAR


@pytest.mark.parametrize(
    ("expected", "observed", "words"),
    [
        (None, stated([0.0]), "a gradient instead of None"),
        (np.ones(2), None, "None instead of a gradient"),
        (None, stated(3), "3 instead of handle.id: None"),
        (stated("tag"), None, "None instead of handle.id: 'tag'"),
        (None, stated((True, 2)), "(True, 2) instead of handle.id: None"),
    ],
)
def test_what_is_no_gradient_is_not_called_one(expected: Any, observed: Any, words: str) -> None:
    assert how(Finding(Site(VALUE, "handle.id"), NONE, expected, observed)) == words


def test_another_value_is_a_wrong_one() -> None:
    assert how(Finding(Site(VALUE, "handle.id"), EQUAL, stated(1), stated(2))) == "wrong values"


@pytest.mark.parametrize(
    ("id", "gap", "expected", "observed", "title"),
    [
        ("SZ-32", "wrong values", "True", "False", "copy.deepcopy: a fact: False instead of True"),
        ("GL-13", "raised", "no error", "TypeError: no", "register_module_forward_pre_hook: a fact: TypeError: no"),
        ("LB-07", "raised", "no error", "StopIteration: ", "legacy backward hooks: a fact: StopIteration"),
    ],
)
def test_a_title_says_what_a_program_is_about(id: str, gap: str, expected: str, observed: str, title: str) -> None:
    program = CLAUSES[id]
    assert isinstance(program, Program)
    assert title_of_program(program, Deviation(id, "a fact", gap, expected, observed)) == title


def test_a_long_value_gives_way_to_the_statement() -> None:
    program = CLAUSES["SZ-32"]
    assert isinstance(program, Program)
    deviation = Deviation("SZ-32", "a fact", "wrong values", str([*range(50)]), str([*range(60)]))
    assert title_of_program(program, deviation) == f"copy.deepcopy: a fact: not as stated: {program.statement}"


def test_contexts_are_named_once_in_their_order() -> None:
    call, backward = LINEAR.main
    sharded = (Within("no_grad", (Within("fully_shard", (call,)),)), Within("no_grad", (call,)), backward)
    assert under(replace(LINEAR, main=sharded)) == ["under no_grad", "under fully_shard"]
    assert under(LINEAR) == []


def test_what_makes_the_call_is_a_context_too() -> None:
    call, backward = LINEAR.main
    compiled = replace(LINEAR, main=(replace(call, context="compile_eager"), backward))
    assert under(compiled) == ["under torch.compile"]
    ahead = replace(LINEAR, main=(replace(call, context="module_compile_aot_eager"), backward))
    assert under(ahead) == ["under Module.compile"]


@pytest.mark.parametrize("mode", CONTEXTS)
def test_each_context_has_words(mode: str) -> None:
    (words,) = under(replace(LINEAR, main=(Within(mode, LINEAR.main[:1]),)))
    assert words.split()[0] in ("under", "in", "on", "after", "with", "called")
    assert "_" not in words or mode in words


@pytest.mark.parametrize(
    ("op", "name"),
    [(MaxOver(0, False), "max"), (ScaleInplace(2.0), "mul_"), (AsTensor("sparse COO"), "to_sparse"), (Add(), "add")],
)
def test_an_operation_is_called_as_in_torch(op: Any, name: str) -> None:
    assert called(Apply("y", op, (Ref("x"), Ref("z")))) == name
