# /// script
# dependencies = ["torch"]
# ///
"""register_multi_grad_hook that refuses a list leaves hooks on the tensors before the culprit."""
# https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.register_multi_grad_hook

import torch

graph = getattr(torch.autograd, "graph", None)
if not hasattr(graph, "get_gradient_edge"):
    raise SystemExit(3)


def calls(refused):
    """Calls of a hook whose registration raises, as that of the last in the list does."""
    log = []
    a = torch.tensor(2.0, requires_grad=True)
    try:
        graph.register_multi_grad_hook((a, refused(a)), lambda grads: log.append("called"))
    except (AssertionError, AttributeError, RuntimeError) as error:
        log.append(type(error).__name__)
    (3 * a).backward()
    return log


control = calls(lambda a: torch.tensor(1.0))
experiment = calls(lambda a: graph.get_gradient_edge(2 * a))
print("a tensor that requires no grad:", control)
print("a gradient edge:               ", experiment)
if not control or "called" in control:
    raise SystemExit(2)  # the control fails
raise SystemExit(1 if "called" in experiment and len(experiment) > 1 else 0)
