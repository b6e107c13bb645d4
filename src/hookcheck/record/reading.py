"""What does a record file say? Its lines, checked against the schema and against each other."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Union

import fastjsonschema

from hookcheck.record.checks import check
from hookcheck.record.errors import EmptyRecord, InconsistentRecord, TruncatedRecord, UnreadableRecord, WrongSchema
from hookcheck.record.lines import Line, alike_of, counterexample_of, footer_of, header_of
from hookcheck.record.model import SCHEMAS, Alike, Counterexample, Folded, Record, ordered

_GZIP = b"\x1f\x8b"
"""How a file that gzip compressed begins (RFC 1952, section 2.3.1)."""

_ORDER = {"header": 0, "case": 1, "counterexample": 2, "footer": 3}

Part = Union[Alike, Counterexample]
"""What a line between header and footer says."""

_PARTS: dict[str, Callable[[Line], Part]] = {"case": alike_of, "counterexample": counterexample_of}


def schema() -> dict[str, Any]:
    """The published JSON Schema of a record's line."""
    text = files("hookcheck.record").joinpath("schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def record_files(folder: Path) -> list[Path]:
    """The files in ``folder`` that are called as records are, compressed or not, by name."""
    return sorted((*folder.glob("*.jsonl"), *folder.glob("*.jsonl.gz")))


def read(path: Path) -> Record:
    """The record in the file ``path``, which may be compressed by gzip.

    Raises a `RecordError` that names the corruption: `UnreadableRecord`, `EmptyRecord`, `TruncatedRecord`,
    `WrongSchema`, `DuplicateCase` or `InconsistentRecord`.
    """
    folded = read_folded(path)
    cases = ordered((case for alike in folded.alike for case in alike.cases()), folded.header.plan)
    return Record(folded.header, cases, folded.counterexamples, folded.footer)


def clauses_of(path: Path) -> frozenset[str]:
    """The ids of the clauses that the record in the file ``path`` judges by: its first line has them.

    Raises what `read` raises of that line.
    """
    lines, ended = _lines(path)
    header = _object(path, 1, lines[0], ended or len(lines) > 1)
    if _checked_type(path, 1, header) != "header":
        raise InconsistentRecord(path, 1, "the header is the first line, and no other")
    return frozenset(clause["id"] for clause in header["plan"]["clauses"])


def read_folded(path: Path, known: dict[bytes, Part] | None = None) -> Folded:
    """The record in the file ``path`` with cases that came out alike together, as the file has them.

    That takes a third of the time that `read` takes, and a tenth of the memory. ``known`` keeps what lines that were
    read so far say: most lines of a record are those of its neighbours as well. Raises what `read` raises.
    """
    known = {} if known is None else known
    ends: dict[str, Line] = {}
    cases: list[Alike] = []
    counterexamples: list[Counterexample] = []
    stage = 0
    lines, ended = _lines(path)
    for number, text in enumerate(lines, start=1):
        part = known.get(text)
        if part is None:
            line = _object(path, number, text, number < len(lines) or ended)
            kind = _checked_type(path, number, line)
            if kind in _PARTS:
                part = known[text] = _PARTS[kind](line)
        else:
            kind = "case" if isinstance(part, Alike) else "counterexample"
        if (kind == "header") != (number == 1):
            raise InconsistentRecord(path, number, "the header is the first line, and no other")
        if "footer" in ends:
            raise InconsistentRecord(path, number, "there is a line after the footer")
        if _ORDER[kind] < stage:
            raise InconsistentRecord(path, number, f"a {kind} stands after the first {list(_ORDER)[stage]}")
        stage = _ORDER[kind]
        if isinstance(part, Alike):
            cases.append(part)
        elif part is not None:
            counterexamples.append(part)
        else:
            ends[kind] = line
    if "footer" not in ends:
        raise TruncatedRecord(path, None, "there is no footer: the file ends too early")
    record = Folded(
        header=header_of(ends["header"]),
        alike=tuple(cases),
        counterexamples=tuple(counterexamples),
        footer=footer_of(ends["footer"]),
    )
    check(record, path)
    return record


def _lines(path: Path) -> tuple[list[bytes], bool]:
    """The lines of a file, and whether the last one is ended."""
    try:
        content = path.read_bytes()
    except OSError as fault:
        cause = f"cannot be read ({fault.strerror or fault})"
        raise UnreadableRecord(path, None, cause, "check that the file is there and that you may read it") from None
    if content.startswith(_GZIP):
        try:
            content = gzip.decompress(content)
        except (EOFError, OSError, zlib.error):
            raise TruncatedRecord(path, None, "the compressed file is cut short or damaged") from None
    if not content.strip():
        raise EmptyRecord(path, None, "the file is empty")
    lines = content.split(b"\n")
    ended = not lines[-1]
    return lines[:-1] if ended else lines, ended


def _object(path: Path, number: int, text: bytes, ended: bool) -> Any:
    try:
        return json.loads(text.decode("utf-8"))
    except ValueError:
        if not ended:
            raise TruncatedRecord(path, number, "the last line was cut in the middle") from None
        raise WrongSchema(path, number, "the line is not JSON") from None


def _checked_type(path: Path, number: int, line: Any) -> str:
    kind = line.get("type") if isinstance(line, dict) else None
    if kind not in _ORDER:
        raise WrongSchema(path, number, f"the line is none of {', '.join(_ORDER)}")
    if kind == "header" and line.get("schema") not in SCHEMAS:
        readable = " and ".join(map(str, SCHEMAS))
        cause = f"schema {line.get('schema')!r} is unknown, this hookcheck reads schemas {readable}"
        raise WrongSchema(path, number, cause, f"read it with the hookcheck that wrote it ({line.get('hookcheck')})")
    try:
        _validators()[kind](line, name_prefix=kind)
    except fastjsonschema.JsonSchemaValueException as fault:
        raise WrongSchema(path, number, str(fault.message)[:200]) from None
    return str(kind)


@lru_cache(maxsize=1)
def _validators() -> dict[str, Any]:
    definitions = schema()["$defs"]
    return {kind: fastjsonschema.compile(definitions[kind]) for kind in _ORDER}
