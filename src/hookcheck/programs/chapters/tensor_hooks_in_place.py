"""What do hooks on tensors promise if a tensor is changed in place: of which of its values is the gradient?

A change in place gives a tensor a new value and a new ``grad_fn``. Hooks that were registered before it belong to the
value before, those registered after it to the value after.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import torch
from hookcheck.programs.check import Check
from hookcheck.programs.program import program

EXECUTION = "torch.Tensor.register_hook; notes on autograd, 'Behavior of Tensor hooks when Tensor is modified in-place'"


@program("IP-01", PROMISE, since="1.7", source=EXECUTION)
def gets_the_gradient_of_the_value_at_backward(check: Check) -> None:
    """A hook on a tensor gets the gradient with respect to the value that the tensor has when backward runs."""
    x = torch.tensor([3.0], requires_grad=True)
    y = 2 * x
    y.mul_(5)
    log: list[Any] = []
    y.register_hook(lambda grad: log.append(("y", y.tolist(), grad.tolist())))
    x.register_hook(lambda grad: log.append(("x", x.tolist(), grad.tolist())))
    (y * y).backward()
    expected = [("y", [30.0], [60.0]), ("x", [3.0], [600.0])]  # 2 y, and 2 y · 5 · 2
    check.order("value and gradient that each hook sees", log, expected)


@program("IP-02", PROMISE, since="1.7", source=EXECUTION)
def registered_before_the_change(check: Check) -> None:
    """A hook that was registered before a change in place gets the gradient with respect to the value before it."""
    seen: list[Any] = []
    y = torch.tensor([1.0], requires_grad=True).sin()
    y.register_hook(lambda grad: seen.append(grad.tolist()))
    y.cos_()
    y.backward()
    check.equal("gradient where sin was followed by cos_", seen, [[-math.sin(math.sin(1.0))]])

    seen.clear()
    x = torch.tensor([1.0], requires_grad=True)
    y = 2 * x
    y.register_hook(lambda grad: seen.append(grad.tolist()))
    before = 3 * y
    y.mul_(5)
    (before + y).backward()
    check.equal("gradient where the value before is used besides", seen, [[8.0]])  # 3 + 5

    z = 2 * x
    z.register_hook(lambda grad: 10 * grad)
    z.mul_(5)
    check.equal("gradient of the leaf if the hook replaces its own", torch.autograd.grad(z, x), ([100],))  # 5 · 10 · 2


@program("IP-03", PROMISE, since="1.7", source=EXECUTION)
def registered_after_all_changes(check: Check) -> None:
    """A hook that is registered after all changes in place gets the gradient with respect to the final value."""
    seen: list[Any] = []
    x = torch.tensor([1.0], requires_grad=True)
    y = 2 * x
    y.mul_(5)
    y.add_(1)
    y.mul_(7)
    y.register_hook(lambda grad: seen.append(grad.tolist()))
    y.register_hook(lambda grad: 10 * grad)
    (3 * y).backward()
    check.equal("gradient after three changes", seen, [[3.0]])
    check.equal("gradient of the leaf if another hook replaces it", x.grad, [2100])  # 3 · 10 · 7 · 5 · 2


@program("IP-04", PROMISE, since="1.7", source=EXECUTION)
def stays_with_its_grad_fn(check: Check) -> None:
    """A hook is bound to the grad_fn that its tensor has at registration, and does not follow it to a new one."""
    log: list[Any] = []
    x = torch.tensor([1.0], requires_grad=True)
    y = 2 * x
    handles = []
    for name in ("before", "between", "after"):
        handles.append(y.register_hook(lambda grad, name=name: log.append((name, grad.tolist()))))
        if name != "after":
            y.mul_(5)
    y.backward(retain_graph=True)
    due = [("after", [1.0]), ("between", [5.0]), ("before", [25.0])]
    check.order("hooks registered before, between and after two changes", log, due)
    log.clear()
    handles[0].remove()
    y.backward(retain_graph=True)
    check.order("hooks left when the first of them was removed", log, due[:2])
    log.clear()
    torch.autograd.grad(y, y)
    check.order("hooks for the gradient of the final value alone", log, due[:1])


@program("U-24", PIN, since="1.7", source=EXECUTION)
def on_a_view_that_is_changed(check: Check) -> None:
    """A hook on a view is not called if the view is changed in place afterwards."""
    for name, view in {"a slice": lambda base: base[:2], "a reshaped base": lambda base: base.view(2, 2)}.items():
        log: list[str] = []
        x = torch.ones(4, requires_grad=True)
        changed = view(1 * x)
        changed.register_hook(lambda grad: log.append("before"))  # noqa: B023
        changed.mul_(3)
        changed.register_hook(lambda grad: log.append("after"))  # noqa: B023
        changed.sum().backward()
        check.calls(f"calls of a hook on {name} that was registered before the change", log.count("before"), 0)
        check.calls(f"calls of a hook on {name} that was registered after it", log.count("after"), 1)


@program("IP-05", PROMISE, since="1.7", source="pytorch#79996")
def retain_grad_is_of_the_final_value(check: Check) -> None:
    """``retain_grad`` before a change in place keeps the gradient of the tensor as it is after the change."""
    y = 2 * torch.tensor([1.0], requires_grad=True)
    y.retain_grad()
    y.mul_(5)
    y.backward()
    check.equal("gradient", y.grad, [1])


@program("IP-06", PROMISE, since="1.7", source="pytorch#79996")
def each_hook_has_the_gradient_of_its_value(check: Check) -> None:
    """Of two hooks around ``mul_(5)``, the one registered after it gets the gradient 1, the one before it gets 5."""
    seen: dict[str, Any] = {}
    y = 2 * torch.tensor([1.0], requires_grad=True)
    y.register_hook(lambda grad: seen.update(before=grad.tolist()))
    y.mul_(5)
    y.register_hook(lambda grad: seen.update(after=grad.tolist()))
    y.backward()
    check.equal("gradient of the value after", seen.get("after"), [1.0])
    check.equal("gradient of the value before", seen.get("before"), [5.0])


@program("IP-07", PROMISE, since="1.7", source="pytorch#196459", alone=True)
def on_a_view_whose_base_was_changed(check: Check) -> None:
    """A hook registered on a view after its base was changed in place is called with the view's gradient."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    base = 1 * x
    view = base[:1]
    base.mul_(3)
    seen: list[Any] = []
    view.register_hook(lambda grad: seen.append(grad.tolist()))
    (5 * view).sum().backward()
    check.equal("gradients that the hook gets", seen, [[5.0]])
    check.equal("gradient of the leaf", x.grad, [15, 0])


@program("IP-08", PROMISE, since="1.7", source="pytorch#79996; pytorch#117366; pytorch#8874")
def retain_grad_through_another_view(check: Check) -> None:
    """``retain_grad`` keeps the gradient of the tensor as it is after a change through another view of its memory."""

    def retained(make: Any) -> tuple[Any, Any]:
        base = 1 * torch.ones(4, requires_grad=True)
        tensor = make(base)
        tensor.retain_grad()
        return base, tensor

    base, _ = retained(lambda base: base)
    base[:2].mul_(2)
    base.sum().backward()
    check.equal("gradient of a base that was changed through a view", base.grad, [1, 1, 1, 1])
    base, view = retained(lambda base: base[2:])
    base[:1].mul_(2)
    (3 * view).sum().backward()
    check.equal("gradient of a view whose base was changed elsewhere", view.grad, [3, 3])


@program("IP-09", PIN, since="1.7", source=f"{EXECUTION}; pytorch#8874; pytorch#181832")
def hooks_on_a_view_of_what_is_changed(check: Check) -> None:
    """Once its memory was changed, a view has a new ``grad_fn``, and so has each view that was made of it: a hook that
    was on the view before is called only for what was computed of it before the change."""
    uses = {
        "computed before the change": (lambda view: 3 * view, lambda earlier, view: earlier, 1),
        "computed after it": (lambda view: None, lambda earlier, view: 3 * view, 0),
        "a view of it, made before": (lambda view: view[1:], lambda earlier, view: earlier, 0),
    }
    for name, (before, after, calls) in uses.items():
        log: list[Any] = []
        base = 1 * torch.ones(4, requires_grad=True)
        view = base[2:]
        view.register_hook(lambda grad: log.append(grad))  # noqa: B023
        earlier = before(view)
        base[:1].mul_(2)
        after(earlier, view).sum().backward()
        check.calls(f"calls for {name}", len(log), calls)


@program("IP-10", PROMISE, since="1.7", source=f"{EXECUTION}; pytorch#96908")
def changes_of_shape_in_place(check: Check) -> None:
    """Where an operation changes a tensor's shape in place, a hook that was registered before it gets the gradient in
    the shape before; one that is registered after it, alone or beside others, and ``retain_grad`` in that after."""
    changes: dict[str, tuple[int, ...]] = {"t_": (), "transpose_": (0, 1), "unsqueeze_": (0,)}
    due = {"t_": [3, 2], "transpose_": [3, 2], "unsqueeze_": [1, 2, 3]}
    for name, arguments in changes.items():
        before: list[int] = []
        beside: list[int] = []
        hooked = 1 * torch.ones(2, 3, requires_grad=True)
        hooked.register_hook(lambda grad, before=before: before.extend(grad.shape))
        getattr(hooked, name)(*arguments)
        hooked.register_hook(lambda grad, beside=beside: beside.extend(grad.shape))
        hooked.sum().backward()
        check.equal(f"{name}: shape in a hook from before it", before, [2, 3])
        check.equal(f"{name}: shape in a hook from after it, beside another", beside, due[name])
        alone: list[int] = []
        changed = 1 * torch.ones(2, 3, requires_grad=True)
        getattr(changed, name)(*arguments)
        changed.register_hook(lambda grad, alone=alone: alone.extend(grad.shape))
        changed.sum().backward()
        check.equal(f"{name}: shape in a hook from after it, alone", alone, due[name])
        # Of old, retain_grad was Python code, which refuses a gradient of another shape; 1.10 is known to be past that.
        if hasattr(torch.autograd, "graph"):
            retained: Any = 1 * torch.ones(2, 3, requires_grad=True)
            retained.retain_grad()
            getattr(retained, name)(*arguments)
            retained.sum().backward()
            check.equal(f"{name}: shape of what is retained", list(retained.grad.shape), due[name])


SWAPS: dict[str, Callable[[Any], object]] = {
    "set_": lambda alias: alias.set_(torch.ones(2)),
    "an assigned .data": lambda alias: setattr(alias, "data", torch.ones(2)),
    "unsqueeze_": lambda alias: alias.unsqueeze_(0),
}
"""What gives an alias other memory or another shape, and leaves the numbers of the tensor as they are."""


@program("IP-13", PIN, since="1.13", source="torch.Tensor.set_; torch.Tensor.detach; pytorch#97500")
def aliases_that_go_their_own_way(check: Check) -> None:
    """A tensor keeps its Node, with the hooks on both, when a detached alias gets other memory or another shape."""
    for name, swap in SWAPS.items():
        for alias in ("detach()", ".data"):
            for view in (True, False):
                x, log = torch.tensor([2.0, 3.0], requires_grad=True), list[str]()
                y = x.view(-1) if view else 1 * x
                y.register_hook(lambda gradient, log=log: log.append("tensor"))
                y.grad_fn.register_hook(lambda *gradients, log=log: log.append("Node"))
                with torch.no_grad():
                    swap(y.detach() if alias == "detach()" else y.data)
                y.sum().backward()
                what = f"{name} on {alias} of a {'view' if view else 'result'}"
                check.order(f"{what}: hooks that run", log, ["tensor", "Node"])
