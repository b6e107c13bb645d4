# /// script
# dependencies = ["torch"]
# ///
"""register_multi_grad_hook raises for a sparse leaf, which takes every other hook."""
# https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.register_multi_grad_hook

import torch

graph = getattr(torch.autograd, "graph", None)
if not hasattr(graph, "register_multi_grad_hook"):
    raise SystemExit(3)


def calls(layout, register):
    log = []
    dense = torch.eye(2)
    leaf = (dense.to_sparse() if layout == "sparse" else dense).requires_grad_()
    try:
        register(leaf, lambda grad: log.append("called"))
        torch.mm(leaf, torch.ones(2, 1)).sum().backward()
    except (RuntimeError, NotImplementedError) as error:
        log.append(str(error).split(" with ")[0])
    return log


def multi(leaf, hook):
    graph.register_multi_grad_hook((leaf,), hook)


tensor = calls("sparse", torch.Tensor.register_hook)
control, experiment = calls("dense", multi), calls("sparse", multi)
print("register_hook, sparse:           ", tensor)
print("register_multi_grad_hook, dense: ", control)
print("register_multi_grad_hook, sparse:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if not tensor == control == ["called"] else 0 if experiment == control else 1)
