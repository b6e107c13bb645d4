"""What does a collector of attention maps collect? A worked program: hooks on every module with a word in its name.

Collectors like this one stand in many explanation tools for transformers. They take ``grad_input[0]`` to be the
gradient of the module's input, which it is with a full backward hook, and is not with a legacy one on a Linear.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import nn

REGISTER = {"legacy": "register_backward_hook", "full": "register_full_backward_hook"}


class AttentionCapture:
    """Collects output and ``grad_input[0]`` of every module of ``model`` with ``word`` in its name, each time it runs.

    The hooks are bound methods: torch calls what was registered, so ``self`` is there and no lambda is needed.
    """

    def __init__(self, model: nn.Module, word: str, variant: str) -> None:
        """Registers a forward hook and a backward hook, ``legacy`` or ``full``, on those modules."""
        self.attentions: list[torch.Tensor] = []
        self.gradients: list[torch.Tensor] = []
        for name, module in model.named_modules():
            if word in name:
                module.register_forward_hook(self.keep_attention)
                getattr(module, REGISTER[variant])(self.keep_gradient)

    def keep_attention(self, module: nn.Module, args: Any, output: torch.Tensor) -> None:
        """Called by torch after the module's forward."""
        self.attentions.append(output)

    def keep_gradient(self, module: nn.Module, grad_input: Any, grad_output: Any) -> None:
        """Called by torch in the module's backward."""
        self.gradients.append(grad_input[0])


def run(model: nn.Module, word: str, variant: str, inputs: Iterable[torch.Tensor]) -> AttentionCapture:
    """Runs ``model`` forward and, from the mean of its output, backward on each of ``inputs``."""
    capture = AttentionCapture(model, word, variant)
    for data in inputs:
        model(data).mean().backward()
    return capture


def recorded(capture: AttentionCapture) -> dict[tuple[str, str, int], tuple[np.ndarray, ...]]:
    """Every captured tensor by (subject, what, position in the list)."""
    lists = {"attention": capture.attentions, "gradient": capture.gradients}
    return {
        ("capture", what, n): (tensor.detach().cpu().numpy(),)
        for what, tensors in lists.items()
        for n, tensor in enumerate(tensors)
    }


if __name__ == "__main__":
    from hookcheck.programs.systems.oracles import captured, linear_chain
    from hookcheck.programs.systems.side_by_side import table

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 10))
    inputs = [torch.randn(1, 10, requires_grad=True) for _ in range(2)]
    variants = [v for v in REGISTER if hasattr(nn.Module, REGISTER[v])]  # a module takes only one of the two: copies
    parameters = {name: parameter.tolist() for name, parameter in model.named_parameters()}
    right = captured(linear_chain(parameters, [data.tolist() for data in inputs]), "0")
    print(table(right, {v: recorded(run(deepcopy(model), "0", v, inputs)) for v in variants}, "float32"))
