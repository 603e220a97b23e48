"""What the sources of the core define, and C's rules for types and static arithmetic."""

from __future__ import annotations

import operator as o
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, Union

from heapwright._generate import syntax as c
from heapwright._generate.syntax import GrammarError

# Mirrors a policy struct: members by name, arrays as lists that hold exactly the elements in use.
PolicyValues = Mapping[str, Union[int, bool, Sequence[Any], "PolicyValues"]]

ROOT = "struct hw_policy"
DOOR = "replay_hooks.h"
"""The file that declares hooks, and gives them their empty bodies: in firmware nothing listens."""
BUILTIN_VALUES = {"UINT8_MAX": (0xFF, "int"), "UINT16_MAX": (0xFFFF, "int"), "UINT32_MAX": (0xFFFFFFFF, "uint32_t")}
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_COMPUTED = (o.eq, o.ne, o.lt, o.le, o.gt, o.ge, o.lshift, o.rshift, o.add, o.sub, o.mul, o.and_, o.or_, o.xor)
_OPERATIONS = dict(zip((*COMPARISONS, "<<", ">>", *"+-*&|^"), _COMPUTED, strict=True))
_INVERTED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
MIRRORED = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
"""Comparisons with their operands exchanged."""
HARMLESS = ("__builtin_", "__atomic_load_n")
"""How the compiler's functions begin that change nothing."""
_NOTHING = ("", "((void)0)", "(void)0")


class Program:
    """All sources together, without hooks and their calls. Raises GrammarError where they contradict each other."""

    def __init__(self, sources: Sequence[c.SourceFile]) -> None:
        self.functions: dict[str, c.Function] = {}
        self.opaque: dict[str, list[c.Function]] = {}
        self.structs: dict[str, c.Struct] = {}
        self.macros: dict[str, c.Macro] = {}
        self.globals: dict[str, c.Global] = {}
        self.enumerators: dict[str, int] = {}
        self.hooks: dict[str, c.Expr | None] = {}  # what each returns
        self.sources = [c.SourceFile(entry.file, self._without_hooks(entry), entry.includes) for entry in sources]
        for source in self.sources:
            for item in source.items:
                self._add(item)
        self.integer = cache(self._integer)

    def _without_hooks(self, source: c.SourceFile) -> list[c.Item]:
        """The items of a file without hooks, structs for these alone, and calls."""
        items = source.items
        if source.file == DOOR:
            items = [item for item in items if not (isinstance(item, c.Function) or getattr(item, "fields", 0) is None)]
            hooks = [item for item in source.items if isinstance(item, c.Function) and item.body is not None]
            self.hooks = {hook.name: _answer(hook) for hook in hooks}
        return [self._silent(item) if isinstance(item, c.Function) and item.body else item for item in items]

    def _silent(self, item: c.Function) -> c.Function:
        """A function without calls of hooks; what a hook returns stands in place of its call."""
        calls = [
            entry for entry in c.all_expressions(item.body) if isinstance(entry, c.Call) and entry.name in self.hooks
        ]
        for call in calls:
            if any(isinstance(part, c.Change) for part in c.walk(*call.arguments)):
                what = f"an argument of the hook {call.name} does something"
                raise GrammarError(item.file, call.line or item.line, what)

        def answered(expr: c.Expr) -> c.Expr:
            answer = self.hooks.get(expr.name) if isinstance(expr, c.Call) else None
            return c.replace(answer, line=expr.line) if answer else expr

        def quiet(body: list[c.Stmt]) -> list[c.Stmt]:
            for inner in (inner for stmt in body for inner in c.bodies(stmt)):
                quiet(inner)
            body[:] = [
                entry
                for entry in body
                if not isinstance(entry, c.Do) or getattr(entry.expr, "name", "") not in self.hooks
            ]
            return body

        if not calls:
            return item
        body = quiet(c.copied(item.body, answered))
        return c.replace(item, body=body, asks=len(body) == 1 and isinstance(body[0], c.Return))

    def _add(self, item: c.Item, guarded: bool = False) -> None:
        match item:
            case c.Function():
                self._add_function(item, guarded)
            case c.Struct():
                if item.fields is not None:
                    self.structs["struct " + item.name] = item
            case c.Macro():
                self.macros[item.name] = item
            case c.Global():
                self.globals[item.name] = item
            case c.Enum():
                self._add_enum(item)
            case c.GuardedItems():
                for inner in (entry for _, items in item.branches for entry in items):
                    self._add(inner, guarded=True)

    def _add_function(self, item: c.Function, guarded: bool) -> None:
        """Add a definition, or what stands between a compiler's conditionals (`guarded`)."""
        if guarded:
            if any(self.is_static_parameter(parameter) for parameter in item.parameters):
                raise GrammarError(item.file, item.line, f"{item.name} takes the policy inside a compiler's #if")
            self.opaque.setdefault(item.name, []).append(item)
        elif item.body is not None:
            if item.name in self.functions:
                raise GrammarError(item.file, item.line, f"{item.name} is defined twice")
            self.functions[item.name] = item

    def _add_enum(self, item: c.Enum) -> None:
        value: int | None = -1
        for member in item.members:
            value = literal_value(member.suffix)[0] if member.suffix else (value or 0) + 1
            if value is None:
                raise GrammarError(item.file, item.line, f"the value of {member.name} is no number")
            self.enumerators[member.name] = value

    @cached_property
    def policy_structs(self) -> frozenset[str]:
        """The struct types that make up the policy, as `struct NAME`."""
        results: set[str] = set()
        todo = [ROOT]
        while todo:
            name = todo.pop()
            if name not in results and name in self.structs:
                results.add(name)
                todo += [c.bare_type(field.type) for field in self.fields(name).values()]
        return frozenset(results)

    def fields(self, struct: str) -> dict[str, c.Declare]:
        """The members of a struct type, as `struct NAME`; none of any other type."""
        result = self.structs.get(struct)
        return (result.fields if result else None) or {}

    @cached_property
    def struct_arrays(self) -> frozenset[str]:
        """Names of policy members that are arrays of structs: their indices must be static."""
        fields = [item for name in self.policy_structs for item in self.fields(name).items()]
        return frozenset(name for name, field in fields if field.suffix and c.bare_type(field.type) in self.structs)

    def policy_pointer(self, typed: str) -> str | None:
        """The policy struct that a type points to, when it is a static pointer."""
        bare = c.bare_type(typed)
        pointed = bare[:-2] if bare.endswith(" *") else ""
        return pointed if pointed in self.policy_structs and "const" in typed.split("*")[0].split() else None

    def is_static_parameter(self, parameter: c.Declare) -> bool:
        """Whether a parameter is known once the policy is."""
        if self.policy_pointer(parameter.type):
            return True
        return "const" in parameter.type.split() and not parameter.suffix and "*" not in parameter.type

    def _integer(self, typed: str | None) -> c.Integer | None:
        """The integer type behind a type's text, typedefs resolved; None for all others."""
        bare = c.bare_type(typed or "")
        while bare in self.globals and bare not in c.INTEGERS:
            bare = c.bare_type(self.globals[bare].type)
        return c.INTEGERS.get("int" if bare.startswith("enum ") and "*" not in bare else bare)

    def promoted(self, typed: str | None) -> str | None:
        """The type after integer promotion: int, uint32_t, int64_t, uint64_t or size_t; None for no integer."""
        kind = self.integer(typed)
        if kind is None:
            return None
        wide = {0: ("size_t", "size_t"), 32: ("uint32_t", "int"), 64: ("uint64_t", "int64_t")}
        return wide.get(kind.bits, ("int", "int"))[kind.signed]

    def common(self, left: str | None, right: str | None) -> str | None:
        """The type in which two operands meet (C11 6.3.1.8); None where that is not known."""
        types = {self.promoted(left), self.promoted(right)}
        if None in types or (len(types) > 1 and "size_t" in types and types & {"int64_t", "uint64_t"}):
            return None
        return next(name for name in ("size_t", "uint64_t", "int64_t", "uint32_t", "int") if name in types)

    @cached_property
    def pure_opaque(self) -> frozenset[str]:
        """Functions between compiler conditionals, which only compute, and macros of which nothing is left."""
        nothing = {name for name, macro in self.macros.items() if macro.meaning.replace(" ", "") in _NOTHING}
        return frozenset(nothing.union(self.opaque))


def _answer(hook: c.Function) -> c.Expr | None:
    """What a hook returns; None for one that returns nothing. Else it only says of names that they are not used."""
    *unused, last = hook.body if isinstance(hook.body[-1], c.Return) else [*hook.body, c.Return(c.Literal(""))]
    parts = [part for part in c.walk(*unused) if not isinstance(part, (c.Do, c.Identifier, c.Cast))]
    if any(getattr(part, "op", "") != "," for part in parts) or not isinstance(last.expr, c.Literal):
        raise GrammarError(hook.file, hook.line, f"the hook {hook.name} does something")
    return last.expr if last.expr.text else None


# ---- numbers --------------------------------------------------------------------------------------------------------


def literal_value(text: str) -> tuple[int | None, str | None]:
    """Value and type of a literal; None, None where it is no integer."""
    if text in ("true", "false"):
        return int(text == "true"), "int"
    digits = text.rstrip("uUlL")
    suffix = text[len(digits) :].lower()
    if not digits[:1].isdigit() or "." in digits or ("l" in suffix and "ll" not in suffix):
        return None, None
    octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
    value = int(digits, 8 if octal else 0)
    return value, _literal_type(value, suffix, digits[0] != "0")


def _literal_type(value: int, suffix: str, decimal: bool) -> str:
    """The type of a number with a suffix in lower case, after promotion."""
    if "ll" in suffix or value > 0xFFFFFFFF:
        return "uint64_t" if "u" in suffix else "int64_t"
    if "u" in suffix:
        return "uint32_t"
    if value > 0x7FFFFFFF:
        return "int64_t" if decimal else "uint32_t"
    return "int"


def number(value: int, typed: str | None) -> c.Literal:
    """A literal of this value whose type, promoted, is the one given."""
    suffix = {"uint32_t": "u", "uint64_t": "ull", "int64_t": "ll"}.get(typed or "", "")
    text = "UINT32_MAX" if suffix == "u" and value == 0xFFFFFFFF else f"{value}{suffix}"
    return c.Literal(text, value=value, type=typed)


def as_unsigned(literal: c.Literal, typed: str) -> c.Literal:
    """The literal with its type where a uint32_t is made of it; itself where another type is, or it does not fit."""
    value = literal.value
    return literal if typed != "uint32_t" or value is None or value < 0 else number(value, typed)


def unary_value(op: str, operand: int) -> int | None:
    """Mathematical value of a unary operation; None for other operators."""
    return {"-": -operand, "~": ~operand, "!": int(not operand), "+": operand}.get(op)


def binary_value(op: str, left: int, right: int) -> int | None:
    """Mathematical value of a binary operation, divisions truncating; None where C leaves it undefined."""
    if op in ("/", "%"):
        if right == 0:
            return None
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if op == "/" else left - quotient * right
    if op not in _OPERATIONS or (op in ("<<", ">>") and not 0 <= right < 64):
        return None
    return int(_OPERATIONS[op](left, right))


def substitute(expr: c.Expr, given: Mapping[str, c.Expr]) -> c.Expr:
    """What stands in place of a variable; any other expression itself."""
    return (
        c.replace(given[expr.name], line=expr.line) if isinstance(expr, c.Identifier) and expr.name in given else expr
    )


def negated(expr: c.Expr) -> c.Expr:
    """The condition that holds where this one does not, in its simplest form."""
    if isinstance(expr, c.Binary) and expr.op in _INVERTED:
        return c.Binary(_INVERTED[expr.op], expr.left, expr.right, line=expr.line, type="int")
    if isinstance(expr, c.Unary) and expr.op == "!":
        return expr.operand
    return c.Unary("!", expr, line=expr.line, type="int")


def equal(test: c.Expr) -> tuple[str, int] | None:
    """The variable, and the number that it has where a condition holds."""
    match test:
        case c.Binary(op="==", left=c.Identifier(name=name), right=c.Expr(value=int(value))):
            return name, value
        case c.Unary(op="!", operand=c.Identifier(name=name)):
            return name, 0
        case _:
            return None


def is_boolean(expr: c.Expr) -> bool:
    """Whether an expression is 0 or 1, as far as it shows."""
    match expr:
        case c.Literal():
            return expr.value in (0, 1)
        case c.Binary(op=op):
            return op in COMPARISONS or op in ("&&", "||")
        case c.Call(callee=callee) if callee is not None:
            return bool(callee.left.boolean)
        case _:
            return isinstance(expr, c.Unary) and expr.op == "!"


def is_pure(expr: c.Expr, pure_names: Iterable[str]) -> bool:
    """Whether evaluating an expression of specialised code changes nothing; `pure_names` are harmless macros."""
    for part in c.walk(expr) if expr.parts else ():
        if isinstance(part, c.Change):
            return False
        if isinstance(part, c.Call):
            named = part.name in pure_names or part.name.startswith(HARMLESS)
            if not (part.callee.left.pure if part.callee else named):
                return False
    return True
