# torch 2.15.0: hookcheck repro 7148eb8c15bd6ee2 --clause OB-02 --kind full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook: a hook that returns None changes gg[0]."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Linear(2, 1, bias=False)
        self.m1 = nn.Tanh()
        self.m2 = nn.SiLU()

    def forward(self, x):
        return self.m2(self.m1(self.m0(x)))


def run(hooked):
    net = Net()
    with torch.no_grad():
        net.m0.weight.copy_(torch.tensor([[1.0, 2.0]]))
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    v_y = torch.tensor([[1.0], [2.0]])
    if hooked:
        for module in net.modules():
            module.register_full_backward_hook(lambda *args: None)
    n0 = torch.autograd.grad(net(x), x, v_y, create_graph=True, allow_unused=True)[0].sum()
    gg = torch.autograd.grad(n0, x, allow_unused=True)
    return gg[0]


torch.set_printoptions(precision=17)  # they differ in the last bits
control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
raise SystemExit(0 if torch.equal(experiment, control) else 1)
