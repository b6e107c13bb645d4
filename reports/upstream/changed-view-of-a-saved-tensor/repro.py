# /// script
# dependencies = ["torch"]
# ///
"""allow_mutation_on_saved_tensors misses a change through a view that begins later in memory."""
# https://docs.pytorch.org/docs/stable/autograd.html

import torch

graph = getattr(torch.autograd, "graph", None)
if not hasattr(graph, "allow_mutation_on_saved_tensors"):
    raise SystemExit(3)


def gradient(index):
    """That of a squared, 2a, where one element of what is saved is set to 0 before backward."""
    a = torch.tensor([2.0, 3.0], requires_grad=True)
    with graph.allow_mutation_on_saved_tensors():
        b = a.clone()
        loss = b.pow(2).sum()
        b[index].zero_()
        loss.backward()
    return a.grad.tolist()


control, experiment = gradient(0), gradient(1)
print("the first element is changed: ", control)
print("the second element is changed:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != [4, 6] else 0 if experiment == [4, 6] else 1)
