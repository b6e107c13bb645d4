"""What do autograd's youngest hooks promise: those on the creation of Nodes, and callbacks at the end of backward?

In the context ``node_creation_hook(hook)``, ``hook(node)`` is called for every Node that autograd makes.
``queue_callback(callback)`` in a backward has ``callback()`` called when the backward is done.
"""

from __future__ import annotations

from threading import Thread
from typing import Any

from hookcheck.contract.clause import PROMISE
from hookcheck.probe.lazy import torch
from hookcheck.programs.check import Check
from hookcheck.programs.program import program

HOOK = "torch.autograd.graph.node_creation_hook"
CALLBACK = "torch.autograd.graph.queue_callback"


def creation_hook(hook: Any) -> Any:
    """The context in which ``hook`` is called for every Node."""
    graph: Any = torch.autograd.graph
    return graph.node_creation_hook(hook)


def doubling(saved: list[Any]) -> Any:
    """An operation written in Python with two outputs, which saves its input and notes what it saved in backward."""

    class Doubling(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return 2 * x, 3 * x

        @staticmethod
        def backward(ctx: Any, first: Any, second: Any) -> Any:
            saved.extend(ctx.saved_tensors)
            return 2 * first + 3 * second

    return Doubling.apply


@program("NC-01", PROMISE, since="2.14", source=HOOK)
def is_called_for_each_node(check: Check) -> None:
    """In the context, the hook is called once for each Node that operations make, with the Node alone."""
    x, constant = torch.ones(2, requires_grad=True), torch.ones(2)
    x * 2
    seen: list[Any] = []
    context = creation_hook(lambda *args, **kwargs: seen.append((args, kwargs)))
    with context:
        y = x * 2
        z = y.exp()
        first, second = z.unbind()
        python, other = doubling([])(first)
    x * 3
    due = [y.grad_fn.next_functions[0][0], y.grad_fn, z.grad_fn, first.grad_fn, python.grad_fn]
    check.equal("arguments that are no Node", [(len(args), kwargs) for args, kwargs in seen], 5 * [(1, {})])
    check.order("Nodes", [type(args[0]).__name__ for args, _ in seen], [type(node).__name__ for node in due])
    check.true("they are the ones of the graph", all(args[0] is node for (args, _), node in zip(seen, due)))
    check.true("two outputs have one", first.grad_fn is second.grad_fn and python.grad_fn is other.grad_fn)

    seen.clear()
    with context:
        constant * 2
        x.detach() * 2
        with torch.no_grad():
            x * 2
    check.calls("calls where no Node is made", len(seen), 0)
    with context:
        x + 1
    check.calls("calls when the context is entered again", len(seen), 1)  # the leaf has its Node by now
    try:
        with context:
            raise ValueError("on purpose")
    except ValueError:
        x * 2
    check.calls("calls after the context was left by an exception", len(seen), 1)


@program("NC-02", PROMISE, since="2.14", source=HOOK)
def gets_a_complete_node(check: Check) -> None:
    """By then the Node has its next_functions, what it knows of its outputs, and what it saved for backward."""
    seen: dict[str, Any] = {}
    x = torch.tensor([[0.0, 1.0]], requires_grad=True)

    def hook(node: Any) -> None:
        seen[node.name()] = (
            [next_node for next_node, _ in node.next_functions],
            [list(output.shape) for output in node._input_metadata],
            getattr(node, "_saved_other", None),
            [tensor.tolist() for tensor in getattr(node, "saved_tensors", ())],
        )
        node.metadata["region"] = node.name()
        node.register_prehook(lambda grad_outputs: tuple(10 * g for g in grad_outputs if g is not None))

    with creation_hook(hook):
        y = x * x.detach()
        first, second = doubling([])(y[0])
    nodes, shapes, saved, _ = seen["MulBackward0"]
    check.true("the Node behind a product", nodes[0] is y.grad_fn.next_functions[0][0] and nodes[1] is None)
    check.equal("shape of a product", shapes, [[1, 2]])
    check.equal("what a product saved", saved, [[0, 1]])  # the other factor
    nodes, shapes, _, saved = seen["DoublingBackward"]
    check.true("the Node behind an operation in Python", nodes[0] is first.grad_fn.next_functions[0][0])
    check.equal("shapes of its outputs", shapes, [[2], [2]])
    check.equal("what it saved", saved, [[0, 1]])
    check.equal("metadata that the hook put in", y.grad_fn.metadata, {"region": "MulBackward0"})
    (first + second).sum().backward()
    check.equal("gradient after pre-hooks that the hook put on four Nodes", x.grad, [[0, 50000]])  # 5 x, tenfold each


@program("NC-03", PROMISE, since="2.14", source=HOOK)
def belongs_to_a_thread(check: Check) -> None:
    """It belongs to the thread that entered the context, and goes for Nodes that are made during backward too."""
    seen: list[Any] = []
    x = torch.tensor([3.0], requires_grad=True)
    context = creation_hook(seen.append)
    y = x**3
    with context:
        thread = Thread(target=lambda: x * 2)
        thread.start()
        thread.join()
        check.calls("calls for what another thread does", len(seen), 0)
        y.backward(retain_graph=True)
        check.calls("calls of a backward that makes no graph", len(seen), 0)
        (derivative,) = torch.autograd.grad(y, x, create_graph=True)
    check.true("the derivative's Node is among those of a backward that makes one", derivative.grad_fn in seen)

    class Recomputing(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.sin()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            with torch.enable_grad():
                return torch.autograd.grad((grad * x.sin()).sum(), x)[0]

    z = Recomputing.apply(x)
    seen.clear()
    with context:
        z.backward()
    recomputed = [node for node in seen if node.name() == "SinBackward0"]
    check.calls("calls for a sine that is recomputed in backward", len(recomputed), 1)


@program("NC-04", PROMISE, since="2.14", source=HOOK)
def all_contexts_count(check: Check) -> None:
    """In nested contexts all hooks run for a Node, that of the outermost first."""
    log: list[str] = []
    x = torch.ones(1, requires_grad=True)
    leaf = x.view_as(x)
    contexts = {
        name: creation_hook(lambda node, name=name: log.append(f"{name} {node.name()}"))
        for name in ("outer", "middle", "inner")
    }
    with contexts["outer"], contexts["middle"]:
        with contexts["inner"]:
            x * 2
        x + 2
    del leaf
    due = [f"{name} MulBackward0" for name in contexts] + ["outer AddBackward0", "middle AddBackward0"]
    check.order("calls", log, due)


@program("NC-05", PROMISE, since="2.14", source=HOOK)
def may_not_make_nodes(check: Check) -> None:
    """To make a Node inside the hook raises; it leaves nothing behind."""
    x = torch.ones(1, requires_grad=True)

    def make() -> None:
        with creation_hook(lambda node: x * 3):
            x * 2

    check.raises("a product inside the hook", RuntimeError, make, "node creation hook")
    seen: list[float] = []

    def look(node: Any) -> None:
        with torch.no_grad():
            seen.append((3 * x).item())

    with creation_hook(look):
        check.works("a product inside a hook under no_grad, after that", lambda: x.view_as(x))
    check.equal("what it gave for two Nodes", seen, [3.0, 3.0])


@program("NC-06", PROMISE, since="2.14", source=f"{HOOK}: note")
def leaves_have_one_node(check: Check) -> None:
    """The Node of a leaf is told of when it is made, not when it is used again; it lives while a graph holds it."""
    log: list[str] = []
    x = torch.tensor([3.0], requires_grad=True)
    with creation_hook(lambda node: log.append(type(node).__name__)):
        y = x * 2
        z = x * 3
        check.order("Nodes of two products", log, ["AccumulateGrad", "MulBackward0", "MulBackward0"])
        log.clear()
        del y
        y = x * 4
        check.order("Nodes while a graph is held", log, ["MulBackward0"])
        del y, z
        log.clear()
        (x * 5).backward()
        check.order("Nodes when all graphs were freed", log, ["AccumulateGrad", "MulBackward0"])
        log.clear()
        x * 6
        check.order("Nodes after a backward", log, ["AccumulateGrad", "MulBackward0"])


@program("NC-07", PROMISE, since="2.15", source=CALLBACK)
def callbacks_run_after_backward(check: Check) -> None:
    """A callback that is queued in a backward runs after it, once for each queueing, in that order, if it succeeds."""
    graph: Any = torch.autograd.graph
    queue = graph.queue_callback
    log: list[Any] = []
    x = torch.tensor([3.0], requires_grad=True)
    y = 2 * x

    def note() -> None:
        log.append("note")

    def hook(grad: Any) -> None:
        log.append("hook")
        queue(lambda: log.append(("gradient", x.grad.tolist())))
        queue(note)
        queue(note)
        queue(lambda: log.append("last"))

    handle = y.register_hook(hook)
    loss = 5 * y
    loss.backward(retain_graph=True)
    check.order("calls of a backward", log, ["hook", ("gradient", [10.0]), "note", "note", "last"])
    log.clear()
    (5 * x).backward()
    check.order("calls of the next one", log, [])
    check.raises("queueing outside of a backward", RuntimeError, lambda: queue(note), "backward")

    def fails(grad: Any) -> None:
        raise ValueError("on purpose")

    log.clear()
    failing = x.register_hook(fails)
    check.raises("a backward that fails", ValueError, lambda: loss.backward(retain_graph=True), "on purpose")
    check.order("calls of a backward that fails", log, ["hook"])
    failing.remove()
    handle.remove()
    loss.backward()
    check.order("calls after one that failed", log, ["hook"])


@program("NC-08", PROMISE, since="2.15", source=CALLBACK)
def callbacks_belong_to_their_backward(check: Check) -> None:
    """A callback runs at the end of the backward in which it was queued, also of one that runs within another."""
    graph: Any = torch.autograd.graph
    queue = graph.queue_callback
    log: list[str] = []

    class Queueing(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 2 * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            queue(lambda: log.append("outer callback"))
            with torch.enable_grad():
                inner = torch.tensor([1.0], requires_grad=True)
                inner.register_hook(lambda grad: queue(lambda: log.append("inner callback")))
                (2 * inner).backward()
            log.append("inner done")
            return 2 * grad

    x = torch.tensor([3.0], requires_grad=True)
    x.register_hook(lambda grad: log.append("hook of the leaf"))
    due = ["inner callback", "inner done", "hook of the leaf", "outer callback"]
    Queueing.apply(x).backward()
    check.order("calls of backward", log, due)
    log.clear()
    torch.autograd.grad(Queueing.apply(x), x)
    check.order("calls of torch.autograd.grad", log, due)
