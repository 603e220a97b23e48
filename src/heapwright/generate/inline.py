"""Puts what a helper says in place of its calls where that is no longer, or where there is one call."""

from __future__ import annotations

from heapwright.generate import syntax as c
from heapwright.generate.left import Specialisation
from heapwright.generate.program import Program, is_comparison, is_pure
from heapwright.generate.splice import splice
from heapwright.generate.together import Forwarders, call_sites, redirect, settle, told_in_comments

LONGER = 1
"""Words and operators by which an expression may be longer than the call that it replaces: one more where it does no
more than to call a function that does something."""


def inline(entries: list[Specialisation], program: Program) -> list[Specialisation]:
    """Inline what the entries reach, until nothing is left to inline; returns the functions that are left."""
    while True:
        live = settle(entries, program)
        found = _helpers(live, program)
        redirect(live, found)
        if not found and not splice(live):
            return live


def _helpers(live: list[Specialisation], program: Program) -> Forwarders:
    """Helpers that are one expression, with that, where it may stand for every call of them."""
    sites = call_sites(live)
    told = told_in_comments(live)
    found: Forwarders = {}
    for target in live:
        expr = _expression(target)
        calls = sites.get(target, [])
        if expr is None or target.function.name in told or not calls:
            continue
        passes_on = isinstance(expr, c.Call) and len(expr.callee.left.body) > 1
        short = len(calls) == 1 or len(c.walk(expr)) <= 1 + len(target.parameters) + LONGER + passes_on
        if short and all(_suits(target, expr, call, program) for call in calls):
            found[target] = target.left, expr
    return found


def _expression(target: Specialisation) -> c.Expr | None:
    """The one expression that a function returns or evaluates, of the type of a call."""
    if target.entry or len(target.left.body) != 1 or "COLD" in target.function.storage:
        return None
    match target.left.body[0]:
        case c.Return(expr=c.Expr() as expr) if not isinstance(expr, c.Braces):
            typed = c.bare_type(target.function.type)
            return expr if c.bare_type(expr.type or "") == typed else None
        case c.Do(expr=c.Call() as expr) if target.function.type == "void" and expr.callee:
            return expr
        case _:
            return None


def _suits(target: Specialisation, expr: c.Expr, call: c.Call, program: Program) -> bool:
    """Whether the expression does with these arguments what the call does."""
    parts = c.walk(expr)
    own = {parameter.name for parameter in target.parameters}
    if any(isinstance(part, c.Call) and part.callee is target for part in parts):
        return False
    if any(isinstance(part, (c.Change, c.Verbatim, c.Conditional)) for part in parts):
        return False
    if any(isinstance(part, c.Unary) and part.op == "&" for part in parts):
        return False
    compared = [part for part in parts if isinstance(part, c.Binary) and is_comparison(part.op)]
    if any(c.bare_type(part.left.type or "") != c.bare_type(part.right.type or "") for part in compared):
        return False  # the parameters are there to convert
    if any(isinstance(part, c.Name) and part.value is None and part.name not in own for part in parts):
        return False
    for parameter, argument in zip(target.parameters, call.arguments, strict=True):
        used = sum(isinstance(part, c.Name) and part.name == parameter.name for part in parts)
        atom = not c.operands(argument) and not isinstance(argument, c.Call)
        if used != 1 and not (is_pure(argument, program.pure_opaque) and (atom or used == 0)):
            return False
        passed = isinstance(argument, c.Literal) and _is_passed(expr, parameter.name)
        if parameter.suffix or not (passed or c.bare_type(argument.type or "") == c.bare_type(parameter.type)):
            return False
    return True


def _is_passed(expr: c.Expr, name: str) -> bool:
    """Whether an expression is a call that gets the parameter as it is, and converts it as this call does."""
    given = expr.arguments if isinstance(expr, c.Call) and expr.callee else []
    return any(isinstance(argument, c.Name) and argument.name == name for argument in given)
