# /// script
# dependencies = ["torch"]
# ///
"""A copy of an LBFGS raises in every step, after its step pre-hooks and before its post-hooks."""
# https://docs.pytorch.org/docs/stable/generated/torch.optim.LBFGS.html

import copy
import pickle

import torch

if not hasattr(torch.optim.Optimizer, "register_step_post_hook"):
    raise SystemExit(3)


def hooks_of_a_step(kind, copied):
    other = copied(kind([torch.nn.Parameter(torch.ones(1))], lr=0.25))
    (parameter,) = other.param_groups[0]["params"]
    log = []
    other.register_step_pre_hook(lambda *args: log.append("pre-hook"))
    other.register_step_post_hook(lambda *args: log.append("post-hook"))

    def closure():
        other.zero_grad()
        loss = (parameter**2).sum()
        loss.backward()
        return loss

    try:
        other.step(closure)
    except AttributeError as error:
        log.append(f"AttributeError: {error}")
    return log


both = ["pre-hook", "post-hook"]
controls, experiments = [], []
for name, copied in (
    ("deepcopy", copy.deepcopy),
    ("pickle", lambda optimizer: pickle.loads(pickle.dumps(optimizer))),
):
    controls.append(hooks_of_a_step(torch.optim.SGD, copied))
    experiments.append(hooks_of_a_step(torch.optim.LBFGS, copied))
    print(f"{name}: SGD {controls[-1]}, LBFGS {experiments[-1]}")
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if controls != [both] * 2 else 0 if experiments == controls else 1)
