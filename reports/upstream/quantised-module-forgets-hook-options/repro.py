# /// script
# dependencies = ["torch"]
# ///
"""quantize_dynamic keeps the forward hooks of a module, without with_kwargs and always_call."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import warnings

import torch
from torch import nn

try:
    from torch.ao import quantization
except ImportError:
    raise SystemExit(3) from None

if not hasattr(nn.Linear(1, 1), "_forward_hooks_always_called"):
    raise SystemExit(3)
warnings.simplefilter("ignore")
calls = []


def noting(word):
    return lambda *arguments: calls.append(f"{word} with {len(arguments)} arguments")


def raises(module, args):
    raise ValueError("this call fails")


def made():
    net = nn.Sequential(nn.Linear(2, 2)).eval()
    net[0].register_forward_pre_hook(noting("pre-hook"), with_kwargs=True)  # module, args, kwargs
    net[0].register_forward_hook(noting("hook"), with_kwargs=True)  # module, args, kwargs, output
    net[0].register_forward_hook(noting("always"), always_call=True)  # module, args, output
    return net


def called(net):
    """What is called in a call, and in one that fails."""
    calls.clear()
    net(torch.ones(1, 2))
    net[0].register_forward_pre_hook(raises)
    try:
        net(torch.ones(1, 2))
    except ValueError:
        return list(calls)


control = called(made())
experiment = called(quantization.quantize_dynamic(made(), {nn.Linear}))
print("control:   ", control)
print("experiment:", experiment)
due = ("pre-hook with 3", "hook with 4", "always with 3", "pre-hook with 3", "always with 3")
if control != [f"{one} arguments" for one in due]:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if experiment == control else 1)
