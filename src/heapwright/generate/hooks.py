"""Takes out of the core's functions the calls of hooks: functions that are empty in firmware, where nobody listens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from heapwright.generate import syntax as c
from heapwright.generate.syntax import GrammarError

DOOR = "engine.h"
"""The file that declares hooks, and gives them their empty bodies."""

Answers = Mapping[str, c.Expr | None]
"""What each hook returns, by its name; None for one that returns nothing."""


def without_hooks(sources: Sequence[c.Source]) -> list[c.Source]:
    """The sources without hooks and their calls; what a hook returns stands in place of its call.

    Raises GrammarError for a hook that does something, and for a call of one whose arguments do.
    """
    hooks = [item for source in sources if source.file == DOOR for item in source.items if isinstance(item, c.Function)]
    answers = {hook.name: _answer(hook) for hook in hooks if hook.body is not None}
    return [
        c.replace(source, items=[_silent(item, answers) for item in source.items if not _is_of_hooks(item)])
        for source in sources
    ]


def _is_of_hooks(item: c.Item) -> bool:
    """Whether an item is a hook, or names a struct for hooks alone."""
    hook = isinstance(item, c.Function) or (isinstance(item, c.Struct) and item.fields is None)
    return hook and item.file == DOOR


def _answer(hook: c.Function) -> c.Expr | None:
    """What a hook returns."""
    match hook.body or []:
        case [*unused, c.Return(expr=c.Literal() as answer)] if all(map(_does_nothing, unused)):
            return answer
        case unused if all(map(_does_nothing, unused)):
            return None
        case _:
            raise GrammarError(hook.file, hook.line, f"the hook {hook.name} does something")


def _does_nothing(stmt: c.Stmt) -> bool:
    """Whether a statement says of names that they are not used."""
    return isinstance(stmt, c.Do) and all(
        isinstance(expr, (c.Name, c.Cast)) or (isinstance(expr, c.Binary) and expr.op == ",")
        for expr in c.walk(stmt.expr)
    )


def _silent(item: c.Item, answers: Answers) -> c.Item:
    if not isinstance(item, c.Function) or item.body is None:
        return item
    calls = [expr for expr in c.all_expressions(item.body) if isinstance(expr, c.Call) and expr.name in answers]
    if not calls:
        return item
    for call in calls:
        if any(isinstance(part, c.Change) for part in c.walk(*call.arguments)):
            raise GrammarError(item.file, call.line or item.line, f"an argument of the hook {call.name} does something")
    body = c.copied(item.body, lambda expr: _answered(expr, answers))
    _drop_calls(body, answers)
    return c.replace(item, body=body, asks=len(body) == 1 and isinstance(body[0], c.Return))


def _answered(expr: c.Expr, answers: Answers) -> c.Expr:
    """What a hook returns in place of its call."""
    answer = answers.get(expr.name) if isinstance(expr, c.Call) else None
    return c.replace(answer, line=expr.line) if answer else expr


def _drop_calls(body: list[c.Stmt], answers: Answers) -> None:
    """Take out the calls of hooks that return nothing."""
    body[:] = [
        stmt
        for stmt in body
        if not (isinstance(stmt, c.Do) and isinstance(stmt.expr, c.Call) and stmt.expr.name in answers)
    ]
    for stmt in body:
        for inner in c.bodies(stmt):
            _drop_calls(inner, answers)
