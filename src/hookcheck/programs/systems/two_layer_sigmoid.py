"""What do hooks see in a net of two layers with sigmoids? A worked program: a hook object on every child, both ways.

The net is the one that back-propagation is often taught with: two inputs, 0.05 and 0.1, two hidden units, two outputs.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Optional

import numpy as np
import torch
from torch import nn

Tensors = tuple[Optional[torch.Tensor], ...]

REGISTER = {
    "forward": "register_forward_hook",
    "legacy": "register_backward_hook",
    "full": "register_full_backward_hook",
}

LAYERS = {
    "fc1": {"weight": [[0.15, 0.2], [0.25, 0.3]], "bias": [0.35]},
    "fc2": {"weight": [[0.4, 0.45], [0.5, 0.55]], "bias": [0.6]},
}
"""Weights (2, 2) and biases (1,): one number for two rows, so it broadcasts."""

DATA = [0.05, 0.1]
COTANGENT = [1.0, 1.0]


class CopyingHook:
    """Keeps copies of what torch hands to a hook on ``module``: a (module, input, output) for each call, in order.

    Of a forward hook input and output are those of the module, of a backward hook, ``legacy`` or ``full``, their
    gradients. Each of both is kept as a tuple.
    """

    def __init__(self, module: nn.Module, kind: str) -> None:
        """Registers the hook; ``kind`` is ``forward``, ``legacy`` or ``full``."""
        self.seen: list[tuple[nn.Module, Tensors, Tensors]] = []
        self.handle = getattr(module, REGISTER[kind])(self.hook)

    def hook(self, module: nn.Module, input: Any, output: Any) -> None:
        """Called by torch."""
        self.seen.append((module, _copies(input), _copies(output)))

    def close(self) -> None:
        """Takes the hook off the module."""
        self.handle.remove()


@dataclass
class SystemRun:
    """What one run leaves: the net, its input (2,) or (N, 2) and output, the hooks by child, and ``.grad`` of every
    leaf after each backward."""

    net: nn.Module
    data: torch.Tensor
    out: torch.Tensor
    forward: dict[str, CopyingHook]
    backward: dict[str, CopyingHook]
    grads: list[dict[str, torch.Tensor]] = field(default_factory=list)


def network(dtype: torch.dtype = torch.float32) -> nn.Module:
    """fc1, sigmoid, fc2, sigmoid with the numbers of `LAYERS`; (2,) or (N, 2) to the same shape."""
    net = nn.Sequential(
        OrderedDict(fc1=nn.Linear(2, 2), sigmoid1=nn.Sigmoid(), fc2=nn.Linear(2, 2), sigmoid2=nn.Sigmoid())
    )
    for name, numbers in LAYERS.items():
        layer = getattr(net, name)
        layer.weight = nn.Parameter(torch.tensor(numbers["weight"], dtype=dtype))
        layer.bias = nn.Parameter(torch.tensor(numbers["bias"], dtype=dtype))
    return net


def run(variant: str, data: Any = DATA, cotangent: Any = COTANGENT, dtype: torch.dtype = torch.float32) -> SystemRun:
    """Hooks every child, runs forward once and backward twice on the retained graph, and takes the hooks off.

    ``data`` is (2,) or (N, 2), as nested lists; ``cotangent`` is of the same shape.
    """
    net = network(dtype)
    forward = {name: CopyingHook(child, "forward") for name, child in net.named_children()}
    backward = {name: CopyingHook(child, variant) for name, child in net.named_children()}
    x = torch.tensor(data, dtype=dtype, requires_grad=True)
    out = net(x)
    result = SystemRun(net, x, out, forward, backward)
    for _ in range(2):
        out.backward(torch.tensor(cotangent, dtype=dtype), retain_graph=True)
        leaves: dict[str, Any] = {"data": x, **dict(net.named_parameters())}
        result.grads.append({name: leaf.grad.clone() for name, leaf in leaves.items()})
    for hook in (*forward.values(), *backward.values()):
        hook.close()
    return result


def recorded(result: SystemRun) -> dict[tuple[str, str, int], tuple[np.ndarray | None, ...]]:
    """Every number of a run by (subject, what, how manieth time), in the order in which they came about."""
    arrays = {}
    for name, hook in result.forward.items():
        for n, (_, inputs, output) in enumerate(hook.seen):
            arrays[name, "input", n] = _arrays(inputs)
            arrays[name, "output", n] = _arrays(output)
    arrays["net", "output", 0] = _arrays((result.out,))
    for n, grads in enumerate(result.grads):
        for name, hook in reversed(list(result.backward.items())):
            for _, grad_input, grad_output in hook.seen[n : n + 1]:
                arrays[name, "grad_output", n] = _arrays(grad_output)
                arrays[name, "grad_input", n] = _arrays(grad_input)
        for name, grad in grads.items():
            arrays[name, ".grad", n] = _arrays((grad,))
    return arrays


def _copies(value: Any) -> Tensors:
    # A legacy hook on a Linear that runs on a batch is handed a tensor whose memory becomes that of ``weight.grad``
    # (seen in 1.8, 2.0, 2.13 and 2.15): without a copy, what the hook has kept of one backward changes in the next.
    tensors = value if isinstance(value, tuple) else (value,)
    return tuple(None if t is None else t.detach().clone() for t in tensors)


def _arrays(tensors: Tensors) -> tuple[np.ndarray | None, ...]:
    return tuple(None if t is None else t.detach().cpu().numpy() for t in tensors)


if __name__ == "__main__":
    from hookcheck.programs.systems.oracles import expectation, sigmoid_net
    from hookcheck.programs.systems.side_by_side import table

    variants = [v for v in ("legacy", "full") if hasattr(nn.Module, REGISTER[v])]
    print(table(expectation(sigmoid_net(LAYERS, DATA, COTANGENT)), {v: recorded(run(v)) for v in variants}, "float32"))
