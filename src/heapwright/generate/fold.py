"""Specialises functions of the core for one policy: what is static is computed, what is left is new syntax."""

from __future__ import annotations

from functools import cache

from heapwright.files.errors import HeapwrightError
from heapwright.generate import syntax as c
from heapwright.generate.expressions import Expressions, Variable, expanded, path_text
from heapwright.generate.left import UNDER_WAY, Left, Specialisation
from heapwright.generate.loops import falls_through, has_jump, join, needs_static, sequence, step_of
from heapwright.generate.memo import Asked, Callee, Memo, Question
from heapwright.generate.program import ROOT, PolicyValues, Program, number
from heapwright.generate.syntax import GrammarError, Key, replace
from heapwright.generate.tidy import tidy

MOST_ITERATIONS = 256

Facts = dict[Key, dict[str, c.Expr]]


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
        target.left, target.constant, target.shown = UNDER_WAY, None, None
        target.entry = entry
        kept = self.memo.find(target, self.answer)
        if kept is None:
            kept = self.memo.keep(target, _Body(self, target).specialise())
        target.left, target.constant, target.shown = kept
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


@cache
def _assigned(function: c.Function) -> frozenset[str]:
    """Names that a function changes, or whose address it takes."""
    return frozenset(c.names_changed(function.body or []))


class _Body(Expressions):
    """The folding of one function body."""

    def __init__(self, folder: Folder, target: Specialisation) -> None:
        super().__init__(folder.program, target.function, folder.lookup)
        self.folder = folder
        self.target = target
        self.assigned = _assigned(self.function)
        known = target.statics | target.facts
        for parameter in self.function.parameters:
            typed = c.bare_type(parameter.type) + (" *" if parameter.suffix else "")
            self.names[parameter.name] = Variable(typed, known.get(parameter.name), inline=True)

    def specialise(self) -> Asked:
        """Fill in the specialisation; returns what was asked on the way.

        A variable whose assignments were all folded away keeps its initial value: the body is folded once more.
        """
        target = self.target
        body = self.block(self.function.body or [])
        while (left := self.assigned.intersection(c.names_changed(body))) != self.assigned:
            self.assigned = left
            body = self.block(self.function.body or [])
        rest = [parameter for parameter in self.function.parameters if parameter.name not in target.statics]
        target.left = Left(body, rest)
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
            path = next((part for part in self.target.key if isinstance(part, tuple) and part), ())
            return c.Derived(path, self.function, self.target.key, form, value=value, type=typed)
        assert value is not None
        return number(value, typed)

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
            case c.Return(expr=c.Expr() as expr):
                return [replace(stmt, expr=self.convert(self.expr(expr), self.function.type))]
            case _:
                return [replace(stmt)]

    def declare(self, stmt: c.Declare) -> list[c.Stmt]:
        struct = self.program.policy_pointer(stmt.type)
        if struct:
            place = self.place(stmt.init) if stmt.init else None
            if place is None or not place.pointer or stmt.name in self.assigned:
                raise self.error(stmt, f"{stmt.name}: a policy pointer is initialised once, to a part of the policy")
            self.names[stmt.name] = Variable(c.bare_type(stmt.type), place, inline=True)
            return []
        typed = c.bare_type(stmt.type) + (" *" if stmt.suffix else "")
        init = None if stmt.init is None else self.convert(self.expr(stmt.init), typed)
        self.names[stmt.name] = Variable(typed, self.static_initialiser(stmt, init))
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
        return c.with_comments(stmt, self.effects(test, stmt) + left)

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
                return c.with_comments(stmt, effects)
            body = self.block(stmt.body)
            if not has_jump(body):
                return c.with_comments(stmt, body + effects)
        if test.value is not None and self.pure(test):
            test = number(int(bool(test.value)), "int")
        return [replace(stmt, test=test, body=self.block(stmt.body))]

    def for_statement(self, stmt: c.For) -> list[c.Stmt]:
        unrolled = self.unrolled(stmt)
        if unrolled is not None:
            return c.with_comments(stmt, unrolled)
        scope = dict(self.names)
        init: c.Declare | None = None
        if stmt.init:
            typed = c.bare_type(stmt.init.type)
            start = None if stmt.init.init is None else self.convert(self.expr(stmt.init.init), typed)
            init = replace(stmt.init, init=start)
            self.names[stmt.init.name] = Variable(typed)
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
        step = step_of(init.name, update)
        changes = any(isinstance(part, c.Change) for part in c.walk(test))
        if step is None or changes or init.name in c.names_changed(stmt.body):
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
        self.names[stmt.init.name] = Variable(typed, number(value, self.program.promoted(typed)), inline=True)

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


def _without_repeated_comments(body: list[c.Stmt], seen: set[str]) -> list[c.Stmt]:
    """An iteration without the comments that an earlier one already has."""
    new = set()
    for stmt in c.all_statements(body):
        stmt.comments = [comment for comment in stmt.comments if comment.text not in seen]
        stmt.trailing = "" if stmt.trailing in seen else stmt.trailing
        new |= {comment.text for comment in stmt.comments} | {stmt.trailing}
    seen |= new
    return body
