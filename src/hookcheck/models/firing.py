"""Which hooks of one kind fire on a model, how often and in which order: an assertion about the code inside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Union

from hookcheck.errors import HookcheckError
from hookcheck.hooks.kinds import KINDS, OUTPUT, HookKind, kind_named
from hookcheck.probe.lazy import nn, torch

Times = Union[int, Mapping[str, int], None]
Note = Callable[[str], None]
SCOPES = ("module", "global", "leaf", "output", "node")


@contextmanager
def assert_fires(model: Any, kind: str, times: Times = None, order: Sequence[str] | None = None) -> Iterator[list[str]]:
    """Within it hooks of ``kind`` (a name of `hookcheck.hooks.kinds.KINDS`) are on ``model``; at its end they have
    fired as said. It gives the list of the paths on which they fired so far.

    Paths are those of ``named_modules``, the model's is ``""``; for kinds on leaves those of ``named_parameters``.
    ``times`` is how often on each path that it names, or one number for every path; without it, and without ``order``,
    every path must fire at least once. ``order`` is the sequence of paths in which those that it names must fire,
    nothing left out. All hooks are removed at the end, also after an exception, which then goes on.

    Raises:
        AssertionError: they fired otherwise; every path that did is named.
        HookcheckError: the kind is unknown, on this torch not there, or not of use here; no such model or path.
    """
    hook = _usable(kind)
    modules, names = _modules(model), _paths(model, hook)
    asked = [*times] if isinstance(times, Mapping) else []
    chosen = list(dict.fromkeys([*asked, *(order or ())])) if asked or order else names
    for path in chosen:
        if path not in names:
            raise HookcheckError(
                f"{path!r} is no path for hooks of kind {kind}; choose from {', '.join(map(repr, names))}"
            )
    fired: list[str] = []
    with _registered(hook, model, modules, chosen, fired.append):
        yield fired
    wrong = [*_miscounted(fired, chosen, times, bool(order)), *_misordered(fired, order)]
    assert not wrong, f"{kind} hooks on {type(model).__name__}:\n" + "\n".join(f"  {line}" for line in wrong)


def _usable(kind: str) -> HookKind:
    hook = kind_named(kind)
    usable = [name for name, other in KINDS.items() if other.observes and other.scope in SCOPES]
    if kind not in usable:
        raise HookcheckError(f"hooks of kind {kind} have no path of their own; choose from {', '.join(usable)}")
    owner = {"module": nn.Module, "global": nn.modules.module}.get(hook.scope, torch.Tensor)
    if hook.scope != "node" and not hasattr(owner, hook.register):
        raise HookcheckError(f"{hook.register} came with torch {hook.since}; this is {torch.__version__}")
    return hook


def _modules(model: Any) -> dict[str, Any]:
    if not isinstance(model, nn.Module):
        raise HookcheckError(f"assert_fires needs an nn.Module, not {type(model).__name__}: pass the model itself")
    if isinstance(model, nn.DataParallel):
        raise HookcheckError("a DataParallel calls copies of the model: pass model.module, and call that")
    if isinstance(model, torch.jit.ScriptModule):
        raise HookcheckError("a ScriptModule runs its own hooks only: pass the model before torch.jit")
    return dict(model.named_modules())


def _paths(model: Any, hook: HookKind) -> list[str]:
    """Where hooks of the kind can fire: on what has a forward of its own, or on leaves that require grad."""
    if hook.scope == "leaf":
        return [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    containers = (nn.ModuleList, nn.ModuleDict, nn.ParameterList, nn.ParameterDict)
    return [path for path, module in model.named_modules() if not isinstance(module, containers)]


@contextmanager
def _registered(hook: HookKind, model: Any, modules: dict[str, Any], chosen: list[str], note: Note) -> Iterator[None]:
    """Hooks of the kind on what is chosen; afterwards none, and torch's sticky flags of hook families as before."""
    flags = [(module, vars(module).get("_is_full_backward_hook")) for module in modules.values()]
    family = getattr(nn.modules.module, "_global_is_full_backward_hook", None)
    paths = {id(modules[path]): path for path in chosen if path in modules}
    settings = {"with_kwargs": True} if hook.kwargs else {}
    with ExitStack() as stack:

        def add(owner: Any, register: str, call: Callable[..., None], **options: Any) -> None:
            stack.callback(getattr(owner, register)(call, **options).remove)

        def given(module: Any, *arguments: Any) -> None:
            if id(module) in paths:
                note(paths[id(module)])

        def outputs(path: str, module: Any, arguments: Any, output: Any) -> None:
            for tensor in output if isinstance(output, (tuple, list)) else (output,):
                if isinstance(tensor, torch.Tensor) and tensor.grad_fn is not None:
                    add(tensor if hook.call == OUTPUT else tensor.grad_fn, hook.register, partial(_path, note, path))

        if hook.scope == "global":
            add(nn.modules.module, hook.register, given)
        elif hook.scope == "leaf":
            parameters = dict(model.named_parameters())
            for name in chosen:
                add(parameters[name], hook.register, partial(_path, note, name))
        else:
            for path in chosen:
                if hook.scope == "module":
                    add(modules[path], hook.register, partial(_path, note, path), **settings)
                else:
                    add(modules[path], "register_forward_hook", partial(outputs, path))
        try:
            yield
        finally:
            stack.close()
            for module, flag in flags:
                if "_is_full_backward_hook" in vars(module) and module._is_full_backward_hook is not flag:
                    module._is_full_backward_hook = flag
            if hasattr(nn.modules.module, "_global_is_full_backward_hook"):
                nn.modules.module._global_is_full_backward_hook = family


def _path(note: Note, path: str, *arguments: Any) -> None:
    note(path)


def _miscounted(fired: list[str], chosen: list[str], times: Times, ordered: bool) -> Iterator[str]:
    counts = Counter(fired)
    for path in chosen:
        due = times.get(path) if isinstance(times, Mapping) else times
        if due is not None and counts[path] != due:
            yield f"{path!r} fired {_often(counts[path])}, not {_often(due)}"
        elif due is None and not ordered and not counts[path]:
            yield f"{path!r} never fired"


def _misordered(fired: list[str], order: Sequence[str] | None) -> Iterator[str]:
    seen = [path for path in fired if path in (order or ())]
    if order is not None and seen != [*order]:
        yield f"the order was {' > '.join(map(repr, seen)) or 'empty'}, not {' > '.join(map(repr, order))}"


def _often(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
