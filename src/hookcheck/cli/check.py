"""Do hooks on one's own model tell the truth? The command ``check``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib import import_module
from typing import Any

import click

from hookcheck.cli.frame import DEVIATES, FINE, command, installed_torch
from hookcheck.cli.output import echo, fields
from hookcheck.errors import HookcheckError

_SCHEMAS = [
    fields(
        what=("string", "verdict"),
        module=("string", "the path of the module; empty for the model itself"),
        call=(
            ["integer", "null"],
            "which call of the module, from 0; null where it is about the module or the step",
        ),
        kind=("string", "the hook kind"),
        clause=("string", "the clause's id; empty where none is judged"),
        verdict=("string", "conforms, deviates: known, deviates: new, not reached, or not judged"),
        gap=("string", "how it deviates; empty where it does not"),
        expected=("string", "what was expected; empty where it does not deviate"),
        observed=("string", "what was seen; empty where it does not deviate"),
        why=("string", "the ledger's reason, or why nothing is judged"),
        link=("string", "what the reason rests on"),
    ),
    fields(
        what=("string", "model"),
        model=("string", "the class of the model"),
        torch=("string", "the version of torch"),
        device=("string", "the device that it ran on"),
        kinds=("array", "the hook kinds that ran"),
        calls=("object", "how often each module was called, by its path"),
        raised=("string", "what the step with your own hooks raises; empty where it does not"),
    ),
    fields(
        what=("string", "seen"),
        kind=("string", "the hook kind"),
        on=("string", "the module, leaf or output"),
        times=("integer", "how often its hook was called"),
        given=("string", "the dtypes and shapes of what it was given, equal calls once"),
    ),
    fields(
        what=("string", "difference"),
        worse=("boolean", "whether it is worse on the later torch"),
        cost=("string", "what it means for who uses the hook; silent: nothing but the numbers shows it"),
        kind=("string", "the hook kind; empty where it is about none"),
        clause=("string", "the clause's id; empty where it is about none"),
        modules=("array", "the paths of the modules, or the names of the leaves"),
        before=("string", "what there is on the earlier torch"),
        after=("string", "what there is on the later one"),
        why=("string", "the ledger's reason"),
        link=("string", "what the reason rests on"),
    ),
    fields(
        what=("string", "remark"),
        topic=("string", "what it is about"),
        text=("string", "a sentence"),
        modules=("array", "the paths of the modules that it is about"),
        kinds=("array", "the hook kinds that it is about"),
    ),
    fields(
        what=("string", "hook"),
        kind=("string", "the hook kind of one of your own hooks"),
        on=("string", "the module, leaf or output that it is on"),
        function=("string", "its function"),
        place=("string", "where it was registered"),
        called=("integer", "how often it was called"),
        due=(["integer", "null"], "how often it must be called; null where that is not known"),
        returned=("integer", "at how many calls it returned something"),
        wrote=("integer", "at how many calls it wrote to a tensor that it was given"),
        changed=("array", "the outputs and gradients that are others by what it returned or wrote"),
        left=("boolean", "whether it was still there at the end"),
        retained=("integer", "how many bytes of what it was given are still there after the step"),
        graph=("boolean", "whether some of that has its graph"),
        received=("string", "what it received, in words"),
    ),
]


@command("check", _SCHEMAS)
@click.argument("target", metavar="MODULE:MAKE")
@click.option("--kinds", multiple=True, help="Only these hook kinds; may be given several times, or with commas.")
@click.option("--contexts", multiple=True, help="Compare what hooks see in these contexts with eager mode.")
@click.option("--hooks", metavar="MODULE:FUNCTION", help="A function that registers your own hooks on the model.")
@click.option("--modules", multiple=True, help="Only modules whose path matches, such as 'encoder.*'.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="Of all random numbers.")
@click.option("--known", is_flag=True, help="End with 1 for deviations that the ledger knows, too.")
@click.option("--torch", "torches", metavar="A,B", help="Run it on two releases: what is otherwise on the second?")
@click.option(
    "--with", "packages", metavar="PACKAGES", default="",
    help="What the model needs beside torch, for --torch: requirements, separated by commas; also '-r FILE'.",
)  # fmt: skip
def check(
    target: str, kinds: tuple[str, ...], contexts: tuple[str, ...], hooks: str | None, modules: tuple[str, ...],
    seed: int, known: bool, torches: str | None, packages: str, shape: str,
) -> int:  # fmt: skip
    """Run a model with each hook kind on each sub-module, and say what the hooks see.

    MODULE:MAKE names a function without arguments, such as package.module:make, that returns (model, args) or
    (model, args, kwargs). Ends with 1 if anything deviates that the ledger does not know, or if your own hooks make the
    step raise.

    With --torch it runs on two releases, and says what is otherwise for hooks on this model; it ends with 1 if anything
    is worse. A release that is not installed here gets an environment of its own, which uv makes and which is removed:
    some minutes, and up to 10 GiB of disk.
    """
    if torches is not None:
        given = {"--kinds": kinds, "--contexts": contexts, "--modules": modules, "--hooks": [hooks] if hooks else []}
        options = [word for name, values in given.items() for value in values for word in (name, value)]
        return _across(target, torches, packages, [*options, "--seed", str(seed)], shape)
    if packages:
        raise HookcheckError("--with is for the environments of --torch: name two releases, or leave it out")
    installed_torch()
    from hookcheck.models.check import check_module
    from hookcheck.models.parametrize import call_make
    from hookcheck.models.result import KNOWN, NEW

    model, args, kwargs = call_make(_named(target))
    with _bar() as progress:
        result = check_module(
            model, args, kwargs,
            kinds=_listed(kinds) or None, contexts=_listed(contexts) or ("eager",), modules=modules or "*", seed=seed,
            hooks=_named(hooks, "registers hooks on the model that it is given") if hooks else None, progress=progress,
        )  # fmt: skip
    if shape == "json":
        about = {name: getattr(result, name) for name in ("model", "torch", "device", "kinds", "calls", "raised")}
        echo(json.dumps({"what": "model", **about}))
        for seen in result.seen:
            echo(json.dumps({"what": "seen", **asdict(seen)}))
        for verdict in result.judged:
            echo(json.dumps({"what": "verdict", **asdict(verdict)}))
        for remark in result.remarks:
            echo(json.dumps({"what": "remark", **asdict(remark)}))
        for hook in result.hooks:
            row = {name: value for name, value in asdict(hook).items() if name != "judged"}
            echo(json.dumps({"what": "hook", **row, "received": hook.received}))
    else:
        echo(str(result))
    wrong = {NEW, KNOWN} if known else {NEW}
    deviates = any(verdict.verdict in wrong for verdict in result.judged)
    return DEVIATES if deviates or result.raised else FINE


def _across(target: str, torches: str, packages: str, options: list[str], shape: str) -> int:
    from hookcheck.models.across import across

    names = [name.strip() for name in torches.split(",") if name.strip()]
    comparison = across(
        target, names, requirements(packages), options, lambda text: echo(f"hookcheck: {text}", err=True)
    )
    if shape == "json":
        for difference in comparison.differences:
            echo(json.dumps({"what": "difference", **asdict(difference)}))
    else:
        echo(str(comparison))
    return DEVIATES if comparison.worse else FINE


def requirements(packages: str) -> list[str]:
    """The words of ``--with`` for pip and uv.

    >>> requirements("numpy<2, -r more.txt")
    ['numpy<2', '-r', 'more.txt']
    """
    parts = [part.strip() for part in packages.split(",") if part.strip()]
    return [word for part in parts for word in (("-r", part[2:].strip()) if part.startswith("-r") else (part,))]


def _listed(given: tuple[str, ...]) -> list[str]:
    return [name.strip() for part in given for name in part.split(",")]


def parted(target: str) -> tuple[str, str]:
    """The module and the function that ``target`` names.

    Raises:
        HookcheckError: it is no MODULE:FUNCTION.
    """
    name, colon, attribute = target.partition(":")
    if not name or not colon or not attribute:
        raise HookcheckError(f"{target!r} is not MODULE:FUNCTION; write as package.module:make")
    return name, attribute


def _named(target: str, use: str = "returns (model, args)") -> Callable[..., Any]:
    """The function of that name; modules of the working directory are found as ``python -m`` finds them."""
    name, attribute = parted(target)
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        module = import_module(name)
    except Exception as error:
        said = " ".join(str(error).split())
        hint = "; write it as package.module, without the path to its file" if "/" in name or "\\" in name else ""
        raise HookcheckError(f"{name} cannot be imported: {type(error).__name__}: {said}{hint}") from error
    make: Any = getattr(module, attribute, None)
    if not callable(make):
        raise HookcheckError(f"{name} has no function {attribute}; write one that {use}")
    return make  # type: ignore[no-any-return]


@contextmanager
def _bar() -> Iterator[Callable[[int, int, str], None] | None]:
    """What shows how far a check is, on a terminal; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("checking")
        yield lambda done, total, what: bar.update(task, completed=done, total=total, description=what)
