# torch 2.15.0: hookcheck repro SI-05
# /// script
# dependencies = ["torch"]
# ///
"""register_optimizer_step_post_hook, where a hook removes itself: RuntimeError: OrderedDict
mutated during iteration."""

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 0):
    raise SystemExit(3)


def run(experiment):
    from torch.optim.optimizer import register_optimizer_step_post_hook

    calls = []
    net = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.0)

    def a(*_):
        calls.append("a")
        if experiment:
            handle_a.remove()

    handle_a = register_optimizer_step_post_hook(a)
    handle_b = register_optimizer_step_post_hook(lambda *_: calls.append("b"))
    try:
        optimizer.step()
    except Exception as error:
        calls.append(repr(error))
    handle_a.remove()
    handle_b.remove()
    return calls


expected = ["a", "b"]  # each hook is called once, in the order of registration
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
