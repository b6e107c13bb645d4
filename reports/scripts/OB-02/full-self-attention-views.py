# torch 2.15.0: hookcheck repro ccebc3824a783f75 --clause OB-02 --kind full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on MultiheadAttention: a hook that returns None changes g[0]."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (1, 9):
    raise SystemExit(3)


def run(hooked):
    torch.manual_seed(0)
    net = nn.MultiheadAttention(2, 2, bias=False)
    x = torch.randn(2, 2, 2, requires_grad=True)
    if hooked:
        net.register_full_backward_hook(lambda *args: None)
    g = torch.autograd.grad(net(x, x, x)[0].sum(), x, allow_unused=True)
    return g[0]


torch.set_printoptions(precision=17)  # they differ in the last bits
control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
raise SystemExit(0 if torch.equal(experiment, control) else 1)
