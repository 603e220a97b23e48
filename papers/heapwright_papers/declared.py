"""A page as `pages/NAME.toml` declares it: its text, tables and figures over the results of its runs, by name.

A file has the page's `title`, the `paper` in short, `constants` that its statements see, too, and each `part` in its
order, before them each `lead` that stands at the top. The expressions are those of `answers`; they see what the
statements' see, and `FUNCTIONS`.

A part has, each if it is there, in this order: `text`, a sentence; a table of `header` and `rows`, expressions, whose
first columns, as many as `words`, hold words; a `figure`, see `pictures`. It stands there for each value of a name that
`each` has; unless `when`, an expression, is false or asks for what is absent; `let` has names and their expressions. It
is `like` a part that `shared.toml` has by that name, but for the keys that it has itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, TypeVar

from heapwright import figure
from heapwright_papers.answers import AbsentError, evaluate, rank_correlation, sentence
from heapwright_papers.documents import merged, tables
from heapwright_papers.measuring import CPU, cell
from heapwright_papers.page import AIM, ALIGN, Page, table_of
from heapwright_papers.pictures import drawn
from heapwright_papers.traffic import marked

_Other = TypeVar("_Other")
FUNCTIONS: Mapping[str, Callable[..., Any] | str | int] = {
    "ALIGN": ALIGN,
    "CPU": CPU,
    "cell": cell,
    "lines": "\n".join,
    "marked": marked,
    "rank_correlation": rank_correlation,
}
"""What the expressions of a page see beside those of `answers`."""


def page_of(name: str) -> Page:
    """The page before anything stands on it."""
    told = tables(f"pages/{name}")
    return Page(name, told["title"], told["paper"])


def constants(name: str, module: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """What the page's TOML tells of the paper, by name, and the constants among its module's globals."""
    told = tables(f"pages/{name}").get("constants", {})
    return {**told, **{name: value for name, value in module.items() if name.isupper()}}


def fill(page: Page, names: Mapping[str, Any]) -> None:
    """Add what leads and the parts of the page, whose expressions see these names."""
    told = tables(f"pages/{page.name}")
    for one in parts(told.get("lead", ()), names):
        page.lead(str(one))
    for one in parts(told["part"], names):
        if isinstance(one, figure.Figure):
            page.figure(one)
        else:
            page.text(one)


def finish(
    page: Page,
    names: Mapping[str, Any],
    more: Mapping[str, Any],
    others: Mapping[str, _Other],
    with_other: Callable[[str, _Other], Mapping[str, Any]],
) -> Page:
    """Judge a page's statements by these names, as `Page.judge` and `Page.mutate`; its parts see `more`, too."""
    page.judge(names)
    page.mutate(others, with_other)
    fill(page, {**names, **more, "mutants": page.mutants, "AIM": AIM})
    return page


def parts(declared: Sequence[Mapping[str, Any]], names: Mapping[str, Any]) -> Iterator[str | figure.Figure]:
    """Text and tables as Markdown, and figures, in their order."""
    for part in declared:
        told = merged(tables("pages/shared")[part["like"]], part) if "like" in part else part
        with suppress(AbsentError):
            for known in _known(told, {**FUNCTIONS, **names}):
                if "text" in told:
                    yield sentence(told["text"], known)
                if "rows" in told:
                    header, rows = evaluate(told["header"], known), evaluate(told["rows"], known)
                    yield table_of(header, rows, told.get("words", 1))
                if "figure" in told and evaluate(told["figure"].get("when", "True"), known):
                    yield drawn(told["figure"], known)


def _known(part: Mapping[str, Any], names: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What is seen for each value of `each`, where `when` is true."""
    ((name, values),) = part.get("each", {"": "[None]"}).items()
    for value in evaluate(values, names):
        known = {**names, name: value}
        if evaluate(part.get("when", "True"), known):
            for one, expression in part.get("let", {}).items():
                known[one] = evaluate(expression, known)
            yield known
