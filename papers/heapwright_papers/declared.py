"""A page as `pages/NAME.toml` declares it: its text, tables and figures over the results of its runs, by name.

A file has the page's `title`, the `paper` in short, and each `part` in its order, before them each `lead` that stands
at the top. Its statements see, too, the `constants` and what `let` makes of the results, names and their expressions.
The expressions are those of `answers`; they see what the statements' see, and `FUNCTIONS`.

`metrics` has, by what they are of, names and expressions over a replay's metrics: see `metrics`.

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

from heapwright import FREE, HEAP_MAP_STATES, MALLOC, figure, zoo
from heapwright_papers.answers import Absent, AbsentError, evaluate, rank_correlation, sentence
from heapwright_papers.documents import merged, tables
from heapwright_papers.drawings import layout
from heapwright_papers.measuring import CPU, NO_TOOLS, cell, code_bytes
from heapwright_papers.page import AIM, ALIGN, Page, table_of
from heapwright_papers.pictures import drawn
from heapwright_papers.traffic import marked

_Other = TypeVar("_Other")
FUNCTIONS: Mapping[str, Any] = {
    "ALIGN": ALIGN,
    "CPU": CPU,
    "FREE": FREE,
    "HEAP_MAP_STATES": HEAP_MAP_STATES,
    "MALLOC": MALLOC,
    "NO_TOOLS": NO_TOOLS,
    "cell": cell,
    "layout": layout,
    "code_bytes": code_bytes,
    "lines": "\n".join,
    "marked": marked,
    "rank_correlation": rank_correlation,
    "zoo": zoo,
}
"""What the expressions of a page see in addition to the names of `answers`."""


def page_of(name: str) -> Page:
    """The page before anything stands on it."""
    info = tables(f"pages/{name}")
    return Page(name, info["title"], info["paper"])


def constants(name: str, module: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """What the page's TOML has of the paper, by name, and the constants among its module's globals."""
    info = tables(f"pages/{name}").get("constants", {})
    return {**info, **{name: value for name, value in module.items() if name.isupper()}}


def seen(page: str, module: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    """What a page's statements see: its constants, results by name, and what its `let` makes of them.

    What is made of the absent is absent, too.
    """
    known = {**FUNCTIONS, **constants(page, module), **names}
    for name, expression in tables(f"pages/{page}").get("let", {}).items():
        try:
            known[name] = evaluate(expression, known)
        except AbsentError as absent:
            known[name] = Absent(str(absent))
    return known


class Metrics(dict[str, Any]):
    """Values by name, as items and as attributes."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


def metrics(page: str, of: str, result: Mapping[str, Any] = MappingProxyType({}), **more: Any) -> Metrics:
    """These values, and what the page's TOML makes of them as its metrics `of` something."""
    known = Metrics(result, **more)
    for name, expression in tables(f"pages/{page}")["metrics"][of].items():
        known[name] = evaluate(expression, known)
    return known


def fill(page: Page, names: Mapping[str, Any]) -> None:
    """Add what leads and the parts of the page, whose expressions see these names."""
    info = tables(f"pages/{page.name}")
    for item in parts(info.get("lead", ()), names):
        page.lead(str(item))
    for item in parts(info["part"], names):
        if isinstance(item, figure.Figure):
            page.figure(item)
        else:
            page.text(item)


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
        info = merged(tables("pages/shared")[part["like"]], part) if "like" in part else part
        with suppress(AbsentError):
            for known in _known(info, {**FUNCTIONS, **names}):
                if "text" in info:
                    yield sentence(info["text"], known)
                if "rows" in info:
                    header, rows = evaluate(info["header"], known), evaluate(info["rows"], known)
                    yield table_of(header, rows, info.get("words", 1))
                if "figure" in info and evaluate(info["figure"].get("when", "True"), known):
                    yield drawn(info["figure"], known)


def _known(part: Mapping[str, Any], names: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What is seen for each value of `each`, where `when` is true."""
    ((name, values),) = part.get("each", {"": "[None]"}).items()
    for value in evaluate(values, names):
        known = {**names, name: value}
        if evaluate(part.get("when", "True"), known):
            for item, expression in part.get("let", {}).items():
                known[item] = evaluate(expression, known)
            yield known
