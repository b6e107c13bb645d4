"""What hooks of a script note, and what of that is due: their names alone, or what they are given as well."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hookcheck.programs.logs import Entry
from hookcheck.programs.situations.acts import REGISTERING, Act, Register, Trouble
from hookcheck.programs.situations.model import SituationModel
from hookcheck.programs.situations.sites import SITES, HookSite

RAISED = {"Stop": "ValueError", "Interrupt": "KeyboardInterrupt"}
"""What hooks and bodies raise in a script, by what they raise in a situation."""

NUMBERS = """\
def numbers(value):
    if isinstance(value, torch.Tensor):
        return float(value.sum())
    return type(value)(map(numbers, value)) if type(value) in (list, tuple) else value
"""


@dataclass(frozen=True)
class Noting:
    """Whether hooks note what they are given (``values``), and whether what a step calls notes that (``closure``)."""

    values: bool = False
    closure: bool = False

    def line(self, hook: str, site: HookSite) -> str:
        """What a hook does with its arguments, which are ``given``, or ``value`` where it must give it back."""
        shown = _shown(site) if self.values else ""
        return f'calls.append(("{hook}", {shown}))' if shown else f'calls.append("{hook}")'

    def entries(self, log: Iterable[Entry], sites: Mapping[str, HookSite]) -> list[Any]:
        """What of a log a script has."""
        return [self._entry(entry, sites) for entry in log if self.closure or entry != ("closure",)]

    def _entry(self, entry: Entry, sites: Mapping[str, HookSite]) -> Any:
        if entry[0] == "raised":
            return f"{RAISED.get(entry[1], entry[1])}()"
        if entry[0] not in sites or not self.values or not _shown(sites[entry[0]]):
            return entry[0]
        return (entry[0], *_projected(entry[1:], sites[entry[0]]))


def _owner(site: HookSite) -> str:
    """The module or optimizer that a hook is given, if it is known which."""
    return "optimizer" if site.lane == "optimizer" else site.where


def _shown(site: HookSite) -> str:
    if site.shows == "values":
        return f"*map(numbers, given{'[1:]' if site.lane == 'calls' else ''})"
    if site.shows == "owners":
        return f"given[0] is {_owner(site)}" if _owner(site) else ""
    return {"grad": "numbers(given[0].grad)", "last": "numbers(given[-1])", "names": "given[1]"}.get(site.shows, "")


def _projected(given: Entry, site: HookSite) -> Entry:
    if site.shows == "owners":
        return (given[0] == _owner(site),)
    return given[1:] if site.lane == "calls" or site.shows == "names" else given


@dataclass(frozen=True)
class Logs:
    """What acts must have noted, in the order in which it comes: each act's own, and the sites of all hooks."""

    each: tuple[tuple[Entry, ...], ...]
    sites: Mapping[str, HookSite]

    def calls(self, hook: str, start: int = 0, stop: int | None = None) -> int:
        """How often a hook is called during some of the acts."""
        return sum(entry[0] == hook for log in self.each[start:stop] for entry in log)

    @property
    def unordered(self) -> bool:
        """Whether the last act calls hooks of several lanes, or of one whose order nothing promises."""
        lanes = {self.sites[entry[0]].lane for entry in self.each[-1] if entry[0] in self.sites}
        legacy = {self.sites[entry[0]].where for entry in self.each[-1] if entry[0] in self.sites}
        return len(lanes) > 1 or (lanes == {"legacy"} and len(legacy) > 1)


def logs(acts: Sequence[Act]) -> Logs:
    """What acts must have noted."""
    model = SituationModel()
    each = []
    for act in acts:
        model.after(act)
        each.append(tuple(model.log))
    sites = {act.hook: SITES[act.site] for act in acts if isinstance(act, Register)}
    for act in acts:
        if isinstance(act, Trouble) and act.what in REGISTERING:
            sites[act.other] = sites[act.hook]
    return Logs(tuple(each), sites)
