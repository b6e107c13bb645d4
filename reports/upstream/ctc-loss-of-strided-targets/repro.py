# /// script
# dependencies = ["torch"]
# ///
"""CTCLoss: the loss is wrong if targets in one row are not contiguous."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.CTCLoss.html

import torch
from torch import nn

# Two sequences of one step each, whose targets are the classes 1 and 2.
log_probs = torch.arange(6.0).reshape(1, 2, 3).log_softmax(2).requires_grad_()
lengths = torch.tensor([1, 1])
row = torch.tensor([1, 0, 2, 0])[::2]  # that is [1, 2]


def losses(targets):
    return nn.CTCLoss(reduction="none")(log_probs, targets, lengths, lengths)


# A sequence of one step has one path, so its loss is -log p(target).
expected = -log_probs[0, [0, 1], [1, 2]]
control, experiment = losses(row.contiguous()), losses(row)
print("control:   ", control.tolist())
print("experiment:", experiment.tolist())
if not torch.allclose(control, expected):
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if torch.allclose(experiment, expected) else 1)
