"""Which topologies does everyone run? The corpus: JSON lines, one file a family, each line with the topology's id."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from hookcheck.errors import HookcheckError
from hookcheck.topology.codec import TopologyError, canonical, decode, identify
from hookcheck.topology.model import Topology


class CorpusError(HookcheckError):
    """A corpus file is missing, or a line of it is no topology or not the one that it says it is."""


def read(folder: Path, family: str) -> tuple[Topology, ...]:
    """The topologies of one family, in the order of the file ``<folder>/<family>.jsonl``.

    Raises:
        CorpusError: naming file, line, what is wrong and what to do.
    """
    path = folder / f"{family}.jsonl"
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"the corpus file {path} cannot be read ({error}); restore it from the repository") from None
    topologies: dict[str, Topology] = {}
    for number, line in enumerate(lines, start=1):
        where = f"{path.name}, line {number}"
        topology = _line(line, where)
        id = identify(topology)
        if id in topologies:
            raise CorpusError(f"{where}: topology {id} is there twice; remove one of the two lines")
        topologies[id] = topology
    return tuple(topologies.values())


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


def write(folder: Path, family: str, topologies: Iterable[Topology]) -> None:
    """Writes the corpus file of a family anew, one line a topology."""
    lines = [f'{{"id":"{identify(t)}","topology":{canonical(t)}}}\n' for t in topologies]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{family}.jsonl").write_text("".join(lines), encoding="utf-8")


def digest(topologies: Iterable[Topology]) -> str:
    """A hash of the ids in order, by which two runs know that they replayed the same corpus."""
    return hashlib.sha256("".join(identify(t) for t in topologies).encode()).hexdigest()[:16]
