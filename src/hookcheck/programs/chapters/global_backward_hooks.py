"""What do full backward hooks and pre-hooks promise that are put on all modules at once?

They are called as a module's own, ``hook(module, grad_input, grad_output)`` and ``hook(module, grad_output)``, before
them, and may replace grad_input and grad_output.
"""

from __future__ import annotations

from typing import Any

from hookcheck.contract.clause import PROMISE
from hookcheck.probe.lazy import torch
from hookcheck.programs.check import Check
from hookcheck.programs.nets import leaf, net, times, weighted
from hookcheck.programs.program import program
from hookcheck.programs.watching import globally, keeping, nested, noting

FULL = "torch.nn.modules.module.register_module_full_backward_hook"
PRE = "torch.nn.modules.module.register_module_full_backward_pre_hook"


@program("GL-07", PROMISE, since="1.8", source=FULL)
def full_hook_is_that_of_each_module(check: Check) -> None:
    """A global full backward hook works as one on each module, and runs before the module's own."""
    seen: list[Any] = []
    inner, outer = nested()
    with globally("full_backward_hook", keeping(seen)):
        x = leaf(1.0, 2.0)
        outer(x).sum().backward()
        # d output / d inner's output = 3, d output / d x = 6; the input of inner is the last to get its gradient
        # inside outer, whose own input comes after it
        calls = [(inner, ([6.0, 6.0],), ([3.0, 3.0],)), (outer, ([6.0, 6.0],), ([1.0, 1.0],))]
        check.equal("modules, grad_input and grad_output, from the inside out", seen, calls)
        check.equal("gradient of the input", x.grad, [6.0, 6.0])
        (5 * outer(x)).sum().backward()
        check.equal("grad_output of the second backward", [c[2] for c in seen[2:]], [([15.0, 15.0],), ([5.0, 5.0],)])
        seen.clear()
        with torch.no_grad():
            outer(torch.ones(2))
        check.calls("calls without a backward", len(seen), 0)
        late, a, b = net(lambda module, a, factor, b: (2 * a, factor, 3 * b)), leaf(1.0), leaf(1.0)
        first, _, second = late(a, 7.0, b)
        (first + 10 * second).sum().backward()
        # 2 * 1 and 3 * 10; the factor is no Tensor
        call = (late, ([2.0], None, [30.0]), ([1.0], None, [10.0]))
        check.equal("several tensors of a module that is made after the registration", seen, [call])
    of_a_parameter: list[Any] = []
    with globally("full_backward_hook", keeping(of_a_parameter)):
        data = weighted(2.0)
        data(torch.tensor([4.0])).sum().backward()
        check.equal("no input requires grad", of_a_parameter, [(data, (None,), ([1.0],))], "call")
        check.equal("gradient of the parameter then", data.weight.grad, 4.0)
    seen.clear()
    outer(leaf(1.0)).sum().backward()
    check.calls("calls after remove()", len(seen), 0)


@program("GL-12", PROMISE, since="1.8", source=FULL)
def full_hook_runs_before_local(check: Check) -> None:
    """A global full backward hook runs before the module's own, which gets the grad_input that it returned."""
    log: list[str] = []
    doubled = times(2.0)
    doubled.register_full_backward_hook(noting(log, "local 1"))
    with globally("full_backward_hook", noting(log, "global 1")):
        doubled.register_full_backward_hook(noting(log, "local 2"))
        with globally("full_backward_hook", noting(log, "global 2")):
            doubled(leaf(1.0)).sum().backward()
    check.order("two of each", log, ["global 1", "global 2", "local 1", "local 2"])

    seen: list[Any] = []
    x, doubled = leaf(1.0), times(2.0)
    doubled.register_full_backward_hook(keeping(seen))
    doubled.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * 10,))
    with globally("full_backward_hook", lambda module, grad_input, grad_output: (grad_input[0] + 1,)):
        doubled(x).sum().backward()
    check.equal("grad_input and grad_output of the module's own hook", seen[0][1:], (([3.0],), ([1.0],)))
    check.equal("gradient of the input after both changed it", x.grad, [30.0])

    x, (_, outer) = leaf(1.0), nested()
    with globally("full_backward_hook", lambda module, grad_input, grad_output: (grad_input[0] + 1,)):
        outer(x).sum().backward()
    # 1 * 3 * 2 is the grad_input of inner, which adds 1, as outer does to what it gets from inner
    check.equal("gradient of the input where each module's grad_input is replaced", x.grad, [8.0])


@program("GL-08", PROMISE, since="2.0", source=PRE)
def full_pre_hook_is_that_of_each_module(check: Check) -> None:
    """A global full backward pre-hook works as one on each module, and runs before the module's own."""
    seen: list[Any] = []
    inner, outer = nested()
    with globally("full_backward_pre_hook", keeping(seen)):
        outer(leaf(1.0, 2.0)).sum().backward()
        check.equal("modules and grad_output, from the outside in", seen, [(outer, ([1, 1],)), (inner, ([3, 3],))])
        seen.clear()
        late = net(lambda module, x: (2 * x, 7.0, 3 * x))
        first, _, second = late(leaf(1.0))
        (first + 10 * second).sum().backward()
        check.equal("several outputs of a module that is made later", seen, [(late, ([1.0], None, [10.0]))])
        seen.clear()
        data = weighted(2.0)
        (5 * data(torch.tensor([4.0]))).sum().backward()
        check.equal("no input requires grad", seen, [(data, ([5.0],))])
    seen.clear()
    outer(leaf(1.0)).sum().backward()
    check.calls("calls after remove()", len(seen), 0)

    log: list[str] = []
    doubled = times(2.0)
    doubled.register_full_backward_hook(noting(log, "full hook"))
    doubled.register_full_backward_pre_hook(noting(log, "local 1"))
    with globally("full_backward_pre_hook", noting(log, "global 1")):
        doubled.register_full_backward_pre_hook(noting(log, "local 2"))
        doubled.register_full_backward_pre_hook(noting(log, "prepended"), prepend=True)
        with globally("full_backward_pre_hook", noting(log, "global 2")):
            doubled(leaf(1.0)).sum().backward()
    check.order("order", log, ["global 1", "global 2", "prepended", "local 1", "local 2", "full hook"])

    x, doubled = leaf(3.0), weighted(2.0)
    doubled.register_full_backward_hook(keeping(seen))
    doubled.register_full_backward_pre_hook(keeping(seen))
    doubled.register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 10,))
    with globally("full_backward_pre_hook", lambda module, grad_output: (grad_output[0] + 1,)):
        doubled(x).sum().backward()
    check.equal("grad_output of the module's own pre-hook", seen[0][1], ([2.0],))
    check.equal("grad_input and grad_output of its full hook", seen[1][1:], (([40.0],), ([20.0],)))
    check.equal("gradients after both changed it", (x.grad, doubled.weight.grad), ([40.0], 60.0))
