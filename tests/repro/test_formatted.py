"""Are scripts as a formatter would have them, so that nobody who files one has to touch it?"""

from __future__ import annotations

import shutil
import subprocess

import pytest

from hookcheck.repro.wrapping import WIDTH, wrapped
from hookcheck.repro.writing import joined, spaced

RUFF = shutil.which("ruff")


def formatted(text: str) -> str:
    """The text as ruff has it."""
    assert RUFF is not None
    command = [RUFF, "format", "--isolated", "--line-length", str(WIDTH), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


LONG = {
    "a condition in a comprehension": "dual = (forward_ad.make_dual(argument, torch.ones_like(argument)) if argument."
    "is_floating_point() else argument for argument in arguments)",
    "a condition in brackets": '(torch.vmap(net, randomness="same")(torch.tensor(0)[None])[0] if experiment else '
    "net(torch.tensor(0))).backward()",
    "a call of what a call gives": 'optimizer = import_module("torch.distributed.optim").PostLocalSGDOptimizer('
    "averaging_optimizer, averager)",
    "a fraction": "v = torch.tensor([[[[32, 64, 96], [128, 160, 192]], [[224, 256, 288], [320, 352, 384]]]], "
    "dtype=torch.float64) / 32",
    "a fraction that requires grad": "x = (torch.tensor([[[[32, 64]], [[96, 128]], [[160, 192]]], [[[224, 256]], "
    "[[288, 320]], [[352, 384]]]], dtype=torch.float64) / 32).requires_grad_()",
    "an import in a function": "def f():\n    from torch.nn.utils import prune\n    return prune",
    "an import between statements": "a = 1\nfrom torch.nn.utils import prune\nb = prune(a)",
    "a function in a loop": "for n in (1, 2):\n    def f(n=n):\n        return n\n\n    f()",
    "an argument": "net.register_full_backward_hook(lambda module, grad_input, grad_output: calls.append((module, "
    "grad_input)))",
    "a tuple of tuples": 'for name, factor in (("a first name", 1), ("another name", 2), ("a third name", 3), ("last", '
    "4)):\n    pass",
    "a condition among arguments": 'check("a name", "as the exception says" in str(raised(lambda: root(x(1.0, needs)).'
    'backward())), first_of_all if needs else "another one that is longer, so that it does not fit on the line", True)',
    "a dict": 'f({"a": a, "b": b, "inner": inner, "pair[1]": pair[1], "root": 11 * pair[0] + 13 * pair[1], "more": 1})',
    "a call of what getattr gives": "given = getattr(torch.autograd.functional, name)(module, argument, *vectors, "
    "create_graph=builds)",
    "a sum of conditions": "if first_condition_of_all(argument) and second_condition_of_all(argument) or third_of_all("
    "argument, 1):\n    pass",
}
"""Statements that are too long, or stand too close."""


@pytest.mark.skipif(RUFF is None, reason="there is no ruff")
@pytest.mark.parametrize("name", LONG)
def test_a_statement_is_as_formatters_have_it(name: str) -> None:
    text = f"{wrapped(spaced(joined(LONG[name])))}\n"
    assert text == formatted(text)
