"""Faults in how forward pre-hooks are called."""

from __future__ import annotations

from ..engine import Fault
from ..registering import call, every_second, local, silenced

FAULTS = (
    Fault(
        "a forward pre-hook is called every second time",
        lambda: local("forward_pre_hook", every_second),
        ("FW-01", "CP-07"),
    ),
    Fault(
        "a forward pre-hook gets its arguments in a list",
        lambda: call(("args_result = hook(self, args)", "args_result = hook(self, list(args))")),
        ("FW-02", "FW-04", "GL-01"),
        since="2.1",
    ),
    Fault(
        "a forward pre-hook costs the keyword arguments",
        lambda: call(("args = args_result", "args, kwargs = args_result, {}")),
        ("FW-03", "FW-07"),
        since="2.1",
    ),
    Fault(
        "a forward pre-hook's result is ignored",
        lambda: local("forward_pre_hook", silenced),
        ("FW-04", "FW-05", "FW-07", "FW-15", "FW-19", "FW-21"),
    ),
    Fault(
        "a forward pre-hook that returns an empty tuple counts as one that returns None",
        lambda: call(("if args_result is not None:", "if args_result is not None and args_result != ():")),
        ("FW-04", "GL-01"),
        since="2.1",
    ),
    Fault(
        "a forward pre-hook's list is taken apart into arguments",
        lambda: call(("(args_result,)", "tuple(args_result) if isinstance(args_result, list) else (args_result,)")),
        ("FW-05", "GL-01"),
        since="2.1",
    ),
    Fault(
        "a forward pre-hook's 0 and False count as None",
        lambda: call(
            ("if args_result is not None:", "if args_result is not None and type(args_result) not in (int, bool):")
        ),
        ("FW-05", "GL-01"),
        since="2.1",
    ),
    Fault(
        "a forward pre-hook with_kwargs gets no keyword arguments",
        lambda: call(("hook(self, args, kwargs)  #", "hook(self, args, {})  #")),
        ("FW-06", "FW-07"),
        since="2.1",
    ),
    Fault(
        "a forward pre-hook's keyword arguments are ignored",
        lambda: call(("args, kwargs = args_kwargs_result", "args, _ = args_kwargs_result")),
        ("FW-07",),
        since="2.1",
    ),
    Fault(
        "a forward pre-hook with_kwargs may return a list of two",
        lambda: call(("isinstance(args_kwargs_result, tuple) and", "")),
        ("FW-07",),
        since="2.1",
    ),
    Fault(
        "a forward pre-hook's named tuple is one argument",
        lambda: call(("if not isinstance(args_result, tuple):", "if type(args_result) is not tuple:")),
        ("FW-04",),
        since="2.1",
    ),
)
