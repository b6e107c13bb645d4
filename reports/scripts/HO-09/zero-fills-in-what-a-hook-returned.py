# torch 2.15.0: hookcheck repro HO-09
# /// script
# dependencies = ["torch"]
# ///
"""ZeroRedundancyOptimizer: A state_dict post-hook is called as ``(optimizer, state_dict)`` and
may edit it in place or return a new one."""

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 1):
    raise SystemExit(3)


def check(name, observed, expected):
    print(f"{name}: expected {expected}, observed {observed}")
    if observed != expected:
        raise SystemExit(1 if name == "state_dict works" else 2)


def failure(act):
    try:
        act()
    except Exception as error:
        return f"{type(error).__name__}: {error}".partition("\n")[0]


dist = torch.distributed
if not dist.is_available() or not getattr(dist, "is_gloo_available", lambda: True)():
    raise SystemExit(3)
dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
sgd_optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.25)
from torch.distributed.optim import ZeroRedundancyOptimizer as kind


class Collecting(kind):
    def state_dict(self):
        self.consolidate_state_dict()
        return super().state_dict()


optimizer = Collecting(sgd_optimizer.param_groups, type(sgd_optimizer), **sgd_optimizer.defaults)


def edited(optimizer, state):
    state["note"] = "edited"


optimizer.register_state_dict_post_hook(edited)
state = optimizer.state_dict()
check("keys after an edit in place", sorted(state), ["note", "param_groups", "state"])
optimizer.register_state_dict_post_hook(
    lambda optimizer, state: {"note": f"renewed, {state['note']}"}
)
optimizer.register_state_dict_post_hook(lambda given, state: None)
check("state_dict works", failure(lambda: optimizer.state_dict()), None)
