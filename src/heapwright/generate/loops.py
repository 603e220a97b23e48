"""Control flow of specialised code: what is reached, how bodies join, and unrolled loops without break and continue."""

from __future__ import annotations

from heapwright.generate import syntax as c
from heapwright.generate.syntax import replace


def falls_through(body: list[c.Stmt]) -> bool:
    """Whether control can reach what follows a body."""
    if not body:
        return True
    match body[-1]:
        case c.Return() | c.Jump():
            return False
        case c.If(yes=yes, no=no):
            return falls_through(yes) or falls_through(no)
        case c.Block(body=inner):
            return falls_through(inner)
        case c.While(test=test, body=inner) if test.value:
            return has_jump(inner, "break")
        case _:
            return True


def has_jump(body: list[c.Stmt], word: str = "") -> bool:
    """Whether a body holds a break or continue (or just the one given) of the loop around it."""
    for stmt in body:
        if isinstance(stmt, c.Jump) and word in ("", stmt.word):
            return True
        if not isinstance(stmt, (c.For, c.While)) and any(has_jump(inner, word) for inner in c.bodies(stmt)):
            return True
    return False


def join(body: list[c.Stmt], more: list[c.Stmt]) -> None:
    """Append statements in place.

    A variable that the body already declares is assigned instead of declared again; where that is not possible the
    statements go into braces of their own. Raises ValueError where not even that helps.
    """
    if len(more) > 1 and any(_clashes(body, stmt) for stmt in more):
        body.append(c.Block(more, line=more[0].line, blank=more[0].blank))
        return
    for stmt in more:
        previous = _declaration(body, stmt)
        if previous is None or not isinstance(stmt, c.Declare):
            body.append(stmt)
            continue
        if _clashes(body, stmt):
            raise ValueError(f"{stmt.name} is declared twice in one block once conditions are folded; rename one")
        if "*" not in previous.type:
            previous.type = previous.type.removeprefix("const ")
        if stmt.init is not None:
            name = c.Name(stmt.name, line=stmt.line, type=c.bare_type(stmt.type))
            assign = c.Assign("=", name, stmt.init, line=stmt.line, type=name.type)
            body.append(c.Do(assign, line=stmt.line, comments=stmt.comments, trailing=stmt.trailing, blank=stmt.blank))


def _declaration(body: list[c.Stmt], stmt: c.Stmt) -> c.Declare | None:
    if not isinstance(stmt, c.Declare):
        return None
    return next((other for other in body if isinstance(other, c.Declare) and other.name == stmt.name), None)


def _clashes(body: list[c.Stmt], stmt: c.Stmt) -> bool:
    """Whether a declaration repeats one of the body and cannot become an assignment."""
    previous = _declaration(body, stmt)
    if previous is None or not isinstance(stmt, c.Declare):
        return False
    same = c.bare_type(previous.type) == c.bare_type(stmt.type)
    return not same or bool(stmt.suffix or previous.suffix) or isinstance(stmt.init, c.Braces)


def sequence(passes: list[list[c.Stmt]]) -> list[c.Stmt]:
    """The iterations of a loop one after the other, break and continue turned into if and else.

    Raises ValueError where that would need the same code twice.
    """
    after: list[c.Stmt] = []
    for body in reversed(passes):
        after = _tail(body, after)
    return after


def _tail(body: list[c.Stmt], after: list[c.Stmt]) -> list[c.Stmt]:
    """One iteration followed by the next ones; a break leaves them out."""
    out: list[c.Stmt] = []
    for index, stmt in enumerate(body):
        if isinstance(stmt, c.Jump):
            if stmt.word == "continue":
                join(out, after)
            return out
        if not has_jump([stmt]):
            join(out, [stmt])
            if not falls_through([stmt]):
                return out
            continue
        if not isinstance(stmt, c.If):
            raise ValueError("break or continue inside braces of an unrolled loop; use if and else")
        return out + _branch(stmt, body[index + 1 :], after)
    join(out, after)
    return out


def _branch(stmt: c.If, rest: list[c.Stmt], after: list[c.Stmt]) -> list[c.Stmt]:
    """An if that jumps, followed by the rest of its iteration and the next ones."""
    if rest and falls_through(stmt.yes) and falls_through(stmt.no):
        raise ValueError(
            "a break or continue deep inside an unrolled loop; use if and else, or a function that returns"
        )
    yes = stmt.yes + (rest if falls_through(stmt.yes) else [])
    no = stmt.no + (rest if falls_through(stmt.no) else [])
    if not has_jump(yes, "break") and not has_jump(no, "break"):
        out: list[c.Stmt] = [replace(stmt, yes=_tail(yes, []), no=_tail(no, []))]
        join(out, after)
        return out
    if not _goes_on(yes):
        return [replace(stmt, yes=_tail(yes, []), no=_tail(no, after))]
    if not _goes_on(no):
        return [replace(stmt, yes=_tail(yes, after), no=_tail(no, []))]
    raise ValueError(
        "both break and continue at run time in an unrolled loop; put the body into a function that returns"
    )


def _goes_on(body: list[c.Stmt]) -> bool:
    """Whether an iteration can be followed by the next one."""
    return falls_through(body) or has_jump(body, "continue")
