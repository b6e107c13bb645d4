"""How does a report look in a browser? One file that needs no other, without scripts."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined

from hookcheck.contract.verdict import CRASHED, OUTCOMES, TIMED_OUT
from hookcheck.report.accounts import some
from hookcheck.report.columns import count_marks
from hookcheck.report.marks import MARKS
from hookcheck.report.page import Page


def html(page: Page) -> str:
    """``page`` as a self-contained HTML document."""
    environment = Environment(
        loader=PackageLoader("hookcheck.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests["web_link"] = _is_web_link
    template = environment.get_template("report.html.j2")
    return template.render(
        page=page,
        marks=MARKS,
        count_marks=count_marks,
        some=some,
        outcomes=("planned", *OUTCOMES),
        fatal=(CRASHED, TIMED_OUT),
    )


def _is_web_link(link: str) -> bool:
    """Whether ``link`` may be followed; a link of another scheme could run a script, and is shown as text."""
    return link.startswith(("https://", "http://"))
