"""What do hooks see as fully_shard and FSDP are set? When parameters are whole, in which dtype, and what is reduced.

Settings are arguments of ``fully_shard`` and methods of what it gives; policies of dtypes; several modules in a group;
checkpointing around or within; and the communication hooks that torch brings.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.chapters.parallel import scale
from hookcheck.programs.chapters.sharded import FSDP2, SHARD, WHOLE, sharded, wrapped
from hookcheck.programs.chapters.sharded_steps import noting_the_shard, watched, within_a_root, x
from hookcheck.programs.check import Check, NotOffered
from hookcheck.programs.nets import net
from hookcheck.programs.processes import process_group
from hookcheck.programs.program import program


def _as_it_comes(module: Any) -> Any:
    """The module under fully_shard, as the root, with nothing said of resharding."""
    sharded(nn.Linear(1, 1))  # not offered where this is not
    mesh = import_module("torch.distributed.device_mesh").init_device_mesh("cpu", (1,))
    import_module("torch.distributed.fsdp").fully_shard(module, mesh=mesh)
    return module


SETTINGS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], list[str]]] = {
    "reshard_after_forward=True": (within_a_root, lambda module: None, [SHARD, WHOLE, SHARD]),
    "reshard_after_forward=False": (
        lambda module: within_a_root(module, reshard_after_forward=False),
        lambda module: None,
        [WHOLE, WHOLE, SHARD],
    ),
    "the root, nothing said": (_as_it_comes, lambda module: None, [WHOLE, WHOLE, SHARD]),
    "set_reshard_after_forward(False)": (
        within_a_root,
        lambda module: module.set_reshard_after_forward(False),
        [WHOLE, WHOLE, SHARD],
    ),
    "set_reshard_after_backward(False)": (
        within_a_root,
        lambda module: module.set_reshard_after_backward(False),
        [SHARD, WHOLE, WHOLE],
    ),
    "set_unshard_in_backward(False)": (
        within_a_root,
        lambda module: module.set_unshard_in_backward(False),
        [SHARD, SHARD, SHARD],
    ),
}
"""What puts a module under fully_shard, and sets it; which weight it has after a forward, at a hook in the backward and
after it (docstrings of ``fully_shard`` and of these methods)."""


@program("DS-38", PROMISE, since="2.6", source=f"{FSDP2}; torch.distributed.fsdp.FSDPModule")
def parameters_are_whole_as_is_said(check: Check) -> None:
    """The parameters of a module under fully_shard are whole or sharded after a forward, in a backward and after it as
    its arguments and methods say, in every step."""
    with process_group(check):
        for name, (make, say, expected) in SETTINGS.items():
            module_class = import_module("torch.distributed.fsdp").FSDPModule
            if name.startswith("set_") and not hasattr(module_class, name.partition("(")[0]):
                continue  # 2.7 has no set_reshard_after_forward
            log: list[Any] = []
            module = watched(lambda seen, x: 3 * seen(x), log)
            root = make(module)
            say(module)
            for step in range(2):
                log.clear()
                output = root(x(1.0))
                log.append(type(module.w).__name__)
                output.backward()
                log.append(type(module.w).__name__)
                check.equal(f"{name}, step {step}: the weight", log, expected)


def _dtype(tensor: Any) -> str:
    return str(tensor.dtype).replace("torch.", "")


def _cast(kind: str) -> tuple[dict[str, list[Any]], Any]:
    """What hooks see of a module whose inputs are cast, positional, by keyword and in containers; and its weight."""
    log: dict[str, list[Any]] = {}
    module = net(lambda module, a, b: {"y": [module.w * a + module.w * b[0]]}, w=scale().w)
    module.register_forward_pre_hook(
        lambda m, args, keywords: log.update({"inputs of forward": [_dtype(args[0]), _dtype(keywords["b"][0])]}),
        with_kwargs=True,
    )
    module.register_forward_hook(lambda m, args, y: log.update({"output of forward": [_dtype(y["y"][0])]}))
    fsdp, low = import_module("torch.distributed.fsdp"), {"param_dtype": torch.bfloat16, "reduce_dtype": torch.float32}
    if kind == "fully_shard":
        root = sharded(module, mp_policy=fsdp.MixedPrecisionPolicy(**low, output_dtype=torch.float64))
    else:
        root = wrapped(module, mixed_precision=fsdp.MixedPrecision(**low))
    a, b = x(3.0, True), x(5.0, True)
    for name, tensor in (("a", a), ("b", b)):
        tensor.register_hook(lambda grad, name=name: log.update({f"gradient of {name}": [_dtype(grad), grad.item()]}))
    (output,) = root(a, b=[b])["y"]
    log["output"] = [_dtype(output)]
    output.register_hook(lambda grad: log.update({"gradient of the output": [_dtype(grad)]}))
    output.backward()
    log["gradient of w"] = [_dtype(module.w.grad), float(module.w.grad.sum())]
    return log, module.w


@program("DS-39", PROMISE, since="2.6", source="torch.distributed.fsdp.MixedPrecisionPolicy, MixedPrecision")
def hooks_meet_the_dtypes_of_a_policy(check: Check) -> None:
    """Inputs are cast before the hooks of the module that is sharded, wherever they are, and outputs after them; hooks
    on inputs and outputs get gradients of the dtype that these had, and that of the parameter has the parameter's."""
    with process_group(check):
        low, full = ["bfloat16"], "float32"
        expected = {"inputs of forward": low * 2, "output of forward": low, "gradient of w": [full, 8.0]}
        expected |= {"gradient of a": [full, 2.0], "gradient of b": [full, 2.0]}
        outputs = {"fully_shard": ["float64"], "FullyShardedDataParallel": low}
        for kind, output in outputs.items():
            log, _ = _cast(kind)
            for name, value in {**expected, "output": output, "gradient of the output": output}.items():
                check.equal(f"{kind}: {name}", log.get(name), value)


@program("DS-40", PROMISE, since="2.6", source=f"{FSDP2}, 'When called with a list'")
def a_group_is_whole_from_its_first_to_its_last(check: Check) -> None:
    """The parameters of several modules under one fully_shard are whole for all hooks from before the first of them to
    the forward of the last, and in the backward of each."""
    with process_group(check):
        first, last, log = scale(), scale(), []  # type: tuple[Any, Any, list[Any]]
        sharded([first, last])
        root = sharded(nn.Sequential(first, last))
        noting_the_shard(first, log)

        def weights() -> list[str]:
            return [type(first.w).__name__, type(last.w).__name__]

        for name, module in (("first", first), ("last", last)):
            module.register_forward_pre_hook(lambda m, args, name=name: log.append((name, "pre", weights())))
            module.register_forward_hook(lambda m, args, y, name=name: log.append((name, "post", weights())))
            module.register_full_backward_hook(lambda m, gi, go, name=name: log.append((name, gi[0].item(), weights())))
        value = x(3.0, True)
        root(value).backward()
        whole, apart = [WHOLE] * 2, [SHARD] * 2
        expected = [("first", "pre", whole), ("first", "post", whole), ("last", "pre", whole), ("last", "post", apart)]
        check.order("hooks", log, [*expected, ("last", 2.0, whole), ("first", 4.0, whole), [6.0]])
        check.equal("gradient of x", value.grad, [4.0])


@program(
    "DS-41", PIN, since="2.6", source=f"{FSDP2}; FSDPState._pre_forward, 'module-hook-based activation checkpointing'"
)
def checkpoints_around_and_within(check: Check) -> None:
    """With a checkpoint around a module under fully_shard or within it, hooks in its backward meet whole weights, and
    the hook of its shard is called once, with the whole gradient."""
    checkpoint = import_module("torch.utils.checkpoint").checkpoint
    with process_group(check):
        for reentrant in (False, True):
            for within in (False, True):
                log: list[Any] = []

                def forward(seen: Any, x: Any, within: bool = within, reentrant: bool = reentrant) -> Any:
                    inner = lambda x: seen(x) ** 2  # noqa: E731 -- what saves a tensor is computed again
                    return checkpoint(inner, x, use_reentrant=reentrant) if within else inner(x)

                module = watched(forward, log)
                root = within_a_root(module)
                noting_the_shard(module, log)
                value = x(1.0, True)
                for _ in range(2):
                    module.w.grad = None
                    (root(value) if within else checkpoint(root, value, use_reentrant=reentrant)).backward()
                name = f"a checkpoint {'within' if within else 'around'}, {'' if reentrant else 'not '}reentrant"
                check.order(name, log, [WHOLE, [6.0]] * 2)  # 2·(w + x)
                check.equal(f"{name}: gradient of x", value.grad, [12.0])


@program("DS-42", PROMISE, since="2.6", source="torch.distributed.algorithms._comm_hooks.default_hooks; pytorch#80557")
def comm_hooks_that_torch_brings(check: Check) -> None:
    """The comm hooks that torch brings for FSDP divide the gradient before and after the reduction as their state says,
    and give it in the dtype of the parameter."""
    with process_group(check):
        hooks = import_module("torch.distributed.algorithms._comm_hooks.default_hooks")
        for name in ("allreduce_hook", "fp16_compress_hook", "bf16_compress_hook"):
            module = scale()
            root = wrapped(module)
            kind = hooks.LowPrecisionState if "compress" in name else hooks.DefaultState
            state = kind(torch.distributed.group.WORLD)
            state.gradient_predivide_factor, state.gradient_postdivide_factor = 2.0, 5.0
            root.register_comm_hook(state, getattr(hooks, name))
            got = check.works(
                name, lambda root=root, module=module: root(torch.tensor([30.0])).backward() or module.w.grad
            )
            if got is not None:
                check.equal(f"{name}: gradient", [_dtype(got), got.item()], ["float32", 3.0])  # 30 / 2 / 5


@program("DS-43", PIN, since="2.0", source="torch.distributed._composable.replicate")
def comm_hooks_under_replicate(check: Check) -> None:
    """Under ``replicate`` a comm hook is called once in each backward that reduces, with all that was added up, and
    what it gives is the gradient; hooks on the module are called in every step."""
    with process_group(check):
        module, log = scale(), []  # type: tuple[Any, list[Any]]
        import_module("torch.distributed._composable.replicate").replicate(module)
        if not hasattr(module, "register_comm_hook"):
            raise NotOffered("this torch registers no comm hook under replicate")

        def tenfold(state, bucket):  # type: ignore[no-untyped-def]  # annotations would have to be torch's
            log.append(bucket.buffer().tolist())
            future: Any = torch.futures.Future()
            future.set_result(bucket.buffer() * 10)
            return future

        module.register_comm_hook(None, tenfold)
        module.register_forward_pre_hook(lambda m, args: log.append("pre"))
        module.register_full_backward_hook(lambda m, gi, go: log.append("back"))
        # 3 is reduced; 4 and 5 are added up and reduced with 6 and with what there is.
        for value, reduces, total in ((3.0, True, 30.0), (4.0, False, 34.0), (5.0, False, 39.0), (6.0, True, 450.0)):
            log.clear()
            module.set_requires_gradient_sync(reduces)
            module(x(value, True)).backward()
            expected = ["pre", "back", [total / 10]] if reduces else ["pre", "back"]
            check.order(f"hooks in the step of {value:g}", sorted(log, key=str), sorted(expected, key=str))
            check.equal(f"gradient after the step of {value:g}", module.w.grad, [total])
