"""The documentation: `sphinx-build -W -b html docs build/docs`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

project = "hookcheck"
copyright = "the hookcheck authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.doctest"]
html_theme = "furo"
html_title = "hookcheck"
exclude_patterns = ["generated"]
myst_heading_anchors = 3
myst_enable_extensions = ["deflist", "colon_fence"]
myst_url_schemes = ("http", "https", "mailto")
autodoc_typehints = "description"
autodoc_member_order = "bysource"
suppress_warnings = ["myst.xref_missing"]  # pages that people read in the repository link to its folders


def rows(of: dict[str, Any], under: str = "") -> Iterator[str]:
    """The lines of a table: each property of an object of a JSON Schema, those of objects in it below it."""
    required = set(of.get("required", ()))
    for name, value in of.get("properties", {}).items():
        kind = value.get("const") or value.get("enum") or value.get("type") or value.get("$ref", "").rpartition("/")[2]
        shown = " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind)
        needed = "yes" if name in required else "no"
        yield f"| `{under}{name}` | {shown} | {needed} | {value.get('description', '')} |"
        yield from rows(value, f"{under}{name}.")
        items = value.get("items")
        if isinstance(items, dict):
            yield from rows(items, f"{under}{name}[].")


def draw_schema(_: Any) -> None:
    """Writes the tables of the record's JSON Schema, which the page on records includes."""
    schema = json.loads((ROOT / "src/hookcheck/record/schema.json").read_text(encoding="utf-8"))
    parts = []
    for name, of in schema["$defs"].items():
        head = "| field | type | required | |\n| --- | --- | --- | --- |"
        parts.append("\n".join([f"## {name}", "", of.get("description", ""), "", head, *rows(of)]))
    folder = Path(__file__).parent / "generated"
    folder.mkdir(exist_ok=True)
    (folder / "record.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def setup(app: Any) -> None:
    """Draws what is made of data before the pages are read."""
    app.connect("builder-inited", draw_schema)
