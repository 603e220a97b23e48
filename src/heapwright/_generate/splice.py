"""Puts the body of a function that is called once in place of the call, where one would have written it there."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from heapwright._generate import syntax as c
from heapwright._generate.printer import comment_words
from heapwright._generate.program import as_unsigned, equal, negated, substitute
from heapwright._generate.residual import Residual, Specialisation
from heapwright._generate.syntax import replace

PROVED = ("fixed_pop", "fixed_carve")
"""Functions that keep their names because each has a contract of its own, which is proved (docs/proofs.md)."""
BRIEF = 2
"""Statements of a function that may stand on a frequent path though it is called rarely."""
MOST_STATEMENTS = 24
"""Statements of a function that has taken in others: one screen."""


_SENTENCE = re.compile(r"(?:[^.]|\.(?! |$))*")
"""The first sentence of a comment, without its full stop."""
_RESULT = re.compile(r"(?:;|,? and) returns .*|; 0 where .*|: .*, or (?:0|NULL)$")
"""What a comment says of a function's result."""


class _Site(NamedTuple):
    """The one call of a function, and what becomes of its value.

    `name` is the variable of this `type` that it is given, or empty; of `test` the call is the first choice,
    `otherwise` the second, or None; `chosen` are the values to return if the call's is not 0, and if it is. `known`:
    what the variable is ahead of the call, if a condition says so.
    """

    stmt: c.Stmt
    call: c.Call
    name: str = ""
    type: str = ""
    test: c.Expr | None = None
    otherwise: c.Expr | None = None
    chosen: tuple[c.Expr, c.Expr] | None = None
    known: int | None = None


def splice(live: list[Specialisation], sites: Mapping[Specialisation, list[c.Call]], named: Collection[str]) -> bool:
    """Put one body in place of each caller's call; says whether anything was to be put.

    `sites` are all calls, `named` the functions that comments name.
    """
    done = False
    for caller in reversed(live):
        for callee in caller.left.callees:
            if len(sites[callee]) != 1 or callee.function.name in named or not _may_go(callee, caller, sites):
                continue
            typed = caller.function.type
            remaining = caller.left.once(("spliced", callee, callee.left), _spliced, caller.left, typed, callee)
            if remaining is not None:
                caller.left, done = remaining, True
                break  # what it calls is another thing now
    return done


def _may_go(callee: Specialisation, caller: Specialisation, sites: Mapping[Specialisation, list[c.Call]]) -> bool:
    """Whether a function may lose its name to its one caller: then what is rare stays apart from what is frequent."""
    rare = "COLD" in callee.function.storage and not _is_brief(callee)
    if callee.entry or callee is caller or rare or callee.function.asks or callee.function.name in PROVED:
        return False
    only = callee.left.body if len(callee.left.body) == 1 else []
    if any(isinstance(part, c.Conditional) for part in c.all_expressions(only)):
        return False  # a choice of two values is best said by its name
    if "HOT" in caller.function.storage and len(sites.get(caller, [])) > 1 and "HOT" not in callee.function.storage:
        return False
    return sum(1 for item in (callee, caller) for _ in c.all_statements(item.left.body)) <= MOST_STATEMENTS


def _is_brief(target: Specialisation) -> bool:
    """Whether a function is no longer than a call of it: nothing to keep out of line."""
    plain = all(isinstance(stmt, c.Do | c.Return) for stmt in target.left.body)
    brief = [callee for callee in target.left.callees if len(callee.left.body) == 1 and not callee.left.callees[2:]]
    return plain and len(target.left.body) <= BRIEF and brief == target.left.callees


def _spliced(left: Residual, typed: str, callee: Specialisation) -> Residual | None:
    """A caller that returns this type, with the body of a function in place of its call; None where that cannot be."""
    body = c.copied(left.body)
    result = _site(body, callee, typed)
    if result is None:
        return None
    block, index, site = result
    # so that values are converted as they were
    same = site.chosen is not None or c.bare_type(site.type) == c.bare_type(callee.function.type)
    inner = _fitted(left, callee, site) if same or isinstance(site.stmt, c.Do) else None
    put = _placed(inner, site) if inner else None
    if not put:
        return None
    info = map(_aside, callee.function.comments)
    put[0].comments = [*site.stmt.comments, *info, *put[0].comments]
    put[0].blank = site.stmt.blank
    block[index : index + 1] = put
    return Residual(body, left.parameters)


def _aside(comment: str) -> str:
    """The comment on a function as one in its midst: the first sentence, without what it says of the result."""
    if "|" in comment:  # a picture, which stays without words
        lines = comment.removeprefix("/*").removesuffix("*/").split("\n")
        return "/*" + "\n *".join(re.sub(r"^\s*\*", "", line).rstrip() for line in lines if "|" in line) + "   */"
    sentence = _RESULT.sub("", _SENTENCE.match(comment_words(comment))[0])  # type: ignore[index]
    return f"/* {sentence if sentence[1:2].isupper() else sentence[0].lower() + sentence[1:]} */"


def _site(body: list[c.Stmt], callee: Specialisation, typed: str) -> tuple[list[c.Stmt], int, _Site] | None:
    """The block, where in it, and how a statement is little more than the call."""
    for index, stmt in enumerate(body):
        site = _of_statement(stmt, typed)
        if site is not None and site.call.callee is callee:
            return body, index, site
        for inner in c.bodies(stmt):
            result = _site(inner, callee, typed)
            if result is not None:
                block, at, found = result
                same = equal(stmt.test) if isinstance(stmt, c.If) and block is stmt.yes and at == 0 else None
                return block, at, found._replace(known=same[1]) if same and same[0] == found.name else found
    return None


def _of_statement(stmt: c.Stmt, typed: str) -> _Site | None:
    match stmt:
        case c.Return(expr=c.Conditional(test=test, yes=c.Call() as call, no=no)):
            return _Site(stmt, call, "", typed, test, no)
        case c.Return(expr=c.Conditional(test=c.Call() as call, yes=yes, no=no)):
            return _Site(stmt, call, "", typed, chosen=(yes, no))
        case c.Return(expr=c.Call() as call):
            return _Site(stmt, call, "", typed)
        case c.Do(expr=c.Call() as call):
            return _Site(stmt, call)
        case c.Declare(init=c.Call() as call):
            return _Site(stmt, call, stmt.name, stmt.type)
        case c.Do(expr=c.Change(op="=", target=c.Identifier(name=name, type=str(kind)), source=c.Call() as call)):
            return _Site(stmt, call, name, kind)
        case _:
            return None


def _fitted(left: Residual, callee: Specialisation, site: _Site) -> list[c.Stmt] | None:
    """The body of a function with the arguments for its parameters; None where names or types get in the way."""
    taken = {*c.names(*left.body), *(parameter.name for parameter in left.parameters), *c.declared(left.body)}
    body = callee.left.body
    changed = c.names_changed(body)
    ahead: list[c.Stmt] = []
    given: dict[str, c.Expr] = {}
    for parameter, argument in zip(callee.left.parameters, site.call.arguments, strict=True):
        passed = None if parameter.name in changed else _passed(parameter, argument, body)
        if passed is not None:
            given[parameter.name] = passed
        elif parameter.name in taken or parameter.suffix:
            return None
        else:
            ahead.append(_variable_of(parameter, argument, parameter.name not in changed, site.stmt.line))
    if _is_in_comments(callee, given):
        return None
    declared = c.declared(body)
    result = _result_of(body, declared, site)
    if result:
        given[result] = c.Identifier(site.name, type=site.type)
        declared.remove(result)
    if taken & set(declared) or len(set(declared)) < len(declared):
        return None
    inner = [*ahead, *c.copied(body, lambda expr: substitute(expr, given))]
    for stmt in c.all_statements(inner):
        if isinstance(stmt, c.Declare) and stmt.name == result:
            stmt.name = site.name
    return inner


def _variable_of(parameter: c.Declare, argument: c.Expr, fixed: bool, line: int) -> c.Declare:
    """The declaration of a variable for a parameter; const if it is no pointer and `fixed`: never assigned."""
    const = fixed and "*" not in parameter.type
    typed = f"const {parameter.type.removeprefix('const ')}" if const else parameter.type
    return c.Declare(typed, parameter.name, "", replace(argument, paren=False), line=line)


def _is_in_comments(callee: Specialisation, given: Mapping[str, c.Expr]) -> bool:
    """Whether a comment names a parameter for which something of another name is given."""
    statements = c.all_statements(callee.left.body)
    text = " ".join([*callee.function.comments, *(comment for stmt in statements for comment in stmt.comments)])
    return any(f"`{name}`" in text and getattr(value, "name", "") != name for name, value in given.items())


def _result_of(body: list[c.Stmt], declared: Collection[str], site: _Site) -> str:
    """The variable that a body returns if it can be the one that the site declares; empty if there is none."""
    if not isinstance(site.stmt, c.Declare):
        return ""
    own = {stmt.name: c.bare_type(stmt.type) for stmt in body if isinstance(stmt, c.Declare)}
    returned = [stmt.expr for stmt in c.all_statements(body) if isinstance(stmt, c.Return)]
    names = [expr.name for expr in returned if isinstance(expr, c.Identifier)]
    name = next((name for name in reversed(names) if own.get(name) == c.bare_type(site.type)), "")
    return name if name == site.name or site.name not in declared else ""


def _passed(parameter: c.Declare, argument: c.Expr, body: list[c.Stmt]) -> c.Expr | None:
    """What may stand where a parameter stood: a variable of its type, or a number."""
    typed = c.bare_type(parameter.type)
    if parameter.suffix or c.operands(argument):
        return None
    if isinstance(argument, c.Literal) and (unsigned := as_unsigned(argument, typed)) is not argument:
        return unsigned
    if argument.value is not None:  # of what type its name is, does not matter where it is converted as it was
        return argument if _is_only_passed_on(parameter.name, body) else None
    return argument if isinstance(argument, c.Identifier) and c.bare_type(argument.type or "") == typed else None


def _is_only_passed_on(name: str, body: list[c.Stmt]) -> bool:
    """Whether a body uses a variable only as an argument of functions of the core."""
    calls = [part for part in c.all_expressions(body) if isinstance(part, c.Call) and part.callee]
    given = [item.name for call in calls for item in call.arguments if isinstance(item, c.Identifier)]
    return given.count(name) == c.names(*body).count(name)


def _placed(inner: list[c.Stmt], site: _Site) -> list[c.Stmt] | None:
    """The statements in place of the one with the call; None where the function returns in its midst."""
    stmt = site.stmt
    if not isinstance(stmt, c.Return):
        return _Ending(site).of(inner)
    if c.falls_through(inner):
        return None
    if site.chosen is not None:
        return _chosen(inner, *site.chosen)
    if site.test is None or site.otherwise is None:
        return inner
    other = c.Return(replace(site.otherwise, paren=False), line=stmt.line)
    return [c.If(negated(site.test), [other], [], line=stmt.line), *inner]


def _chosen(inner: list[c.Stmt], yes: c.Expr, no: c.Expr) -> list[c.Stmt] | None:
    """A body that returns one value where it returned a number but 0, and another where it returned 0."""
    for stmt in c.all_statements(inner):
        if isinstance(stmt, c.Return):
            if stmt.expr is None or stmt.expr.value is None:
                return None
            stmt.expr = replace(yes if stmt.expr.value else no, paren=False)
    return inner


class _Ending:
    """Turns the returns of a body into what happens at the site: its guards become conditions."""

    def __init__(self, site: _Site) -> None:
        self.site = site
        self.declared = not isinstance(site.stmt, c.Declare)
        self.declaration: c.Declare | None = None
        self.known = site.known
        """What the variable at the site is where the next statement stands, if a guard or its declaration says so."""

    def of(self, body: list[c.Stmt]) -> list[c.Stmt] | None:
        """The statements, or None where a return stands anywhere else."""
        out: list[c.Stmt] = []
        for index, stmt in enumerate(body):
            match stmt:
                case c.If(no=[], yes=[c.Return(expr=value)]):
                    rest = self.behind_guard(stmt, value, body[index + 1 :])
                    return None if rest is None else out + rest
                case c.Return(expr=value) if index == len(body) - 1:
                    return out + self.given(stmt, value)
                case c.Declare(name=name) if name == self.site.name:
                    if not isinstance(stmt.init, c.Expr):
                        return None
                    out.append(self.variable(stmt, stmt.init))
                    self.known = None
                case _ if any(isinstance(part, c.Return) for part in c.all_statements([stmt])):
                    return None
                case _:
                    out.append(stmt)
                    self.known = None if self.site.name in c.names_changed([stmt]) else self.known
        return out if not self.site.name else None

    def behind_guard(self, guard: c.If, value: c.Expr | None, rest: list[c.Stmt]) -> list[c.Stmt] | None:
        """A guard that returns a value, and the rest as what is done if it does not; None where that cannot be."""
        ahead = self.guarded(guard.test, value)
        otherwise = equal(negated(guard.test))
        if otherwise and otherwise[0] == self.site.name:
            self.known = otherwise[1]
        inner = self.of(rest) if ahead is not None else None
        if ahead is None or not inner:
            return None
        return [*ahead, replace(guard, test=negated(guard.test), yes=inner)]

    def variable(self, stmt: c.Declare, init: c.Expr) -> c.Stmt:
        """The declaration of what the function returns, which is the variable at the site, with this value."""
        if not self.declared:
            self.declared = True
            self.declaration = stmt
            return stmt
        given = self.given(c.Return(init, line=stmt.line), init)[0]
        return replace(given, comments=stmt.comments, blank=stmt.blank)

    def guarded(self, test: c.Expr, value: c.Expr | None) -> list[c.Stmt] | None:
        """What comes ahead of a guard so that its value stands where the rest is left out, or None."""
        if not self.site.name or value is None:
            return [] if value is None else None
        if self.declared:
            known = self.known is not None and self.known == value.value
            tested = isinstance(self.site.stmt, c.Declare) and equal(test) == (self.site.name, value.value)
            return [] if known or tested or getattr(value, "name", "") == self.site.name else None
        if value.value is None:
            return None
        self.declared, self.known = True, value.value
        typed = self.site.type.removeprefix("const ")
        return [replace(self.site.stmt, type=typed, init=replace(value, paren=False), comments=[])]

    def given(self, stmt: c.Return, value: c.Expr | None) -> list[c.Stmt]:
        """What the last return does."""
        name = self.site.name
        if value is None or (name and isinstance(value, c.Identifier) and value.name == name):
            return []
        if not name:  # the value is not used, and yet it may do something
            calls = isinstance(value, c.Call)
            return [c.Do(value if calls else c.Cast("void", value), line=stmt.line, comments=stmt.comments)]
        if not self.declared:
            return [replace(self.site.stmt, init=replace(value, paren=False), comments=stmt.comments)]
        if self.declaration is not None:
            self.declaration.type = self.declaration.type.removeprefix("const ")
        target = c.Identifier(name, line=stmt.line, type=c.bare_type(self.site.type))
        assign = c.Change("=", target, replace(value, paren=False), line=stmt.line, type=target.type)
        return [c.Do(assign, line=stmt.line, comments=stmt.comments)]
