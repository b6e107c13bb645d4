# /// script
# dependencies = ["torch"]
# ///
"""Under anomaly detection the graph of a backward that raises is never freed, nor its hooks."""
# https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection

import gc
import warnings
import weakref

import torch

warnings.filterwarnings("ignore", "Anomaly Detection has been enabled|Error detected in")


class Watch:
    def __call__(self, gradient):
        pass


def stays(detect):
    watch = Watch()
    x = torch.ones(2, 2, requires_grad=True)
    weight = torch.ones(2, 2, requires_grad=True)
    with torch.autograd.set_detect_anomaly(detect):
        y = torch.nn.functional.linear(x, weight)
        y.register_hook(watch)
        with torch.no_grad():
            weight.zero_()  # what backward needs
        try:
            y.sum().backward()
        except RuntimeError as error:
            if "modified by an inplace operation" not in str(error):
                raise SystemExit(2) from error
    seen = weakref.ref(watch)
    del x, weight, y, watch
    torch.ones(1, requires_grad=True).exp().backward()  # drops what a failed one was to run
    gc.collect()
    return seen() is not None


control, experiment = stays(detect=False), stays(detect=True)
print("the hook stays without anomaly detection:", control)
print("the hook stays with anomaly detection:   ", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control else 1 if experiment else 0)
