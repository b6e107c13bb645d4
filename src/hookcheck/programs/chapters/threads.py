"""Do hooks keep to their own when several threads run forward and backward at once?

Threads may run forward and backward at once through one module, each on a graph of its own. A hook belongs to the
module, tensor or process that it was registered on, and runs in every thread; grad mode and the context of hooks for
saved tensors belong to the thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.chapters.saved_tensors_hooks import NOTE, hooked, noting, two
from hookcheck.programs.check import Check
from hookcheck.programs.program import program

MULTITHREADED = "notes on autograd, 'Multithreaded Autograd'"
FULL = f"torch.nn.Module.register_full_backward_hook; {MULTITHREADED}"
NUMBERS = (1.0, 2.0, 3.0, 4.0)
"""What tells the threads apart: each multiplies its loss by a number of its own."""


def together(act: Callable[[float, Any], Any], numbers: Sequence[float] = NUMBERS) -> list[Any]:
    """What ``act`` gives for each number, and a leaf that holds it, in a thread for each, all at once."""
    leaves = [torch.tensor([number], requires_grad=True) for number in numbers]  # a default device is the thread's own
    with ThreadPoolExecutor(len(numbers)) as threads:
        return list(threads.map(act, numbers, leaves))


def tripling(check: Check) -> Any:
    """A module that multiplies by 3, and whose backward waits in the middle for that of every other thread."""
    barrier = threading.Barrier(len(NUMBERS), timeout=10)

    def wait(gradient: Any) -> None:
        barrier.wait()

    class Tripling(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.tensor([3.0]))

        def forward(self, x: Any) -> Any:
            h = x * 1
            if check.device == "cpu":  # backward on a GPU has one thread for all
                h.register_hook(wait)
            return self.weight * h

    return Tripling()


def backward(net: Any) -> Callable[[float, Any], Any]:
    """A backward of the output, times a number, and the gradient of the input."""

    def act(number: float, x: Any) -> Any:
        (net(x) * number).backward()
        return x.grad.tolist()

    return act


@program("TD-01", PROMISE, since="1.8", source=FULL)
def full_hooks_get_the_gradients_of_their_thread(check: Check) -> None:
    """When threads run backward at once on graphs of their own through one module, a full backward hook is called once
    for each, with that thread's ``grad_input`` and ``grad_output``."""
    net = tripling(check)
    calls: list[Any] = []
    net.register_full_backward_hook(lambda module, gi, go: calls.append([gi[0].item(), go[0].item()]))
    gradients = together(backward(net))
    check.equal("gradients of the inputs", gradients, [[3 * number] for number in NUMBERS])
    check.equal("grad_input and grad_output", sorted(calls), [[3 * number, number] for number in NUMBERS])


@program("TD-02", PROMISE, since="2.0", source=f"torch.nn.Module.register_full_backward_pre_hook; {MULTITHREADED}")
def full_pre_hooks_get_the_gradients_of_their_thread(check: Check) -> None:
    """So is a full backward pre-hook, with that thread's ``grad_output``, and what it returns is that thread's."""
    net = tripling(check)
    calls: list[Any] = []

    def hook(module: Any, grad_output: Any) -> Any:
        calls.append(grad_output[0].item())
        return (grad_output[0] * 10,)

    net.register_full_backward_pre_hook(hook)
    gradients = together(backward(net))
    check.equal("gradients of the inputs", gradients, [[30 * number] for number in NUMBERS])
    check.equal("grad_output", sorted(calls), list(NUMBERS))


@program("TD-03", PROMISE, since="1.7", source=f"torch.Tensor.register_hook; {MULTITHREADED}")
def a_hook_on_a_shared_parameter_gets_each_gradient(check: Check) -> None:
    """A tensor hook on a parameter that threads share is called once in the backward of each, with that thread's
    gradient."""
    net = tripling(check)
    calls: list[Any] = []
    net.weight.register_hook(lambda gradient: calls.append(gradient.item()))
    together(backward(net))
    check.equal("gradients", sorted(calls), [number * number for number in NUMBERS])  # x times the loss's factor


@program("TD-04", PROMISE, since="2.0", source=f"torch.autograd.graph.register_multi_grad_hook; {MULTITHREADED}")
def a_multi_grad_hook_gets_each_backward(check: Check) -> None:
    """A multi-grad hook on tensors that threads share is called once in the backward of each, with that thread's
    gradients."""
    first, second = tripling(check), tripling(check)
    calls: list[Any] = []
    torch.autograd.graph.register_multi_grad_hook(
        (first.weight, second.weight), lambda gradients: calls.append([g.item() for g in gradients])
    )
    together(lambda number, x: (second(first(x)) * number).backward())
    # y = w1 w2 x: 3 x and 3 x, times the loss's factor
    check.equal("gradients", sorted(calls), [[3 * number * number] * 2 for number in NUMBERS])


@program("TD-05", PROMISE, since="1.7", source="torch.nn.Module.register_forward_hook")
def forward_hooks_get_the_call_of_their_thread(check: Check) -> None:
    """When threads call one module at once, its forward hooks and pre-hooks are called once for each call, with that
    call's arguments and output, and what they return is that call's."""
    barrier = threading.Barrier(len(NUMBERS), timeout=10)
    seen: list[Any] = []

    class Net(nn.Module):
        def forward(self, x: Any) -> Any:
            barrier.wait()
            return 3 * x

    def post(module: Any, args: Any, output: Any) -> Any:
        seen.append([args[0].item(), output.item()])
        return output + 1

    net = Net()
    net.register_forward_pre_hook(lambda module, args: (args[0] * 10,))
    net.register_forward_hook(post)
    outputs = together(lambda number, x: net(x).tolist())
    check.equal("outputs", outputs, [[30 * number + 1] for number in NUMBERS])
    check.equal("arguments and outputs in the hook", sorted(seen), [[10 * number, 30 * number] for number in NUMBERS])


@program("TD-06", PROMISE, since="1.8", source="torch.no_grad, note on threads")
def grad_mode_is_of_its_thread(check: Check) -> None:
    """Grad mode is of its thread: where one thread has it off, hooks in another see it on, and backward hooks fire."""
    net = nn.Threshold(0.0, 0.0)
    modes: list[bool] = []
    calls: list[Any] = []
    net.register_forward_hook(lambda module, args, output: modes.append(torch.is_grad_enabled()))
    net.register_full_backward_hook(lambda module, gi, go: calls.append([gi[0].item(), go[0].item()]))
    with torch.no_grad():
        net(torch.tensor([1.0]))
        (gradient,) = together(backward(net), [2.0])
        net(torch.tensor([1.0]))
    check.equal("grad mode in the hook of one thread, of another, and again of the first", modes, [False, True, False])
    check.equal("gradient of the input", gradient, [2])
    check.equal("grad_input and grad_output", calls, [[2, 2]])


@program("TD-07", PROMISE, since="1.7", source="torch.nn.modules.module.register_module_forward_hook")
def global_hooks_are_of_the_process(check: Check) -> None:
    """A global forward hook is called for modules that another thread calls."""
    seen: list[Any] = []
    net = nn.Threshold(0.0, 0.0)
    handle = torch.nn.modules.module.register_module_forward_hook(lambda m, args, output: seen.append(output.item()))
    together(lambda number, x: net(x))
    handle.remove()
    together(lambda number, x: net(x))
    check.equal("outputs", sorted(seen), list(NUMBERS))


@program("TD-08", PIN, since="1.7", source=MULTITHREADED)
def backward_on_the_cpu_runs_in_its_own_thread(check: Check) -> None:
    """Tensor hooks of a graph on the CPU run in the thread that calls backward."""
    leaves = [torch.tensor([number], device="cpu", requires_grad=True) for number in NUMBERS]
    idents: list[Any] = []

    def act(x: Any) -> int:
        y = x * 2
        y.register_hook(lambda gradient: idents.append([x.item(), threading.get_ident()]))
        y.backward()
        return threading.get_ident()

    with ThreadPoolExecutor(len(NUMBERS)) as threads:
        expected = [[number, ident] for number, ident in zip(NUMBERS, threads.map(act, leaves))]
    check.equal("threads of the hooks", sorted(idents), expected)


@program("ST-14", PROMISE, since="1.10", source=f"{NOTE}, warning")
def saved_tensors_hooks_are_of_their_thread(check: Check) -> None:
    """The context of hooks for saved tensors concerns the thread that entered it: not one that is started inside."""
    log: list[Any] = []
    with hooked(noting(log)):
        together(lambda number, x: x.pow(2))
        check.equal("packed for threads started inside", log, [])
        two().pow(2)
    check.equal("packed for the thread itself", log, [[2, 3]])


@program("TD-09", PROMISE, since="1.10", source="pytorch#62909")
def pack_runs_for_the_thread_that_entered(check: Check) -> None:
    """The pack hook is called only for what is saved in the thread that entered the context, while that is open."""
    log: list[Any] = []
    entered, done = threading.Event(), threading.Event()

    def other(_: float, x: Any) -> None:
        with hooked(noting(log)):
            entered.set()
            done.wait(10)
            x.pow(2)

    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(other, 5.0, torch.tensor([5.0], requires_grad=True))
        entered.wait(10)
        two().pow(2)
        check.equal("packed for another thread", log, [])
        done.set()
        running.result()
    check.equal("packed for the thread that entered", log, [[5]])
