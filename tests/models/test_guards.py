"""Does the pytest plugin find what it is there for, leave the rest alone, and cost other suites nothing?"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from typing import Any

import pytest
import torch  # here, since pytester drops what a test has imported, and torch does not survive that

pytest_plugins = ["pytester"]

HEAD = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x):
        return self.b(self.a(x))

net = Net()

def look(*arguments):
    return None
"""
SHARED = "    net.a.register_forward_hook(look)\n"


def run(pytester: pytest.Pytester, body: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(HEAD + body)
    arguments = ("-p", "hookcheck.models.guards") if "hookcheck.models.guards" not in _installed() else ()
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:xdist", *arguments, *options)


def _installed() -> set[str]:
    plugins: Any = entry_points(group="pytest11") if sys.version_info >= (3, 10) else entry_points().get("pytest11", ())
    return {entry.value for entry in plugins}


LEFT = [
    ("net.a.register_forward_hook(look)", "forward hook test_*look on a (Linear) of Net, registered at *.py:{line}"),
    ("net.register_backward_hook(look)", " backward hook *.py:{line}"),
    ("net.a.weight.register_hook(look)", "tensor hook test_*look on a.weight of Net, registered at *.py:{line}"),
    ("net._register_state_dict_hook(look)", "state_dict hook *on Net, registered at *.py:{line}"),
    ("nn.modules.module.register_module_forward_hook(look)", "global_forward hook *on all of *.py:{line}"),
    ("net._forward_hooks['mine'] = look", "forward hook *look on Net, registered at an unknown place*"),
]
"""What a test leaves, and what is said of it."""

if hasattr(torch.nn.Module, "register_full_backward_hook"):
    LEFT.append(("net.a.register_full_backward_hook(look)", "full_backward hook *"))
if hasattr(torch.nn.Module, "register_load_state_dict_post_hook"):
    LEFT.append(("net.register_load_state_dict_post_hook(look)", "load_state_dict_post *"))
if hasattr(torch._C._autograd, "_top_saved_tensors_default_hooks"):  # a torch that tells its pairs
    LEFT.append(("step.register_step_post_hook(look)", "optimizer_step_post hook *on an optimizer (SGD), *"))
    LEFT.append(
        ("torch.autograd.graph.saved_tensors_hooks(look, look).__enter__()", "saved_tensors hook *this thread, *")
    )


@pytest.mark.slow
def test_what_is_left_is_named_with_its_place(pytester: pytest.Pytester) -> None:
    """One test leaves one thing; all in one process, which takes seconds to start."""
    body, expected = "\nstep = torch.optim.SGD(net.parameters(), 0.1)\n", []
    for number, (act, message) in enumerate(LEFT):
        body += f"\ndef test_{number}(no_hooks_left):\n    {act}\n"
        line = (HEAD + body).strip().count("\n") + 1
        expected += [f"*ERROR at teardown of test_{number} *", f"*{message.format(line=line)}"]
    result = run(pytester, body)
    result.assert_outcomes(passed=len(LEFT), errors=len(LEFT))
    result.stdout.fnmatch_lines(expected)


REMOVED = """
net.register_forward_hook(look)

def test_removed(no_hooks_left):
    net.a.register_forward_hook(look).remove()

def test_gone(no_hooks_left):
    Net().register_forward_hook(look)

def test_at_once(no_hooks_left):
    mine = Net()
    mine.register_forward_hook(look)
    no_hooks_left()
"""
"""What is removed or gone is no leftover, nor what was there before; and what is asked at once."""

TRACED = """
def test_it(no_hooks_left):
    begin = torch.utils.hooks.RemovableHandle.next_id
    handle = net.a.register_forward_hook(lambda module, args, out: 2 * out)
    assert handle.id == begin and [*net.a._forward_hooks] == [begin]
    x = torch.ones(1, 2)
    assert torch.equal(net.a(x), 2 * net.a.forward(x))
    handle.remove()

def test_untraced():
    assert torch.utils.hooks.RemovableHandle.__init__.__module__ == "torch.utils.hooks"
"""
"""Hooks work as ever while they are traced."""

FIRING = """
import pytest

def check(assert_fires, *arguments, **options):
    with assert_fires(net, *arguments, **options) as fired:
        net(torch.ones(1, 2, requires_grad=True)).sum().backward()
    return fired

def test_right(assert_fires):
    assert check(assert_fires, "forward", times=1) == ["a", "b", ""]
    check(assert_fires, "forward_pre", times={"a": 1}, order=["", "a", "b"])
    check(assert_fires, "backward", order=["b", "a"])
    check(assert_fires, "global_forward")
    check(assert_fires, "tensor", times=1)
    check(assert_fires, "output_tensor", times=1)
    check(assert_fires, "output_node", times={"a": 1})
    assert not net.a._forward_hooks and not net.a._backward_hooks
    assert getattr(net.a, "_is_full_backward_hook", None) is None

@pytest.mark.parametrize(("options", "message"), [
    ({"times": 2}, "'a' fired once, not 2 times"),
    ({"times": {"b": 0}}, "'b' fired once, not 0 times"),
    ({"order": ["b", "a"]}, "the order was 'a' > 'b', not 'b' > 'a'"),
])
def test_wrong(assert_fires, options, message):
    with pytest.raises(AssertionError) as caught:
        check(assert_fires, "forward", **options)
    assert message in str(caught.value)

def test_never(assert_fires):
    with pytest.raises(AssertionError, match="'b' never fired"):
        with assert_fires(net, "forward"):
            net.a(torch.ones(1, 2))

def test_an_exception_goes_on(assert_fires):
    with pytest.raises(ZeroDivisionError):
        with assert_fires(net, "forward"):
            1 / 0
    assert not net._forward_hooks

@pytest.mark.parametrize(("arguments", "message"), [
    ((net, "sideways"), "unknown hook kind"),
    ((net, "saved_tensors"), "have no path"),
    ((3, "forward"), "needs an nn.Module, not int"),
    ((nn.DataParallel(net), "forward"), "pass model.module"),
    ((torch.jit.script(nn.Linear(1, 1)), "forward"), "before torch.jit"),
    ((net, "forward", {"c": 1}), "'c' is no path"),
])
def test_bad_input(assert_fires, arguments, message):
    from hookcheck.errors import HookcheckError
    with pytest.raises(HookcheckError, match=message):
        with assert_fires(*arguments):
            pass
"""
"""What is asserted of firing, right and wrong."""


@pytest.mark.slow
def test_what_is_sound_passes(pytester: pytest.Pytester) -> None:
    """Removed hooks, hooks that are traced, and firing: each a file of one suite, which takes seconds to start."""
    pytester.makepyfile(test_removed=HEAD + REMOVED, test_traced=HEAD + TRACED)
    result = run(pytester, FIRING)
    result.assert_outcomes(passed=2 + 2 + 12, failed=1)
    result.stdout.fnmatch_lines(["*a hook was left:*", "*forward hook *look on Net, registered at *"])


@pytest.mark.slow
def test_a_whole_suite_is_guarded(pytester: pytest.Pytester) -> None:
    body = f"\ndef test_leaves():\n{SHARED}\ndef test_clean():\n    pass\n"
    for options in (("--hookcheck-guard",), ("-o", "hookcheck_guard=true")):
        run(pytester, body, *options).assert_outcomes(passed=2, errors=1)
    run(pytester, body).assert_outcomes(passed=2)


def test_other_suites_pay_nothing() -> None:
    """In a process that has pytest: less than 20 ms, and no torch."""
    code = (
        "import time, sys, pytest; import hookcheck; t = time.perf_counter(); import hookcheck.models.guards; "
        "print(time.perf_counter() - t, 'torch' in sys.modules, 'numpy' in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    seen = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
            for _ in range(3)]  # fmt: skip
    times, *imported = zip(*(done.stdout.split() for done in seen))
    assert set(imported[0]) | set(imported[1]) == {"False"}
    assert min(map(float, times)) < 0.02
