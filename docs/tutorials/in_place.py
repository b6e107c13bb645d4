"""A network with an in-place ReLU under full backward hooks: as it is, and put right."""

import torch
from torch import nn


def count_gradients(net: nn.Module) -> str:
    seen = []
    for child in net:
        child.register_full_backward_hook(lambda module, grad_input, grad_output: seen.append(grad_input))
    try:
        net(torch.ones(1, 3, requires_grad=True)).sum().backward()
    except RuntimeError as error:
        return f"{type(error).__name__}: {str(error)[:60]} …"
    return f"{len(seen)} hooks fired"


def block() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 3), nn.ReLU(inplace=True), nn.Linear(3, 2))


net = block()
print("as it is:          ", count_gradients(net))

net = block()
for module in net.modules():
    if hasattr(module, "inplace"):
        module.inplace = False
print("with inplace=False:", count_gradients(net))
