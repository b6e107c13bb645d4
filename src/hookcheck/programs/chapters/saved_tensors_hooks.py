"""What do the hooks promise that pack what operations save for backward, set by a context for all operations in it?

Autograd saves tensors in forward that backward needs. Within ``saved_tensors_hooks(pack, unpack)`` it stores
``pack(tensor)`` instead, which may be any object, and backward gets the tensor back as ``unpack(packed)``.
``disable_saved_tensors_hooks`` forbids such contexts.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE, UNSPECIFIED
from hookcheck.probe.lazy import torch
from hookcheck.programs.check import Check
from hookcheck.programs.checkpoints import REENTRANT, variants
from hookcheck.programs.host_changes import offered
from hookcheck.programs.program import program

HOOKS = "torch.autograd.graph.saved_tensors_hooks"
NOTE = f"{HOOKS}; notes on autograd, 'Hooks for saved tensors'"

Hook = Callable[[Any], Any]


def hooked(pack: Hook, unpack: Hook = lambda packed: packed) -> AbstractContextManager[Any]:
    """The context in which all that is saved goes through ``pack`` and ``unpack``."""
    return torch.autograd.graph.saved_tensors_hooks(pack, unpack)


def noting(log: list[Any]) -> Hook:
    """A pack hook that notes the values of what it gets and stores it detached."""

    def pack(tensor: Any) -> Any:
        log.append(tensor.tolist())
        return tensor.detach()

    return pack


def logged(log: list[Any], what: Any, result: Any) -> Any:
    """Notes something, and gives ``result``."""
    log.append(what)
    return result


def two(first: float = 2.0, second: float = 3.0) -> Any:
    """A leaf of two numbers."""
    return torch.tensor([first, second], requires_grad=True)


def times(a: Any, b: Any) -> Any:
    """The product of two leaves, an operation that saves both."""
    return torch.mul(a, b)


@program("ST-01", PROMISE, since="1.10", source=f"{HOOKS}; torch.autograd.function.FunctionCtx.save_for_backward")
def pack_runs_whenever_something_is_saved(check: Check) -> None:
    """In the context the pack hook runs each time that an operation saves a tensor for backward, be it torch's own or a
    custom Function."""

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            a, b = ctx.saved_tensors
            return gradients[0] * b, gradients[0] * a

    product: Any = Product.apply
    log: list[Any] = []
    a, b = two(), two(5.0, 7.0)

    def packed(make: Callable[[], Any]) -> list[Any]:
        log.clear()
        make()
        return sorted(log)

    with hooked(noting(log)):
        check.equal("packed by a product", packed(lambda: times(a, b)), [[2, 3], [5, 7]])
        check.equal("packed by a power", packed(lambda: torch.pow(a, 2)), [[2, 3]])
        check.equal("packed by a root", packed(lambda: torch.sqrt(torch.tensor([4.0], requires_grad=True))), [[2]])
        check.equal("packed by a custom Function", packed(lambda: product(a, b)), [[2, 3], [5, 7]])
        chosen = partial(a.index_select, 0, torch.tensor([1, 0]))
        check.equal("packed by index_select, which saves the index", packed(chosen), [[1, 0]])
        check.equal("packed by a sum, which needs nothing", packed(lambda: torch.add(a, b)), [])
        if offered((2, 0)):
            reentrant = partial(variants()[REENTRANT], torch.sin, a)
            check.equal("packed by a reentrant checkpoint", packed(reentrant), [[2, 3]])
        with torch.no_grad():
            check.equal("packed without grad mode", packed(lambda: times(a, b)), [])
        y = product(a, b)
    check.equal("packed outside the context", packed(lambda: times(a, b)), [])
    seen: list[Any] = []
    context = hooked(lambda t: logged(seen, (t.dim(), t.requires_grad), t.detach()))
    for leaf in (two(), torch.tensor(2.0, requires_grad=True)):
        with context:
            leaf.pow(2)
    check.equal(
        "what one context packs in turn: dimensions, and whether it requires grad", seen, [(1, True), (0, True)]
    )
    y.sum().backward()
    check.equal("gradients that a custom Function makes of it", [a.grad, b.grad], [[5, 7], [2, 3]])


@program("ST-03", PROMISE, since="1.10", source=NOTE)
def unpack_gets_what_pack_returned(check: Check) -> None:
    """The unpack hook gets the very object that the pack hook returned, and must give a tensor of the same content."""
    packed: list[Any] = []
    unpacked: list[Any] = []

    def pack(tensor: Any) -> Any:
        packed.append([tensor.detach()])
        return packed[-1]

    def unpack(box: Any) -> Any:
        unpacked.append(box)
        return box[0]

    def giving(result: Any) -> Hook:
        return lambda packed: result

    a, b = two(), two(5.0, 7.0)
    with hooked(pack, unpack):
        y = times(a, b).sum()
    y.backward()
    check.calls("unpack hook", len(unpacked), 2)
    check.true("each is an object that was packed", {*map(id, unpacked)} == {*map(id, packed)})
    check.equal("gradients", [a.grad, b.grad], [[5, 7], [2, 3]])
    for name, result in (("None", None), ("a number", 1.0), ("a list", [1.0, 1.0])):
        with hooked(lambda tensor: tensor.detach(), giving(result)):
            y = a.pow(2).sum()
        check.raises(f"unpack that returns {name}", TypeError, y.backward, "Tensor")


@program("ST-04", PROMISE, since="1.10", source=NOTE)
def pack_takes_a_tensor_and_returns_anything(check: Check) -> None:
    """The pack hook takes one tensor and may return any Python object."""
    calls: list[Any] = []

    def gradient(pack: Hook, unpack: Hook) -> Any:
        def noted(*args: Any, **kwargs: Any) -> Any:
            calls.append((len(args), len(kwargs), isinstance(args[0], torch.Tensor)))
            return pack(*args, **kwargs)

        a = two()
        with hooked(noted, unpack):
            y = a.pow(2).sum()
        y.backward()
        return a.grad

    stored: dict[str, Any] = {}
    check.equal("gradient by a tuple", gradient(lambda t: (1, t.detach()), lambda packed: packed[1]), [4, 6])
    check.equal("gradient by a dict", gradient(lambda t: {"t": t.detach()}, lambda packed: packed["t"]), [4, 6])
    name = gradient(lambda t: stored.update(t=t.detach()) or "t", lambda packed: stored[packed])
    check.equal("gradient by a string", name, [4, 6])
    check.equal("gradient by a function", gradient(lambda t: lambda: t.detach(), lambda packed: packed()), [4, 6])
    unpacked: list[Any] = []
    nothing = gradient(lambda t: stored.update(t=t.detach()), lambda packed: unpacked.append(packed) or stored["t"])
    check.equal("gradient by None", nothing, [4, 6])
    check.equal("what is unpacked by None", unpacked, [None])
    check.equal("what pack was called with", calls, [(1, 0, True)] * 5)


@program("ST-05", PROMISE, since="1.10", source=NOTE)
def metadata_of_what_unpack_gives_are_overwritten(check: Check) -> None:
    """What the unpack hook gives counts by its content alone: it gets the ``requires_grad`` and the ``grad_fn`` of the
    tensor that was saved."""
    log: list[None] = []
    a, c = two(), torch.tensor([5.0, 7.0])
    with hooked(
        lambda t: t.tolist(),
        lambda packed: logged(log, None, torch.tensor(packed, device=check.device, requires_grad=True)),
    ):
        b = a + 0
        y = b.pow(3)
        z = times(a, c)
    saved: Any = y.grad_fn
    check.true("grad_fn of the saved tensor", saved._saved_self.grad_fn is b.grad_fn)
    saved = z.grad_fn
    check.true("a saved tensor that needs no gradient needs none", not saved._saved_other.requires_grad)
    (first,) = torch.autograd.grad(y.sum(), a, create_graph=True)
    check.equal("first derivative of a cube", first, [12, 27])
    (second,) = torch.autograd.grad(first.sum(), a)
    check.equal("second derivative of a cube", second, [12, 18])
    check.calls("unpack hook", len(log), 3)


@program("ST-06", PROMISE, since="1.10", source=NOTE)
def pack_is_called_once_a_saved_tensor(check: Check) -> None:
    """The pack hook is called exactly once for each saved tensor, however often that is unpacked."""
    log: list[Any] = []
    a, b = two(), two(5.0, 7.0)
    with hooked(noting(log)):
        y = times(a, b)
    check.calls("after forward", len(log), 2)
    saved: Any = y.grad_fn
    saved._saved_self, saved._saved_other  # noqa: B018 -- the attributes unpack
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    check.calls("after two accesses and two backwards", len(log), 2)


@program("ST-07", PROMISE, since="1.10", source=NOTE)
def unpack_is_called_any_number_of_times(check: Check) -> None:
    """The unpack hook is called each time that the saved tensor is needed: twice by two backwards, once by an access of
    the attribute."""
    log: list[Any] = []
    a = two()
    with hooked(lambda t: t.tolist(), lambda packed: logged(log, None, torch.tensor(packed, device=check.device))):
        y = a.pow(2)
    saved: Any = y.grad_fn
    check.equal("the attribute", saved._saved_self, [2, 3])
    y.sum().backward(retain_graph=True)
    check.equal("gradient of the first backward", a.grad, [4, 6])
    y.sum().backward()
    check.equal("gradient of both backwards", a.grad, [8, 12])
    check.calls("unpack hook", len(log), 3)


@program("ST-08", PROMISE, since="1.10", source=f"{NOTE}, warning")
def changing_what_pack_gets_raises(check: Check) -> None:
    """That a pack hook changes its input in place is detected, and is an error."""
    b = two() + 1
    with hooked(lambda t: t.mul_(2)):
        check.raises("a change in place", RuntimeError, lambda: b.pow(2), "pack hook is modifying its input")
    with hooked(lambda t: t.detach().mul_(2)):
        check.raises("a change of what shares its memory", RuntimeError, lambda: b.pow(2), "modifying its input")
    with hooked(lambda t: t.clone().mul_(2)):
        check.works("a change of a copy", lambda: b.pow(2))


@program("ST-09", PIN, since="1.10", source=f"{NOTE}, warning")
def changing_what_unpack_gets_goes_unnoticed(check: Check) -> None:
    """That an unpack hook changes its input in place is forbidden and not detected: gradients are silently wrong, and
    wrong otherwise the next time."""
    a = two()
    with hooked(lambda t: t.detach().clone(), lambda packed: packed.mul_(10)):
        y = a.pow(2).sum()
    check.works("the first backward", lambda: y.backward(retain_graph=True))
    check.equal("gradient of the first backward", a.grad, [40, 60])  # 2 * (10 a)
    a.grad = None
    check.works("the second backward", y.backward)
    check.equal("gradient of the second backward", a.grad, [400, 600])  # 2 * (100 a)


@program("ST-13", PROMISE, since="1.10", source=f"{HOOKS}, warning on nesting")
def the_innermost_pair_applies(check: Check) -> None:
    """Only one pair of hooks applies at a time: of nested contexts the innermost."""
    outer: list[Any] = []
    inner: list[Any] = []
    a = two()

    def nested() -> None:
        with hooked(noting(outer)):
            with hooked(noting(inner)):
                a.pow(2)
            check.equal("packed by the inner pair", inner, [[2, 3]])
            check.equal("packed by the outer pair meanwhile", outer, [])
            (a + 1).pow(2)
            check.equal("packed by the outer pair after the inner", [outer, inner], [[[3, 4]], [[2, 3]]])

    check.works("nesting", nested)


@program("ST-18", PROMISE, since="1.10", source=NOTE)
def pack_runs_without_grad_mode(check: Check) -> None:
    """The pack hook runs with grad mode off, so that what it computes is not recorded, and leaves it on."""
    modes: list[Any] = []

    def pack(tensor: Any) -> Any:
        modes.append([torch.is_grad_enabled(), (tensor + 1).requires_grad])
        return tensor.detach()

    with hooked(pack):
        y = (two() + 1).pow(2)
        check.true("grad mode after it", torch.is_grad_enabled() and y.requires_grad)
    check.equal("grad mode in it, and whether an operation is recorded", modes, [[False, False]])


@program("ST-19", UNSPECIFIED, since="1.10", source=f"{HOOKS}, note on the order")
def unpack_goes_backwards(check: Check) -> None:
    """Unpack hooks are called in the reverse order of the pack hooks."""
    packed: list[Any] = []
    unpacked: list[Any] = []
    with hooked(noting(packed), lambda t: logged(unpacked, t.tolist(), t)):
        a, b = two(), two(5.0, 7.0)
        y = times(a, b).pow(2).sum()
    y.backward()
    check.calls("unpack hook", len(unpacked), 3)
    check.order("what was unpacked", unpacked, packed[::-1])


@program("ST-20", PROMISE, since="1.10", source=HOOKS)
def backward_uses_the_hooks_of_forward(check: Check) -> None:
    """The hooks in whose context the tensor was saved unpack it in backward, whatever context that runs in."""
    log: list[Any] = []

    def pair(name: str) -> AbstractContextManager[Any]:
        def pack(tensor: Any) -> Any:
            log.append(f"{name} packs")
            return tensor.detach()

        def unpack(packed: Any) -> Any:
            log.append(f"{name} unpacks")
            return packed

        return hooked(pack, unpack)

    a = two()
    with pair("first"):
        y = a.pow(2).sum()
    y.backward(retain_graph=True)
    check.order("backward outside any context", log, ["first packs", "first unpacks"])
    log.clear()
    with pair("second"):
        y.backward()
    check.order("backward in another context", log, ["first unpacks"])
    log.clear()
    y = a.pow(2).sum()
    with pair("third"):
        y.backward()
    check.order("backward of what was saved without hooks", log, [])
    check.equal("gradient of the three", a.grad, [12, 18])


@program("ST-21", PROMISE, since="1.13", source="torch.autograd.graph.disable_saved_tensors_hooks")
def they_can_be_disabled_with_a_message(check: Check) -> None:
    """``disable_saved_tensors_hooks`` has every use of the context raise a RuntimeError of exactly its message, until
    it is left."""
    disabled = torch.autograd.graph.disable_saved_tensors_hooks

    def message(outer: Callable[[], Any], inner: Callable[[], Any]) -> str:
        try:
            with outer(), inner():
                two().pow(2)
        except RuntimeError as raised:
            return str(raised)
        return "no error"

    def packing() -> Any:
        return hooked(lambda t: t.detach())

    check.equal("hooks where they are disabled", message(lambda: disabled("not here"), packing), "not here")
    check.equal("disabling them where they are set", message(packing, lambda: disabled("not now")), "not now")
    with disabled("outer"):
        with disabled("inner"):
            check.equal("two messages", message(packing, packing), "inner")
        check.equal("the outer one after the inner", message(packing, packing), "outer")
    log: list[Any] = []
    with hooked(noting(log)):
        two().pow(2)
    check.equal("packed after all that", log, [[2, 3]])


@program("ST-25", PROMISE, since="1.10", source="pytorch#94456")
def exceptions_keep_their_type(check: Check) -> None:
    """An exception that a hook for saved tensors raises reaches the caller as it is."""

    class Odd(Exception):
        pass

    def refuse(_: Any) -> Any:
        raise Odd("refused")

    a = two()
    with hooked(refuse):
        check.raises("pack", Odd, lambda: a.pow(2), "refused")
    with hooked(lambda t: t.detach(), refuse):
        y = a.pow(2)
    check.raises("unpack in backward", Odd, y.sum().backward, "refused")
    saved: Any = y.grad_fn
    check.raises("unpack by the attribute", Odd, lambda: saved._saved_self, "refused")
    check.works("a backward after all that", a.pow(2).sum().backward)


@program("ST-26", PROMISE, since="1.10", source="pytorch#60975")
def leaves_are_packed_and_unpacked_too(check: Check) -> None:
    """Leaves that an operation saves are packed like other tensors, and each backward unpacks as many as forward
    packed."""
    packed: list[Any] = []
    unpacked: list[Any] = []
    a, b = two(), two(5.0, 7.0)
    with hooked(noting(packed), lambda t: logged(unpacked, t.tolist(), t)):
        y = (times(a, b) * a.pow(2)).sum()
    check.calls("pack hook", len(packed), 5)  # a, b; a; and both factors of the product
    y.backward(retain_graph=True)
    check.equal("unpacked by the first backward", sorted(unpacked), sorted(packed))
    unpacked.clear()
    y.backward()
    check.equal("unpacked by the second backward", sorted(unpacked), sorted(packed))
    # y = a**3 b: 3 a**2 b and a**3, twice
    check.equal("gradients of both", [a.grad, b.grad], [[120, 378], [16, 54]])
