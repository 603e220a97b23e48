"""Cleans specialised functions: what has no effect any more goes, with the parameters and variables nothing uses."""

from __future__ import annotations

from heapwright.generate import syntax as c
from heapwright.generate.left import Left, Specialisation
from heapwright.generate.loops import falls_through, has_jump
from heapwright.generate.program import (
    Program,
    as_unsigned,
    binary_value,
    equal,
    is_comparison,
    is_pure,
    negated,
    number,
    substitute,
)
from heapwright.generate.syntax import replace


def tidy(target: Specialisation, program: Program) -> bool:
    """Clean one function until nothing changes; says whether anything that its callers see may have."""
    before = target.left
    left = before.once(_cleaning(before), _cleaned, before, target.function, program)
    if left is before:
        return False
    target.left = left
    left.known[_cleaning(left)] = left
    return True


def _cleaning(left: Left) -> object:
    """What cleaning a function depends on besides its body."""
    return "cleaned", *[(callee.left.pure, callee.left.boolean) for callee in left.callees]


def _cleaned(left: Left, function: c.Function, program: Program) -> Left:
    cleaner = _Cleaner(left, function, program)
    changed = cleaner.simplified
    while cleaner.step():
        changed = True
    results = [stmt.expr for stmt in c.all_statements(cleaner.whole) if isinstance(stmt, c.Return)]
    pure = _is_pure_function(cleaner, program)
    boolean = all(is_boolean(result) for result in results if result)
    same = not changed and (pure, boolean) == (left.pure, left.boolean)
    return left if same else Left(cleaner.whole, left.parameters, pure, boolean)


def _is_pure_function(cleaner: _Cleaner, program: Program) -> bool:
    """Whether a call changes nothing but the function's own variables."""
    own = cleaner.own_names()
    for expr in c.all_expressions(cleaner.whole):
        match expr:
            case c.Change(target=changed):
                if c.root(changed) not in own:
                    return False
            case c.Call():
                if not is_pure(replace(expr, arguments=[]), program.pure_opaque):
                    return False
            case _:
                pass
    return True


class _Cleaner:
    """Cleans a copy of a function's `whole` body."""

    def __init__(self, left: Left, function: c.Function, program: Program) -> None:
        self.function = function
        self.parameters = left.parameters
        self.program = program
        self.changed = self.simplified = False
        self.whole = c.copied(left.body, self.simpler)

    def step(self) -> bool:
        """One round over the function."""
        self.changed = False
        body = self.whole = self.body(self.whole)
        if body and isinstance(body[-1], c.Return) and body[-1].expr is None:
            del body[-1]
            self.changed = True
        self.drop_unread()
        self.drop_unread_from_here()
        return self.changed

    def own_names(self) -> set[str]:
        """Variables and parameters."""
        return {*c.declared(self.whole), *(parameter.name for parameter in self.parameters)}

    def pure(self, expr: c.Expr) -> bool:
        return is_pure(expr, self.program.pure_opaque)

    def simpler(self, expr: c.Expr) -> c.Expr:
        """An expression without choices between a number and the same number, x - 1 + 1, and !(x < 1)."""
        simpler = self.in_short(expr)
        self.simplified |= simpler is not None
        return expr if simpler is None else replace(simpler, paren=expr.paren and bool(c.operands(simpler)))

    def in_short(self, expr: c.Expr) -> c.Expr | None:
        """What an expression says in more words than it needs, in fewer; None where it needs all."""
        match expr:
            case c.Conditional(test=c.Literal(value=int(chosen)), yes=yes, no=no) if yes.type == no.type or _points(
                yes
            ):
                return yes if chosen else no
            case c.Conditional(test=test, yes=c.Expr(value=int(yes)), no=c.Expr(value=int(no))):
                return expr.yes if yes == no and self.pure(test) else None
            case c.Binary(op="+", left=c.Binary(op="-", left=kept, right=c.Literal() as less), right=c.Literal()):
                types = {less.type, expr.right.type, kept.type}
                return kept if less.value == expr.right.value and types == {"uint32_t"} else None
            case c.Binary(op="+" | "-" | "|", left=kept, right=c.Literal(value=0, type=typed)) if kept.type == typed:
                return kept
            case c.Binary(op=op, left=c.Expr(value=int(left)), right=c.Expr(value=int(right))) if is_comparison(op):
                value = binary_value(op, left, right)
                return number(value, "int") if value is not None and expr.left.type == expr.right.type else None
            case c.Binary(op="||" | "&&" as op, left=c.Literal(value=int(left)), right=right):
                goes_on = bool(left) == (op == "&&")
                return number(left, "int") if not goes_on else right if is_boolean(right) else None
            case c.Binary(op="||" | "&&" as op, left=left, right=c.Literal(value=int(right))):
                return left if is_boolean(left) and bool(right) == (op == "&&") else None
            case c.Unary(op="!", operand=c.Literal(value=int(value))):
                return number(int(not value), "int")
            case c.Unary(op="!", operand=c.Binary(op=op)) if is_comparison(op):
                return negated(expr.operand)
            case _:
                return None

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
        for name in stmt.blocks:
            setattr(stmt, name, self.body(getattr(stmt, name)))
        match stmt:
            case c.Do():
                return [] if self.does_nothing(stmt.expr) else [stmt]
            case c.If():
                return self.if_statement(stmt)
            case c.For(body=[]) if self.idle(stmt):
                return []
            case c.While(at_end=False) if not falls_through(stmt.body) and not has_jump(stmt.body):
                return [c.If(stmt.test, stmt.body, [], line=stmt.line, comments=stmt.comments, trailing=stmt.trailing,
                             blank=stmt.blank)]  # fmt: skip
            case _:
                return [stmt]

    def does_nothing(self, expr: c.Expr) -> bool:
        neutral = {"+=": 0, "-=": 0, "|=": 0, "^=": 0, "<<=": 0, ">>=": 0, "*=": 1, "/=": 1}
        if isinstance(expr, c.Assign) and expr.source.value is not None and neutral.get(expr.op) == expr.source.value:
            return self.pure(expr.target)
        return self.pure(expr)

    def discarded(self, expr: c.Expr) -> list[c.Stmt]:
        """What evaluating an expression does when its value is not wanted."""
        if self.pure(expr):
            return []
        plain = isinstance(expr, (c.Call, c.Change))
        return [c.Do(expr if plain else c.Cast("void", expr), line=expr.line)]

    def if_statement(self, stmt: c.If) -> list[c.Stmt]:
        if not stmt.yes and not stmt.no:
            return c.with_comments(stmt, self.discarded(stmt.test))
        if not stmt.yes:
            return [replace(stmt, test=negated(stmt.test), yes=stmt.no, no=[])]
        match stmt:
            case c.If(no=[], yes=[c.Do(expr=c.Assign(op="=", target=c.Name(name=name), source=source))]):
                if source.value is not None and equal(stmt.test) == (name, source.value):
                    return []
            case _:
                pass
        return [stmt]

    def idle(self, loop: c.For) -> bool:
        """Whether a counting loop without a body does nothing that lasts."""
        if not isinstance(loop.init, c.Declare) or loop.test is None or not self.pure(loop.test):
            return False
        changed = loop.update.target if isinstance(loop.update, c.Change) else None
        return isinstance(changed, c.Name) and changed.name == loop.init.name

    # -- pairs of statements

    def shortened(self, body: list[c.Stmt]) -> bool:
        """Replace, in place, one pair of statements that dispatch left behind by what a person would write."""
        for index, stmt in enumerate(body):
            if not isinstance(stmt, c.Declare) or stmt.suffix or (stmt.init and not self.pure(stmt.init)):
                continue
            if not c.mentions(body[index + 1 :], stmt.name):
                del body[index]
                return True
        for index in range(len(body) - 1):
            if self.renames(body, index) or self.sunk(body, index) or self.settled(body, index):
                return True
            merged = self.merged(body[index], body[index + 1])
            if merged is not None:
                merged.blank = body[index].blank
                merged.comments = [*body[index].comments, *body[index + 1].comments]
                body[index : index + 2] = [merged]
                return True
        return False

    def renames(self, body: list[c.Stmt], index: int) -> bool:
        """Let, in place, what follows name directly what a variable is only another name of."""
        first = body[index]
        if not isinstance(first, c.Declare) or first.suffix or first.comments or first.trailing:
            return False
        value, typed = first.init, c.bare_type(first.type)
        value = as_unsigned(value, typed) if isinstance(value, c.Literal) else value
        if not isinstance(value, (c.Name, c.Literal)) or value.type is None or c.bare_type(value.type) != typed:
            return False
        if isinstance(value, c.Name) and (value.value is not None or value.name not in self.own_names()):
            return False
        changed = c.names_changed(self.whole)
        if first.name in changed or (isinstance(value, c.Name) and value.name in changed):
            return False
        declared = c.declared(self.whole)
        if declared.count(first.name) > 1 or declared.count(getattr(value, "name", "")) > 1:
            return False
        named = c.copied(body[index + 1 :], lambda expr: self.simpler(substitute(expr, {first.name: value})))
        if named:
            named[0].blank = named[0].blank or first.blank
        body[index:] = named
        return True

    def sunk(self, body: list[c.Stmt], index: int) -> bool:
        """Move a declaration, in place, to the first assignment in its block when nothing reads it before.

        Where only blocks within know the variable, each of which assigns it first, it is declared in each of these.
        """
        first = body[index]
        if not isinstance(first, c.Declare) or first.suffix or (first.init and not self.pure(first.init)):
            return False
        homes = _homes(body, index + 1, first.name)
        if not homes or (homes[0][0] is not body and first.name in self.pointed_at()):
            return False
        for block, at in homes:
            self.declared_at(first, block, at)
        if homes[0][0] is body and homes[0][1] == index + 1:
            body[index + 1].comments = [*first.comments, *body[index + 1].comments]
            body[index + 1].blank = first.blank
        del body[index]
        return True

    def declared_at(self, declaration: c.Declare, block: list[c.Stmt], at: int) -> None:
        """Declare a variable, in place, where a block assigns it first."""
        found, typed = block[at], declaration.type
        assert isinstance(found, c.Do) and isinstance(found.expr, c.Assign)
        once = c.names_changed(block[at:]).count(declaration.name) == 1 and self.program.integer(typed)
        const = "const " if once and not typed.startswith("const ") else ""
        block[at] = replace(declaration, type=const + typed, init=found.expr.source, line=found.line,
                            comments=found.comments, trailing=found.trailing, blank=found.blank)  # fmt: skip

    def settled(self, body: list[c.Stmt], index: int) -> bool:
        """Resolve, in place, a condition on a variable right behind the assignment that settles it."""
        match body[index]:
            case c.Declare(name=name, init=c.Expr(value=int(value))):
                pass
            case c.Do(expr=c.Assign(op="=", target=c.Name(name=name), source=c.Expr(value=int(value)))):
                pass
            case _:
                return False
        choice = body[index + 1]
        if name not in self.own_names() or c.declared(self.whole).count(name) > 1:
            return False  # of two variables of one name, drop_unread() does not see which is read
        match choice:
            case c.If() if (outcome := _outcome(choice.test, name, value)) is not None:
                left = choice.yes if outcome else choice.no
            case c.While(at_end=False) if _outcome(choice.test, name, value) == 0:
                left = []
            case _:
                return False
        if any(isinstance(stmt, c.Declare) for stmt in left):
            return False
        body[index + 1 : index + 2] = c.with_comments(choice, left)
        return True

    def merged(self, first: c.Stmt, second: c.Stmt) -> c.Stmt | None:
        match first, second:
            case c.Declare(init=c.Expr() as value), c.Return(expr=c.Name(name=name)) if not isinstance(value, c.Braces):
                if name == first.name and self.returns(first.type):
                    return replace(second, expr=value)
            case c.Do(expr=c.Assign(op="=", target=c.Name(name=name, type=typed), source=value)), c.Return() | c.Do():
                returned = second.expr.name if isinstance(second, c.Return) and isinstance(second.expr, c.Name) else ""
                if returned == name and name in self.own_names() and self.returns(typed):
                    return replace(second, expr=value)
                if self.overwritten(name, second) and self.pure(value):
                    return replace(second)
            case c.If(no=[], yes=[c.Return(expr=c.Literal(value=1), comments=[])]), c.Return(expr=c.Literal(value=0)):
                if not second.comments and is_boolean(first.test):
                    return replace(second, expr=first.test)
            case c.If(no=[], yes=[c.Return(expr=c.Literal(value=0), comments=[])]), c.Return(expr=c.Literal(value=1)):
                if not second.comments and is_boolean(first.test):
                    return replace(second, expr=negated(first.test))
            case c.If(no=[], yes=[c.Return(expr=c.Name(name=name), comments=[])]), c.Return(comments=[]):
                nothing = second.expr is not None and second.expr.value == 0
                if nothing and _tested(first.test) == name and self.returns(first.yes[0].expr.type):  # type: ignore
                    return replace(first.yes[0], trailing="")
            case _:
                pass
        return None

    def overwritten(self, name: str, after: c.Stmt) -> bool:
        """Whether a variable's value is lost by what comes next."""
        if name not in self.own_names() or name in self.pointed_at():
            return False
        match after:
            case c.Return(expr=expr):
                return expr is None or name not in c.names(expr)
            case c.Do(expr=c.Assign(op="=", target=c.Name(name=other), source=source)):
                return other == name and name not in c.names(source)
            case _:
                return False

    def pointed_at(self) -> set[str]:
        """Variables whose address is taken."""
        parts = c.all_expressions(self.whole)
        return {c.root(expr.operand) for expr in parts if isinstance(expr, c.Unary) and expr.op == "&"}

    def returns(self, typed: str | None) -> bool:
        """Whether the function returns this very type, so that going through a variable of it changes nothing."""
        return c.bare_type(typed or "") == c.bare_type(self.function.type)

    # -- variables

    def drop_unread(self) -> None:
        """Variables that are never read go, with their assignments."""
        own = set(c.declared(self.whole))
        if not own:
            return
        loops = [stmt.init for stmt in c.all_statements(self.whole) if isinstance(stmt, c.For)]
        unread = own - _read_names(self.whole) - {counter.name for counter in loops if counter}
        if unread:
            self.whole = self.without(self.whole, unread)
            self.changed = True

    def drop_unread_from_here(self) -> None:
        """What a loop assigns and neither it nor anything behind it reads goes."""
        kept, own = self.own_names() - self.pointed_at(), self.whole
        for at, stmt in enumerate(own):
            if isinstance(stmt, (c.For, c.While)):
                changed = set(c.names_changed([stmt])) & kept
                declared = {inner.name for inner in c.all_statements([stmt]) if isinstance(inner, c.Declare)}
                unread = changed - declared - _read_names(own[at:]) if changed else set()
                if unread:
                    own[at : at + 1] = self.stripped(stmt, unread)
                    self.changed = True
                    return

    def without(self, body: list[c.Stmt], unread: set[str]) -> list[c.Stmt]:
        changed = c.each_changed(body, lambda stmt: self.stripped(stmt, unread))
        return [kept for _, left in changed for kept in left]

    def stripped(self, stmt: c.Stmt, unread: set[str]) -> list[c.Stmt]:
        value: c.Expr | None = None
        match stmt:
            case c.Declare() if stmt.name in unread:
                value = stmt.init
            case c.Do(expr=c.Assign(target=target, source=source)) if c.root(target) in unread:
                value = source
            case c.Do(expr=c.Update(target=target)) if c.root(target) in unread:
                pass
            case _:
                for name in stmt.blocks:
                    setattr(stmt, name, self.without(getattr(stmt, name), unread))
                return [stmt]
        return [] if value is None else c.with_comments(stmt, self.discarded(value))


def _points(expr: c.Expr) -> bool:
    """Whether an expression is a pointer, which meets no number but NULL."""
    return "*" in (expr.type or (expr.callee.function.type if isinstance(expr, c.Call) and expr.callee else ""))


def is_boolean(expr: c.Expr) -> bool:
    """Whether an expression is 0 or 1, as far as it shows."""
    match expr:
        case c.Literal():
            return expr.value in (0, 1)
        case c.Binary(op="&&" | "||" | "==" | "!=" | "<" | "<=" | ">" | ">=") | c.Unary(op="!"):
            return True
        case c.Call(callee=callee) if callee is not None:
            return bool(callee.left.boolean)
        case _:
            return False


def _assigned(stmt: c.Stmt) -> str:
    """The variable that a statement gives a new value."""
    match stmt:
        case c.Do(expr=c.Assign(op="=", target=c.Name(name=name))):
            return name
        case _:
            return ""


def _homes(block: list[c.Stmt], start: int, name: str) -> list[tuple[list[c.Stmt], int]] | None:
    """The blocks, and where in each, that assign a variable before they do anything else with it, from a statement on.

    None where something else comes first.
    """
    homes: list[tuple[list[c.Stmt], int]] = []
    for at, stmt in enumerate(block[start:], start):
        mentions = c.mentions([stmt], name)
        if not mentions:
            continue
        if _assigned(stmt) == name and mentions == 1:
            return [*homes, (block, at)]
        if sum(c.mentions(body, name) for body in c.bodies(stmt)) != mentions:
            return None
        for body in c.bodies(stmt):
            inner = _homes(body, 0, name)
            if inner is None:
                return None
            homes += inner
    return homes


def _tested(test: c.Expr) -> str:
    """The variable that a condition compares with zero."""
    if isinstance(test, c.Binary) and test.op == "!=" and test.right.value == 0:
        test = test.left
    return test.name if isinstance(test, c.Name) else ""


def _outcome(test: c.Expr, name: str, value: int) -> int | None:
    """What a condition comes to where a variable has a value; None where that does not decide it."""
    match test:
        case c.Name() if test.name == name:
            return value
        case c.Expr(value=int(known)):
            return known
        case c.Binary(op="&&"):
            return 0 if _outcome(test.left, name, value) == 0 else None
        case c.Binary() if is_comparison(test.op):
            left, right = _outcome(test.left, name, value), _outcome(test.right, name, value)
            return None if left is None or right is None else binary_value(test.op, left, right)
        case c.Unary(op="!"):
            inner = _outcome(test.operand, name, value)
            return None if inner is None else int(not inner)
        case _:
            return None


def _read_names(body: list[c.Stmt]) -> set[str]:
    """Names that a body reads; plain assignments and increments as statements do not read their target."""
    read: set[str] = set()
    for stmt in c.all_statements(body):
        for expr in c.expressions(stmt):
            if isinstance(stmt, c.Do) and isinstance(expr, c.Change) and c.root(expr.target):
                read |= c.names(expr.source) if isinstance(expr, c.Assign) else set()
            else:
                read |= c.names(expr)
    return read
