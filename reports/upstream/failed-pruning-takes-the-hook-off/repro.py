# /// script
# dependencies = ["torch"]
# ///
"""A second pruning that fails takes the hook of the first one off: the weight stays what it was."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.prune.l1_unstructured.html

import torch
from torch import nn
from torch.nn.utils import prune


def learnt(again):
    """The output of a pruned layer whose weights have become (7, 7); expected is 7 + 0."""
    layer = nn.Linear(2, 1, bias=False)
    prune.custom_from_mask(layer, "weight", torch.tensor([[1.0, 0.0]]))
    layer.weight_orig.data.fill_(1.0)
    layer(torch.ones(1, 2))
    if again:
        try:
            prune.l1_unstructured(layer, "weight", amount=3)
        except ValueError as error:
            print(error)
    layer.weight_orig.data.fill_(7.0)
    return layer(torch.ones(1, 2)).item(), prune.is_pruned(layer)


control, experiment = learnt(again=False), learnt(again=True)
print("output, and whether it is pruned")
print("control, pruned once:                ", control)
print("experiment, and once more, in vain:  ", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != (7.0, True) else 0 if experiment == control else 1)
