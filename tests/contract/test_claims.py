"""Is a claim refuted because torch does otherwise, and not because its facts could never be?

Under each patch torch does as a claim has it: what is refuted on torch as it is, then is so.
"""

from __future__ import annotations

import inspect
import pickle
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import pytest
import torch
from faults.engine import calling, engine, release, replaced
from faults.registering import edited

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.clause import CLAIM, CLAUSES
from hookcheck.programs.facts import facts_of
from hookcheck.programs.program import Program

pytestmark = pytest.mark.skipif(
    release(torch.__version__) < (2, 4), reason="AS_CLAIMED is for what releases from 2.4 on do otherwise"
)

CLAIMS = [c for c in CLAUSES.values() if isinstance(c, Program) and c.rank == CLAIM]
Patch = Callable[[], AbstractContextManager[Any]]


def refuted(id: str) -> set[str]:
    """The facts of a claim that are not so."""
    program = CLAUSES[id]
    assert isinstance(program, Program)
    return {fact.name for fact in facts_of(program, "cpu") if fact.finding}


def method(name: str, change: Callable[..., Any]) -> AbstractContextManager[None]:
    """Has ``change(original, module, *rest)`` stand in the place of a method of modules."""
    return replaced(torch.nn.Module, name, lambda original: lambda self, *a, **k: change(original, self, *a, **k))


def outputs_before_forward_hooks(original: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
    hooks = dict(module._forward_hooks)
    module._forward_hooks.clear()
    result = original(module, *args, **kwargs)
    module._forward_hooks.update(hooks)
    for hook in hooks.values():
        replacing = hook(module, (getattr(module, "got", None),), result)
        result = result if replacing is None else replacing
    return result


def capturing_keywords(original: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
    return original(module, *args, **{name: value.view_as(value) for name, value in kwargs.items()})


def filled_with_none(original: Any) -> Any:
    def setup(self: Any, grad_fn: Any) -> None:
        def fill(grad_input: Any, grad_output: Any) -> None:
            if self.grad_outputs is None:
                self.grad_outputs = (None,) * self.n_outputs

        grad_fn.register_hook(fill)
        original(self, grad_fn)

    return setup


@contextmanager
def of_a_single_node() -> Iterator[None]:
    """Looks for the first output that has a grad_fn, and hands on its input's gradient alone."""

    def alone(hook: Any, module: Any, grad_input: Any, grad_output: Any) -> Any:
        return hook(module, grad_input[:1] if isinstance(module, torch.nn.Conv2d) else grad_input, grad_output)

    first = ("var = var[0]", "var = next(v for v in var if v.requires_grad)")
    with edited(torch.nn.Module, "_call_impl", first), calling(alone):
        yield


@contextmanager
def without_self() -> Iterator[None]:
    """Registers of a bound method the function alone."""

    def register(original: Any, module: Any, hook: Any) -> Any:
        return original(module, hook.__func__ if inspect.ismethod(hook) else hook)

    with ExitStack() as patches:
        for name in ("register_forward_hook", "register_backward_hook", "register_full_backward_hook"):
            patches.enter_context(method(name, register))
        yield


@contextmanager
def no_post_accumulate_hooks() -> Iterator[None]:
    registration = torch.Tensor.register_post_accumulate_grad_hook
    del torch.Tensor.register_post_accumulate_grad_hook
    try:
        yield
    finally:
        torch.Tensor.register_post_accumulate_grad_hook = registration


def returning_nothing(original: Any, module: Any, hook: Any) -> Any:
    def called(*received: Any) -> None:
        hook(*received)

    return original(module, called)


def raising_in_place(original: Any) -> Any:
    def dropout2d(x: Any, p: float, training: bool, inplace: bool) -> Any:
        if training and inplace:
            raise RuntimeError("modified by an inplace operation")
        return original(x, p, training, inplace)

    return dropout2d


def refusing_hooks(original: Any) -> Any:
    def save(what: Any, *rest: Any) -> None:
        if isinstance(what, torch.nn.Module) and (
            what._forward_hooks or any(p._backward_hooks for p in what.parameters())
        ):
            raise pickle.PicklingError("Can't pickle hooks")
        original(what, *rest)

    return save


def referring_weakly(original: Any, module: Any, hook: Any) -> Any:
    reference = weakref.ref(hook)
    return original(module, lambda *received: reference() and reference()(*received))


AS_CLAIMED: dict[str, Patch] = {
    "P2-3": lambda: method("__call__", outputs_before_forward_hooks),
    "P2-6": lambda: method("__call__", capturing_keywords),
    "P2-9": lambda: engine("_set_user_hook", filled_with_none),
    "P2-13": of_a_single_node,
    "QA-2": without_self,
    "TT-5": no_post_accumulate_hooks,
    "ZH-1": lambda: method("register_forward_hook", returning_nothing),
    "PW-2": lambda: replaced(torch.nn.functional, "dropout2d", raising_in_place),
    "PW-3": lambda: replaced(torch, "save", refusing_hooks),
    "PW-4": lambda: method("register_forward_hook", referring_weakly),
}
"""For every claim of which a fact is refuted, since 2.4, a torch that does as claimed."""


@pytest.mark.parametrize("program", CLAIMS, ids=lambda program: program.id)
def test_what_is_refuted_can_be_so(program: Program) -> None:
    wrong = refuted(program.id)
    assert bool(wrong) is (program.id in AS_CLAIMED)
    if wrong:
        with AS_CLAIMED[program.id]():
            assert not refuted(program.id) & wrong
