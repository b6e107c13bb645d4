"""What a sound torch does not notice, left out of a script that is too long otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from hookcheck.repro.quieter import uncalled, uncleared, unhooked, unlooked, unneeded, unpaired, untried

REGISTERING = """def hook(module, args):
    return args


check.works("it registers", lambda: net.register_forward_pre_hook(hook))"""


LOOKING = """def f(a):
    seen = []
    for one, other in vars(a).items():
        yield one
        seen.append(one)"""


TRIES = """def f():
    try:
        g()
        return 1
    except Exception:
        return None


f()"""


@pytest.mark.parametrize(
    ("change", "text", "result"),
    [
        (unlooked, "a = f()\nfloat(a[0])\ng(a)", "a = f()\ng(a)"),
        (unlooked, "a = float(f())\ng(a)\na.backward()", None),
        (unlooked, "if a is not None:\n    sorted(a)\nf()", "f()"),
        (unlooked, '"""A title."""\n{"class": type(a), **vars(a)}\n[*a]\ng(a)', '"""A title."""\ng(a)'),
        (unlooked, "[f() for each in a]\ng(a)", None),
        (unlooked, "a * a\ng(a)", None),  # hooks on saved tensors are called
        (unlooked, "def f():\n    yield from a\n\n\ng()", None),
        (unlooked, "def f(a):\n    len(a)\n\n\ng(f)", None),
        (unlooked, "if a:\n    b = len(a)\ng()", "g()"),
        (unlooked, "if f():\n    b = len(a)\ng()", None),
        (unlooked, "if a:\n    b = len(a)\nelse:\n    h()\ng()", None),
        (unlooked, "b = len(a)\ng(b)", None),
        (unlooked, "b = len(a)\nc = [b]\ng()", "g()"),
        (unlooked, f"{LOOKING}\n\n\nb = {{*f(a)}}\ng()", f"{LOOKING}\n\n\ng()"),
        (unlooked, f"{LOOKING.replace('[]', 'a')}\n\n\nb = {{*f(a)}}\ng()", None),
        (unlooked, f"{LOOKING.replace('other', 'a.b')}\n\n\nb = {{*f(a)}}\ng()", None),
        (unlooked, f"{LOOKING.replace('vars', 'next')}\n\n\nb = {{*f(a)}}\ng()", None),
        (unhooked, "net.register_forward_hook(lambda *args: None)\ng()", "g()"),
        (unhooked, "net.register_forward_hook(lambda *args: 1)\ng()", None),
        (unhooked, "handle = net.register_forward_hook(lambda *args: None)", None),
        (unhooked, 'check.works("a", lambda: net.register_forward_hook(lambda *args: None))', None),
        (unneeded, "net = nn.Linear(1, 1)\nnet.a, net.b = a, b\nnet.register_forward_hook(f)\ng(a)", "g(a)"),
        (unneeded, "net = nn.Linear(1, 1)\nnet.register_forward_hook(f)\nnet(a)", None),
        (unneeded, "net = nn.Linear(1, 1)\nh = net.register_forward_hook(f)\ng(h)", None),
        (unneeded, "net = nn.Linear(1, 1)\nadd(net.register_forward_hook(f))\ng(a)", None),
        (unneeded, "net = nn.Linear(1, 1)\nnet.a = a\ng(a)", None),  # nothing of hooks
        (unneeded, "a = f()\na.register_hook(g)\nb.backward()", None),  # a may be a part of its graph
        (uncleared, "if a:\n    b = []\n    b.clear()\n    c()", "if a:\n    b = []\n    c()"),
        (uncalled, REGISTERING, REGISTERING.partition("\n\n\n")[2].replace("(hook)", "(lambda *args: None)")),
        (uncalled, f"{REGISTERING}\nnet(1)", None),  # that calls it
        (uncalled, REGISTERING.replace("(hook)", "(hook, hook)"), None),
        (unpaired, "def r():\n    a, b = f(1), g(2)\n    h(b)", "def r():\n    a = f(1)\n    b = g(2)\n    h(b)"),
        (unpaired, "a, b = f(1), g(2)\nh(b)", "a = f(1)\nb = g(2)\nh(b)"),
        (unpaired, "a, b = b, a", None),
        (unpaired, "a, b = f()", None),
        (untried, TRIES, "def f():\n    g()\n    return 1\n\n\nf()"),
        (untried, TRIES.replace("except Exception", "finally"), None),
        (
            untried,
            TRIES.replace("None", '"refused"') + '\ng("no")',
            'def f():\n    g()\n    return 1\n\n\nf()\ng("no")',
        ),
        (untried, TRIES.replace("None", '"refused"') + '\ng("refused")', None),  # a sound torch may refuse
    ],
)
def test_what_may_go_goes(change: Any, text: str, result: str | None) -> None:
    assert change(text) == result
