"""What comes of backward hooks that act: what they return goes on to the next hook, the weights and all that is before.

Every net is a chain of scalar factors, so that each gradient is a product that can be worked out on sight.

Several hooks pass a gradient on to each other, pre-hooks pass it to full hooks, children to their containers. In the
end every weight and every input must have the gradient that follows from what was returned, and no other.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from hookcheck.contract.clause import PROMISE
from hookcheck.probe.lazy import torch
from hookcheck.programs.check import Check
from hookcheck.programs.nets import leaf, net, times, weighted
from hookcheck.programs.program import program

FULL = "torch.nn.Module.register_full_backward_hook"
PRE = "torch.nn.Module.register_full_backward_pre_hook"
GLOBAL = "torch.nn.modules.module.register_module_full_backward_hook"
GLOBAL_PRE = "torch.nn.modules.module.register_module_full_backward_pre_hook"


class Acting:
    """Full hooks and pre-hooks that change a gradient, and note what they were given."""

    def __init__(self) -> None:
        """No hook was called yet."""
        self.seen: list[tuple[str, float]] = []

    def full(self, name: str, change: Any) -> Any:
        """A full hook that returns ``change(grad_input)``."""
        return lambda module, grad_input, grad_output: self._act(name, change, grad_input)

    def pre(self, name: str, change: Any) -> Any:
        """A pre-hook that returns ``change(grad_output)``."""
        return lambda module, grad_output: self._act(name, change, grad_output)

    def _act(self, name: str, change: Any, gradients: Any) -> Any:
        self.seen.append((name, gradients[0].item()))
        changed = change(gradients[0])
        return None if changed is None else (changed,)

    def take(self) -> list[tuple[str, float]]:
        """What was noted since the last time."""
        seen, self.seen = self.seen, []
        return seen


def add_one(gradient: Any) -> Any:
    """Does not commute with `ten_times`."""
    return gradient + 1


def ten_times(gradient: Any) -> Any:
    """Does not commute with `add_one`."""
    return 10 * gradient


def nothing(gradient: Any) -> None:
    """Leaves the gradient alone."""


def globally(hook: Any) -> Any:
    """A full hook of all modules."""
    return torch.nn.modules.module.register_module_full_backward_hook(hook)


def globally_before(hook: Any) -> Any:
    """A pre-hook of all modules."""
    return torch.nn.modules.module.register_module_full_backward_pre_hook(hook)


@program("AC-01", PROMISE, since="1.8", source=f"{FULL}; {GLOBAL}")
def full_hooks_in_a_chain(check: Check) -> None:
    """Each of several full backward hooks is given the grad_input that the one before it returned, global first."""
    acting, tripled = Acting(), times(3.0)

    def run(name: str, expected: list[tuple[str, float]], result: float) -> None:
        x = leaf(1.0)
        tripled(2 * x).sum().backward()
        check.equal(f"what hooks saw, {name}", acting.take(), expected)
        check.equal(f"gradient of the input, {name}", x.grad, [2 * result])

    tripled.register_full_backward_hook(acting.full("a", add_one))
    last = tripled.register_full_backward_hook(acting.full("b", ten_times))
    run("two", [("a", 3), ("b", 4)], 40)
    tripled.register_full_backward_hook(acting.full("c", nothing))
    tripled.register_full_backward_hook(acting.full("d", add_one))
    run("four of which one returns None", [("a", 3), ("b", 4), ("c", 40), ("d", 40)], 41)
    with globally(acting.full("G", ten_times)):
        run("a global one", [("G", 3), ("a", 30), ("b", 31), ("c", 310), ("d", 310)], 311)
    last.remove()
    run("one removed", [("a", 3), ("c", 4), ("d", 4)], 5)


@program("AC-02", PROMISE, since="2.0", source=f"{FULL}, 'prepend'; {GLOBAL}")
def prepended_and_global_full_hooks_in_a_chain(check: Check) -> None:
    """Prepended and global full backward hooks pass grad_input on in the order in which they run."""
    acting = Acting()
    for first in (True, False):
        for count in (0, 1, 2):
            x, tripled, handles = leaf(1.0), times(3.0), []
            for number in range(count):
                handles.append(globally(acting.full(f"G{number}", (add_one, ten_times)[number])))
            tripled.register_full_backward_hook(acting.full("a", add_one))
            tripled.register_full_backward_hook(acting.full("P", ten_times), prepend=first)
            tripled(2 * x).sum().backward()
            for handle in handles:
                handle.remove()
            name = f"{count} global and one {'prepended' if first else 'appended'}"
            given = [3, 4, 40][: count + 1]  # G0 makes 4 of 3, G1 makes 40 of 4
            g = given[-1]
            local = [("P", g), ("a", 10 * g)] if first else [("a", g), ("P", g + 1)]
            check.equal(f"what hooks saw, {name}", acting.take(), [("G0", 3), ("G1", 4)][:count] + local)
            check.equal(f"gradient of the input, {name}", x.grad, [2 * (10 * g + 1 if first else 10 * (g + 1))])


@program("AC-03", PROMISE, since="2.0", source=f"{PRE}, 'prepend'; {GLOBAL_PRE}")
def pre_hooks_in_a_chain(check: Check) -> None:
    """Each of several full backward pre-hooks is given the grad_output that the one before it returned."""
    acting = Acting()
    for first in (True, False):
        for count in (0, 1, 2):
            x, hooked, handles = leaf(1.0), weighted(3.0), []
            for number in range(count):
                handles.append(globally_before(acting.pre(f"G{number}", (add_one, ten_times)[number])))
            hooked.register_full_backward_pre_hook(acting.pre("a", add_one))
            hooked.register_full_backward_pre_hook(acting.pre("n", nothing))
            hooked.register_full_backward_pre_hook(acting.pre("P", ten_times), prepend=first)
            (5 * hooked(2 * x)).sum().backward()
            for handle in handles:
                handle.remove()
            name = f"{count} global and one {'prepended' if first else 'appended'}"
            given = [5, 6, 60][: count + 1]  # G0 makes 6 of 5, G1 makes 60 of 6
            g = given[-1]
            local = [("P", g), ("a", 10 * g), ("n", 10 * g + 1)] if first else [("a", g), ("n", g + 1), ("P", g + 1)]
            result = 10 * g + 1 if first else 10 * (g + 1)
            check.equal(f"what hooks saw, {name}", acting.take(), [("G0", 5), ("G1", 6)][:count] + local)
            check.equal(f"gradient of the input, {name}", x.grad, [2 * 3 * result])
            check.equal(f"gradient of the weight, {name}", hooked.weight.grad, 2.0 * result)


@program("AC-04", PROMISE, since="2.0", source=f"{PRE}; {FULL}")
def pre_hooks_and_full_hooks_together(check: Check) -> None:
    """A full backward hook is given the grad_output that pre-hooks left, and the grad_input worked out from it."""
    seen: list[Any] = []
    x, hooked = leaf(1.0), weighted(3.0)

    def replace(module: Any, grad_input: Any, grad_output: Any) -> Any:
        seen.append((grad_input, grad_output))
        return (grad_input[0] + 1,)

    hooked.register_full_backward_hook(replace)
    hooked.register_full_backward_pre_hook(lambda module, grad_output: (10 * grad_output[0],))
    before = globally_before(lambda module, grad_output: (grad_output[0] + 1,))
    with before, globally(lambda module, grad_input, grad_output: (2 * grad_input[0],)):
        (5 * hooked(7 * x)).sum().backward()
    check.equal("what the full hook saw", seen, [(([2 * 3 * 60],), ([60],))])  # 10 * (5 + 1)
    check.equal("gradient of the weight", hooked.weight.grad, 7.0 * 60)
    check.equal("gradient of the input", x.grad, [7 * 361])


@program("AC-05", PROMISE, since="1.8", source=FULL)
def acting_hooks_on_nested_modules(check: Check) -> None:
    """What hooks on a container and on its children return is used where their gradients are, and nowhere else."""
    acting = Acting()
    a, b, c, d = weighted(2.0), weighted(3.0), weighted(5.0), weighted(7.0)
    outer = net(lambda module, x: module.last(module.first(x)), first=b, last=c)

    for name, module, change in (("outer", outer, ten_times), ("first", b, add_one), ("last", c, add_one)):
        module.register_full_backward_hook(acting.full(name, change))
    x = leaf(1.0)
    d(outer(a(x))).sum().backward()
    # grad_input of d is 7, of c 5 * 7 = 35, made 36; of b 3 * 36 = 108, made 109; of outer 109, made 1090
    check.equal("what hooks saw", acting.take(), [("last", 35), ("first", 108), ("outer", 109)])
    check.equal("weight after all", d.weight.grad, 30.0)
    check.equal("weight of the last child", c.weight.grad, 7.0 * 6)
    check.equal("weight of the first child", b.weight.grad, 36.0 * 2)
    check.equal("weight before all", a.weight.grad, 1090.0)
    check.equal("gradient of the input", x.grad, [2 * 1090])


@program("AC-06", PROMISE, since="2.0", source=PRE)
def acting_pre_hooks_on_nested_modules(check: Check) -> None:
    """What pre-hooks on a container and on its children return is used where their gradients are, and nowhere else."""
    acting = Acting()
    a, b, c, d = weighted(2.0), weighted(3.0), weighted(5.0), weighted(7.0)
    outer = net(lambda module, x: module.last(module.first(x)), first=b, last=c)
    for name, module, change in (("outer", outer, ten_times), ("first", b, add_one), ("last", c, add_one)):
        module.register_full_backward_pre_hook(acting.pre(name, change))
    x = leaf(1.0)
    d(outer(a(x))).sum().backward()
    # 10 * 7 + 1 = 71 goes into c, 5 * 71 + 1 = 356 into b
    check.equal("what hooks saw", acting.take(), [("outer", 7), ("last", 70), ("first", 355)])
    check.equal("weight after all", d.weight.grad, 30.0)
    check.equal("weight of the last child", c.weight.grad, 71.0 * 6)
    check.equal("weight of the first child", b.weight.grad, 356.0 * 2)
    check.equal("weight before all", a.weight.grad, 3.0 * 356)
    check.equal("gradient of the input", x.grad, [2 * 3 * 356])


@program("AC-07", PROMISE, since="1.8", source=f"{FULL}; torch.autograd.grad")
def acting_hooks_in_every_kind_of_backward(check: Check) -> None:
    """A returned grad_input is what ``autograd.grad`` gives and what ``backward(inputs=…)`` accumulates."""
    x, before, hooked = leaf(1.0), weighted(2.0), weighted(3.0)
    hooked.register_full_backward_hook(lambda module, grad_input, grad_output: (10 * grad_input[0],))
    y = hooked(before(x))
    given = torch.autograd.grad(y.sum(), [x, before.weight, hooked.weight], retain_graph=True)
    check.equal("what autograd.grad gives", given, ([60], 30.0, 2.0))
    y.sum().backward(inputs=[x], retain_graph=True)
    check.equal("gradient of the input", x.grad, [60])
    check.equal("gradients that were not asked for", (before.weight.grad, hooked.weight.grad), (None, None))
    y.sum().backward()
    check.equal("gradients after one more", (x.grad, before.weight.grad, hooked.weight.grad), ([120], 30.0, 2.0))


@program("AC-08", PROMISE, since="1.8", source=FULL)
def each_call_has_its_own_replacement(check: Check) -> None:
    """Of a module that is called twice, and of two backwards, each has the gradient that its own hook call returned."""
    factors = [10, 100, 1000, 1]
    x, tripled = leaf(1.0), times(3.0)
    tripled.register_full_backward_hook(lambda module, grad_input, grad_output: (factors.pop(0) * grad_input[0],))
    tripled(tripled(x)).sum().backward()  # 3 * 10, then 3 * 30 * 100
    check.equal("a module called on its own output", x.grad, [9000])
    x.grad = None
    y = tripled(x).sum()
    y.backward(retain_graph=True)
    check.equal("the first backward", x.grad, [3000])
    y.backward()
    check.equal("the second backward is added", x.grad, [3003])

    attempts: list[Any] = []

    def raising_once(module: Any, grad_input: Any, grad_output: Any) -> Any:
        attempts.append(grad_input)
        if len(attempts) == 1:
            raise KeyError("broken off")
        return (10 * grad_input[0],)

    x, tripled = leaf(1.0), times(3.0)
    tripled.register_full_backward_hook(raising_once)
    y = tripled(x).sum()
    check.raises("a backward in which the hook raises", KeyError, partial(y.backward, retain_graph=True), "broken off")
    y.backward()
    check.equal("the next backward of that graph", x.grad, [30])


@program("AC-09", PROMISE, since="1.8", source=FULL)
def only_paths_through_the_module_are_changed(check: Check) -> None:
    """A returned grad_input replaces what comes through the module, not what reaches the input on another path."""
    x, tripled = leaf(1.0), times(3.0)
    tripled.register_full_backward_hook(lambda module, grad_input, grad_output: (10 * grad_input[0],))
    (x + tripled(x)).sum().backward()
    check.equal("gradient beside a skip path", x.grad, [1 + 30])

    a, key = leaf(1.0), leaf(1.0)
    keyed = net(lambda module, a, key: 2 * a + 5 * key)
    keyed.register_full_backward_hook(lambda module, grad_input, grad_output: (10 * grad_input[0],))
    keyed(a, key=key).sum().backward()
    check.equal("gradients of a positional and a keyword argument", (a.grad, key.grad), ([20], [5]))

    x, tripled = leaf(1.0), times(3.0)
    tripled.register_full_backward_hook(lambda module, grad_input, grad_output: (torch.zeros_like(grad_input[0]),))
    tripled(2 * x).sum().backward()
    check.equal("gradient where the hook returns zeros", x.grad, [0])


@program("AC-10", PROMISE, since="1.8", source=f"{FULL}; torch.autograd.grad, 'create_graph'")
def a_replacement_can_be_differentiated(check: Check) -> None:
    """With ``create_graph`` a returned grad_input is a part of the graph: its own derivatives are right."""
    x, tripled = leaf(2.0), times(3.0)
    tripled.register_full_backward_hook(lambda module, grad_input, grad_output: (x * x * grad_input[0],))
    (first,) = torch.autograd.grad(tripled(x).sum(), x, create_graph=True)
    check.equal("what replaces the derivative", first, [12])  # 3 x²
    (second,) = torch.autograd.grad(first.sum(), x)
    check.equal("its derivative", second, [12])  # 6 x

    seen: list[Any] = []
    squared = net(lambda module, x: x * x)
    for _ in range(2):
        squared.register_full_backward_hook(lambda module, grad_input, grad_output: seen.append(grad_input[0]))
    torch.autograd.grad(squared(x).sum(), x, create_graph=True)
    derivable = [gradient.requires_grad for gradient in seen]
    check.equal("whether what each of two hooks is given can be derived", derivable, [True, True])


@program("AC-11", PROMISE, since="1.8", source=FULL)
def removal_ends_the_replacement(check: Check) -> None:
    """Once an acting hook is removed, gradients are what they are without it."""
    tripled = times(3.0)
    x = leaf(1.0)
    with tripled.register_full_backward_hook(lambda module, grad_input, grad_output: (10 * grad_input[0],)):
        tripled(x).sum().backward()
    check.equal("gradient under the hook", x.grad, [30])
    x.grad = None
    tripled(x).sum().backward()
    check.equal("gradient after its removal", x.grad, [3])


@program("AC-12", PROMISE, since="1.8", source=f"{GLOBAL}; {FULL}")
def a_global_hook_acts_on_every_module(check: Check) -> None:
    """What a global full backward hook returns replaces the grad_input of each module that it is called for."""
    x, before, after = leaf(1.0), weighted(2.0), weighted(3.0)
    with globally(lambda module, grad_input, grad_output: (10 * grad_input[0],)):
        after(before(x)).sum().backward()
    check.equal("gradient of the input", x.grad, [600])
    check.equal("gradients of the weights", (before.weight.grad, after.weight.grad), (30.0, 2.0))
