# /// script
# dependencies = ["torch"]
# ///
"""retain_grad makes backward raise where the tensor is in sparse CSR layout."""
# https://docs.pytorch.org/docs/stable/generated/torch.Tensor.retain_grad.html

import torch

try:
    torch.eye(2, requires_grad=True).to_sparse(layout=torch.sparse_csr).to_dense().sum().backward()
except (AttributeError, RuntimeError, TypeError):  # such a tensor has no gradient yet
    raise SystemExit(3) from None


def backward(layout):
    x = torch.eye(2, requires_grad=True)
    y = (2 * x).to_sparse(layout=layout)
    y.retain_grad()
    try:
        y.to_dense().sum().backward()
    except RuntimeError as error:
        return str(error).partition("\n")[0]
    return f"a gradient of layout {y.grad.layout}"


control, experiment = backward(torch.sparse_coo), backward(torch.sparse_csr)
print("control:   ", control)
print("experiment:", experiment)
if not control.startswith("a gradient"):
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if experiment.startswith("a gradient") else 1)
