"""Do layers compute what their documentation says, in settings in which some release did not?

Networks are drawn from the release on in which a layer is right (`Drawn.since`), so that what its numbers do to hooks
around it is not told over and over. What is wrong before that is told here.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from hookcheck.contract.clause import PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.program import program

LAYERS = "torch.nn"


def constant(layer: Any, value: float) -> Any:
    """The layer in float64, all its weights equal."""
    layer.double().weight.data.fill_(value)
    return layer


def row(*numbers: float, grad: bool = False) -> Any:
    """One channel of one sample."""
    return torch.tensor([[numbers]], dtype=torch.float64, requires_grad=grad)


@program("LY-01", PROMISE, since="1.7", source=f"{LAYERS}.ConvTranspose1d; pytorch#63314")
def a_transposed_convolution_of_single_elements(check: Check) -> None:
    """The gradients of a transposed convolution with a kernel of one element come from the places that its stride
    fills."""
    layer, x = constant(nn.ConvTranspose1d(1, 1, 1, stride=2, bias=False), 2.0), row(3.0, 5.0, grad=True)
    layer(x).backward(row(1.0, 10.0, 100.0))  # y = (2·3, 0, 2·5)
    check.equal("gradient of the input", x.grad, [[[2.0, 200.0]]])
    check.equal("gradient of the weight", layer.weight.grad, [[[3.0 * 1 + 5.0 * 100]]])


@program("LY-02", PROMISE, since="1.7", source=f"{LAYERS}.Conv3d; pytorch#45274")
def a_convolution_of_single_elements(check: Check) -> None:
    """The gradient of the weight of a Conv3d with a kernel of one element sums products over all places."""
    layer = constant(nn.Conv3d(1, 1, 1, bias=False), 2.0)
    x = torch.tensor([3.0, 5.0], dtype=torch.float64).reshape(1, 1, 1, 1, 2)
    layer(x).backward(torch.tensor([1.0, 10.0], dtype=torch.float64).reshape(1, 1, 1, 1, 2))
    check.equal("gradient of the weight", layer.weight.grad.reshape(1), [3.0 * 1 + 5.0 * 10])


@program("LY-03", PROMISE, since="1.7", source=f"{LAYERS}.MaxPool1d, ceil_mode; pytorch#45357")
def no_window_starts_past_the_input(check: Check) -> None:
    """With ``ceil_mode`` a last window that would start past the input is left out."""
    for name in ("MaxPool1d", "AvgPool1d"):
        x = row(1.0, 2.0, 3.0, grad=True)
        check.equal(name, getattr(nn, name)(1, stride=3, ceil_mode=True)(x), [[[1.0]]])


@program("LY-04", PROMISE, since="1.7", source=f"{LAYERS}.CosineSimilarity; pytorch#31378")
def each_norm_of_a_cosine_is_bounded(check: Check) -> None:
    """The cosine similarity of a zero vector divides by ``eps`` and by the other vector's norm."""
    x, y = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in ([0.0, 0.0], [3.0, 4.0]))
    nn.CosineSimilarity(dim=0, eps=0.5)(x, y).backward()
    check.equal("gradient of the zero vector", x.grad, [3.0 / (0.5 * 5.0), 4.0 / (0.5 * 5.0)])


@program("LY-05", PROMISE, since="1.8", source=f"{LAYERS}.GaussianNLLLoss, reduction")
def a_loss_that_is_not_reduced(check: Check) -> None:
    """GaussianNLLLoss with ``reduction="none"`` gives one number for each of its input's."""
    x, zeros = torch.tensor([[1.0, 2.0]]), torch.zeros(1, 2)
    check.equal("loss", nn.GaussianNLLLoss(reduction="none")(x, zeros, torch.ones(1, 2)), [[0.5, 2.0]])


@program("LY-06", PROMISE, since="1.11", source=f"{LAYERS}.ConvTranspose1d, output_size; pytorch#75889")
def a_size_for_one_sample(check: Check) -> None:
    """A transposed convolution takes an ``output_size`` for an input without a batch axis as well."""
    layer = nn.ConvTranspose1d(1, 1, 1, stride=2)
    given = check.works("output_size without a batch", partial(layer, torch.ones(1, 3), output_size=[6]))
    if given is not None:
        check.equal("shape", [*given.shape], [1, 6])


@program("LY-07", PROMISE, since="2.1", source=f"{LAYERS}.TransformerEncoderLayer, bias")
def an_encoder_layer_without_bias(check: Check) -> None:
    """A TransformerEncoderLayer without biases works in eval mode."""
    layer = nn.TransformerEncoderLayer(4, 2, 3, batch_first=True, bias=False).eval()
    check.works("layer in eval mode", partial(layer, torch.ones(1, 2, 4)))


@program("LY-08", PROMISE, since="1.11", source=f"{LAYERS}.Conv1d, padding_mode; pytorch#104860")
def a_circle_of_one_sample(check: Check) -> None:
    """A convolution with circular padding takes an input without a batch axis."""
    layer = constant(nn.Conv1d(1, 1, 3, padding=1, padding_mode="circular", bias=False), 1.0)
    x = torch.tensor([[1.0, 2.0, 4.0, 8.0]], dtype=torch.float64)
    given = check.works("circle without a batch", partial(layer, x))
    if given is not None:
        check.equal("sums of three", given, [[8.0 + 1 + 2, 1.0 + 2 + 4, 2.0 + 4 + 8, 4.0 + 8 + 1]])
