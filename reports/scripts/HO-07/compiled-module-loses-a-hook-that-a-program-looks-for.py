# torch 2.15.0: hookcheck repro HO-07
# /// script
# dependencies = ["torch"]
# ///
"""OptimizedModule: A full backward hook is given the gradients of inputs and outputs, a full
backward pre-hook those of outputs."""

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 1):
    raise SystemExit(3)


def plain(value):
    if isinstance(value, torch.Tensor):
        value = value.tolist()
    if type(value) in (tuple, list):
        return type(value)(map(plain, value))
    if type(value) is dict:
        return {key: plain(item) for key, item in value.items()}
    return float(f"{value:.5g}") if type(value) in (int, float) else value


def check(name, observed, expected):
    observed, expected = plain(observed), plain(expected)
    print(f"{name}: expected {expected}, observed {observed}")
    if observed != expected:
        raise SystemExit(1 if name == "" else 2)


def what_full_hooks_are_given():
    for experiment in (False, True):
        got = {}
        tripled = torch.compile(
            type("Net", (nn.Module,), {"forward": lambda module, x: 3.0 * x})(), backend="eager"
        )
        (tripled.register_full_backward_hook if experiment else tripled.register_forward_pre_hook)(
            lambda *args: got.update(hook=args)
        )
        tripled.register_full_backward_pre_hook(lambda *args: got.update(pre=args))
        (5 * tripled(torch.tensor([1.0], requires_grad=True))).sum().backward()
        name = "module of the hook" if experiment else "with register_forward_pre_hook"
        check(name, bool(got["hook"][0] is tripled), True)


try:
    what_full_hooks_are_given()
except Exception as error:
    print(f"{type(error).__name__}: {error}")
    raise SystemExit(1)
