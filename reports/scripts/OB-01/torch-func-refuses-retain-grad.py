# torch 2.15.0: hookcheck repro 088466b715701aa4 --clause OB-01 --kind output_retain_grad
# /// script
# dependencies = ["torch"]
# ///
"""retain_grad on MSELoss: RuntimeError: You are attempting to call Tensor.retain_grad() …"""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 0):
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
    names = [name for name, p in module.named_parameters() if p.requires_grad]
    places = [i for i, arg in enumerate(args) if arg.requires_grad]

    def call(*leaves):
        given = {**dict(enumerate(args)), **dict(zip(places, leaves[len(names) :]))}
        return torch.func.functional_call(module, dict(zip(names, leaves)), tuple(given.values()))

    return ByVjp.apply(call, *map(module.get_parameter, names), *(args[i] for i in places))


def run(hooked):
    try:
        calls = []
        net = nn.MSELoss()
        x = torch.ones((), requires_grad=True)
        a = torch.ones(())
        if hooked:

            def watch(module, args, output):
                if output.requires_grad:
                    output.retain_grad()
                    calls.append(output)

            net.register_forward_hook(watch)
        by_vjp(net, x, a)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
assert control is None, "the control fails"
raise SystemExit(0 if experiment is None else 1)
