"""Which choices do not go together, and why? One table, by which situations are drawn and left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hookcheck.programs.situations.acts import AROUND, CHANGING, GRADLESS, REMOVING, Situation
from hookcheck.programs.situations.sites import SITES, HookSite, Release

LATER: dict[str, Release] = {
    "assign": (2, 1), "grad": (2, 0), "inputs": (1, 8),
    "functional_call": (2, 0), "checkpoint": (2, 1), "inference_mode": (1, 9),
}  # fmt: skip
"""Choices that not every release has; before 2.0 hooks on leaves were not called in autograd.grad."""

SAVING = ("saved_tensors_hooks", "save_on_cpu", "no new saved tensors hooks")
COPYING = ("deepcopy", "pickle", "deepcopy with handles", "pickle with handles", "shallow copy")
WRITING = ("set_", "write to what is saved")
LEAVES = ("x", "w", "multi", "any")
"""The lanes of hooks that a backward calls at its leaves."""
OTHER_NODES = ("set_", "double and back", "share memory", "apply")


@dataclass(frozen=True)
class Reason:
    """Why the choices of a situation do not go together, where it ``holds``."""

    why: str
    holds: Callable[[Situation], bool]


def _sites(situation: Situation) -> list[HookSite]:
    return [SITES[name] for name in (situation.site, situation.partner) if name]


def _saved(situation: Situation) -> bool:
    return any(site.table in ("pack", "unpack") for site in _sites(situation))


def _on_parameter(situation: Situation) -> bool:
    return any("leaf(net)" in site.register for site in _sites(situation))


def _table(situation: Situation, *tables: str) -> bool:
    return any(site.table in tables for site in _sites(situation))


def _loses_keywords(situation: Situation) -> bool:
    """Whether a hook with keyword arguments may go in a call that has it still to come: ``b`` comes after ``a`` unless
    it is the first."""
    if _removes_partner(situation):
        return SITES[situation.partner].kwargs
    to_come = "another removes it" if situation.first else "removes another"
    return SITES[situation.site].kwargs and situation.trouble == to_come


def _in_no_order(situation: Situation) -> bool:
    """Whether a hook removes its partner in a backward of which nothing says which of the two comes first.

    Hooks at the leaves are called after those at the output of the module that the leaves go into. Two leaves come in
    any order, and a parameter comes before or after what the module hands to its input. A call has the hooks of its
    backward already, whatever goes meanwhile.
    """
    if not _removes_partner(situation):
        return False
    site, lane = SITES[situation.site], SITES[situation.partner].lane
    apart = site.lane in LEAVES and site.lane != lane
    return lane in LEAVES and (apart or (site.table == "full_backward" and lane != "x"))


def _removes_partner(situation: Situation) -> bool:
    return situation.trouble == "removes its partner" and bool(situation.partner)


REASONS = (
    Reason(
        "legacy and full backward hooks exclude each other",
        lambda s: any(site.legacy for site in _sites(s)) and any(site.full for site in _sites(s)),
    ),
    Reason(
        "there is no output to hang a neighbour on before the call",
        lambda s: bool(s.partner) and SITES[s.partner].graph,
    ),
    Reason("there is no partner to remove", lambda s: s.trouble == "removes its partner" and not s.partner),
    Reason("two sites are two", lambda s: s.site == s.partner),
    Reason("a hook cannot be put first there", lambda s: s.first and SITES[s.site].prepends is None),
    Reason(
        "a call that raises gives no output to hang a hook on",
        lambda s: SITES[s.site].graph and s.trouble.startswith("the body"),
    ),
    Reason(
        "contexts of saved tensors hide those around them",
        lambda s: _saved(s) and (s.outer in SAVING or s.inner in SAVING),
    ),
    Reason(
        "contexts of saved tensors hide each other",
        lambda s: s.outer in SAVING and s.inner in SAVING,
    ),
    Reason(
        "a normed weight holds a graph, and all that was saved in it",
        lambda s: _saved(s) and s.host == "weight_norm",
    ),
    Reason(
        "of two contexts of saved tensors one is on top",
        lambda s: {site.table for site in _sites(s)} == {"pack", "unpack"},
    ),
    Reason(
        "a context is closed where it was opened",
        lambda s: (
            (SITES[s.site].table in ("pack", "unpack") and s.trouble in CHANGING) or (_removes_partner(s) and _saved(s))
        ),
    ),
    Reason(
        "a context that is opened is no handle",
        lambda s: SITES[s.site].table in ("pack", "unpack") and s.removal == "copied handle",
    ),
    Reason(
        "a context that is opened later is closed before",
        lambda s: SITES[s.site].table in ("pack", "unpack") and s.between == "add",
    ),
    Reason("a context within itself is the same", lambda s: bool(s.outer) and s.outer == s.inner),
    Reason(
        "a hook that goes in a call may lose its keyword arguments in it",
        _loses_keywords,
    ),
    Reason(
        "a hook that calls the net would be called in that call, and one that raises is spoken of by itself",
        lambda s: s.trouble in REMOVING and s.removal in AROUND,
    ),
    Reason(
        "FW-24 speaks of it",
        lambda s: any(site.always for site in _sites(s)) and "interrupts" in s.trouble,
    ),
    Reason(
        "a copy has parameters of its own, whose hooks stay with the original (U-13)",
        lambda s: _on_parameter(s) and s.before in COPYING,
    ),
    Reason(
        "hooks stay with a parameter that is replaced (PH-08)",
        lambda s: _on_parameter(s) and ("assign" in (s.before, s.between) or s.between == "drop"),
    ),
    Reason(
        "Nodes that accumulate go with the data that is replaced (AG-04)",
        lambda s: (
            any("accumulator" in site.register for site in _sites(s))
            and (s.before in OTHER_NODES or s.between in ("set_", "cast"))
        ),
    ),
    Reason(
        "assigning registers every parameter and buffer once more",
        lambda s: _table(s, "parameter registration", "buffer registration") and "assign" in (s.before, s.between),
    ),
    Reason(
        "a legacy hook holds its module weakly, and raises once that is gone (pytorch#109778)",
        lambda s: any(site.legacy for site in _sites(s)) and s.between == "drop",
    ),
    Reason(
        "making a net registers its parts and parameters",
        lambda s: any(site.lane == "registration" for site in _sites(s)) and s.between == "drop",
    ),
    Reason(
        "what is to come in a backward calls a hook that is registered in it",
        lambda s: SITES[s.site].table == "any" and s.trouble == "registers another",
    ),
    Reason(
        "a parameter that is not initialised takes no hook",
        lambda s: s.host == "lazy" and _on_parameter(s),
    ),
    Reason(
        "little can be done to parameters that are not initialised",
        lambda s: s.host == "lazy" and s.before not in ("", "collect", "eval", "half a call"),
    ),
    Reason(
        "fused optimizers refused what is not initialised until 2.5",
        lambda s: s.host == "lazy" and s.optimizer == "fused",
    ),
    Reason(
        "a dispatch mode refused what makes a subclass until 2.5",
        lambda s: s.input in ("plain subclass", "with its own functions") and "dispatch mode" in (s.outer, s.inner),
    ),
    Reason(
        "a parametrised module cannot be pickled",
        lambda s: s.host == "parametrized" and s.before.startswith("pickle"),
    ),
    Reason(
        "SZ-26 speaks of it",
        lambda s: s.host in ("weight_norm", "pruned") and (s.before in COPYING or s.between == "copy"),
    ),
    Reason(
        "parameters that were replaced or frozen have no part in the graph",
        lambda s: (
            s.between in ("assign", "drop", "freeze", "thaw", "cast", "set_") and s.backward in ("grad", "inputs")
        ),
    ),
    Reason(
        "whether a hook after accumulation is called where nothing is accumulated, is nowhere said",
        lambda s: s.between == "freeze" and _table(s, "accumulated w"),
    ),
    Reason(
        "what hooks on saved tensors hold is not checked for what was written to",
        lambda s: s.between in WRITING and (_saved(s) or s.outer in SAVING[:2] or s.inner in SAVING[:2]),
    ),
    Reason(
        "what is written to saves something itself on some releases",
        lambda s: s.between == "double the output" and _saved(s),
    ),
    Reason(
        "the Node of the output is the one that raises",
        lambda s: s.between == "set_" and _table(s, "node y"),
    ),
    Reason(
        "a legacy hook belongs to one Node of its module, before or after the one that raises (P2-11)",
        lambda s: s.between in WRITING and any(site.legacy for site in _sites(s)),
    ),
    Reason(
        "what is written to through a view has another Node than the view had",
        lambda s: (
            s.between == "double the output"
            and s.input in ("plain subclass", "with its own functions")
            and (_table(s, "node y", "node_pre y") or any(site.legacy for site in _sites(s)))
        ),
    ),
    Reason(
        "a parameter that is frozen takes no hook",
        lambda s: s.between == "freeze" and s.trouble == "registers another" and "leaf(net)" in SITES[s.site].register,
    ),
    Reason(
        "a parameter that is not initialised cannot be frozen",
        lambda s: s.between == "thaw" and s.host == "lazy",
    ),
    Reason(
        "the backward of a norm needs the parameter itself, which was cast",
        lambda s: s.between == "cast" and s.host == "weight_norm",
    ),
    Reason(
        "what a full hook is around must not be written to, also through an alias (BW-12)",
        lambda s: (
            s.between in ("write to output", "double the output", "write to what is saved")
            and any(site.full for site in _sites(s))
        ),
    ),
    Reason("a result without a graph takes no hook", lambda s: s.call in GRADLESS and SITES[s.site].graph),
    Reason(
        "nothing is saved there, or hooks on what is saved are hidden by others or of another thread",
        lambda s: s.call not in ("", "functional_call") and _saved(s),
    ),
    Reason(
        "a checkpoint has hooks on what is saved",
        lambda s: s.call == "checkpoint" and "no new saved tensors hooks" in (s.outer, s.inner),
    ),
    Reason(
        "a checkpoint calls the net again, which must be as it was",
        lambda s: s.call == "checkpoint" and s.between in ("freeze", "thaw", "cast", "set_", "write to what is saved"),
    ),
    Reason("which of two hooks in a backward comes first, is nowhere said", _in_no_order),
    Reason(
        "a checkpoint may call the net again before or after the Node of the output is reached",
        lambda s: _removes_partner(s) and s.call == "checkpoint" and SITES[s.site].table == "node y",
    ),
    Reason(
        "torch refuses a functional call of DataParallel",
        lambda s: s.call == "functional_call" and s.host == "DataParallel",
    ),
    Reason(
        "parameters that are made in such a call are not those of the net, or of inference for ever",
        lambda s: s.host == "lazy" and s.call in ("functional_call", "inference_mode"),
    ),
    Reason(
        "what inference gives can be written to in inference alone",
        lambda s: s.call == "inference_mode" and s.between in ("double the output", "write to output"),
    ),
    Reason(
        "of two legacy hooks on other modules either may be first",
        lambda s: sum(site.legacy for site in _sites(s)) == 2 and s.trouble in ("raises", "interrupts"),
    ),
)
"""What cannot be, or what another clause speaks of."""


def why_not(situation: Situation, reasons: Iterable[Reason] = REASONS) -> str:
    """The first reason against a situation, or an empty text."""
    return next((reason.why for reason in reasons if reason.holds(situation)), "")
