# torch 2.15.0: hookcheck repro 5fc85c01e9bc3a72 --clause OB-01 --kind post_accumulate
# /// script
# dependencies = ["torch"]
# ///
"""register_post_accumulate_grad_hook under compiled autograd: RuntimeError."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 9):
    raise SystemExit(3)


class Net(nn.Module):
    def forward(self, x):
        return x.to_dense()


def run(hooked):
    net = Net()
    x = torch.ones(1, 1).to_sparse_csr().requires_grad_()
    if hooked:
        x.register_post_accumulate_grad_hook(torch.compiler.disable(lambda *args: None))
    from torch._dynamo import compiled_autograd

    with compiled_autograd._enable(lambda graph: graph.forward):
        net(x).backward()


run(hooked=False)  # the control raises nothing
try:
    run(hooked=True)
except Exception as error:
    print(f"experiment: {type(error).__name__}: {error}")
    raise SystemExit(1)
