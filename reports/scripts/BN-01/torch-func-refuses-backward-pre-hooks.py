# torch 2.15.0: hookcheck repro 34af69ee9ea76490 --clause BN-01 --kind acting_full_backward_pre
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_pre_hook on Linear under torch.func.vjp: RuntimeError."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_pre_hook"):
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


def run(hooked):
    net = nn.Linear(1, 1, bias=False)
    if hooked:
        net.register_full_backward_pre_hook(lambda *args: None)
    by_vjp(net, torch.ones(1)).backward()


run(hooked=False)  # the control raises nothing
try:
    run(hooked=True)
except Exception as error:
    print(f"experiment: {type(error).__name__}: {error}")
    raise SystemExit(1)
