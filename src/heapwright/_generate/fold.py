"""Specialises functions of the core for one policy: what is static is computed, what is left is new syntax."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cache

from heapwright._generate import syntax as c
from heapwright._generate.dead_code import tidy
from heapwright._generate.expressions import Expressions, Variable, expanded, path_text
from heapwright._generate.inline import call_sites, reachable, settle
from heapwright._generate.program import ROOT, PolicyValues, Program, is_pure, number
from heapwright._generate.residual import UNDER_WAY, Asked, Callee, Memo, Question, Residual, Specialisation, spelling
from heapwright._generate.syntax import Key, replace
from heapwright._support.errors import HeapwrightError

MOST_ITERATIONS = 256
MOST_ROUNDS = 8

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
                what = f"policy: no value for {path_text(path)}; give every member that is used"
                raise HeapwrightError(what) from None
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
        """Fill in the specialisation; returns the questions to the policy, with answers.

        A variable whose assignments were all folded away keeps its initial value: the body is folded once more.
        """
        target = self.target
        body = self.block(self.function.body or [])
        while (remaining := self.assigned.intersection(c.names_changed(body))) != self.assigned:
            self.assigned = remaining
            body = self.block(self.function.body or [])
        rest = [parameter for parameter in self.function.parameters if parameter.name not in target.statics]
        target.left = Residual(body, rest)
        tidy(target, self.program)
        match target.left.body:
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
        if isinstance(form, (c.Constant, c.Identifier, c.Derived)) and form.value == value:
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
            if out and not c.falls_through(out):
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
                test = self.expr(stmt.test, control=True)
                if test.value is None:
                    return [replace(stmt, test=test, yes=self.block(stmt.yes), no=self.block(stmt.no))]
                return c.with_comments(stmt, self.effects(test) + self.block(stmt.yes if test.value else stmt.no))
            case c.For():
                return self.for_statement(stmt)
            case c.While():
                return self.while_statement(stmt)
            case c.Return(expr=c.Expr() as expr):
                return [replace(stmt, expr=self.convert(self.expr(expr), self.function.type))]
            case _:
                return [replace(stmt)]

    def declare(self, stmt: c.Declare) -> list[c.Stmt]:
        typed = c.bare_type(stmt.type) + (" *" if stmt.suffix else "")
        if self.program.policy_pointer(stmt.type):
            self.names[stmt.name] = Variable(typed, self.place(stmt.init), inline=True)
            return []
        init = stmt.init and self.convert(self.expr(stmt.init), typed)
        kind = self.program.integer(stmt.type)
        value = init.value if init and not stmt.suffix and stmt.name not in self.assigned else None
        static = value is not None and kind and kind.holds(value) and self.pure(init)
        self.names[stmt.name] = Variable(typed, init if static else None)
        settled = stmt.name in _assigned(self.function) - self.assigned and init and kind
        const = "const " if settled and not stmt.type.startswith("const ") else ""
        return [replace(stmt, init=init, type=const + stmt.type)]

    def effects(self, test: c.Expr) -> list[c.Stmt]:
        """What evaluating a static condition does all the same."""
        return [] if self.pure(test) else [c.Do(test.left, line=test.line)]

    def while_statement(self, stmt: c.While) -> list[c.Stmt]:
        test = self.expr(stmt.test, control=True)
        if test.value == 0:
            if not stmt.at_end:
                return c.with_comments(stmt, self.effects(test))
            body = self.block(stmt.body)
            if not c.has_jump(body):
                return c.with_comments(stmt, body + self.effects(test))
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
        test, update = (self.expr(part) if part else None for part in (stmt.test, stmt.update))
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
                what = "so this loop needs static bounds and a counter that the body does not change"
                raise self.error(stmt, f"{counter} indexes the policy, {what}")
            return None
        seen: set[str] = set()
        passes = []
        for value in values:
            self.bind_counter(stmt, value)
            if len(values) == 1:
                self.bind_by_name(stmt)
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
        match stmt.init, stmt.test, stmt.update:
            case c.Declare(name=name, init=c.Expr() as first), c.Expr() as test, c.Change(
                target=c.Identifier(name=other)
            ):
                counts = name == other and stmt.update.op in ("++", "+=")
            case _:
                return None
        if not counts or any(isinstance(part, c.Change) for part in c.walk(test)) or name in c.names_changed(stmt.body):
            return None
        step = stmt.update.source or c.Literal("1")
        value, kind = self.expr(first).value, self.program.integer(stmt.init.type)
        if value is None or kind is None:
            return None
        values: list[int] = []
        while len(values) <= MOST_ITERATIONS:
            self.bind_counter(stmt, value)
            going = self.expr(test, control=True)
            size = self.expr(step)
            if going.value is None or size.value is None:
                return None
            if not going.value:
                return values
            values.append(value)
            value = kind.wrap(value + size.value)
        return None

    def bind_counter(self, stmt: c.For, value: int) -> None:
        typed = c.bare_type(stmt.init.type)
        self.names[stmt.init.name] = Variable(typed, number(value, self.program.promoted(typed)), inline=True)

    def bind_by_name(self, stmt: c.For) -> None:
        """A counter with one value that has a name, such as an address, is written as that."""
        typed, first = c.bare_type(stmt.init.type), self.expr(stmt.init.init)
        if isinstance(first, (c.Constant, c.Derived)) and first.type == self.program.promoted(typed):
            self.names[stmt.init.name] = Variable(typed, first, inline=True)

    # ---- calls

    def _call(self, expr: c.Call, _: bool) -> c.Expr:
        function = self.program.functions.get(expr.name)
        if function is None:  # a macro, a builtin, or a function that only the compiler chooses
            variants = self.program.opaque.get(expr.name)
            typed = c.bare_type(variants[0].type) if variants else None
            return replace(expr, arguments=list(map(self.expr, expr.arguments)), type=typed)
        statics: dict[str, c.Expr] = {}
        arguments: list[c.Expr] = []
        for parameter, argument in zip(function.parameters, expr.arguments, strict=True):
            if self.program.is_static_parameter(parameter):
                statics[parameter.name] = self.static_argument(expr, parameter, argument)
            else:
                arguments.append(self.convert(self.expr(argument), parameter.type))
        callee = self.folder.request(self.folder.memo.target(function, statics), statics)
        self.asked.setdefault(callee, (Callee(callee, statics), (callee.shown, callee.entry)))
        if callee.constant is not None and not callee.entry and all(map(self.pure, arguments)):
            return replace(callee.constant, line=expr.line)
        return replace(expr, arguments=arguments, callee=callee, type=c.bare_type(function.type))

    def static_argument(self, call: c.Call, parameter: c.Declare, argument: c.Expr) -> c.Expr:
        if place := self.place(argument) if self.program.policy_pointer(parameter.type) else None:
            return place
        folded = self.expr(argument)
        kind = self.program.integer(parameter.type)
        if folded.value is None or kind is None or not self.pure(folded):
            raise self.error(call, f"{call.name}: {parameter.name} needs a static argument")
        form = expanded(folded)
        value = kind.wrap(folded.value)
        promoted = self.program.promoted(parameter.type)
        return form if form.type == promoted and form.value == value else number(value, promoted)


def _without_repeated_comments(body: list[c.Stmt], seen: set[str]) -> list[c.Stmt]:
    """An iteration without the comments that an earlier one already has."""
    new = set()
    for stmt in c.all_statements(body):
        stmt.comments = [comment for comment in stmt.comments if comment not in seen]
        stmt.trailing = "" if stmt.trailing in seen else stmt.trailing
        new |= {*stmt.comments, stmt.trailing}
    seen |= new
    return body


# ---- blocks and loops ------------------------------------------------------------------------------------------------


def join(body: list[c.Stmt], more: list[c.Stmt]) -> None:
    """Append statements in place; a variable that the body already declares is assigned instead of declared again.

    Raises ValueError for a variable that cannot be assigned so.
    """
    for stmt in more:
        others = (other for other in body if isinstance(other, c.Declare) and other.name == stmt.name)
        previous = next(others, None) if isinstance(stmt, c.Declare) else None
        if previous is None or not isinstance(stmt, c.Declare):
            body.append(stmt)
            continue
        same = c.bare_type(previous.type) == c.bare_type(stmt.type)
        if not same or stmt.suffix or previous.suffix or isinstance(stmt.init, c.Braces):
            raise ValueError(f"{stmt.name} is declared twice in one block once conditions are folded; rename one")
        if "*" not in previous.type:
            previous.type = previous.type.removeprefix("const ")
        if stmt.init is not None:
            name = c.Identifier(stmt.name, line=stmt.line, type=c.bare_type(stmt.type))
            assign = c.Change("=", name, stmt.init, line=stmt.line, type=name.type)
            body.append(c.Do(assign, line=stmt.line, comments=stmt.comments, trailing=stmt.trailing, blank=stmt.blank))


def sequence(passes: list[list[c.Stmt]]) -> list[c.Stmt]:
    """The iterations of a loop one after the other. Raises ValueError where one goes on or ends early."""
    out: list[c.Stmt] = []
    for body in passes:
        if c.has_jump(body):
            raise ValueError("break or continue in an unrolled loop; put the body into a function that returns")
        join(out, body)
        if out and not c.falls_through(out):
            break
    return out


def needs_static(program: Program, counter: str, body: list[c.Stmt]) -> bool:
    """Whether a loop body uses its counter, or what follows from it, where only a static value will do."""
    derived = {counter}
    for stmt in c.all_statements(body):
        if isinstance(stmt, c.Declare) and stmt.init and derived.intersection(c.names(stmt.init)):
            derived.add(stmt.name)
    static: list[c.Expr] = []
    for expr in c.all_expressions(body):
        match expr:
            case c.Index(base=c.MemberAccess(name=name), index=index) if name in program.struct_arrays:
                static.append(index)
            case c.Call(name=name, arguments=arguments) if name in program.functions:
                for parameter, argument in zip(program.functions[name].parameters, arguments, strict=False):
                    scalar = program.is_static_parameter(parameter) and not program.policy_pointer(parameter.type)
                    static += [argument] * scalar
            case _:
                pass
    return not derived.isdisjoint(c.names(*static))


# ---- the whole program -----------------------------------------------------------------------------------------------


def fold_all(
    program: Program, memo: Memo, values: PolicyValues, entries: Sequence[str]
) -> tuple[Folder, list[Specialisation]]:
    """Fold what the entries reach.

    A parameter that gets the same static argument at every call that is left becomes static in the next round, until
    nothing new is learnt.
    """
    facts: Facts = {}
    refuted: set[tuple[Key, str]] = set()
    for at in range(MOST_ROUNDS + 1):
        facts = facts if at < MOST_ROUNDS else {}
        folder = Folder(program, memo, values, facts)
        wanted = [folder.entry(name) for name in entries]
        for target in reachable(wanted):
            tidy(target, program)
        if facts and (wrong := _wrong(reachable(wanted))):
            refuted |= wrong
            facts = _without(refuted, facts)
            continue
        settle(wanted, program)
        new = _learnt(reachable(wanted), program, refuted) if at < MOST_ROUNDS else {}
        if not new:
            break
        facts = {key: facts.get(key, {}) | new.get(key, {}) for key in facts | new}
    return folder, wanted


def _wrong(live: list[Specialisation]) -> set[tuple[Key, str]]:
    """The facts, by function and parameter, that some call contradicts."""
    return {
        (target.key, parameter.name)
        for target, parameter, arguments in _given(live)
        if (fact := target.facts.get(parameter.name)) and any(argument.value != fact.value for argument in arguments)
    }


def _without(refuted: Collection[tuple[Key, str]], facts: Facts) -> Facts:
    """The facts that are not refuted, of functions that have any."""
    remaining = {
        key: {name: fact for name, fact in of.items() if (key, name) not in refuted} for key, of in facts.items()
    }
    return {key: of for key, of in remaining.items() if of}


def _given(live: list[Specialisation]) -> Iterator[tuple[Specialisation, c.Declare, list[c.Expr]]]:
    """All run-time parameters, with what calls give them."""
    sites = call_sites(live)
    for target in live:
        for index, parameter in enumerate(target.left.parameters):
            yield target, parameter, [call.arguments[index] for call in sites.get(target, [])]


def _learnt(live: list[Specialisation], program: Program, refuted: set[tuple[Key, str]]) -> Facts:
    """Run-time parameters that every call gives the same static argument."""
    learnt: Facts = {}
    for target, parameter, arguments in _given(live):
        if target.entry or len(target.function.body or []) < 2 or (target.key, parameter.name) in refuted:
            continue  # the parameters of an entry are public; accessors are more readable with all of theirs
        fact = _same(arguments, parameter, program) if arguments else None
        info = any(f"`{parameter.name}`" in comment for comment in target.function.comments)
        changed = target.left.once("changed", c.names_changed, target.left.body)
        if fact is not None and not info and parameter.name not in changed:
            learnt.setdefault(target.key, {})[parameter.name] = fact
    return learnt


def _same(arguments: list[c.Expr], parameter: c.Declare, program: Program) -> c.Expr | None:
    """The one static value of all arguments, as the parameter has it."""
    value = arguments[0].value
    kind = program.integer(parameter.type)
    if value is None or kind is None or parameter.suffix or not kind.holds(value):
        return None
    if any(other.value != value or not is_pure(other, program.pure_opaque) for other in arguments):
        return None
    form, typed = expanded(arguments[0]), program.promoted(parameter.type)
    atomic = isinstance(form, (c.Constant, c.Derived, c.Identifier)) and form.type == typed
    alike = all(spelling(expanded(other)) == spelling(form) for other in arguments)
    return form if atomic and alike else number(value, typed) if isinstance(form, c.Literal) else None
