"""The part of C that the core is written in, as a tree: docs/developing/core-grammar.md has its grammar.

Source trees are never changed; the specialiser builds new ones, whose expressions also carry what is known about them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, TypeVar

from heapwright._support.errors import HeapwrightError

WORD = re.compile(r"[A-Za-z_]\w*")

Path = tuple["str | int", ...]
Key = tuple[object, ...]
"""What identifies a specialisation: the function's name and its static arguments."""
Some = TypeVar("Some", bound="Node")


class GrammarError(HeapwrightError):
    """Source outside the grammar (docs/developing/core-grammar.md): `file`, `line` (from 1), and `what` is wrong."""

    def __init__(self, file: str, line: int, what: str) -> None:
        super().__init__(f"{file}:{line}: {what}")
        self.file, self.line, self.what = file, line, what


# ---- types ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Integer:
    """An integer type of the target; `bits` is 0 where it differs between targets (size_t)."""

    bits: int
    signed: bool = False

    def holds(self, value: int) -> bool:
        """Whether the value is representable; unknown widths hold what 32 bits hold."""
        return self.wrap(value) == value

    def wrap(self, value: int) -> int:
        """The value converted to this type, modulo 2 to the width."""
        bits = self.bits or 32
        value &= (1 << bits) - 1
        return value - (1 << bits) if self.signed and value >> bits - 1 else value


_SIGNED = {f"int{bits}_t": bits for bits in (8, 16, 32, 64)}
_SIGNED |= {"char": 8, "signed char": 8, "short": 16, "int": 32, "long long": 64}
_UNSIGNED = {"bool": 1, "_Bool": 1, "unsigned": 32, "size_t": 0, "uintptr_t": 0}
_UNSIGNED |= {f"u{name}" if name.endswith("_t") else f"unsigned {name}": bits for name, bits in _SIGNED.items()}
INTEGERS = {name: Integer(bits, of is _SIGNED) for of in (_SIGNED, _UNSIGNED) for name, bits in of.items()}


@lru_cache(maxsize=1024)
def bare_type(text: str) -> str:
    """A type's text without qualifiers and with single spaces: `const uint8_t *` is `uint8_t *`."""
    qualifiers = ("const", "volatile", "restrict", "static")
    return " ".join(word for word in text.replace("*", " * ").split() if word not in qualifiers).replace("* *", "**")


# ---- nodes ----------------------------------------------------------------------------------------------------------


class Node:
    """What C is made of, at a `line`. A kind says of which `words` and then of which `parts` it is made.

    Parts are nodes, lists of nodes, or None.
    """

    words: ClassVar[tuple[str, ...]] = ()
    parts: ClassVar[tuple[str, ...]] = ()
    made_of: ClassVar[tuple[str, ...]] = ()
    line: int = 0
    name: str
    text: str

    def __init_subclass__(cls, words: str = "", parts: str = "") -> None:
        cls.words, cls.parts = tuple(words.split()), tuple(parts.split())
        cls.made_of = cls.words + cls.parts

    def __init__(self, *given: object, **more: object) -> None:
        for name, value in zip(self.made_of, given, strict=True):
            setattr(self, name, value)  # filling __dict__ at once costs a dict each, which is collected, too
        for name in more:
            setattr(self, name, more[name])


def replace(node: Some, **changes: object) -> Some:
    """A copy of a node with some members changed."""
    copy = object.__new__(type(node))
    copy.__dict__.update(node.__dict__, **changes)
    return copy


class Expr(Node):
    """An expression. `paren`: the source has it in parentheses. `value` and `type` are known after specialisation."""

    paren: bool = False
    value: int | None = None
    type: str | None = None
    op: str
    left: Expr
    right: Expr
    operand: Expr
    target: Expr
    source: Any
    test: Expr
    yes: Expr
    no: Expr
    base: Expr
    index: Expr


class Identifier(Expr, words="name"):
    """A variable, enumerator or object-like macro; `origin` is the initialiser of a static variable."""

    origin: Expr | None = None


class Literal(Expr, words="text"):
    """A number, character or string, or true or false."""


class Unary(Expr, words="op", parts="operand"):
    """One of ! ~ - + * & before an operand."""


class Binary(Expr, words="op", parts="left right"):
    """Two operands, `&&`, `||` and the comma included."""


class Change(Expr, words="op", parts="target source"):
    """An assignment, `op` being = or += and the like; or ++ or --, before (`prefix`) or after, without a `source`."""

    prefix: bool = False


class Conditional(Expr, parts="test yes no"):
    """test ? yes : no."""


class Call(Expr, words="name", parts="arguments"):
    """A call by name; `callee` is the `left.Specialisation` called, None outside the core (macros, builtins)."""

    arguments: list[Expr]
    callee: Any = None


class Index(Expr, parts="base index"):
    """base[index]."""


class MemberAccess(Expr, words="arrow name", parts="base"):
    """base.name or base->name."""

    arrow: bool


class Cast(Expr, words="to", parts="operand"):
    """(to)operand."""

    to: str


class Verbatim(Expr, words="text"):
    """sizeof, _Alignof and offsetof of types: kept as written."""


class Braces(Expr, parts="items"):
    """An initialiser list; `to` is the type where it is a compound literal."""

    items: list[Expr]
    to: str = ""


class Named(Expr, words="path"):
    """What becomes a named constant: it is of the policy, or of its part, at a `path`."""

    path: Path

    @property
    def named(self) -> object:
        """What identifies it among those that get names."""
        return getattr(self, "key", (type(self).__name__, self.path))


class Constant(Named, words="path"):
    """A number of the policy."""


class ConstantTable(Named, words="path"):
    """An array of numbers of the policy, indexed at run time."""


class Derived(Named, words="path function key form"):
    """The static result of a function specialised for a `key`."""

    function: Function
    key: Key
    form: Expr


class Place(Expr, words="path of"):
    """Part of the policy, or a static pointer to it (`pointer`); `of` is its type, that of the elements for an array.

    Never left in specialised code.
    """

    path: Path
    of: str
    pointer: bool = False
    array: bool = False


class Commented(Node):
    """What has comments above and one behind it, as if they began a line; `blank`: a blank line comes before."""

    comments: Sequence[str] = ()
    trailing: str = ""
    blank: bool = False
    type: str


class Stmt(Commented):
    """A statement."""

    init: Any
    expr: Any
    test: Any
    update: Any
    yes: list[Stmt]
    no: list[Stmt]
    body: list[Stmt]


class Declare(Stmt, words="type name suffix", parts="init"):
    """A declaration of one variable, parameter or member: `type` `name` `suffix` = `init`; a suffix is array bounds."""

    suffix: str


class Do(Stmt, parts="expr"):
    """An expression statement."""


class If(Stmt, parts="test yes no"):
    """An if; `no` is empty without else."""


class For(Stmt, parts="init test update body"):
    """A for loop; `init` is the declaration of its counter or None."""


class While(Stmt, parts="test body"):
    """A while loop, or a do loop with the test `at_end`."""

    at_end: bool = False


class Return(Stmt, parts="expr"):
    """return, with or without a value."""


class Jump(Stmt, words="word"):
    """break or continue."""

    word: str


class Item(Commented):
    """Something at file level, in `file`."""

    file: str = ""


class Function(Item, words="storage type name parameters body attached"):
    """A function definition, or a prototype where the body is None.

    `attached`: its brace ends the first line. `asks`: without its hooks it only returns what it asks another function.
    """

    storage: str
    parameters: list[Declare]
    body: Any
    attached: bool
    asks: bool = False


class Struct(Item, words="name text fields"):
    """A struct definition, or a declaration where `fields` is None."""

    fields: dict[str, Declare] | None


class Enum(Item, words="name members flat"):
    """An enum; `name` is empty where it has none. `flat`: on one line. A member's suffix is the text of its number."""

    members: list[Declare]
    flat: bool


class Macro(Item, words="name text meaning value"):
    """#define. `meaning` is its body; `value` that of an object-like one, where it is an expression."""

    meaning: str
    value: Expr | None


class Global(Item, words="name text type"):
    """A typedef, kept as written where used; `type` is what the name stands for."""


class GuardedItems(Item, words="branches"):
    """File-level items between #if and #endif over conditions that only the compiler knows."""

    branches: list[tuple[str, list[Item]]]


@dataclass
class SourceFile:
    """One parsed file: its items in order and the system headers it includes."""

    file: str
    items: list[Item]
    includes: list[str]


# ---- walks ----------------------------------------------------------------------------------------------------------


def operands(node: Node) -> list[Any]:
    """What a node is directly made of, in order."""
    results: list[Any] = []
    for name in node.parts:
        part = getattr(node, name)
        if part.__class__ is list:
            results += part
        elif part is not None:
            results.append(part)
    return results


def bodies(stmt: Stmt) -> list[list[Stmt]]:
    """The statement lists directly inside a statement."""
    return [part for name in stmt.parts if (part := getattr(stmt, name)).__class__ is list]


def rebuild(node: Some, change: Callable[[Any], Any]) -> Some:
    """A copy of a node with what a rule makes of each of its parts."""
    copy = replace(node)
    for name in node.parts:
        part = getattr(node, name)
        if part is not None:
            setattr(copy, name, list(map(change, part)) if part.__class__ is list else change(part))
    return copy


def changing(rule: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    """What copies a node with what a rule makes of every expression in it, operands first; without, all are shared."""

    def change(node: Any) -> Any:
        if isinstance(node, Expr):
            return rule(rebuild(node, change) if node.parts else node) if rule else node
        return rebuild(node, change)

    return change


def copied(body: Iterable[Stmt], rule: Callable[[Any], Any] | None = None) -> list[Stmt]:
    """Statements of their own, nested ones included, with all expressions changed where there is a rule."""
    return list(map(changing(rule), body))


def walk(*nodes: Node) -> list[Any]:
    """The nodes and everything in them, each before its parts."""
    result, todo = [], list(nodes[::-1])
    while todo:
        node = todo.pop()
        result.append(node)
        for name in node.parts[::-1]:
            part = getattr(node, name)
            if part.__class__ is list:
                todo += part[::-1]
            elif part is not None:
                todo.append(part)
    return result


def all_expressions(body: Iterable[Stmt]) -> list[Any]:
    """Every expression of a body, operands included."""
    return [part for part in walk(*body) if isinstance(part, Expr)]


def all_statements(body: Iterable[Stmt]) -> Iterator[Stmt]:
    """Every statement of a body, nested ones included, in order."""
    for stmt in body:
        yield stmt
        if stmt.__class__ is For and stmt.init:
            yield stmt.init
        for inner in bodies(stmt):
            yield from all_statements(inner)


def expressions(stmt: Stmt) -> list[Expr]:
    """The expressions directly in a statement."""
    return [part for part in operands(stmt) if isinstance(part, Expr)]


def root(expr: Expr) -> str:
    """The variable that an assignment changes, when it is a variable itself or a member of one."""
    while isinstance(expr, MemberAccess) and not expr.arrow:
        expr = expr.base
    return expr.name if isinstance(expr, Identifier) else ""


def names(*nodes: Node) -> list[str]:
    """The names that nodes mention, once for each time."""
    return [part.name for part in walk(*nodes) if part.__class__ is Identifier]


def declared(body: Iterable[Stmt]) -> list[str]:
    """The variables that statements declare, nested ones and counters included, once for each time."""
    return [stmt.name for stmt in all_statements(body) if stmt.__class__ is Declare]


def names_pointed_at(body: Iterable[Stmt]) -> list[str]:
    """Variables whose address statements take, once for each time."""
    return [root(part.operand) for part in all_expressions(body) if part.__class__ is Unary and part.op == "&"]


def names_changed(body: Iterable[Stmt]) -> list[str]:
    """Variables that statements change or point to, once for each time."""
    changed = [root(part.target) for part in all_expressions(body) if isinstance(part, Change)]
    return changed + names_pointed_at(body)


def each_changed(body: Iterable[Stmt], change: Callable[[Stmt], list[Stmt]]) -> Iterator[tuple[Stmt, list[Stmt]]]:
    """Each statement with what it becomes, one by one; a blank line stays where what follows it goes."""
    blank = started = False
    for stmt in body:
        remaining = change(stmt)
        blank |= stmt.blank
        if remaining:
            remaining[0].blank = blank and started
            blank, started = False, True
        yield stmt, remaining


def with_comments(stmt: Stmt, left: list[Stmt]) -> list[Stmt]:
    """What is left of a statement, with its comments ahead."""
    if left:
        left[0].comments = [*stmt.comments, *left[0].comments]
    return left


def falls_through(body: list[Stmt]) -> bool:
    """Whether control can reach what follows a body."""
    if not body:
        return True
    match body[-1]:
        case Return() | Jump():
            return False
        case If(yes=yes, no=no):
            return falls_through(yes) or falls_through(no)
        case While(test=test, body=inner) if test.value:
            return has_jump(inner, "break")
        case _:
            return True


def has_jump(body: list[Stmt], word: str = "") -> bool:
    """Whether a body holds a break or continue (or just the one given) of the loop around it."""
    for stmt in body:
        if isinstance(stmt, Jump) and word in ("", stmt.word):
            return True
        if not isinstance(stmt, (For, While)) and any(has_jump(inner, word) for inner in bodies(stmt)):
            return True
    return False
