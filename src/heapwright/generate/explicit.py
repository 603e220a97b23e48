"""Writes out what C leaves to the reader: that a condition is a comparison, and that a number has no sign."""

from __future__ import annotations

from collections.abc import Iterable

from heapwright.generate import syntax as c
from heapwright.generate.left import Left, Specialisation
from heapwright.generate.program import Program, number
from heapwright.generate.syntax import replace
from heapwright.generate.tidy import is_boolean

_UNSIGNED = {"uint32_t": "uint32_t", "size_t": "uint32_t", "uintptr_t": "uint32_t", "uint64_t": "uint64_t"}
"""The type of a number beside an operand of a type."""
_ADDITIVE = {"+", "-"}


def write_out(live: Iterable[Specialisation], program: Program) -> None:
    """Write out all functions; a helper that returns 0 or 1 returns a bool."""
    for target in live:
        target.boolean = target.left.boolean and not target.entry and target.function.type == "int"
    for target in live:
        told = [target.boolean, *(callee.boolean for callee in target.left.callees)]
        target.left = target.left.once(("written out", *told), _explicit, target.left, program, target.boolean)


def _explicit(left: Left, program: Program, boolean: bool) -> Left:
    """The same body with conditions compared with zero, numbers typed as what they meet, and no precedence to know."""
    body = c.copied(left.body, lambda expr: _written(expr, program))
    for stmt in c.all_statements(body):
        match stmt:
            case c.If(test=c.Expr() as test) | c.While(test=c.Expr() as test) | c.For(test=c.Expr() as test):
                stmt.test = _compared(test, program)
            case c.Return(expr=c.Literal(value=int(value)) as expr) if boolean:
                stmt.expr = replace(expr, text="true" if value else "false")
            case _:
                pass
    return Left(body, left.parameters, left.pure, left.boolean)


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
    zero = None if is_boolean(expr) else _zero(expr, program)
    return c.Binary(op, expr, zero, line=expr.line, type="int") if zero else None


def _zero(expr: c.Expr, program: Program) -> c.Expr | None:
    """What an expression of this type is compared with; None where the type is not known."""
    typed = c.bare_type(expr.type or "")
    if typed.endswith("*"):
        return c.Name("NULL")
    if program.integer(typed) is None:
        return None
    return number(0, _UNSIGNED.get(program.promoted(typed) or "", "int"))


def _numbered(expr: c.Expr, beside: c.Expr) -> c.Expr:
    """A number without a sign beside an operand without one."""
    typed = _UNSIGNED.get(c.bare_type(beside.type or ""))
    if typed and isinstance(expr, c.Literal) and expr.text.isdigit() and expr.value is not None:
        return replace(expr, text=number(expr.value, typed).text)
    return expr


def _apart(expr: c.Expr, op: str) -> c.Expr:
    """An operand in parentheses where only precedence would tell which operator comes first."""
    alike = isinstance(expr, c.Binary) and (expr.op == op or {expr.op, op} <= _ADDITIVE)
    return replace(expr, paren=True) if isinstance(expr, c.Binary) and expr.op != "," and not alike else expr
