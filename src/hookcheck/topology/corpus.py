"""Which topologies does everyone run? The corpus: JSON lines, one file a family, each line with the topology's id.

A line may name hook kinds that its topology is run with beside its share of them (see `hookcheck.hooks.siblings`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hookcheck.errors import HookcheckError
from hookcheck.hooks.siblings import share
from hookcheck.topology.codec import TopologyError, canonical, decode, identify
from hookcheck.topology.families import family_named
from hookcheck.topology.model import Topology


class CorpusError(HookcheckError):
    """A corpus file is missing, or a line of it is no topology or not the one that it says it is."""


def read(folder: Path, family: str) -> tuple[Topology, ...]:
    """The topologies of one family, in the order of the file ``<folder>/<family>.jsonl``.

    Raises:
        CorpusError: naming file, line, what is wrong and what to do.
    """
    topologies: dict[str, Topology] = {}
    for number, line in enumerate(_lines(folder, family), start=1):
        where = f"{family}.jsonl, line {number}"
        topology = _line(line, where)
        id = identify(topology)
        if id in topologies:
            raise CorpusError(f"{where}: topology {id} is there twice; remove one of the two lines")
        topologies[id] = topology
    return tuple(topologies.values())


def shares(folder: Path, family: str) -> dict[str, tuple[str, ...]]:
    """The hook kinds that each topology of one family, which can be `read`, is run with, by its id."""
    rare = family_named(family).rare
    contents = map(json.loads, _lines(folder, family))
    return {content["id"]: share(content["id"], content.get("beside", ()), rare) for content in contents}


def beside(folder: Path, family: str) -> dict[str, tuple[str, ...]]:
    """The hook kinds that topologies of one family, which can be `read`, are run with beside their share, by id."""
    contents = map(json.loads, _lines(folder, family))
    return {content["id"]: tuple(content["beside"]) for content in contents if "beside" in content}


def _lines(folder: Path, family: str) -> list[str]:
    path = folder / f"{family}.jsonl"
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"the corpus file {path} cannot be read ({error}); restore it from the repository") from None


def _line(line: str, where: str) -> Topology:
    try:
        content = json.loads(line)
        topology, claimed = decode(content["topology"]), content["id"]
    except TopologyError as error:
        raise CorpusError(f"{where}: {error}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise CorpusError(
            f"{where} does not parse ({type(error).__name__}: {error}); "
            "restore it from the repository or remove the line"
        ) from None
    if identify(topology) != claimed:
        raise CorpusError(
            f"{where}: the id is {claimed!r} but the content hashes to {identify(topology)!r}; "
            "was the line edited? Restore it, or give it the id of its content"
        )
    return topology


def write(
    folder: Path, family: str, topologies: Iterable[Topology], beside: Mapping[str, Sequence[str]] | None = None
) -> None:
    """Writes the corpus file of a family anew, one line a topology, with the hook kinds ``beside`` its share by id."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [_written(topology, (beside or {}).get(identify(topology), ())) for topology in topologies]
    (folder / f"{family}.jsonl").write_text("".join(lines), encoding="utf-8")


def _written(topology: Topology, kinds: Sequence[str]) -> str:
    those = f'"beside":{json.dumps(kinds, separators=(",", ":"))},' if kinds else ""
    return f'{{"id":"{identify(topology)}",{those}"topology":{canonical(topology)}}}\n'


def digest(topologies: Iterable[Topology]) -> str:
    """A hash of the ids in order, by which two runs know that they replayed the same corpus."""
    return hashlib.sha256("".join(identify(t) for t in topologies).encode()).hexdigest()[:16]
