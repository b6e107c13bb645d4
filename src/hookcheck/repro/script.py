"""What goes into a bug report? One script that needs torch alone and tells by its exit code whether the fault shows."""

from __future__ import annotations

import re
import textwrap
from functools import lru_cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from hookcheck.contract.clause import Clause
from hookcheck.errors import HookcheckError
from hookcheck.hooks.kinds import OUTPUT, HookKind
from hookcheck.oracle.trace import writes
from hookcheck.repro.checks import CHECKS
from hookcheck.repro.facts import Facts
from hookcheck.repro.gradients import odd
from hookcheck.repro.hooks import later_factors, parameters, returned, returned_later
from hookcheck.repro.links import links
from hookcheck.topology.codec import identify
from hookcheck.topology.model import Topology, needs

WIDTH = 118
IMPORT = r"(?m)^from .*\n+"
"""What namedtuples and dataclasses are made with, which stands above them."""


def script(topology: Topology, clause: Clause, kind: HookKind, device: str = "cpu") -> str:
    """The script that shows whether torch deviates from ``clause`` on ``topology`` with hooks of ``kind``.

    It ends with exit code 1 where the fault shows, 0 where it does not, and 2 where its torch lacks what it needs.

    Raises:
        HookcheckError: the clause does not speak of that hook kind, or the topology is about another device.
    """
    if kind.name not in clause.kinds:
        choices = ", ".join(clause.kinds)
        raise HookcheckError(f"clause {clause.id} does not speak of hook kind {kind.name!r}; choose from {choices}")
    if topology.device not in ("any", device):
        raise HookcheckError(f"the topology is about {topology.device}; add --device {topology.device}")
    if clause.id not in CHECKS:
        raise HookcheckError(f"no script can be written yet for clause {clause.id} with hook kind {kind.name}")
    check, facts = CHECKS[clause.id], _facts(topology, kind, device)
    if not facts.expected.worked_out:
        raise HookcheckError(f"no clause speaks of this topology with hook kind {kind.name}: what it does is not known")
    # The classes are separated by two empty lines from each other and from the lines that construct `net`.
    *classes, construction = re.sub(IMPORT, "", facts.source.modules).split("\n\n\n")
    text = (
        templates()
        .get_template(check.template)
        .render(
            header=_header(topology, clause, kind),
            imports=list(dict.fromkeys(line.strip() for line in re.findall(IMPORT, facts.source.modules))),
            lacks=_lacks(topology, kind, device),
            classes=classes,
            construction=construction,
            source=facts.source,
            inputs=topology.inputs,
            device=device,
            kind=kind,
            facts=facts,
            due=facts.due(check.want) if check.want else [],
            crowded=facts.crowded and check.want is not None,
            side=check.side,
        )
    )
    return re.sub(r"\n{4,}", "\n\n\n", text).rstrip("\n") + "\n"


@lru_cache(maxsize=16)
def _facts(topology: Topology, kind: HookKind, device: str) -> Facts:
    """The facts about a network, worked out once for all clauses."""
    return Facts(topology, kind, device)


def _header(topology: Topology, clause: Clause, kind: HookKind) -> str:
    """The comment at the top: what is promised, where, and how to read the result."""
    paragraphs = [
        f"{clause.id} ({clause.rank}, since torch {clause.since}): {clause.statement}",
        f"Source: {clause.source}",
        *(links(clause.source) or [kind.documentation]),
        f"Hook kind: {kind.name} ({kind.register}). Topology: {identify(topology)}.",
        "Run it with python and torch. Exit code 1: the fault shows; 0: it does not; 2: this torch lacks something.",
    ]
    return "\n".join(line for text in paragraphs for line in comment(text))


def comment(text: str) -> list[str]:
    """Lines of a comment that hold ``text``."""
    return textwrap.wrap(
        text, WIDTH, initial_indent="# ", subsequent_indent="# ", break_long_words=False, break_on_hyphens=False
    )


def _lacks(topology: Topology, kind: HookKind, device: str) -> list[tuple[str, str]]:
    """The conditions under which a torch cannot run the script, each with what it lacks."""
    since, thing = needs(topology)
    found = release_lacks(since, f"{thing} (since {since})")
    found.append((f'not hasattr({kind.owner}, "{kind.register}")', f"{kind.register} (since {kind.since})"))
    if kind.options:
        found += release_lacks(kind.since, f"{', '.join(kind.options)} (since {kind.since})")
    if kind.call == OUTPUT and writes(topology):
        release = 'tuple(map(int, torch.__version__.split(".")[:2]))'
        what = "hooks on a view that was written to: registering one can end the process (pytorch#196459)"
        found.append((f"(2, 0) <= {release} < (2, 15)", what))
    if device == "cuda":
        found.append(("not torch.cuda.is_available()", "a CUDA device"))
    return found


def release_lacks(since: str, what: str) -> list[tuple[str, str]]:
    """The condition under which a torch is older than ``since`` and so lacks ``what``; none for the oldest release."""
    release = tuple(map(int, since.split(".")))
    if release <= (1, 7):
        return []
    return [(f'tuple(map(int, torch.__version__.split(".")[:2])) < {release}', what)]


@lru_cache(maxsize=1)
def templates() -> Environment:
    """Where the templates of scripts are."""
    environment = Environment(
        loader=PackageLoader("hookcheck.repro"),
        autoescape=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["literal"] = repr
    environment.filters["zip"] = zip
    environment.tests["odd"] = odd
    for written in (parameters, returned, returned_later, later_factors):
        environment.globals[written.__name__] = written
    environment.globals["parts"] = environment.get_template("parts.j2").module
    return environment
