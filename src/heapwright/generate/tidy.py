"""Cleans specialised functions: what has no effect any more goes, with the parameters and variables nothing uses."""

from __future__ import annotations

from collections.abc import Iterable

from heapwright.generate import syntax as c
from heapwright.generate.program import Program, is_pure, negated
from heapwright.generate.syntax import Specialisation, replace


def tidy(target: Specialisation, program: Program) -> bool:
    """Clean one function in place until nothing changes; says whether anything that its callers see may have.

    What is left depends on the body and on the callees; whoever changes one of them forgets `calls`.
    """
    if target.calls is not None:
        return False
    cleaner = _Cleaner(target, program)
    seen, changed = (target.pure, target.boolean), False
    while cleaner.step():
        changed = True
    target.pure = _is_pure_function(target, program)
    results = [stmt.expr for stmt in c.all_statements(target.body) if isinstance(stmt, c.Return)]
    target.boolean = all(is_boolean(result) for result in results if result)
    found = calls(target)
    target.calls = found if all(call.callee is None or call.callee.done for call in found) else None
    return changed or (target.pure, target.boolean) != seen


def _is_pure_function(target: Specialisation, program: Program) -> bool:
    """Whether a call changes nothing but the function's own variables."""
    own = _own_names(target)
    for expr in c.all_expressions(target.body):
        match expr:
            case c.Assign(target=changed) | c.Update(operand=changed):
                if _root(changed) not in own:
                    return False
            case c.Call():
                if not is_pure(replace(expr, arguments=[]), program.pure_opaque):
                    return False
            case _:
                pass
    return True


def _own_names(target: Specialisation) -> set[str]:
    own = {stmt.name for stmt in c.all_statements(target.body) if isinstance(stmt, c.Declare)}
    return own | {parameter.name for parameter in target.parameters}


def _root(expr: c.Expr) -> str:
    """The variable that an assignment changes, when it is a variable itself or a member of one."""
    while isinstance(expr, c.Member) and not expr.arrow:
        expr = expr.base
    return expr.name if isinstance(expr, c.Name) else ""


class _Cleaner:
    def __init__(self, target: Specialisation, program: Program) -> None:
        self.target = target
        self.program = program
        self.changed = False

    def step(self) -> bool:
        """One round over the function."""
        self.changed = False
        body = self.target.body = self.body(self.target.body)
        if body and isinstance(body[-1], c.Return) and body[-1].expr is None:
            del body[-1]
            self.changed = True
        self.drop_unread()
        return self.changed

    def pure(self, expr: c.Expr) -> bool:
        return is_pure(expr, self.program.pure_opaque)

    def body(self, body: list[c.Stmt]) -> list[c.Stmt]:
        out: list[c.Stmt] = []
        for stmt, kept in c.each_changed(body, self.statement):
            if len(kept) != 1 or kept[0] is not stmt:
                self.changed = True
            out += kept
        while self.shortened(out):
            self.changed = True
        return out

    def statement(self, stmt: c.Stmt) -> list[c.Stmt]:
        """What is left of a statement: itself, others in its place, or nothing."""
        match stmt:
            case c.Do():
                return self.do(stmt)
            case c.If():
                return self.if_statement(stmt)
            case c.Block():
                stmt.body = self.body(stmt.body)
                if not any(isinstance(inner, c.Declare) for inner in stmt.body):
                    if stmt.body:
                        stmt.body[0].comments = [*stmt.comments, *stmt.body[0].comments]
                    return stmt.body
                return [stmt]
            case c.For():
                stmt.body = self.body(stmt.body)
                return [] if not stmt.body and self.idle(stmt) else [stmt]
            case c.While():
                stmt.body = self.body(stmt.body)
                return [stmt]
            case c.Guarded():
                stmt.branches = [(head, self.body(body)) for head, body in stmt.branches]
                return [stmt] if any(body for _, body in stmt.branches) else []
            case _:
                return [stmt]

    def do(self, stmt: c.Do) -> list[c.Stmt]:
        expr = stmt.expr
        if isinstance(expr, c.Cast) and expr.to == "void":
            expr = expr.operand
        if self.pure(expr) or (isinstance(expr, c.Assign) and _changes_nothing(expr) and self.pure(expr.target)):
            return []
        match expr:
            case c.Call(callee=callee) if (callee is not None and callee.empty) or self.is_empty_macro(expr.name):
                effects = [effect for argument in expr.arguments for effect in self.discarded(argument)]
            case c.Call() | c.Assign() | c.Update():
                return [stmt]
            case _:
                effects = self.discarded(expr)
        return self.replacing(stmt, effects)

    def replacing(self, stmt: c.Stmt, effects: list[c.Stmt]) -> list[c.Stmt]:
        """Statements in place of another, with its comments."""
        if effects:
            effects[0].comments = stmt.comments
        return effects

    def discarded(self, expr: c.Expr) -> list[c.Stmt]:
        """What evaluating an expression does when its value is not wanted."""
        if self.pure(expr):
            return []
        match expr:
            case c.Call() | c.Assign() | c.Update():
                return [c.Do(expr, line=expr.line)]
            case c.Binary(op="&&" | "||") if not self.pure(expr.right):
                test = expr.left if expr.op == "&&" else negated(expr.left)
                return [c.If(test, self.discarded(expr.right), [], line=expr.line)]
            case c.Conditional():
                return [c.If(expr.test, self.discarded(expr.yes), self.discarded(expr.no), line=expr.line)]
            case _:
                return [effect for operand in c.operands(expr) for effect in self.discarded(operand)]

    def is_empty_macro(self, name: str) -> bool:
        macro = self.program.macros.get(name)
        return macro is not None and macro.body.replace(" ", "") in ("", "((void)0)", "(void)0")

    def if_statement(self, stmt: c.If) -> list[c.Stmt]:
        stmt.yes = self.body(stmt.yes)
        stmt.no = self.body(stmt.no)
        if not stmt.yes and not stmt.no:
            return self.replacing(stmt, self.discarded(stmt.test))
        if not stmt.yes:
            return [replace(stmt, test=negated(stmt.test), yes=stmt.no, no=[])]
        match stmt:
            case c.If(no=[], yes=[c.Do(expr=c.Assign(op="=", target=c.Name(name=name), source=source))]):
                if source.value is not None and _equal(stmt.test) == (name, source.value):
                    return []
            case _:
                pass
        return [stmt]

    def idle(self, loop: c.For) -> bool:
        """Whether a counting loop without a body does nothing that lasts."""
        if not isinstance(loop.init, c.Declare) or loop.test is None or not self.pure(loop.test):
            return False
        update = loop.update
        changed = update.target if isinstance(update, c.Assign) else getattr(update, "operand", None)
        return isinstance(changed, c.Name) and changed.name == loop.init.name

    # -- pairs of statements

    def shortened(self, body: list[c.Stmt]) -> bool:
        """Replace, in place, one pair of statements that dispatch left behind by what a person would write."""
        for index in range(len(body) - 1):
            if self.sunk(body, index) or self.settled(body, index):
                return True
            merged = self.merged(body[index], body[index + 1])
            if merged is not None:
                merged.blank = body[index].blank
                merged.comments = [*body[index].comments, *body[index + 1].comments]
                body[index : index + 2] = [merged]
                return True
        return False

    def sunk(self, body: list[c.Stmt], index: int) -> bool:
        """Move a declaration, in place, to the first assignment in its block when nothing reads it before."""
        first = body[index]
        if not isinstance(first, c.Declare) or first.suffix or (first.init and not self.pure(first.init)):
            return False
        name = first.name
        at = next((i for i in range(index + 1, len(body)) if _assigned(body[i]) == name), 0)
        found = body[at]
        if not at or not isinstance(found, c.Do) or not isinstance(found.expr, c.Assign):
            return False
        source = found.expr.source
        if name in _names(source) or name in names_in(body[index + 1 : at]):
            return False
        assigned = names_changed(self.target.body)
        const = "const " if assigned.count(name) == 1 and self.program.integer(first.type) else ""
        typed = first.type if first.type.startswith("const ") else const + first.type
        body[at] = replace(first, type=typed, init=source, line=found.line, comments=found.comments,
                           trailing=found.trailing, blank=found.blank)  # fmt: skip
        if at == index + 1:
            body[at].comments = [*first.comments, *found.comments]
            body[at].blank = first.blank
        del body[index]
        return True

    def settled(self, body: list[c.Stmt], index: int) -> bool:
        """Resolve, in place, a condition on a variable right behind the assignment that settles it."""
        match body[index]:
            case c.Declare(name=name, init=c.Expr(value=int(value))):
                pass
            case c.Do(expr=c.Assign(op="=", target=c.Name(name=name), source=c.Expr(value=int(value)))):
                pass
            case _:
                return False
        test = body[index + 1]
        declared = [stmt.name for stmt in c.all_statements(self.target.body) if isinstance(stmt, c.Declare)]
        if not isinstance(test, c.If) or name not in _own_names(self.target) or declared.count(name) > 1:
            return False  # of two variables of one name, drop_unread() does not see which is read
        if _tested(test.test) == name:
            left = test.yes if value else test.no
        elif (equal := _equal(test.test)) and equal[0] == name:
            left = test.yes if value == equal[1] else test.no
        else:
            return False
        body[index + 1 : index + 2] = [c.Block(left, line=test.line, comments=test.comments)] if left else []
        return True

    def merged(self, first: c.Stmt, second: c.Stmt) -> c.Stmt | None:
        match first, second:
            case c.Declare(init=c.Expr() as value), c.Return(expr=c.Name(name=name)) if not isinstance(value, c.Braces):
                if name == first.name and self.returns(first.type):
                    return replace(second, expr=value)
            case c.Do(expr=c.Assign(op="=", target=c.Name(name=name, type=typed), source=value)), c.Return() | c.Do():
                returned = second.expr.name if isinstance(second, c.Return) and isinstance(second.expr, c.Name) else ""
                if returned == name and name in _own_names(self.target) and self.returns(typed):
                    return replace(second, expr=value)
                if self.overwritten(name, second) and self.pure(value):
                    return replace(second)
            case c.If(no=[], yes=[c.Return(expr=c.Literal(value=1), comments=[])]), c.Return(expr=c.Literal(value=0)):
                if not second.comments and is_boolean(first.test):
                    return replace(second, expr=first.test)
            case c.If(no=[], yes=[c.Return(expr=c.Name(name=name), comments=[])]), c.Return(comments=[]):
                nothing = second.expr is not None and second.expr.value == 0
                if nothing and _tested(first.test) == name and self.returns(first.yes[0].expr.type):  # type: ignore
                    return replace(first.yes[0], trailing="")
            case _:
                pass
        return None

    def overwritten(self, name: str, after: c.Stmt) -> bool:
        """Whether a variable's value is lost by what comes next."""
        if name not in _own_names(self.target) or name in self.pointed_at():
            return False
        match after:
            case c.Return(expr=expr):
                return expr is None or name not in _names(expr)
            case c.Do(expr=c.Assign(op="=", target=c.Name(name=other), source=source)):
                return other == name and name not in _names(source)
            case _:
                return False

    def pointed_at(self) -> set[str]:
        """Variables whose address is taken."""
        taken = [
            expr.operand for expr in c.all_expressions(self.target.body) if isinstance(expr, c.Unary) and expr.op == "&"
        ]
        return {_root(operand) for operand in taken}

    def returns(self, typed: str | None) -> bool:
        """Whether the function returns this very type, so that going through a variable of it changes nothing."""
        return c.bare_type(typed or "") == c.bare_type(self.target.function.type)

    # -- variables

    def drop_unread(self) -> None:
        """Variables that are never read go, with their assignments."""
        own = {stmt.name for stmt in c.all_statements(self.target.body) if isinstance(stmt, c.Declare)}
        if not own:
            return
        unread = own - _read_names(self.target.body) - self.loop_counters()
        if unread:
            self.target.body = self.without(self.target.body, unread)
            self.changed = True

    def loop_counters(self) -> set[str]:
        loops = [stmt for stmt in c.all_statements(self.target.body) if isinstance(stmt, c.For)]
        return {loop.init.name for loop in loops if isinstance(loop.init, c.Declare)}

    def without(self, body: list[c.Stmt], unread: set[str]) -> list[c.Stmt]:
        changed = c.each_changed(body, lambda stmt: self.stripped(stmt, unread))
        return [kept for _, left in changed for kept in left]

    def stripped(self, stmt: c.Stmt, unread: set[str]) -> list[c.Stmt]:
        value: c.Expr | None = None
        match stmt:
            case c.Declare() if stmt.name in unread:
                value = stmt.init
            case c.Do(expr=c.Assign(target=target, source=source)) if _root(target) in unread:
                value = source
            case c.Do(expr=c.Update(operand=target)) if _root(target) in unread:
                pass
            case c.If():
                stmt.yes, stmt.no = self.without(stmt.yes, unread), self.without(stmt.no, unread)
                return [stmt]
            case c.Block() | c.For() | c.While():
                stmt.body = self.without(stmt.body, unread)
                return [stmt]
            case c.Guarded():
                stmt.branches = [(head, self.without(body, unread)) for head, body in stmt.branches]
                return [stmt]
            case _:
                return [stmt]
        return [] if value is None else self.replacing(stmt, self.discarded(value))


def is_boolean(expr: c.Expr) -> bool:
    """Whether an expression is 0 or 1, as far as it shows."""
    match expr:
        case c.Literal():
            return expr.value in (0, 1)
        case c.Binary(op="&&" | "||" | "==" | "!=" | "<" | "<=" | ">" | ">=") | c.Unary(op="!"):
            return True
        case c.Call(callee=callee) if callee is not None:
            return callee.boolean
        case _:
            return False


def _changes_nothing(expr: c.Assign) -> bool:
    neutral = {"+=": 0, "-=": 0, "|=": 0, "^=": 0, "<<=": 0, ">>=": 0, "*=": 1, "/=": 1}
    return expr.source.value is not None and neutral.get(expr.op) == expr.source.value


def _names(expr: c.Expr) -> set[str]:
    return {part.name for part in c.walk(expr) if isinstance(part, c.Name)}


def names_in(body: list[c.Stmt]) -> set[str]:
    """All names that statements mention."""
    return {expr.name for expr in c.all_expressions(body) if isinstance(expr, c.Name)}


def names_changed(body: list[c.Stmt]) -> list[str]:
    """Variables that statements change or point to, once for each time."""
    found = []
    for expr in c.all_expressions(body):
        match expr:
            case c.Assign(target=target) | c.Update(operand=target) | c.Unary(op="&", operand=target):
                found.append(_root(target))
            case _:
                pass
    return found


def _assigned(stmt: c.Stmt) -> str:
    """The variable that a statement gives a new value."""
    match stmt:
        case c.Do(expr=c.Assign(op="=", target=c.Name(name=name))):
            return name
        case _:
            return ""


def _tested(test: c.Expr) -> str:
    """The variable that a condition compares with zero."""
    if isinstance(test, c.Binary) and test.op == "!=" and test.right.value == 0:
        test = test.left
    return test.name if isinstance(test, c.Name) else ""


def _equal(test: c.Expr) -> tuple[str, int] | None:
    """The variable and the number that a condition compares for equality."""
    match test:
        case c.Binary(op="==", left=c.Name(name=name), right=c.Expr(value=int(value))):
            return name, value
        case _:
            return None


def _read_names(body: list[c.Stmt]) -> set[str]:
    """Names that a body reads; plain assignments and increments as statements do not read their target."""
    read: set[str] = set()
    for stmt in c.all_statements(body):
        parts = c.expressions(stmt)
        if isinstance(stmt, c.For):
            parts = [expr for expr in (stmt.test, stmt.update) if expr]
        for expr in parts:
            if isinstance(stmt, c.Do) and isinstance(expr, c.Assign) and _root(expr.target):
                expr = expr.source
            elif isinstance(stmt, c.Do) and isinstance(expr, c.Update) and _root(expr.operand):
                continue
            read |= _names(expr)
    return read


# ---- all functions together -----------------------------------------------------------------------------------------


def reachable(entries: Iterable[Specialisation]) -> list[Specialisation]:
    """The entries and everything they call, each once."""
    found: dict[int, Specialisation] = {}
    todo = list(entries)
    while todo:
        target = todo.pop()
        if id(target) not in found:
            found[id(target)] = target
            todo += [call.callee for call in calls(target) if call.callee]
    return list(found.values())


def calls(target: Specialisation) -> list[c.Call]:
    """All calls of the core's functions in a function."""
    if target.calls is not None:
        return target.calls
    return [expr for expr in c.all_expressions(target.body) if isinstance(expr, c.Call) and expr.callee]


def settle(entries: list[Specialisation], program: Program) -> list[Specialisation]:
    """Clean all reachable functions together, in place; returns those that are left."""
    while True:
        live = reachable(entries)
        changed = {id(target) for target in live if tidy(target, program)}
        changed |= _drop_parameters(live, program)
        for caller in live if changed else []:
            if any(id(call.callee) in changed for call in calls(caller)):
                caller.calls = None
        if not _collapse_forwarders(live) and not changed:
            return reachable(entries)


def call_sites(live: list[Specialisation]) -> dict[int, list[c.Call]]:
    """All calls of each function, by the identity of its specialisation."""
    sites: dict[int, list[c.Call]] = {}
    for caller in live:
        for call in calls(caller):
            sites.setdefault(id(call.callee), []).append(call)
    return sites


def _drop_parameters(live: list[Specialisation], program: Program) -> set[int]:
    """Drop parameters that nothing uses, where no argument has an effect; returns whose, by identity."""
    sites = call_sites(live)
    dropped: set[int] = set()
    for target in live:
        if target.entry or not target.parameters:
            continue
        used = _mentioned(target)
        for index in reversed(range(len(target.parameters))):
            arguments = [call.arguments[index] for call in sites.get(id(target), [])]
            if target.parameters[index].name not in used and all(
                is_pure(arg, program.pure_opaque) for arg in arguments
            ):
                del target.parameters[index]
                for call in sites.get(id(target), []):
                    del call.arguments[index]
                dropped.add(id(target))
                target.calls = None
    return dropped


def _mentioned(target: Specialisation) -> set[str]:
    """All names in a function; what one that is clean once mentioned is not looked for again."""
    if target.calls is None:
        return names_in(target.body)
    if target.mentioned is None or target.mentioned[0] is not target.calls:
        target.mentioned = target.calls, names_in(target.body)
    return target.mentioned[1]


# ---- forwarders -----------------------------------------------------------------------------------------------------


def _forwarded(target: Specialisation) -> c.Call | None:
    """The call that is all that is left of a function whose dispatch was folded away."""
    if len(target.body) != 1 or (not target.entry and _is_accessor(target.function)):
        return None
    stmt = target.body[0]
    call = stmt.expr if isinstance(stmt, (c.Return, c.Do)) else None
    if not isinstance(call, c.Call) or call.callee is None or call.callee is target:
        return None
    if c.bare_type(call.callee.function.type) != c.bare_type(target.function.type):
        return None
    names = [argument.name for argument in call.arguments if isinstance(argument, c.Name) and argument.value is None]
    simple = all(isinstance(argument, c.Name) or argument.value is not None for argument in call.arguments)
    own = {parameter.name for parameter in target.parameters}
    return call if simple and set(names) <= own and len(set(names)) == len(names) else None


def _is_accessor(function: c.Function) -> bool:
    """Whether a function is written as a single statement that chooses nothing."""
    match function.body:
        case [c.Return(expr=c.Conditional()) | c.Do(expr=c.Conditional())]:
            return False
        case body:
            return len(body or []) < 2


def _collapse_forwarders(live: list[Specialisation]) -> bool:
    """Let callers call what a forwarder calls; an entry takes over the body of what only it calls."""
    found = [(target, call) for target in live if (call := _forwarded(target)) is not None]
    inner: dict[int, tuple[Specialisation, c.Expr]]
    inner = {id(target): (target, call) for target, call in found if not target.entry}
    inner |= {id(target): (target, name) for target, name in _handed_back(live)}
    if inner:
        for caller in live:
            if any(id(call.callee) in inner for call in calls(caller)):
                c.change_expressions(caller.body, lambda expr: _redirected(expr, inner))
                caller.calls = None
        return True
    return any(_taken_over(target, call, live) for target, call in found)


def _handed_back(live: list[Specialisation]) -> list[tuple[Specialisation, c.Name]]:
    """Functions that are left to return their one argument, with its name, where that is of the same type at each call.

    As an initialiser or an operand it is then converted as the function's result was.
    """
    found = []
    sites: dict[int, list[c.Call]] | None = None
    for target in live:
        match target.body:
            case [c.Return(expr=c.Name(name=name) as value)] if not target.entry and not _is_accessor(target.function):
                typed = c.bare_type(target.function.type)
                if [(p.name, c.bare_type(p.type)) for p in target.parameters] != [(name, typed)]:
                    continue
                sites = call_sites(live) if sites is None else sites
                if all(c.bare_type(call.arguments[0].type or "") == typed for call in sites.get(id(target), [])):
                    found.append((target, value))
            case _:
                pass
    return found


def _redirected(expr: c.Expr, forwarders: dict[int, tuple[Specialisation, c.Expr]]) -> c.Expr:
    """An expression in which calls of forwarders are replaced by what these forward to."""
    expr = c.rebuild(expr, lambda inner: _redirected(inner, forwarders))
    for _ in forwarders:
        if not isinstance(expr, c.Call) or id(expr.callee) not in forwarders:
            break
        target, forward = forwarders[id(expr.callee)]
        given = {p.name: argument for p, argument in zip(target.parameters, expr.arguments, strict=True)}
        if isinstance(forward, c.Name):
            expr = given[forward.name]
            break
        assert isinstance(forward, c.Call)
        arguments = [given.get(a.name, a) if isinstance(a, c.Name) else replace(a) for a in forward.arguments]
        expr = replace(forward, arguments=arguments, line=expr.line, paren=expr.paren)
    return expr


def _taken_over(entry: Specialisation, call: c.Call, live: list[Specialisation]) -> bool:
    """Move the body of a function that only `entry` calls into it, in the entry's names."""
    callee = call.callee
    assert callee is not None
    sites = [other for caller in live for other in calls(caller) if other.callee is callee]
    given = {parameter.name: arg for parameter, arg in zip(callee.parameters, call.arguments, strict=True)}
    locals_ = {stmt.name for stmt in c.all_statements(callee.body) if isinstance(stmt, c.Declare)}
    named = all(isinstance(argument, c.Name) and argument.value is None for argument in call.arguments)
    if len(sites) != 1 or callee.entry or not named or locals_ & {p.name for p in entry.parameters}:
        return False
    entry.body = callee.body
    entry.calls = None
    c.change_expressions(entry.body, lambda expr: _substituted(expr, given))
    return True


def _substituted(expr: c.Expr, given: dict[str, c.Expr]) -> c.Expr:
    if isinstance(expr, c.Name) and expr.name in given:
        return replace(expr, name=given[expr.name].name)  # type: ignore[attr-defined]
    return c.rebuild(expr, lambda inner: _substituted(inner, given))


def unused_in_entry(entry: Specialisation) -> list[str]:
    """Run-time parameters of an entry that its body does not use; they stay, marked as unused."""
    used = _mentioned(entry)
    return [parameter.name for parameter in entry.parameters if parameter.name not in used]
