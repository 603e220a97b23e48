"""Finds where the core breaks its grammar (docs/developing/core-grammar.md); no policy is needed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from heapwright._generate import syntax as c
from heapwright._generate.fold import needs_static
from heapwright._generate.parse import child_of, parse, resolved, text_of, tree_of
from heapwright._generate.pasting import written_out
from heapwright._generate.program import BUILTIN_VALUES, HARMLESS, Program
from heapwright._generate.syntax import GrammarError


def check_grammar(sources: Sequence[tuple[str, str]], defines: Iterable[str] = frozenset()) -> list[GrammarError]:
    """Everything in the sources that breaks the grammar, in order; empty where all is well."""
    parsed = []
    results = []
    for file, text in written_out(sources):
        try:
            output = list(_unreadable(file, text, frozenset(defines)))
            parsed += [] if output else [parse(file, text, frozenset(defines))]
            results += output
        except GrammarError as error:
            results.append(error)
    if results:
        return results
    try:
        return violations(Program(parsed))
    except GrammarError as error:
        return [error]


def _unreadable(file: str, text: str, defines: frozenset[str]) -> Iterator[GrammarError]:
    """What the reader would not read as it stands."""
    lines = text.split("\n")
    kept = resolved(file, lines, defines)
    todo = [tree_of(file, "\n".join(line if remaining else "" for line, remaining in zip(lines, kept, strict=True)))]
    while todo:
        node = todo.pop()
        todo += reversed(node.children)
        wrong = _wrong(node)
        if wrong:
            yield GrammarError(file, node.start_point[0] + 1, wrong)


def _wrong(node: Node) -> str:
    """What is wrong with one node of the parser's; empty where all is well."""
    commented = any(child.type == "comment" for child in node.children)
    match node.type:
        case "preproc_ifdef":
            words = text_of(node).split()
            guards = words[0] == "#ifndef" and words[2:4] == ["#define", words[1]]
            return "an include guard has a name that starts with HW_" if guards else ""
        case "type_definition" if child_of(node, "type").child_by_field_name("body"):
            return "a typedef defines no struct or enum of its own; define the struct first"
        case "declaration":
            return _wrong_declaration(node)
        case "parameter_list" if commented:
            return "a comment inside a parameter list"
        case "if_statement" if commented:
            return "a comment between an if and its else; put it inside the braces"
        case "call_expression" if child_of(node, "function").type != "identifier":
            return "a call through a pointer"
        case "type_descriptor":
            return _looks_like_a_variable(node)
        case kind if commented and kind.endswith(("expression", "argument_list", "initializer_list")):
            return "a comment inside an expression"
        case _:
            return _wrong_place(node)


def _wrong_place(node: Node) -> str:
    """What is wrong with where a node stands."""
    above = node.parent
    if above is None:
        return ""
    bodies = [above.child_by_field_name(name) for name in ("body", "consequence")]
    loops = ("if_statement", "for_statement", "while_statement", "do_statement")
    body = above.type in loops and any(item is not None and item.id == node.id for item in bodies)
    branch = above.type == "else_clause" and node.is_named and node.type not in ("comment", "if_statement")
    if (body or branch) and node.type != "compound_statement":
        return "a body needs braces"
    init = above.child_by_field_name("initializer") if above.type == "for_statement" else None
    if init is not None and init.id == node.id and node.type != "declaration":
        return "a for loop declares its counter"
    return ""


def _wrong_declaration(node: Node) -> str:
    declarators = node.children_by_field_name("declarator")
    if len(declarators) != 1:
        return "a declaration declares one variable"
    inner, above = declarators[0], node.parent
    while inner.type == "pointer_declarator":
        inner = child_of(inner, "declarator")
    outside = above is not None and (above.type == "translation_unit" or above.type.startswith("preproc"))
    return "the core has no variables at file level" if outside and inner.type != "function_declarator" else ""


def _looks_like_a_variable(node: Node) -> str:
    name = text_of(node)
    looks = re.fullmatch(r"(?!hw_)[a-z]\w*(?<!_t)", name) and name not in c.INTEGERS | {"void": 0}
    return f"({name}) looks like a cast; drop the parentheses around the variable" if looks else ""


@dataclass(frozen=True)
class _Kind:
    """What an expression is: `part` names the policy type it is a part of; `static` numbers have no part."""

    static: bool
    part: str = ""
    pointer: bool = False
    array: bool = False


_RUN_TIME = _Kind(False)
_NUMBER = _Kind(True)


def violations(program: Program) -> list[GrammarError]:
    """All violations in all functions, in the order of the sources."""
    errors: list[GrammarError] = []
    if not program.policy_structs:
        source = program.sources[0].file if program.sources else "core"
        return [GrammarError(source, 1, "no struct hw_policy is defined")]
    errors += _macro_names(program)
    errors += _do_more_than_compute(program)
    results = _static_functions(program)
    for function in program.functions.values():
        checker = _Checker(program, function, results)
        checker.run()
        errors += checker.errors
    return errors


def _macro_names(program: Program) -> list[GrammarError]:
    """Macros named like a constant that a policy member becomes."""
    members = {name.upper() for struct in program.policy_structs for name in program.fields(struct)}
    return [
        GrammarError(macro.file, macro.line, f"{name} is also the name of a policy member's constant")
        for name, macro in program.macros.items()
        if name in members
    ]


def _do_more_than_compute(program: Program) -> list[GrammarError]:
    """Functions between compiler conditionals that change more than their own variables."""
    results = []
    known = {*program.opaque, "UINT32_C"}
    for function in (variant for variants in program.opaque.values() for variant in variants):
        for part in c.all_expressions(function.body or []):
            calls = isinstance(part, c.Call) and not (part.name in known or part.name.startswith(HARMLESS))
            if calls or (isinstance(part, c.Change) and not isinstance(part.target, c.Identifier)):
                results.append(GrammarError(function.file, part.line, f"{function.name} does more than to compute"))
    return results


def _static_functions(program: Program) -> set[str]:
    """Functions whose every result may be static: all their returns are, given that their static arguments are."""
    names = {name for name, function in program.functions.items() if function.type != "void"}
    while True:
        bad = {name for name in names if not _Checker(program, program.functions[name], names).returns_static()}
        if not bad:
            return names
        names -= bad


class _Checker:
    def __init__(self, program: Program, function: c.Function, results: set[str]) -> None:
        self.program = program
        self.function = function
        self.results = results
        self.errors: list[GrammarError] = []
        self.returned: list[_Kind] = []
        self.names: dict[str, _Kind] = {}
        self.declared: dict[str, c.Declare] = {}
        self.assigned = set(c.names_changed(function.body or []))

    def run(self) -> None:
        """Check the whole function."""
        for parameter in self.function.parameters:
            pointed = self.program.policy_pointer(parameter.type)
            static = self.program.is_static_parameter(parameter)
            self.names[parameter.name] = _Kind(static, pointed or "", pointed is not None)
            if static and parameter.name in self.assigned:
                self.report(self.function, f"{parameter.name} is static but is assigned or has its address taken")
        self.block(self.function.body or [])

    def returns_static(self) -> bool:
        """Whether all results are static."""
        self.run()
        return bool(self.returned) and all(kind == _NUMBER for kind in self.returned)

    def report(self, node: c.Item | c.Stmt | c.Expr, what: str) -> None:
        self.errors.append(GrammarError(self.function.file, node.line or self.function.line, what))

    # ---- statements

    def block(self, body: list[c.Stmt]) -> None:
        scope = dict(self.names)
        for stmt in body:
            self.statement(stmt)
        self.names = scope

    def statement(self, stmt: c.Stmt) -> None:
        match stmt:
            case c.Declare():
                self.declare(stmt)
            case c.For():
                self.for_statement(stmt)
            case c.Return(expr=c.Expr() as expr):
                self.returned.append(self.number(expr))
            case _:
                for expr in c.expressions(stmt):
                    self.number(expr)
                for body in c.bodies(stmt):
                    self.block(body)

    def declare(self, stmt: c.Declare, counter: bool = False) -> None:
        if stmt.name in self.names:
            self.report(stmt, f"{stmt.name} shadows another variable or parameter")
        other = self.declared.setdefault(stmt.name, stmt)
        listed = stmt.suffix or isinstance(stmt.init, c.Braces)
        if other is not stmt and (listed or c.bare_type(other.type) != c.bare_type(stmt.type) or other.suffix):
            self.report(
                stmt, f"{stmt.name} is another variable's name; one of another type, or of a list, needs its own"
            )
        pointed = self.program.policy_pointer(stmt.type)
        if pointed:
            kind = self.kind(stmt.init) if stmt.init else _RUN_TIME
            if not kind.pointer or kind.part != pointed or stmt.name in self.assigned:
                self.report(stmt, f"{stmt.name}: a policy pointer is initialised once, to a part of the policy")
            self.names[stmt.name] = _Kind(True, pointed, True)
            return
        if c.bare_type(stmt.type).removesuffix(" *") in self.program.policy_structs:
            self.report(stmt, f"{stmt.name}: the policy is only reached through pointers to const")
        kind = self.number(stmt.init) if stmt.init else _RUN_TIME
        static = kind.static and not stmt.suffix and (counter or stmt.name not in self.assigned)
        self.names[stmt.name] = _NUMBER if static else _RUN_TIME

    def for_statement(self, stmt: c.For) -> None:
        scope = dict(self.names)
        counter = stmt.init.name if isinstance(stmt.init, c.Declare) else ""
        unrolled = bool(counter) and needs_static(self.program, counter, stmt.body)
        if isinstance(stmt.init, c.Declare):
            self.declare(stmt.init, counter=unrolled)
        elif stmt.init:
            self.statement(stmt.init)
        for expr in (stmt.test, stmt.update):
            kind = self.number(expr) if expr else _RUN_TIME
            if unrolled and expr is stmt.test and not kind.static:
                self.report(stmt, f"{counter} must be static here, but the loop's bounds are not")
        self.block(stmt.body)
        self.names = scope

    # ---- expressions

    def number(self, expr: c.Expr) -> _Kind:
        """The kind of an expression that stands for a value, not for a part of the policy."""
        kind = self.kind(expr)
        if isinstance(expr, c.Cast) and expr.to == "void":
            return _RUN_TIME
        if kind.part:
            self.report(expr, f"{kind.part} is passed to run-time code; name the member that is meant")
            return _RUN_TIME
        return kind

    def kind(self, expr: c.Expr) -> _Kind:
        match expr:
            case c.Literal():
                return _NUMBER
            case c.Identifier(name=name):
                known = name in self.program.enumerators or name in BUILTIN_VALUES or name in self.program.macros
                return self.names.get(name, _NUMBER if known else _RUN_TIME)
            case c.MemberAccess():
                return self.member(expr)
            case c.Index():
                return self.index(expr)
            case c.Unary(op="&"):
                base = self.kind(expr.operand)
                return _Kind(True, base.part, True) if base.part and not base.array else _RUN_TIME
            case c.Call():
                return self.call(expr)
            case c.Change():
                return self.assignment(expr)
            case c.Cast(to="void"):
                return self.kind(expr.operand)
            case c.Unary(op="*") | c.Verbatim() | c.Braces():
                kinds = [self.number(operand) for operand in c.operands(expr)]
                return _RUN_TIME if kinds else _Kind(False)
            case _:
                self.width(expr)
                kinds = [self.number(operand) for operand in c.operands(expr)]
                return _Kind(all(kind.static for kind in kinds))

    def width(self, expr: c.Expr) -> None:
        """Report literals that are shifted or inverted: an int may have 16 bits."""
        match expr:
            case c.Binary(op="<<", left=operand) | c.Unary(op="~", operand=operand):
                if all(isinstance(part, (c.Literal, c.Binary, c.Unary)) for part in c.walk(operand)):
                    self.report(expr, "a literal that is shifted or inverted needs a cast: an int may have 16 bits")

    def member(self, expr: c.MemberAccess) -> _Kind:
        base = self.kind(expr.base)
        if not base.part:
            return _RUN_TIME
        field = self.program.fields(base.part).get(expr.name)
        if field is None or base.array or base.pointer != expr.arrow:
            self.report(expr, f"{base.part} has no member {expr.name} that is reached like this")
            return _NUMBER
        typed = c.bare_type(field.type)
        part = typed if typed in self.program.structs else ("number" if field.suffix else "")
        return _Kind(True, part, False, bool(field.suffix))

    def index(self, expr: c.Index) -> _Kind:
        base = self.kind(expr.base)
        at = self.number(expr.index)
        if not base.array:
            return _RUN_TIME
        if base.part == "number":
            return _Kind(at.static)
        if not at.static:
            self.report(expr, f"the index into an array of {base.part} is not static")
        return _Kind(True, base.part)

    def assignment(self, expr: c.Change) -> _Kind:
        kind = self.kind(expr.target)
        if not isinstance(expr.target, c.Identifier) and (kind.part or kind.static):
            self.report(expr, "the policy is assigned to")
        if expr.source:
            self.number(expr.source)
        return _RUN_TIME

    def call(self, expr: c.Call) -> _Kind:
        function = self.program.functions.get(expr.name)
        if function is None or len(function.parameters) != len(expr.arguments):
            for argument in expr.arguments:
                self.number(argument)
            if function is not None:
                self.report(expr, f"{expr.name} takes {len(function.parameters)} arguments")
            return _RUN_TIME
        for parameter, argument in zip(function.parameters, expr.arguments, strict=True):
            pointed = self.program.policy_pointer(parameter.type)
            kind = self.kind(argument) if pointed else self.number(argument)
            if pointed and (kind.part != pointed or not kind.pointer):
                self.report(expr, f"{expr.name}: {parameter.name} needs a static pointer to {pointed}")
            elif not pointed and self.program.is_static_parameter(parameter) and not kind.static:
                self.report(expr, f"{expr.name}: {parameter.name} needs a static argument")
        return _NUMBER if expr.name in self.results else _RUN_TIME
