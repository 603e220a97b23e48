"""Cleans all functions of a program together, and puts what a helper says in place of its calls.

Parameters that nothing uses go, and functions that only forward, or say no more than their calls.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from typing import TypeVar

from heapwright._generate import syntax as c
from heapwright._generate.dead_code import tidy
from heapwright._generate.program import COMPARISONS, Program, is_boolean, is_pure, number, substitute
from heapwright._generate.residual import Residual, Specialisation
from heapwright._generate.splice import splice
from heapwright._generate.syntax import replace

LONGER = 1
"""Words and operators by which an expression may be longer than the call that it replaces: one more where it does no
more than to call a function that does something."""

Thing = TypeVar("Thing")
Forwarders = dict[Specialisation, tuple[Residual, c.Expr]]
"""Functions that only forward, with what is left of each and the call, argument or number that this comes to."""
Sites = dict[Specialisation, list[c.Call]]


def reachable(entries: Iterable[Specialisation]) -> list[Specialisation]:
    """The entries and everything they call, each once."""
    results: dict[Specialisation, None] = {}
    todo = list(entries)
    while todo:
        target = todo.pop()
        if target not in results:
            results[target] = None
            todo += [call.callee for call in target.left.calls]
    return list(results)


def call_sites(live: Iterable[Specialisation]) -> Sites:
    """All calls of each function."""
    sites: Sites = {}
    for caller in live:
        for call in caller.left.calls:
            sites.setdefault(call.callee, []).append(call)
    return sites


def settle(entries: list[Specialisation], program: Program) -> list[Specialisation]:
    """Clean all reachable functions together; returns those that are left."""
    while True:
        live = reachable(entries)
        changed = [target for target in live if tidy(target, program)]
        if not (_drop_parameters(live, program) | _collapse_forwarders(live, program)) and not changed:
            return reachable(entries)


def inline(entries: list[Specialisation], program: Program) -> list[Specialisation]:
    """Inline what the entries reach, until nothing is left to inline; returns the functions that are left."""
    while True:
        live = settle(entries, program)
        info = {name for target in live for name in re.findall(r"(\w+)\(\)", " ".join(target.function.comments))}
        results: Forwarders = {}
        for target, calls in call_sites(live).items():
            expr = None if target.function.name in info else _expression(target)
            if expr and _may_stand(target, expr, calls, program):
                results[target] = target.left, expr
        redirect(live, results)
        if not results and not splice(live, call_sites(live), info):
            return live


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
        remaining = caller.left.with_calls("dropped", gone, _with_fewer)
        if caller in gone:
            fewer = _without(remaining.parameters, gone[caller])
            remaining = remaining.once(
                ("without", gone[caller]), Residual, remaining.body, fewer, remaining.pure, remaining.boolean
            )
        caller.left = remaining
    return bool(gone)


def _with_fewer(call: c.Call, gone: Collection[int]) -> c.Call:
    return replace(call, arguments=_without(call.arguments, gone))


def _without(things: list[Thing], indices: Collection[int]) -> list[Thing]:
    return [thing for index, thing in enumerate(things) if index not in indices]


# ---- forwarders -----------------------------------------------------------------------------------------------------


def _forwarded(target: Specialisation) -> c.Call | None:
    """The call that is all that is left of a function whose dispatch was folded away."""
    match target.left.body:
        case [c.Return(expr=c.Call() as call) | c.Do(expr=c.Call() as call)] if not _is_accessor(target.function):
            if call.callee is None or call.callee is target:
                return None
        case _:
            return None
    same = c.bare_type(call.callee.function.type) == c.bare_type(target.function.type)
    return call if same and _passes_on(call, target.left.parameters) else None


def _passes_on(call: c.Call, parameters: Iterable[c.Declare]) -> bool:
    """Whether all arguments of a call are numbers or these parameters, none of which it passes twice."""
    variables = [argument for argument in call.arguments if argument.value is None]
    if not all(isinstance(variable, c.Identifier) for variable in variables):
        return False
    names = [variable.name for variable in variables]
    return len(set(names)) == len(names) and set(names) <= {parameter.name for parameter in parameters}


@cache
def _is_accessor(function: c.Function) -> bool:
    """Whether a function is written as a single statement that chooses nothing, and asks nothing on a hook's behalf."""
    match function.body:
        case [c.Return(expr=c.Conditional()) | c.Do(expr=c.Conditional())]:
            return False
        case body:
            return not function.asks and len(body or []) < 2


def _collapse_forwarders(live: list[Specialisation], program: Program) -> bool:
    """Let callers call what a forwarder calls."""
    sites: Sites | None = None
    results: Forwarders = {}
    for target in live:
        if target.entry or len(target.left.body) != 1:
            continue
        if (call := _forwarded(target)) is not None:
            sites = call_sites(live) if sites is None else sites
            if _drops_no_effect(target, call, sites.get(target, []), program):
                results[target] = target.left, call
        elif isinstance(target.left.body[0], c.Return) and isinstance(target.left.body[0].expr, c.Identifier):
            sites = call_sites(live) if sites is None else sites
            if _hands_back(target, target.left.body[0].expr, sites.get(target, [])):
                results[target] = target.left, target.left.body[0].expr
    redirect(live, results)
    return bool(results)


def _drops_no_effect(target: Specialisation, forward: c.Call, calls: list[c.Call], program: Program) -> bool:
    """Whether no caller passes an argument with an effect that the forwarded call does not use."""
    used = {argument.name for argument in forward.arguments if isinstance(argument, c.Identifier)}
    dropped = [i for i, parameter in enumerate(target.left.parameters) if parameter.name not in used]
    return all(is_pure(call.arguments[i], program.pure_opaque) for call in calls for i in dropped)


def _hands_back(target: Specialisation, value: c.Identifier, calls: list[c.Call]) -> bool:
    """Whether a function is left to return its one argument, which is of the same type at every call.

    As an initialiser or an operand it is then converted as the function's result was.
    """
    typed = c.bare_type(target.function.type)
    own = [(parameter.name, c.bare_type(parameter.type)) for parameter in target.left.parameters]
    alike = all(c.bare_type(call.arguments[0].type or "") == typed for call in calls if call.arguments)
    return value.value is None and own == [(value.name, typed)] and alike and not _is_accessor(target.function)


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


def _past(left: Residual, forwarders: Forwarders) -> Residual:
    """A function that calls what forwarders, one behind the other, forward to."""

    def change(expr: c.Expr) -> c.Expr:
        for _ in forwarders:
            if not isinstance(expr, c.Call) or expr.callee not in forwarders:
                break
            forwarder, forward = forwarders[expr.callee]
            given = {p.name: argument for p, argument in zip(forwarder.parameters, expr.arguments, strict=True)}
            put = c.changing(lambda part, given=given: substitute(part, given))(forward)  # type: ignore[misc]
            expr = replace(put, line=expr.line, paren=expr.paren)
        return expr

    return left.changed(change)


# ---- helpers --------------------------------------------------------------------------------------------------------


def _expression(target: Specialisation) -> c.Expr | None:
    """The one expression that a function returns or evaluates, of the type of a call."""
    typed = c.bare_type(target.function.type)
    match [] if target.entry or "COLD" in target.function.storage else target.left.body:
        case [c.Return(expr=c.Expr(type=str(kind)) as expr)] if not isinstance(expr, c.Braces):
            return expr if c.bare_type(kind) == typed else None
        case [c.Do(expr=c.Call() as expr)] if target.function.type == "void" and expr.callee:
            return expr
        case _:
            return None


def _may_stand(target: Specialisation, expr: c.Expr, calls: list[c.Call], program: Program) -> bool:
    """Whether the expression that a helper is may stand for every call of it."""
    parts = c.walk(expr)
    passes_on = isinstance(expr, c.Call) and len(expr.callee.left.body) > 1
    if len(calls) > 1 and len(parts) > 1 + len(target.left.parameters) + LONGER + passes_on:
        return False
    own = {parameter.name for parameter in target.left.parameters}
    if any(_is_bound(part, target, own) for part in parts):
        return False
    return all(_suits(target, expr, call, program) for call in calls)


def _is_bound(part: c.Expr, target: Specialisation, own: Collection[str]) -> bool:
    """Whether a part of the expression that a helper is needs the helper; `own` are the names of its parameters."""
    match part:
        case c.Call(callee=callee):
            return callee is target
        case c.Change() | c.Verbatim() | c.Conditional() | c.Unary(op="&"):
            return True
        case c.Binary(op=op, left=left, right=right) if op in COMPARISONS:  # the parameters are there to convert
            return c.bare_type(left.type or "") != c.bare_type(right.type or "")
        case c.Identifier(name=name, value=None):
            return name not in own
        case _:
            return False


def _suits(target: Specialisation, expr: c.Expr, call: c.Call, program: Program) -> bool:
    """Whether the expression does with these arguments what the call does."""
    passed = expr.arguments if isinstance(expr, c.Call) and expr.callee else []  # converts them as this call does
    for parameter, argument in zip(target.left.parameters, call.arguments, strict=True):
        used = c.names(expr).count(parameter.name)
        atom = not c.operands(argument) and not isinstance(argument, c.Call)
        if used != 1 and not (is_pure(argument, program.pure_opaque) and (atom or used == 0)):
            return False
        given_on = isinstance(argument, c.Literal) and parameter.name in [getattr(item, "name", "") for item in passed]
        if parameter.suffix or not (given_on or c.bare_type(argument.type or "") == c.bare_type(parameter.type)):
            return False
    return True


# ---- what C leaves to the reader -------------------------------------------------------------------------------------


_UNSIGNED = {"uint32_t": "uint32_t", "size_t": "uint32_t", "uintptr_t": "uint32_t", "uint64_t": "uint64_t"}
"""The type of a number next to an operand of a type."""
_ADDITIVE = {"+", "-"}


def write_out(live: Iterable[Specialisation], program: Program) -> None:
    """Write out all functions; a helper that returns 0 or 1 returns a bool."""
    for target in live:
        target.boolean = target.left.boolean and not target.entry and target.function.type == "int"
    for target in live:
        info = [target.boolean, *(callee.boolean for callee in target.left.callees)]
        target.left = target.left.once(("written out", *info), _explicit, target.left, program, target.boolean)


def _explicit(left: Residual, program: Program, boolean: bool) -> Residual:
    """Body with explicit comparisons with zero, numbers of their operand's type, and parentheses for precedence."""
    body = c.copied(left.body, lambda expr: _written(expr, program))
    for stmt in c.all_statements(body):
        match stmt:
            case c.If(test=c.Expr() as test) | c.While(test=c.Expr() as test) | c.For(test=c.Expr() as test):
                stmt.test = _compared(test, program)
            case c.Return(expr=c.Literal(value=int(value)) as expr) if boolean:
                stmt.expr = replace(expr, text="true" if value else "false")
            case _:
                pass
    return Residual(body, left.parameters, left.pure, left.boolean)


def _written(expr: c.Expr, program: Program) -> c.Expr:
    match expr:
        case c.Unary(op="!"):
            return _beside_zero(expr.operand, "==", program) or expr
        case c.Binary(op="&&" | "||"):
            left, right = _compared(expr.left, program), _compared(expr.right, program)
            return replace(expr, left=_apart(left, expr.op), right=_apart(right, expr.op))
        case c.Conditional():
            yes, no = _numbered(expr.yes, expr.no), _numbered(expr.no, expr.yes)
            return replace(expr, test=_apart(_compared(expr.test, program), "?"), yes=yes, no=no)
        case c.Binary():
            left, right = _numbered(expr.left, expr.right), _numbered(expr.right, expr.left)
            return replace(expr, left=_apart(left, expr.op), right=_apart(right, expr.op))
        case _:
            return expr


def _compared(expr: c.Expr, program: Program) -> c.Expr:
    """A condition that is a comparison."""
    compared = None if expr.value is not None else _beside_zero(replace(expr, paren=False), "!=", program)
    return compared or expr


def _beside_zero(expr: c.Expr, op: str, program: Program) -> c.Expr | None:
    """The comparison with zero; None for what is one, and where the type is not known."""
    typed = c.bare_type(expr.type or "")
    if is_boolean(expr) or not (typed.endswith("*") or program.integer(typed)):
        return None
    zero = number(0, _UNSIGNED.get(program.promoted(typed) or "", "int"))
    return c.Binary(op, expr, c.Identifier("NULL") if typed.endswith("*") else zero, line=expr.line, type="int")


def _numbered(expr: c.Expr, beside: c.Expr) -> c.Expr:
    """A number without a sign next to an operand without one."""
    typed = _UNSIGNED.get(c.bare_type(beside.type or ""))
    if typed and isinstance(expr, c.Literal) and expr.text.isdigit() and expr.value is not None:
        return replace(expr, text=number(expr.value, typed).text)
    return expr


def _apart(expr: c.Expr, op: str) -> c.Expr:
    """An operand in parentheses if only precedence shows which operator comes first."""
    alike = isinstance(expr, c.Binary) and (expr.op == op or {expr.op, op} <= _ADDITIVE)
    return replace(expr, paren=True) if isinstance(expr, c.Binary) and expr.op != "," and not alike else expr
