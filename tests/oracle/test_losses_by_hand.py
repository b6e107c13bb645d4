"""Losses on numbers that can be checked in one's head: reductions, weights, ignored classes, kinks, alignments."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
import pytest
import torch

from hookcheck.oracle.tolerance import assert_close
from hookcheck.topology.layers.loss import _Loss
from hookcheck.topology.layers.loss_classes import CrossEntropyLoss, LinearCrossEntropyLoss, NLLLoss
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
    MultiMarginLoss,
    SoftMarginLoss,
)
from hookcheck.topology.layers.loss_triplets import TripletMarginLoss
from hookcheck.topology.primitive import Array
from hookcheck.topology.source import expression
from hookcheck.topology.tree import Ref


def evaluate(layer: _Loss, *inputs: Any, v: Any = 1.0) -> tuple[Array, tuple[Array | None, ...]]:
    """The loss and the gradients of the inputs."""
    arrays = tuple(map(np.array, inputs))
    (loss,) = layer.forward(arrays, layer.buffers())
    gradients, _ = layer.vjp(arrays, layer.buffers(), (np.array(v),))
    return loss, gradients


def assert_loss(layer: _Loss, inputs: tuple[Any, ...], loss: Any, *gradients: Any, v: Any = 1.0) -> None:
    """That loss, and those gradients of the first inputs."""
    observed, pulled = evaluate(layer, *inputs, v=v)
    assert_close(observed, loss)
    for one, other in zip(pulled, gradients):
        assert one is not None
        assert_close(one, other)


def test_a_mean_shares_its_cotangent_among_the_losses() -> None:
    # (3 - 1)² = 4 and (0 - 1)² = 1 have the slopes 4 and -2.
    pair = [3.0, 0.0], [1.0, 1.0]
    assert_loss(MSELoss(), pair, 2.5, [2, -1], [-2, 1])
    assert_loss(MSELoss("sum"), pair, 5, [4, -2])
    assert_loss(MSELoss("none"), pair, [4, 1], [40, -200], v=[10.0, 100.0])


def test_the_slope_of_an_absolute_difference_is_0_at_0() -> None:
    assert_loss(L1Loss("sum"), ([2.0, 5.0], [2.0, 7.0]), 2, [0, -1], [0, 1])
    assert_loss(SmoothL1Loss("sum", 0.0), ([2.0, 5.0], [2.0, 7.0]), 2, [0, -1], [0, 1])


def test_smooth_l1_divides_by_beta_what_huber_multiplies_by_delta() -> None:
    # d = 1 is within 2: 1² / (2 · 2) and 1² / 2. d = 6 is outside: 6 - 1 and 2 (6 - 1).
    pair = [1.0, 6.0], [0.0, 0.0]
    assert_loss(SmoothL1Loss("sum", 2.0), pair, 5.25, [0.5, 1])
    assert_loss(HuberLoss("sum", 2.0), pair, 10.5, [1, 2])


def test_the_divergence_of_a_batch_is_divided_by_its_length_alone() -> None:
    # With y = 1 and x = -1 each element loses 1 (0 + 1), six of them 6.
    pair = np.full((2, 3), -1.0), np.ones((2, 3))
    assert_loss(KLDivLoss("batchmean"), pair, 3, np.full((2, 3), -0.5), np.full((2, 3), 1.0))
    assert_loss(KLDivLoss(), pair, 1, np.full((2, 3), -1 / 6))
    assert_loss(KLDivLoss("batchmean", log_target=True), (pair[0], np.zeros((2, 3))), 3, np.full((2, 3), -0.5))


def test_poisson_approximates_the_factorial_only_above_1() -> None:
    # Rates of 1, so ln x = 0: 1 - 0 for each, and Stirling's ln 2! ≈ 2 ln 2 - 2 + ln(4 π) / 2 for the 2.
    layer = PoissonNLLLoss(log_input=False, full=True, eps=0.0, reduction="none")
    assert_loss(
        layer,
        ([1.0, 1.0], [0.5, 2.0]),
        [1, 2 * log(2) - 1 + log(4 * np.pi) / 2],
        [0.5, -1],
        [0, log(2) + 0.25],
        v=[1.0, 1.0],
    )


def test_one_variance_for_a_row_gathers_the_gradients_of_the_row() -> None:
    # s = 2, d = 2 and 4: (ln 2 + 2) / 2 and (ln 2 + 8) / 2; ∂var = (1 - 2) / 4 + (1 - 8) / 4 = -2.
    expected = (log(2) + 5, [[1, 2]], [[-1, -2]])
    assert_loss(GaussianNLLLoss(reduction="sum"), ([[2.0, 4.0]], [[0.0, 0.0]], [[2.0]]), *expected, [[-2]])
    assert_loss(GaussianNLLLoss(reduction="sum"), ([[2.0, 4.0]], [[0.0, 0.0]], [2.0]), *expected, [-2])


def test_the_positive_weight_counts_only_the_positive_share() -> None:
    # At logit 0 both logarithms are ln 2: 3 · ln 2 / 4 + 3 / 4 · ln 2, times 2; the slope is (3 / 4 - 3 / 4) / 2.
    layer = BCEWithLogitsLoss(weight=(2.0,), reduction="sum", pos_weight=(3.0,))
    assert_loss(layer, ([0.0], [0.25]), 3 * log(2), [0], [4 * log(2)])


def test_a_fair_guess_of_a_coin_does_not_favour_any_target() -> None:
    # At 1/2: (1/2 - 1) / (1/4) = -2, weighted by 2; ∂y is 0.
    assert_loss(BCELoss(weight=(2.0,)), ([0.5], [1.0]), 2 * log(2), [-4], [0])


def test_signs_choose_what_is_lost() -> None:
    # 5 for the like pair; 1 - 0.25 is lacking, 3 is beyond the margin.
    triple = [5.0, 0.25, 3.0], [1.0, -1.0, -1.0]
    assert_loss(HingeEmbeddingLoss(reduction="sum"), triple, 5.75, [1, -1, 0], [0, 0, 0])
    # 1/2 - (2 - 1) < 0 loses nothing, turned round it loses 3/2.
    ranking = [2.0, 2.0], [1.0, 1.0], [1.0, -1.0]
    assert_loss(MarginRankingLoss(0.5, "sum"), ranking, 1.5, [0, 1], [0, -1], [0, -1])
    assert_loss(SoftMarginLoss(), ([0.0, 0.0], [1.0, -1.0]), log(2), [-0.25, 0.25])


def test_a_soft_margin_whose_exponential_is_too_large_is_infinite_and_its_slope_is_nan() -> None:
    loss, (gradient, _) = evaluate(SoftMarginLoss("none"), [800.0, 0.0], [-1.0, -1.0], v=[1.0, 1.0])
    assert_close(loss, [np.inf, log(2)])
    assert gradient is not None
    assert_close(gradient, [np.nan, 0.5])
    x = torch.tensor([800.0, 0.0], dtype=torch.float64, requires_grad=True)
    torch.nn.SoftMarginLoss(reduction="none")(x, -torch.ones(2, dtype=torch.float64)).sum().backward()
    assert x.grad is not None
    assert_close(x.grad.numpy(), gradient)


def test_a_weighted_mean_divides_by_the_weights_of_the_classes_not_ignored() -> None:
    # Losses 3 · 1 and 1 · 5 over 3 + 1; the third sample is ignored and counts nowhere.
    layer = NLLLoss((3.0, 1.0, 7.0), ignore_index=2)
    scores = [[-1.0, 0.0, 0.0], [0.0, -5.0, 0.0], [0.0, 0.0, -9.0]]
    assert_loss(layer, (scores, [0, 1, 2]), 2, [[-0.75, 0, 0], [0, -0.25, 0], [0, 0, 0]])


def test_smoothing_weighs_each_class_by_its_own_weight_and_the_mean_by_that_of_the_target() -> None:
    # All logits equal: ln 2 each. q = (4 · 3/4, 2 · 1/4), so 3.5 ln 2, divided by the target's 4.
    layer = CrossEntropyLoss((4.0, 2.0), label_smoothing=0.5)
    assert_loss(layer, ([[0.0, 0.0]], [0]), 3.5 * log(2) / 4, [[(3.5 / 2 - 3) / 4, (3.5 / 2 - 0.5) / 4]])


def test_the_mean_over_probabilities_divides_by_the_samples_whatever_the_weights() -> None:
    # q = (4 · 1, 0) and (0, 2 · 1): 4 ln 2 and 2 ln 2 over 2 samples; ∂y = w ln 2 / 2.
    layer = CrossEntropyLoss((4.0, 2.0), probabilities=True)
    pair = [[0.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]
    assert_loss(layer, pair, 3 * log(2), [[-1, 1], [0.5, -0.5]], [[2 * log(2), log(2)]] * 2)


def test_the_classes_of_a_linear_cross_entropy_come_before_its_places() -> None:
    # Rows 0, 1 of W are class 0 at both places: logits (0, 1) there and (0, 0) for class 1.
    layer = LinearCrossEntropyLoss(1, 2, out_features=(2,), reduction="none")
    parameters = {"linear.weight": np.array([[0.0], [1.0], [0.0], [0.0]])}
    (losses,) = layer.forward((np.array([[1.0]]), np.array([[0, 0]])), parameters)
    assert_close(losses, [[log(2), log(1 + np.exp(-1))]])


def test_the_class_of_a_multi_margin_loss_pays_for_all_who_come_near() -> None:
    # Class 0 at 1: the 1/2 lacks 1/2 of the margin, the 3 lacks 3, the -1 nothing. Squared: 1/4 + 9, over 4.
    row = [[1.0, 0.5, 3.0, -1.0]]
    assert_loss(MultiMarginLoss(), (row, [0]), 3.5 / 4, [[-0.5, 0.25, 0.25, 0]])
    assert_loss(MultiMarginLoss(p=2, weight=(2.0, 1.0, 1.0, 1.0)), (row, [0]), 18.5 / 4, [[-3.5, 0.5, 3, 0]])


def test_labels_after_the_first_minus_one_are_no_labels() -> None:
    # Labels 3 and 0 against classes 1 and 2. Label 3 (at 4): 1 - 4 + 2 < 0 and 1 - 4 + 5 = 2; label 0 (at 1): 2 and 5.
    rows = [[1.0, 2.0, 5.0, 4.0]], [[3, 0, -1, 1]]
    assert_loss(MultiLabelMarginLoss(), rows, 9 / 4, [[-0.5, 0.25, 0.5, -0.25]])
    observed = torch.nn.MultiLabelMarginLoss()(torch.tensor(rows[0]), torch.tensor(rows[1]))
    assert_close(observed, 9 / 4)


def test_a_label_that_is_named_twice_counts_twice() -> None:
    # Label 0 against class 1, two times: 1 - 0 + 1/2 each, over 2.
    assert_loss(MultiLabelMarginLoss(), ([[0.0, 0.5]], [[0, 0]]), 1.5, [[-1, 1]])


def test_the_cosine_loses_nothing_to_orthogonal_vectors_that_are_to_differ() -> None:
    # Cosines 0, and 1 along the diagonal: like pairs lose 1 and 0, unlike ones 0 and 1/2. A cosine's divisor is the
    # root of the squares of both norms, to each of which torch adds 1e-12.
    a, b = [[1.0, 0.0], [1.0, 1.0]], [[0.0, 1.0], [2.0, 2.0]]
    loss, (da, _, dy) = evaluate(CosineEmbeddingLoss(0.5, "none"), a, b, [1.0, 1.0], v=[1.0, 1.0])
    assert_close(loss, [1, 0])
    assert_close(da, [[0, -1 / (1 + 1e-12)], [0, 0]])  # towards b, and nowhere where it is best
    assert np.array_equal(dy, [0, 0])
    assert_close(evaluate(CosineEmbeddingLoss(0.5, "none"), a, b, [-1.0, -1.0])[0], [0, 0.5])


def test_a_triplet_swaps_its_anchor_if_the_positive_is_closer_to_the_negative() -> None:
    # On a line: anchor 0, positive 2, negative 3. 1 + 2 - 3 = 0 loses nothing; the positive is only 1 off: 1 + 2 - 1.
    triple = [[0.0]], [[2.0]], [[3.0]]
    assert_loss(TripletMarginLoss(eps=0.0), triple, 0, [[0]], [[0]], [[0]])
    assert_loss(TripletMarginLoss(eps=0.0, swap=True), triple, 2, [[-1]], [[2]], [[-1]])


def test_paths_of_a_time_series_add_up() -> None:
    # Two times, both halves of probability each for the label 0 and the blank 1. Of four paths only blank, blank fails.
    half = np.full((2, 1, 2), log(0.5))
    layer = CTCLoss(1, "sum", False, (2,), (1,))
    # The label is there in two of the three paths at each time: 1/2 - 2/3 for it, 1/2 - 1/3 for the blank.
    assert_loss(layer, (half, [[0]]), -log(0.75), [[[-1 / 6, 1 / 6]], [[-1 / 6, 1 / 6]]])


def test_a_repeated_label_needs_a_blank_between() -> None:
    # Three times: only 0, blank, 0 gives two labels 0. The mean divides by those two.
    half = np.full((3, 1, 2), log(0.5))
    gradient = np.array([[[-0.5, 0.5]], [[0.5, -0.5]], [[-0.5, 0.5]]])
    assert_loss(CTCLoss(1, "mean", False, (3,), (2,)), (half, [[0, 0]]), 3 * log(2) / 2, gradient / 2)


def test_a_target_that_does_not_fit_into_its_time_is_lost_or_zeroed() -> None:
    half = np.full((2, 1, 2), log(0.5))
    assert evaluate(CTCLoss(1, "sum", False, (2,), (2,)), half, [[0, 0]])[0] == np.inf
    assert_loss(CTCLoss(1, "sum", True, (2,), (2,)), (half, [[0, 0]]), 0, np.zeros((2, 1, 2)))


def test_torch_differentiates_ctc_as_a_function_of_logits() -> None:
    x = np.log([[[0.25, 0.75]], [[0.5, 0.5]], [[0.125, 0.875]]])
    layer = CTCLoss(1, "sum", False, (2,), (1,))  # the third time is past the sample's end
    args, _ = layer.call((Ref("x"), Ref("y")))
    names = {"x": torch.tensor(x, requires_grad=True), "y": torch.tensor([[0]]), "nn": torch.nn}
    eval(f"{layer.source()}({', '.join(map(expression, args))})", names).backward()
    _, (dx, _) = evaluate(layer, x, [[0]])
    assert_close(names["x"].grad.numpy(), dx)


@pytest.mark.parametrize(
    ("layer", "inputs", "place", "refused"),
    [
        (SoftMarginLoss(), (3, 3), 1, True),
        (HingeEmbeddingLoss(), (3, 3), 1, False),
        (CosineEmbeddingLoss(), ((3, 2), (3, 2), 3), 2, False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, _Loss) else None,
)
def test_torch_gives_no_gradient_to_what_must_be_constant(
    layer: _Loss, inputs: tuple[Any, ...], place: int, refused: bool
) -> None:
    assert layer.constant == (place,)
    tensors = [torch.ones(shape, requires_grad=i == place) for i, shape in enumerate(inputs)]
    module = eval(layer.source(), {"nn": torch.nn})
    if refused:
        with pytest.raises(RuntimeError):
            module(*tensors)
    else:
        assert not module(*tensors).requires_grad


def test_the_constructor_shows_its_tensors_and_hides_the_settings_of_a_call() -> None:
    shown = "nn.CrossEntropyLoss(weight=torch.tensor([0.5, 2.0]), ignore_index=1)"
    assert CrossEntropyLoss((0.5, 2.0), ignore_index=1, probabilities=True).source() == shown
    layer = CTCLoss(2, "mean", True, (3,), (1,))
    assert layer.source() == "nn.CTCLoss(blank=2, zero_infinity=True)"
    args, kwargs = layer.call((Ref("x"), Ref("y")))
    assert [*map(expression, args)] == ["x", "y", "(3,)", "(1,)"]
    assert not kwargs
