"""What is kept of the tensors that operations save, and where: by packing hooks, and by ``save_on_cpu``?

Within ``saved_tensors_hooks(pack, unpack)`` the graph keeps what ``pack`` returns and nothing else; ``save_on_cpu`` is
such a pair that keeps copies in the memory of the CPU.
"""

from __future__ import annotations

import ctypes
import math
import sys
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.garbage import Note, survivors
from hookcheck.probe.lazy import torch
from hookcheck.programs.chapters.saved_tensors_hooks import HOOKS, NOTE, Hook, hooked, logged, times, two
from hookcheck.programs.check import Check, NotRun
from hookcheck.programs.program import program

ON_CPU = "torch.autograd.graph.save_on_cpu"


@program("ST-02", PROMISE, since="1.10", source=HOOKS)
def the_graph_stores_what_pack_returns(check: Check) -> None:
    """The graph stores what the pack hook returns in the place of the tensor, which it does not keep alive."""
    a = two()
    with hooked(lambda tensor: tensor.tolist(), lambda packed: torch.tensor(packed, device=check.device)):
        b = a + 1
        y = b.pow(2).sum()
    original = weakref.ref(b)
    del b
    check.true("the tensor is freed", original() is None)
    y.backward()
    check.equal("gradient", a.grad, [6, 8])  # d (a + 1)**2 / da = 2 (a + 1)


@program("ST-15", PROMISE, since="1.10", source=NOTE)
def saved_attributes_are_new_objects(check: Check) -> None:
    """Without hooks a saved input is the very object that went in; with hooks it is a new tensor on the same memory."""
    a = two()
    bare: Any = a.pow(2).grad_fn
    check.true("without hooks it is the object", bare._saved_self is a)
    with hooked(lambda t: t):
        saved: Any = a.pow(2).grad_fn
    check.true("with hooks it is not", saved._saved_self is not a)
    check.true("with hooks it shares the memory", saved._saved_self.data_ptr() == a.data_ptr())
    check.equal("with hooks it has the values", saved._saved_self, [2, 3])


def outlives(pack: Hook, unpack: Hook, backward: Callable[[Any], Any]) -> bool:
    """Whether an operation that saves its output outlives that output, on which ``backward`` was called."""

    def act(note: Note) -> None:
        with hooked(pack, unpack):
            y = two().exp()
        backward(y)
        note("output", y)

    return bool(survivors(act))


def never(y: Any) -> None:
    """No backward."""


def once(y: Any) -> None:
    """A backward that frees what was saved."""
    y.sum().backward()


def retained(y: Any) -> None:
    """A backward that frees nothing."""
    y.sum().backward(retain_graph=True)


@program("ST-17", PROMISE, since="1.10", source=f"{HOOKS}, warning on reference cycles")
def a_detached_input_makes_no_cycle(check: Check) -> None:
    """A pack hook that keeps its input detached makes no cycle: the graph is freed although it was never
    backpropagated, or was retained; and detaching copies nothing."""
    for name, backward in (("without a backward", never), ("after a retained one", retained), ("after one", once)):
        check.true(f"freed {name}", not outlives(lambda t: t.detach(), lambda packed: packed, backward))
    inside = outlives(lambda t: ("inside", t.detach()), lambda packed: packed[1], never)
    check.true("freed where the tensor is inside of something", not inside)
    a = two()
    with hooked(lambda t: t.detach()):
        saved: Any = a.pow(2).grad_fn
    check.true("no copy is made", saved._saved_self.data_ptr() == a.data_ptr())


@program("ST-27", PIN, since="1.10", source=f"{HOOKS}, warning on reference cycles")
def a_live_input_is_never_freed(check: Check) -> None:
    """A pack hook that keeps an operation's output as it is makes a cycle that the garbage collector cannot free,
    unless a backward that retains nothing breaks it."""
    for name, backward in (("without a backward", never), ("after a retained one", retained)):
        check.true(f"kept {name}", outlives(lambda t: t, lambda packed: packed, backward))
    check.true("freed after one", not outlives(lambda t: t, lambda packed: packed, once))


@program("ST-28", PROMISE, since="1.10", source="pytorch#130734")
def unpack_may_leave_the_context(check: Check) -> None:
    """An unpack hook may leave the context of its own hooks: the unpacking goes on, and no reference to the hooks is
    lost, which would free them where torch still holds them."""
    log: list[str] = []

    def pack(tensor: Any) -> Any:
        return logged(log, "packs", tensor.detach())

    def unpack(packed: Any) -> Any:
        if "unpacks" not in log:
            context.__exit__(None, None, None)
        return logged(log, "unpacks", packed)

    for hook in (pack, unpack):  # a spare reference each: where one is lost, the process would crash
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(hook))
    context = hooked(pack, unpack)
    before = [sys.getrefcount(pack), sys.getrefcount(unpack)]
    a = two()
    context.__enter__()
    y = a.pow(2).pow(1).pow(3).sum()
    y.backward()
    check.order("what was called", log, ["packs"] * 3 + ["unpacks"] * 3)
    check.equal("gradient", a.grad, [192, 1458])  # of a**6: 6 a**5
    a.pow(2)
    if len(log) > 6:  # what was left inside of backward can be there again after it
        context.__exit__(None, None, None)
    del y
    check.equal("references to the hooks", [sys.getrefcount(pack), sys.getrefcount(unpack)], before)


@program("ST-22", PROMISE, since="1.10", source=ON_CPU)
def what_is_on_the_cpu_is_not_copied(check: Check) -> None:
    """``save_on_cpu`` keeps what is on the CPU as it is, without a copy."""
    a, b = (torch.tensor(values, device="cpu", requires_grad=True) for values in ([2.0, 3.0], [5.0, 7.0]))
    with torch.autograd.graph.save_on_cpu():
        y = times(a, b)
    saved: Any = y.grad_fn
    check.true("the memory is shared", saved._saved_self.data_ptr() == a.data_ptr())
    check.equal("what was saved", [saved._saved_self, saved._saved_other], [[2, 3], [5, 7]])
    y.sum().backward()
    check.equal("gradients", [a.grad, b.grad], [[5, 7], [2, 3]])


def _counted(*shape: int) -> Any:
    """A tensor of that shape: 0, 1, 2, …"""
    return torch.arange(float(math.prod(shape))).reshape(shape)


DENSE: dict[str, Callable[[], Any]] = {
    "a transposed one": lambda: _counted(2, 3).t(),
    "channels last": lambda: _counted(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
    "of whole numbers": lambda: _counted(2, 3).long(),
    "of truth values": lambda: _counted(2, 3) > 2,
    "of half precision": lambda: _counted(2, 3).half(),
    "of bfloat16": lambda: _counted(2, 3).bfloat16(),
    "of double precision": lambda: _counted(2, 3).double(),
    "of complex numbers": lambda: _counted(2, 3).to(torch.complex64).t(),
    "a conjugate view": lambda: (_counted(2, 3) * (1 + 1j)).conj(),
    "of no dimension": lambda: torch.tensor(3.0),
    "of no element": lambda: _counted(0, 3),
    "a sparse one": lambda: _counted(2, 3).to_sparse(),
}
"""Tensors whose strides a copy keeps, or that have none."""

SPREAD: dict[str, Callable[[], Any]] = {
    "an expanded one": lambda: _counted(1, 3).expand(4, 3),
    "every second element": lambda: _counted(12)[::2],
}
"""Tensors whose strides are kept where they are not copied."""


def _described(tensor: Any, strides: bool) -> list[Any]:
    """What a tensor is, and its numbers."""
    whole = tensor.to_dense() if tensor.layout is torch.sparse_coo else tensor
    words = [str(tensor.dtype), str(tensor.layout), tensor.device.type, tuple(tensor.shape)]
    return [*words, whole.stride() if strides else None, whole.tolist()]


def _read_in_backward(context: Any, tensor: Any) -> Any:
    """What the backward of a Function reads that saves ``tensor`` in the context."""
    log: list[Any] = []

    class Saving(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, other: Any) -> Any:
            ctx.save_for_backward(other)
            return x * 1

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            log.extend(ctx.saved_tensors)
            return gradients[0], None

    saving: Any = Saving.apply
    with context:
        y = saving(two(), tensor)
    y.sum().backward()
    return log[0]


@program("ST-30", PROMISE, since="1.10", source=f"{ON_CPU}, 'then copied back to the original device'; {NOTE}")
def what_is_given_back_is_as_it_was(check: Check) -> None:
    """What ``save_on_cpu`` gives back, and a pair of hooks that returns what it gets, is of the shape, dtype, layout
    and device of what was saved, with the same numbers; and of the same strides, but for pinned copies and for those
    that a copy between devices packs."""
    graph: Any = torch.autograd.graph
    contexts: dict[str, tuple[Callable[[], Any], bool]] = {
        "save_on_cpu": (graph.save_on_cpu, True),
        "save_on_cpu, pinned": (lambda: graph.save_on_cpu(pin_memory=True), False),
        "a pair of hooks": (lambda: hooked(lambda tensor: tensor, lambda packed: packed), True),
        "a pair with a detached one": (lambda: hooked(lambda tensor: tensor.detach(), lambda packed: packed), True),
    }
    for context, (enter, with_strides) in contexts.items():
        for name, make in {**DENSE, **SPREAD}.items():
            strides = with_strides and (name in DENSE or check.device == "cpu" or context != "save_on_cpu")
            tensor = make()
            given = check.works(f"{context}, {name}: backward", lambda t=tensor, c=enter: _read_in_backward(c(), t))
            if given is not None:
                check.equal(f"{context}, {name}", _described(given, strides), _described(tensor, strides))


LAYOUTS = ("a transposed one", "channels last", *SPREAD)
"""Those of these tensors whose strides are not those of a contiguous one."""


@program(
    "ST-31", PROMISE, since="1.10", source=f"{ON_CPU}, 'If the graph was already on CPU, no tensor copy is performed'"
)
def nothing_is_copied_on_the_cpu(check: Check) -> None:
    """Where the graph is on the CPU, ``save_on_cpu`` copies no tensor, whatever its strides, with ``pin_memory`` or
    without."""
    if check.device != "cpu":
        raise NotRun("it is about the CPU")
    for pinned in (False, True):
        for name in LAYOUTS:
            other = {**DENSE, **SPREAD}[name]()
            with torch.autograd.graph.save_on_cpu(pin_memory=pinned):
                y: Any = torch.ones(other.shape, requires_grad=True) * other
            saved, what = y.grad_fn._saved_other, f"{name}{', pinned' if pinned else ''}"
            check.true(f"{what}: the memory is shared", saved.data_ptr() == other.data_ptr())
            check.equal(f"{what}: strides", saved.stride(), other.stride())


@program("ST-32", PIN, since="1.10", source=f"{ON_CPU}, pin_memory")
def pinned_copies_are_contiguous(check: Check) -> None:
    """What ``save_on_cpu`` gives back with ``pin_memory`` is contiguous, whatever was saved, and so is the gradient
    that a hook gets of a product with it."""
    for name in LAYOUTS:
        tensor, strides = {**DENSE, **SPREAD}[name](), list[Any]()
        shape = tuple(tensor.shape)
        contiguous = tuple(math.prod(shape[place + 1 :]) for place in range(len(shape)))
        given = _read_in_backward(torch.autograd.graph.save_on_cpu(pin_memory=True), tensor)
        check.equal(f"{name}: strides of what is given back", given.stride(), contiguous)
        x = torch.ones(shape, requires_grad=True)
        x.register_hook(lambda gradient, strides=strides: strides.append(gradient.stride()))
        with torch.autograd.graph.save_on_cpu(pin_memory=True):
            y = x * tensor
        y.backward(torch.ones(shape))
        check.equal(f"{name}: strides of the gradient that the hook gets", strides, [contiguous])
        check.equal(f"{name}: gradient", x.grad, tensor.tolist())


@program("ST-29", PROMISE, since="1.10", source=ON_CPU, device="cuda")
def what_is_on_a_gpu_is_stored_on_the_cpu(check: Check) -> None:
    """``save_on_cpu`` keeps what is on a GPU in the memory of the CPU, and copies it back when backward needs it."""
    if not torch.cuda.is_available():
        raise NotRun("there is no GPU to save from")
    million = 1 << 20

    def left(context: Any) -> tuple[int, Any, Any]:
        a = torch.ones(million, device="cuda", requires_grad=True)
        before = torch.cuda.memory_allocated()
        with context:
            b = a + 1
            y = b.pow(2).sum()
        del b
        return torch.cuda.memory_allocated() - before, a, y

    memory, _, _ = left(torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), lambda packed: packed))
    check.true("on the GPU it takes memory", memory >= 4 * million)
    stored, a, y = left(torch.autograd.graph.save_on_cpu())
    check.true("on the CPU it takes none", stored < 4 * million)
    y.backward()
    check.true("the gradient is on the GPU", a.grad is not None and a.grad.is_cuda)
    check.equal("gradient", a.grad[:2], [4, 4])


@program("ST-23", PROMISE, since="1.10", source=f"{ON_CPU}, warning", device="cuda")
def pinned_copies_are_right_after_synchronizing(check: Check) -> None:
    """With ``pin_memory=True`` packing is asynchronous: what was saved may be read after a synchronization."""
    if not torch.cuda.is_available():
        raise NotRun("there is no GPU to save from")
    a = torch.tensor([2.0, 3.0], device="cuda", requires_grad=True)
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        y: Any = a.pow(2)
    torch.cuda.synchronize()
    saved: Any = y.grad_fn
    check.equal("what was saved", saved._saved_self, [2, 3])
    y.sum().backward()
    check.equal("gradient", a.grad, [4, 6])


@program("ST-33", PIN, since="1.10", source=f"{HOOKS}; torch.autograd.Function; pytorch#63485; pytorch#47117")
def saved_tensors_keep_their_class(check: Check) -> None:
    """A pack hook gets a tensor of the class that was saved, and backward reads one of that class: an input and an
    output, without hooks, with a pair that returns what it gets, and with ``save_on_cpu``."""

    class Marked(torch.Tensor):
        pass

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = 2 * x
            ctx.save_for_backward(x if saves == "an input" else y)
            return y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            read.extend(type(saved).__name__ for saved in ctx.saved_tensors)
            return 2 * grad

    def pack(tensor: Any) -> Any:
        packed.append(tensor)
        return tensor

    packed: list[Any] = []
    contexts: dict[str, Callable[[], Any]] = {
        "without hooks": lambda: nullcontext(),
        "a pair of hooks": lambda: hooked(pack),
        "save_on_cpu": lambda: torch.autograd.graph.save_on_cpu(),
    }
    for name, context in contexts.items():
        for saves in ("an input", "an output"):
            read: list[str] = []
            x = torch.ones(2, device=check.device).as_subclass(Marked).requires_grad_()
            with context():
                y: Any = Doubled.apply(x)
            y.sum().backward()
            check.equal(f"{name}: class of {saves} in backward", read, ["Marked"])
    check.equal("classes that the pack hook gets", [type(tensor).__name__ for tensor in packed], ["Marked", "Marked"])
