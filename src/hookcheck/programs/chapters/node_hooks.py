"""What do hooks on Nodes of the autograd graph promise, and what do libraries rely on beyond it?

``tensor.grad_fn`` is the Node of the operation that made the tensor. A pre-hook is called as ``hook(grad_outputs)``
before the Node runs, a post-hook as ``hook(grad_inputs, grad_outputs)`` after it; both may return a tuple that replaces
the first of these. Module hooks are made of them, and libraries use them and the engine's private calls directly.
"""

from __future__ import annotations

from typing import Any

from hookcheck.contract.clause import PIN, PROMISE, UNSPECIFIED
from hookcheck.probe.lazy import torch
from hookcheck.programs.check import Check, NotOffered
from hookcheck.programs.program import program

POST = "torch.autograd.graph.Node.register_hook"
PRE = "torch.autograd.graph.Node.register_prehook"
FIRED = "notes on autograd, 'Backward Hooks execution': Whether a particular hook will be fired"


def accumulator(leaf: Any) -> Any:
    """The Node that accumulates the gradient of a leaf; it lives as long as something holds it."""
    return leaf.view_as(leaf).grad_fn.next_functions[0][0]


def scaling() -> Any:
    """An operation written in Python that doubles its first and triples its second input."""

    class Scaling(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            return 2 * a, 3 * b

        @staticmethod
        def backward(ctx: Any, grad_a: Any, grad_b: Any) -> Any:
            return 2 * grad_a, 3 * grad_b

    return Scaling.apply


@program("ND-01", PROMISE, since="1.7", source=POST)
def post_hook_gets_both_sides(check: Check) -> None:
    """A post-hook gets the Node's grad_inputs and grad_outputs, two tuples, whenever its gradient is computed."""
    seen: list[Any] = []
    a, b = torch.tensor([2.0], requires_grad=True), torch.tensor([3.0], requires_grad=True)
    y = a * b
    y.grad_fn.register_hook(lambda *args, **kwargs: seen.append((args, kwargs)))
    loss = 5 * y + 2 * y
    loss.backward(retain_graph=True)
    once: Any = (((([21], [14]), ([7],)), {}),)  # 7 b and 7 a; the sum of both uses
    check.equal("arguments at a product that is used twice", tuple(seen), once)
    loss.backward()
    check.equal("arguments in two backwards", tuple(seen), 2 * once)

    seen.clear()
    constant = torch.tensor([4.0])
    product = a * constant
    first = torch.stack([product, product]).unbind()[0]
    leaf = accumulator(a)
    python, _ = scaling()(first, constant)
    for tensor in (python, first, product):
        tensor.grad_fn.register_hook(lambda *args: seen.append(args))
    leaf.register_hook(lambda *args: seen.append(args))
    python.backward()
    check.equal("arguments at an operation in Python one of whose outputs is not used", seen[0][0][0], [2])
    check.equal("its grad_outputs", seen[0][1], ([1], None))
    check.equal("arguments where one of two outputs is not used", seen[1], (([[2], [0]],), ([2], None)))
    check.equal("arguments where one of two inputs requires no gradient", seen[2], (([8], None), ([2],)))
    check.equal("arguments where a leaf's gradient is accumulated", seen[3], ((), ([8],)))
    check.calls("calls on four Nodes", len(seen), 4)


@program("ND-02", PROMISE, since="1.7", source=POST)
def post_hook_replaces_grad_inputs(check: Check) -> None:
    """A tuple that a post-hook returns takes the place of the grad_inputs, for later hooks and for what follows."""
    seen: list[Any] = []
    a, b = torch.tensor([2.0], requires_grad=True), torch.tensor([3.0], requires_grad=True)
    y = a * b
    node = y.grad_fn
    node.register_hook(lambda grad_inputs, grad_outputs: (10 * grad_inputs[0], grad_inputs[1]))
    node.register_hook(lambda grad_inputs, grad_outputs: seen.append((grad_inputs, grad_outputs)))
    node.register_hook(lambda grad_inputs, grad_outputs: (grad_inputs[0], 7 * grad_outputs[0]))
    (5 * y).backward(retain_graph=True)
    check.equal("what the second of three hooks gets", seen, [(([150], [10]), ([5],))])
    check.equal("gradients of the factors", (a.grad, b.grad), ([150], [35]))
    given = torch.autograd.grad(y, (b, a))
    check.equal("what torch.autograd.grad gives", given, ([7], [30]))

    def backward(result: Any) -> None:
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = 2 * x
        y.grad_fn.register_hook(lambda grad_inputs, grad_outputs: result)
        y.sum().backward()

    good = torch.ones(2)
    for name, error, says, result in (
        ("a tensor", TypeError, "expected tuple", good),
        ("a list", TypeError, "expected tuple", [good, None]),
        ("three gradients for two", RuntimeError, "incorrect number of values", (good, None, None)),
        ("no gradient for two", RuntimeError, "incorrect number of values", ()),
        ("a gradient of another size", RuntimeError, "changed the size", (torch.ones(3), None)),
        ("a gradient of another type", RuntimeError, "changed the type", (good.double(), None)),
    ):
        check.raises(f"a hook that returns {name}", error, lambda: backward(result), says)  # noqa: B023


@program("ND-03", PIN, since="1.7", source=POST)
def post_hook_changes_its_arguments(check: Check) -> None:
    """A post-hook that changes grad_inputs in place, which it must not, changes the gradients that follow."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = 2 * x

    def change(grad_inputs: Any, grad_outputs: Any) -> None:
        grad_inputs[0].mul_(10)

    y.grad_fn.register_hook(change)
    (3 * y).sum().backward()
    check.equal("gradient", x.grad, [60, 60])


@program("ND-04", PROMISE, since="1.7", source=f"{POST}: Example")
def post_hook_is_taken_off(check: Check) -> None:
    """``remove()`` of its handle takes a post-hook off: the next backward gives the gradient without it."""
    a = torch.tensor([0.0, 0.0, 0.0], requires_grad=True)
    b = a.clone()
    handle = b.grad_fn.register_hook(lambda grad_inputs, grad_outputs: (grad_outputs[0] * 2,))
    second = b.grad_fn.register_hook(lambda grad_inputs, grad_outputs: (grad_inputs[0] * 5,))
    b.sum().backward(retain_graph=True)
    check.equal("gradient under two hooks", a.grad, [10, 10, 10])
    for name, hook, expected in (("the first", handle, [5, 5, 5]), ("both", second, [1, 1, 1])):
        hook.remove()
        hook.remove()
        a.grad = None
        b.sum().backward(retain_graph=True)
        check.equal(f"gradient after {name} was removed", a.grad, expected)


@program("ND-05", UNSPECIFIED, since="1.7", source=f"{POST}: note")
def late_post_hook_gets_the_usual(check: Check) -> None:
    """A post-hook that is registered when its Node has begun to run gets grad_outputs as usual."""
    seen: list[Any] = []
    x = torch.tensor([1.0], requires_grad=True)
    y = 2 * x
    y.register_hook(lambda grad: y.grad_fn.register_hook(lambda *args: seen.append(args)) and None)
    (3 * y).backward()
    check.equal("arguments", seen, [(([6], None), ([3],))])


@program("ND-06", PROMISE, since="1.7", source=f"{POST}: note")
def late_post_hook_replaces_grad_inputs(check: Check) -> None:
    """What a post-hook returns is used also if it was registered when its Node had begun to run."""
    x = torch.tensor([1.0], requires_grad=True)
    y = 2 * x

    def register(grad: Any) -> None:
        y.grad_fn.register_hook(lambda grad_inputs, grad_outputs: (10 * grad_inputs[0], None))

    y.register_hook(register)
    (3 * y).backward()
    check.equal("gradient if a tensor hook of the Node's output registered it", x.grad, [60])

    class Registering(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 2 * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            z.grad_fn.register_hook(lambda grad_inputs, grad_outputs: (10 * grad_inputs[0],))
            return 2 * grad

    x = torch.tensor([1.0], requires_grad=True)
    z = Registering.apply(x)
    (3 * z).backward()
    check.equal("gradient if the Node's own backward did", x.grad, [60])


@program("ND-07", PROMISE, since="1.13", source=PRE)
def pre_hook_replaces_grad_outputs(check: Check) -> None:
    """A pre-hook is called with the tuple of grad_outputs, and a tuple that it returns takes their place."""
    seen: list[Any] = []
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    first, second = x.unbind()
    node = first.grad_fn
    node.register_prehook(lambda *args, **kwargs: seen.append((args, kwargs)))
    node.register_prehook(lambda grad_outputs: (10 * grad_outputs[0], grad_outputs[1]))
    node.register_prehook(lambda *args: seen.append((args, {})))
    node.register_hook(lambda *args: seen.append((args, {})))
    loss = 5 * first + 7 * second
    loss.backward(retain_graph=True)
    check.equal("what a pre-hook gets", seen[0], (((5, 7),), {}))
    check.equal("what one gets after another that replaced them", seen[1], (((50, 7),), {}))
    check.equal("what a post-hook gets", seen[2], ((([50, 7],), (50, 7)), {}))
    check.equal("gradient", x.grad, [50, 7])
    loss.backward(retain_graph=True)
    check.calls("calls in two backwards", len(seen), 6)
    seen.clear()
    first.backward()
    check.equal("what it gets where an output is not used", seen[0], (((1, None),), {}))

    a = torch.tensor([1.0], requires_grad=True)
    python, _ = scaling()(a, torch.ones(1))
    python.grad_fn.register_prehook(lambda grad_outputs: tuple(g if g is None else 10 * g for g in grad_outputs))
    leaf = accumulator(a)
    leaf.register_prehook(lambda grad_outputs: (grad_outputs[0] + 1,))
    python.backward()
    check.equal("gradient behind an operation in Python, with a pre-hook at the leaf too", a.grad, [21])

    for name, error, says, result in (
        ("a tensor", TypeError, "expected tuple", torch.ones(2)),
        ("two gradients for one", RuntimeError, "incorrect number of values", (torch.ones(2), torch.ones(2))),
        ("a gradient of another size", RuntimeError, "changed the size", (torch.ones(3),)),
    ):
        y = 2 * torch.ones(2, requires_grad=True)
        y.grad_fn.register_prehook(lambda grad_outputs: result)  # noqa: B023
        check.raises(f"a pre-hook that returns {name}", error, y.sum().backward, says)


@program("ND-08", PIN, since="1.13", source=PRE)
def pre_hook_changes_its_argument(check: Check) -> None:
    """A pre-hook that changes its argument in place, which it must not, has that count; ``remove()`` takes it off."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = 2 * x
    loss = (3 * y).sum()

    def change(grad_outputs: Any) -> None:
        grad_outputs[0].mul_(10)

    handle = y.grad_fn.register_prehook(change)
    second = y.grad_fn.register_prehook(lambda grad_outputs: (5 * grad_outputs[0],))
    loss.backward(retain_graph=True)
    check.equal("gradient under two pre-hooks", x.grad, [300, 300])
    for name, hook, expected in (("the first", handle, [30, 30]), ("both", second, [6, 6])):
        hook.remove()
        hook.remove()
        x.grad = None
        loss.backward(retain_graph=True)
        check.equal(f"gradient after {name} was removed", x.grad, expected)


@program("ND-09", PROMISE, since="1.7", source=FIRED)
def run_with_their_node(check: Check) -> None:
    """Hooks on a Node are called only if the Node is executed."""
    log: list[str] = []
    a, b = torch.tensor([2.0], requires_grad=True), torch.tensor([3.0], requires_grad=True)
    left, right = 5 * a, 7 * b
    nodes = {"left": left.grad_fn, "right": right.grad_fn, "b": accumulator(b)}
    for name, node in nodes.items():
        node.register_hook(lambda grad_inputs, grad_outputs, name=name: log.append(name))
    loss = left * right
    torch.autograd.grad(loss, a, retain_graph=True)
    check.order("calls if one of two leaves is asked for", log, ["left"])
    log.clear()
    torch.autograd.grad(loss, b, retain_graph=True)
    check.order("calls if the other is", log, ["right"])
    log.clear()
    left.backward(retain_graph=True)
    check.order("calls of a backward from one of two Nodes", log, ["left"])
    log.clear()
    loss.backward()
    check.equal("calls of a backward for all", sorted(log), ["b", "left", "right"])
    check.order("calls on the way to one leaf", [call for call in log if call != "left"], ["right", "b"])


def _of_requested(inputs: Any, backward: bool = False) -> list[str]:
    """The hooks of ``y`` and its Node that run if the gradients of ``inputs(x, y)`` are asked for."""
    log: list[str] = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = 2 * x
    loss = (y * y).sum()
    y.register_hook(lambda grad: log.append("tensor hook"))
    y.grad_fn.register_prehook(lambda grad_outputs: log.append("pre-hook"))
    y.grad_fn.register_hook(lambda grad_inputs, grad_outputs: log.append("post-hook"))
    if backward:
        loss.backward(inputs=inputs(x, y))
    else:
        torch.autograd.grad(loss, inputs(x, y))
    return log


@program("ND-10", PROMISE, since="1.13", source=FIRED)
def do_not_run_for_requested_inputs(check: Check) -> None:
    """If ``torch.autograd.grad`` is asked for a tensor alone, hooks on the tensor's Node do not run; its own do."""
    log = _of_requested(lambda x, y: (y,))
    check.order("calls of hooks on the Node", [call for call in log if call != "tensor hook"], [])
    check.calls("calls of the tensor hook", log.count("tensor hook"), 1)


@program("ND-11", PROMISE, since="1.13", source=FIRED)
def run_for_what_depends_on_them(check: Check) -> None:
    """They run if another tensor that is asked for depends on what the Node gives."""
    due = ["tensor hook", "pre-hook", "post-hook"]
    check.order("calls if the leaf is asked for besides", _of_requested(lambda x, y: (y, x)), due)
    check.order("calls if it is named first", _of_requested(lambda x, y: (x, y)), due)
    check.order("calls if the leaf alone is asked for", _of_requested(lambda x, y: (x,)), due)


@program("ND-12", UNSPECIFIED, since="1.13", source=f"{FIRED}; torch.Tensor.backward, note on inputs")
def run_in_backward_for_inputs(check: Check) -> None:
    """With ``backward(inputs=…)`` hooks on the Nodes of the inputs run, since those Nodes are executed."""
    due = ["tensor hook", "pre-hook", "post-hook"]
    check.order("calls where the input is a result", _of_requested(lambda x, y: [y], backward=True), due)


@program("ND-13", PROMISE, since="2.0", source="torch.autograd.graph.Node: name, next_functions, metadata")
def tells_what_it_is(check: Check) -> None:
    """A Node has a ``name()``, its ``next_functions``, pairs of a Node or None and an index, and its ``metadata()``."""
    x = torch.tensor([[1.0, 2.0]], requires_grad=True)
    y = x * torch.ones(1)
    first, second = y[0].unbind()
    z = first.exp()
    python = scaling()(x, x)[0]
    for name, node in {"a result": z.grad_fn, "a leaf": accumulator(x), "Python": python.grad_fn}.items():
        check.true(f"the Node of {name} is one", isinstance(node, torch.autograd.graph.Node))
        check.works(f"metadata() of the Node of {name}", lambda: node.metadata())  # noqa: B023
        node.metadata["here"] = name
        check.equal(f"what was put into the metadata of the Node of {name}", node.metadata, {"here": name})
    named = {"CloneBackward0": x.clone(), "ScalingBackward": python}
    check.equal("names of Nodes", [tensor.grad_fn.name() for tensor in named.values()], list(named))
    check.true("the Nodes of both outputs are one", first.grad_fn is second.grad_fn)
    check.true("the Node before", z.grad_fn.next_functions[0][0] is first.grad_fn)
    check.equal("its output", [(second + first).grad_fn.next_functions[i][1] for i in (0, 1)], [1, 0])
    check.equal("inputs of a product with a constant", [n is None for n, _ in y.grad_fn.next_functions], [False, True])
    check.true("the leaf's variable", y.grad_fn.next_functions[0][0].variable is x)
    check.equal("inputs of a leaf's Node", accumulator(x).next_functions, ())


@program("ND-15", PIN, since="1.7", source="pytorch#91667")
def the_tensor_hook_alone_runs(check: Check) -> None:
    """If ``torch.autograd.grad`` is asked for a result alone, its tensor hook runs, and no hook on its grad_fn does."""
    log: list[str] = []
    x = torch.tensor([1.0], requires_grad=True)
    y = 2 * x
    y.register_hook(lambda grad: log.append("tensor hook"))
    y.grad_fn.register_hook(lambda grad_inputs, grad_outputs: log.append("post-hook"))
    torch.autograd.grad(y * y, y)
    check.order("calls", log, ["tensor hook"])


@program("U-22", PIN, since="2.0", source="torch.autograd.Variable._execution_engine; torch._C")
def private_engine_calls(check: Check) -> None:
    """The engine has callbacks, an id for each backward, and says which Nodes it will run; within a backward only."""
    engine = torch.autograd.Variable._execution_engine
    log: list[Any] = []
    ids: list[int] = []
    a, b = torch.tensor([2.0], requires_grad=True), torch.tensor([3.0], requires_grad=True)
    y, other = 5 * a, 7 * b
    nodes: list[Any] = [y.grad_fn, other.grad_fn, (2 * a).grad_fn]

    def hook(grad: Any) -> None:
        engine.queue_callback(lambda: log.append(("first callback", a.grad is not None)))
        engine.queue_callback(lambda: log.append(("second callback", a.grad is not None)))
        ids.append(torch._C._current_graph_task_id())
        log.append(("hook", [torch._C._will_engine_execute_node(node) for node in nodes]))

    loss = y * other
    loss.register_hook(hook)
    loss.backward(retain_graph=True)
    callbacks = [("first callback", True), ("second callback", True)]
    check.order("what happens in a backward", log, [("hook", [True, True, False]), *callbacks])
    log.clear()
    loss.backward(inputs=[a], retain_graph=True)
    check.order("what happens in a backward for one input", log, [("hook", [True, False, False]), *callbacks])
    check.true("each backward has an id of its own", ids[0] != ids[1] and min(ids) >= 0)
    check.equal("id outside of a backward", torch._C._current_graph_task_id(), -1)
    check.raises("queueing outside", RuntimeError, lambda: engine.queue_callback(lambda: None), "during backward")
    ask = torch._C._will_engine_execute_node
    check.raises("asking for a Node outside", RuntimeError, lambda: ask(nodes[0]), "backward")


@program("ND-14", PIN, since="2.0", source="torch.autograd.graph._get_grad_fn_or_grad_acc")
def finds_the_node_of_a_tensor(check: Check) -> None:
    """The private ``_get_grad_fn_or_grad_acc`` gives the grad_fn of a result and the accumulating Node of a leaf."""
    find: Any = getattr(torch.autograd.graph, "_get_grad_fn_or_grad_acc", None)
    if find is None:
        raise NotOffered("torch.autograd.graph has no _get_grad_fn_or_grad_acc")
    x = torch.tensor([1.0], requires_grad=True)
    y = 2 * x
    check.true("of a result", find(y) is y.grad_fn)
    with torch.no_grad():
        node = find(x)
    check.true("of a leaf", node is y.grad_fn.next_functions[0][0])
    check.true("its variable", node.variable is x)
