"""Are the tables of the scan true of the torch that is installed?"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from packaging.version import Version
from torch import nn

from hookcheck.scan.apis import FUNCTIONS, METHODS, MODULE, NODE, OPTIMIZER, TENSOR, Api
from hookcheck.scan.private import PRIVATE
from hookcheck.scan.releases import MINORS, allowed, below

NOW = Version(torch.__version__.split("+")[0])
GRAPH = getattr(torch.autograd, "graph", None)  # came with 1.10, and its Node with 2.0
OWNERS = {
    MODULE: nn.Module,
    TENSOR: torch.Tensor,
    NODE: getattr(GRAPH, "Node", type(torch.ones(1, requires_grad=True).sum().grad_fn)),
    OPTIMIZER: torch.optim.Optimizer,
}
HOMES = (torch.nn.modules.module, sys.modules["torch.optim.optimizer"], GRAPH)
APIS = [api for apis in METHODS.values() for api in apis] + list(FUNCTIONS.values())


def function(api: Api) -> Any:
    """What torch has of that name; None if it has none."""
    if api.owner:
        return getattr(OWNERS[api.owner], api.name, None)
    return next((getattr(home, api.name) for home in HOMES if hasattr(home, api.name)), None)


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.kind)
def test_torch_has_what_the_table_says_since_when_it_says(api: Api) -> None:
    there = function(api)
    assert (there is not None) == (Version(api.since) <= NOW)
    assert api.since in MINORS
    if there is not None and inspect.isfunction(there) and api.owner != NODE:
        parameters = set(inspect.signature(there).parameters)
        for keyword, since in api.keywords.items():
            assert (keyword in parameters) == (Version(since) <= NOW), keyword
        for keyword in parameters & {"prepend", "with_kwargs", "always_call", "with_module", "mode"}:
            assert keyword in api.keywords


def test_private_names_are_there() -> None:
    parts = [nn.Linear(2, 2), torch.ones(2), torch.optim.SGD([torch.ones(2)], lr=1.0), *HOMES]
    there = {name: any(hasattr(part, name) for part in parts) for name in PRIVATE}
    assert [name for name, (since, _, _) in PRIVATE.items() if Version(since) <= NOW and not there[name]] == []
    assert all(since in MINORS for since, _, _ in PRIVATE.values())


def seen(register: Callable[..., Any], act: Callable[[], Any], **options: Any) -> int:
    """With how many arguments torch calls a hook."""
    counts: list[int] = []
    handle = register(lambda *args: counts.append(len(args)), **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        act()
    if handle is not None:
        handle.remove()
    return counts[0]


def test_torch_calls_hooks_with_as_many_arguments_as_the_table_says() -> None:
    counted: dict[str, int] = {}
    apis = [api for api in APIS if api.owner and api.arguments is not None and Version(api.since) <= NOW]
    for api in apis:
        if api.owner == MODULE:
            layer = nn.Linear(2, 2)

            def act(layer: nn.Module = layer) -> None:
                layer(torch.ones(2, 2, requires_grad=True)).sum().backward()
                layer.load_state_dict(layer.state_dict())

            counted[api.kind] = seen(getattr(layer, api.name), act)
            for option in {"with_kwargs", "with_module"} & set(api.keywords):
                if Version(api.keywords[option]) > NOW:
                    continue
                assert seen(getattr(layer, api.name), act, **{option: True}) == api.arguments + 1
        elif api.owner == OPTIMIZER:
            optimizer = torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=1.0)

            def step(optimizer: torch.optim.Optimizer = optimizer) -> None:
                optimizer.step()
                optimizer.load_state_dict(optimizer.state_dict())

            counted[api.kind] = seen(getattr(optimizer, api.name), step)
        elif api.owner in (TENSOR, NODE):
            leaf = torch.ones(2, requires_grad=True)
            loss = (leaf * 2).sum()
            on = loss.grad_fn if api.owner == NODE else leaf
            counted[api.kind] = seen(getattr(on, api.name), loss.backward)
    assert counted == {api.kind: api.arguments for api in apis}


def test_releases_that_a_specifier_allows() -> None:
    assert allowed(">=2.4,<2.16")[0] == "2.4"
    assert allowed("==2.1.2") == ("2.1",)
    assert below("2.0", allowed(">=1.13")) == ("1.13",)
    assert below("2.10", ("2.9", "2.10")) == ("2.9",)
