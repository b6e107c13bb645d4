# /// script
# dependencies = ["torch"]
# ///
"""Node.metadata is documented as a method, and is an attribute."""
# https://docs.pytorch.org/docs/stable/generated/torch.autograd.graph.Node.metadata.html

import torch

node = torch.ones(1, requires_grad=True).exp().grad_fn
if not hasattr(getattr(torch.autograd, "graph", None), "Node"):
    raise SystemExit(3)
try:
    result = node.metadata()
except TypeError as error:
    result = str(error)
print("node.metadata:  ", node.metadata)
print("node.metadata():", result)
raise SystemExit(0 if result == node.metadata else 1)
