# torch 2.0.1: hookcheck repro HO-03
# /// script
# dependencies = ["torch"]
# ///
"""still lazy: A state_dict pre-hook is called as ``(module, prefix, keep_vars)`` before
``state_dict`` collects anything."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 0):
    raise SystemExit(3)


def check(name, observed, expected):
    print(f"{name}: expected {expected}, observed {observed}")
    if observed != expected:
        raise SystemExit(2 if name == "without LazyLinear" else 1)


torch.manual_seed(0)

for experiment in (False, True):
    linear_linear = nn.Linear(1, 1, bias=False)
    if experiment:
        module = nn.LazyLinear(linear_linear.out_features, bias=linear_linear.bias is not None)
    else:
        module = linear_linear
    module.load_state_dict(linear_linear.state_dict())
    nn.init.constant_(module.weight, 3)
    net = nn.Sequential(module)
    log = []

    def seen(module, prefix, keep_vars):
        log.append((type(module).__name__, prefix, keep_vars))

    handles = [module.register_state_dict_pre_hook(seen) for module in (net, net[0])]
    net.state_dict()
    log.clear()
    net.state_dict(prefix="net.", keep_vars=True)
    for handle in handles:
        handle.remove()
    net.state_dict()
    net.register_state_dict_pre_hook(
        lambda m, prefix, keep_vars: m.register_buffer("late", torch.tensor(2.0))
    )
    net[0].register_state_dict_pre_hook(
        lambda m, prefix, keep_vars: m.register_buffer("late", torch.tensor(5.0))
    )
    values_state = net.state_dict()
    state = {key: value.tolist() for key, value in values_state.items()}
    name = "what hooks add to their modules" if experiment else "without LazyLinear"
    check(name, state, {"late": 2, "0.weight": [[3]], "0.late": 5})
