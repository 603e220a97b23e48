"""Folded functions, kept for the next policy that would fold them the same way.

Folding a function asks questions in an order that only the answers determine: what number the policy has at a path,
what is left of a callee. So what was folded stands at the end of a row of answers: who gives the same ones finds it,
and with it, in `Left.known`, what became of it when it was cleaned among others, and how that was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import NamedTuple, TypeAlias

from heapwright.generate import syntax as c
from heapwright.generate.left import Left, Specialisation
from heapwright.generate.syntax import Key

MOST_KEPT = 4_000
"""Functions kept, 16 KiB each with what becomes of them; with more, all are forgotten. A policy brings ten new ones."""


class Callee(NamedTuple):
    """The question what is left of a function for static arguments."""

    target: Specialisation
    statics: dict[str, c.Expr]


Question: TypeAlias = "c.Path | Callee"
Asked = dict[object, tuple[Question, object]]
"""Questions with their answers, in order, each by what tells it from others."""


class Kept(NamedTuple):
    """What folding left of a function."""

    left: Left
    constant: c.Expr | None
    shown: object


@dataclass
class _Fork:
    """A question, and where its answers lead."""

    question: Question
    ways: dict[object, _Fork | Kept] = field(default_factory=dict)


class Memo:
    """All functions kept, for one policy at a time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._forget()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """The time in which one policy fills in the specialisations; others wait."""
        with self._lock:
            if self.count > MOST_KEPT:
                self._forget()
            yield

    def _forget(self) -> None:
        self.targets: dict[Key, Specialisation] = {}
        self.ways: dict[object, _Fork | Kept] = {}
        self.shown: dict[object, int] = {}
        self.count = 0

    def target(self, function: c.Function, statics: dict[str, c.Expr]) -> Specialisation:
        """The specialisation for these static arguments, the same for all policies."""
        key: Key = (function.name, *[arg.path if isinstance(arg, c.Place) else arg.value for arg in statics.values()])
        found = self.targets.get(key)
        if found is None:
            found = self.targets[key] = Specialisation(function, key, statics)
        return found

    def find(self, target: Specialisation, answer: Callable[[Question], object]) -> Kept | None:
        """What is left of a function, where these answers were given before."""
        way = self.ways.get(_start(target))
        while isinstance(way, _Fork):
            way = way.ways.get(answer(way.question))
        return way

    def keep(self, target: Specialisation, asked: Asked) -> Kept:
        """Keep what folding left after these questions."""
        self.count += 1
        ways, last = self.ways, _start(target)
        for question, answer in asked.values():
            fork = ways.setdefault(last, _Fork(question))
            assert isinstance(fork, _Fork)
            ways, last = fork.ways, answer
        left = target.left
        shown = spelling(target.constant), left.pure, left.boolean, not left.body
        number = self.shown.setdefault(shown, len(self.shown))
        kept = ways[last] = Kept(left, target.constant, number)
        return kept


def _start(target: Specialisation) -> object:
    """What is known of a function before anything is asked."""
    known = [(name, spelling(expr)) for given in (target.statics, target.facts) for name, expr in given.items()]
    return target.key, len(target.facts), *known


def spelling(expr: c.Expr | None) -> object:
    """All of a static expression but where it stands."""
    if expr is None:
        return None
    parts = vars(expr).items()
    return type(expr), *(spelling(part) if isinstance(part, c.Expr) else part for key, part in parts if key != "line")
