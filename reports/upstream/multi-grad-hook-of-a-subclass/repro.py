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
    if x.grad is None:
        raise SystemExit(2)  # without a gradient None is right
    return calls


control, experiment = run(subclass=False), run(subclass=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != [[True, True]] else 0 if experiment == control else 1)
