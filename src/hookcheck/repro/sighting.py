"""One network judged by one clause with one hook kind: where it deviates, with all that the judge saw of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from hookcheck.contract.clause import Clause
from hookcheck.contract.finding import Finding
from hookcheck.contract.ledger import Ledger
from hookcheck.contract.site import KEPT_ALIVE, NONE, RAISES, WARNS, Relation, SiteKind
from hookcheck.hooks.kinds import HookKind
from hookcheck.networks.case import Case, Pair
from hookcheck.networks.examine import Beside, looks
from hookcheck.networks.judge import deviating
from hookcheck.oracle.expected import Expected
from hookcheck.oracle.graph import Tensor, newest
from hookcheck.probe.run import observe, unavailable, unsafe
from hookcheck.releases.numbers import release
from hookcheck.topology.model import Topology, writes
from hookcheck.topology.needs import about
from hookcheck.topology.values import values


@dataclass(frozen=True)
class Symptom:
    """What two networks must share to show the same fault.

    ``ledger`` is the entry that explains it, or None; ``text`` is the exception or warning, its numbers left out;
    ``unhooked`` says that the run without hooks raises as well, or of what is kept alive, that it leaves something too:
    a cycle of its own, as torch warns of, would be taken for the hook's. ``shaped`` says that the values of that run
    have the shapes that the oracle gives them: else it is for another network than torch runs. ``asks`` says of
    an entry of grad_input that is None, or is not, whether its argument requires grad itself: one beside an argument
    that does is another question.
    """

    clause: str
    gap: str
    relation: Relation
    site: SiteKind
    ledger: str | None
    text: str = ""
    unhooked: bool = False
    shaped: bool = True
    asks: bool = True


@dataclass(frozen=True, eq=False)
class Sighting:
    """A subject that deviates: the call, pair, event or warning of the case that the clause was asked about."""

    symptom: Symptom
    case: Case
    subject: Any
    finding: Finding


def unable(topology: Topology, kind: HookKind, device: str = "cpu") -> str:
    """Why this torch cannot judge the network with hooks of ``kind``; an empty text if it can."""
    if about(topology) not in ("any", device):
        return f"it is about {about(topology)}: add --device {about(topology)}"
    return unavailable(topology, kind.name) or unsafe(kind.name, writes(topology))


def sightings(
    topology: Topology, family: str, kind: HookKind, clause: Clause, ledger: Ledger, device: str = "cpu"
) -> list[Sighting]:
    """Every subject of ``clause`` that deviates, in the order in which the judge meets them.

    The torch must be able to run it (see `unable`). What no entry of the ``ledger`` explains is looked at again, as
    in `hookcheck.networks.examine`.
    """
    first = case_of(topology, kind, device)
    if first is None:
        return []
    for case in looks(first, Beside(topology, values(topology), device)):
        seen = [] if case is not first and case.expected.overflows else _seen(case, family, clause, ledger)
        if all(sighting.symptom.ledger for sighting in seen):
            break
    return seen


def case_of(topology: Topology, kind: HookKind, device: str = "cpu") -> Case | None:
    """The network run with hooks of ``kind`` and without; None where the oracle cannot work it out."""
    numbers = values(topology)
    expected = Expected(topology, numbers, release=release(torch.__version__), device=device)
    if kind.acts.backward or not kind.observes:
        expected = expected.acting(kind.acts)
    if not expected.worked_out:
        return None
    plain = observe(topology, numbers, None, device)
    return Case(topology, kind, device, expected, observe(topology, numbers, kind.name, device), plain)


def _seen(case: Case, family: str, clause: Clause, ledger: Ledger) -> list[Sighting]:
    return [
        Sighting(
            Symptom(
                clause.id,
                located.finding.gap,
                located.finding.relation,
                located.finding.site.kind,
                ledger.explain(clause.id, family, case.kind.name, located.finding, located.features),
                _text(located.finding),
                case.plain.raised is not None or (located.finding.relation == KEPT_ALIVE and bool(case.plain.alive)),
                _alike(case.plain.values, case.expected.trace.names),
                _asks(subject, located.finding),
            ),
            case,
            subject,
            located.finding,
        )
        for subject, located in deviating(case, clause)
    ]


def _asks(subject: Any, finding: Finding) -> bool:
    """Whether the argument requires grad that an entry of grad_input belongs to which is None, or is not."""
    entry = re.match(r"grad_input\[(\d+)\]", finding.site.name) if finding.relation == NONE else None
    given = subject.firing.call.args if isinstance(subject, Pair) else ()
    tensor = given[int(entry[1])] if entry and int(entry[1]) < len(given) else None
    return tensor is None or tensor.requires_grad


def _text(finding: Finding) -> str:
    """The exception or the warning, without numbers and addresses."""
    texts = finding.relation in (RAISES, WARNS) and finding.observed is not None
    return re.sub(r"0x[0-9a-f]+|\d+", "…", finding.words()[1]) if texts else ""


def _alike(observed: Any, expected: Any) -> bool:
    """Whether no tensor of the oracle's has another shape than the copy of torch's of the same name or place."""
    if isinstance(observed, dict):
        known = expected if isinstance(expected, Mapping) else getattr(expected, "_asdict", dict)()
        return all(_alike(value, known.get(name)) for name, value in observed.items())
    if isinstance(observed, (tuple, list)) and isinstance(expected, (tuple, list)):
        return all(map(_alike, observed, expected))
    return not (isinstance(observed, np.ndarray) and isinstance(expected, Tensor)) or (
        observed.shape == newest(expected).array.shape
    )
