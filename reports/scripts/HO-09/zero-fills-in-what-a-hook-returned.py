# torch 2.15.0: hookcheck repro HO-09
# /// script
# dependencies = ["torch"]
# ///
"""ZeroRedundancyOptimizer: A state_dict post-hook is called as ``(optimizer, state_dict)`` …"""

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 1):
    raise SystemExit(3)


def check(name, observed, expected):
    print(f"{name}: expected {expected}, observed {observed}")
    if observed != expected:
        raise SystemExit(1)


def failure(act):
    try:
        act()
    except Exception as error:
        return f"{type(error).__name__}: {error}".partition("\n")[0]


distributed = torch.distributed
if not distributed.is_available() or not getattr(distributed, "is_gloo_available", lambda: True)():
    raise SystemExit(3)
distributed.init_process_group("gloo", rank=0, world_size=1, store=distributed.HashStore())
sgd_optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.25)
from torch.distributed.optim import ZeroRedundancyOptimizer as kind


class Collecting(kind):
    def state_dict(self):
        self.consolidate_state_dict()
        return super().state_dict()


optimizer = Collecting(sgd_optimizer.param_groups, type(sgd_optimizer), **sgd_optimizer.defaults)
log = []


def edited(optimizer, state):
    log.append(sorted(state))
    state["note"] = "edited"


optimizer.register_state_dict_post_hook(edited)
state = optimizer.state_dict()
optimizer.register_state_dict_post_hook(
    lambda optimizer, state: {"note": f"renewed, {state['note']}"}
)
optimizer.register_state_dict_post_hook(
    lambda given, state: log.append((given is optimizer, dict(state)))
)
check("state_dict works", failure(lambda: optimizer.state_dict()), None)
