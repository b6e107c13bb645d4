# /// script
# dependencies = ["torch"]
# ///
"""A backward within another one makes register_multi_grad_hook lose the call of the outer one."""
# https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.register_multi_grad_hook

import torch

graph = getattr(torch.autograd, "graph", None)
if not hasattr(graph, "register_multi_grad_hook"):
    raise SystemExit(3)


def calls(nested):
    """What the hook is called with, where a hook of y runs a backward of a and b, or does not."""
    log = []
    a, b = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    y = 5 * a
    graph.register_multi_grad_hook(
        (y, a, b), lambda grads: log.append([None if g is None else g.item() for g in grads])
    )

    def within(grad):
        if nested:
            with torch.enable_grad():
                (a * b).backward(inputs=[a, b])

    y.register_hook(within)
    (y * b).backward()
    return log


control, experiment = calls(nested=False), calls(nested=True)
print("one backward:              ", control)
print("with another one within it:", experiment)
if control != [[3, 15, 10]]:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if experiment == [[None, 3, 2], *control] else 1)
