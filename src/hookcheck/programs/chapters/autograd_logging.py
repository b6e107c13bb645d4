"""What do the hooks do that torch itself puts on Nodes when autograd is to log what it executes?

At the level DEBUG of its logger, `torch.autograd.graph`, each backward puts a pre-hook on every Node that it can reach,
and takes them off when it ends.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from hookcheck.contract.clause import PIN
from hookcheck.probe.lazy import torch
from hookcheck.programs.check import Check
from hookcheck.programs.program import program

LOGS = "torch._logging.set_logs, 'autograd'; pytorch#115438"
SINCE = "2.8"
"""Since 2.3 there is such a log, but up to 2.7 it needed a package that torch's own tests are run with."""


class Messages(logging.Handler):
    """Keeps what is logged as text."""

    def __init__(self) -> None:
        """Begins with none."""
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps one message."""
        self.texts.append(record.getMessage())


@contextmanager
def logging_at(level: int, name: str = "torch.autograd.graph") -> Iterator[list[str]]:
    """Has the logger of that name log from ``level`` on, here and nowhere else."""
    logger, messages = logging.getLogger(name), Messages()
    before = logger.level, logger.propagate
    logger.addHandler(messages)
    logger.setLevel(level)
    logger.propagate = False
    try:
        yield messages.texts
    finally:
        logger.removeHandler(messages)
        logger.setLevel(before[0])
        logger.propagate = before[1]


def executed(messages: list[str]) -> list[str]:
    """The Nodes that the messages are about, by their classes."""
    return [message.split("<")[1].split()[0] for message in messages]


@program("LG-01", PIN, since=SINCE, source=LOGS)
def each_node_is_logged_once_a_backward(check: Check) -> None:
    """With the level DEBUG each Node that a backward executes gives one message when it is, in every backward anew,
    also after one that raised; with the level INFO none does."""
    a = torch.tensor([2.0, 3.0], requires_grad=True)
    y = (a * 5).exp().sum()
    nodes = ["SumBackward0", "ExpBackward0", "MulBackward0", "AccumulateGrad"]

    def refuse(_: Any) -> None:
        raise ValueError

    with logging_at(logging.DEBUG) as messages:
        for time in ("first", "second"):
            messages.clear()
            y.backward(retain_graph=True)
            check.order(f"executed by the {time} backward", executed(messages), nodes)
        handle = a.register_hook(refuse)
        with suppress(ValueError):
            y.backward(retain_graph=True)
        handle.remove()
        messages.clear()
        y.backward(retain_graph=True)
        check.order("executed by a backward after one that raised", executed(messages), nodes)
        messages.clear()
        torch.autograd.grad(y, a, retain_graph=True)
        check.order("executed by torch.autograd.grad", executed(messages), nodes[:3])
    with logging_at(logging.INFO) as messages:
        y.backward()
        check.equal("messages with the level INFO", messages, [])


@program("LG-02", PIN, since=SINCE, source=LOGS)
def logging_changes_nothing(check: Check) -> None:
    """What is logged changes nothing: hooks on tensors and Nodes get and return what they do without it."""

    def seen(level: int) -> list[Any]:
        log: list[Any] = []
        a = torch.tensor([2.0, 3.0], requires_grad=True)
        b = a * 5
        node: Any = b.grad_fn
        b.register_hook(lambda grad: (log.append(["tensor", grad.tolist()]), grad * 2)[1])
        node.register_prehook(lambda grads: (log.append(["pre-hook", grads[0].tolist()]), (grads[0] * 3,))[1])
        node.register_hook(lambda grad_inputs, given: log.append(["hook", grad_inputs[0].tolist(), given[0].tolist()]))
        with logging_at(level):
            (b * b).sum().backward()
        return [*log, ["gradient", a.grad.tolist()]]

    # d(b * b) = 2 b = 20, 30; times 2; times 3; times 5
    due = [
        ["tensor", [20, 30]],
        ["pre-hook", [40, 60]],
        ["hook", [600, 900], [120, 180]],
        ["gradient", [600, 900]],
    ]
    check.equal("without logging", seen(logging.WARNING), due)
    check.equal("with logging", seen(logging.DEBUG), due)
