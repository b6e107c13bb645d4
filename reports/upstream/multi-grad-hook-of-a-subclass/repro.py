# /// script
# dependencies = ["torch"]
# ///
"""register_multi_grad_hook gives None for a leaf of a tensor subclass, which gets a gradient."""
# https://docs.pytorch.org/docs/stable/generated/torch.autograd.graph.register_multi_grad_hook.html

import torch

graph = getattr(torch.autograd, "graph", None)
if not hasattr(graph, "register_multi_grad_hook"):
    raise SystemExit(3)


class Sub(torch.Tensor):
    pass


def run(subclass):
    x = torch.ones(2)
    x = (x.as_subclass(Sub) if subclass else x).requires_grad_()
    w = torch.ones(2, requires_grad=True)
    calls = []
    graph.register_multi_grad_hook(
        [x, w], lambda grads: calls.append([g is not None for g in grads])
    )
    (x * w).sum().backward()
    assert x.grad is not None
    return calls


control, experiment = run(subclass=False), run(subclass=True)
print("control:", control, "experiment:", experiment)
raise SystemExit(0 if experiment == control else 1)
