"""Does torch do what the design note on hooks of modules says? Its claims about a call and its order, one by one.

The note was written when full backward hooks were made, and explains hooks by what a call of a module does step by
step. What it says is a claim, not a promise: where torch does otherwise, the claim is refuted on those releases, and
``hookcheck claims`` shows it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from hookcheck.contract.clause import CLAIM
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.program import program

NOTE = "design note 'PyTorch hooks Part 2: nn.Module hooks'"
KINDS = ("forward_pre_hook", "forward_hook", "backward_hook", "full_backward_hook", "full_backward_pre_hook")
"""What ``register_…`` of a module and ``register_module_…`` for all modules end in."""


def _offered() -> list[str]:
    """The kinds that this torch has."""
    return [kind for kind in KINDS if hasattr(nn.Module, f"register_{kind}")]


def _register_global(kind: str, hook: Any) -> Any:
    return getattr(nn.modules.module, f"register_module_{kind}")(hook)


def _leaf(*numbers: float) -> Any:
    return torch.tensor(numbers, requires_grad=True)


def _received(seen: list[Any]) -> Any:
    """A full backward hook that keeps what it receives."""
    return lambda module, grad_input, grad_output: seen.append((grad_input, grad_output))


def _doubling(before: Any = lambda: None) -> Any:
    """A module that gives twice its argument, in one Node, and keeps what ``forward`` got and made."""

    class Doubling(nn.Module):
        def forward(self, x: Any) -> Any:
            before()
            self.got, self.output = x, 2 * x
            return self.output

    return Doubling()


@program("P2-1", CLAIM, since="1.7", source=f"{NOTE}; torch.nn.Module.forward")
def only_a_call_runs_hooks(check: Check) -> None:
    """The work happens in ``Module.__call__``: calling ``forward()`` directly runs no hook of any kind."""
    from hookcheck.probe.state import preserved

    for kind in _offered():
        calls: list[Any] = []
        for_all: list[Any] = []
        net = _doubling()
        getattr(net, f"register_{kind}")(lambda *received, calls=calls: calls.append(received))
        with preserved():  # torch takes no legacy hook for all modules once there was a full one, and conversely
            _register_global(kind, lambda *received, for_all=for_all: for_all.append(received))
            net.forward(_leaf(1.0)).backward()
            check.calls(f"{kind}: own, where forward is called", len(calls), 0)
            check.calls(f"{kind}: global, where forward is called", len(for_all), 0)
            net(_leaf(1.0)).backward()
            check.calls(f"{kind}: own, where the module is called", len(calls), 1)
            check.calls(f"{kind}: global, where the module is called", len(for_all), 1)


@program("P2-2", CLAIM, since="1.7", source=f"{NOTE}; torch.nn.modules.module.register_module_forward_hook and others")
def global_hooks_run_first(check: Check) -> None:
    """On a call, global module hooks and the module's own both run, the global ones first."""
    from hookcheck.probe.state import preserved

    for kind in _offered():
        log: list[str] = []
        net = _doubling()
        register = getattr(net, f"register_{kind}")
        with preserved():
            register(lambda *received, log=log: log.append("own 1"))
            _register_global(kind, lambda *received, log=log: log.append("global 1"))
            register(lambda *received, log=log: log.append("own 2"))
            _register_global(kind, lambda *received, log=log: log.append("global 2"))
            net(_leaf(1.0)).backward()
        check.order(f"{kind}: what ran", log, ["global 1", "global 2", "own 1", "own 2"])


@program("P2-3", CLAIM, since="1.8", source=f"{NOTE}; torch.nn.Module.register_full_backward_hook")
def inputs_forward_outputs_hooks(check: Check) -> None:
    """A call runs forward pre-hooks, captures the inputs anew, runs forward, captures the outputs anew, runs forward
    hooks, and puts legacy backward hooks on last."""
    log: list[str] = []
    at_pre: list[Any] = []
    at_forward: list[Any] = []
    seen: list[Any] = []
    net = _doubling(lambda: log.append("forward"))

    def pre(module: Any, args: Any) -> Any:
        log.append("forward pre-hook")
        at_pre.extend(args)
        return (10 * args[0],)

    def post(module: Any, args: Any, output: Any) -> Any:
        log.append("forward hook")
        at_forward.extend((args[0], output))
        return 3 * output

    net.register_forward_pre_hook(pre)
    net.register_forward_hook(post)
    net.register_full_backward_hook(_received(seen))
    x = _leaf(1.0)
    y = net(x)
    y.backward()
    check.order("what ran", log, ["forward pre-hook", "forward", "forward hook"])
    check.true("the pre-hook gets the very input", at_pre[0] is x)
    check.equal("forward gets what the pre-hook made of it", net.got, [10])
    check.true("forward gets the captured input", net.got.grad_fn.name().startswith("BackwardHookFunction"))
    check.true("the forward hook gets the captured input too", at_forward[0] is net.got)
    check.equal("the output is what the forward hook made of it", y, [60])
    # y = 3 · 2 · 10 x: the gradient of the input behind the pre-hook is 6, that of the one before it 60.
    check.equal("grad_input is that behind the pre-hook", [gi for gi, _ in seen], [([6.0],)])
    check.equal("grad of the input before the pre-hook", x.grad, [60])
    check.true("the forward hook gets the captured output", at_forward[1] is not net.output)
    check.equal("grad_output is that before the forward hook", [go for _, go in seen], [([3.0],)])
    _legacy_hooks_come_last(check)


def _legacy_hooks_come_last(check: Check) -> None:
    net: Any = _doubling()
    seen: list[Any] = []
    net.register_backward_hook(_received(seen))
    net.register_forward_hook(lambda module, args, output: 3 * output)
    net(_leaf(1.0)).backward()
    # On the Node of ``3 * output``: its own two gradients, where it takes its number as a tensor the second is None.
    check.equal("legacy grad_output is that behind the forward hook", [go for _, go in seen], [([1.0],)])
    check.equal("legacy grad_input is that of the forward hook's Node", [gi[0] for gi, _ in seen], [[3.0]])


@program("P2-4", CLAIM, since="1.7", source=f"{NOTE}; torch.nn.Module.register_forward_pre_hook, register_forward_hook")
def only_none_is_ignored(check: Check) -> None:
    """The result of a forward pre-hook or a forward hook is used when it is not None, and ignored when it is None."""

    class Telling(nn.Module):
        def forward(self, *args: Any) -> Any:
            return args

    results: tuple[Any, ...] = (None, 7, 0, False, [], "")
    for result in results:
        pre, post = Telling(), Telling()
        pre.register_forward_pre_hook(lambda module, args, result=result: result)
        post.register_forward_hook(lambda module, args, output, result=result: result)
        given = ("given",) if result is None else (result,)
        check.equal(f"a pre-hook returns {result!r}", pre("given"), given)
        check.equal(f"a forward hook returns {result!r}", post("given"), ("given",) if result is None else result)


@program("P2-5", CLAIM, since="1.8", source=f"{NOTE}; torch.nn.Module.register_full_backward_hook")
def all_gradients_in_one_call(check: Check) -> None:
    """A full backward hook gets the gradients of all inputs and of all outputs in one call, which happens as soon as
    both are known."""
    log: list[str] = []
    seen: list[Any] = []

    class Crossing(nn.Module):
        def forward(self, a: Any, b: Any) -> Any:
            product = a * b
            product.register_hook(lambda grad: log.append("inside"))
            return product, a + b

    net = Crossing()
    net.register_full_backward_hook(_received(seen))
    net.register_full_backward_hook(lambda *received: log.append("module"))
    a, b = _leaf(2.0), _leaf(3.0)
    for name, leaf in (("a", a), ("b", b)):
        leaf.register_hook(lambda grad, name=name: log.append(name))
    product, total = net(a, b)
    outer = 10 * product
    outer.register_hook(lambda grad: log.append("outside"))
    (outer + 100 * total).backward()
    check.calls("calls of the hook", len(seen), 1)
    # L = 10 ab + 100 (a + b): dL/da = 10 b + 100 and dL/db = 10 a + 100.
    check.equal("what it got", seen, [(([130.0], [120.0]), ([10.0], [100.0]))])
    check.order("what ran, leaves aside", [name for name in log if len(name) > 1], ["outside", "inside", "module"])
    check.order("what ran last", sorted(log[-2:]), ["a", "b"])


@program("P2-6", CLAIM, since="1.8", source=f"{NOTE}; torch.nn.Module.register_full_backward_hook")
def one_identity_node(check: Check) -> None:
    """To capture them, every Tensor in the inputs goes through one identity Function, hence one Node, and so do the
    outputs: a hooked module never sees the very tensor it was given, and does not return the very tensor it made."""
    seen: dict[str, Any] = {}

    class Passing(nn.Module):
        def forward(self, *args: Any, named: Any = None) -> Any:
            seen.update(args=args, named=named, output=tuple(x + 1 for x in args))
            return seen["output"]

    net: Any = Passing()
    net.register_full_backward_hook(lambda *received: None)
    given, named = (_leaf(1.0), _leaf(2.0), torch.tensor([3.0])), _leaf(4.0)
    result = net(*given, named=named)
    for which, i in (("first Tensor", 0), ("second", 1), ("one that requires no grad", 2)):
        check.true(f"forward does not get the very {which}", seen["args"][i] is not given[i])
        check.true(f"the caller does not get the very {which}", result[i] is not seen["output"][i])
    check.true("forward does not get the very one that is passed by keyword", seen["named"] is not named)
    check.true("inputs have one grad_fn", seen["args"][0].grad_fn is seen["args"][1].grad_fn is not None)
    check.true("outputs have one grad_fn", result[0].grad_fn is result[1].grad_fn is not None)
    check.equal("the numbers are the same", (seen["args"], result), (([1.0], [2.0], [3.0]), ([2.0], [3.0], [4.0])))
    net(given[2])
    check.true("where no gradient flows, forward gets the very tensor", seen["args"][0] is given[2])


@program("P2-7", CLAIM, since="1.8", source=f"{NOTE}; torch.nn.Module.register_full_backward_hook, firing rules")
def fires_on_a_first_layer(check: Check) -> None:
    """If no input requires grad but an output does, as in the first layer of a net, the hook still fires, and
    grad_input is all None."""

    class Constant(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.tensor([2.0]))

        def forward(self, *args: Any) -> Any:
            return 3 * self.weight

    layers = {
        "Linear": (nn.Linear(1, 1), (torch.tensor([1.0]),)),
        "Embedding": (nn.Embedding(2, 1), (torch.tensor([1]),)),
        "no Tensor among the inputs": (Constant(), ("text", 1)),
        "no input at all": (Constant(), ()),
    }
    for name, (layer, args) in layers.items():
        seen: list[Any] = []
        layer.register_full_backward_hook(_received(seen))
        layer(*args).sum().backward()
        check.calls(f"{name}: calls of the hook", len(seen), 1)
        check.equal(f"{name}: grad_input", [gi for gi, _ in seen], [(None,) * len(args)], "call")


@program("P2-8", CLAIM, since="1.8", source=f"{NOTE}; torch.nn.Module.register_full_backward_hook, firing rules")
def silent_without_differentiable_output(check: Check) -> None:
    """If an input requires grad but no output does, the hook does not fire, and nothing else is different."""
    # A gradient reaches the input by another way as well: of L = sum x · output it is the output, a constant factor.
    forwards: dict[str, tuple[Any, Any, list[float]]] = {
        "detach": (lambda x: (2 * x).detach(), [2.0, 4.0], [2.0, 4.0]),
        "argmax": (lambda x: x.argmax(), 1, [1.0, 1.0]),
        "comparison": (lambda x: x > 1, [False, True], [0.0, 1.0]),
    }
    for name, (forward, output, grad) in forwards.items():
        net: Any = nn.Module()
        net.forward = forward
        calls: list[Any] = []
        net.register_full_backward_hook(lambda *received, calls=calls: calls.append(received))
        x = _leaf(1.0, 2.0)
        y = check.works(f"{name}: the call", partial(net, x))
        check.equal(f"{name}: the output", y, output)
        check.true(f"{name}: the output does not require grad", y is not None and not y.requires_grad)
        check.works(f"{name}: backward", (x * y).sum().backward)
        check.equal(f"{name}: the input's grad", x.grad, grad)
        check.calls(f"{name}: calls of the hook", len(calls), 0)


@program("P2-9", CLAIM, since="1.8", source=f"{NOTE}; torch.nn.Module.register_full_backward_hook, firing rules")
def fires_on_an_intermediate_loss(check: Check) -> None:
    """Backward from a tensor made inside the module, which is no output of it, reaches the inputs without passing the
    outputs, and the hook is called with a grad_output that is filled with None."""

    class Inside(nn.Module):
        def forward(self, x: Any) -> Any:
            self.inner = 2 * x
            return 3 * self.inner, 5 * self.inner

    net: Any = Inside()
    seen: list[Any] = []
    net.register_full_backward_hook(_received(seen))
    x = _leaf(1.0)
    net(x)
    check.works("backward", lambda: net.inner.backward())
    check.equal("the input's grad", x.grad, [2])
    check.calls("calls of the hook", len(seen), 1)
    check.equal("what it got", seen, [(([2.0],), (None, None))], "call")


@program("P2-10", CLAIM, since="1.8", source=f"{NOTE}; torch.no_grad; torch.nn.Module.register_full_backward_hook")
def silent_without_grad_mode(check: Check) -> None:
    """A module with a full backward hook that is evaluated under ``no_grad`` is a silent no-op: where it raised when
    the note was written, it computes as without the hook, which is not called."""
    for name, x in (("the input requires grad", _leaf(1.0)), ("only a parameter does", torch.tensor([1.0]))):
        net: Any = nn.Linear(1, 1)
        plain = net(x).tolist()
        calls: list[Any] = []
        net.register_full_backward_hook(lambda *received, calls=calls: calls.append(received))

        def evaluated(net: Any = net, x: Any = x, calls: list[Any] = calls) -> Any:
            with torch.no_grad():
                y = net(x)
            return y.tolist(), y.requires_grad, len(calls)

        result = check.works(f"{name}: the call", evaluated)
        check.equal(f"{name}: output, whether it requires grad, calls of the hook", result, (plain, False, 0))


@program("P2-13", CLAIM, since="1.8", source=f"{NOTE}; torch.nn.Module.register_backward_hook")
def legacy_hooks_are_on_a_node(check: Check) -> None:
    """A legacy hook captures the own gradients of the grad_fn of the first output that has one, one level of a dict
    opened: so it is right for a module of a single Node (Conv2d), and wrong for any other (Linear)."""

    def seen(forward: Any) -> list[Any]:
        net: Any = nn.Module()
        net.forward = forward
        gradients: list[Any] = []
        net.register_backward_hook(lambda module, grad_input, grad_output: gradients.append((grad_input, grad_output)))
        output = net(1 * _leaf(1.0))
        tensors = output.values() if isinstance(output, dict) else output
        sum(factor * t.sum() for factor, t in zip((3, 5), tensors) if t.requires_grad).backward()
        return gradients

    check.equal("of two outputs, the first", seen(lambda x: (-x, x.neg())), [(([-3],), ([3],))])
    check.equal("of a dict, the first", seen(lambda x: {"a": -x, "b": x.neg()}), [(([-3],), ([3],))])
    check.equal("where the first has no grad_fn, the next", seen(lambda x: (torch.ones(1), -x)), [(([-5],), ([5],))])

    grad_inputs: list[Any] = []
    for module, shape in ((nn.Conv2d(1, 1, 1), (1, 1, 1, 1)), (nn.Linear(1, 1), (1, 1))):
        with torch.no_grad():
            module.weight.fill_(2.0)
        module.register_backward_hook(lambda module, grad_input, grad_output: grad_inputs.append(grad_input))
        module(torch.full(shape, 7.0, requires_grad=True)).backward(torch.full(shape, 3.0))
    conv, linear = grad_inputs
    check.equal("the first gradient of Conv2d is its input's", conv[0], [[[[6]]]])
    check.calls("gradients of Conv2d, of one input", len(conv), 1)
    check.true("the first gradient of Linear is not its input's", linear[0].flatten().tolist() != [6])
