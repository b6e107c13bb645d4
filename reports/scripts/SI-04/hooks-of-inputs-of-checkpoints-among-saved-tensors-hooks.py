# torch 2.1.2: hookcheck repro SI-04
# /// script
# dependencies = ["torch"]
# ///
"""register_hook in saved_tensors_hooks, called in checkpoint: a hook is not called."""
# https://docs.pytorch.org/docs/stable/generated/torch.Tensor.register_hook.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 1):
    raise SystemExit(3)


def checkpointed(net, x):
    from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

    with set_checkpoint_early_stop(False):
        return checkpoint(net, x, use_reentrant=False)


def run(experiment):
    calls = []
    net = nn.Linear(1, 1)
    x = torch.ones(1, 1, requires_grad=True)
    x.register_hook(lambda *_: calls.append("a"))
    with torch.autograd.graph.saved_tensors_hooks(lambda value: value, lambda value: value):
        y = checkpointed(net, x) if experiment else net(x)
        y.backward()
    return calls


expected = ["a"]  # the hook is called once
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
