"""What do a module's forward pre-hooks and forward hooks promise?"""

from __future__ import annotations

from typing import Any

from hookcheck.contract.check import Check
from hookcheck.contract.clause import PROMISE
from hookcheck.contract.program import program
from hookcheck.probe.lazy import nn, torch

PRE = "torch.nn.Module.register_forward_pre_hook"
POST = "torch.nn.Module.register_forward_hook"


@program("FW-04", PROMISE, since="1.7", source=PRE)
def a_tuple_replaces_the_arguments(check: Check) -> None:
    """Of a forward pre-hook, None leaves the arguments alone, and a tuple takes the place of the positional ones."""
    net = nn.Threshold(0.0, 0.0)
    x = torch.tensor([1.0, 2.0])
    handle = net.register_forward_pre_hook(lambda module, args: None)
    check.equal("output under a hook that returns None", net(x), [1, 2])
    handle.remove()
    net.register_forward_pre_hook(lambda module, args: (args[0] + 10,))
    check.equal("output under a hook that returns a tuple", net(x), [11, 12])


@program("FW-08", PROMISE, since="1.7", source=POST)
def runs_after_forward(check: Check) -> None:
    """A forward hook runs on every call of the instance, after ``forward`` has produced its output."""
    log: list[Any] = []

    class Net(nn.Module):
        def forward(self, x: Any) -> Any:
            log.append("forward")
            return 2 * x

    net = Net()
    net.register_forward_hook(lambda module, args, output: log.append(output.tolist()))
    net(torch.tensor([1.0]))
    net(torch.tensor([3.0]))
    check.order("what happened", log, ["forward", [2.0], "forward", [6.0]])
