"""Do the clauses on hosts know every table of hooks that this torch has, and every option of a hook?"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable
from itertools import chain
from typing import Any

import pytest
from torch import nn

from hookcheck.programs.chapters.hosts import convert, in_two_ways, is_hook_table, registered
from hookcheck.programs.host_changes import GROUPS, options_of
from hookcheck.programs.host_makes import Host

NAMES = [name for name in chain(*GROUPS.values()) if hasattr(nn.Module, name)]
WAYS = [(name, option) for name in NAMES for option in options_of(name)]

ELSEWHERE = {
    "register_backward_hook": "it excludes register_full_backward_hook, which has the same table",
    "register_module_full_backward_hook": "it is about all modules",
}


@pytest.mark.parametrize("error", [AttributeError("'Conv2d' has no '_forward_hooks'"), RuntimeError("no memory")])
def test_an_accident_is_no_refusal(error: Exception) -> None:
    with pytest.raises(type(error)):
        convert(Host(raising(error)), nn.Linear(1, 1))


def test_a_refusal_speaks_of_hooks() -> None:
    assert convert(Host(raising(NotImplementedError("hooks are not supported"))), nn.Linear(1, 1)) is None


def raising(error: Exception) -> Callable[[Any], Any]:
    def make(_: Any) -> Any:
        raise error

    return make


def hook_attributes(module: Any) -> dict[str, Any]:
    """What a module holds about hooks, by name."""
    return {name: value for name, value in vars(module).items() if "hook" in name and isinstance(value, dict)}


def test_every_method_that_registers_hooks_is_in_a_group() -> None:
    methods = {name for name in dir(nn.Module) if re.fullmatch("_?register_.*_hook", name)}
    assert methods == {*NAMES, *(methods & {*ELSEWHERE})}


def test_every_table_of_a_module_is_filled_by_some_way() -> None:
    filled = set[str]()
    for name, option in [*((name, "") for name in NAMES), *WAYS]:
        module = nn.Linear(1, 1)
        getattr(module, name)(lambda *_: None, **({option: True} if option else {}))
        filled |= {table for table, hooks in hook_attributes(module).items() if hooks}
    assert filled == {*hook_attributes(nn.Linear(1, 1))}


def test_every_table_holds_hooks_or_says_how_they_are_registered() -> None:
    module = nn.Linear(1, 1)
    holding = {name for name, value in vars(module).items() if is_hook_table(name, value)}
    for name in hook_attributes(module):
        assert name in holding or any(name.startswith(f"{table}_") for table in holding)


@pytest.mark.parametrize(("name", "option"), WAYS)
def test_every_option_shows_in_how_a_hook_is_held(name: str, option: str) -> None:
    module = nn.Linear(1, 1)
    words = in_two_ways(module, name, option, [])
    plain, other = sorted(registered(module, words), key=lambda how: not how.startswith("plain"))
    assert "with [] after" in plain
    assert "after []" in other if option == "prepend" else "with []" not in other


def test_a_hook_of_another_table_is_held_otherwise() -> None:
    module = nn.Linear(1, 1)
    words = in_two_ways(module, "register_forward_hook", "with_kwargs", [])
    before = {*registered(module, words)}
    module._forward_pre_hooks, module._forward_hooks = module._forward_hooks, OrderedDict()
    assert not before & {*registered(module, words)}
