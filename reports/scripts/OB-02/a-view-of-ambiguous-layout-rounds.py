# torch 2.15.0: hookcheck repro 467d23a32a36b436 --clause OB-02 --kind full_backward_pre
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_pre_hook: a hook that returns None changes loss."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_pre_hook"):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Conv2d(2, 2, (1, 1), groups=2, bias=False)
        self.m1 = nn.Tanh()

    def forward(self, x):
        return self.m1(self.m0(x))


def run(hooked):
    torch.manual_seed(0)
    net = Net()
    net.to(torch.float64)
    x = (
        torch.randn(1, 2, 1, 2, dtype=torch.float64)
        .clone(memory_format=torch.channels_last)
        .requires_grad_()
    )
    if hooked:
        net.register_full_backward_pre_hook(lambda *args: None)
    loss = net(x).sum()
    return loss


torch.set_printoptions(precision=17)  # they differ in the last bits
control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
raise SystemExit(0 if torch.equal(experiment, control) else 1)
