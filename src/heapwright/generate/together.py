"""Cleans all functions of a program together: parameters that nothing uses go, and functions that only forward."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TypeVar

from heapwright.generate import syntax as c
from heapwright.generate.left import Left, Specialisation
from heapwright.generate.program import Program, is_pure, substituted
from heapwright.generate.syntax import replace
from heapwright.generate.tidy import tidy

_FUNCTION = re.compile(r"(\w+)\(\)")
"""A function that a comment speaks of."""

Item = TypeVar("Item")
Forwarders = dict[Specialisation, tuple[Left, c.Expr]]
"""Functions that only forward, with what is left of each and the call, argument or number that this comes to."""


def reachable(entries: Iterable[Specialisation]) -> list[Specialisation]:
    """The entries and everything they call, each once."""
    found: dict[Specialisation, None] = {}
    todo = list(entries)
    while todo:
        target = todo.pop()
        if target not in found:
            found[target] = None
            todo += [call.callee for call in target.left.calls if call.callee]
    return list(found)


def settle(entries: list[Specialisation], program: Program) -> list[Specialisation]:
    """Clean all reachable functions together; returns those that are left."""
    while True:
        live = reachable(entries)
        changed = [target for target in live if tidy(target, program)]
        if not (_drop_parameters(live, program) | _collapse_forwarders(live)) and not changed:
            return reachable(entries)


def call_sites(live: list[Specialisation]) -> dict[Specialisation, list[c.Call]]:
    """All calls of each function."""
    sites: dict[Specialisation, list[c.Call]] = {}
    for caller in live:
        for call in caller.left.calls:
            sites.setdefault(call.callee, []).append(call)
    return sites


def told_in_comments(live: list[Specialisation]) -> set[str]:
    """Functions that a comment on another one speaks of."""
    return {name for target in live for comment in target.function.comments for name in _FUNCTION.findall(comment.text)}


def _drop_parameters(live: list[Specialisation], program: Program) -> bool:
    """Drop parameters that nothing uses, where no argument has an effect; says whether there were any."""
    unused = [target for target in live if target.left.unused and not target.entry]
    sites = call_sites(live) if unused else {}
    gone: dict[Specialisation, tuple[int, ...]] = {}
    for target in unused:
        calls = sites.get(target, [])
        free = [i for i in target.left.unused if all(is_pure(call.arguments[i], program.pure_opaque) for call in calls)]
        if free:
            gone[target] = tuple(free)
    for caller in live if gone else []:
        left = caller.left.with_calls("dropped", gone, _with_fewer)
        if caller in gone:
            fewer = _without(left.parameters, gone[caller])
            left = left.once(("without", gone[caller]), Left, left.body, fewer, left.pure, left.boolean)
        caller.left = left
    return bool(gone)


def _with_fewer(call: c.Call, gone: Sequence[int]) -> c.Call:
    return replace(call, arguments=_without(call.arguments, gone))


def _without(items: list[Item], indices: Sequence[int]) -> list[Item]:
    return [item for index, item in enumerate(items) if index not in indices]


# ---- forwarders -----------------------------------------------------------------------------------------------------


def _forwarded(target: Specialisation) -> c.Call | None:
    """The call that is all that is left of a function whose dispatch was folded away."""
    if len(target.left.body) != 1 or (not target.entry and _is_accessor(target.function)):
        return None
    stmt = target.body[0]
    call = stmt.expr if isinstance(stmt, (c.Return, c.Do)) else None
    if not isinstance(call, c.Call) or call.callee is None or call.callee is target:
        return None
    if c.bare_type(call.callee.function.type) != c.bare_type(target.function.type):
        return None
    names = [argument.name for argument in call.arguments if isinstance(argument, c.Name) and argument.value is None]
    simple = all(isinstance(argument, c.Name) or argument.value is not None for argument in call.arguments)
    own = {parameter.name for parameter in target.parameters}
    return call if simple and set(names) <= own and len(set(names)) == len(names) else None


@cache
def _is_accessor(function: c.Function) -> bool:
    """Whether a function is written as a single statement that chooses nothing, and asks nothing on a hook's behalf."""
    match function.body:
        case _ if function.asks:
            return False
        case [c.Return(expr=c.Conditional()) | c.Do(expr=c.Conditional())]:
            return False
        case body:
            return len(body or []) < 2


def _collapse_forwarders(live: list[Specialisation]) -> bool:
    """Let callers call what a forwarder calls."""
    found = [(target, call) for target in live if (call := _forwarded(target)) is not None]
    inner: Forwarders = {target: (target.left, call) for target, call in found if not target.entry}
    inner |= {target: (target.left, name) for target, name in _handed_back(live)}
    redirect(live, inner)
    return bool(inner)


def redirect(live: Sequence[Specialisation], forwarders: Forwarders) -> None:
    """Let callers do what the functions that they call come to."""
    for caller in live if forwarders else []:
        passed: Forwarders = {}
        for callee in caller.left.callees:
            at: Specialisation | None = callee
            while at in forwarders and at not in passed:
                passed[at] = forwarders[at]
                at = getattr(passed[at][1], "callee", None)
        if passed:
            caller.left = caller.left.once(("redirected", *passed.items()), _past, caller.left, passed)


def _past(left: Left, forwarders: Forwarders) -> Left:
    """A function that calls what forwarders, one behind the other, forward to."""

    def change(expr: c.Expr) -> c.Expr:
        for _ in forwarders:
            if not isinstance(expr, c.Call) or expr.callee not in forwarders:
                break
            forwarder, forward = forwarders[expr.callee]
            given = {p.name: argument for p, argument in zip(forwarder.parameters, expr.arguments, strict=True)}
            expr = replace(substituted(forward, given), line=expr.line, paren=expr.paren)
        return expr

    return left.changed(change)


def _handed_back(live: list[Specialisation]) -> list[tuple[Specialisation, c.Expr]]:
    """Functions that are left to return their one argument, with that, where it is of the same type at every call.

    As an initialiser or an operand it is then converted as the function's result was.
    """
    found: list[tuple[Specialisation, c.Expr]] = []
    sites: dict[Specialisation, list[c.Call]] | None = None
    for target in live:
        match target.body:
            case [c.Return(expr=c.Name(name=name, value=None) as value)] if not target.entry:
                typed = c.bare_type(target.function.type)
                sites = call_sites(live) if sites is None else sites
                given = [call.arguments[0].type for call in sites.get(target, []) if call.arguments]
                own = [(parameter.name, c.bare_type(parameter.type)) for parameter in target.parameters]
                same = own == [(name, typed)] and all(c.bare_type(one or "") == typed for one in given)
                if same and not _is_accessor(target.function):
                    found.append((target, value))
            case _:
                pass
    return found
