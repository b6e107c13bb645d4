# torch 2.13.0: hookcheck repro c38e58600b1dfaf1 --clause TN-01 --kind tensor
# /// script
# dependencies = ["torch"]
# ///
"""register_hook under torch.func.vjp: the hook is called once, not never."""
# https://docs.pytorch.org/docs/stable/generated/torch.Tensor.register_hook.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 4):
    raise SystemExit(3)


class ByVjp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, call, *leaves):
        y, ctx.pull = torch.func.vjp(call, *leaves)
        return tuple(each.detach() for each in y) if isinstance(y, tuple) else y.detach()

    @staticmethod
    def backward(ctx, *cotangents):
        return (None, *ctx.pull(cotangents if len(cotangents) > 1 else cotangents[0]))


def by_vjp(module, *args):
    weights = {name: p for name, p in module.named_parameters() if p.requires_grad}
    places = [i for i, arg in enumerate(args) if arg.requires_grad]

    def call(*leaves):
        given = {**dict(enumerate(args)), **dict(zip(places, leaves[len(weights) :]))}
        return torch.func.functional_call(module, dict(zip(weights, leaves)), tuple(given.values()))

    return ByVjp.apply(call, *weights.values(), *(args[i] for i in places))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.RMSNorm((1,), 1e-05)
        self.m1 = nn.Sigmoid()

    def forward(self, x):
        return self.m1(x)


def run(experiment):
    calls = []
    net = Net()
    x = torch.ones((), requires_grad=True)
    net.m0.weight.register_hook(calls.append)
    (by_vjp(net, x) if experiment else net(x)).backward()
    return len(calls)


expected = 0  # no gradient that the hook waits for is computed
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
