"""A page about one paper: its tables and figures beside ours, and which of its claims hold here; Markdown and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from heapwright.files.writing import filling

if TYPE_CHECKING:
    from heapwright.report.figure import Figure


ALIGN = 4
"""Alignment in bytes of recipes made for a page: a word of the papers' 32-bit systems."""

_HEAD = f"""\
Recipes have alignment {ALIGN} on this page, a word of the paper's 32-bit systems; allocators whose source says another
keep theirs."""


@dataclass(frozen=True)
class Claim:
    """One sentence of a paper, checked: the paper's number, ours, and whether the sentence holds with ours."""

    paper: str
    claim: str
    paper_value: str
    our_value: str
    holds: bool


@dataclass
class Page:
    """A page as it grows: call its methods in the order in which the page is to be read.

    Attributes:
        name: stem of its files.
        title: first line.
        paper: the source in short, for the claims.
    """

    name: str
    title: str
    paper: str
    claims: list[Claim] = field(default_factory=list)
    _parts: list[str] = field(default_factory=list)
    _figures: list[Figure] = field(default_factory=list)

    def text(self, markdown: str) -> None:
        """Add paragraphs or headings."""
        self._parts.append(markdown)

    def table(self, header: Sequence[str], rows: Sequence[Sequence[object]], words: int = 1) -> None:
        """Add a table; the first columns, as many as `words`, hold words, the others numbers."""
        self._parts.append(_table(header, rows, words))

    def figure(self, figure: Figure) -> None:
        """Add a figure, with its title and note as words for those who do not see it.

        The page shows the PNG: an SVG takes the viewer's fonts, and wider ones are cut off.
        """
        self._figures.append(figure)
        self._parts.append(f"![{figure.title}. {figure.note}]({figure.name}.png)")

    def claim(self, claim: str, paper_value: str, our_value: str, holds: bool) -> None:
        """Check one sentence of the paper."""
        self.claims.append(Claim(self.paper, claim, paper_value, our_value, holds))

    def write(self, folder: Path) -> list[Path]:
        """Write NAME.md, NAME.html and each figure as PNG and SVG into `folder`, all or none; returns the two pages.

        Raises HeapwrightError where a figure cannot be drawn or a file cannot be written.
        """
        markdown = "\n\n".join([f"# {self.title}", _HEAD, *self._parts, *self._claims()]) + "\n"
        with filling(folder) as put:
            for figure in self._figures:
                for name, content in figure.files().items():
                    put(name, content)
            return [put(f"{self.name}.md", markdown), put(f"{self.name}.html", _html(self.title, markdown))]

    def _claims(self) -> list[str]:
        if not self.claims:
            return []
        rows = [(one.claim, one.paper_value, one.our_value, "yes" if one.holds else "no") for one in self.claims]
        table = _table(("claim", "the paper", "here", "holds"), rows, words=4)
        return ["## What the paper claims, and what holds on this traffic", table]


def _table(header: Sequence[str], rows: Sequence[Sequence[object]], words: int) -> str:
    lines = [header, ["---"] * words + ["---:"] * (len(header) - words), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def _html(title: str, markdown: str) -> str:
    import jinja2
    from markdown_it import MarkdownIt

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("heapwright.papers", "template"),
        autoescape=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    return environment.get_template("page.html.jinja").render(title=title, body=body)


def percent(share: float, digits: int = 0) -> str:
    """A share as a percentage."""
    return f"{share:.{digits}%}".replace("%", " %")
