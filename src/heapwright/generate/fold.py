"""Specialises functions of the core for one policy: what is static is computed, what is left is new syntax."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from heapwright.errors import HeapwrightError
from heapwright.generate import syntax as c
from heapwright.generate.loops import falls_through, has_jump, join, sequence
from heapwright.generate.memo import Asked, Callee, Memo, Question
from heapwright.generate.program import (
    BUILTIN_VALUES,
    ROOT,
    PolicyValues,
    Program,
    binary_value,
    is_comparison,
    is_pure,
    literal_value,
    mirrored,
    number,
    unary_value,
)
from heapwright.generate.syntax import GrammarError, Key, Specialisation, replace
from heapwright.generate.tidy import tidy

MOST_ITERATIONS = 256

Facts = dict[Key, dict[str, c.Expr]]


@dataclass
class _Variable:
    """What is known of a name: its type, and its initialiser where it is static (`inline`: always written out)."""

    type: str
    static: c.Expr | None = None
    inline: bool = False


class Folder:
    """One specialisation of a program: all functions reached, for one policy.

    `facts` are run-time parameters that are known to be given the same static argument at every call.
    """

    def __init__(self, program: Program, memo: Memo, values: PolicyValues, facts: Facts | None = None) -> None:
        self.program = program
        self.memo = memo
        self.values = values
        self.facts: Facts = facts or {}

    def entry(self, name: str) -> Specialisation:
        """Specialise a public function; its policy parameter is the policy itself. Raises HeapwrightError."""
        function = self.program.functions.get(name)
        if function is None:
            raise HeapwrightError(f"entry {name}: the core defines no such function")
        statics: dict[str, c.Expr] = {}
        for parameter in function.parameters:
            if self.program.policy_pointer(parameter.type) == ROOT:
                statics[parameter.name] = c.Place((), ROOT, pointer=True)
            elif self.program.is_static_parameter(parameter):
                raise GrammarError(function.file, function.line, f"{parameter.name}: an entry has one static parameter")
        return self.request(self.memo.target(function, statics), statics, entry=True)

    def request(self, target: Specialisation, statics: dict[str, c.Expr], entry: bool = False) -> Specialisation:
        """The specialisation, filled in for these static arguments; under way still where the call is recursive."""
        if target.owner is self:
            target.entry |= entry
            return target
        target.owner, target.statics, target.facts = self, statics, self.facts.get(target.key, {})
        target.left, target.constant, target.shown = c.UNDER_WAY, None, None
        target.entry, target.done, target.clean = entry, False, False
        kept = self.memo.find(target, self.answer)
        if kept is None:
            kept = self.memo.keep(target, _Body(self, target).specialise())
        target.left, target.constant, target.clean, target.shown = kept
        target.done = True
        return target

    def answer(self, question: Question) -> object:
        """What folding a function may ask: a number of the policy, or what a caller sees of a callee."""
        if not isinstance(question, Callee):
            return self.lookup(question)
        callee = self.request(*question)
        return callee.shown, callee.entry

    def lookup(self, path: c.Path) -> int:
        """The policy's number at a path."""
        value: object = self.values
        for part in path:
            try:
                value = value[part]  # type: ignore[index]
            except (KeyError, IndexError, TypeError):
                raise HeapwrightError(
                    f"policy: no value for {path_text(path)}; give every member that is used"
                ) from None
        if not isinstance(value, int):
            raise HeapwrightError(f"policy: {path_text(path)} is {value!r}; give an integer")
        return int(value)


def path_text(path: c.Path) -> str:
    """A path as C writes it: pools[0].general.header."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


@cache
def _assigned(function: c.Function) -> frozenset[str]:
    """Names that a function changes, or whose address it takes."""
    return frozenset(assigned_in(function.body or []))


def assigned_in(body: list[c.Stmt]) -> set[str]:
    """Names that a body changes, or whose address it takes."""
    names = set()
    for expr in c.all_expressions(body):
        match expr:
            case c.Assign(target=c.Name(name=name)) | c.Update(operand=c.Name(name=name)):
                names.add(name)
            case c.Unary(op="&", operand=c.Name(name=name)):
                names.add(name)
            case _:
                pass
    return names


class _Body:
    """The folding of one function body."""

    def __init__(self, folder: Folder, target: Specialisation) -> None:
        self.folder = folder
        self.program = folder.program
        self.target = target
        self.function = target.function
        self.names: dict[str, _Variable] = {}
        self.asked: Asked = {}
        self.assigned = _assigned(self.function)
        known = target.statics | target.facts
        for parameter in self.function.parameters:
            typed = c.bare_type(parameter.type) + (" *" if parameter.suffix else "")
            self.names[parameter.name] = _Variable(typed, known.get(parameter.name), inline=True)

    def specialise(self) -> Asked:
        """Fill in the specialisation; returns what was asked on the way.

        A variable whose assignments were all folded away keeps its initial value: the body is folded once more.
        """
        target = self.target
        body = self.block(self.function.body or [])
        while (left := self.assigned & assigned_in(body)) != self.assigned:
            self.assigned = frozenset(left)
            body = self.block(self.function.body or [])
        rest = [parameter for parameter in self.function.parameters if parameter.name not in target.statics]
        target.left = c.Left(body, rest)
        tidy(target, self.program)
        match target.body:
            case [c.Return(expr=c.Expr(value=int()) as result)] if self.pure(result):
                target.constant = self.exported(result)
            case _:
                pass
        return self.asked

    def exported(self, result: c.Expr) -> c.Expr:
        """A static result as callers write it: a name or a number, or a constant named after the function."""
        kind = self.program.integer(self.function.type)
        value = result.value if kind is None or result.value is None else kind.wrap(result.value)
        form = expanded(result)
        typed = self.program.promoted(self.function.type)
        if isinstance(form, (c.Constant, c.Name, c.Derived)) and form.value == value:
            return replace(form, paren=False)
        if any(isinstance(part, (c.Constant, c.Derived)) for part in c.walk(form)) and value == result.value:
            return c.Derived(self.function, self.target.key, form, value=value, type=typed)
        assert value is not None
        return number(value, typed)

    def error(self, node: c.Expr | c.Stmt, what: str) -> GrammarError:
        return GrammarError(self.function.file, node.line or self.function.line, what)

    def pure(self, expr: c.Expr) -> bool:
        return is_pure(expr, self.program.pure_opaque)

    # ---- statements

    def block(self, body: list[c.Stmt]) -> list[c.Stmt]:
        """Fold a body in a scope of its own; statements that are never reached are left out."""
        scope = dict(self.names)
        out: list[c.Stmt] = []
        for stmt, folded in c.each_changed(body, self.statement):
            try:
                join(out, folded)
            except ValueError as problem:
                raise self.error(stmt, str(problem)) from None
            if out and not falls_through(out):
                break
        self.names = scope
        return out

    def statement(self, stmt: c.Stmt) -> list[c.Stmt]:
        match stmt:
            case c.Declare():
                return self.declare(stmt)
            case c.Do():
                return [replace(stmt, expr=self.expr(stmt.expr))]
            case c.If():
                return self.if_statement(stmt)
            case c.For():
                return self.for_statement(stmt)
            case c.While():
                return self.while_statement(stmt)
            case c.Return():
                if stmt.expr is None:
                    return [replace(stmt)]
                return [replace(stmt, expr=self.convert(self.expr(stmt.expr), self.function.type))]
            case _:
                return [replace(stmt)]

    def declare(self, stmt: c.Declare) -> list[c.Stmt]:
        struct = self.program.policy_pointer(stmt.type)
        if struct:
            place = self.place(stmt.init) if stmt.init else None
            if place is None or not place.pointer or stmt.name in self.assigned:
                raise self.error(stmt, f"{stmt.name}: a policy pointer is initialised once, to a part of the policy")
            self.names[stmt.name] = _Variable(c.bare_type(stmt.type), place, inline=True)
            return []
        typed = c.bare_type(stmt.type) + (" *" if stmt.suffix else "")
        init = None if stmt.init is None else self.convert(self.expr(stmt.init), typed)
        self.names[stmt.name] = _Variable(typed, self.static_initialiser(stmt, init))
        settled = stmt.name in _assigned(self.function) - self.assigned and init and self.program.integer(stmt.type)
        const = "const " if settled and not stmt.type.startswith("const ") else ""
        return [replace(stmt, init=init, type=const + stmt.type)]

    def static_initialiser(self, stmt: c.Declare, init: c.Expr | None) -> c.Expr | None:
        """The initialiser of a variable that keeps its static value; None for other variables."""
        kind = self.program.integer(stmt.type)
        if init is None or init.value is None or kind is None or stmt.suffix or not self.pure(init):
            return None
        if stmt.name in self.assigned or not kind.holds(init.value):
            return None
        return init

    def if_statement(self, stmt: c.If) -> list[c.Stmt]:
        test = self.expr(stmt.test, control=True)
        if test.value is None:
            return [replace(stmt, test=test, yes=self.block(stmt.yes), no=self.block(stmt.no))]
        left = self.block(stmt.yes if test.value else stmt.no)
        return _with_comments(stmt, self.effects(test, stmt) + left)

    def effects(self, test: c.Expr, stmt: c.Stmt) -> list[c.Stmt]:
        """What evaluating a static condition does all the same."""
        if self.pure(test):
            return []
        assert isinstance(test, c.Binary)
        return [c.Do(test.left, line=stmt.line)]

    def while_statement(self, stmt: c.While) -> list[c.Stmt]:
        test = self.expr(stmt.test, control=True)
        if test.value == 0:
            effects = self.effects(test, stmt)
            if not stmt.at_end:
                return _with_comments(stmt, effects)
            body = self.block(stmt.body)
            if not has_jump(body):
                return _with_comments(stmt, body + effects)
        if test.value is not None and self.pure(test):
            test = number(int(bool(test.value)), "int")
        return [replace(stmt, test=test, body=self.block(stmt.body))]

    def for_statement(self, stmt: c.For) -> list[c.Stmt]:
        unrolled = self.unrolled(stmt)
        if unrolled is not None:
            return _with_comments(stmt, unrolled)
        scope = dict(self.names)
        init: c.Declare | None = None
        if stmt.init:
            typed = c.bare_type(stmt.init.type)
            start = None if stmt.init.init is None else self.convert(self.expr(stmt.init.init), typed)
            init = replace(stmt.init, init=start)
            self.names[stmt.init.name] = _Variable(typed)
        test = self.expr(stmt.test, control=True) if stmt.test else None
        update = self.expr(stmt.update) if stmt.update else None
        out = replace(stmt, init=init, test=test, update=update, body=self.block(stmt.body))
        self.names = scope
        return [out]

    # ---- unrolling

    def unrolled(self, stmt: c.For) -> list[c.Stmt] | None:
        """The iterations one after the other; None where the loop stays one."""
        counter = stmt.init.name if stmt.init else ""
        needed = needs_static(self.program, counter, stmt.body)
        scope = dict(self.names)
        values = self.iterations(stmt)
        if values is None or (len(values) > 1 and not needed):
            self.names = scope
            if needed:
                raise self.error(
                    stmt,
                    f"{counter} indexes the policy, so this loop needs static bounds and a counter "
                    "that the body does not change",
                )
            return None
        seen: set[str] = set()
        passes = []
        for value in values:
            self.bind_counter(stmt, value)
            passes.append(_without_repeated_comments(self.block(stmt.body), seen))
        self.names = scope
        try:
            return sequence(passes)
        except ValueError as problem:
            if needed:
                raise self.error(stmt, str(problem)) from None
            return None

    def iterations(self, stmt: c.For) -> list[int] | None:
        """The counter's values, where they are static."""
        init, test, update = stmt.init, stmt.test, stmt.update
        if init is None or init.init is None or test is None or update is None:
            return None
        step = _step(init.name, update)
        changes = any(isinstance(part, (c.Assign, c.Update)) for part in c.walk(test))
        if step is None or changes or init.name in assigned_in(stmt.body):
            return None
        start = self.expr(init.init)
        kind = self.program.integer(init.type)
        if start.value is None or kind is None:
            return None
        values: list[int] = []
        value = start.value
        while len(values) <= MOST_ITERATIONS:
            self.bind_counter(stmt, value)
            going = self.expr(test, control=True)
            size = self.expr(step[1])
            if going.value is None or size.value is None:
                return None
            if not going.value:
                return values
            values.append(value)
            value = kind.wrap(value + step[0] * size.value)
        return None

    def bind_counter(self, stmt: c.For, value: int) -> None:
        assert stmt.init
        typed = c.bare_type(stmt.init.type)
        self.names[stmt.init.name] = _Variable(typed, number(value, self.program.promoted(typed)), inline=True)

    # ---- the policy

    def place(self, expr: c.Expr) -> c.Place | None:
        """The part of the policy that an expression names; None for everything else."""
        match expr:
            case c.Name(name=name):
                known = self.names.get(name)
                return known.static if known and isinstance(known.static, c.Place) else None
            case c.Member():
                base = self.place(expr.base)
                return None if base is None else self.member(expr, base)
            case c.Index():
                base = self.place(expr.base)
                return None if base is None else self.element(expr, base)
            case c.Unary(op="&"):
                base = self.place(expr.operand)
                if base is None:
                    return None
                if base.array or base.pointer or base.of not in self.program.structs:
                    raise self.error(expr, "only the address of a policy struct is static")
                return replace(base, pointer=True)
            case _:
                return None

    def member(self, expr: c.Member, base: c.Place) -> c.Place:
        fields = self.program.structs[base.of].fields if base.of in self.program.structs else None
        found = (fields or {}).get(expr.name)
        if found is None or base.array or base.pointer != expr.arrow:
            raise self.error(expr, f"{base.of} has no member {expr.name} here")
        return c.Place((*base.path, expr.name), c.bare_type(found.type), array=found.array, line=expr.line)

    def element(self, expr: c.Index, base: c.Place) -> c.Place | None:
        """An element with a static index; None for one of numbers at a run-time index."""
        if not base.array:
            raise self.error(expr, f"{path_text(base.path)} is no array")
        index = self.expr(expr.index)
        if index.value is not None:
            return c.Place((*base.path, index.value), base.of, line=expr.line)
        if base.of in self.program.structs:
            raise self.error(expr, f"the index into {path_text(base.path)} is not static")
        return None

    def table(self, expr: c.Index) -> c.Expr | None:
        """An element of a policy array at a run-time index."""
        base = self.place(expr.base)
        if base is None:
            return None
        table = c.Table(base.path, type=base.of + " *", line=expr.line)
        return c.Index(table, self.expr(expr.index), type=base.of, line=expr.line)

    def constant(self, place: c.Place) -> c.Expr:
        if place.pointer or place.array or place.of in self.program.structs:
            raise self.error(place, f"{path_text(place.path) or 'the policy'} is passed to run-time code")
        value = self.folder.lookup(place.path)
        self.asked.setdefault(place.path, (place.path, value))
        kind = self.program.integer(place.of)
        if kind is None or not kind.holds(value):
            raise HeapwrightError(f"policy: {path_text(place.path)} is {value}, which {place.of} does not hold")
        return c.Constant(place.path, value=value, type=self.program.promoted(place.of), line=place.line)

    # ---- expressions

    def expr(self, expr: c.Expr, control: bool = False) -> c.Expr:
        """Fold an expression; `control`: only whether it is zero matters."""
        if isinstance(expr, c.Literal):
            value, typed = literal_value(expr.text)
            return replace(expr, value=value, type=typed)
        if isinstance(expr, (c.Name, c.Member, c.Index, c.Unary)):
            place = self.place(expr)
            if place is not None:
                place.line = expr.line
                return self.constant(place)
        match expr:
            case c.Name():
                return self.name(expr)
            case c.Binary(op="&&" | "||"):
                return self.logical(expr, control)
            case c.Binary():
                return self.binary(expr)
            case c.Unary():
                return self.unary(expr)
            case c.Conditional():
                return self.conditional(expr, control)
            case c.Call():
                return self.call(expr)
            case c.Cast():
                return self.cast(expr)
            case c.Assign() | c.Update():
                return self.assignment(expr)
            case _:
                return self.access(expr)

    def name(self, expr: c.Name) -> c.Expr:
        known = self.names.get(expr.name)
        if known is None:
            return self.global_name(expr)
        form = known.static
        if form is None:
            return replace(expr, type=known.type)
        if known.inline or isinstance(form, (c.Constant, c.Derived)):
            return replace(form, line=expr.line, paren=False)
        return replace(expr, value=form.value, type=self.program.promoted(known.type), origin=form)

    def global_name(self, expr: c.Name) -> c.Expr:
        program = self.program
        if expr.name in BUILTIN_VALUES:
            value, typed = BUILTIN_VALUES[expr.name]
            return replace(expr, value=value, type=typed)
        if expr.name in program.enumerators:
            return replace(expr, value=program.enumerators[expr.name], type="int")
        macro = program.macros.get(expr.name)
        if macro and macro.parameters is None and macro.value is not None:
            meaning = self.expr(macro.value)
            return replace(expr, value=meaning.value, type=meaning.type)
        variable = program.globals.get(expr.name)
        return replace(expr, type=c.bare_type(variable.type) if variable else None)

    def access(self, expr: c.Expr) -> c.Expr:
        """Members, elements and initialisers of run-time objects."""
        if isinstance(expr, c.Index):
            table = self.table(expr)
            if table is not None:
                return table
        out = c.rebuild(expr, self.expr)
        match out:
            case c.Member():
                struct = self.program.structs.get((out.base.type or "").removesuffix(" *"))
                found = ((struct.fields or {}) if struct else {}).get(out.name)
                out.type = c.bare_type(found.type) + (" *" if found.array else "") if found else None
            case c.Index():
                out.type = _pointed(out.base.type)
            case c.Verbatim():
                out = replace(out, type="size_t")
            case _:
                pass
        return out

    def unary(self, expr: c.Unary) -> c.Expr:
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
        if expr.op == "!":
            return number(value, "int")
        return replace(out, value=self.wrapped(expr, value, out.type))

    def wrapped(self, expr: c.Expr, value: int, typed: str) -> int:
        """A static result in its type; overflow of a signed one is an error."""
        kind = self.program.integer(typed)
        assert kind is not None
        if kind.signed and not kind.holds(value):
            raise self.error(expr, f"a static expression overflows {typed}")
        return kind.wrap(value)

    def assignment(self, expr: c.Assign | c.Update) -> c.Expr:
        target = expr.target if isinstance(expr, c.Assign) else expr.operand
        if self.place(target) is not None:
            raise self.error(expr, "the policy is assigned to")
        out = c.rebuild(expr, self.expr)
        if isinstance(out, c.Assign):
            out.type = out.target.type
            if out.op == "=":
                out.source = self.convert(out.source, out.type)
        elif isinstance(out, c.Update):
            out.type = out.operand.type
        return out

    def logical(self, expr: c.Binary, control: bool) -> c.Expr:
        """&& and ||: a static side decides or goes."""
        left = self.expr(expr.left, control=True)
        absorbing = int(expr.op == "||")
        if left.value is not None:
            if bool(left.value) != bool(absorbing):
                right = self.expr(expr.right, control=True)
                return self.after(left, self.truth(right, control))
            return self.after(left, number(absorbing, "int"))
        right = self.expr(expr.right, control=True)
        if right.value is None or not self.pure(right):
            return replace(expr, left=left, right=right, type="int")
        if bool(right.value) == bool(absorbing):
            return self.after(left, number(absorbing, "int"))
        return self.truth(left, control)

    def after(self, first: c.Expr, then: c.Expr) -> c.Expr:
        """`then`, with whatever evaluating `first` does happening before."""
        if self.pure(first):
            return then
        if isinstance(first, c.Binary) and first.op == ",":
            first = first.left
        return c.Binary(",", first, then, line=first.line, paren=True, value=then.value, type=then.type)

    def truth(self, expr: c.Expr, control: bool) -> c.Expr:
        """The expression as 0 or 1, where that matters."""
        if expr.value is not None:
            return self.after(expr, number(int(bool(expr.value)), "int"))
        boolean = isinstance(expr, c.Binary) and (is_comparison(expr.op) or expr.op in ("&&", "||"))
        negation = isinstance(expr, c.Unary) and expr.op == "!"
        if control or boolean or negation or expr.type in ("bool", "_Bool"):
            return expr
        return c.Binary("!=", expr, number(0, self.program.promoted(expr.type)), line=expr.line, type="int")

    def conditional(self, expr: c.Conditional, control: bool) -> c.Expr:
        test = self.expr(expr.test, control=True)
        if test.value is not None:
            chosen = self.expr(expr.yes if test.value else expr.no, control)
            return self.after(test, replace(chosen, paren=expr.paren or chosen.paren))
        yes, no = self.expr(expr.yes, control), self.expr(expr.no, control)
        typed = self.program.common(yes.type, no.type) or (yes.type if yes.type == no.type else None)
        return replace(expr, test=test, yes=yes, no=no, type=typed)

    def cast(self, expr: c.Cast) -> c.Expr:
        if expr.to == "void":
            if self.place(expr.operand) is not None:
                return replace(expr, operand=number(0, "int"), type="void")
            return replace(expr, operand=self.expr(expr.operand), type="void")
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

    def binary(self, expr: c.Binary) -> c.Expr:
        left, right = self.expr(expr.left), self.expr(expr.right)
        program = self.program
        if expr.op == ",":
            return self.after(left, right)
        shift = expr.op in ("<<", ">>")
        operating = program.promoted(left.type) if shift else program.common(left.type, right.type)
        out = replace(expr, left=left, right=right, type="int" if is_comparison(expr.op) else operating)
        if operating is None and not is_comparison(expr.op):
            out.type = next((side.type for side in (left, right) if (side.type or "").endswith("*")), None)
        if left.value is not None and right.value is not None and operating and self.pure(left) and self.pure(right):
            out.value = self.static_result(expr, left.value, right.value, operating)
            if is_comparison(expr.op):
                return number(out.value or 0, "int")
        if is_comparison(expr.op):
            return self.decided(out) or out
        simple = self.neutral(out)
        if simple is not None:
            return replace(simple, paren=simple.paren or expr.paren)
        written = isinstance(expr.left, c.Literal) and isinstance(expr.right, c.Literal)
        if out.value is not None and isinstance(left, c.Literal) and isinstance(right, c.Literal) and not written:
            return number(out.value, out.type)
        if expr.op == "<<" and isinstance(left, c.Literal) and left.type == "uint32_t" and left.text != "UINT32_MAX":
            return replace(out, left=_of_32_bits(left))
        return out

    def static_result(self, expr: c.Binary, left: int, right: int, typed: str) -> int:
        kind = self.program.integer(typed)
        assert kind is not None
        if expr.op in ("<<", ">>") and not 0 <= right < (kind.bits or 32):
            raise self.error(expr, f"a static shift by {right}")
        if expr.op not in ("<<", ">>"):
            left, right = kind.wrap(left), kind.wrap(right)
        value = binary_value(expr.op, left, right)
        if value is None:
            raise self.error(expr, f"static {left} {expr.op} {right} is undefined; guard it with a static condition")
        return value if is_comparison(expr.op) else self.wrapped(expr, value, typed)

    def decided(self, expr: c.Binary) -> c.Expr | None:
        """A comparison that the range of an unsigned type decides, as 0 or 1; one below or at 0 is one with 0."""
        left, op, right = expr.left, expr.op, expr.right
        if right.value is None:
            left, op, right = right, mirrored(op), left
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
        if right.value is not None and self.pure(right) and _is_neutral(op, right.value, expr.type, right=True):
            return self.as_type(left, expr)
        if left.value is not None and self.pure(left) and _is_neutral(op, left.value, expr.type, right=False):
            return self.as_type(right, expr)
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

    # ---- calls

    def call(self, expr: c.Call) -> c.Expr:
        function = self.program.functions.get(expr.name)
        if function is None:
            return self.opaque_call(expr)
        if len(function.parameters) != len(expr.arguments):
            raise self.error(expr, f"{expr.name} takes {len(function.parameters)} arguments")
        statics: dict[str, c.Expr] = {}
        arguments: list[c.Expr] = []
        for parameter, argument in zip(function.parameters, expr.arguments, strict=True):
            if self.program.is_static_parameter(parameter):
                statics[parameter.name] = self.static_argument(expr, parameter, argument)
            else:
                arguments.append(self.convert(self.expr(argument), parameter.type))
        callee = self.folder.request(self.folder.memo.target(function, statics), statics)
        self.asked.setdefault(callee, (Callee(callee, statics), (callee.shown, callee.entry)))
        if callee.constant is not None and not callee.entry and all(self.pure(argument) for argument in arguments):
            return replace(callee.constant, line=expr.line)
        return replace(expr, arguments=arguments, callee=callee, type=c.bare_type(function.type))

    def static_argument(self, call: c.Call, parameter: c.Parameter, argument: c.Expr) -> c.Expr:
        struct = self.program.policy_pointer(parameter.type)
        if struct:
            place = self.place(argument)
            if place is None or not place.pointer or place.of != struct:
                raise self.error(call, f"{call.name}: {parameter.name} needs a static pointer to {struct}")
            return place
        folded = self.expr(argument)
        kind = self.program.integer(parameter.type)
        if folded.value is None or kind is None or not self.pure(folded):
            raise self.error(call, f"{call.name}: {parameter.name} needs a static argument")
        form = expanded(folded)
        value = kind.wrap(folded.value)
        promoted = self.program.promoted(parameter.type)
        return form if form.type == promoted and form.value == value else number(value, promoted)

    def opaque_call(self, expr: c.Call) -> c.Expr:
        """A call of a macro, a builtin, or a function that only the compiler chooses."""
        variants = self.program.opaque.get(expr.name)
        typed = c.bare_type(variants[0].type) if variants else None
        return replace(expr, arguments=[self.expr(argument) for argument in expr.arguments], type=typed)


def _of_32_bits(literal: c.Literal) -> c.Cast:
    """A literal as it has to be shifted: without the cast it may be an int of 16 bits."""
    digits = c.Literal(str(literal.value), value=literal.value, type="int")
    return c.Cast("uint32_t", digits, value=literal.value, type="uint32_t")


def expanded(expr: c.Expr) -> c.Expr:
    """A static expression without local variables, as it may be written anywhere."""
    if isinstance(expr, c.Name) and expr.origin is not None:
        return expanded(expr.origin)
    return c.rebuild(expr, expanded)


def needs_static(program: Program, counter: str, body: list[c.Stmt]) -> bool:
    """Whether a loop body uses its counter, or what follows from it, where only a static value will do."""
    derived = {counter}
    for stmt in c.all_statements(body):
        if isinstance(stmt, c.Declare) and stmt.init and _mentions(stmt.init, derived):
            derived.add(stmt.name)
    for expr in c.all_expressions(body):
        match expr:
            case c.Index(base=c.Member(name=name)) if name in program.struct_arrays and _mentions(expr.index, derived):
                return True
            case c.Call() if expr.name in program.functions:
                parameters = program.functions[expr.name].parameters
                for parameter, argument in zip(parameters, expr.arguments, strict=False):
                    scalar = program.is_static_parameter(parameter) and not program.policy_pointer(parameter.type)
                    if scalar and _mentions(argument, derived):
                        return True
            case _:
                pass
    return False


def _mentions(expr: c.Expr, names: set[str]) -> bool:
    return any(isinstance(part, c.Name) and part.name in names for part in c.walk(expr))


def _step(counter: str, update: c.Expr) -> tuple[int, c.Expr] | None:
    """Direction and size of a loop's step."""
    match update:
        case c.Update(operand=c.Name(name=name)) if name == counter:
            return (1 if update.op == "++" else -1), c.Literal("1")
        case c.Assign(op="+=" | "-=", target=c.Name(name=name)) if name == counter:
            return (1 if update.op == "+=" else -1), update.source
        case _:
            return None


def _pointed(typed: str | None) -> str | None:
    return typed[:-1].strip() if typed and typed.endswith("*") else None


def _is_neutral(op: str, value: int, typed: str | None, right: bool) -> bool:
    """Whether x op value (or value op x) is x."""
    if op == "&":
        return value == {"uint32_t": 0xFFFFFFFF, "uint64_t": 0xFFFFFFFFFFFFFFFF, "int": -1, "int64_t": -1}.get(
            typed or ""
        )
    if op in ("+", "|", "^"):
        return value == 0
    if op in ("-", "<<", ">>"):
        return right and value == 0
    return value == 1 and (op == "*" or (op == "/" and right))


def _with_comments(stmt: c.Stmt, left: list[c.Stmt]) -> list[c.Stmt]:
    """What is left of a statement, with its comments."""
    if left:
        left[0].comments = [*stmt.comments, *left[0].comments]
    return left


def _without_repeated_comments(body: list[c.Stmt], seen: set[str]) -> list[c.Stmt]:
    """An iteration without the comments that an earlier one already has."""
    new = set()
    for stmt in c.all_statements(body):
        stmt.comments = [comment for comment in stmt.comments if comment.text not in seen]
        stmt.trailing = "" if stmt.trailing in seen else stmt.trailing
        new |= {comment.text for comment in stmt.comments} | {stmt.trailing}
    seen |= new
    return body
