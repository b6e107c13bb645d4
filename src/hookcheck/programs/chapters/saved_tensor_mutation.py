"""What does ``allow_mutation_on_saved_tensors`` promise, which clones a saved tensor before it is changed in place?

Within ``allow_mutation_on_saved_tensors`` a pair of hooks for saved tensors notes what is saved, and each operation
that is about to write to such a tensor has it cloned first; without it, the backward that needs the tensor is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.garbage import Note, survivors
from hookcheck.probe.lazy import torch
from hookcheck.programs.chapters.saved_tensors_hooks import two
from hookcheck.programs.check import Check
from hookcheck.programs.program import program

ALLOW = "torch.autograd.graph.allow_mutation_on_saved_tensors"
OUTSIDE = "outside of the 'allow_mutation_on_saved_tensors' context"


def allowed() -> AbstractContextManager[Any]:
    """The context in which a saved tensor may be changed."""
    return torch.autograd.graph.allow_mutation_on_saved_tensors()


def constant(*values: float) -> Any:
    """A tensor that needs no gradient."""
    return torch.tensor(values)


def gradient(act: Callable[[Any], Any]) -> Any:
    """The gradient of the sum of ``act(a)`` for a leaf ``a`` of 2 and 3."""
    a = two()
    act(a).sum().backward()
    return a.grad


def squared(a: Any) -> tuple[Any, Any]:
    """A copy of ``a``, and the sum of its squares, of which ``square`` saves the copy."""
    b = a.clone()
    return b, b.pow(2).sum()


def memory(y: Any) -> Any:
    """Whether the memory of what the graph of ``y``, the second that `squared` gives, has saved ``expired``."""
    from torch.multiprocessing.reductions import StorageWeakRef

    return StorageWeakRef(y.grad_fn.next_functions[0][0]._saved_self.untyped_storage())


@program("AM-01", PROMISE, since="2.0", source=f"{ALLOW}; pytorch#79056")
def the_original_is_used_in_backward(check: Check) -> None:
    """In the context a tensor that was saved for backward may be changed in place: backward uses what it held when it
    was saved, each time that it was."""

    def twice(a: Any) -> Any:
        b = a.clone()
        y = b.pow(2)
        b.mul_(10)
        z = b.pow(3)
        b.zero_()
        b.add_(1)
        return y + z

    def of_both_factors(a: Any) -> Any:
        b = a.clone()
        y = b * b
        b.sin_()
        return y

    def of_a_constant(a: Any) -> Any:
        c = constant(5.0, 7.0)
        y = a * c
        c.zero_()
        return y

    def of_one_view(a: Any) -> Any:
        b = a.clone()
        y, other = b.view(2).pow(2), b.view(2).pow(3)
        del other
        b.zero_()
        return y

    with allowed():
        check.equal("changed and saved again", gradient(twice), [12004, 27006])  # 2 a + 10 * 3 (10 a)**2
        check.equal("saved twice", gradient(of_both_factors), [4, 6])
        check.equal("a factor without gradient", gradient(of_a_constant), [5, 7])
        a = two()
        b, y = squared(a)
        y.backward()
        check.works("a change after the backward", b.sin_)
        check.equal("gradient of what is changed after the backward", a.grad, [4, 6])
        check.equal("one of two views, the other's graph gone", gradient(of_one_view), [4, 6])


@program("AM-02", PROMISE, since="2.0", source=f"{ALLOW}; pytorch#79056")
def only_a_change_clones(check: Check) -> None:
    """In the context a saved tensor is cloned on mutation: until it is changed in place, the graph holds the tensor's
    own memory, and other tensors that were saved are left as they are."""
    with allowed():
        b, other = two().clone(), two().clone()
        saved: Any = b.pow(2).grad_fn
        spared: Any = other.pow(2).grad_fn
        b.mul(2)
        check.true("before a change it is the memory of the tensor", saved._saved_self.data_ptr() == b.data_ptr())
        b.mul_(2)
        check.true("after a change it is other memory", saved._saved_self.data_ptr() != b.data_ptr())
        check.equal("what is saved after a change", saved._saved_self, [2, 3])
        clone = saved._saved_self.data_ptr()
        b.mul_(2)
        check.true("a second change clones nothing", saved._saved_self.data_ptr() == clone)
        check.equal("the tensor that was changed", b.detach(), [8, 12])
        check.true("what is not changed stays", spared._saved_self.data_ptr() == other.data_ptr())


@program("AM-03", PROMISE, since="2.0", source=f"{ALLOW}; pytorch#145520")
def every_way_to_change_counts(check: Check) -> None:
    """In the context a saved tensor is cloned by whatever operation writes to it: a method in place, an ``out``
    argument, or an optimizer that updates all parameters at once."""
    with allowed():
        a, c = two(), constant(5.0, 7.0)
        y = (a * c).sum()
        torch.add(c, 1, out=c)
        y.backward()
        check.equal("written by an out argument", [c, a.grad], [[6, 8], [5, 7]])

        for name, foreach in (("one at a time", False), ("all at once", True)):
            a, b = two(), two(5.0, 7.0)
            y = (a * b).sum()
            a.grad, b.grad = torch.ones(2), torch.ones(2)
            step = torch.optim.SGD([a, b], lr=1.0, foreach=foreach).step
            check.works(f"a step, {name}", step)
            check.equal(f"parameters after a step, {name}", [a.detach(), b.detach()], [[1, 2], [4, 6]])
            a.grad = b.grad = None
            y.backward()
            check.equal(f"gradients of before a step, {name}", [a.grad, b.grad], [[5, 7], [2, 3]])


@program("AM-04", PROMISE, since="2.0", source=f"{ALLOW}; 'automatically cleared upon exiting'")
def nothing_is_left_of_it(check: Check) -> None:
    """On leaving the context, by an exception too, its state is cleared: to change a saved tensor is an error again,
    and what was saved in the context cannot be used outside of it."""

    def interrupted() -> None:
        with allowed():
            raise KeyError

    def change() -> None:
        b, y = squared(two())
        b.zero_()
        y.backward()

    with allowed():
        check.works("a change in the context", change)
        _, y = squared(two())
    check.raises("a change after the context", RuntimeError, change, "modified by an inplace operation")
    check.raises("backward after the context", AssertionError, y.backward, OUTSIDE)
    with allowed():
        check.raises("backward in another context", AssertionError, y.backward, OUTSIDE)
        check.works("a change in another context", change)
    with suppress(KeyError):
        interrupted()
    check.raises("a change after an exception", RuntimeError, change, "modified by an inplace operation")
    with allowed():
        check.works("a change in a context after an exception", change)

    alive: list[Any] = []

    def act(note: Note) -> None:
        with allowed():
            b, y = squared(two())
            c, z = squared(two())
            c.zero_()
            note("a saved tensor", b)
            note("one that was changed", c)
            clone = memory(z)
            alive.extend([y, z])
        check.true("the memory of a clone is gone with the context, though the graph is not", clone.expired())

    check.equal("saved tensors that outlive the context, though the graph does", survivors(act), [])


@program("AM-05", PIN, since="2.0", source=f"{ALLOW}; undocumented")
def what_is_not_needed_is_freed(check: Check) -> None:
    """Within the context nothing is kept alive of a graph that is gone, or that a backward went through, nor a tensor
    that was changed, of which the graph needs the clone alone."""
    graphs: list[Any] = []
    clones: list[Any] = []

    def dropped(note: Note) -> None:
        b, y = squared(two())
        note("saved tensor", b)
        del y

    def changed(note: Note) -> None:
        b, y = squared(two())
        b.zero_()
        note("saved tensor", b)
        clones.append(memory(y))
        y.backward()

    def changed_alone(note: Note) -> None:
        b, y = squared(two())
        b.zero_()
        note("saved tensor", b)
        graphs.append(y)

    with allowed():
        check.equal("after the graph", survivors(dropped), [])
        check.equal("after a change and a backward", survivors(changed), [])
        check.equal("memory of the clone after that: gone", [clone.expired() for clone in clones], [True])
        check.equal("after a change, though the graph is there", survivors(changed_alone), [])


@program("AM-06", PROMISE, since="2.0", source=f"{ALLOW}; pytorch#79056")
def it_cannot_be_nested(check: Check) -> None:
    """One such context within another is an error, which changes nothing for the outer one: what was saved in it can
    still be changed, and used in backward."""

    def nest() -> None:
        with allowed():
            pass

    with allowed():
        a = two()
        b, y = squared(a)
        check.raises("one within another", RuntimeError, nest, "cannot be nested")
        b.zero_()
        check.works("backward in the outer one after the error", y.backward)
        check.equal("gradient in the outer one after the error", a.grad, [4, 6])
    check.works("one after another", nest)


@program("AM-07", PROMISE, since="2.0", source=f"{ALLOW}; 'tensors saved for backward are cloned on mutation'")
def views_of_any_offset_count(check: Check) -> None:
    """A saved tensor is cloned before its memory is changed wherever in that memory the saved or the changed view
    begins."""

    def under_a_view(view: slice) -> Callable[[Any], Any]:
        def act(a: Any) -> Any:
            b = a.clone()
            y = b[view].pow(2)
            b.zero_()
            return y

        return act

    def through_a_view(view: slice) -> Callable[[Any], Any]:
        def act(a: Any) -> Any:
            b = a.clone()
            y = b.pow(2)
            b[view].zero_()
            return y

        return act

    first, second = slice(0, 1), slice(1, 2)
    with allowed():
        check.equal("a saved view that begins with the memory", gradient(under_a_view(first)), [4, 0])
        check.equal("a changed view that begins with the memory", gradient(through_a_view(first)), [4, 6])
        check.equal("a saved view that begins later", gradient(under_a_view(second)), [0, 6])
        check.equal("a changed view that begins later", gradient(through_a_view(second)), [4, 6])
