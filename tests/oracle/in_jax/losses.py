"""Every loss, from the formulas of its documentation; CTC by listing all paths."""

from __future__ import annotations

from itertools import groupby, product, takewhile
from typing import Any

import jax
import jax.numpy as jnp
from jax.nn import log_sigmoid, log_softmax, relu, softplus

from hookcheck.topology.layers.loss_classes import CrossEntropyLoss, LinearCrossEntropyLoss, NLLLoss, NLLLoss2d
from hookcheck.topology.layers.loss_ctc import CTCLoss
from hookcheck.topology.layers.loss_elementwise import (
    GaussianNLLLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MSELoss,
    PoissonNLLLoss,
    SmoothL1Loss,
)
from hookcheck.topology.layers.loss_entropy import BCELoss, BCEWithLogitsLoss
from hookcheck.topology.layers.loss_margins import (
    CosineEmbeddingLoss,
    HingeEmbeddingLoss,
    MarginRankingLoss,
    MultiLabelMarginLoss,
    MultiLabelSoftMarginLoss,
    MultiMarginLoss,
    SoftMarginLoss,
)
from hookcheck.topology.layers.loss_triplets import TripletMarginLoss


def reduced(layer: Any, losses: Any) -> Any:
    """The losses as the layer's reduction has them."""
    if layer.reduction == "batchmean":
        return (losses.sum() / len(losses),)
    return ({"none": lambda x: x, "mean": jnp.mean, "sum": jnp.sum}[layer.reduction](losses),)


def l1(layer: Any, inputs: Any, _: Any) -> Any:
    d = inputs[0] - inputs[1]
    return reduced(layer, d * jnp.sign(d))  # JAX's slope of abs at 0 is 1, torch's is 0


def smooth_l1(layer: Any, inputs: Any, _: Any) -> Any:
    d = jnp.abs(inputs[0] - inputs[1])
    below = jnp.minimum(d, layer.beta)
    return reduced(layer, (below**2 / (2 * layer.beta) if layer.beta else 0) + relu(d - layer.beta))


def huber(layer: Any, inputs: Any, _: Any) -> Any:
    d = jnp.abs(inputs[0] - inputs[1])
    return reduced(layer, jnp.minimum(d, layer.delta) ** 2 / 2 + layer.delta * relu(d - layer.delta))


def poisson(layer: Any, inputs: Any, _: Any) -> Any:
    x, y = inputs
    rate = jnp.exp(x) if layer.log_input else x
    losses = rate - y * (x if layer.log_input else jnp.log(x + layer.eps))
    if layer.full:
        losses += jnp.where(y > 1, y * jnp.log(y) - y + 0.5 * jnp.log(2 * jnp.pi * y), 0)
    return reduced(layer, losses)


def gaussian(layer: Any, inputs: Any, _: Any) -> Any:
    x, y, var = inputs
    if var.shape != x.shape and var.ndim < x.ndim:
        var = jnp.expand_dims(var, -1)
    deviation = jnp.sqrt(jnp.maximum(var, layer.eps))
    density = jax.scipy.stats.norm.logpdf(x, y, deviation)
    return reduced(layer, -density - (0 if layer.full else 0.5 * jnp.log(2 * jnp.pi)))


def kl(layer: Any, inputs: Any, _: Any) -> Any:
    x, y = inputs
    p = jnp.exp(y) if layer.log_target else y
    return reduced(layer, p * (jnp.log(p) - x))


def bce(layer: Any, inputs: Any, parameters: Any) -> Any:
    x, y = inputs
    return reduced(layer, -parameters.get("weight", 1) * (y * jnp.log(x) + (1 - y) * jnp.log1p(-x)))


def bce_with_logits(layer: Any, inputs: Any, parameters: Any) -> Any:
    x, y = inputs
    likelihood = parameters.get("pos_weight", 1) * y * log_sigmoid(x) + (1 - y) * log_sigmoid(-x)
    return reduced(layer, -parameters.get("weight", 1) * likelihood)


def hinge_embedding(layer: Any, inputs: Any, _: Any) -> Any:
    x, y = inputs
    return reduced(layer, jnp.where(y == 1, x, relu(layer.margin - x)))


def multi_label_soft_margin(layer: Any, inputs: Any, parameters: Any) -> Any:
    x, y = inputs
    losses = y * log_sigmoid(x) + (1 - y) * log_sigmoid(-x)
    return reduced(layer, -(parameters.get("weight", 1) * losses).mean(1))


def multi_margin(layer: Any, inputs: Any, parameters: Any) -> Any:
    x, y = inputs
    classes = x.shape[1]
    weight = parameters.get("weight", jnp.ones(classes))

    def loss(row: Any, k: int) -> Any:
        others = jnp.array([i for i in range(classes) if i != k], dtype=int)
        return weight[k] * (relu(layer.margin - row[k] + row[others]) ** layer.p).sum() / classes

    return reduced(layer, jnp.stack([loss(row, int(k)) for row, k in zip(x, y)]))


def multi_label_margin(layer: Any, inputs: Any, _: Any) -> Any:
    x, y = inputs

    def loss(row: Any, labels: list[int]) -> Any:
        labels = [*takewhile(lambda label: label >= 0, labels)]
        others = [i for i in range(len(row)) if i not in labels]
        return sum((relu(1 - row[j] + row[i]) for j in labels for i in others), jnp.zeros(())) / len(row)

    return reduced(layer, jnp.stack([loss(row, labels.tolist()) for row, labels in zip(x, y)]))


def cosine_embedding(layer: Any, inputs: Any, _: Any) -> Any:
    a, b, y = inputs
    squares = ((a**2).sum(1) + 1e-12) * ((b**2).sum(1) + 1e-12)
    cosine = jnp.einsum("nd,nd->n", a, b) / jnp.sqrt(squares)
    return reduced(layer, jnp.where(y == 1, 1 - cosine, relu(cosine - layer.margin)))


def triplet(layer: Any, inputs: Any, p: float, eps: float) -> Any:
    def distance(x: Any, y: Any) -> Any:
        return jnp.linalg.norm(x - y + eps, ord=p, axis=1)

    anchor, positive, negative = inputs
    far = distance(anchor, negative)
    if layer.swap:
        far = jnp.minimum(far, distance(positive, negative))
    return reduced(layer, relu(layer.margin + distance(anchor, positive) - far))


def classification(layer: Any, scores: Any, y: Any, parameters: Any, smoothing: float = 0.0) -> Any:
    scores = jnp.moveaxis(scores, 1, -1)
    classes = scores.shape[-1]
    weight = parameters.get("weight", jnp.ones(classes))
    if y.dtype.kind == "f":
        probabilities = (1 - smoothing) * jnp.moveaxis(y, 1, -1) + smoothing / classes
        return reduced(layer, -(weight * probabilities * scores).sum(-1))
    chosen = weight[y] * jnp.take_along_axis(scores, y[..., None], -1)[..., 0]
    losses = -(1 - smoothing) * chosen - smoothing * (weight * scores).mean(-1)
    mask = y != layer.ignore_index
    losses = jnp.where(mask, losses, 0)
    if layer.reduction == "mean":
        return (losses.sum() / (weight[y] * mask).sum(),)
    return reduced(layer, losses)


def cross_entropy(layer: Any, inputs: Any, parameters: Any) -> Any:
    x, y = inputs
    return classification(layer, log_softmax(x, axis=1), y, parameters, layer.label_smoothing)


def linear_cross_entropy(layer: Any, inputs: Any, parameters: Any) -> Any:
    x, y = inputs
    shape = (layer.num_classes, *layer.out_features)
    logits = jnp.tensordot(x, parameters["linear.weight"].reshape(*shape, -1), ((-1,), (-1,)))
    if layer.bias:
        logits += parameters["linear.bias"].reshape(shape)
    if x.ndim > 1:
        return cross_entropy(layer, (logits, y), parameters)
    (loss,) = cross_entropy(layer, (logits[None], y[None]), parameters)
    return (loss.reshape(()),)


def ctc(layer: Any, inputs: Any, _: Any) -> Any:
    """The loss as a function of logits, which is what torch differentiates."""
    x, y = log_softmax(inputs[0], axis=-1), inputs[1]
    starts = [sum(layer.target_lengths[:n]) for n in range(x.shape[1])]
    losses = []
    for n, (end, count) in enumerate(zip(layer.input_lengths, layer.target_lengths)):
        labels = list(y[n, :count] if y.ndim == 2 else y[starts[n] : starts[n] + count])
        paths = [
            path
            for path in product(range(x.shape[2]), repeat=end)
            if [c for c, _ in groupby(path) if c != layer.blank] == labels
        ]
        path_scores = [sum(x[t, n, c] for t, c in enumerate(path)) for path in paths]
        loss = -jax.nn.logsumexp(jnp.stack(path_scores)) if path_scores else jnp.zeros(())
        losses.append(loss / max(count, 1) if layer.reduction == "mean" else loss)
    return reduced(layer, jnp.stack(losses))


IN_JAX = {
    L1Loss: l1,
    MSELoss: lambda layer, inputs, _: reduced(layer, jnp.square(inputs[0] - inputs[1])),
    SmoothL1Loss: smooth_l1,
    HuberLoss: huber,
    PoissonNLLLoss: poisson,
    GaussianNLLLoss: gaussian,
    KLDivLoss: kl,
    BCELoss: bce,
    BCEWithLogitsLoss: bce_with_logits,
    SoftMarginLoss: lambda layer, inputs, _: reduced(layer, softplus(-inputs[0] * inputs[1])),
    HingeEmbeddingLoss: hinge_embedding,
    MarginRankingLoss: lambda layer, xs, _: reduced(layer, relu(xs[2] * (xs[1] - xs[0]) + layer.margin)),
    MultiLabelSoftMarginLoss: multi_label_soft_margin,
    MultiMarginLoss: multi_margin,
    MultiLabelMarginLoss: multi_label_margin,
    CosineEmbeddingLoss: cosine_embedding,
    TripletMarginLoss: lambda layer, inputs, _: triplet(layer, inputs, layer.p, layer.eps),
    NLLLoss: lambda layer, inputs, parameters: classification(layer, *inputs, parameters),
    NLLLoss2d: lambda layer, inputs, parameters: classification(layer, *inputs, parameters),
    CrossEntropyLoss: cross_entropy,
    LinearCrossEntropyLoss: linear_cross_entropy,
    CTCLoss: ctc,
}
NOT_IN_JAX: dict[type, str] = {}
