# /// script
# dependencies = ["torch"]
# ///
"""Under compiled autograd a post-accumulate hook on a sparse leaf makes backward raise."""

from contextlib import nullcontext

import torch

try:
    from torch._dynamo.compiled_autograd import _enable
except ImportError:
    raise SystemExit(3) from None


def outcome(hooked, context):
    log = []
    leaf = torch.eye(2).to_sparse().requires_grad_()
    if hooked:
        leaf.register_post_accumulate_grad_hook(lambda leaf: log.append("called"))
    try:
        with context:
            leaf.to_dense().sum().backward()
    except (RuntimeError, SystemError) as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return log


eager = outcome(True, nullcontext())
control = outcome(False, _enable(lambda graph: graph.forward))
experiment = outcome(True, _enable(lambda graph: graph.forward))
print("eager mode, a hook:         ", eager)
print("compiled autograd, no hook: ", control)
print("compiled autograd, a hook:  ", experiment)
if not (eager == ["called"] and control == []):
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if experiment == eager else 1)
