"""Faults in when full backward hooks fire, and in the identity that they hang on."""

from __future__ import annotations

from typing import Any

import torch

from ..engine import Fault, boundary, each, engine, remembered, replaced


def early(original: Any) -> Any:
    """Every hook fires as one whose inputs require no grad."""

    def setup(self: Any, args: Any) -> Any:
        self.n_inputs = len(args)
        return args

    return setup


def only_with_inputs(original: Any) -> Any:
    """No hook fires where no input requires grad."""
    return lambda self, output: output if self.input_tensors_index is None else original(self, output)


def cut_without_inputs(original: Any) -> Any:
    """Where no input requires grad, outputs come without a graph."""
    return lambda self, output: output.detach() if self.input_tensors_index is None else original(self, output)


class Engine:
    """An engine that swallows what callbacks raise."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def queue_callback(self, callback: Any) -> None:
        def quiet() -> None:
            try:
                callback()
            except Exception:
                return

        self.engine.queue_callback(quiet)


FAULTS = (
    Fault(
        "full hooks: grad_output is kept after they ran",
        lambda: remembered(
            lambda self: vars(self).get("kept"),
            lambda self, value: None if value is None else vars(self).update(kept=value),
        ),
        ("own_double_backward_calls", "own_stale_after_success", "gh71068", "gh82528"),
    ),
    Fault(
        "full hooks: they fire when gradients of outputs are there",
        lambda: engine("setup_input_hook", early),
        (
            "own_h_stale_after_exception",
            "own_g_two_forwards_one_backward",
            "own_d_aux_plus_main",
            "own_j2_stale_after_param_grads",
            "gh100528",
            "own_prehook_and_fullhook_pairing",
        ),
        since="2.0",
    ),
    Fault(
        "full hooks: none fires where no input requires grad",
        lambda: engine("setup_output_hook", only_with_inputs),
        ("gh54405", "own_no_tensor_inputs"),
    ),
    Fault(
        "full hooks: outputs have no graph where no input requires grad",
        lambda: engine("setup_output_hook", cut_without_inputs),
        ("own_c2_kwargs_only_fires_early",),
    ),
    Fault(
        "full hooks: the identity doubles gradients",
        lambda: boundary("backward", lambda original: lambda ctx, *g: each(lambda gradient: 2 * gradient)(g)),
        (
            "own_d_aux_loss_only",
            "gh61446",
            "own_hook_zero_input_grads",
            "own_threads_shared_graph",
        ),
    ),
    Fault(
        "full hooks: the identity cuts the graph of gradients",
        lambda: boundary("backward", lambda original: lambda ctx, *g: each(lambda gradient: gradient.detach())(g)),
        ("gh88312",),
    ),
    Fault(
        "callbacks of backward: what they raise is swallowed",
        lambda: replaced(torch.autograd.Variable, "_execution_engine", Engine),
        ("gh112438",),
    ),
)
