# torch 2.15.0: hookcheck repro ac5795f8279bbc75 --clause TN-04 --kind output_node
# /// script
# dependencies = ["torch"]
# ///
"""register_hook on Linear under vmap: the hook is called never, not once."""
# https://docs.pytorch.org/docs/stable/generated/torch.autograd.graph.Node.register_hook.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 5):
    raise SystemExit(3)


def run(experiment):
    calls = []
    net = nn.Linear(1, 1, bias=False)

    def watch(module, args, output):
        if output.requires_grad:
            output.grad_fn.register_hook(lambda *grads: calls.append(1))

    net.register_forward_hook(watch)
    (
        torch.vmap(net, randomness="same")(torch.ones(1)[None])[0]
        if experiment
        else net(torch.ones(1))
    ).backward()
    return len(calls)


expected = 1  # forward once, backward once
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
