# torch 2.15.0: hookcheck repro HO-09
# /// script
# dependencies = ["torch"]
# ///
"""ZeroRedundancyOptimizer: What a load pre-hook writes into the dict, or returns for it, is
what later hooks get and what is loaded."""

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 1):
    raise SystemExit(3)


def plain(value):
    return float(f"{value:.5g}") if type(value) in (int, float) else value


def check(name, observed, expected):
    observed, expected = plain(observed), plain(expected)
    print(f"{name}: expected {expected}, observed {observed}")
    if observed != expected:
        raise SystemExit(2 if name == "without Collecting" else 1)


dist = torch.distributed
if not dist.is_available() or not getattr(dist, "is_gloo_available", lambda: True)():
    raise SystemExit(3)
dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
for experiment in (False, True):
    sgd_optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.25)
    from torch.distributed.optim import ZeroRedundancyOptimizer as kind

    class Collecting(kind):
        def state_dict(self):
            self.consolidate_state_dict()
            return super().state_dict()

    if experiment:
        optimizer = Collecting(
            sgd_optimizer.param_groups, type(sgd_optimizer), **sgd_optimizer.defaults
        )
    else:
        optimizer = sgd_optimizer

    def edited(optimizer, state):
        state["param_groups"] = [{**state["param_groups"][0], "lr": 0.125}]

    optimizer.register_load_state_dict_pre_hook(edited)
    optimizer.load_state_dict(optimizer.state_dict())
    name = "the learning rate after an edit in place" if experiment else "without Collecting"
    check(name, float(optimizer.state_dict()["param_groups"][0]["lr"]), 0.125)
