"""Reads C text into the trees of `syntax`: conditionals over HW_ names are resolved, comments find their owners."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import tree_sitter_c
from tree_sitter import Language, Node, Parser

from heapwright.generate import syntax as c
from heapwright.generate.syntax import GrammarError

LANGUAGE = Language(tree_sitter_c.language())
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

    def with_comments(self, nodes: list[Node]) -> list[tuple[Node, list[c.Comment], str, bool]]:
        """Nodes with the comments above them, the comment behind them, and whether a blank line comes before."""
        found: list[tuple[Node, list[c.Comment], str, bool]] = []
        pending: list[c.Comment] = []
        blank = False
        end = -1
        for node in nodes:
            start = node.start_point[0]
            gap = end >= 0 and self.blank_between(end, start)
            if node.type == "comment" and found and not pending and start == _last_line(found[-1][0]):
                owner = found[-1]
                found[-1] = (owner[0], owner[1], text_of(node), owner[3])
                end = node.end_point[0]
                continue
            if gap:
                pending, blank = [], True
            if node.type == "comment":
                pending.append(c.Comment(text_of(node), node.start_point[1]))
            else:
                found.append((node, pending, "", blank))
                pending, blank = [], False
            end = _last_line(node)
        return found

    # -- file level

    def items(self, nodes: list[Node]) -> list[c.Item]:
        items: list[c.Item] = []
        for node, comments, trailing, blank in self.with_comments([n for n in nodes if n.type != ";"]):
            item = self.item(node)
            if item:
                item.file, item.line = self.file, node.start_point[0] + 1
                item.comments, item.trailing, item.blank = comments, item.trailing or trailing, blank
                items.append(item)
        return items

    def item(self, node: Node) -> c.Item | None:
        match node.type:
            case "preproc_include":
                path = text_of(child_of(node, "path"))
                if path.startswith("<"):
                    self.includes.append(path)
                return None
            case "preproc_def" | "preproc_function_def":
                return self.macro(node)
            case "struct_specifier":
                return self.struct(node)
            case "enum_specifier":
                return self.enum(node)
            case "type_definition":
                return self.typedef(node)
            case "function_definition":
                return self.function(node, child_of(node, "body"))
            case "declaration":
                return self.declaration(node)
            case "preproc_if" | "preproc_ifdef":
                return self.guarded_items(node)
            case _:
                raise self.not_allowed(node, " at file level")

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
        parameters = node.child_by_field_name("parameters")
        names = None if parameters is None else [text_of(child) for child in parameters.named_children]
        code, mark, comment = text_of(node).rstrip().partition("/*")
        macro = c.Macro(text_of(child_of(node, "name")), names, code.rstrip(), body, self.macro_value(body))
        macro.trailing = mark + comment
        return macro

    def macro_value(self, body: str) -> c.Expr | None:
        if not body:
            return None
        root = Parser(LANGUAGE).parse(f"int x = {body};".encode()).root_node
        try:
            return None if root.has_error else self.expr(child_of(child_of(root.children[0], "declarator"), "value"))
        except GrammarError:
            return None

    def struct(self, node: Node) -> c.Struct:
        name = text_of(child_of(node, "name"))
        body = node.child_by_field_name("body")
        return c.Struct(name, self.fields(body) if body else None, text_of(node) + ";")

    def fields(self, body: Node) -> dict[str, c.Field]:
        """The members of a struct, those of a union without a name among them."""
        fields: dict[str, c.Field] = {}
        for child, comments, trailing, _ in self.with_comments(body.named_children):
            note = trailing or (comments[-1].text if comments else "")
            declarators = child.children_by_field_name("declarator")
            union = child.child_by_field_name("type")
            if not declarators and union and union.type == "union_specifier":
                fields |= self.fields(child_of(union, "body"))
            for declarator in declarators:
                typed, field, suffix = self.declarator(_type_text(child), declarator)
                fields[field] = c.Field(typed, bool(suffix), comment_words(note))
        return fields

    def enum(self, node: Node) -> c.Enum:
        body = child_of(node, "body")
        members = []
        for child, comments, trailing, _ in self.with_comments([n for n in body.children if n.type not in "{},"]):
            value = child.child_by_field_name("value")
            name = text_of(child_of(child, "name"))
            members.append(c.Enumerator(name, text_of(value) if value else "", comments, trailing))
        tag = node.child_by_field_name("name")
        return c.Enum(text_of(tag) if tag else "", members, node.start_point[0] == node.end_point[0])

    def typedef(self, node: Node) -> c.Item:
        declarator = child_of(node, "declarator")
        if child_of(node, "type").child_by_field_name("body"):
            raise self.error(node, "a typedef defines no struct or enum of its own; define the struct first")
        typed, name, suffix = self.declarator(text_of(child_of(node, "type")), declarator)
        return c.Global(name, typed + suffix, self.text[node.start_byte : node.end_byte].decode())

    def declaration(self, node: Node) -> c.Item:
        if _function_declarator(child_of(node, "declarator")):
            return self.function(node, None)
        raise self.error(node, "the core has no variables at file level")

    def function(self, node: Node, body: Node | None) -> c.Function:
        storage = " ".join(text_of(n) for n in node.children if n.type == "storage_class_specifier")
        declarator = child_of(node, "declarator")
        stars = ""
        while declarator.type == "pointer_declarator":
            stars += "*"
            declarator = child_of(declarator, "declarator")
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
        found: list[c.Stmt] = []
        for node, comments, trailing, blank in self.with_comments(nodes):
            stmt = self.statement(node)
            stmt.line = node.start_point[0] + 1
            stmt.comments, stmt.trailing, stmt.blank = comments, trailing, blank and bool(found)
            found.append(stmt)
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
        if any(child.type == "comment" for child in node.children):
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


def comment_words(comment: str) -> str:
    """The words of a comment, without its marks and line breaks."""
    text = re.sub(r"^/\*+|\*/$|^//+", "", comment.strip(), flags=re.MULTILINE)
    return " ".join(re.sub(r"^\s*\*", "", line).strip() for line in text.split("\n")).strip()


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


def _function_declarator(node: Node) -> bool:
    while node.type == "pointer_declarator":
        node = child_of(node, "declarator")
    return node.type == "function_declarator"


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
