"""A page as `pages/NAME.toml` declares it: its text, tables and figures over the results of its runs, by name.

A file has the page's `title`, the `paper` in short, `constants` that its statements see, too, and each `part` in its
order. The expressions are those of `answers`; they see what the statements' see, and `FUNCTIONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from heapwright_papers.answers import AbsentError, evaluate, sentence
from heapwright_papers.documents import merged, tables
from heapwright_papers.measuring import CPU, cell
from heapwright_papers.page import Page
from heapwright_papers.pictures import drawn
from heapwright_papers.traffic import marked

FUNCTIONS: Mapping[str, Callable[..., Any] | str] = {"CPU": CPU, "cell": cell, "marked": marked}
"""What the expressions of a page see beside those of `answers`."""


def page_of(name: str) -> Page:
    """The page before anything stands on it."""
    told = tables(f"pages/{name}")
    return Page(name, told["title"], told["paper"])


def constants(name: str) -> dict[str, Any]:
    """What the page's TOML tells of the paper: tables and numbers by name."""
    return dict(tables(f"pages/{name}")["constants"])


def fill(page: Page, names: Mapping[str, Any]) -> None:
    """Add the parts of the page, whose expressions see these names.

    A part has, each if it is there, in this order: `text`, a sentence; a table of `header` and `rows`, expressions,
    whose first columns, as many as `words`, hold words; a `figure`, see `pictures`. It stands there for each value of a
    name that `each` has; unless `when`, an expression, is false or asks for what is absent; `let` has names and their
    expressions. It is `like` a part that `shared.toml` has by that name, but for the keys that it has itself.
    """
    for part in tables(f"pages/{page.name}")["part"]:
        told = merged(tables("pages/shared")[part["like"]], part) if "like" in part else part
        with suppress(AbsentError):
            for known in _known(told, {**FUNCTIONS, **names}):
                _add(page, told, known)


def _known(part: Mapping[str, Any], names: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What is seen for each value of `each`, where `when` is true."""
    ((name, values),) = part.get("each", {"": "[None]"}).items()
    for value in evaluate(values, names):
        known = {**names, name: value}
        if evaluate(part.get("when", "True"), known):
            for one, expression in part.get("let", {}).items():
                known[one] = evaluate(expression, known)
            yield known


def _add(page: Page, part: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    if "text" in part:
        page.text(sentence(part["text"], known))
    if "rows" in part:
        page.table(evaluate(part["header"], known), evaluate(part["rows"], known), part.get("words", 1))
    if "figure" in part and evaluate(part["figure"].get("when", "True"), known):
        page.figure(drawn(part["figure"], known))
