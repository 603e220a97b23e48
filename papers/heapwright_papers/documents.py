"""The five source documents as lists of their statements: every table, figure and sentence that can be checked."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from heapwright_papers.verdicts import Kind, Verdict

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Statement:
    """One table, figure or sentence of a document.

    Attributes:
        id: unique in all documents; begins with the name of the page that answers it.
        where: its section, table or figure.
        says: the statement in our words.
        value: the paper's number, "" where it gives none.
        same_as: the id of the statement that it repeats, "" where it is the first.
        standing: the verdict of a statement that no run decides, with what replaces it here; else None.
        answers: how the page's results answer it, on one traffic each; see `heapwright_papers.answers.judged`.
        contest: "proposed" or "systems" where it sets the proposed allocator, or systems', against others, so that it
            hangs on what the paper is read to say of them; on pages with several allocators of the paper's own the one
            that it is about, by the page's name.
        exempt: why it is no contest although it is decided, as where it is about traffic; "" elsewhere.
    """

    id: str
    where: str
    says: str
    value: str = ""
    same_as: str = ""
    standing: Verdict | None = None
    answers: tuple[Mapping[str, Any], ...] = ()
    contest: str = ""
    exempt: str = ""

    @property
    def page(self) -> str:
        """The page that answers it."""
        return self.id.partition("-")[0]


@dataclass(frozen=True)
class Document:
    """A source document: its name, how it is cited, and its statements in their order."""

    name: str
    citation: str
    statements: tuple[Statement, ...]


_TOLD = {"id", "where", "says", "value", "same_as"}
_NAMES = ("network-applications", "modem", "special-pools", "variable-pools", "sensor-nodes")


@cache
def tables(name: str) -> dict[str, Any]:
    """What is in NAME.toml of this package."""
    text = (resources.files("heapwright_papers") / f"{name}.toml").read_text(encoding="utf-8")
    return dict(tomllib.loads(text))


def merged(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """`own` and what else `base` has, tables in tables, too; its own stands first, as a `let` of the base sees that."""
    both = {
        key: merged(base[key], own[key])
        for key in base.keys() & own.keys()
        if isinstance(base[key], dict) and isinstance(own[key], dict)
    }
    return {**own, **{key: value for key, value in base.items() if key not in own}, **both}


@cache
def documents() -> tuple[Document, ...]:
    """All documents, in the order in which the pages name them."""
    contents = {name: tables(f"statements/{name}") for name in _NAMES}
    return tuple(
        Document(name, content["citation"], tuple(map(_statement, _resolved(content["statement"]))))
        for name, content in contents.items()
    )


def statements_of(page: str) -> dict[str, Statement]:
    """The statements that a page answers, by id, in the order of their document; those that repeat one are left out."""
    return {
        statement.id: statement
        for document in documents()
        for statement in document.statements
        if statement.page == page and not statement.same_as
    }


def _resolved(entries: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The entries, those that are like another filled with what that says of its answer and they do not."""
    known = {entry["id"]: entry for entry in entries}

    def full(entry: Mapping[str, Any]) -> dict[str, Any]:
        own = {key: value for key, value in entry.items() if key != "like"}
        if "like" not in entry:
            return own
        like = {key: value for key, value in full(known[entry["like"]]).items() if key not in _TOLD}
        return like | own | ({"let": like["let"] | own.get("let", {})} if "let" in like else {})

    return map(full, entries)


def _statement(entry: dict[str, Any]) -> Statement:
    info = {key: value for key, value in entry.items() if key in _TOLD}
    rest = {key: value for key, value in entry.items() if key not in _TOLD}
    info |= {key: rest.pop(key, "") for key in ("contest", "exempt")}
    if status := rest.pop("status", None):
        return Statement(**info, standing=Verdict(Kind(status), why=rest.pop("here", "")))
    return Statement(**info, answers=tuple(rest.get("answer", [rest] if rest else [])))
