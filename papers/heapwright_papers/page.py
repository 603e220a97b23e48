"""A page about one paper: its tables and figures next to ours, and which of its claims hold here; Markdown and HTML."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import heapwright as hw
from heapwright import PacketTable
from heapwright_papers import measuring
from heapwright_papers.answers import AbsentError, evaluate, judged, rank_correlation, sentence
from heapwright_papers.documents import Statement, statements_of, tables
from heapwright_papers.pictures import Aside
from heapwright_papers.traffic import FOOTNOTE, LAID, digest, marked
from heapwright_papers.verdicts import DECIDED, Kind, Verdict

if TYPE_CHECKING:
    from heapwright import Trace


ALIGN: Final = 4
"""Alignment in bytes of recipes made for a page: a word of the papers' 32-bit systems."""

_HEAD = f"""\
Recipes have alignment {ALIGN} on this page, a word of the paper's 32-bit systems; allocators whose source says another
keep theirs."""

_WHOLE = (
    "[Tables and text in full]({name}-details.html); [every statement, and of what the page is made](appendix.html)."
)


_HOLDING = (Kind.HOLDS, Kind.NOISE)
AIM = 0.8
"""Of a page's contests that hold, the share that should not with another allocator in the place."""
_Other = TypeVar("_Other")


@dataclass(frozen=True)
class Finding:
    """What a page found about a statement: our number, and the verdict; `on` says on which traffic, "" if on all."""

    statement: Statement
    here: str
    verdict: Verdict
    on: str = ""

    @property
    def decided(self) -> bool:
        """Whether it answers a claim, and does not only show a table or say what replaces a machine."""
        return self.verdict.kind in DECIDED

    @property
    def holds(self) -> bool:
        """Whether it holds, perhaps within noise."""
        return self.verdict.kind in _HOLDING

    def as_claim(self) -> dict[str, Any]:
        """As `reproduce` prints it in JSON."""
        verdict = self.verdict
        return {
            "id": self.statement.id,
            "claim": self.statement.says,
            "where": self.statement.where,
            "on": self.on,
            "paper_value": self.statement.value,
            "our_value": self.here,
            "holds": self.holds if self.decided else None,
            "verdict": verdict.kind.value,
            "cause": verdict.cause.value if verdict.cause else None,
            "why": verdict.why,
        }


@dataclass
class Page:
    """A page as it grows: call its methods in the order in which its details are to be read.

    What leads and the figures stand on the page itself, which one can take in at a glance; text and tables, with the
    figures among them, in its details; statements and what it is made of in the appendix of all pages.

    Attributes:
        name: stem of its files.
        title: first line.
        paper: the source in short, for the claims.
        readings: which contests hold under each reading of the paper, where the page has readings.
        at_least: which of them hold where what the paper states is the least, there.
        mutants: how many of the contests that hold do not with another allocator in the place of that which they are
            about, and how many that are set-up stay so.
        tables: the paper's table of allocators beside ours on each kind of traffic, on the pages of applications.
        likeness: on each kind of traffic, by the name of a reading's allocator its fragmentation and time: from those
            of all applications the leading readings are chosen.
    """

    name: str
    title: str
    paper: str
    findings: list[Finding] = field(default_factory=list)
    readings: list[dict[str, Any]] = field(default_factory=list)
    at_least: list[dict[str, Any]] = field(default_factory=list)
    mutants: dict[str, Any] = field(default_factory=dict)
    tables: list[dict[str, Any]] = field(default_factory=list)
    likeness: dict[str, Any] = field(default_factory=dict)
    _traffic: dict[str, PacketTable | Trace] = field(default_factory=dict)
    _lead: list[str] = field(default_factory=list)
    _parts: list[str] = field(default_factory=list)
    _figures: list[hw.figure.Figure] = field(default_factory=list)

    def traffic(self, traffic: Mapping[str, PacketTable | Trace]) -> None:
        """Name packet tables or traces that the page uses; its head then has the size and digest of each."""
        self._traffic |= traffic

    def text(self, markdown: str) -> None:
        """Add paragraphs or headings."""
        self._parts.append(markdown)

    def lead(self, markdown: str) -> None:
        """Add a paragraph or a table that stands at the top, above all others."""
        self._lead.append(markdown)

    def figure(self, figure: hw.figure.Figure) -> None:
        """Add a figure, with its title and note as words for those who do not see it.

        The page shows the PNG: an SVG takes the viewer's fonts, and wider ones are cut off.
        """
        self._figures.append(figure)
        self._parts.append(f"![{figure.title}. {figure.note}]({figure.name}.png)")

    def judge(self, names: Mapping[str, Any]) -> None:
        """Answer the statements whose TOML says how, and lead with what leads.toml names, from the results by name."""
        if info := tables("leads").get(self.name):
            self._lead += _led(info, names)
        for statement in statements_of(self.name).values():
            for answer in statement.answers:
                self.findings += [Finding(statement, *result) for result in judged(answer, names)]

    def mutate(self, others: Mapping[str, _Other], names: Callable[[str, _Other], Mapping[str, Any]]) -> None:
        """Count how many contests that hold do not with another allocator in the place of the one they are about.

        Also how many of those that are set-up stay so: nothing in them hangs on that allocator.

        Args:
            others: the other allocators by name, or what they made of the page's runs.
            names: makes what `judge` takes of the allocator whose place is taken, a contest's, and the other one.
        """
        contests = [finding for finding in self.findings if finding.statement.contest not in ("", "systems")]
        held = [contest for contest in contests if contest.holds]
        given = [contest for contest in contests if contest.verdict.kind is Kind.SET_UP]
        flipped, still = {}, {}
        for heap, other in others.items():
            seen = {
                place: names(place, other) for place in dict.fromkeys(contest.statement.contest for contest in contests)
            }
            flipped[heap] = sum(not _again(item, seen).holds for item in held)
            still[heap] = sum(_again(item, seen).verdict.kind is Kind.SET_UP for item in given)
        self.mutants = {"holds": len(held), "flipped": flipped}
        if given:
            self.mutants |= {"set-up": len(given), "still": still}

    def write(self, folder: Path) -> list[Path]:
        """Write NAME.md and NAME.html, NAME-details.html, NAME.json and each figure as PNG and SVG, all or none.

        Returns the three pages. NAME.json holds what the page found, for the table of all statements.

        Raises:
            HeapwrightError: a figure cannot be drawn or a file cannot be written.
            LookupError: a statement that this page is to answer has no verdict.
        """
        figures = [figure for figure in self._figures if not isinstance(figure, Aside)]
        shown = [f"![{figure.title}]({figure.name}.png)" for figure in figures]
        short = [*self._lead, *shown, _WHOLE.format(name=self.name)]
        with hw.writing.filling(folder) as put:
            for figure in self._figures:
                for name, content in figure.files().items():
                    put(name, content)
            put(f"{self.name}.json", json.dumps(self._found(), indent=1, ensure_ascii=False) + "\n")
            page = _markdown(self.title, short)
            return [
                put(f"{self.name}.md", page),
                put(f"{self.name}.html", html_of(self.title, page)),
                put(f"{self.name}-details.html", html_of(self._whole, self.details())),
            ]

    def details(self) -> str:
        """Tables and text in full, as Markdown."""
        return _markdown(self._whole, [f"What [the page]({self.name}.md) rests on. {self._made()}", *self._parts])

    @property
    def _whole(self) -> str:
        return f"{self.title}: tables and text"

    def _found(self) -> dict[str, Any]:
        """What the first page and the common appendix say of this one."""
        results: dict[str, Any] = {
            "page": self.name,
            "title": self.title,
            "made": self._made(),
            "traffic": [[marked(name), *_told(item), digest(item)] for name, item in self._traffic.items()],
            "footnote": FOOTNOTE if any(name in LAID for name in self._traffic) else "",
            "headings": re.findall("^##+ (.*)", "\n".join(self._parts), re.MULTILINE),
            "findings": [item.as_claim() for item in self.answers()],
        }
        more = ("readings", "at_least", "mutants", "tables", "likeness")
        return results | {key: getattr(self, key) for key in more if getattr(self, key)}

    def answers(self) -> list[Finding]:
        """One finding or more for each statement of the page, in the order of the document."""
        answers: list[Finding] = []
        for id_, statement in statements_of(self.name).items():
            results = [finding for finding in self.findings if finding.statement.id == id_]
            if statement.standing:
                results.append(Finding(statement, statement.standing.why, replace(statement.standing, why="")))
            if not results:
                raise LookupError(f"{self.name}: no verdict on {id_}")
            answers += results
        return answers

    def _made(self) -> str:
        """The command that made it, and with what."""
        packets = any(isinstance(item, PacketTable) for item in self._traffic.values())
        command = f"heapwright reproduce {self.name}{' --packets DIR' if packets else ''}"
        return f"`{command}`, {measuring.versions()}. {_HEAD}"


def _markdown(heading: str, parts: Sequence[str]) -> str:
    return "\n\n".join([f"# {heading}", *parts]) + "\n"


def _again(finding: Finding, seen: Mapping[str, Mapping[str, Any]]) -> Finding:
    """The same with what is seen where another allocator stands in the place that the statement is about."""
    statement = finding.statement
    results = (item for answer in statement.answers for item in judged(answer, seen[statement.contest]))
    return next(Finding(statement, *item) for item in results if item[2] == finding.on)


_LACKING = (AbsentError, TypeError, ZeroDivisionError)
"""What comes of results that are absent, or None or an empty list where no tool counts instructions."""
_ROWS = ("", "read as", "the paper", "here", "ratio")


def _led(lead: Mapping[str, Any], names: Mapping[str, Any]) -> list[str]:
    """The sentence at the top of a page, and its table of the paper's numbers next to ours."""
    info = [sentence(lead["sentence"], names)]
    if "rank" in lead:
        with suppress(*_LACKING):
            theirs, ours = (evaluate(lead["rank"][key], names) for key in ("paper", "here"))
            info.append(f"Rank correlation with the paper, {lead['rank']['of']}: {rank_correlation(theirs, ours):.2f}.")
    return [" ".join(info), table_of(_ROWS, [_compared(row, names) for row in lead["row"]], 2)]


def _compared(row: Mapping[str, Any], names: Mapping[str, Any]) -> tuple[str, ...]:
    """A number of the paper, ours, and the ratio of the two."""
    paper, form = evaluate(row["paper"], names), row.get("form", ",.0f")
    try:
        here = evaluate(row["here"], names)
    except _LACKING:
        return row["what"], row["read"], paper if isinstance(paper, str) else format(paper, form), "–", "–"
    if isinstance(paper, str):
        return row["what"], row["read"], paper, here, "–"
    return row["what"], row["read"], format(paper, form), format(here, form), f"{here / paper:.2f}"


def _told(traffic: PacketTable | Trace) -> tuple[str, str]:
    seconds = (int(traffic.ts_us[-1]) - int(traffic.ts_us[0])) / 1e6 if len(traffic) else 0.0
    return f"{len(traffic):,}", f"{seconds:,.0f}" if seconds else "–"


def table_of(header: Sequence[str], rows: Sequence[Sequence[object]], words: int = 1) -> str:
    """A Markdown table; the first columns, as many as `words`, hold words, the others numbers."""
    lines: list[Sequence[object]] = [header, ["---"] * words + ["---:"] * (len(header) - words), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def html_of(title: str, markdown: str, kinds: Sequence[str] = ()) -> str:
    """A page in HTML; links to pages lead to those in HTML.

    With `kinds`, one of which a row of its tables has, a script shows only the rows with one, or with words.
    """
    import jinja2
    from markdown_it import MarkdownIt

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("heapwright_papers", "template"),
        autoescape=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    markdown = re.sub(r"\]\(([\w-]+)\.md(#[\w-]+)?\)", r"](\1.html\2)", markdown)
    body = _reachable(MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown))
    return environment.get_template("page.html.jinja").render(title=title, body=body, kinds=kinds)


def anchor(heading: str) -> str:
    """What a link to a heading names, as in Markdown."""
    return re.sub(r"[^\w -]", "", html.unescape(re.sub("<.*?>", "", heading)).lower()).replace(" ", "-")


def _reachable(body: str) -> str:
    """Tables, figures and listings in boxes that keys can scroll, each with a name, and parts with anchors."""
    body = body.replace("<pre>", '<pre tabindex="0">').replace("<p><img", '<p tabindex="0"><img')
    body = re.sub("<(h[23])>(.*?)</h", lambda of: f'<{of[1]} id="{anchor(of[2])}">{of[2]}</h', body)
    numbers = count(1)
    opened = re.sub(
        "<table>",
        lambda _: f'<div class="scroll" role="region" aria-label="Table {next(numbers)}" tabindex="0"><table>',
        body,
    )
    return opened.replace("</table>", "</table></div>")
