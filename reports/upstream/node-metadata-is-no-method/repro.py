# /// script
# dependencies = ["torch"]
# ///
"""Node.metadata is documented as a method, and is an attribute."""
# https://docs.pytorch.org/docs/stable/generated/torch.autograd.graph.Node.metadata.html

import torch

node = torch.ones(1, requires_grad=True).exp().grad_fn
if not hasattr(getattr(torch.autograd, "graph", None), "Node"):
    raise SystemExit(3)


def result(name):
    try:
        return getattr(node, name)()
    except TypeError as error:
        return str(error)


control, experiment = result("name"), result("metadata")
print("node.metadata:              ", node.metadata)
print("control, node.name():       ", control)
print("experiment, node.metadata():", experiment)
if not control.startswith("Exp"):
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if experiment == node.metadata else 1)
