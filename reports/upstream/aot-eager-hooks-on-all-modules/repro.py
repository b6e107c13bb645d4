# /// script
# dependencies = ["torch"]
# ///
"""With the backend aot_eager a hook on all modules is called for the compiled graph too."""

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook

if not hasattr(getattr(torch, "compiler", None), "disable"):
    raise SystemExit(3)

layer, x, names = nn.Linear(2, 2), torch.ones(1, 2, requires_grad=True), []
# A hook that is not traced breaks the graph inside of the layer's call.
layer.register_forward_hook(torch.compiler.disable(lambda module, args, output: None))


@torch.compiler.disable
def note(module, args, output):
    names.append(type(module).__name__)


register_module_forward_hook(note)


def run(backend):
    torch._dynamo.reset()
    names.clear()
    torch.compile(lambda x: layer(x), backend=backend)(x)
    return [*names]


control, experiment = run("eager"), run("aot_eager")
print("control:   ", *control)
print("experiment:", *experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != ["Linear"] else 0 if experiment == ["Linear"] else 1)
