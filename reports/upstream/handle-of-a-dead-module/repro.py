# /// script
# dependencies = ["torch"]
# ///
"""The handle of a forward hook cannot be pickled or copied once its module is gone."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import copy
import pickle

from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


def outcomes(register):
    handle = getattr(nn.Identity(), register)(print)
    results = []
    for restore in (lambda handle: pickle.loads(pickle.dumps(handle)), copy.copy):
        try:
            restore(handle).remove()
            results.append("works")
        except TypeError as error:
            results.append(str(error))
    return results


control, experiment = outcomes("register_full_backward_hook"), outcomes("register_forward_hook")
print("register_full_backward_hook:", control)
print("register_forward_hook:      ", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != ["works", "works"] else 0 if experiment == control else 1)
