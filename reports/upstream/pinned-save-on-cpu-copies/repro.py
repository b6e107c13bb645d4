# /// script
# dependencies = ["torch"]
# ///
"""save_on_cpu(pin_memory=True) copies what is on the CPU, and a hook gets other strides."""
# https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.save_on_cpu

import torch

graph = getattr(torch.autograd, "graph", None)
if not hasattr(graph, "save_on_cpu"):
    raise SystemExit(3)


def run(pin_memory):
    expanded = torch.ones(1, 3).expand(1000, 3)
    x = torch.ones(1000, 3, requires_grad=True)
    with graph.save_on_cpu(pin_memory=pin_memory):
        y = x * expanded
    saved = y.grad_fn._saved_other
    copied = saved.data_ptr() != expanded.data_ptr()
    print(f"pin_memory={pin_memory}: copied: {copied}; strides {saved.stride()}")

    transposed, strides = torch.ones(3, 2).t(), []
    x = torch.ones(3, 2).t().requires_grad_()
    x.register_hook(lambda gradient: strides.append(gradient.stride()))
    with graph.save_on_cpu(pin_memory=pin_memory):
        y = x * transposed
    y.sum().backward()
    print(f"pin_memory={pin_memory}: strides of the gradient that a hook gets: {strides[0]}")
    return copied


control, experiment = run(pin_memory=False), run(pin_memory=True)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control else 1 if experiment else 0)
