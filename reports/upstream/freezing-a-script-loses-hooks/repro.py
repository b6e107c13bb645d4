# /// script
# dependencies = ["torch"]
# ///
"""torch.jit.freeze drops the forward hooks of the root, silently; those of children stay."""
# https://docs.pytorch.org/docs/stable/generated/torch.jit.freeze.html

from typing import Tuple

import torch
from torch import Tensor, nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (1, 8):
    raise SystemExit(3)


def adds_one(module: nn.Module, args: Tuple[Tensor], output: Tensor) -> Tensor:
    return output + 1


def outputs(hooked):
    net = nn.Sequential(nn.Identity()).eval()
    (net if hooked == "root" else net[0]).register_forward_hook(adds_one)
    script = torch.jit.script(net)
    return [of(torch.tensor([3.0])).item() for of in (net, script, torch.jit.freeze(script))]


control, experiment = outputs("child"), outputs("root")
print("a hook of the child, in eager, scripted, frozen:", control)
print("a hook of the root, in eager, scripted, frozen: ", experiment)
# Each hook adds 1 to 3.
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != [4.0, 4.0, 4.0] else 0 if experiment == [4.0, 4.0, 4.0] else 1)
