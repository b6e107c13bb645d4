"""Faults that one class or layout of tensors alone meets: hooks are lost with it, or it is lost with hooks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch

from hookcheck.topology.tensors import SPARSE_GRADIENT

from .engine import FULL, Fault, boundary, called, replaced
from .forward_calls import FORWARDS

Test = Callable[[torch.Tensor], bool]


def of_type(name: str) -> Test:
    return lambda tensor: type(tensor).__name__ == name


OF_CLASS: dict[str, Test] = {
    "sparse COO": lambda tensor: tensor.is_sparse,
    "sparse CSR": lambda tensor: tensor.layout is torch.sparse_csr,
    "MKLDNN": lambda tensor: tensor.is_mkldnn,
    "nested": lambda tensor: tensor.is_nested,
    "jagged": lambda tensor: tensor.is_nested,
    "jagged, unequal rows": lambda tensor: tensor.is_nested,
    "quantised": lambda tensor: tensor.is_quantized,
    "channels last": lambda tensor: tensor.dim() == 4 and not tensor.is_contiguous(),
    "channels last, 3-D": lambda tensor: tensor.dim() == 5 and not tensor.is_contiguous(),
    "zero-dim": lambda tensor: tensor.dim() == 0,
    "large strides": lambda tensor: not tensor.is_contiguous(),
    "expanded": lambda tensor: 0 in tensor.stride(),
    "negative view": lambda tensor: tensor.is_neg(),
    "conjugate view": lambda tensor: tensor.is_conj(),
    "subclass": of_type("Sub"),
    "torch function": of_type("Handling"),
    "wrapper": of_type("Wrapper"),
    "parameter": of_type("Parameter"),
    "parameter subclass": of_type("SubParameter"),
    SPARSE_GRADIENT: lambda tensor: False,
}
"""How a tensor of a class is told from others; a sparse gradient is known by the layer."""


def unhooked(test: Callable[[Any], bool]) -> AbstractContextManager[None]:
    """A module that is given such a tensor is called without its hooks."""

    def make(original: Any) -> Any:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            given = any(isinstance(arg, torch.Tensor) and test(arg) for arg in args)
            return self.forward(*args, **kwargs) if given else original(self, *args, **kwargs)

        return call

    return replaced(torch.nn.Module, "__call__", make)


def past_modules(test: Test) -> AbstractContextManager[None]:
    """Modules that are given such a tensor, have one, or give one go past their hooks."""

    def met(module: torch.nn.Module, args: tuple[Any, ...]) -> bool:
        held = (each for each in module._parameters.values() if each is not None)
        return any(isinstance(each, torch.Tensor) and test(each) for each in (*args, *held))

    def make(original: Any) -> Any:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = self.forward(*args, **kwargs)
            there = met(self, args) or (isinstance(result, torch.Tensor) and test(result))
            return result if there else original(self, *args, **kwargs)

        return call

    return replaced(torch.nn.Module, "_call_impl", make)


def past_leaves(name: str) -> Callable[[Test], AbstractContextManager[None]]:
    """A hook that is registered on such a tensor, by the method of that name, is lost."""

    def patch(test: Test) -> AbstractContextManager[None]:
        def make(original: Any) -> Any:
            def register(self: torch.Tensor, *args: Any) -> Any:
                return original(torch.zeros((), requires_grad=True) if test(self) else self, *args)

            return register

        return replaced(torch.Tensor, name, make)

    return patch


def of_no_class() -> AbstractContextManager[None]:
    """What a full hook puts in the place of a tensor is of no class of its own."""

    def make(original: Any) -> Any:
        def forward(ctx: Any, *arguments: Any) -> Any:
            plain = [argument.as_subclass(torch.Tensor) for argument in original(ctx, *arguments)]
            ctx.mark_non_differentiable(*[p for p, a in zip(plain, arguments) if not a.requires_grad])
            return tuple(plain)

        return forward

    return boundary("forward", make)


def dense_gradients() -> AbstractContextManager[None]:
    """A parameter of a module with hooks gets a dense gradient where it would get a sparse one."""

    def dense(leaf: Any) -> None:
        leaf.grad = leaf.grad.to_dense() if leaf.grad.is_sparse else leaf.grad

    def call(forward: Any, module: Any, args: Any) -> Any:
        for parameter in module.parameters(recurse=False):
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(dense)
        return forward(*args)

    return called(call)


TENSORS = (
    Fault(
        "a module that is given a sparse tensor is called without hooks",
        lambda: unhooked(lambda tensor: tensor.is_sparse),
        ("FN-01",),
        FORWARDS,
    ),
    Fault(
        "a module that is given a tensor that holds another is called without hooks",
        lambda: unhooked(lambda tensor: hasattr(tensor, "__tensor_flatten__")),
        ("FN-01", "BW-02"),
        (*FORWARDS, *FULL),
        "2.1",
    ),
    Fault("a full hook loses the class of a tensor", of_no_class, ("OB-07",), FULL, "2.0"),
    Fault("hooks make sparse gradients dense", dense_gradients, ("OB-07",), FULL, "2.1"),
)
