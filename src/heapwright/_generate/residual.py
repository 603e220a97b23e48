"""What is left of the functions of the core: a `Residual`, which is never changed; a `Specialisation` has one a policy.

Folded functions are kept for the next policy that would fold them the same way. Folding a function asks questions in an
order that only the answers determine: what number the policy has at a path, what is left of a callee. So what was
folded stands at the end of a row of answers: who gives the same ones finds it, and with it, in `Left.known`, what
became of it when it was cleaned among others, and how that was written. The last whole texts are kept, too: a heap is
often generated again, for a processor or with another level of checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple, ParamSpec, TypeAlias, TypeVar

from heapwright._generate import syntax as c
from heapwright._generate.syntax import Key

MOST_KEPT = 4_000
"""Functions kept, 16 KiB each with what becomes of them; with more, all are forgotten. A policy brings ten new ones."""

MOST_TEXTS = 60
"""Whole texts kept, up to 200 KB each; with more, all are forgotten."""

Result = TypeVar("Result")
Given = ParamSpec("Given")
Change = TypeVar("Change")


@dataclass(eq=False)
class Residual:
    """What is left of a function: its body and its run-time parameters.

    Nothing here is ever changed, so that all policies that leave the same of a function share it, with everything that
    was found out about it. `pure`: a call changes nothing; `boolean`: what it returns is 0 or 1; `known`: what follows
    from it, by what else that depends on.
    """

    body: list[c.Stmt]
    parameters: list[c.Declare]
    pure: bool = False
    boolean: bool = False
    known: dict[object, Any] = field(default_factory=dict)

    def changed(self, rule: Callable[[Any], c.Expr]) -> Residual:
        """The function with all its expressions transformed."""
        return Residual(c.copied(self.body, rule), self.parameters, self.pure, self.boolean)

    def once(self, key: object, make: Callable[Given, Result], *given: Given.args, **more: Given.kwargs) -> Result:
        """What `make` returns, called once for a key."""
        if key not in self.known:
            self.known[key] = make(*given, **more)
        result: Result = self.known[key]
        return result

    def text(self, style: str, words: object, write: Callable[[], str]) -> str:
        """What `write` returns, called again if the `words` are others than for the last policy."""
        if self.known.get(style, (None,))[0] != words:
            self.known[style] = words, write()
        result: str = self.known[style][1]
        return result

    def with_calls(
        self, what: str, changes: Mapping[Specialisation, Change], rule: Callable[[c.Call, Change], c.Expr]
    ) -> Residual:
        """The function with what a rule makes of the calls of some functions; `what`: its name in `known`."""
        own = {callee: changes[callee] for callee in self.callees if callee in changes}

        def changed(expr: c.Expr) -> c.Expr:
            return rule(expr, own[expr.callee]) if isinstance(expr, c.Call) and expr.callee in own else expr

        return self.once((what, *own.items()), self.changed, changed) if own else self

    @cached_property
    def calls(self) -> list[c.Call]:
        """All calls of the core's functions."""
        return [expr for expr in c.all_expressions(self.body) if isinstance(expr, c.Call) and expr.callee]

    @cached_property
    def callees(self) -> list[Specialisation]:
        """The functions of the core that are called, in the order of their first calls."""
        return list(dict.fromkeys(call.callee for call in self.calls))

    @cached_property
    def unused(self) -> list[int]:
        """The indices of the parameters that the body does not mention."""
        names = c.names(*self.body)
        return [index for index, parameter in enumerate(self.parameters) if parameter.name not in names]

    @cached_property
    def constants(self) -> dict[object, c.Named]:
        """All numbers and tables of the policy, and static results, each where it comes last in the body."""
        results = [expr for expr in c.all_expressions(self.body) if isinstance(expr, c.Named)]
        return dict(reversed({expr.named: expr for expr in reversed(results)}.items()))


UNDER_WAY = Residual([], [])
"""What is left of a function that is being folded, as far as its own calls know."""


@dataclass(eq=False)
class Specialisation:
    """A function of the core for given static arguments, known by its `key`; each policy fills it in again.

    `left` is what is left of it; `constant` is the result where it is static and nothing else happens. `facts`:
    run-time parameters with a known value; `owner`: the folding that filled it in; `shown`: what of all this a
    caller's folding sees. `name` is final after naming; `boolean`: it is written with the type bool.
    """

    function: c.Function
    key: Key
    statics: dict[str, c.Expr]
    left: Residual = UNDER_WAY
    owner: object = None
    entry: bool = False
    facts: dict[str, c.Expr] = field(default_factory=dict)
    constant: c.Expr | None = None
    shown: object = None
    name: str = ""
    boolean: bool = False


class Callee(NamedTuple):
    """The question what is left of a function for static arguments."""

    target: Specialisation
    statics: dict[str, c.Expr]


Question: TypeAlias = "c.Path | Callee"
Asked = dict[object, tuple[Question, object]]
"""Questions with their answers, in order, each by its key."""


class Kept(NamedTuple):
    """What folding left of a function."""

    left: Residual
    constant: c.Expr | None
    shown: object


class _Fork(NamedTuple):
    """A question, and where its answers lead."""

    question: Question
    ways: dict[object, _Fork | Kept]


class Memo:
    """All functions kept, for one policy at a time, and in `texts` what was written of whole policies."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._forget()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """The time in which one policy fills in the specialisations; others wait."""
        with self._lock:
            if self.count > MOST_KEPT:
                self._forget()
            if len(self.texts) > MOST_TEXTS:
                self.texts.clear()
            yield

    def _forget(self) -> None:
        self.targets: dict[Key, Specialisation] = {}
        self.ways: dict[object, _Fork | Kept] = {}
        self.shown: dict[object, int] = {}
        self.texts: dict[object, Any] = {}
        self.count = 0

    def target(self, function: c.Function, statics: dict[str, c.Expr]) -> Specialisation:
        """The specialisation for these static arguments, the same for all policies."""
        key: Key = (function.name, *[arg.path if isinstance(arg, c.Place) else arg.value for arg in statics.values()])
        if key not in self.targets:
            self.targets[key] = Specialisation(function, key, statics)
        return self.targets[key]

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
            fork = ways.setdefault(last, _Fork(question, {}))
            assert isinstance(fork, _Fork)
            ways, last = fork.ways, answer
        remaining = target.left
        shown = spelling(target.constant), remaining.pure, remaining.boolean, not remaining.body
        kept = ways[last] = Kept(remaining, target.constant, self.shown.setdefault(shown, len(self.shown)))
        return kept


def _start(target: Specialisation) -> object:
    """What is known of a function before the first question."""
    known = [(name, spelling(expr)) for given in (target.statics, target.facts) for name, expr in given.items()]
    return target.key, len(target.facts), *known


def spelling(expr: c.Expr | None) -> object:
    """All of a static expression but where it stands."""
    if expr is None:
        return None
    parts = (getattr(expr, name) for name in ("value", "type", "paren", *expr.words, *expr.parts))
    return type(expr), *(spelling(part) if isinstance(part, c.Expr) else part for part in parts)
