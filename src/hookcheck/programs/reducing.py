"""How do programs reduce gradients? By DistributedDataParallel, with comm hooks that note what they get."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.nets import leaf

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


def steps_of_a_static_graph(check: Check, first: str) -> None:
    """Two windows of one forward in ``no_sync`` and one after it; ``first`` says whether a reduction comes before."""
    module: Any = nn.Linear(1, 1, bias=False)
    log: list[Any] = []
    wrapper = distributed(module, static_graph=True)
    wrapper.register_comm_hook(None, reducing(log, 10.0))
    if first == "a reduction":
        wrapper(leaf(7.0)).backward()
    for turn in ("first", "second"):
        fact = f"static_graph, {first} first: {turn} window"
        module.weight.grad = None
        log.clear()
        with wrapper.no_sync():
            works = check.works(fact, lambda: wrapper(leaf(3.0)).backward() or True)
        if not works:
            break  # an error leaves a reduction unfinished, which the next one meets
        within = [*log]
        wrapper(leaf(5.0)).backward()
        seen = [within, log, module.weight.grad.item()]
        check.equal(f"{fact}: buckets within and after it, gradient: 10·(3 + 5)", seen, [[], [[8.0]], 80.0])
