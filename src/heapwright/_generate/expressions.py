"""Folds expressions: what the policy decides is computed, and what is left says what is known of its value and type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from heapwright._generate import syntax as c
from heapwright._generate.program import (
    BUILTIN_VALUES,
    COMPARISONS,
    MIRRORED,
    Program,
    binary_value,
    is_boolean,
    is_pure,
    literal_value,
    number,
    unary_value,
)
from heapwright._generate.residual import Asked
from heapwright._generate.syntax import GrammarError, replace
from heapwright._support.errors import HeapwrightError


@dataclass
class Variable:
    """What is known of a name: its type, and its initialiser where it is static (`inline`: always written out)."""

    type: str
    static: c.Expr | None = None
    inline: bool = False


class Expressions:
    """The expressions of one function, in which `names` are known; `lookup` gives a number of the policy.

    `asked` has the questions to the policy with their answers.
    """

    def __init__(self, program: Program, function: c.Function, lookup: Callable[[c.Path], int]) -> None:
        self.program = program
        self.function = function
        self.lookup = lookup
        self.names: dict[str, Variable] = {}
        self.asked: Asked = {}

    def error(self, node: c.Node, what: str) -> GrammarError:
        """An error at a place of the function."""
        return GrammarError(self.function.file, node.line or self.function.line, what)

    def pure(self, expr: c.Expr) -> bool:
        """Whether an expression changes nothing."""
        return is_pure(expr, self.program.pure_opaque)

    # ---- the policy

    def place(self, expr: c.Expr) -> c.Place | None:
        """The part of the policy that an expression names; None for everything else."""
        match expr:
            case c.Identifier(name=name):
                known = self.names.get(name)
                return known.static if known and isinstance(known.static, c.Place) else None
            case c.Unary(op="&", operand=inner) | c.MemberAccess(base=inner) | c.Index(base=inner):
                base = self.place(inner)
                return base and self._part(expr, base)
            case _:
                return None

    def _part(self, expr: c.Expr, base: c.Place) -> c.Place | None:
        """What an expression takes of a part of the policy; None for a number at a run-time index."""
        match expr:
            case c.Unary():
                return replace(base, pointer=True)
            case c.MemberAccess(name=name):
                result = self.program.fields(base.of)[name]
                return c.Place((*base.path, name), c.bare_type(result.type), array=bool(result.suffix), line=expr.line)
        index = self.expr(expr.index)
        return None if index.value is None else c.Place((*base.path, index.value), base.of, line=expr.line)

    def _number_at(self, place: c.Place, line: int) -> c.Expr:
        value = self.lookup(place.path)
        self.asked.setdefault(place.path, (place.path, value))
        kind = self.program.integer(place.of)
        if kind is None or not kind.holds(value):
            raise HeapwrightError(f"policy: {path_text(place.path)} is {value}, which {place.of} does not hold")
        return c.Constant(place.path, value=value, type=self.program.promoted(place.of), line=line)

    # ---- expressions

    def expr(self, expr: c.Expr, control: bool = False) -> c.Expr:
        """Fold an expression; `control`: only whether it is zero matters."""
        place = self.place(expr)
        if place is not None:
            return self._number_at(place, expr.line)
        fold = getattr(self, f"_{type(expr).__name__.lower()}", self._access)
        folded: c.Expr = fold(expr, control)
        return folded

    def _literal(self, expr: c.Literal, _: bool) -> c.Expr:
        value, typed = literal_value(expr.text)
        return replace(expr, value=value, type=typed)

    def _change(self, expr: c.Change, _: bool) -> c.Expr:
        out = c.rebuild(expr, self.expr)
        out.type = out.target.type
        if out.op == "=":
            out.source = self.convert(out.source, out.type)
        return out

    def _identifier(self, expr: c.Identifier, _: bool) -> c.Expr:
        program, name = self.program, expr.name
        if name in self.names:
            known = self.names[name]
            form = known.static
            if form is None:
                return replace(expr, type=known.type)
            if known.inline or isinstance(form, (c.Constant, c.Derived)):
                return replace(form, line=expr.line, paren=False)
            return replace(expr, value=form.value, type=program.promoted(known.type), origin=form)
        if name in BUILTIN_VALUES:
            value, typed = BUILTIN_VALUES[name]
            return replace(expr, value=value, type=typed)
        if name in program.enumerators:
            return replace(expr, value=program.enumerators[name], type="int")
        macro = program.macros.get(name)
        meaning = self.expr(macro.value) if macro and macro.value else expr
        return replace(expr, value=meaning.value, type=meaning.type)

    def _access(self, expr: c.Expr, _: bool) -> c.Expr:
        """Members, elements and initialisers of run-time objects, and elements of the policy at a run-time index."""
        if isinstance(expr, c.Index) and (base := self.place(expr.base)):
            table = c.ConstantTable(base.path, type=base.of + " *", line=expr.line)
            return c.Index(table, self.expr(expr.index), type=base.of, line=expr.line)
        out = c.rebuild(expr, self.expr)
        match out:
            case c.MemberAccess():
                result = self.program.fields((out.base.type or "").removesuffix(" *")).get(out.name)
                out.type = c.bare_type(result.type) + (" *" if result.suffix else "") if result else None
            case c.Index():
                out.type = _pointed(out.base.type)
            case c.Verbatim():
                out.type = "size_t"
            case _:
                pass
        return out

    def _unary(self, expr: c.Unary, _: bool) -> c.Expr:
        operand = self.expr(expr.operand, control=expr.op == "!")
        out = replace(expr, operand=operand)
        if expr.op == "*":
            out.type = _pointed(operand.type)
        elif expr.op == "&":
            out.type = f"{operand.type} *" if operand.type else None
        else:
            out.type = "int" if expr.op == "!" else self.program.promoted(operand.type)
        value = None if operand.value is None else unary_value(expr.op, operand.value)
        if value is None or out.type is None or not self.pure(operand):
            return out
        return number(value, "int") if expr.op == "!" else replace(out, value=self.wrapped(expr, value, out.type))

    def wrapped(self, expr: c.Expr, value: int, typed: str) -> int:
        """A static result in its type; overflow of a signed one is an error."""
        kind = self.program.integer(typed)
        assert kind is not None
        if kind.signed and not kind.holds(value):
            raise self.error(expr, f"a static expression overflows {typed}")
        return kind.wrap(value)

    def logical(self, expr: c.Binary, control: bool) -> c.Expr:
        """&& and ||: a static side decides or goes."""
        left = self.expr(expr.left, control=True)
        absorbing = expr.op == "||"
        if left.value is not None and bool(left.value) == absorbing:
            return self.after(left, number(int(absorbing), "int"))
        right = self.expr(expr.right, control=True)
        if left.value is not None:
            return self.after(left, self.truth(right, control))
        if right.value is None or not self.pure(right):
            return replace(expr, left=left, right=right, type="int")
        if bool(right.value) == absorbing:
            return self.after(left, number(int(absorbing), "int"))
        return self.truth(left, control)

    def after(self, first: c.Expr, then: c.Expr) -> c.Expr:
        """`then`, preceded by the effects of evaluating `first`."""
        if self.pure(first):
            return then
        if isinstance(first, c.Binary) and first.op == ",":
            first = first.left
        return c.Binary(",", first, then, line=first.line, paren=True, value=then.value, type=then.type)

    def truth(self, expr: c.Expr, control: bool) -> c.Expr:
        """The expression as 0 or 1, where that matters."""
        if expr.value is not None:
            return self.after(expr, number(int(bool(expr.value)), "int"))
        if control or (is_boolean(expr) and not isinstance(expr, c.Call)) or expr.type in ("bool", "_Bool"):
            return expr
        return c.Binary("!=", expr, number(0, self.program.promoted(expr.type)), line=expr.line, type="int")

    def _conditional(self, expr: c.Conditional, control: bool) -> c.Expr:
        test = self.expr(expr.test, control=True)
        if test.value is not None:
            chosen = self.expr(expr.yes if test.value else expr.no, control)
            return self.after(test, replace(chosen, paren=expr.paren or chosen.paren))
        yes, no = self.expr(expr.yes, control), self.expr(expr.no, control)
        typed = self.program.common(yes.type, no.type) or (yes.type if yes.type == no.type else None)
        return replace(expr, test=test, yes=yes, no=no, type=typed)

    def _cast(self, expr: c.Cast, _: bool) -> c.Expr:
        if expr.to == "void":
            place = self.place(expr.operand)
            return replace(expr, operand=number(0, "int") if place else self.expr(expr.operand), type="void")
        operand = self.expr(expr.operand)
        typed = c.bare_type(expr.to)
        kind = self.program.integer(typed)
        out = replace(expr, operand=operand, type=typed)
        if operand.value is None or kind is None or not self.pure(operand):
            return out
        out.type = self.program.promoted(typed)
        out.value = int(bool(operand.value)) if kind.bits == 1 else kind.wrap(operand.value)
        if out.type == operand.type and out.value == operand.value:
            return operand
        return number(out.value, out.type) if isinstance(operand, c.Literal) else out

    def convert(self, expr: c.Expr, typed: str | None) -> c.Expr:
        """A number written as its context wants it: true and false for a bool."""
        kind = self.program.integer(typed)
        if isinstance(expr, c.Literal) and expr.value is not None and kind and kind.bits == 1:
            return replace(expr, text="true" if expr.value else "false", value=int(bool(expr.value)))
        return expr

    # ---- arithmetic

    def _binary(self, expr: c.Binary, control: bool) -> c.Expr:
        if expr.op in ("&&", "||"):
            return self.logical(expr, control)
        left, right = self.expr(expr.left), self.expr(expr.right)
        if expr.op == ",":
            return self.after(left, right)
        operating = self._operating_type(expr.op, left, right)
        out = replace(expr, left=left, right=right, type=_result_type(expr.op, left, right, operating))
        if left.value is not None and right.value is not None and operating and self.pure(left) and self.pure(right):
            out.value = self._static_result(expr, left.value, right.value, operating)
        if expr.op in COMPARISONS:
            return number(out.value, "int") if out.value is not None else self.decided(out) or out
        simple = self.neutral(out)
        if simple is not None:
            return replace(simple, paren=simple.paren or expr.paren)
        return _of_literals(expr, out)

    def _operating_type(self, op: str, left: c.Expr, right: c.Expr) -> str | None:
        """The integer type in which an operation is done; None where that is not known."""
        return self.program.promoted(left.type) if op in ("<<", ">>") else self.program.common(left.type, right.type)

    def _static_result(self, expr: c.Binary, left: int, right: int, typed: str) -> int:
        kind = self.program.integer(typed)
        assert kind is not None
        if expr.op not in ("<<", ">>"):
            left, right = kind.wrap(left), kind.wrap(right)
        elif not 0 <= right < (kind.bits or 32):
            raise self.error(expr, f"a static shift by {right}")
        value = binary_value(expr.op, left, right)
        if value is None:
            raise self.error(expr, f"static {left} {expr.op} {right} is undefined; guard it with a static condition")
        return value if expr.op in COMPARISONS else self.wrapped(expr, value, typed)

    def decided(self, expr: c.Binary) -> c.Expr | None:
        """A comparison that the range of an unsigned type decides, as 0 or 1; one below or at 0 is one with 0."""
        left, op, right = expr.left, expr.op, expr.right
        if right.value is None:
            left, op, right = right, MIRRORED[op], left
        kind = self.program.integer(left.type)
        if right.value is None or kind is None or kind.signed or not (self.pure(left) and self.pure(right)):
            return None
        if right.value == 0 and op in ("<", ">="):
            return number(int(op == ">="), "int")
        if right.value == 0 and op == "<=":
            return replace(expr, op="==", left=left, right=right)
        if kind.bits and right.value == (1 << kind.bits) - 1 and op in (">", "<="):
            return number(int(op == "<="), "int")
        return None

    def neutral(self, expr: c.Binary) -> c.Expr | None:
        """What is left of an operation when an operand is neutral (x + 0) or decides alone (x * 0)."""
        op, left, right = expr.op, expr.left, expr.right
        for operand, other, behind in ((right, left, True), (left, right, False)):
            if operand.value is not None and self.pure(operand) and _is_neutral(op, operand.value, expr.type, behind):
                return self.as_type(other, expr)
        zero = (op in ("*", "&") and 0 in (left.value, right.value)) or (op in ("<<", ">>", "/") and left.value == 0)
        zero |= op == "%" and (right.value == 1 or left.value == 0)
        integer = self.program.integer(expr.type) is not None
        if zero and integer and self.pure(left) and self.pure(right):
            return number(0, self.program.promoted(expr.type))
        return None

    def as_type(self, expr: c.Expr, whole: c.Binary) -> c.Expr | None:
        """An operand in place of the whole operation; None where its type is not known well enough."""
        if expr.type is None or whole.type is None:
            return None
        if expr.type.endswith("*") or self.program.promoted(expr.type) == whole.type:
            return replace(expr, value=expr.value if whole.value is None else whole.value)
        return c.Cast(whole.type, expr, line=expr.line, value=whole.value, type=whole.type)


def path_text(path: c.Path) -> str:
    """A path as C writes it: pools[0].links.field."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def expanded(expr: c.Expr) -> c.Expr:
    """A static expression without local variables, as it may be written anywhere."""
    return expanded(expr.origin) if isinstance(expr, c.Identifier) and expr.origin else c.rebuild(expr, expanded)


def _pointed(typed: str | None) -> str | None:
    return typed[:-1].strip() if typed and typed.endswith("*") else None


def _is_neutral(op: str, value: int, typed: str | None, behind: bool) -> bool:
    """Whether x op value (or value op x) is x."""
    if op == "&":
        return value == {"uint32_t": 0xFFFFFFFF, "uint64_t": 0xFFFFFFFFFFFFFFFF}.get(typed or "", -1)
    if op in ("+", "|", "^"):
        return value == 0
    if op in ("-", "<<", ">>"):
        return behind and value == 0
    return value == 1 and (op == "*" or (op == "/" and behind))


def _result_type(op: str, left: c.Expr, right: c.Expr, operating: str | None) -> str | None:
    """The type of an operation done in an integer type; of one with a pointer that of the pointer."""
    if op in COMPARISONS:
        return "int"
    return operating or next((side.type for side in (left, right) if (side.type or "").endswith("*")), None)


def _of_literals(source: c.Binary, out: c.Binary) -> c.Expr:
    """An operation on literals that were none in the source as a number, and a shift of one as a shift of 32 bits."""
    left, right = out.left, out.right
    literal = isinstance(left, c.Literal) and isinstance(right, c.Literal)
    was_literal = isinstance(source.left, c.Literal) and isinstance(source.right, c.Literal)
    if out.value is not None and literal and not was_literal:
        return number(out.value, out.type)
    if out.op == "<<" and isinstance(left, c.Literal) and left.type == "uint32_t" and left.text != "UINT32_MAX":
        digits = c.Literal(str(left.value), value=left.value, type="int")  # that may be an int of 16 bits
        return replace(out, left=c.Cast("uint32_t", digits, value=left.value, type="uint32_t"))
    return out
