"""Faults in how saved tensors are cloned before they are changed."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from torch.autograd import graph

from ..engine import Fault, replaced
from ..registering import edited


def writing(change: Any) -> AbstractContextManager[None]:
    """Calls ``change(dispatch, func, args, kwargs)`` for every operation in the context."""

    def make(original: Any) -> Any:
        def dispatch(self: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return change(lambda: original(self, func, types, args, kwargs), func, args, kwargs or {})

        return dispatch

    return replaced(graph._CloneArgBeforeMutateMode, "__torch_dispatch__", make)


def never(dispatch: Any, func: Any, args: Any, kwargs: Any) -> Any:
    """Clones nothing."""
    return func(*args, **kwargs)


def methods_alone(dispatch: Any, func: Any, args: Any, kwargs: Any) -> Any:
    """Clones nothing that an ``out`` argument writes to."""
    return func(*args, **kwargs) if "out" in kwargs else dispatch()


def known_as(key: str, change: Any) -> AbstractContextManager[None]:
    """Knows tensors by ``change`` of what they are known by."""
    return replaced(graph, key, lambda original: lambda t: change(original(t)))


def keeping(name: str = "original") -> AbstractContextManager[None]:
    """Keeps every tensor that was saved, or each one's clone, until the context is left."""

    def make(original: Any) -> Any:
        def init(self: Any) -> None:
            original(self)
            setattr(self, name, {})

        return init

    return replaced(graph._AllowMutationOnSavedContext, "__init__", make)


def nested() -> AbstractContextManager[None]:
    """Lets contexts be nested."""

    def make(original: Any) -> Any:
        def context() -> Any:
            graph._allow_mutation_on_saved_tensors_enabled = False
            return original()

        return context

    return replaced(graph, "allow_mutation_on_saved_tensors", make)


def not_deleting(text: str) -> AbstractContextManager[None]:
    """Lets go of nothing when it clones."""
    return edited(graph._CloneArgBeforeMutateMode, "__torch_dispatch__", (text, "pass"))


def hiding() -> AbstractContextManager[None]:
    """Looks at no other tensor in the same memory after one whose graph is gone, and at such first."""
    return edited(
        graph._CloneArgBeforeMutateMode,
        "__torch_dispatch__",
        (
            "for tid in ctx.sid_to_tid[sid]:",
            "for tid in sorted(ctx.sid_to_tid[sid], key=ctx.tid_to_weakhandle.__contains__):",
        ),
        ("    continue\n                handle =", "    break\n                handle ="),
    )


FAULTS = (
    Fault("saved tensor mutation: nothing is cloned", lambda: writing(never), ("AM-01", "AM-02", "AM-03", "AM-07")),
    Fault("saved tensor mutation: out arguments are forgotten", lambda: writing(methods_alone), ("AM-03",)),
    Fault(
        "saved tensor mutation: versions of a tensor are taken for one",
        lambda: known_as("_get_tid", lambda tid: tid[:-1]),
        ("AM-01",),
    ),
    Fault(
        "saved tensor mutation: a change clones all that is saved",
        lambda: known_as("_get_sid", lambda sid: 0),
        ("AM-02",),
    ),
    Fault(
        "saved tensor mutation: leaving the context clears nothing",
        lambda: replaced(graph._AllowMutationOnSavedContext, "clear", lambda _: lambda self: None),
        ("AM-04",),
    ),
    Fault("saved tensor mutation: saved tensors stay until the end", keeping, ("AM-05",)),
    Fault("saved tensor mutation: contexts can be nested", nested, ("AM-06",)),
    Fault("saved tensor mutation: what is changed stays", lambda: not_deleting("del ctx.original[handle]"), ("AM-05",)),
    Fault(
        "saved tensor mutation: leaving the context leaves clones",
        lambda: edited(graph._AllowMutationOnSavedContext, "clear", ("self.cloned.clear()", "pass")),
        ("AM-04",),
    ),
    Fault("saved tensor mutation: clones stay until the end", lambda: keeping("cloned"), ("AM-05",)),
    Fault("saved tensor mutation: an alias that is gone hides the others", hiding, ("AM-01",)),
)
