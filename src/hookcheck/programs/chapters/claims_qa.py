"""Is it true what a much-read answer says on how forward and backward hooks of modules are used?

It is about collecting what modules give and what gradients reach them: what hooks are called with, whether a method can
be one, and how torch tells that ``register_backward_hook`` is deprecated. ``hookcheck claims`` shows what is refuted.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from hookcheck.contract.clause import CLAIM
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.program import program

ANSWER = "question and answer on how forward and backward hooks work"
FORWARD, FULL, LEGACY = "register_forward_hook", "register_full_backward_hook", "register_backward_hook"


def _leaf(*numbers: float) -> Any:
    return torch.tensor(numbers, requires_grad=True)


@program("QA-1", CLAIM, since="1.8", source=f"{ANSWER}; torch.nn.Module.{FORWARD}, {FULL}")
def every_hook_on_every_execution(check: Check) -> None:
    """A forward hook gets (module, args, output) on every execution through ``__call__``, a full backward hook
    (module, grad_input, grad_output) on every backward through it; all hooks run, in the order of registration."""
    log: list[str] = []
    forward: list[Any] = []
    backward: list[Any] = []
    # ReLU: y = max(x, 0), so dx is dy where x is positive, and 0 elsewhere.
    net = nn.ReLU()
    for name in ("first", "second", "third"):
        net.register_forward_hook(lambda *received, name=name: log.append(f"forward {name}"))
        net.register_full_backward_hook(lambda *received, name=name: log.append(f"backward {name}"))
    net.register_forward_hook(lambda *received: forward.append(received))
    net.register_full_backward_hook(lambda *received: backward.append(received))
    y = net(_leaf(1.0, -1.0))
    net(torch.tensor([3.0]))
    (y * torch.tensor([5.0, 7.0])).sum().backward(retain_graph=True)
    (y * torch.tensor([11.0, 13.0])).sum().backward()
    in_order = [[f"{when} {name}" for name in ("first", "second", "third")] for when in ("forward", "backward")]
    check.order("what ran", log, 2 * in_order[0] + 2 * in_order[1])
    check.equal(
        "what the forward hook got", [r[1:] for r in forward], [(([1.0, -1.0],), [1.0, 0.0]), (([3.0],), [3.0])]
    )
    gradients = [(([5.0, 0.0],), ([5.0, 7.0],)), (([11.0, 0.0],), ([11.0, 13.0],))]
    check.equal("what the backward hook got", [r[1:] for r in backward], gradients)
    check.true("each got the module", all(received[0] is net for received in forward + backward))


@program("QA-2", CLAIM, since="1.7", source=f"{ANSWER}; torch.nn.Module.{FORWARD}, {FULL}")
def a_bound_method_fails(check: Check) -> None:
    """Registering a bound method (``self.get_attention``) as a hook fails, since it is called without ``self``."""

    class Capture:
        def get_attention(self, module: Any, inputs: Any, output: Any) -> None:
            assert isinstance(self, Capture)

    def run(register: str) -> None:
        net = nn.ReLU()
        getattr(net, register)(Capture().get_attention)
        net(_leaf(1.0)).backward()

    for register in (FORWARD, LEGACY, FULL):
        if hasattr(nn.Module, register):
            check.raises(f"{register}: forward and backward", TypeError, partial(run, register), "positional argument")


@program("QA-3", CLAIM, since="1.7", source=f"{ANSWER}; torch.nn.Module.{LEGACY}")
def deprecated_at_run_time(check: Check) -> None:
    """``register_backward_hook`` is deprecated: its documentation says so, and at run time a FutureWarning, which
    comes not where it is registered but where a module is called whose gradients the hook would miss some of."""

    class Scaled(nn.Module):
        def forward(self, x: Any, factor: float) -> Any:
            return x * factor

    class Named(nn.Module):
        def forward(self, x: Any) -> Any:
            return {"y": 2 * x}

    check.true("the documentation says so", "deprecated" in (nn.Module.register_backward_hook.__doc__ or ""))
    nodes, inner = "forward contains multiple autograd Nodes is deprecated", _leaf(1.0) * 2
    incomplete: dict[str, tuple[Any, tuple[Any, ...], str]] = {
        "of two Nodes": (nn.Sequential(nn.Sigmoid(), nn.ReLU()), (inner,), nodes),
        "of one Node that takes parameters": (nn.Conv2d(1, 1, 1), (inner.view(1, 1, 1, 1),), nodes),
        "that is given a leaf": (nn.ReLU(), (_leaf(1.0),), nodes),
        "that takes a number": (Scaled(), (inner, 2.0), "does not take as input a single Tensor"),
        "that gives a dictionary": (Named(), (inner,), "does not return a single Tensor"),
    }
    for name, (module, args, says) in incomplete.items():
        register = partial(module.register_backward_hook, lambda *received: None)
        check.silent(f"a module {name}: registering is silent", register, says="deprecated")
        check.warns(f"a module {name}: the call says so", FutureWarning, partial(module, *args), says=says)
    relu = nn.ReLU()
    relu.register_backward_hook(lambda *received: None)
    y = check.silent("a module of one Node: the call is silent", partial(relu, inner), says="deprecated")
    check.silent("a module of one Node: backward is silent", y.backward, says="deprecated")
    register_global = partial(nn.modules.module.register_module_backward_hook, lambda *received: None)
    handle = check.silent("for all modules: registering is silent", register_global, says="deprecated")
    plain = nn.Sequential(nn.Sigmoid(), nn.ReLU())
    check.warns("for all modules: a call says so", FutureWarning, partial(plain, inner), says=nodes)
    handle.remove()
