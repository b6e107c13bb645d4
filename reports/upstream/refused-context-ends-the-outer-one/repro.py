# /// script
# dependencies = ["torch"]
# ///
"""allow_mutation_on_saved_tensors that is refused within another one breaks the outer backward."""
# https://docs.pytorch.org/docs/stable/autograd.html

import torch

graph = getattr(torch.autograd, "graph", None)
if not hasattr(graph, "allow_mutation_on_saved_tensors"):
    raise SystemExit(3)


def gradient(nested):
    a = torch.tensor(2.0, requires_grad=True)
    with graph.allow_mutation_on_saved_tensors():
        y = a.clone().pow(2)
        if nested:
            try:
                with graph.allow_mutation_on_saved_tensors():
                    pass
            except RuntimeError as error:
                if "cannot be nested" not in str(error):
                    raise SystemExit(2) from error
        try:
            y.backward()
        except (AssertionError, RuntimeError) as error:
            return f"{type(error).__name__}: {error}"
    return a.grad.item()


control, experiment = gradient(nested=False), gradient(nested=True)
print("control:   ", control)
print("experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != 4 else 0 if experiment == control else 1)
