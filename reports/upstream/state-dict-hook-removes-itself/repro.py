# /// script
# dependencies = ["torch"]
# ///
"""A load_state_dict post-hook that removes itself raises; a forward hook may remove itself."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_load_state_dict_post_hook"):
    raise SystemExit(3)


def run(register, act):
    net = nn.Linear(1, 1)
    handle = getattr(net, register)(lambda *args: handle.remove())
    getattr(net, register)(lambda *args: None)
    try:
        act(net)
    except RuntimeError as error:
        return str(error)


control = run("register_forward_hook", lambda net: net(torch.ones(1)))
experiment = run(
    "register_load_state_dict_post_hook", lambda net: net.load_state_dict(net.state_dict())
)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control is not None else 0 if experiment is None else 1)
