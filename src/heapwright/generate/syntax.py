"""The part of C that the core is written in, as a tree: CONTRIBUTING.md has its grammar.

Source trees are never changed; the specialiser builds new ones, whose expressions also carry what is known about them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, TypeVar

from heapwright.files.errors import HeapwrightError

WORD = re.compile(r"[A-Za-z_]\w*")

Path = tuple["str | int", ...]
Key = tuple[object, ...]
"""What tells specialisations apart: the function's name and its static arguments."""
Node = TypeVar("Node")


def replace(node: Node, **changes: object) -> Node:
    """A copy of a node with some members changed: dataclasses.replace without its checks, at a third of its time."""
    copy = object.__new__(type(node))
    copy.__dict__.update(node.__dict__, **changes)
    return copy


class GrammarError(HeapwrightError):
    """Source that breaks the grammar in CONTRIBUTING.md: `file`, `line` (from 1) and `what` is wrong there."""

    def __init__(self, file: str, line: int, what: str) -> None:
        super().__init__(f"{file}:{line}: {what}")
        self.file = file
        self.line = line
        self.what = what


# ---- types ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Integer:
    """An integer type of the target; `bits` is 0 where it differs between targets (size_t)."""

    bits: int
    signed: bool

    def holds(self, value: int) -> bool:
        """Whether the value is representable; unknown widths hold what 32 bits hold."""
        return self.wrap(value) == value

    def wrap(self, value: int) -> int:
        """The value converted to this type, modulo 2 to the width."""
        bits = self.bits or 32
        value &= (1 << bits) - 1
        return value - (1 << bits) if self.signed and value >> bits - 1 else value


_QUALIFIERS = ("const", "volatile", "restrict", "static")
INT = Integer(32, True)
INTEGERS = {
    "bool": Integer(1, False),
    "_Bool": Integer(1, False),
    "char": Integer(8, True),
    "signed char": Integer(8, True),
    "unsigned char": Integer(8, False),
    "short": Integer(16, True),
    "unsigned short": Integer(16, False),
    "int": INT,
    "unsigned": Integer(32, False),
    "unsigned int": Integer(32, False),
    "long long": Integer(64, True),
    "unsigned long long": Integer(64, False),
    "size_t": Integer(0, False),
    "uintptr_t": Integer(0, False),
} | {
    f"{'' if signed else 'u'}int{bits}_t": Integer(bits, signed) for bits in (8, 16, 32, 64) for signed in (True, False)
}


@lru_cache(maxsize=1024)
def bare_type(text: str) -> str:
    """A type's text without qualifiers and with single spaces: `const uint8_t *` is `uint8_t *`."""
    words = text.replace("*", " * ").split()
    return " ".join(word for word in words if word not in _QUALIFIERS).replace("* *", "**")


# ---- expressions ----------------------------------------------------------------------------------------------------


@dataclass(eq=False, kw_only=True)
class Expr:
    """An expression. `paren`: the source has it in parentheses. `value` and `type` are known after specialisation.

    A kind says which of its members are its operands (`inner`), or which one is the list of them (`row`).
    """

    line: int = 0
    paren: bool = False
    value: int | None = None
    type: str | None = None
    inner: ClassVar[tuple[str, ...]] = ()
    row: ClassVar[str] = ""

    def __init_subclass__(cls, inner: tuple[str, ...] = (), row: str = "") -> None:
        cls.inner, cls.row = inner, row


@dataclass(eq=False)
class Name(Expr):
    """A variable, enumerator or object-like macro; `origin` is the initialiser of a static variable."""

    name: str
    origin: Expr | None = None


@dataclass(eq=False)
class Literal(Expr):
    """A number, character or string, or true or false."""

    text: str


@dataclass(eq=False)
class Unary(Expr, inner=("operand",)):
    """One of ! ~ - + * & before an operand."""

    op: str
    operand: Expr


@dataclass(eq=False)
class Binary(Expr, inner=("left", "right")):
    """Two operands, `&&`, `||` and the comma included."""

    op: str
    left: Expr
    right: Expr


@dataclass(eq=False)
class Change(Expr):
    """What changes its `target`."""

    op: str
    target: Expr


@dataclass(eq=False)
class Assign(Change, inner=("target", "source")):
    """An assignment, `op` being = or += and the like."""

    source: Expr


@dataclass(eq=False)
class Update(Change, inner=("target",)):
    """++ or --, before or after."""

    prefix: bool


@dataclass(eq=False)
class Conditional(Expr, inner=("test", "yes", "no")):
    """test ? yes : no."""

    test: Expr
    yes: Expr
    no: Expr


@dataclass(eq=False)
class Call(Expr, row="arguments"):
    """A call by name; `callee` is the `left.Specialisation` called, None outside the core (macros, builtins)."""

    name: str
    arguments: list[Expr]
    callee: Any = None


@dataclass(eq=False)
class Index(Expr, inner=("base", "index")):
    """base[index]."""

    base: Expr
    index: Expr


@dataclass(eq=False)
class Member(Expr, inner=("base",)):
    """base.name or base->name."""

    base: Expr
    name: str
    arrow: bool


@dataclass(eq=False)
class Cast(Expr, inner=("operand",)):
    """(to)operand."""

    to: str
    operand: Expr


@dataclass(eq=False)
class Verbatim(Expr):
    """sizeof, _Alignof and offsetof of types: kept as written."""

    text: str


@dataclass(eq=False)
class Braces(Expr, row="items"):
    """An initialiser list; `to` is the type where it is a compound literal."""

    items: list[Expr]
    to: str = ""


@dataclass(eq=False)
class Named(Expr):
    """What becomes a named constant: it is of the policy, or of its part, at a `path`."""

    path: Path

    @property
    def named(self) -> object:
        """What tells it from others that get names."""
        return type(self).__name__, self.path


@dataclass(eq=False)
class Constant(Named):
    """A number of the policy."""


@dataclass(eq=False)
class Table(Named):
    """An array of numbers of the policy, indexed at run time."""


@dataclass(eq=False)
class Derived(Named):
    """The static result of a function specialised for a `key`."""

    function: Function
    key: Key
    form: Expr

    @property
    def named(self) -> object:
        """What tells it from others that get names."""
        return self.key


@dataclass(eq=False)
class Place(Expr):
    """Part of the policy, or a static pointer to it (`pointer`); `of` is its type, that of the elements for an array.

    Never left in specialised code.
    """

    path: Path
    of: str
    pointer: bool = False
    array: bool = False


def operands(expr: Expr) -> list[Expr]:
    """The direct operands of an expression, in order of their appearance."""
    return getattr(expr, expr.row) if expr.row else [getattr(expr, name) for name in expr.inner]


def rebuild(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The expression with each direct operand changed; itself where there is none."""
    if expr.row:
        return replace(expr, **{expr.row: [change(operand) for operand in getattr(expr, expr.row)]})
    return replace(expr, **{name: change(getattr(expr, name)) for name in expr.inner}) if expr.inner else expr


def transformed(expr: Expr, rule: Callable[[Expr], Expr]) -> Expr:
    """The expression with what a rule makes of everything in it, operands first."""

    def change(inner: Expr) -> Expr:
        return rule(rebuild(inner, change) if inner.inner or inner.row else inner)

    return change(expr)


def walk(*exprs: Expr) -> list[Expr]:
    """The expressions and everything in them, each before its operands."""
    found: list[Expr] = []
    for expr in exprs:
        _walk(expr, found)
    return found


def _walk(expr: Expr, found: list[Expr]) -> None:
    found.append(expr)
    for name in expr.inner:
        _walk(getattr(expr, name), found)
    if expr.row:
        for operand in getattr(expr, expr.row):
            _walk(operand, found)


# ---- statements -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comment:
    """A comment as written, and the column its first line starts in."""

    text: str
    column: int


@dataclass(eq=False, kw_only=True)
class Commented:
    """What begins at a `line`, with comments above and one behind it; `blank`: a blank line comes before."""

    line: int = 0
    comments: list[Comment] = field(default_factory=list)
    trailing: str = ""
    blank: bool = False


@dataclass(eq=False, kw_only=True)
class Stmt(Commented):
    """A statement. A kind says which of its members are expressions (`exprs`) or lists of statements (`blocks`)."""

    exprs: ClassVar[tuple[str, ...]] = ()
    blocks: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, exprs: tuple[str, ...] = (), blocks: tuple[str, ...] = ()) -> None:
        cls.exprs, cls.blocks = exprs, blocks


@dataclass(eq=False)
class Declare(Stmt, exprs=("init",)):
    """A declaration of one variable: `type` `name` `suffix` = `init`; the suffix holds array bounds."""

    type: str
    name: str
    suffix: str
    init: Expr | None


@dataclass(eq=False)
class Do(Stmt, exprs=("expr",)):
    """An expression statement."""

    expr: Expr


@dataclass(eq=False)
class If(Stmt, exprs=("test",), blocks=("yes", "no")):
    """An if; `no` is empty without else."""

    test: Expr
    yes: list[Stmt]
    no: list[Stmt]


@dataclass(eq=False)
class For(Stmt, exprs=("test", "update"), blocks=("body",)):
    """A for loop; `init` is the declaration of its counter or None."""

    init: Declare | None
    test: Expr | None
    update: Expr | None
    body: list[Stmt]


@dataclass(eq=False)
class While(Stmt, exprs=("test",), blocks=("body",)):
    """A while loop, or a do loop with the test `at_end`."""

    test: Expr
    body: list[Stmt]
    at_end: bool = False


@dataclass(eq=False)
class Return(Stmt, exprs=("expr",)):
    """return, with or without a value."""

    expr: Expr | None


@dataclass(eq=False)
class Jump(Stmt):
    """break or continue."""

    word: str


def bodies(stmt: Stmt) -> list[list[Stmt]]:
    """The statement lists directly inside a statement."""
    return [getattr(stmt, name) for name in stmt.blocks]


def expressions(stmt: Stmt) -> list[Expr]:
    """The expressions directly in a statement, but for what a for loop begins with, which is a statement of its own."""
    return [expr for name in stmt.exprs if (expr := getattr(stmt, name))]


def all_statements(body: list[Stmt]) -> list[Stmt]:
    """Every statement of a body, nested ones included, in order."""
    found: list[Stmt] = []
    todo = body[::-1]
    while todo:
        stmt = todo.pop()
        found.append(stmt)
        for name in reversed(stmt.blocks):
            todo += reversed(getattr(stmt, name))
        if isinstance(stmt, For) and stmt.init:
            todo.append(stmt.init)
    return found


def all_expressions(body: list[Stmt]) -> list[Expr]:
    """Every expression of a body, operands included."""
    return walk(*[expr for stmt in all_statements(body) for name in stmt.exprs if (expr := getattr(stmt, name))])


def root(expr: Expr) -> str:
    """The variable that an assignment changes, when it is a variable itself or a member of one."""
    while isinstance(expr, Member) and not expr.arrow:
        expr = expr.base
    return expr.name if isinstance(expr, Name) else ""


def names(expr: Expr) -> set[str]:
    """All names that an expression mentions."""
    return {part.name for part in walk(expr) if isinstance(part, Name)}


def declared(body: list[Stmt]) -> list[str]:
    """The variables that statements declare, nested ones and counters included, once for each time."""
    return [stmt.name for stmt in all_statements(body) if isinstance(stmt, Declare)]


def mentions(body: list[Stmt], name: str) -> int:
    """How often statements mention a name."""
    return sum(isinstance(expr, Name) and expr.name == name for expr in all_expressions(body))


def names_changed(body: list[Stmt]) -> list[str]:
    """Variables that statements change or point to, once for each time."""
    parts = all_expressions(body)
    changed = [part.target for part in parts if isinstance(part, Change)]
    pointed_to = [part.operand for part in parts if isinstance(part, Unary) and part.op == "&"]
    return [root(target) for target in [*changed, *pointed_to]]


def each_changed(body: list[Stmt], change: Callable[[Stmt], list[Stmt]]) -> Iterator[tuple[Stmt, list[Stmt]]]:
    """Each statement with what it becomes, one by one; a blank line stays where what follows it goes."""
    blank = started = False
    for stmt in body:
        left = change(stmt)
        blank |= stmt.blank
        if left:
            left[0].blank = blank and started
            blank, started = False, True
        yield stmt, left


def with_comments(stmt: Stmt, left: list[Stmt]) -> list[Stmt]:
    """What is left of a statement, with its comments ahead."""
    if left:
        left[0].comments = [*stmt.comments, *left[0].comments]
    return left


def copied(body: list[Stmt], rule: Callable[[Expr], Expr] | None = None) -> list[Stmt]:
    """Statements of their own, nested ones included, with all expressions transformed where there is a rule."""

    def copy(stmt: Stmt) -> Stmt:
        parts: dict[str, object] = {name: list(map(copy, getattr(stmt, name))) for name in stmt.blocks}
        if rule:
            parts |= {name: transformed(expr, rule) for name in stmt.exprs if (expr := getattr(stmt, name))}
        if isinstance(stmt, For) and stmt.init:
            parts["init"] = copy(stmt.init)
        return replace(stmt, **parts)

    return list(map(copy, body))


# ---- files ----------------------------------------------------------------------------------------------------------


@dataclass(eq=False, kw_only=True)
class Item(Commented):
    """Something at file level, in `file`."""

    file: str = ""


@dataclass(eq=False)
class Parameter:
    """A parameter: `type` `name` `suffix`."""

    type: str
    name: str
    suffix: str = ""


@dataclass(eq=False)
class Function(Item):
    """A function definition, or a prototype where the body is None.

    `attached`: its brace ends the first line. `asks`: without its hooks it only returns what it asks another function.
    """

    storage: str
    type: str
    name: str
    parameters: list[Parameter]
    body: list[Stmt] | None
    attached: bool
    asks: bool = False


@dataclass(eq=False)
class Field(Commented):
    """A member of a struct; `array` where it is an array."""

    type: str
    name: str
    array: bool


@dataclass(eq=False)
class Struct(Item):
    """A struct definition, or a declaration where `fields` is None."""

    name: str
    fields: dict[str, Field] | None
    text: str


@dataclass(eq=False)
class Enumerator(Commented):
    """An enumerator, and the text of its number where it has one."""

    name: str
    text: str


@dataclass(eq=False)
class Enum(Item):
    """An enum definition; `name` is empty where it has none. `flat`: written on one line."""

    name: str
    members: list[Enumerator]
    flat: bool


@dataclass(eq=False)
class Macro(Item):
    """#define. `value` is the parsed body of an object-like one, where it is an expression."""

    name: str
    text: str
    body: str
    value: Expr | None


@dataclass(eq=False)
class Global(Item):
    """A typedef, kept as written where used; `type` is what the name stands for."""

    name: str
    type: str
    text: str


@dataclass(eq=False)
class GuardedItems(Item):
    """File-level items between #if and #endif over conditions that only the compiler knows."""

    branches: list[tuple[str, list[Item]]]


@dataclass(eq=False)
class Source:
    """One parsed file: its items in order and the system headers it includes."""

    file: str
    items: list[Item]
    includes: list[str]
