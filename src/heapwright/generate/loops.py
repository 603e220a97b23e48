"""Control flow of specialised code: what is reached, how bodies join, and which loops are unrolled."""

from __future__ import annotations

from heapwright.generate import syntax as c
from heapwright.generate.program import Program


def falls_through(body: list[c.Stmt]) -> bool:
    """Whether control can reach what follows a body."""
    if not body:
        return True
    match body[-1]:
        case c.Return() | c.Jump():
            return False
        case c.If(yes=yes, no=no):
            return falls_through(yes) or falls_through(no)
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
    """Append statements in place; a variable that the body already declares is assigned instead of declared again.

    Raises ValueError for a variable that cannot be assigned so.
    """
    for stmt in more:
        previous = _declaration(body, stmt)
        if previous is None or not isinstance(stmt, c.Declare):
            body.append(stmt)
            continue
        same = c.bare_type(previous.type) == c.bare_type(stmt.type)
        if not same or stmt.suffix or previous.suffix or isinstance(stmt.init, c.Braces):
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


def sequence(passes: list[list[c.Stmt]]) -> list[c.Stmt]:
    """The iterations of a loop one after the other. Raises ValueError where one goes on or ends early."""
    out: list[c.Stmt] = []
    for body in passes:
        if has_jump(body):
            raise ValueError("break or continue in an unrolled loop; put the body into a function that returns")
        join(out, body)
        if out and not falls_through(out):
            break
    return out


def needs_static(program: Program, counter: str, body: list[c.Stmt]) -> bool:
    """Whether a loop body uses its counter, or what follows from it, where only a static value will do."""
    derived = {counter}
    for stmt in c.all_statements(body):
        if isinstance(stmt, c.Declare) and stmt.init and derived & c.names(stmt.init):
            derived.add(stmt.name)
    for expr in c.all_expressions(body):
        match expr:
            case c.Index(base=c.Member(name=name)) if name in program.struct_arrays and derived & c.names(expr.index):
                return True
            case c.Call() if expr.name in program.functions:
                parameters = program.functions[expr.name].parameters
                for parameter, argument in zip(parameters, expr.arguments, strict=False):
                    scalar = program.is_static_parameter(parameter) and not program.policy_pointer(parameter.type)
                    if scalar and derived & c.names(argument):
                        return True
            case _:
                pass
    return False


def step_of(counter: str, update: c.Expr) -> tuple[int, c.Expr] | None:
    """Direction and size of a loop's step."""
    match update:
        case c.Update(target=c.Name(name=name)) if name == counter:
            return (1 if update.op == "++" else -1), c.Literal("1")
        case c.Assign(op="+=" | "-=", target=c.Name(name=name)) if name == counter:
            return (1 if update.op == "+=" else -1), update.source
        case _:
            return None
