# /// script
# dependencies = ["torch"]
# ///
"""Equal layers are compiled once each where a part has a hook that is always called."""
# https://github.com/pytorch/pytorch/pull/172519, which mends it for with_kwargs

import torch
from torch import nn

if not hasattr(torch, "compile") or not hasattr(torch, "compiler"):
    raise SystemExit(3)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(1, 1)

    def forward(self, x):
        return self.inner(x)


def look(module, args, output):
    return None


def run(**options):
    torch._dynamo.reset()
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    for _ in range(3):
        layer = Layer()
        layer.inner.register_forward_hook(look, **options)
        torch.compile(layer, backend=backend)(torch.ones(1, 1))
    return len(graphs)


control, experiment = run(), run(always_call=True)
print("control:   ", control)
print("experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != 1 else 0 if experiment == 1 else 1)
