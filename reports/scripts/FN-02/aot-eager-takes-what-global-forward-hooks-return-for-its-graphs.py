# torch 2.15.0: hookcheck repro 93ab7ae94778e8f9 --clause FN-02 --kind acting_forward
# /// script
# dependencies = ["torch"]
# ///
"""register_module_forward_hook on EmbeddingBag under torch.compile: it is given another module."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 1):
    raise SystemExit(3)


def run(experiment):
    calls = []
    net = nn.EmbeddingBag(1, 1)
    torch.nn.modules.module.register_module_forward_hook(
        torch.compiler.disable(lambda module, args, output: calls.append(module is net))
    )
    for module in net.modules():
        module.register_forward_hook(torch.compiler.disable(lambda *args: None))
    (torch.compile(net, backend="aot_eager") if experiment else net)(torch.tensor([[0]]))
    return all(calls)


control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if not control else 0 if experiment else 1)
