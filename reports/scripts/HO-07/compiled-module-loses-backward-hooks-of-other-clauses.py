# torch 2.15.0: hookcheck repro HO-07
# /// script
# dependencies = ["torch"]
# ///
"""OptimizedModule: Of a full backward hook, None leaves the gradient alone; a tuple takes the
place of grad_input from there on."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 1):
    raise SystemExit(3)


def plain(value):
    return value.tolist() if isinstance(value, torch.Tensor) else value


def check(name, observed, expected):
    observed, expected = plain(observed), plain(expected)
    print(f"{name}: expected {expected}, observed {observed}")
    if observed != expected:
        raise SystemExit(1 if name == "gradient of the input under a tuple" else 2)


def net(forward, **parts):
    module = type("Net", (nn.Module,), {"forward": forward})()
    for name, part in parts.items():
        setattr(module, name, nn.Parameter(torch.tensor(part)) if isinstance(part, float) else part)
    return module


results = {
    "None": (lambda module, grad_input, grad_output: None, 1),
    "a tuple": (lambda module, grad_input, grad_output: (10 * grad_input[0],), 10),
    "a list": (lambda module, grad_input, grad_output: [10 * grad_input[0]], 10),
}
for name, (hook, change) in results.items():
    x, before, after = (
        torch.tensor([1.0, 2.0], requires_grad=True),
        torch.compile(net(lambda module, x: module.weight * x, weight=2.0), backend="eager"),
        torch.compile(net(lambda module, x: module.weight * x, weight=3.0), backend="eager"),
    )
    after.register_full_backward_hook(hook)
    after(before(x)).sum().backward()
    check(f"gradient of the input under {name}", x.grad, [6.0 * change] * 2)  # dy/dx = 2 * 3
    check(f"gradient of its own weight under {name}", after.weight.grad, 6.0)  # 2 * (1 + 2)
