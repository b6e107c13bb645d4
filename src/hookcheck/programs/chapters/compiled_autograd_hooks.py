"""What do hooks see where compiled autograd captures backward? Each kind of them sees what it sees in eager.

Compiled autograd makes a graph of a whole backward, with the calls of its hooks, when it meets one for the first time.
A later backward that is like it runs that graph with hooks, saved values and sizes that are its own. Here the graph
runs as it is, since what compiles it is another matter; `CA-15` has it compiled.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import torch
from hookcheck.programs.captured import CAPTURED, CHECKED, EAGER, KINDS, backward, capture, captures, hooked, listed
from hookcheck.programs.check import Check
from hookcheck.programs.compiling import fresh
from hookcheck.programs.nets import leaf, net
from hookcheck.programs.program import program

TUTORIAL = "Compiled Autograd tutorial, 'Compiled Autograd addresses limitations'"
ORDER = "Autograd mechanics, 'Backward Hooks execution'"


@program("CA-01", PROMISE, since="2.9", source=f"{TUTORIAL}; torch.Tensor.register_hook")
@fresh()
def tensor_hooks(check: Check) -> None:
    """Hooks on tensors see and change gradients, whatever size those have, and on whichever output of a Node."""
    for way in (EAGER, CAPTURED):
        for size in (2, 3, 4):
            log: list[Any] = []
            x = torch.ones(2 * size, requires_grad=True)
            x.register_hook(lambda grad: grad + 1)
            y = 2 * x
            y.register_hook(lambda grad, log=log: log.append(grad.tolist()))
            y.register_hook(lambda grad: 10 * grad)
            y.register_hook(lambda grad, log=log: log.append(grad.tolist()))
            y.register_hook(lambda grad: 100 * grad).remove()
            first, second = y.split(size)
            second.register_hook(lambda grad: 7 * grad)
            with backward(way):
                ((3 * first + 5 * second).sum() + y.sum()).backward()
            # At the halves of y arrive 3 + 1 and 7·5 + 1; x gets twice what leaves y, and 1.
            check.equal(f"{way}, {size}: what hooks see", log, [size * [4] + size * [36], size * [40] + size * [360]])
            check.equal(f"{way}, {size}: gradient", x.grad, size * [81] + size * [721])


@program("CA-02", PROMISE, since="2.9", source=f"{ORDER}; torch.Tensor.retain_grad")
@fresh()
def retained_gradients(check: Check) -> None:
    """A tensor retains the gradient that its hooks give, on whichever output of a Node."""
    for way in (EAGER, CAPTURED):
        x = leaf(1.0, 2.0)
        parts = x.unbind()
        for part, factor in zip(parts, (7, 10)):
            part.retain_grad()
            part.register_hook(lambda grad, factor=factor: factor * grad)
        with backward(way):
            (2 * parts[0] + 3 * parts[1]).backward()
        check.equal(f"{way}: retained", listed(part.grad for part in parts), [14, 30])  # 7·2 and 10·3
        check.equal(f"{way}: gradient", x.grad, [14, 30])


@program("CA-03", PROMISE, since="2.9", source=f"{TUTORIAL}; torch.autograd.graph.Node.register_hook, register_prehook")
@fresh()
def node_hooks(check: Check) -> None:
    """Hooks and pre-hooks of a Node see and change all of its gradients."""
    for way in (EAGER, CAPTURED):
        log: list[Any] = []
        x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
        y = x * w
        y.grad_fn.register_prehook(lambda outputs: (10 * outputs[0],))
        y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] + 1, inputs[1] + 2))
        y.grad_fn.register_hook(lambda inputs, outputs, log=log: log.append((listed(inputs), listed(outputs))))
        with backward(way):
            y.sum().backward()
        changed = [[31, 41], [12, 22]]  # 10·w + 1 and 10·x + 2
        check.equal(f"{way}: what the hook sees", log, [(changed, [[10, 10]])])
        check.equal(f"{way}: gradients", [x.grad.tolist(), w.grad.tolist()], changed)


@program("CA-04", PROMISE, since="2.9", source=f"{TUTORIAL}; torch.Tensor.register_post_accumulate_grad_hook")
@fresh()
def post_accumulate_hooks(check: Check) -> None:
    """A post-accumulate-grad hook is called with its leaf, whose sum of gradients it may change or take away."""
    for way in (EAGER, CAPTURED):
        log: list[Any] = []
        doubled, taken = leaf(1.0, 2.0), leaf(1.0, 2.0)

        def double(given: Any, log: list[Any] = log, doubled: Any = doubled) -> None:
            log.append((given is doubled, given.grad.tolist()))
            given.grad = 2 * given.grad

        doubled.register_post_accumulate_grad_hook(double)
        taken.register_post_accumulate_grad_hook(lambda given: setattr(given, "grad", None))
        with backward(way):
            for _ in range(2):
                (3 * doubled + 5 * taken).sum().backward()
        check.equal(f"{way}: calls", log, [(True, [3, 3]), (True, [9, 9])])  # 3, then 2·3 + 3
        check.equal(f"{way}: gradient that is doubled", doubled.grad, [18, 18])
        check.equal(f"{way}: gradient that is taken away", taken.grad, None)


@program("CA-05", PROMISE, since="2.9", source=f"{ORDER}; pytorch#138553")
@fresh()
def order_of_hooks(check: Check) -> None:
    """At a leaf come tensor hooks, pre-hooks of its Node, the sum of gradients, hooks after it, hooks of the Node."""
    for way in (EAGER, CAPTURED):
        chain: list[str] = []
        logs: list[list[Any]] = []
        nodes = []
        y = leaf(1.0)
        for index in range(3):
            log: list[Any] = []
            factor = leaf(2.0)
            node = torch.autograd.graph.get_gradient_edge(factor).node
            factor.register_hook(lambda grad, log=log, p=factor: log.append(("tensor", p.grad is not None)))
            node.register_prehook(lambda grads, log=log, p=factor: log.append(("pre", p.grad is not None)))
            factor.register_post_accumulate_grad_hook(lambda p, log=log: log.append(("post", p.grad is not None)))
            node.register_hook(lambda *grads, log=log, p=factor: log.append(("node", p.grad is not None)))
            nodes.append(node)  # a Node that nobody holds is another one the next time
            logs.append(log)
            y = factor * y
            y.register_hook(lambda grad, index=index, chain=chain: chain.append(str(index)))
            y.grad_fn.register_prehook(lambda grads, index=index, chain=chain: chain.append(f"pre {index}"))
        with backward(way):
            y.backward()
        steps = [("tensor", False), ("pre", False), ("post", True), ("node", True)]
        check.equal(f"{way}: hooks of leaves, and whether there is a gradient", logs, 3 * [steps])
        check.order(f"{way}: hooks along the way", chain, ["2", "pre 2", "1", "pre 1", "0", "pre 0"])


@program("CA-06", PROMISE, since="2.9", source="torch.autograd.graph.register_multi_grad_hook; pytorch#138553")
@fresh()
def multi_grad_hooks(check: Check) -> None:
    """A multi-grad hook is called once a backward, with all gradients or the first, until it is removed."""
    for way in (EAGER, CAPTURED):
        every: list[Any] = []
        some: list[Any] = []
        leaves = leaf(2.0), leaf(3.0), leaf(5.0)
        register = torch.autograd.graph.register_multi_grad_hook
        handles = [
            register(leaves, lambda grads, log=every: log.append(listed(grads)), mode="all"),
            register(leaves[1:], lambda grad, log=some: log.append(grad.tolist()), mode="any"),
        ]
        with backward(way):
            for _ in range(2):
                (leaves[0] * leaves[1]).sum().backward()
            for handle in handles:
                handle.remove()
            (leaves[0] * leaves[1]).sum().backward()
        check.equal(f"{way}: all", every, 2 * [[[3], [2], None]])
        check.equal(f"{way}: any", some, 2 * [[2]])


@program("CA-07", PROMISE, since="2.9", source="torch.autograd.graph.saved_tensors_hooks; pytorch#116221")
@fresh()
def saved_tensor_hooks(check: Check) -> None:
    """What was packed is unpacked in backward, each by its hooks, once for each use; backward goes on with that."""
    for way in (EAGER, CAPTURED):
        unpacked: list[Any] = []

        def unpack(packed: tuple[str, Any], log: list[Any] = unpacked) -> Any:
            log.append(packed[0])
            return 10 * packed[1]

        x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
        with torch.autograd.graph.saved_tensors_hooks(lambda saved: ("a pair", saved), unpack):
            y = x * w
        y.register_hook(lambda grad, log=unpacked: log.append("hook"))
        with torch.autograd.graph.saved_tensors_hooks(lambda saved: ("unused", saved), unpack):
            x.exp()
        with backward(way):
            y.sum().backward(retain_graph=True)
            y.sum().backward()
        check.order(f"{way}: what is unpacked, and a hook before it", unpacked, 2 * ["hook", "a pair", "a pair"])
        check.equal(f"{way}: gradients", [x.grad.tolist(), w.grad.tolist()], [[60, 80], [20, 40]])  # 2·10·w and 2·10·x


@program("CA-08", PROMISE, since="2.9", source=TUTORIAL)
@fresh()
def hooks_of_another_backward(check: Check) -> None:
    """Each backward runs the hooks that are there then, though one like it was captured with others, or with none."""
    for way in (EAGER, CAPTURED):
        for kind in KINDS:
            seen = []
            for factor in (2.0, 3.0, None, 5.0):
                x, y = hooked("none" if factor is None else kind, lambda grad, factor=factor: factor * grad)
                with backward(way):
                    y.sum().backward()
                seen.append(x.grad.tolist())
            check.equal(f"{way}, {kind}: gradients", seen, [[2, 2], [3, 3], [1, 1], [5, 5]])


@program("CA-09", PROMISE, since="2.9", source=f"{ORDER}; {TUTORIAL}")
@fresh()
def what_hooks_raise(check: Check) -> None:
    """What a hook raises comes out of backward as it is, and the next backward runs as if nothing had been."""

    def fail(grad: Any) -> None:
        raise LookupError("raised by a hook")

    for way in (EAGER, CAPTURED):
        for kind in KINDS:
            y = hooked(kind, fail)[1]
            with backward(way):
                check.raises(f"{way}, {kind}: backward", LookupError, y.sum().backward, "raised by a hook")
                x, y = hooked(kind, lambda grad: 3 * grad)
                y.sum().backward()
            check.equal(f"{way}, {kind}: gradient after it", x.grad, [3, 3])
    check.true("nothing is left running", not captures().in_compiled_autograd_region)


@program("CA-10", PIN, since="2.9", source="torch/csrc/autograd/python_hook.cpp, check_single_result")
@fresh()
def unfit_results(check: Check) -> None:
    """A gradient that a hook gives in another shape, or as another type, is refused."""
    changes = {"shape": lambda grad: grad[:1], "type": lambda grad: grad.double()}
    for kind, register in CHECKED.items():
        for what, change in changes.items():
            for way in (EAGER, CAPTURED):
                x = leaf(0.0, 0.0)
                y = x.exp()
                register(change, x, y)
                try:
                    with backward(way):
                        y.sum().backward()
                except RuntimeError:
                    pass
                check.equal(f"{way}, {kind}: gradient of another {what}", x.grad, None)


@program("CA-11", PIN, since="2.9", source="pytorch#11751")
@fresh()
def hooks_on_what_gets_no_gradient(check: Check) -> None:
    """A hook on an output of a Node that gets no gradient, while another does, does not stand in backward's way."""
    for way in (EAGER, CAPTURED):
        x = leaf(1.0, 2.0)
        used, unused = x.unbind()
        unused.register_hook(lambda grad: None)
        with backward(way):
            check.works(f"{way}: backward", (2 * used).backward)
        if x.grad is not None:
            check.equal(f"{way}: gradient", x.grad, [2, 0])


@program("CA-12", PROMISE, since="2.9", source="torch.nn.Module.register_full_backward_hook")
@fresh()
def full_hooks_with_unused_outputs(check: Check) -> None:
    """A full backward hook is called where one of its module's outputs gets no gradient and another does."""
    for way in (EAGER, CAPTURED):
        log: list[Any] = []
        module = net(lambda module, x: (2 * x, 3 * x))
        module.register_full_backward_hook(lambda module, inputs, outputs, log=log: log.append(listed(inputs)))
        x = leaf(1.0)
        with backward(way):
            check.works(f"{way}: backward", module(x)[0].sum().backward)
        if x.grad is not None:
            check.equal(f"{way}: gradients that the hook gets", log, [[[2]]])


@program("CA-13", PROMISE, since="2.9", source=f"{ORDER}; torch.autograd.grad")
@fresh()
def gradients_asked_for(check: Check) -> None:
    """A gradient that is asked for is what tensor hooks made of it; post-accumulate-grad hooks are not called."""
    for way in (EAGER, CAPTURED):
        log: list[Any] = []
        x = leaf(1.0)
        x.register_hook(lambda grad: grad + 1)
        x.register_post_accumulate_grad_hook(log.append)
        y = 2 * x
        y.register_hook(lambda grad: 10 * grad)
        with backward(way):
            for name, tensor, expected in (("inner tensor", y, [10]), ("leaf", x, [21])):
                (grad,) = torch.autograd.grad(y.sum(), tensor, retain_graph=True)
                check.equal(f"{way}: {name}", grad, expected)
        check.calls(f"{way}: post-accumulate-grad hooks", len(log), 0)
        check.equal(f"{way}: gradient of the leaf", x.grad, None)


@program("CA-14", PIN, since="2.9", source="torch.autograd.backward, create_graph; pytorch#17315")
@fresh()
def inside_a_hook(check: Check) -> None:
    """In a hook gradients are not recorded, and a backward of its own runs as in eager."""
    for way in (EAGER, CAPTURED):
        log: list[Any] = []

        def hook(grad: Any, log: list[Any] = log) -> Any:
            log.append((torch.is_grad_enabled(), grad.requires_grad))
            w = leaf(3.0)
            w.register_hook(lambda grad: 2 * grad)
            with torch.enable_grad():
                (w * w).backward()
            return grad * w.grad

        x = leaf(1.0)
        y = 5 * x
        y.register_hook(hook)
        with backward(way):
            y.backward()
        check.equal(f"{way}: whether gradients are recorded", log, [(False, False)])
        check.equal(f"{way}: gradient", x.grad, [60])  # 5·(2·2·3)


@program("CA-15", PROMISE, since="2.9", source=TUTORIAL)
@fresh()
def hooks_in_a_compiled_graph(check: Check) -> None:
    """The graph of a backward, compiled with its hooks, does what eager does, also for another size and other hooks."""

    def compile(graph: Any) -> Any:
        return torch.compile(graph, backend="eager")

    for way in (EAGER, CAPTURED):
        for size, factor in ((2, 2.0), (3, 5.0)):
            log: list[Any] = []
            x, w = torch.ones(size, requires_grad=True), torch.ones(size, requires_grad=True)
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t, factor=factor: factor * t):
                y = x * w
            y.register_hook(lambda grad: grad + 1)
            y.grad_fn.register_prehook(lambda grads: (10 * grads[0],))
            y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] + 1, inputs[1] + 2))
            w.register_post_accumulate_grad_hook(lambda leaf, log=log: log.append(leaf.grad.tolist()))
            context = capture(compile) if way == CAPTURED else nullcontext()
            with context:
                y.sum().backward()
            # (1 + 1)·10 by what is unpacked, which is the factor, and 1 or 2.
            check.equal(f"{way}, {size}: gradient of x", x.grad, size * [20 * factor + 1])
            check.equal(f"{way}, {size}: what a hook sees of w", log, [size * [20 * factor + 2]])


@program("CA-16", PIN, since="2.9", source="torch._dynamo.config.compiled_autograd; torch/_dynamo/compiled_autograd.py")
@fresh()
def one_graph_for_like_hooks(check: Check) -> None:
    """What differs in what its hooks do alone is captured once; nothing is captured once compiled autograd is off."""
    graphs: list[Any] = []

    def compile(graph: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    def run(kind: str, factor: float) -> None:
        hooked(kind, lambda grad: factor * grad)[1].sum().backward()

    clear = torch._C._dynamo.compiled_autograd.clear_cache
    for kind in KINDS:
        graphs.clear()
        clear()
        with capture(compile):
            run(kind, 2.0)
            run(kind, 3.0)
        check.calls(f"{kind}: graphs of two", len(graphs), 1)
        check.true(f"{kind}: it is off", not captures().compiled_autograd_enabled)
    graphs.clear()
    clear()
    run(KINDS[0], 2.0)
    check.calls("graphs of one afterwards", len(graphs), 0)


@program("CA-17", PROMISE, since="2.9", source="torch.autograd.graph.Node.register_hook, register_prehook")
@fresh()
def node_hooks_are_given_tuples(check: Check) -> None:
    """Hooks and pre-hooks of a Node are given tuples of gradients."""
    for way in (EAGER, CAPTURED):
        kinds: list[str] = []
        y = 2 * leaf(1.0)
        y.grad_fn.register_prehook(lambda outputs, kinds=kinds: kinds.append(type(outputs).__name__))
        y.grad_fn.register_hook(lambda *both, kinds=kinds: kinds.extend(type(each).__name__ for each in both))
        with backward(way):
            y.backward()
        check.equal(f"{way}: types of arguments", kinds, 3 * ["tuple"])


@program("CA-18", PIN, since="2.9", source="pytorch#138538; pytorch#138553")
@fresh()
def hooks_as_soon_as_possible(check: Check) -> None:
    """Where forward is compiled as well, hooks of a leaf run as soon as its gradient is there, and not at the end."""
    log: list[str] = []

    class Noting(torch.fx.Interpreter):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            if "cos" in str(target):
                log.append("step of backward")  # the derivative of a sine
            return super().call_function(target, args, kwargs)

    leaves = [leaf(2.0), leaf(3.0), leaf(5.0)]
    nodes = [torch.autograd.graph.get_gradient_edge(x).node for x in leaves]
    for x, node in zip(leaves, nodes):
        x.register_hook(lambda grad: log.append("tensor"))
        node.register_prehook(lambda grads: log.append("pre"))
        x.register_post_accumulate_grad_hook(lambda x: log.append("post"))
        node.register_hook(lambda *grads: log.append("node"))

    def function(x: Any) -> Any:
        for factor in leaves:
            x = (factor * x).sin()
        return x

    with capture(lambda graph: lambda *given: [*Noting(graph).run(*given)]):
        torch.compile(function, backend="aot_eager")(torch.ones(1)).backward()
    check.order("steps and hooks", log, 3 * ["step of backward", "tensor", "pre", "post", "node"])
