# /// script
# dependencies = ["torch"]
# ///
"""A hook that raises: what backward had yet to run is not freed before the next backward."""
# https://docs.pytorch.org/docs/stable/notes/faq.html

import gc
import weakref

import torch


class Watch:
    def __call__(self, gradient):
        pass


def run(raises):
    other = torch.ones(1, requires_grad=True)
    watch = Watch()
    other.register_hook(watch)
    waiting = other * 2  # made before y, so its Node is run after that of y
    y = torch.ones(1, requires_grad=True) * 3

    def hook(gradient):
        if raises:
            raise ValueError("on purpose")

    y.register_hook(hook)
    try:
        (y + waiting).backward()
    except ValueError:
        pass
    return weakref.ref(watch)


control = run(raises=False)
gc.collect()
print("without an exception, freed:", control() is None)
if control() is not None:
    raise SystemExit(2)  # the control fails
experiment = run(raises=True)
gc.collect()
at_once = experiment() is None
print("after an exception, freed:", at_once)
torch.ones(1, requires_grad=True).exp().backward()  # any graph at all
gc.collect()
print("after another backward, freed:", experiment() is None)
raise SystemExit(0 if at_once else 1)
