# /// script
# dependencies = ["torch"]
# ///
"""Step hooks of an optimizer whose step calls super().step() are called twice."""
# https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.register_step_post_hook.html

import torch

if not hasattr(torch.optim.Optimizer, "register_step_post_hook"):
    raise SystemExit(3)


class Mine(torch.optim.SGD):
    def step(self, closure=None):
        return super().step(closure)


def run():
    calls = []
    optimizer = Mine([torch.ones(1, requires_grad=True)], lr=0.1)
    optimizer.register_step_post_hook(lambda *args: calls.append("hook"))
    optimizer.step()
    return len(calls)


control = run()
torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)  # of which nothing more is done
experiment = run()
expected = 1  # one step of one optimizer
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
