# /// script
# dependencies = ["torch"]
# ///
"""In inference mode register_multi_grad_hook and get_gradient_edge raise for a leaf."""
# https://docs.pytorch.org/docs/stable/autograd.html

from contextlib import nullcontext

import torch
from torch.autograd import graph

if not hasattr(graph, "get_gradient_edge"):
    raise SystemExit(3)


def failures(mode):
    leaf = torch.ones(1, requires_grad=True)
    result = []
    for act in (
        lambda: leaf.register_hook(lambda grad: None),
        lambda: graph.register_multi_grad_hook([leaf], lambda grads: None),
        lambda: graph.get_gradient_edge(leaf),
    ):
        try:
            with mode():
                act()
        except Exception as error:
            result.append(f"{type(error).__name__}: {error}")
    return result


control, experiment = failures(nullcontext), failures(torch.inference_mode)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control else 1 if experiment else 0)
