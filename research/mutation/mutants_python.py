"""Mutants: every module of the package with one small change, as `mutate.py` tries them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

from changed import PACKAGE

Put = Callable[[Any], None]

OTHERS: dict[type, tuple[type, ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.And: (ast.Or,), ast.Or: (ast.And,),
    ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.FloorDiv,), ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,), ast.Mod: (ast.FloorDiv,), ast.Pow: (ast.Mult,), ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,), ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd,), ast.BitXor: (ast.BitAnd,),
}  # fmt: skip
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list"}
UNTOUCHED = {"annotation", "returns", "decorator_list", "format_spec"}


def variants(node: ast.AST, message: bool) -> Iterator[ast.AST]:
    """What may stand where `node` does; wording of messages stays."""
    if isinstance(node, ast.Constant):
        yield from other_constants(node, message)
    elif isinstance(node, ast.stmt):
        yield from other_statements(node)
    else:
        yield from other_expressions(node)


def other_constants(node: ast.Constant, message: bool) -> Iterator[ast.AST]:
    match node.value:
        case bool(value):
            yield ast.Constant(not value)
        case int(value):
            yield from (ast.Constant(other) for other in ((value + 1, value - 1) if value > 1 else (value + 1,)))
        case float(value):
            yield ast.Constant(1.5 * value + 1)
        case str(value) if value and not message:
            yield ast.Constant("XX" + value)


def other_expressions(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare(left, ops, comparators):
            for k, op in enumerate(ops):
                yield from (ast.Compare(left, [*ops[:k], o(), *ops[k + 1 :]], comparators) for o in OTHERS[type(op)])
        case ast.BinOp(left, op, right) if not is_text(left):
            yield from (ast.BinOp(left, o(), right) for o in OTHERS.get(type(op), ()))
        case ast.BoolOp(op, values):
            yield from (ast.BoolOp(o(), values) for o in OTHERS[type(op)])
            rests = ([*values[:k], *values[k + 1 :]] for k in range(len(values)))
            yield from (rest[0] if len(rest) == 1 else ast.BoolOp(op, rest) for rest in rests)
        case ast.UnaryOp(_, operand):
            yield operand
        case ast.IfExp(test, body, orelse):
            yield ast.IfExp(test, orelse, body)
        case ast.Slice(lower, upper, step):
            yield from (ast.Slice(*(None if k == cut else part for k, part in enumerate((lower, upper, step))))
                        for cut, old in enumerate((lower, upper, step)) if old)  # fmt: skip
        case ast.Call(ast.Name(name), args, keywords) if name in CALLS:
            yield ast.Call(ast.Name(CALLS[name], ast.Load()), args, [] if name == "sorted" else keywords)
        case ast.comprehension(target, over, tests, is_async):
            yield ast.comprehension(target, all_but_last(over), tests, is_async)
            for k, test in enumerate(tests):
                yield ast.comprehension(target, over, [*tests[:k], negated(test), *tests[k + 1 :]], is_async)


def other_statements(node: ast.stmt) -> Iterator[ast.AST]:
    match node:
        case ast.For(target, over, body, orelse):
            yield ast.For(target, all_but_last(over), body, orelse)
        case ast.If(test, body, orelse) | ast.While(test, body, orelse):
            yield type(node)(negated(test), body, orelse)
        case ast.Return(ast.expr() as value) if ast.unparse(value) != "None":
            yield ast.Return(ast.Constant(None))
        case ast.AugAssign(target, op, value):
            yield from (ast.AugAssign(target, o(), value) for o in OTHERS.get(type(op), ()))
            yield ast.Pass()
        case ast.Expr(ast.Call()) | ast.Continue() | ast.Break() | ast.Raise():
            yield ast.Pass()


def is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def all_but_last(over: ast.expr) -> ast.expr:
    return ast.parse(f"list({ast.unparse(over)})[:-1]", mode="eval").body


def negated(test: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), test)


class Mutant(NamedTuple):
    """The change of that number of a file, the lines of the statement that it changes, and the first of these."""

    path: Path
    number: int
    lines: range
    line: str
    before: str
    after: str

    @property
    def change(self) -> str:
        """What is changed, at any line of its file."""
        return f"{self.path.relative_to(PACKAGE)}: {self.line}: {self.before} => {self.after}"

    def __str__(self) -> str:
        where = f"{self.path.relative_to(PACKAGE)}:{self.lines.start}"
        return f"{where} (change {self.number}): {self.before} => {self.after}"

    def code(self) -> CodeType:
        """The changed module."""
        tree = ast.parse(self.path.read_bytes())
        _, _, after, put = next(islice(changes(tree, range(0)), self.number, None))
        put(after)
        return compile(ast.fix_missing_locations(tree), self.path, "exec")


def changes(node: ast.AST, lines: range, message: bool = False) -> Iterator[tuple[range, ast.AST, ast.AST, Put]]:
    """All changes inside a node: lines of the statement, the place before and after, and what puts it there."""
    for field, value in ast.iter_fields(node):
        for index, child in enumerate(value if isinstance(value, list) else [value]):
            if field in UNTOUCHED or not isinstance(child, ast.AST) or means_nothing(child) or asserts(node, field):
                continue
            here = own_lines(child) if isinstance(child, ast.stmt) else lines
            put = partial(value.__setitem__, index) if isinstance(value, list) else partial(setattr, node, field)
            yield from ((here, child, ast.copy_location(after, child), put) for after in variants(child, message))
            yield from changes(child, here, message or is_message(child))


def means_nothing(node: ast.AST) -> bool:
    """Whether a node does nothing when it runs: imports, docstrings, what is there for the type checker."""
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    typing = isinstance(node, ast.If) and ast.unparse(node.test).startswith(("TYPE_CHECKING", "sys.version_info"))
    return docstring or typing or isinstance(node, ast.Import | ast.ImportFrom)


def asserts(node: ast.AST, field: str) -> bool:
    """Whether that field of a node says only what has to be so: that `zip` is given as many of each."""
    return field == "keywords" and isinstance(node, ast.Call) and ast.unparse(node.func) == "zip"


def is_message(node: ast.AST) -> bool:
    output = isinstance(node, ast.keyword) and node.arg == "description"
    return output or isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr)


def own_lines(statement: ast.stmt) -> range:
    """The lines of a statement without those of the statements in it."""
    body = getattr(statement, "body", None)
    end = max(body[0].lineno, statement.lineno + 1) if body else (statement.end_lineno or 0) + 1
    return range(statement.lineno, end)


def mutants(path: Path) -> list[Mutant]:
    result = changes(ast.parse(path.read_bytes()), range(0))
    written = ["", *path.read_text(encoding="utf-8").splitlines()]
    return [
        Mutant(
            path,
            number,
            lines,
            written[lines.start].strip(),
            *(ast.unparse(item).partition("\n")[0] for item in (before, after)),
        )
        for number, (lines, before, after, _) in enumerate(result)
    ]
