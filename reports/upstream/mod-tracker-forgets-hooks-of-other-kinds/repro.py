# /// script
# dependencies = ["torch"]
# ///
"""ModTracker.register_user_hooks takes away the hooks of the kinds that a call does not name."""
# https://github.com/pytorch/pytorch/blob/v2.13.0/torch/distributed/_tools/mod_tracker.py

import torch
from torch import nn

try:
    from torch.distributed._tools.mod_tracker import ModTracker
except ImportError:
    raise SystemExit(3) from None


def run(calls):
    log = []
    tracker = ModTracker()
    for kinds in calls:
        tracker.register_user_hooks(
            **{kind: lambda *args, kind=kind: log.append(kind) for kind in kinds}
        )
    with tracker:
        nn.Identity()(torch.ones(1))
    return log


control = run([["pre_fw_hook", "post_fw_hook"]])
experiment = run([["pre_fw_hook"], ["post_fw_hook"]])
print("control, both by one call:   ", control)
print("experiment, one by each call:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
expected = ["pre_fw_hook", "post_fw_hook"]
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
