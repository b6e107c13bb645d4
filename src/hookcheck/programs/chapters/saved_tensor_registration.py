"""What do the hooks promise that are registered on one tensor that an operation has saved?

The node of an operation shows what it saved as ``grad_fn._saved_self`` and the like, and the place where it is kept as
``grad_fn._raw_saved_self``, on which ``register_hooks(pack, unpack)`` sets a pair for that tensor alone.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE, UNSPECIFIED
from hookcheck.probe.lazy import torch
from hookcheck.programs.chapters.saved_tensors_hooks import hooked, logged, noting, times, two
from hookcheck.programs.check import Check
from hookcheck.programs.program import program

NOTE = "notes on autograd, 'Registering hooks on a saved tensor'"


def square(a: Any) -> Any:
    """``a`` squared: an operation that saves ``a`` alone."""
    return torch.pow(a, 2)


@program("ST-10", PROMISE, since="1.10", source=NOTE)
def pack_is_called_on_registration(check: Check) -> None:
    """Hooks are set on one saved tensor through its ``_raw_saved_`` attribute, and the pack hook is called at once."""
    packed: list[Any] = []
    unpacked: list[Any] = []
    a, b = two(), two(5.0, 7.0)
    y = times(a, b)
    saved: Any = y.grad_fn
    saved._raw_saved_other.register_hooks(noting(packed), lambda t: logged(unpacked, None, t * 10))
    check.equal("packed on registration", packed, [[5, 7]])
    check.calls("unpack hook on registration", len(unpacked), 0)
    y.sum().backward()
    check.equal("packed in all", packed, [[5, 7]])
    check.calls("unpack hook in backward", len(unpacked), 1)
    # What unpack gives is taken for the saved tensor: b times 10 is the factor of a's gradient alone.
    check.equal("gradients", [a.grad, b.grad], [[50, 70], [2, 3]])


@program("ST-11", PROMISE, since="1.10", source=NOTE)
def unpack_is_called_when_the_tensor_is_read(check: Check) -> None:
    """The unpack hook is called each time that the attribute ``_saved_`` is read, and during backward."""
    log: list[str] = []
    a = two()
    y = square(a)
    saved: Any = y.grad_fn
    saved._raw_saved_self.register_hooks(
        lambda t: t.tolist(), lambda p: logged(log, "unpacked", torch.tensor(p, device=check.device))
    )
    saved._raw_saved_self  # noqa: B018 -- this attribute does not unpack
    check.calls("after the raw attribute is read", len(log), 0)
    check.equal("the attribute", saved._saved_self, [2, 3])
    check.calls("after the attribute is read", len(log), 1)
    saved._saved_self  # noqa: B018 -- this one does
    check.calls("after it is read again", len(log), 2)
    y.sum().backward()
    check.calls("after backward", len(log), 3)
    check.equal("gradient", a.grad, [4, 6])


@program("ST-12", UNSPECIFIED, since="1.10", source=f"{NOTE}, warning")
def registering_after_the_release_raises(check: Check) -> None:
    """Registering hooks on a saved tensor that was released raises."""
    y = square(two())
    saved: Any = y.grad_fn
    raw = saved._raw_saved_self
    y.sum().backward()
    register = partial(raw.register_hooks, lambda t: t, lambda packed: packed)
    check.raises("registration after a backward", RuntimeError, register, "after it has been freed")


@program("ST-16", PROMISE, since="1.10", source=f"{NOTE}; torch.autograd.graph.saved_tensors_hooks")
def pack_gets_the_tensor_live_or_detached(check: Check) -> None:
    """In the context form the pack hook gets the live tensor, with its ``grad_fn``; registered on one saved tensor it
    gets a detached one. Either way what is unpacked is as live as what was saved."""
    seen: list[Any] = []

    def pack(tensor: Any) -> Any:
        seen.append(tensor.grad_fn)
        return tensor.detach()

    b = two() + torch.tensor(1.0)
    with hooked(pack):
        inside: Any = square(b).grad_fn
    check.true("in the context", len(seen) == 1 and seen[0] is b.grad_fn)
    check.true("unpacked of the context", inside._saved_self.grad_fn is b.grad_fn)
    seen.clear()
    alone: Any = square(b).grad_fn
    alone._raw_saved_self.register_hooks(pack, lambda packed: packed)
    check.equal("on one saved tensor", seen, [None])
    check.true("unpacked of the saved tensor", alone._saved_self.grad_fn is b.grad_fn)


@program(
    "ST-35", PIN, since="2.0", source="torch.autograd.graph.saved_tensors_hooks; Node.register_prehook; pytorch#198014"
)
def nodes_unpack_what_they_saved_themselves(check: Check) -> None:
    """In backward each saved tensor is unpacked by the Node that saved it, between the pre-hooks of that and its hooks:
    so the order of unpacking is that in which Nodes run, and not the reverse of packing."""
    for name, function, due in (
        ("a chain", lambda x: x.sin().exp(), {"SinBackward0": 1, "ExpBackward0": 1}),
        ("two branches", lambda x: x.exp() * x.sin(), {"ExpBackward0": 1, "SinBackward0": 1, "MulBackward0": 2}),
        ("one branch twice", lambda x: x.sin().exp() + x.exp(), {"SinBackward0": 1, "ExpBackward0": 2}),
    ):
        running, seen, x = list[str](), list[str](), two()
        with hooked(lambda tensor: tensor, lambda packed, seen=seen, now=running: (seen.append(now[-1]), packed)[1]):
            y = function(x)
        reached = [y.grad_fn]
        for node in reached:
            reached += [above for above, _ in node.next_functions if above is not None and above not in reached]
            node.register_prehook(lambda gradients, node=node, now=running: now.append(node.name()))
            node.register_hook(lambda *gradients, now=running: now.append("no Node"))
        running.append("no Node")
        y.sum().backward()
        check.equal(f"{name}: by which Nodes", {node: seen.count(node) for node in sorted(set(seen))}, due)
        check.calls(f"{name}: how often", len(seen), sum(due.values()))
