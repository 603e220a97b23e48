"""Specialises a whole program: function by function, then again with what that taught about their parameters."""

from __future__ import annotations

import re
from collections.abc import Sequence

from heapwright.generate import syntax as c
from heapwright.generate.expressions import expanded
from heapwright.generate.fold import Facts, Folder
from heapwright.generate.left import Specialisation
from heapwright.generate.memo import Memo, spelling
from heapwright.generate.program import PolicyValues, Program, is_pure, number
from heapwright.generate.syntax import Key
from heapwright.generate.tidy import tidy
from heapwright.generate.together import call_sites, reachable, settle

MOST_ROUNDS = 8


def fold_all(
    program: Program, memo: Memo, values: PolicyValues, entries: Sequence[str]
) -> tuple[Folder, list[Specialisation]]:
    """Fold what the entries reach.

    A parameter that gets the same static argument at every call that is left becomes static in the next round, until
    nothing new is learnt.
    """
    facts: Facts = {}
    refuted: set[tuple[Key, str]] = set()
    for _ in range(MOST_ROUNDS):
        folder = Folder(program, memo, values, facts)
        wanted = [folder.entry(name) for name in entries]
        wrong = _contradicted(reachable(wanted), program)
        if wrong:
            refuted |= wrong
            facts = _without(facts, refuted)
            continue
        settle(wanted, program)
        new = _learnt(reachable(wanted), program, refuted)
        if not new:
            return folder, wanted
        facts = {key: facts.get(key, {}) | new.get(key, {}) for key in facts | new}
    folder = Folder(program, memo, values)
    wanted = [folder.entry(name) for name in entries]
    settle(wanted, program)
    return folder, wanted


def _without(facts: Facts, refuted: set[tuple[Key, str]]) -> Facts:
    kept = {key: {n: fact for n, fact in known.items() if (key, n) not in refuted} for key, known in facts.items()}
    return {key: known for key, known in kept.items() if known}


def _contradicted(live: list[Specialisation], program: Program) -> set[tuple[Key, str]]:
    """Facts that some call does not bear out."""
    for target in live:
        tidy(target, program)
    known = [target for target in live if target.facts]
    sites = call_sites(live) if known else {}
    wrong = set()
    for target in known:
        for index, parameter in enumerate(target.parameters):
            fact = target.facts.get(parameter.name)
            arguments = [call.arguments[index] for call in sites.get(target, [])]
            if fact is not None and any(argument.value != fact.value for argument in arguments):
                wrong.add((target.key, parameter.name))
    return wrong


def _learnt(live: list[Specialisation], program: Program, refuted: set[tuple[Key, str]]) -> Facts:
    """Run-time parameters that every call gives the same static argument."""
    sites = call_sites(live)
    learnt: Facts = {}
    for target in live:
        if target.entry or len(target.function.body or []) < 2:
            continue  # the parameters of an entry are public; accessors are more readable with all of theirs
        known = {}
        for index, parameter in enumerate(target.parameters):
            arguments = [call.arguments[index] for call in sites.get(target, [])]
            fact = _same(arguments, parameter, program) if arguments else None
            if fact is not None and (target.key, parameter.name) not in refuted:
                known[parameter.name] = fact
        told = {name for comment in target.function.comments for name in re.findall(r"`(\w+)`", comment.text)}
        kept = told.union(c.names_changed(target.body)) if known else told
        if known := {name: fact for name, fact in known.items() if name not in kept}:
            learnt[target.key] = known
    return learnt


def _same(arguments: list[c.Expr], parameter: c.Parameter, program: Program) -> c.Expr | None:
    """The one static value of all arguments, as the parameter has it."""
    value = arguments[0].value
    kind = program.integer(parameter.type)
    if value is None or kind is None or parameter.suffix or not kind.holds(value):
        return None
    if any(other.value != value or not is_pure(other, program.pure_opaque) for other in arguments):
        return None
    form, typed = expanded(arguments[0]), program.promoted(parameter.type)
    atomic = isinstance(form, (c.Constant, c.Derived, c.Name)) and form.type == typed
    alike = all(spelling(expanded(other)) == spelling(form) for other in arguments)
    return form if atomic and alike else number(value, typed) if isinstance(form, c.Literal) else None
