"""The five source documents as lists of their statements: every table, figure and sentence that can be checked."""

from __future__ import annotations

import sys
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
        id: unique in all documents; begins with the name of its page.
        page: the page that answers it.
        where: its section, table or figure.
        says: the statement in our words.
        value: the paper's number, "" where it gives none.
        same_as: the id of the statement that it repeats, "" where it is the first.
        standing: the verdict of a statement that no run decides, with what stands in for it here; else None.
    """

    id: str
    page: str
    where: str
    says: str
    value: str = ""
    same_as: str = ""
    standing: Verdict | None = None


@dataclass(frozen=True)
class Document:
    """A source document: its name, how it is cited, and its statements in their order."""

    name: str
    citation: str
    statements: tuple[Statement, ...]


_CITATIONS = {
    "network-applications": "Mamagkakis, Baloukas, Atienza, Catthoor, Soudris and Thanailakis 2006, “Reducing memory "
    "fragmentation in network applications with dynamic memory allocators optimized for performance”",
    "modem": "Peintner, Bukhatwa and Patel, “Analysing dynamic memory allocation in embedded systems for multi-channel "
    "modems”",
    "special-pools": "Mamagkakis, Soudris and Catthoor 2007, “Middleware design optimization of wireless protocols "
    "based on the exploitation of dynamic input patterns”",
    "variable-pools": "Elsayed and Galal, “Building better memory management for high performance wired/wireless "
    "networks: Part 2”",
    "sensor-nodes": "Das, Singh, Singh and Kumar, “A low overhead dynamic memory management system for constrained "
    "memory embedded systems”",
}


@cache
def documents() -> tuple[Document, ...]:
    """All documents, in the order in which the pages name them."""
    folder = resources.files("heapwright_papers") / "statements"
    return tuple(
        Document(name, citation, _statements(tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8"))))
        for name, citation in _CITATIONS.items()
    )


def statements_of(page: str) -> dict[str, Statement]:
    """The statements that a page answers, by id, in the order of their document; those that repeat one are left out."""
    return {
        one.id: one for document in documents() for one in document.statements if one.page == page and not one.same_as
    }


def _statements(content: dict[str, Any]) -> tuple[Statement, ...]:
    return tuple(_statement(entry) for entry in content.get("statement", []))


def _statement(entry: dict[str, Any]) -> Statement:
    status, here = entry.pop("status", None), entry.pop("here", "")
    return Statement(**entry, standing=Verdict(Kind(status), why=here) if status else None)
