"""What the sources of the core define, and C's rules for types and static arithmetic."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, Union

from heapwright.generate import syntax as c
from heapwright.generate.syntax import GrammarError

# Mirrors a policy struct: members by name, arrays as lists that hold exactly the elements in use.
PolicyValues = Mapping[str, Union[int, bool, Sequence[Any], "PolicyValues"]]

ROOT = "struct hw_policy"
BUILTIN_VALUES = {
    "UINT8_MAX": (0xFF, "int"),
    "UINT16_MAX": (0xFFFF, "int"),
    "UINT32_MAX": (0xFFFFFFFF, "uint32_t"),
}
_COMPARISONS: dict[str, Callable[[int, int], int]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_OPERATIONS: dict[str, Callable[[int, int], int]] = _COMPARISONS | {
    "<<": operator.lshift,
    ">>": operator.rshift,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}
_INVERTED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}

_HARMLESS = ("__builtin_", "__atomic_load_n")
"""How the compiler's functions begin that change nothing."""


class Program:
    """All sources together. Raises GrammarError where they contradict each other."""

    def __init__(self, sources: Sequence[c.Source]) -> None:
        self.sources = sources
        self.functions: dict[str, c.Function] = {}
        self.opaque: dict[str, list[c.Function]] = {}
        self.structs: dict[str, c.Struct] = {}
        self.macros: dict[str, c.Macro] = {}
        self.globals: dict[str, c.Global] = {}
        self.enumerators: dict[str, int] = {}
        for source in sources:
            for item in source.items:
                self._add(item)
        self.integer = cache(self._integer)

    def _add(self, item: c.Item) -> None:
        match item:
            case c.Function(body=None):
                pass
            case c.Function():
                if item.name in self.functions:
                    raise GrammarError(item.file, item.line, f"{item.name} is defined twice")
                self.functions[item.name] = item
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
                for _, items in item.branches:
                    for inner in items:
                        self._add_guarded(inner)

    def _add_guarded(self, item: c.Item) -> None:
        if isinstance(item, c.Function):
            if any(self.is_static_parameter(parameter) for parameter in item.parameters):
                raise GrammarError(item.file, item.line, f"{item.name} takes the policy inside a compiler's #if")
            self.opaque.setdefault(item.name, []).append(item)
        else:
            self._add(item)

    def _add_enum(self, item: c.Enum) -> None:
        value = -1
        for member in item.members:
            known = literal_value(member.text)[0] if member.text else value + 1
            if known is None:
                raise GrammarError(item.file, item.line, f"the value of {member.name} is no number")
            value = known
            self.enumerators[member.name] = value

    @cached_property
    def policy_structs(self) -> frozenset[str]:
        """The struct types that make up the policy, as `struct NAME`."""
        found: set[str] = set()
        todo = [ROOT]
        while todo:
            name = todo.pop()
            if name in found or name not in self.structs:
                continue
            found.add(name)
            todo += [c.bare_type(field.type) for field in self.fields(name).values()]
        return frozenset(found)

    def fields(self, struct: str) -> dict[str, c.Field]:
        """The members of a struct type, as `struct NAME`; none of any other type."""
        found = self.structs.get(struct)
        return (found.fields if found else None) or {}

    @cached_property
    def struct_arrays(self) -> frozenset[str]:
        """Names of policy members that are arrays of structs: their indices must be static."""
        fields = [item for name in self.policy_structs for item in self.fields(name).items()]
        return frozenset(name for name, field in fields if field.array and c.bare_type(field.type) in self.structs)

    def policy_pointer(self, typed: str) -> str | None:
        """The policy struct that a type points to, when it is a static pointer."""
        bare = c.bare_type(typed)
        pointed = bare[:-2] if bare.endswith(" *") else ""
        return pointed if pointed in self.policy_structs and "const" in typed.split("*")[0].split() else None

    def is_static_parameter(self, parameter: c.Parameter) -> bool:
        """Whether a parameter is known once the policy is."""
        if self.policy_pointer(parameter.type):
            return True
        return "const" in parameter.type.split() and not parameter.suffix and "*" not in parameter.type

    def _integer(self, typed: str | None) -> c.Integer | None:
        """The integer type behind a type's text, typedefs resolved; None for all others."""
        bare = c.bare_type(typed or "")
        seen: set[str] = set()
        while bare in self.globals and bare not in seen:
            seen.add(bare)
            bare = c.bare_type(self.globals[bare].type)
        return c.INT if bare.startswith("enum ") and "*" not in bare else c.INTEGERS.get(bare)

    def promoted(self, typed: str | None) -> str | None:
        """The type after integer promotion: int, uint32_t, int64_t, uint64_t or size_t; None for no integer."""
        kind = self.integer(typed)
        if kind is None:
            return None
        if kind.bits == 0:
            return "size_t"
        if kind.bits < 32:
            return "int"
        return {32: ("uint32_t", "int"), 64: ("uint64_t", "int64_t")}[kind.bits][kind.signed]

    def common(self, left: str | None, right: str | None) -> str | None:
        """The type in which two operands meet (C11 6.3.1.8); None where that is not known."""
        types = {self.promoted(left), self.promoted(right)}
        if None in types or (len(types) > 1 and "size_t" in types and types & {"int64_t", "uint64_t"}):
            return None
        return next(name for name in ("size_t", "uint64_t", "int64_t", "uint32_t", "int") if name in types)

    @cached_property
    def pure_opaque(self) -> frozenset[str]:
        """Functions between compiler conditionals that change nothing, and macros of which nothing is left."""
        pure = {name for name, variants in self.opaque.items() if all(map(_changes_only_locals, variants))}
        while bad := {name for name in pure if not self._calls_only(name, pure)}:
            pure -= bad
        nothing = ("", "((void)0)", "(void)0")
        return frozenset(pure).union(n for n, macro in self.macros.items() if macro.body.replace(" ", "") in nothing)

    def _calls_only(self, name: str, pure: set[str]) -> bool:
        parts = [part for variant in self.opaque[name] for part in c.all_expressions(variant.body or [])]
        calls = [part.name for part in parts if isinstance(part, c.Call)]
        return all(call in pure or call.startswith(_HARMLESS) for call in calls)


def _changes_only_locals(function: c.Function) -> bool:
    changes = [part for part in c.all_expressions(function.body or []) if isinstance(part, c.Change)]
    return all(isinstance(change.target, c.Name) for change in changes)


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
    long = "ll" in suffix or value > 0xFFFFFFFF
    if "u" in suffix:
        return value, "uint64_t" if long else "uint32_t"
    if not long and value > 0x7FFFFFFF:
        return value, "uint32_t" if digits[:1] == "0" else "int64_t"
    return value, "int64_t" if long else "int"


def number(value: int, typed: str | None) -> c.Literal:
    """A literal of this value whose type, promoted, is the one given."""
    if typed == "uint32_t":
        text = "UINT32_MAX" if value == 0xFFFFFFFF else f"{value}u"
    else:
        text = {"uint64_t": f"{value}ull", "int64_t": f"{value}ll"}.get(typed or "", str(value))
    return c.Literal(text, value=value, type=typed)


def as_unsigned(literal: c.Literal, typed: str) -> c.Literal:
    """The literal with its type where a uint32_t is made of it; itself where another type is, or it does not fit."""
    fits = literal.value is not None and literal.value >= 0 and typed == "uint32_t"
    return number(literal.value, typed) if fits and literal.value is not None else literal


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


def is_comparison(op: str) -> bool:
    """Whether an operator compares."""
    return op in _COMPARISONS


def mirrored(op: str) -> str:
    """The comparison with its operands exchanged."""
    return _MIRRORED.get(op, op)


def substituted(expr: c.Expr, given: Mapping[str, c.Expr]) -> c.Expr:
    """A copy of an expression with others in place of variables."""
    return c.transformed(expr, lambda part: substitute(part, given))


def substitute(expr: c.Expr, given: Mapping[str, c.Expr]) -> c.Expr:
    """What stands in place of a variable; any other expression itself."""
    return c.replace(given[expr.name], line=expr.line) if isinstance(expr, c.Name) and expr.name in given else expr


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
        case c.Binary(op="==", left=c.Name(name=name), right=c.Expr(value=int(value))):
            return name, value
        case c.Unary(op="!", operand=c.Name(name=name)):
            return name, 0
        case _:
            return None


# ---- purity ---------------------------------------------------------------------------------------------------------


def is_pure(expr: c.Expr, pure_names: Iterable[str]) -> bool:
    """Whether evaluating an expression of specialised code changes nothing; `pure_names` are harmless macros."""
    if not expr.inner and not expr.row:
        return True
    for part in c.walk(expr):
        if isinstance(part, c.Change):
            return False
        if isinstance(part, c.Call):
            named = part.name in pure_names or part.name.startswith(_HARMLESS)
            if not (part.callee.left.pure if part.callee else named):
                return False
    return True
