# torch 2.15.0: hookcheck repro a54cfe670fcd2ebe --clause OB-03 --kind full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on MultiheadAttention: a hook that returns None changes x0.grad."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (1, 9):
    raise SystemExit(3)


def run(hooked):
    net = nn.MultiheadAttention(2, 1, bias=False)
    net.to(torch.float64)
    with torch.no_grad():
        net.in_proj_weight.copy_(torch.arange(1.0, 13).reshape(6, 2))
        net.out_proj.weight.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    x0 = (torch.tensor([[[32, 64]], [[96, 128]]], dtype=torch.float64) / 32).requires_grad_()
    v_y0 = torch.tensor([[[32, 64]], [[96, 128]]], dtype=torch.float64) / 32
    if hooked:
        net.register_full_backward_hook(lambda *args: None)
    net(x0, x0, x0)[0].backward(v_y0)
    return x0.grad


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
raise SystemExit(0 if torch.equal(experiment, control) else 1)
