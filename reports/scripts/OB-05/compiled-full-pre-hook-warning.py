# torch 2.15.0: hookcheck repro 6c8808329ddae660 --clause OB-05 --kind full_backward_pre
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_pre_hook on Linear warns although the hook returns None."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import warnings

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 9):
    raise SystemExit(3)


def compiled_autograd():
    from torch._dynamo import compiled_autograd

    return compiled_autograd._enable(lambda graph: graph.forward)


def compiled(module, backend):
    def call(*args):
        return module(*args)

    return torch.compile(call, backend=backend)


def run(hooked):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.compiler.reset()
        net = nn.Linear(1, 1, bias=False)
        x = torch.ones(1)
        if hooked:
            net.register_full_backward_pre_hook(torch.compiler.disable(lambda *args: None))
        with compiled_autograd():
            y = compiled(net, "eager")(x)
            y.backward()
    return [str(w.message) for w in caught]


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
raise SystemExit(0 if not experiment or set(experiment) <= set(control) else 1)
