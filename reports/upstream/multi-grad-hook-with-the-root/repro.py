# /// script
# dependencies = ["torch"]
# ///
"""register_multi_grad_hook is called one gradient too early if backward starts from its tensor."""
# https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.register_multi_grad_hook

import torch

graph = getattr(torch.autograd, "graph", None)
if not hasattr(graph, "register_multi_grad_hook"):
    raise SystemExit(3)


def calls(behind):
    """What the hook is called with in a backward from y, or from something that is made of y."""
    log = []
    a, b = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    y = a * b
    graph.register_multi_grad_hook(
        (y, a, b), lambda grads: log.append([None if g is None else g.item() for g in grads])
    )
    (1 * y if behind else y).backward()
    return log


control, experiment = calls(behind=True), calls(behind=False)
print("backward from 1 * y:", control)
print("backward from y:    ", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != [[1, 3, 2]] else 0 if experiment == control else 1)
