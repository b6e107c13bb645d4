"""Are the hook kinds that a program registers those that its code says, helpers included?"""

from __future__ import annotations

from typing import Any

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.clause import CLAUSES, Subject
from hookcheck.programs.program import Program
from hookcheck.programs.registered import hook_kinds


def helper(net: Any) -> None:
    net.register_full_backward_hook(print)


helper.__module__ = "hookcheck.programs.nets"  # what is not ours is not followed


class Holder:
    def hold(self, net: Any) -> Any:
        return net.register_forward_hook(print, with_kwargs=True)


Holder.__module__ = "hookcheck.programs.nets"


def kinds(act: Any) -> set[str]:
    return set(hook_kinds(Program("X", "promise", "", "1.8", "", ("x",), Subject.PROGRAM, act)))


def test_its_own_names() -> None:
    assert kinds(lambda check: check.net.register_post_accumulate_grad_hook(print)) == {"post_accumulate"}
    assert kinds(lambda check: check.net.register_hook) == {"tensor", "output_tensor", "output_node"}
    assert kinds(lambda check: check.net) == set()


def test_with_keywords_it_is_another_kind_as_well() -> None:
    assert kinds(lambda check: check.net.register_forward_pre_hook(print)) == {"forward_pre"}
    both = {"forward_pre", "forward_pre_kwargs"}
    assert kinds(lambda check: check.net.register_forward_pre_hook(print, with_kwargs=True)) == both


def test_helpers_and_classes_of_ours() -> None:
    assert kinds(lambda check: helper(check)) == {"full_backward"}
    assert kinds(lambda check: Holder().hold(check)) == {"forward", "forward_kwargs"}


def test_a_text_that_is_run_elsewhere() -> None:
    assert kinds(lambda check: check.run("net.register_module_forward_hook(print)")) == {"global_forward"}


def test_the_chapters_that_are_named_after_a_kind_register_it() -> None:
    for chapter, kind in {
        "full-backward-hooks": "full_backward",
        "legacy-backward-hooks": "backward",
        "post-accumulate-hooks": "post_accumulate",
        "multi-grad-hooks": "multi_grad",
        "forward-pre-hooks": "forward_pre",
    }.items():
        programs = [c for c in CLAUSES.values() if isinstance(c, Program) and c.chapter == chapter]
        assert sum(kind in hook_kinds(program) for program in programs) * 2 > len(programs), chapter
