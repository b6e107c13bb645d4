"""When does an optimizer step that is applied in backward or under a GradScaler, and what do hooks see of it?"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check, NotRun
from hookcheck.programs.program import program

IN_BACKWARD = "torch.distributed.optim._apply_optimizer_in_backward"


@program("OP-20", PROMISE, since="2.6", source=f"{IN_BACKWARD}; 'fire after the gradient has been accumulated'")
def an_optimizer_applied_in_backward(check: Check) -> None:
    """Optimizers applied in backward step their parameter once in each, after its gradient is accumulated, in the order
    in which they were applied; step hooks are called, gradients are None after that. Others are left alone."""
    if not torch.distributed.is_available():
        raise NotRun("this torch is built without torch.distributed")
    optim = import_module("torch.distributed.optim")
    a, b, c = (nn.Parameter(torch.tensor(value)) for value in (2.0, 3.0, 5.0))
    log, ahead = list[Any](), list[Any]()
    for rate in (0.5, 0.25):
        optim._apply_optimizer_in_backward(torch.optim.SGD, [a], {"lr": rate})
    optim._apply_optimizer_in_backward(torch.optim.SGD, [b], {"lr": 1.0}, register_hook=False)
    steps = optim._get_in_backward_optimizers(nn.ParameterList([a, b, c]))
    rates = [optimizer.param_groups[0]["lr"] for optimizer in steps]
    check.equal("optimizers of the module", rates, [0.5, 0.25, 1.0], "entry")

    def note(when: str, optimizer: Any) -> None:
        log.append((when, optimizer.param_groups[0]["lr"], a.item()))

    for optimizer in steps:
        optimizer.register_step_pre_hook(lambda optimizer, *_: note("pre", optimizer))
        optimizer.register_step_post_hook(lambda optimizer, *_: note("post", optimizer))
    a.register_hook(lambda grad: ahead.append(("gradient", grad.item(), a.item())))
    a.register_post_accumulate_grad_hook(lambda a: ahead.append(("accumulated", a.grad.item(), a.item())))
    # a gets 1 + b = 4: it steps to 2 - 0.5·4 = 0, then to 0 - 0.25·4 = -1; from there to -3 and -4
    for number, start in (("first", 2.0), ("second", -1.0)):
        log.clear()
        ahead.clear()
        (a + a * b + c).backward()
        due = [("pre", 0.5, start), ("post", 0.5, start - 2), ("pre", 0.25, start - 2), ("post", 0.25, start - 3)]
        check.order(f"{number}: step hooks", log, due)
        check.order(f"{number}: hooks of the parameter", ahead, [("gradient", 4.0, start), ("accumulated", 4.0, start)])
        due_grads = [None, 2.0, 1.0] if number == "first" else [None, 2.0 - 1.0, 2.0]
        check.equal(f"{number}: gradients", [a.grad, b.grad, c.grad], due_grads)
        check.equal(f"{number}: parameters", [a, b, c], [start - 3, 3.0, 5.0])
    for handle in import_module(f"{optim.__name__}.apply_optimizer_in_backward").param_to_optim_hook_handle_map[a]:
        handle.remove()
    log.clear()
    (a * 1).backward()
    check.order("step hooks once the handles are removed that are kept", log, [])


@program("OP-21", PIN, since="2.3", source="torch.amp.GradScaler.step; 'unscale_ is invoked unless it was called'")
def step_hooks_see_unscaled_gradients(check: Check) -> None:
    """Step hooks under a GradScaler see gradients that are unscaled once, whether or not ``unscale_`` was called;
    hooks of the parameter see them scaled."""
    for name in ("step alone", "unscale_ and step"):
        parameter = nn.Parameter(torch.tensor(1.0))
        optimizer = torch.optim.SGD([parameter], lr=0.25)
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
        log: list[Any] = []
        for when in ("pre", "post"):
            getattr(optimizer, f"register_step_{when}_hook")(
                lambda optimizer, args, kwargs, when=when, log=log, parameter=parameter: log.append(
                    (when, parameter.grad.item(), parameter.item())
                )
            )
        parameter.register_hook(lambda grad, log=log: log.append(("scaled", grad.item())))
        scaler.scale(2 * parameter).backward()
        if "unscale_" in name:
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        check.order(f"{name}: hooks", log, [("scaled", 8.0), ("pre", 2.0, 1.0), ("post", 2.0, 0.5)])

    class Given(type(optimizer)):
        def step(self, *words: Any, **named: Any) -> Any:
            return [*words, named]

    optimizer, given = Given([parameter], lr=0.25), list[Any]()
    optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: given.append([args[-1], kwargs]))
    for name, one in {"": scaler, ", which is not enabled": torch.amp.GradScaler("cpu", enabled=False)}.items():
        given.clear()
        what = one.step(optimizer, "word", named=7)
        due = ["word", {"named": 7}]
        check.equal(f"arguments of the step that a scaler was given, in a hook{name}", given, [due], "argument")
        check.equal(f"what the step of a scaler gives{name}", what, due)
    fused: Any = Given([parameter], lr=0.25)  # one that unscales by itself, for which it has the scale while it steps
    fused._step_supports_amp_scaling, given = True, []
    fused.register_step_pre_hook(lambda fused, args, kwargs: given.append([args[-1], kwargs, fused.grad_scale.item()]))
    check.equal("what the step gives that unscales by itself", scaler.step(fused, "word", named=7), due)
    check.equal("its arguments and the scale, in a hook", given, [["word", {"named": 7}, 4.0]], "argument")
    check.true("the scale is taken off it", not hasattr(fused, "grad_scale"))
