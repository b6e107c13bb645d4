"""Pages of a drawn site, read back."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

VOID = {"meta", "br", "img", "link", "hr", "input"}


class Document(HTMLParser):
    """The tags with their attributes, the ids, the links, and whether what opens is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.feed(text)
        assert not self.open
        self.ids = [attributes["id"] for _, attributes in self.tags if "id" in attributes]
        self.links = [attributes["href"] for _, attributes in self.tags if "href" in attributes]
        self.loads = [a[name] for tag, a in self.tags for name in ("src", "href") if name in a and tag != "a"]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def documents(site: Path) -> dict[Path, Document]:
    """Every page below ``site`` by its path."""
    return {path: Document(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
