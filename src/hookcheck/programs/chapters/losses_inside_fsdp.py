"""From where may a backward start under FullyShardedDataParallel? From an output of the module, or from inside of it.

FSDP gathers the parameters before the backward of a module by hooks on its outputs, and reduces their gradients by a
hook on the parameter; a loss on a tensor that forward kept passes the outputs by.
"""

from __future__ import annotations

from typing import Any

from hookcheck.contract.clause import PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.chapters.sharded import FSDP1, wrapped
from hookcheck.programs.chapters.sharded_steps import STARTS, x
from hookcheck.programs.check import Check
from hookcheck.programs.nets import net
from hookcheck.programs.processes import process_group
from hookcheck.programs.program import program


@program("FS-01", PROMISE, since="1.13", source=f"{FSDP1}; torch.Tensor.register_hook, 'every time a gradient'")
def a_backward_starts_anywhere_in_a_module_of_fsdp(check: Check) -> None:
    """Under FSDP a backward may start from an output, from what was changed in place after forward, or from a tensor
    inside of the module, in the root as in a part of it: hooks inside are called once, the gradient of the parameter is
    reduced, and the next step is as the first."""
    with process_group(check):
        for start, (make, pick, gradient) in STARTS.items():
            for place in ("the root", "a part"):
                for needs in (False, True):
                    log: list[Any] = []

                    def forward(module: Any, x: Any, make: Any = make, log: list[Any] = log) -> Any:
                        module.total = module.w + x
                        module.total.register_hook(lambda given: log.append(given.item()))
                        return make(module.total)

                    module = net(forward)
                    module.w = nn.Parameter(torch.tensor([2.0]))
                    root = wrapped(module if place == "the root" else nn.Sequential(wrapped(module)))
                    name = f"{start} of {place}, {'an' if needs else 'no'} input requires grad"
                    for step in ("first", "second"):
                        value = x(1.0, needs)

                        def go(root: Any = root, value: Any = value, module: Any = module, pick: Any = pick) -> bool:
                            return pick(root(value), module.total).backward() is None

                        if not check.works(f"{name}: {step} step", go):  # FSDP prints where that is, besides
                            break
                        check.order(f"{name}: hook inside, {step} step", log, [gradient])
                        check.equal(f"{name}: gradient, {step} step", module.w.grad, [gradient])
                        check.equal(f"{name}: gradient of x, {step} step", value.grad, [gradient] if needs else None)
                        module.w.grad = None
                        log.clear()
