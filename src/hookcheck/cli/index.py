"""What the contract holds, as plain values: an index that is made once and kept in the user's cache.

Importing every clause with what it is judged by takes a second and more, and a listing needs none of that. The index
is made again when a file of the package has changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

from hookcheck import __version__

PACKAGE = Path(__file__).resolve().parents[1]


class NameIndex(TypedDict):
    """The names that there are, each list in the order in which its things are declared.

    ``clauses`` have the fields of `hookcheck.contract.clause.described`, their ``chapter``, whether they are a
    ``program``, and in ``hooks`` the hook kinds that they register. ``ledger`` has the entries, ``claims`` the claims
    with the answers to them by release, ``left_out`` the reasons by the id that a clause would have, ``kept_out`` the
    conditions of `hookcheck.contract.kept_out`. ``families``, ``chapters`` and ``layers`` are texts by name; a layer's
    is empty where it is covered, and says why not where it is not.
    """

    clauses: list[dict[str, Any]]
    left_out: dict[str, str]
    kept_out: list[dict[str, Any]]
    ledger: list[dict[str, Any]]
    claims: list[dict[str, Any]]
    families: dict[str, str]
    chapters: dict[str, str]
    kinds: dict[str, dict[str, Any]]
    layers: dict[str, str]


def index() -> NameIndex:
    """The index of this hookcheck, from the cache where that is of these very files."""
    key, path = _key(), _path()
    with contextlib.suppress(OSError, ValueError):
        cached = json.loads(path.read_text(encoding="utf-8"))
        if cached["key"] == key:
            content: NameIndex = cached["index"]
            return content
    built = _build()
    with contextlib.suppress(OSError):  # without a cache it is only slower
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f"{path.name}.{os.getpid()}")
        unfinished.write_text(json.dumps({"key": key, "index": built}), encoding="utf-8")
        unfinished.replace(path)
    return built


def varying() -> list[str]:
    """The ids of the entries of the ledger that show now and then."""
    return [entry["id"] for entry in index()["ledger"] if entry["varies"]]


def _path() -> Path:
    """Where the index is kept: by the XDG base directories, or as Windows has it; for each copy of the package one."""
    caches = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or os.path.expanduser("~/.cache")
    where = hashlib.sha256(f"{PACKAGE} {sys.version}".encode()).hexdigest()[:12]
    return Path(caches) / "hookcheck" / f"index-{where}.json"


def _key() -> str:
    """What is other wherever a file of the package is."""
    state = hashlib.sha256(__version__.encode())
    for name, size, changed in sorted(_files(str(PACKAGE))):
        state.update(f"{name} {size} {changed}\n".encode())
    return state.hexdigest()


def _files(folder: str) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for item in entries:
            if item.is_dir(follow_symlinks=False):
                if item.name not in ("__pycache__", "reports"):
                    yield from _files(item.path)
            elif item.name.endswith((".py", ".toml")):
                stat = item.stat()
                yield item.path, stat.st_size, stat.st_mtime_ns


def _build() -> NameIndex:
    import hookcheck.clauses  # noqa: F401 -- declares the clauses
    from hookcheck.contract.claims import answers, claims
    from hookcheck.contract.clause import CLAUSES, described
    from hookcheck.contract.kept_out import KEPT_OUT
    from hookcheck.contract.ledger import load
    from hookcheck.contract.left_out import LEFT_OUT
    from hookcheck.hooks.kinds import KINDS
    from hookcheck.programs.program import Program
    from hookcheck.programs.registered import hook_kinds
    from hookcheck.releases import releases
    from hookcheck.topology.catalogue import layer_classes
    from hookcheck.topology.excused import EXCUSED
    from hookcheck.topology.families import FAMILIES

    ledger, torches = load(), [release.torch for release in releases()]
    return {
        "clauses": [
            {
                **described(clause),
                "chapter": clause.chapter,
                "program": isinstance(clause, Program),
                "hooks": list(hook_kinds(clause) if isinstance(clause, Program) else clause.kinds),
            }
            for clause in CLAUSES.values()
        ],
        "left_out": LEFT_OUT,
        "kept_out": [
            {"id": place, "why": exclusion.why, "clauses": list(exclusion.clauses), "entries": list(exclusion.entries)}
            for place, exclusion in KEPT_OUT.items()
        ],
        "ledger": [_entry(entry) for entry in ledger],
        "claims": [
            {
                "id": claim.id,
                "statement": claim.statement,
                "source": claim.source,
                "answers": {torch: a.answer for a in answers(claim, ledger, torches) for torch in a.torch},
            }
            for claim in claims()
        ],
        "families": {family.name: family.statement for family in FAMILIES.values()},
        "chapters": {clause.chapter: _paragraph(clause) for clause in CLAUSES.values()},
        "kinds": {name: _kind(kind) for name, kind in KINDS.items()},
        "layers": {name: EXCUSED.get(name, "") for name in sorted({*layer_classes(), *EXCUSED})},
    }


def _entry(entry: Any) -> dict[str, Any]:
    lists = ("clauses", "kinds", "devices", "instead")
    return {
        "id": entry.id,
        "why": " ".join(entry.why.split()),
        "link": entry.link,
        **{name: list(getattr(entry, name)) for name in lists},
        "says": entry.says,
        "families": list(entry.families) or ["all"],
        "torch": str(entry.torch),
        "when": {key: list(words) for key, words in entry.when},
        "varies": entry.varies,
        "reviewed": entry.reviewed.isoformat(),
    }


def _paragraph(clause: Any) -> str:
    """What the module of a clause says of its chapter."""
    return " ".join((sys.modules[clause.judge.__module__].__doc__ or "").replace("``", "`").split())


def _kind(kind: Any) -> dict[str, Any]:
    return {
        "call": kind.call.replace("_", " "),
        "variant": kind.variant,
        "scope": kind.scope,
        "register": kind.register + ("(…, with_kwargs=True)" if kind.kwargs else ""),
        "since": kind.since,
        "acts": not kind.observes,
    }
