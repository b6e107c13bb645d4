"""How do programs reduce gradients? By DistributedDataParallel, with comm hooks that note what they get."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from hookcheck.probe.lazy import nn, torch

DISTRIBUTED = "torch.nn.parallel.DistributedDataParallel"


def future_of(value: Any) -> Any:
    """A future that is completed with ``value``."""
    future: Any = torch.futures.Future()
    future.set_result(value)
    return future


def reducing(log: list[Any], factor: float = 1.0) -> Callable[[Any, Any], Any]:
    """A comm hook that notes the numbers of a bucket, and gives ``factor`` times them. It has no annotations: torch
    refuses those that are texts."""

    def reduced(bucket: Any) -> Any:
        log.append(sorted(bucket.buffer().tolist()))
        return future_of(factor * bucket.buffer())

    return lambda state, bucket: reduced(bucket)


def distributed(module: Any, **options: Any) -> Any:
    """The module, wrapped in DistributedDataParallel."""
    return nn.parallel.DistributedDataParallel(module, **options)


def settings() -> dict[str, dict[str, Any]]:
    """Ways to reduce that this torch has, by the options that ask for them."""
    asked: dict[str, Any] = {
        "find_unused_parameters": True,
        "gradient_as_bucket_view": True,
        "static_graph": True,
        "bucket_cap_mb": 1e-6,
        "batched_grad_copy": True,
        "lazy_bucket_allocation": True,
    }
    known = signature(nn.parallel.DistributedDataParallel.__init__).parameters
    return {"no option": {}, **{name: {name: value} for name, value in asked.items() if name in known}}
