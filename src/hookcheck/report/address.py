"""Where each page of the site is, and each place on it: by the id of what it is about, never by its position."""

from __future__ import annotations

import hashlib
import re

from hookcheck.contract.clause import CLAIM
from hookcheck.record.model import PlannedClause
from hookcheck.report.archive import ArchivedRun

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


def slug(name: str) -> str:
    """``name`` as a part of an address and the name of a file, the same for the same name and for no other.

    >>> slug("GI-01"), slug("wrong values"), slug("../x")
    ('GI-01', 'wrong-values-72660c', 'x-d6b96a')
    """
    if _PLAIN.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "backslashreplace")).hexdigest()[:6]
    return f"{re.sub('[^A-Za-z0-9]+', '-', name).strip('-')[:60] or 'x'}-{digest}"


def of_clause(clause: PlannedClause) -> str:
    """The page of a clause, or of a claim."""
    return f"{'claims' if clause.rank == CLAIM else 'clauses'}/{slug(clause.id)}.html"


def of_kind(kind: str) -> str:
    """The page of a hook kind or of a chapter of programs."""
    return f"kinds/{slug(kind)}.html"


def of_run(run: ArchivedRun) -> str:
    """The page of a release on a device."""
    return f"releases/{run_slug(run)}.html"


def of_arrival(after: ArchivedRun) -> str:
    """The page that says what changed on the way to a release, from each of those before it."""
    return f"compare/{run_slug(after)}.html"


def of_comparison(before: ArchivedRun, after: ArchivedRun) -> str:
    """The address of two releases, which leads to their place on the page of the later one."""
    return f"compare/{run_slug(before)}-to-{run_slug(after)}.html"


def run_slug(run: ArchivedRun) -> str:
    """A release on a device, as a part of an address."""
    return f"{slug(run.version)}-{slug(run.device)}"
