"""What is left of the functions of the core: a `Left`, which is never changed; a `Specialisation` has one a policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ParamSpec, TypeVar

from heapwright.generate import syntax as c
from heapwright.generate.syntax import Key

Result = TypeVar("Result")
Given = ParamSpec("Given")
Change = TypeVar("Change")


@dataclass(eq=False)
class Left:
    """What is left of a function: its body and its run-time parameters.

    Nothing here is ever changed, so that all policies that leave the same of a function share it, with everything that
    was found out about it. `pure`: a call changes nothing; `boolean`: what it returns is 0 or 1; `known`: what follows
    from it, by what else that depends on.
    """

    body: list[c.Stmt]
    parameters: list[c.Parameter]
    pure: bool = False
    boolean: bool = False
    known: dict[object, Any] = field(default_factory=dict)

    def changed(self, rule: Callable[[c.Expr], c.Expr]) -> Left:
        """The function with all its expressions transformed."""
        return Left(c.copied(self.body, rule), self.parameters, self.pure, self.boolean)

    def once(self, key: object, make: Callable[Given, Result], *given: Given.args, **more: Given.kwargs) -> Result:
        """What `make` returns, called once for a key."""
        if key not in self.known:
            self.known[key] = make(*given, **more)
        found: Result = self.known[key]
        return found

    def text(self, style: str, words: object, write: Callable[[], str]) -> str:
        """What `write` returns, called anew where the `words` are others than for the last policy."""
        if style not in self.known or self.known[style][0] != words:
            self.known[style] = words, write()
        found: str = self.known[style][1]
        return found

    def with_calls(
        self, what: str, changes: Mapping[Specialisation, Change], rule: Callable[[c.Call, Change], c.Expr]
    ) -> Left:
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
        return list(dict.fromkeys(call.callee for call in self.calls if call.callee))

    @cached_property
    def names(self) -> frozenset[str]:
        """All names that the body mentions."""
        return frozenset(expr.name for expr in c.all_expressions(self.body) if isinstance(expr, c.Name))

    @cached_property
    def unused(self) -> list[int]:
        """The indices of the parameters that the body does not mention."""
        return [index for index, parameter in enumerate(self.parameters) if parameter.name not in self.names]

    @cached_property
    def constants(self) -> dict[object, c.Named]:
        """All numbers and tables of the policy, and static results, each where it comes last in the body."""
        found: dict[object, c.Named] = {}
        for expr in c.all_expressions(self.body):
            if isinstance(expr, c.Named):
                found.pop(expr.named, None)
                found[expr.named] = expr
        return found


UNDER_WAY = Left([], [])
"""What is left of a function that is being folded, as far as its own calls know."""


@dataclass(eq=False)
class Specialisation:
    """A function of the core for given static arguments, known by its `key`; each policy fills it in anew.

    `left` is what is left of it; `constant` is the result where it is static and nothing else happens. `facts`:
    run-time parameters with a known value; `owner`: the folding that filled it in; `shown`: what of all this a
    caller's folding sees. `name` is final after naming; `boolean`: it is written with the type bool.
    """

    function: c.Function
    key: Key
    statics: dict[str, c.Expr]
    left: Left = UNDER_WAY
    owner: object = None
    entry: bool = False
    facts: dict[str, c.Expr] = field(default_factory=dict)
    constant: c.Expr | None = None
    shown: object = None
    name: str = ""
    boolean: bool = False

    @property
    def body(self) -> list[c.Stmt]:
        """The statements that are left."""
        return self.left.body

    @property
    def parameters(self) -> list[c.Parameter]:
        """The run-time parameters that are left."""
        return self.left.parameters
