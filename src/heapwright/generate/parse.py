"""Reads C text into the trees of `syntax`: conditionals over HW_ names are resolved, comments find their owners."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import tree_sitter_c
from tree_sitter import Language, Node, Parser

from heapwright.generate import syntax as c
from heapwright.generate.syntax import GrammarError

LANGUAGE = Language(tree_sitter_c.language())
Made = TypeVar("Made", bound=c.Commented)
_FORMS: dict[str, tuple[Callable[..., c.Expr], tuple[str, ...]]] = {
    "unary_expression": (c.Unary, ("argument",)),
    "pointer_expression": (c.Unary, ("argument",)),
    "binary_expression": (c.Binary, ("left", "right")),
    "comma_expression": (c.Binary, ("left", "right")),
    "assignment_expression": (c.Assign, ("left", "right")),
    "conditional_expression": (c.Conditional, ("condition", "consequence", "alternative")),
    "subscript_expression": (c.Index, ("argument", "index")),
}
"""What the parser's expressions of operands alone become, and its names of these."""
_DIRECTIVE = re.compile(r"\s*#\s*(\w+)\s*(.*)", re.DOTALL)
_TYPEDEF_ATTRIBUTE = re.compile(rb"^(typedef [\w ]*)(__attribute__\(\(\w+\)\))", re.MULTILINE)


# ---- conditionals ---------------------------------------------------------------------------------------------------


@dataclass
class _Level:
    """One open #if: `kept` for the compiler, or resolved here; `taken`: what it holds is read; `done`: a branch was."""

    kept: bool
    taken: bool
    done: bool


def _answer(word: str, rest: str, defines: frozenset[str]) -> bool | None:
    """Truth of a condition over defined(HW_...); None where it asks about anything else."""
    rest = re.sub(r"/\*.*?\*/|//.*", "", rest).strip()
    if word.endswith("def"):
        rest = f"{'!' if 'n' in word else ''}defined({rest})"
    known = re.sub(
        r"\bdefined\s*(?:\(\s*(HW_\w+)\s*\)|(HW_\w+))", lambda name: str((name[1] or name[2]) in defines), rest
    )
    python = known.replace("&&", " and ").replace("||", " or ").replace("!", " not ")
    if re.sub(r"True|False|\b(?:and|or|not|0|1)\b|[()\s]", "", python):
        return None
    return bool(eval(python, {"__builtins__": {}}))  # only True, False, 0, 1, and, or, not and parentheses


def _resolve(file: str, lines: list[str], defines: frozenset[str]) -> set[int]:
    """Indices of the lines that the conditionals over HW_ names take out, the directives included."""
    removed: set[int] = set()
    levels: list[_Level] = []
    for index, line in enumerate(lines):
        match = _DIRECTIVE.match(line)
        word, rest = match.groups() if match else ("", "")
        level = None
        if word in ("elif", "else", "endif"):
            if not levels:
                raise GrammarError(file, index + 1, f"#{word} without #if")
            level = levels.pop()
        alive = all(outer.taken for outer in levels)
        if word in ("if", "ifdef", "ifndef"):
            answer = _answer(word, rest, defines) if alive else False
            level = _Level(answer is None, answer is not False, bool(answer))
        elif level and word != "endif" and not level.kept:
            answer = word == "else" or _answer(word, rest, defines)
            if answer is None:
                raise GrammarError(file, index + 1, "a condition over HW_ names goes on with another one")
            level.taken, level.done = answer and not level.done, level.done or answer
        if level and word != "endif":
            levels.append(level)
        if not alive or (level and not level.kept):
            removed.add(index)
    if levels:
        raise GrammarError(file, len(lines), "#if without #endif")
    return removed


# ---- one file -------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def parse(file: str, text: str, defines: frozenset[str]) -> c.Source:
    """Read one file.

    `file` is for messages; `defines` are the HW_ names taken as defined. Raises GrammarError for text outside the
    grammar in CONTRIBUTING.md as far as one file shows it.
    """
    lines = text.split("\n")
    removed = _resolve(file, lines, defines)
    kept = ["" if index in removed else line for index, line in enumerate(lines)]
    return _Reader(file, lines, removed, "\n".join(kept)).read()


class _Reader:
    def __init__(self, file: str, lines: list[str], removed: set[int], text: str) -> None:
        self.file = file
        self.lines = lines
        self.removed = removed
        self.text = text.encode()
        self.includes: list[str] = []
        self.readers: dict[str, Callable[[Node], c.Item | None]] = {
            "preproc_include": self.include,
            "preproc_def": self.macro,
            "preproc_function_def": self.macro,
            "preproc_if": self.guarded_items,
            "preproc_ifdef": self.guarded_items,
            "struct_specifier": self.struct,
            "enum_specifier": self.enum,
            "type_definition": self.typedef,
            "function_definition": self.function,
            "declaration": self.function,
        }

    def read(self) -> c.Source:
        # The parser knows no attribute ahead of a typedef's name; typedefs are copied from the text itself.
        plain = _TYPEDEF_ATTRIBUTE.sub(lambda match: match.group(1) + b" " * len(match.group(2)), self.text)
        root = Parser(LANGUAGE).parse(plain).root_node
        if root.has_error:
            raise self.error(first_error(root), "this cannot be read as C")
        return c.Source(self.file, self.items(root.children), self.includes)

    def error(self, node: Node, what: str) -> GrammarError:
        return GrammarError(self.file, node.start_point[0] + 1, what)

    def not_allowed(self, node: Node, where: str = "") -> GrammarError:
        return self.error(node, f"{node.type.replace('_', ' ')} is not allowed{where}")

    def blank_between(self, above: int, below: int) -> bool:
        """Whether an empty line of the original stands between two lines (indices, exclusive)."""
        return any(not self.lines[i].strip() and i not in self.removed for i in range(above + 1, below))

    def with_comments(self, nodes: Iterable[Node], make: Callable[[Node], Made | None]) -> list[Made]:
        """What is made of nodes, with the comments above and behind each, and whether a blank line comes before."""
        found: list[Made] = []
        last: Made | None = None
        pending: list[c.Comment] = []
        blank = False
        end = behind = -1  # the last line read, and the last of what a comment may stand behind
        for node in nodes:
            start = node.start_point[0]
            if node.type == "comment" and not pending and start == behind:
                if last:
                    last.trailing = last.trailing or text_of(node)
                end = node.end_point[0]
                continue
            if end >= 0 and self.blank_between(end, start):
                pending, blank = [], True
            end = _last_line(node)
            if node.type == "comment":
                pending.append(c.Comment(text_of(node), node.start_point[1]))
                continue
            last, behind = make(node), end
            if last:
                last.line, last.comments, last.blank = start + 1, pending, blank
                found.append(last)
            pending, blank = [], False
        return found

    # -- file level

    def items(self, nodes: Iterable[Node]) -> list[c.Item]:
        return self.with_comments((node for node in nodes if node.type != ";"), self.item)

    def item(self, node: Node) -> c.Item | None:
        if node.type not in self.readers:
            raise self.not_allowed(node, " at file level")
        item = self.readers[node.type](node)
        if item:
            item.file = self.file
        return item

    def include(self, node: Node) -> None:
        path = text_of(child_of(node, "path"))
        if path.startswith("<"):
            self.includes.append(path)

    def guarded_items(self, node: Node) -> c.Item | None:
        directive = self.lines[node.start_point[0]].strip()
        name = directive.split()[-1]
        following = [child for child in node.named_children if child.type != "comment"][1:2]
        if directive.startswith("#ifndef") and following and text_of(following[0]).split() == ["#define", name]:
            raise self.error(node, "an include guard has a name that starts with HW_")
        return c.GuardedItems([(head, self.items(body)) for head, body in self.branches(node)])

    def branches(self, node: Node) -> list[tuple[str, list[Node]]]:
        """The directive line and the nodes of each branch of a kept conditional."""
        head = self.lines[node.start_point[0]].strip()
        skip = {child.id for name in ("name", "condition", "alternative") if (child := node.child_by_field_name(name))}
        body = [child for child in node.named_children if child.id not in skip]
        rest = node.child_by_field_name("alternative")
        return [(head, body), *(self.branches(rest) if rest else [])]

    def macro(self, node: Node) -> c.Macro:
        value = node.child_by_field_name("value")
        body = text_of(value).split("/*")[0].strip() if value else ""
        code, mark, comment = text_of(node).rstrip().partition("/*")
        meaning = self.macro_value(body) if body and node.type == "preproc_def" else None
        return c.Macro(text_of(child_of(node, "name")), code.rstrip(), body, meaning, trailing=mark + comment)

    def macro_value(self, body: str) -> c.Expr | None:
        root = Parser(LANGUAGE).parse(f"int x = {body};".encode()).root_node
        try:
            return None if root.has_error else self.expr(child_of(child_of(root.children[0], "declarator"), "value"))
        except GrammarError:
            return None

    def struct(self, node: Node) -> c.Struct:
        name = text_of(child_of(node, "name"))
        body = node.child_by_field_name("body")
        fields = self.with_comments(_members(body), self.field) if body else None
        members = None if fields is None else {field.name: field for field in fields}
        return c.Struct(name, members, text_of(node) + ";")

    def field(self, node: Node) -> c.Field:
        typed, name, suffix = self.declarator(_type_text(node), child_of(node, "declarator"))
        return c.Field(typed, name, bool(suffix))

    def enum(self, node: Node) -> c.Enum:
        members = self.with_comments((n for n in child_of(node, "body").children if n.type not in "{},"), enumerator)
        tag = node.child_by_field_name("name")
        return c.Enum(text_of(tag) if tag else "", members, node.start_point[0] == node.end_point[0])

    def typedef(self, node: Node) -> c.Item:
        declarator = child_of(node, "declarator")
        if child_of(node, "type").child_by_field_name("body"):
            raise self.error(node, "a typedef defines no struct or enum of its own; define the struct first")
        typed, name, suffix = self.declarator(text_of(child_of(node, "type")), declarator)
        return c.Global(name, typed + suffix, self.text[node.start_byte : node.end_byte].decode())

    def function(self, node: Node) -> c.Function:
        body = node.child_by_field_name("body")
        storage = " ".join(text_of(n) for n in node.children if n.type == "storage_class_specifier")
        declarator = _innermost(child_of(node, "declarator"))
        if declarator.type != "function_declarator":
            raise self.error(node, "the core has no variables at file level")
        stars = self.text[child_of(node, "declarator").start_byte : declarator.start_byte].decode()
        typed = _type_text(node, storage=False) + (f" {stars}" if stars else "")
        name = text_of(child_of(declarator, "declarator"))
        parameters = [self.parameter(n) for n in child_of(declarator, "parameters").named_children]
        parameters = [p for p in parameters if p.type != "void"]
        statements = None if body is None else self.block(body)
        attached = body is None or body.start_point[0] == declarator.end_point[0]
        return c.Function(storage, typed, name, parameters, statements, attached)

    def parameter(self, node: Node) -> c.Parameter:
        if node.type == "comment":
            raise self.error(node, "a comment inside a parameter list")
        declarator = node.child_by_field_name("declarator")
        if declarator is None:
            return c.Parameter(_type_text(node), "")
        return c.Parameter(*self.declarator(_type_text(node), declarator))

    def declarator(self, typed: str, node: Node) -> tuple[str, str, str]:
        """Type, name and array suffix of a declarator."""
        match node.type:
            case "identifier" | "field_identifier" | "type_identifier" | "primitive_type":
                return typed, text_of(node), ""
            case "pointer_declarator" | "abstract_pointer_declarator":
                words = [text_of(n) for n in node.children if n.type == "type_qualifier"]
                pointed = f"{typed}*" if typed.endswith("*") else f"{typed} *"
                inner = node.child_by_field_name("declarator")
                pointed += " ".join(words)
                return self.declarator(pointed, inner) if inner else (pointed, "", "")
            case "array_declarator":
                size = node.child_by_field_name("size")
                outer, name, suffix = self.declarator(typed, child_of(node, "declarator"))
                return outer, name, f"{suffix}[{text_of(size) if size else ''}]"
            case _:
                raise self.not_allowed(node)

    # -- statements

    def block(self, node: Node) -> list[c.Stmt]:
        if node.type != "compound_statement":
            raise self.error(node, "a body needs braces")
        return self.statements([child for child in node.children if child.type not in "{}"])

    def statements(self, nodes: list[Node]) -> list[c.Stmt]:
        found = self.with_comments(nodes, self.statement)
        for stmt in found[:1]:
            stmt.blank = False
        return found

    def statement(self, node: Node) -> c.Stmt:
        match node.type:
            case "declaration":
                return self.local(node)
            case "expression_statement" if node.named_children:
                return c.Do(self.expr(node.named_children[0]))
            case "if_statement":
                return self.if_statement(node)
            case "for_statement":
                return self.for_statement(node)
            case "while_statement" | "do_statement":
                test = self.condition(child_of(node, "condition"))
                return c.While(test, self.block(child_of(node, "body")), node.type == "do_statement")
            case "return_statement":
                return c.Return(self.expr(node.named_children[0]) if node.named_children else None)
            case "break_statement" | "continue_statement":
                return c.Jump(node.type.split("_")[0])
            case _:
                raise self.not_allowed(node)

    def if_statement(self, node: Node) -> c.If:
        if any(child.type == "comment" for child in node.children):
            raise self.error(node, "a comment between an if and its else; put it inside the braces")
        clause = node.child_by_field_name("alternative")
        no: list[c.Stmt] = []
        if clause:
            branch = clause.named_children[-1]
            no = self.statements([branch]) if branch.type == "if_statement" else self.block(branch)
        return c.If(self.condition(child_of(node, "condition")), self.block(child_of(node, "consequence")), no)

    def for_statement(self, node: Node) -> c.For:
        init = node.child_by_field_name("initializer")
        start: c.Declare | None = None
        if init:
            if init.type != "declaration":
                raise self.error(init, "a for loop declares its counter")
            start = self.local(init)
            start.line = init.start_point[0] + 1
        test, update = node.child_by_field_name("condition"), node.child_by_field_name("update")
        body = self.block(child_of(node, "body"))
        return c.For(start, self.expr(test) if test else None, self.expr(update) if update else None, body)

    def local(self, node: Node) -> c.Declare:
        declarators = node.children_by_field_name("declarator")
        if len(declarators) != 1:
            raise self.error(node, "a declaration declares one variable")
        declarator = declarators[0]
        value = declarator.child_by_field_name("value") if declarator.type == "init_declarator" else None
        inner = child_of(declarator, "declarator") if value else declarator
        typed, name, suffix = self.declarator(_type_text(node), inner)
        return c.Declare(typed, name, suffix, self.expr(value) if value else None)

    def condition(self, node: Node) -> c.Expr:
        expr = self.expr(node)
        expr.paren = isinstance(expr, c.Assign) and node.named_children[0].type == "parenthesized_expression"
        return expr

    # -- expressions

    def expr(self, node: Node) -> c.Expr:
        if b"/" in (node.text or b"") and any(child.type == "comment" for child in node.children):
            raise self.error(node, "a comment inside an expression")
        expr = self.expression(node)
        expr.line = node.start_point[0] + 1
        return expr

    def expression(self, node: Node) -> c.Expr:
        if node.type in _FORMS:
            form, fields = _FORMS[node.type]
            operator = node.child_by_field_name("operator")
            words = [text_of(operator) if operator else ","] if form in (c.Unary, c.Binary, c.Assign) else []
            return form(*words, *(self.expr(child_of(node, name)) for name in fields))
        match node.type:
            case "identifier":
                return c.Name(text_of(node))
            case "number_literal" | "char_literal" | "string_literal" | "true" | "false":
                return c.Literal(text_of(node))
            case "null":
                return c.Name("NULL")
            case "parenthesized_expression":
                return c.replace(self.expr(node.named_children[0]), paren=True)
            case "update_expression":
                operand = self.expr(child_of(node, "argument"))
                return c.Update(text_of(child_of(node, "operator")), operand, node.children[0].type in ("++", "--"))
            case "field_expression":
                base, field = self.expr(child_of(node, "argument")), text_of(child_of(node, "field"))
                return c.Member(base, field, text_of(child_of(node, "operator")) == "->")
            case "sizeof_expression" | "alignof_expression" | "offsetof_expression":
                return c.Verbatim(" ".join(text_of(node).split()))
            case "call_expression":
                function = child_of(node, "function")
                if function.type != "identifier":
                    raise self.error(node, "a call through a pointer")
                arguments = child_of(node, "arguments").named_children
                return c.Call(text_of(function), [self.expr(argument) for argument in arguments])
            case "cast_expression":
                return c.Cast(self.type_name(child_of(node, "type")), self.expr(child_of(node, "value")))
            case "initializer_list":
                return c.Braces([self.expr(child) for child in node.named_children])
            case "compound_literal_expression":
                return c.replace(self.expr(child_of(node, "value")), to=self.type_name(child_of(node, "type")))
            case _:
                raise self.not_allowed(node)

    def type_name(self, node: Node) -> str:
        base = _type_text(node)
        declarator = node.child_by_field_name("declarator")
        name = self.declarator(base, declarator)[0] if declarator else base
        if (
            re.fullmatch(r"[a-z]\w*", name)
            and not re.search(r"_t$|^hw_", name)
            and name not in c.INTEGERS | {"void": 0}
        ):
            raise self.error(node, f"({name}) looks like a cast; drop the parentheses around the variable")
        return name


def enumerator(node: Node) -> c.Enumerator:
    """One of an enum."""
    value = node.child_by_field_name("value")
    return c.Enumerator(text_of(child_of(node, "name")), text_of(value) if value else "")


def _members(body: Node) -> Iterator[Node]:
    """The members of a struct and the comments between them, those of a union without a name among them."""
    for child in body.named_children:
        kind = child.child_by_field_name("type")
        if kind and kind.type == "union_specifier" and not child.child_by_field_name("declarator"):
            yield from _members(child_of(kind, "body"))
        else:
            yield child


def text_of(node: Node) -> str:
    """The text of a node."""
    return (node.text or b"").decode()


def child_of(node: Node, field: str) -> Node:
    """The child that a node has to have."""
    child = node.child_by_field_name(field)
    if child is None:
        raise AssertionError(f"{node.type} has no {field}")
    return child


def _type_text(node: Node, storage: bool = True) -> str:
    kinds = {"type_qualifier"} | ({"storage_class_specifier"} if storage else set())
    typed = node.child_by_field_name("type")
    words = [text_of(n) for n in node.children if n.type in kinds or (typed is not None and n.id == typed.id)]
    return " ".join(" ".join(words).split())


def _innermost(declarator: Node) -> Node:
    """What a declarator is behind its stars."""
    while declarator.type == "pointer_declarator":
        declarator = child_of(declarator, "declarator")
    return declarator


def _last_line(node: Node) -> int:
    """Index of the last line a node reaches; preprocessor nodes end behind their line break."""
    row, column = node.end_point[0], node.end_point[1]
    return row - 1 if column == 0 and row > node.start_point[0] else row


def first_error(node: Node) -> Node:
    """The innermost node at which text could not be read."""
    for child in node.children:
        if child.has_error or child.is_missing:
            return first_error(child)
    return node
