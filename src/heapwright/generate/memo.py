"""Folded functions, kept for the next policy that would fold them the same way.

Folding a function asks questions in an order that only the answers determine: what number the policy has at a path,
what is left of a callee. So what was folded stands at the end of a row of answers: who gives the same ones finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from heapwright.generate import syntax as c
from heapwright.generate.syntax import Key, Specialisation, replace
from heapwright.generate.tidy import names_in

MOST_KEPT = 8_000
"""Functions kept, 8 KiB each; with more, all are forgotten. A policy brings about ten new ones."""


class Callee(NamedTuple):
    """The question what is left of a function for static arguments."""

    function: c.Function
    statics: dict[str, c.Expr]


Question: TypeAlias = "c.Path | Callee"
Asked = dict[object, tuple[Question, object]]
"""Questions with their answers, in order, each by what tells it from others."""


class Kept:
    """What folding left of a function, its calls cut off from the specialisations that they called."""

    def __init__(self, target: Specialisation) -> None:
        self.body = target.body
        self.constant = target.constant
        self.pure = target.pure
        self.clean = target.calls is not None
        self.boolean = target.boolean
        self.shown = spelling(target.constant), target.pure, target.boolean, not target.body
        self.names = names_in(target.body)
        self.callees: dict[int, Key] = {}
        self.calling: set[int] = set()
        for stmt in c.all_statements(target.body):
            for expr in c.expressions(stmt):
                self._cut(expr)

    def _cut(self, expr: c.Expr) -> bool:
        """Note the calls in an expression and what they are part of; says whether there are any."""
        if isinstance(expr, c.Call) and expr.callee:
            self.callees[id(expr)] = expr.callee.key
            expr.callee = None
        found = id(expr) in self.callees
        for operand in c.operands(expr):
            found |= self._cut(operand)
        if found:
            self.calling.add(id(expr))
        return found

    def fill(self, target: Specialisation, known: Mapping[Key, Specialisation]) -> None:
        """Give a specialisation this body, for its own, with calls of the `known` ones."""
        calls: list[c.Call] = []
        target.body = c.copied(self.body, lambda expr: self._joined(expr, known, calls))
        target.constant, target.pure, target.boolean = self.constant, self.pure, self.boolean
        target.shown = self.shown
        if self.clean:
            target.calls, target.mentioned = calls, (calls, self.names)
        target.done = True

    def _joined(self, expr: c.Expr, known: Mapping[Key, Specialisation], calls: list[c.Call]) -> c.Expr:
        """The expression with its calls, which are added to `calls`."""
        if id(expr) not in self.calling:
            return expr
        key = self.callees.get(id(expr))
        if key is None or not isinstance(expr, c.Call):
            return c.rebuild(expr, lambda inner: self._joined(inner, known, calls))
        call = replace(expr, callee=known[key])
        calls.append(call)
        call.arguments = [self._joined(argument, known, calls) for argument in expr.arguments]
        return call


@dataclass
class _Fork:
    """A question, and where its answers lead."""

    question: Question
    ways: dict[object, _Fork | Kept] = field(default_factory=dict)


class Memo:
    """All functions kept."""

    def __init__(self) -> None:
        self.ways: dict[object, _Fork | Kept] = {}
        self.count = 0

    def find(self, target: Specialisation, answer: Callable[[Question], object]) -> Kept | None:
        """What is left of a function, where these answers were given before."""
        way = self.ways.get(_start(target))
        while isinstance(way, _Fork):
            way = way.ways.get(answer(way.question))
        return way

    def keep(self, target: Specialisation, asked: Asked) -> Kept:
        """Keep what folding left after these questions."""
        if self.count == MOST_KEPT:
            self.ways, self.count = {}, 0
        self.count += 1
        ways, last = self.ways, _start(target)
        for question, answer in asked.values():
            fork = ways.setdefault(last, _Fork(question))
            assert isinstance(fork, _Fork)
            ways, last = fork.ways, answer
        kept = ways[last] = Kept(target)
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
