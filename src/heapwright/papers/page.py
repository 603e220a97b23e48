"""A page about one paper: its tables and figures beside ours, and which of its claims hold here; Markdown and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from heapwright import parquet

if TYPE_CHECKING:
    from heapwright.report.figure import Figure

_STYLE = """body{max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c2630;line-height:1.5;
font-family:system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif}
table{display:block;overflow-x:auto;border-collapse:collapse;margin:1rem 0;font-size:.9rem}
th,td{padding:.25rem .7rem;border-bottom:1px solid #e8ebee;text-align:right}
th:first-child,td:first-child{text-align:left}img{max-width:100%}"""


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

    def table(self, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Add a table; the first column names the rows."""
        lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
        self._parts.append("\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines))

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
        """Write NAME.md, NAME.html and each figure as PNG and SVG into `folder`; returns the two pages.

        Raises HeapwrightError where a figure cannot be drawn, OSError where a file cannot be written.
        """
        for figure in self._figures:
            figure.save(folder)
        markdown = "\n\n".join([f"# {self.title}", *self._parts, *self._claims()]) + "\n"
        pages = [folder / f"{self.name}.md", folder / f"{self.name}.html"]
        for page, content in zip(pages, (markdown, self._html(markdown)), strict=True):
            with parquet.replacing(page) as temporary:
                temporary.write_text(content, encoding="utf-8")
        return pages

    def _claims(self) -> list[str]:
        if not self.claims:
            return []
        rows = [
            f"| {claim.claim} | {claim.paper_value} | {claim.our_value} | {'yes' if claim.holds else 'no'} |"
            for claim in self.claims
        ]
        table = "\n".join(["| claim | the paper | here | holds |", "| --- | --- | --- | --- |", *rows])
        return ["## What the paper claims, and what holds on this traffic", table]

    def _html(self, markdown: str) -> str:
        from html import escape

        from markdown_it import MarkdownIt

        body = MarkdownIt("commonmark").enable("table").render(markdown)
        head = f'<meta charset="utf-8"><title>{escape(self.title)}</title><style>{_STYLE}</style>'
        return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}</body></html>\n'


def percent(share: float, digits: int = 0) -> str:
    """A share as a percentage."""
    return f"{share:.{digits}%}".replace("%", " %")
