"""Reads C text into the trees of `syntax`: conditionals over HW_ names are resolved, comments find their owners."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any, TypeVar

import tree_sitter_c
from tree_sitter import Language, Node, Parser

from heapwright._generate import syntax as c
from heapwright._generate.syntax import GrammarError

LANGUAGE = Language(tree_sitter_c.language())
Made = TypeVar("Made", bound=c.Commented)
_FORMS: dict[str, tuple[Callable[..., Any], list[str], list[str]]] = {
    kind: (form, words.split(), parts.split())
    for kinds, form, words, parts in (
        ("identifier null", c.Identifier, "*", ""),
        ("number_literal char_literal string_literal true false", c.Literal, "*", ""),
        ("sizeof_expression alignof_expression offsetof_expression", c.Verbatim, "*", ""),
        ("unary_expression pointer_expression", c.Unary, "operator", "argument"),
        ("binary_expression", c.Binary, "operator", "left right"),
        ("comma_expression", lambda left, right: c.Binary(",", left, right), "", "left right"),
        ("assignment_expression", c.Change, "operator", "left right"),
        ("conditional_expression", c.Conditional, "", "condition consequence alternative"),
        ("subscript_expression", c.Index, "", "argument index"),
        (
            "field_expression",
            lambda op, name, base: c.MemberAccess(op == "->", name, base),
            "operator field",
            "argument",
        ),
    )
    for kind in kinds.split()
}
"""What the parser's expressions become, with its names of their words and operands; * is the whole text."""
_EXTENSION = r"^#define .*$|\bHW_(?:API|HOT|COLD)\b|__attribute__\(\(\w+(?:\(.*?\))?\)\)"
"""Definitions, and what the parser does not know elsewhere: attributes, and macros that stand for a storage class."""


# ---- one file -------------------------------------------------------------------------------------------------------


def resolved(file: str, lines: list[str], defines: frozenset[str]) -> list[bool]:
    """Whether each line stays once conditionals over HW_ names are resolved; these conditionals themselves go."""
    kept: list[bool] = []
    levels: list[bool | None] = []  # of each open conditional whether it takes what it holds; None: the compiler's
    for number, line in enumerate(lines, 1):
        own = False
        match _directive(line):
            case ["ifdef" | "ifndef" as word, name, *_] if name.startswith("HW_"):
                levels.append((name in defines) == (word == "ifdef"))
                own = True
            case ["if" | "ifdef" | "ifndef" as word, *condition]:
                if word == "if" and "HW_" in " ".join(condition):
                    raise GrammarError(file, number, "a condition over HW_ names is #ifdef or #ifndef")
                levels.append(None)
            case ["else", *_] if levels and levels[-1] is not None:
                levels[-1] = not levels[-1]
                own = True
            case ["endif", *_] if levels:
                own = levels.pop() is not None
            case _:
                pass
        kept.append(not own and False not in levels)
    if levels:
        raise GrammarError(file, len(lines), "#if without #endif")
    return kept


def _directive(line: str) -> list[str]:
    """The words of a preprocessor directive; none of any other line."""
    code = line.lstrip()
    return code.removeprefix("#").split() if code.startswith("#") else []


@lru_cache(maxsize=64)
def parse(file: str, text: str, defines: frozenset[str]) -> c.SourceFile:
    """Read one file.

    `file` is for messages; `defines` are the HW_ names taken as defined. Raises GrammarError for what it cannot read.
    What it reads has to keep to the grammar in docs/developing/core-grammar.md (tests/helpers/core_grammar.py).
    """
    lines = text.split("\n")
    kept = resolved(file, lines, defines)
    reader = _Reader(file, lines, kept)
    return c.SourceFile(file, reader.items(tree_of(file, reader.text).children), reader.includes)


def tree_of(file: str, text: str, also: Iterable[str] = ()) -> Node:
    """C text as the parser sees it, extensions and the macros `also` left blank. Raises GrammarError."""
    blank = re.compile("|".join([_EXTENSION, *(rf"\b{name}\b" for name in also)]), re.MULTILINE)
    plain = blank.sub(lambda result: result[0] if result[0][0] == "#" else " " * len(result[0]), text)
    root = Parser(LANGUAGE).parse(plain.encode()).root_node
    if root.has_error:
        raise GrammarError(file, _first_error(root).start_point[0] + 1, "this cannot be read as C")
    return root


class _Reader:
    def __init__(self, file: str, lines: list[str], kept: list[bool]) -> None:
        self.file = file
        self.lines = lines
        self.kept = kept
        self.text = "\n".join(line if remaining else "" for line, remaining in zip(lines, kept, strict=True))
        self.bytes = self.text.encode()
        self.includes: list[str] = []

    def written(self, start: int, end: int) -> str:
        """The text itself between two bytes."""
        return self.bytes[start:end].decode()

    def not_allowed(self, node: Node, where: str = "") -> GrammarError:
        return GrammarError(self.file, node.start_point[0] + 1, f"{node.type.replace('_', ' ')} is not allowed{where}")

    def with_comments(self, nodes: Iterable[Node], make: Callable[[Node], Made | None]) -> list[Made]:
        """What is made of nodes, with the comments above and behind each, and whether a blank line comes before."""
        results: list[Made] = []
        last: Made | None = None
        pending: list[str] = []
        blank = False
        end = behind = -1  # the last line read, and the last of what a comment may stand behind
        for node in nodes:
            start = node.start_point[0]
            if node.type == "comment" and not pending and start == behind:
                if last:
                    last.trailing = last.trailing or text_of(node)
                end = node.end_point[0]
                continue
            if self.has_blank_line(end, start):
                pending, blank = [], True
            row, column = node.end_point[0], node.end_point[1]
            end = row - 1 if column == 0 and row > start else row  # preprocessor nodes end behind their line break
            if node.type == "comment":
                pending.append(_comment_of(node))
                continue
            last, behind = make(node), end
            if last:
                last.line, last.comments, last.blank = start + 1, pending, blank
                results.append(last)
            pending, blank = [], False
        return results

    def has_blank_line(self, end: int, start: int) -> bool:
        """Whether a blank line lies between the one that ends a node and the one that starts the next; -1: no node."""
        return end >= 0 and any(not self.lines[i].strip() and self.kept[i] for i in range(end + 1, start))

    # -- file level

    def items(self, nodes: Iterable[Node]) -> list[c.Item]:
        return self.with_comments((node for node in nodes if node.type != ";"), self.item)

    def item(self, node: Node) -> c.Item | None:
        match node.type:
            case "preproc_include":
                path = text_of(child_of(node, "path"))
                self.includes += [path] * path.startswith("<")
                return None
            case "preproc_def" | "preproc_function_def":
                item: c.Item = self.macro(node)
            case "preproc_if" | "preproc_ifdef":
                item = c.GuardedItems([(head, self.items(body)) for head, body in self.branches(node)])
            case "struct_specifier":
                item = self.struct(node)
            case "enum_specifier":
                item = self.enum(node)
            case "type_definition":
                typed, name, suffix = self.declarator(_type_text(node, False), child_of(node, "declarator"))
                item = c.Global(name, self.written(node.start_byte, node.end_byte), typed + suffix)
            case "function_definition" | "declaration":
                item = self.function(node)
            case _:
                raise self.not_allowed(node, " at file level")
        item.file = self.file
        return item

    def struct(self, node: Node) -> c.Struct:
        body = node.child_by_field_name("body")
        fields = self.with_comments(_members(body), self.declared) if body else None
        members = None if fields is None else {field.name: field for field in fields}
        return c.Struct(text_of(child_of(node, "name")), text_of(node) + ";", members)

    def enum(self, node: Node) -> c.Enum:
        inside = [n for n in child_of(node, "body").children if n.type not in "{},"]
        tag = node.child_by_field_name("name")
        flat = node.start_point[0] == node.end_point[0]
        return c.Enum(text_of(tag) if tag else "", self.with_comments(inside, self.enumerator), flat)

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
        meaning = None
        if body and node.type == "preproc_def":
            root = Parser(LANGUAGE).parse(f"int x = {body};".encode()).root_node
            with suppress(GrammarError):
                meaning = None if root.has_error else self.declared(root.children[0]).init
        return c.Macro(text_of(child_of(node, "name")), code.rstrip(), body, meaning, trailing=mark + comment)

    def enumerator(self, node: Node) -> c.Declare:
        value = node.child_by_field_name("value")
        return c.Declare("", text_of(child_of(node, "name")), text_of(value) if value else "", None)

    def function(self, node: Node) -> c.Function:
        body = node.child_by_field_name("body")
        line = node.start_byte - node.start_point[1]
        storage = self.written(line, child_of(node, "type").start_byte).replace("const", "").strip()
        outer = declarator = child_of(node, "declarator")
        while declarator.type == "pointer_declarator":
            declarator = child_of(declarator, "declarator")
        stars = self.written(outer.start_byte, declarator.start_byte)
        typed = _type_text(node, storage=False) + (f" {stars}" if stars else "")
        parameters = map(self.declared, child_of(declarator, "parameters").named_children)
        declared = [parameter for parameter in parameters if parameter.type != "void"]
        attached = body is None or body.start_point[0] == declarator.end_point[0]
        name = text_of(child_of(declarator, "declarator"))
        return c.Function(storage, typed, name, declared, None if body is None else self.block(body), attached)

    def declared(self, node: Node) -> c.Declare:
        """The variable, parameter or member that a node declares."""
        inner = node.child_by_field_name("declarator")
        value = inner.child_by_field_name("value") if inner and inner.type == "init_declarator" else None
        inner = inner.child_by_field_name("declarator") if inner and value else inner
        parts = self.declarator(_type_text(node), inner) if inner else (_type_text(node), "", "")
        return c.Declare(*parts, self.expr(value) if value else None, line=node.start_point[0] + 1)

    def declarator(self, typed: str, node: Node) -> tuple[str, str, str]:
        """Type, name and array suffix of a declarator."""
        match node.type:
            case "identifier" | "field_identifier" | "type_identifier" | "primitive_type":
                return typed, text_of(node), ""
            case "pointer_declarator" | "abstract_pointer_declarator":
                words = [text_of(n) for n in node.children if n.type == "type_qualifier"]
                pointed = (f"{typed}*" if typed.endswith("*") else f"{typed} *") + " ".join(words)
                inner = node.child_by_field_name("declarator")
                return self.declarator(pointed, inner) if inner else (pointed, "", "")
            case "array_declarator":
                size = node.child_by_field_name("size")
                outer, name, suffix = self.declarator(typed, child_of(node, "declarator"))
                return outer, name, f"{suffix}[{text_of(size) if size else ''}]"
            case _:
                raise self.not_allowed(node)

    # -- statements

    def block(self, node: Node) -> list[c.Stmt]:
        return self.statements([child for child in node.children if child.type not in "{}"])

    def statements(self, nodes: list[Node]) -> list[c.Stmt]:
        result = self.with_comments(nodes, self.statement)
        for stmt in result[:1]:
            stmt.blank = False
        return result

    def statement(self, node: Node) -> c.Stmt:
        match node.type:
            case "declaration":
                return self.declared(node)
            case "expression_statement" if node.named_children:
                return c.Do(self.expr(node.named_children[0]))
            case "if_statement":
                return self.if_statement(node)
            case "for_statement":
                init, *head = (node.child_by_field_name(name) for name in ("initializer", "condition", "update"))
                test, update = (self.expr(part) if part else None for part in head)
                return c.For(self.declared(init) if init else None, test, update, self.block(child_of(node, "body")))
            case "while_statement" | "do_statement":
                test = self.condition(node)
                return c.While(test, self.block(child_of(node, "body")), at_end=node.type == "do_statement")
            case "return_statement":
                return c.Return(self.expr(node.named_children[0]) if node.named_children else None)
            case "break_statement" | "continue_statement":
                return c.Jump(node.type.split("_")[0])
            case _:
                raise self.not_allowed(node)

    def if_statement(self, node: Node) -> c.If:
        clause = node.child_by_field_name("alternative")
        no: list[c.Stmt] = []
        if clause:
            branch = clause.named_children[-1]
            no = self.statements([branch]) if branch.type == "if_statement" else self.block(branch)
        return c.If(self.condition(node), self.block(child_of(node, "consequence")), no)

    def condition(self, node: Node) -> c.Expr:
        condition = child_of(node, "condition")
        expr = self.expr(condition)
        expr.paren = isinstance(expr, c.Change) and condition.named_children[0].type == "parenthesized_expression"
        return expr

    # -- expressions

    def expr(self, node: Node) -> c.Expr:
        expr = self.expression(node)
        expr.line = node.start_point[0] + 1
        return expr

    def expression(self, node: Node) -> c.Expr:
        kind = node.type
        match kind:
            case _ if kind in _FORMS:
                form, words, parts = _FORMS[kind]
                texts = [text_of(node if word == "*" else child_of(node, word)) for word in words]
                made: c.Expr = form(*texts, *[self.expr(child_of(node, part)) for part in parts])
                return made
            case "cast_expression":
                return c.Cast(self.word(node, "type"), self.expr(child_of(node, "value")))
            case "parenthesized_expression":
                return c.replace(self.expr(node.named_children[0]), paren=True)
            case "update_expression":
                operand, ahead = self.expr(child_of(node, "argument")), node.children[0].type in ("++", "--")
                return c.Change(self.word(node, "operator"), operand, None, prefix=ahead)
            case "call_expression":
                arguments = child_of(node, "arguments").named_children
                return c.Call(self.word(node, "function"), list(map(self.expr, arguments)))
            case "initializer_list":
                return c.Braces(list(map(self.expr, node.named_children)))
            case "compound_literal_expression":
                return c.replace(self.expr(child_of(node, "value")), to=self.word(node, "type"))
            case _:
                raise self.not_allowed(node)

    def word(self, node: Node, field: str) -> str:
        """The text of a child, or the type that it names."""
        child = child_of(node, field)
        return self.declared(child).type if child.type == "type_descriptor" else text_of(child)


def _members(body: Node) -> Iterator[Node]:
    """The members of a struct and the comments between them, those of a union without a name among them."""
    for child in body.named_children:
        kind = child.child_by_field_name("type")
        if kind and kind.type == "union_specifier" and not child.child_by_field_name("declarator"):
            yield from _members(child_of(kind, "body"))
        else:
            yield child


def _comment_of(node: Node) -> str:
    """The text of a comment, its lines moved to the left by the column in which it starts."""
    first, *rest = text_of(node).split("\n")
    moved = [line[min(node.start_point[1], len(line) - len(line.lstrip())) :] for line in rest]
    return "\n".join([first, *moved])


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


def _first_error(node: Node) -> Node:
    """The innermost node at which text could not be read."""
    return next((_first_error(child) for child in node.children if child.has_error or child.is_missing), node)
