"""What does ``ModuleTracker`` promise, torch's own use of global forward hooks and multi-grad hooks?

It stands on global forward hooks and on hooks that wait for several gradients, and ``FlopCounterMode`` stands on it.
"""

from __future__ import annotations

from typing import Any

from hookcheck.contract.clause import PROMISE
from hookcheck.probe.lazy import torch
from hookcheck.programs.check import Check
from hookcheck.programs.program import program

TRACKER = "torch.utils.module_tracker.ModuleTracker"


def tracking() -> Any:
    """A context that knows which modules run."""
    from torch.utils.module_tracker import ModuleTracker

    return ModuleTracker()


def net(tracker: Any, log: list[Any]) -> Any:
    """A network ``Net`` with an ``inner`` module, which both note what the tracker says in forward and in backward."""

    def note(where: str) -> None:
        log.append((where, sorted(tracker.parents), tracker.is_bw))

    def noted(tensor: Any, where: str) -> Any:
        note(f"{where}, forward")
        if tensor.requires_grad:
            tensor.register_hook(lambda _: note(f"{where}, backward"))
        return tensor

    class Inner(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return noted(x * 2, "inner") * 3

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()

        def forward(self, x: Any) -> Any:
            return noted(self.inner(noted(x * 5, "before") * 1) * 7, "after") * 11

    return Net()


OUTER, INNER = ["Global", "Net"], ["Global", "Net", "Net.inner"]

FORWARD = [("before, forward", OUTER, False), ("inner, forward", INNER, False), ("after, forward", OUTER, False)]

BACKWARD = [("after, backward", OUTER, True), ("inner, backward", INNER, True), ("before, backward", OUTER, True)]


@program("MT-01", PROMISE, since="2.4", source=f"{TRACKER}; pytorch#125352")
def it_names_the_modules_that_run(check: Check) -> None:
    """In the context ``parents`` holds the names of the modules that are being executed, in forward and in backward,
    and always ``Global``; ``is_bw`` says which of the two it is."""
    log: list[Any] = []
    with tracking() as tracker:
        model = net(tracker, log)
        for time in ("first", "second"):
            log.clear()
            x = torch.tensor([1.0], requires_grad=True)
            loss = model(x) * 1
            check.order(f"in the {time} forward", log, FORWARD)
            check.equal(f"after the {time} forward", [sorted(tracker.parents), tracker.is_bw], [["Global"], False])
            log.clear()
            loss.backward()
            check.order(f"in the {time} backward", log, BACKWARD)
            check.equal(f"after the {time} backward", [sorted(tracker.parents), tracker.is_bw], [["Global"], False])
            check.equal(f"gradient of the {time}", x.grad, [2310])
    where_one_direction_is_short(check)
    past_its_parent(check)
    of_nested_tensors(check)


def past_its_parent(check: Check) -> None:
    """The same of a module whose parent is not called: its name is that in the state dict nevertheless."""
    names: list[str] = []

    class Inner(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            names.extend(sorted(tracker.parents))
            return x

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block = torch.nn.Sequential(Inner())

        def forward(self, x: Any) -> Any:
            return self.block[0](x)

    with tracking() as tracker:
        Net()(torch.tensor([1.0]))
    check.order("in a module that is called past its parent", names, ["Global", "Net", "Net.block.0"])


def of_nested_tensors(check: Check) -> None:
    """The same where arguments and results are in containers of some depth."""
    log: list[Any] = []

    class Net(torch.nn.Module):
        def forward(self, given: Any) -> Any:
            x = given["pair"][0] * 3
            x.register_hook(lambda grad: log.append(("inside", sorted(tracker.parents))))
            return {"pair": [x * 5, None]}

    with tracking() as tracker:
        x = torch.tensor([1.0], requires_grad=True) * 2
        x.register_hook(lambda grad: log.append(("before", sorted(tracker.parents))))
        (Net()({"pair": (x * 1, None)})["pair"][0] * 7).backward()
    check.order("in the backward of nested tensors", log, [("inside", OUTER), ("before", ["Global"])])


def where_one_direction_is_short(check: Check) -> None:
    """The same where nothing is done after the module, or nothing differentiated."""
    log: list[Any] = []
    with tracking() as tracker:
        model = net(tracker, log)
        with torch.no_grad():
            model(torch.tensor([1.0]))
        check.order("in a forward without gradient", log, FORWARD)
        check.equal("after a forward without gradient", sorted(tracker.parents), ["Global"])
        y = model(torch.tensor([1.0], requires_grad=True))
        log.clear()
        y.backward()
        check.order("in a backward that begins at the output", log, BACKWARD)


@program("MT-02", PROMISE, since="2.4", source=f"{TRACKER}, 'context manager'")
def it_ends_with_its_context(check: Check) -> None:
    """Outside of the context nothing is tracked any more: neither new forwards nor the backward of earlier ones."""
    log: list[Any] = []
    with tracking() as tracker:
        model = net(tracker, log)
        y = model(torch.tensor([1.0], requires_grad=True))
        check.order("in a forward of the context", log, FORWARD)
    log.clear()
    (y * 1).backward()
    check.equal("in its backward", [parents for _, parents, _ in log], [["Global"]] * 3)
    log.clear()
    model(torch.tensor([1.0], requires_grad=True)).backward()
    check.equal("in a new forward and backward", [parents for _, parents, _ in log], [["Global"]] * 6)
