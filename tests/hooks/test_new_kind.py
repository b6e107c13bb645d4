"""Is one declaration enough for a new hook kind? A throw-away one shows in plan, probe, script and benchmark."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

CHILD = """\
import json, sys
from unittest import mock
import torch
from hookcheck.hooks import kinds
from hookcheck.hooks.kinds import KINDS, HookKind

asked = json.loads(sys.argv[1])
for name, (call, scope, registering, *_) in asked.items():
    KINDS[name] = HookKind(name, call, "", scope, registering, "1.7")

import hookcheck.clauses
from benchmarks import cost
from hookcheck.contract.clause import CLAUSES
from hookcheck.contract.ledger import Ledger
from hookcheck.networks.examine import examine
from hookcheck.repro.choice import chosen, executed
from hookcheck.repro.sighting import sightings
from hookcheck.run.plan import all_kinds
from hookcheck.suite import conformance_folder
from hookcheck.topology.corpus import read

network = read(conformance_folder() / "corpus", "single-node")[0]
cost.NUMBERS = {network: cost.values(network)}

def reported(new, clause, owner, without):
    original = getattr(owner, new.register)
    hooks = []

    def watched(*arguments, **options):
        hooks.append((arguments[-1], options))
        return original(*arguments, **options)

    def dropped(*arguments, **options):
        given = (*arguments[:-1], lambda *_: None) if options == without else arguments
        return original(*given, **options)

    def gaps():
        (result,) = examine(network, "single-node", [new.name], CLAUSES.values(), Ledger(()))
        return result.judged.get(clause, 0), sorted({d.gap for d in result.deviations if d.clause == clause})

    shown = {"planned": new.name in all_kinds(), "spoken of": new.name in CLAUSES[clause].kinds}
    with mock.patch.object(owner, new.register, watched):
        shown["sound"] = gaps()
        shown["probe"] = [options for _, options in hooks]
        hooks.clear()
        with mock.patch.object(cost, "KINDS", {new.name: new}):
            cost.bare((network,), hooked=True)
        shown["benchmark"] = [(hook is cost._empty, options) for hook, options in hooks]
    with mock.patch.object(owner, new.register, dropped):
        shown["faulty"] = gaps()
        text = chosen(sightings(network, "single-node", new, CLAUSES[clause], Ledger(()))[0]).text
        shown["script"] = text
        shown["exit code of the fault"] = executed(text)[0]
    shown["exit code"] = executed(text)[0]
    return shown

shown = {
    name: reported(KINDS[name], clause, eval(owner), without) for name, (*_, clause, owner, without) in asked.items()
}
print(json.dumps(shown))
"""
"""Declares hook kinds before the clauses, and shows where they turn up; the fault calls no hook of that kind."""

NEW: dict[str, tuple[str, str, str, str, str, dict[str, bool]]] = {
    "prepended": (
        *("forward", "module", "module.register_forward_hook(hook, prepend=True)", "FN-01"),
        *("torch.nn.Module", {"prepend": True}),
    ),
    "of a leaf": ("tensor", "leaf", "torch.Tensor.register_hook(leaf, hook)", "TN-01", "torch.Tensor", {}),
}
WRITTEN = {
    "prepended": "net.register_forward_hook(lambda *args: calls.append(1), prepend=True)",
    "of a leaf": "torch.Tensor.register_hook(net.weight, calls.append)",
}


@pytest.mark.slow
def test_one_declaration_is_a_hook_kind() -> None:
    command = [sys.executable, "-c", CHILD, json.dumps(NEW)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    reports: dict[str, dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    for name, report in reports.items():
        options = NEW[name][-1]
        assert report["planned"]
        assert report["spoken of"]
        assert report["sound"] == [1, []]
        assert report["probe"]
        assert all(each == options for each in report["probe"])
        assert report["benchmark"] == [[True, options]] * len(report["probe"])
        assert WRITTEN[name] in report["script"]
        assert report["exit code"] == 0
        assert report["faulty"] == [1, ["not fired"]]
        assert report["exit code of the fault"] == 1
