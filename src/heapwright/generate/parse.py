"""Reads C text into the trees of `syntax`: conditionals over HW_ names are resolved, comments find their owners."""

from __future__ import annotations

import re
from functools import lru_cache

import tree_sitter_c
from tree_sitter import Language, Node, Parser

from heapwright.generate import syntax as c
from heapwright.generate.syntax import GrammarError

LANGUAGE = Language(tree_sitter_c.language())
_DIRECTIVE = re.compile(r"\s*#\s*(\w+)\s*(.*)", re.DOTALL)
_TYPEDEF_ATTRIBUTE = re.compile(rb"^(typedef [\w ]*)(__attribute__\(\(\w+\)\))", re.MULTILINE)
_CONDITION = re.compile(r"\s*(defined\s*\(\s*\w+\s*\)|defined\s+\w+|&&|\|\||!|\(|\)|0|1)")


# ---- conditionals ---------------------------------------------------------------------------------------------------


class _Conditional:
    """One open #if: resolved here, left to the compiler, or an include guard."""

    def __init__(self, kind: str, taken: bool) -> None:
        self.kind = kind
        self.taken = taken
        self.done = taken


def _evaluate(condition: str, defines: frozenset[str]) -> bool | None:
    """Truth of a condition over defined(HW_...); None where it asks about anything else."""
    names = re.findall(r"\w+", re.sub(r"\bdefined\b", " ", condition))
    if not all(name.startswith("HW_") or name in ("0", "1") for name in names) or _CONDITION.sub("", condition).strip():
        return None
    words = {"&&": " and ", "||": " or ", "!": " not ", "0": "False", "1": "True"}
    python = ""
    for token in _CONDITION.findall(condition):
        python += str(token[7:].strip(" ()") in defines) if token.startswith("defined") else words.get(token, token)
    return bool(eval(python, {"__builtins__": {}}))  # only True, False, and, or, not and parentheses


def _question(word: str, rest: str, defines: frozenset[str]) -> bool | None:
    rest = re.sub(r"/\*.*?\*/|//.*", "", rest).strip()
    if word in ("ifdef", "ifndef", "elifdef", "elifndef"):
        answer = _evaluate(f"defined({rest})", defines)
        return answer if answer is None or "n" not in word else not answer
    return _evaluate(rest, defines)


def _resolve(file: str, lines: list[str], defines: frozenset[str]) -> set[int]:
    """Indices of the lines that the conditionals over HW_ names take out, the directives included."""
    removed: set[int] = set()
    stack: list[_Conditional] = []
    for index, line in enumerate(lines):
        match = _DIRECTIVE.match(line)
        word = match.group(1) if match else ""
        alive = all(level.taken for level in stack)
        if word in ("if", "ifdef", "ifndef"):
            answer = _question(word, match.group(2), defines) if match and alive else False
            kind = "kept" if answer is None else "resolved"
            stack.append(_Conditional(kind, answer is None or answer))
        elif word in ("elif", "else", "elifdef", "elifndef", "endif"):
            if not stack:
                raise GrammarError(file, index + 1, f"#{word} without #if")
            level = stack[-1]
            alive = all(outer.taken for outer in stack[:-1])
            if word == "endif":
                stack.pop()
            elif level.kind == "resolved":
                answer = word == "else" or _question(word, match.group(2) if match else "", defines)
                if answer is None:
                    raise GrammarError(file, index + 1, "a condition over HW_ names goes on with another one")
                level.taken, level.done = answer and not level.done, level.done or answer
            if level.kind == "kept" and alive:
                continue
        elif alive:
            continue
        elif not word:
            removed.add(index)
            continue
        if not (word in ("if", "ifdef", "ifndef") and stack[-1].kind == "kept" and alive):
            removed.add(index)
    if stack:
        raise GrammarError(file, len(lines), "#if without #endif")
    return removed


# ---- one file -------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def parse(file: str, text: str, defines: frozenset[str]) -> c.Source:
    """Read one file.

    `file` is for messages; `defines` are the HW_ names taken as defined. Raises GrammarError for text outside the
    grammar of docs/core-grammar.md as far as one file shows it.
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
                found[-1] = (owner[0], owner[1], _text(node), owner[3])
                end = node.end_point[0]
                continue
            if gap:
                pending, blank = [], True
            if node.type == "comment":
                pending.append(c.Comment(_text(node), node.start_point[1]))
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
                path = _text(_child(node, "path"))
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
                return self.function(node, _child(node, "body"))
            case "declaration":
                return self.declaration(node)
            case "preproc_if" | "preproc_ifdef":
                return self.guarded_items(node)
            case "expression_statement" if _text(node).startswith("_Static_assert"):
                return None
            case _:
                raise self.error(node, f"{node.type.replace('_', ' ')} is not allowed at file level")

    def guarded_items(self, node: Node) -> c.Item | None:
        directive = self.lines[node.start_point[0]].strip()
        name = directive.split()[-1]
        following = [child for child in node.named_children if child.type != "comment"][1:2]
        if directive.startswith("#ifndef") and following and _text(following[0]).split() == ["#define", name]:
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
        body = _text(value).split("/*")[0].strip() if value else ""
        parameters = node.child_by_field_name("parameters")
        names = None if parameters is None else [_text(child) for child in parameters.named_children]
        code, mark, comment = _text(node).rstrip().partition("/*")
        macro = c.Macro(_text(_child(node, "name")), names, code.rstrip(), body, self.macro_value(body))
        macro.trailing = mark + comment
        return macro

    def macro_value(self, body: str) -> c.Expr | None:
        if not body:
            return None
        root = Parser(LANGUAGE).parse(f"int x = {body};".encode()).root_node
        try:
            return None if root.has_error else self.expr(_child(_child(root.children[0], "declarator"), "value"))
        except GrammarError:
            return None

    def struct(self, node: Node) -> c.Struct:
        name = _text(_child(node, "name"))
        body = node.child_by_field_name("body")
        return c.Struct(name, self.fields(body) if body else None, _text(node) + ";")

    def fields(self, body: Node) -> dict[str, c.Field]:
        """The members of a struct, those of a union without a name among them."""
        fields: dict[str, c.Field] = {}
        for child, comments, trailing, _ in self.with_comments(body.named_children):
            note = trailing or (comments[-1].text if comments else "")
            declarators = child.children_by_field_name("declarator")
            union = child.child_by_field_name("type")
            if not declarators and union and union.type == "union_specifier":
                fields |= self.fields(_child(union, "body"))
            for declarator in declarators:
                typed, field, suffix = self.declarator(_type_text(child), declarator)
                fields[field] = c.Field(typed, bool(suffix), comment_words(note))
        return fields

    def enum(self, node: Node) -> c.Enum:
        body = _child(node, "body")
        members = []
        for child, comments, trailing, _ in self.with_comments([n for n in body.children if n.type not in "{},"]):
            value = child.child_by_field_name("value")
            init = self.expr(value) if value else None
            name = _text(_child(child, "name"))
            members.append(c.Enumerator(name, init, _text(value) if value else "", comments, trailing))
        tag = node.child_by_field_name("name")
        return c.Enum(_text(tag) if tag else "", members, node.start_point[0] == node.end_point[0])

    def typedef(self, node: Node) -> c.Item:
        declarator = _child(node, "declarator")
        if _child(node, "type").child_by_field_name("body"):
            raise self.error(node, "a typedef defines no struct or enum of its own; define the struct first")
        typed, name, suffix = self.declarator(_text(_child(node, "type")), declarator)
        return c.Global(name, typed + suffix, self.text[node.start_byte : node.end_byte].decode())

    def declaration(self, node: Node) -> c.Item:
        declarator = _child(node, "declarator")
        if _function_declarator(declarator):
            return self.function(node, None)
        inner = declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else declarator
        typed, name, suffix = self.declarator(_type_text(node), inner or declarator)
        if "const" not in typed.split():
            raise self.error(node, f"{name}: the core has no variables at file level; only const tables")
        return c.Global(name, typed + (" *" if suffix else ""), _text(node))

    def function(self, node: Node, body: Node | None) -> c.Function:
        storage = " ".join(_text(n) for n in node.children if n.type == "storage_class_specifier")
        declarator = _child(node, "declarator")
        stars = ""
        while declarator.type == "pointer_declarator":
            stars += "*"
            declarator = _child(declarator, "declarator")
        typed = _type_text(node, storage=False) + (f" {stars}" if stars else "")
        name = _text(_child(declarator, "declarator"))
        parameters = [self.parameter(n) for n in _child(declarator, "parameters").named_children]
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
                return typed, _text(node), ""
            case "pointer_declarator" | "abstract_pointer_declarator":
                words = [_text(n) for n in node.children if n.type == "type_qualifier"]
                pointed = f"{typed}*" if typed.endswith("*") else f"{typed} *"
                inner = node.child_by_field_name("declarator")
                pointed += " ".join(words)
                return self.declarator(pointed, inner) if inner else (pointed, "", "")
            case "array_declarator":
                size = node.child_by_field_name("size")
                outer, name, suffix = self.declarator(typed, _child(node, "declarator"))
                return outer, name, f"{suffix}[{_text(size) if size else ''}]"
            case _:
                raise self.error(node, f"{node.type.replace('_', ' ')} is not allowed")

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
            case "compound_statement":
                return c.Block(self.block(node))
            case "if_statement":
                return self.if_statement(node)
            case "for_statement":
                return self.for_statement(node)
            case "while_statement" | "do_statement":
                test = self.condition(_child(node, "condition"))
                return c.While(test, self.block(_child(node, "body")), node.type == "do_statement")
            case "return_statement":
                return c.Return(self.expr(node.named_children[0]) if node.named_children else None)
            case "break_statement" | "continue_statement":
                return c.Jump(node.type.split("_")[0])
            case "preproc_if" | "preproc_ifdef":
                return c.Guarded([(head, self.statements(body)) for head, body in self.branches(node)])
            case _:
                raise self.error(node, f"{node.type.replace('_', ' ')} is not allowed")

    def if_statement(self, node: Node) -> c.If:
        if any(child.type == "comment" for child in node.children):
            raise self.error(node, "a comment between an if and its else; put it inside the braces")
        clause = node.child_by_field_name("alternative")
        no: list[c.Stmt] = []
        if clause:
            branch = clause.named_children[-1]
            no = self.statements([branch]) if branch.type == "if_statement" else self.block(branch)
        return c.If(self.condition(_child(node, "condition")), self.block(_child(node, "consequence")), no)

    def for_statement(self, node: Node) -> c.For:
        init = node.child_by_field_name("initializer")
        start: c.Stmt | None = None
        if init:
            start = self.local(init) if init.type == "declaration" else c.Do(self.expr(init))
            start.line = init.start_point[0] + 1
        test, update = node.child_by_field_name("condition"), node.child_by_field_name("update")
        body = self.block(_child(node, "body"))
        return c.For(start, self.expr(test) if test else None, self.expr(update) if update else None, body)

    def local(self, node: Node) -> c.Declare:
        declarators = node.children_by_field_name("declarator")
        if len(declarators) != 1:
            raise self.error(node, "a declaration declares one variable")
        declarator = declarators[0]
        value = declarator.child_by_field_name("value") if declarator.type == "init_declarator" else None
        inner = _child(declarator, "declarator") if value else declarator
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
        match node.type:
            case "identifier":
                return c.Name(_text(node))
            case "number_literal" | "char_literal" | "string_literal" | "true" | "false":
                return c.Literal(_text(node))
            case "null":
                return c.Name("NULL")
            case "parenthesized_expression":
                expr = self.expr(node.named_children[0])
                expr.paren = True
                return expr
            case "unary_expression" | "pointer_expression":
                return c.Unary(_text(_child(node, "operator")), self.expr(_child(node, "argument")))
            case "update_expression":
                prefix = node.children[0].type in ("++", "--")
                return c.Update(_text(_child(node, "operator")), self.expr(_child(node, "argument")), prefix)
            case "binary_expression":
                left, right = _child(node, "left"), _child(node, "right")
                return c.Binary(_text(_child(node, "operator")), self.expr(left), self.expr(right))
            case "comma_expression":
                return c.Binary(",", self.expr(_child(node, "left")), self.expr(_child(node, "right")))
            case "assignment_expression":
                left, right = _child(node, "left"), _child(node, "right")
                return c.Assign(_text(_child(node, "operator")), self.expr(left), self.expr(right))
            case "conditional_expression":
                parts = [_child(node, name) for name in ("condition", "consequence", "alternative")]
                return c.Conditional(*(self.expr(part) for part in parts))
            case "subscript_expression":
                return c.Index(self.expr(_child(node, "argument")), self.expr(_child(node, "index")))
            case "field_expression":
                arrow = _text(_child(node, "operator")) == "->"
                return c.Member(self.expr(_child(node, "argument")), _text(_child(node, "field")), arrow)
            case "sizeof_expression" | "alignof_expression" | "offsetof_expression":
                return c.Verbatim(" ".join(_text(node).split()))
            case _:
                return self.compound(node)

    def compound(self, node: Node) -> c.Expr:
        match node.type:
            case "call_expression":
                function = _child(node, "function")
                if function.type != "identifier":
                    raise self.error(node, "a call through a pointer")
                arguments = _child(node, "arguments").named_children
                return c.Call(_text(function), [self.expr(argument) for argument in arguments])
            case "cast_expression":
                return c.Cast(self.type_name(_child(node, "type")), self.expr(_child(node, "value")))
            case "initializer_list":
                return c.Braces([self.initializer(child) for child in node.named_children])
            case "compound_literal_expression":
                braces = self.expr(_child(node, "value"))
                assert isinstance(braces, c.Braces)
                braces.to = self.type_name(_child(node, "type"))
                return braces
            case _:
                raise self.error(node, f"{node.type.replace('_', ' ')} is not allowed")

    def initializer(self, node: Node) -> tuple[str, c.Expr]:
        if node.type != "initializer_pair":
            return "", self.expr(node)
        designators = "".join(_text(n) for n in node.children_by_field_name("designator"))
        return designators, self.expr(_child(node, "value"))

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


def _text(node: Node) -> str:
    return (node.text or b"").decode()


def _child(node: Node, field: str) -> Node:
    child = node.child_by_field_name(field)
    if child is None:
        raise AssertionError(f"{node.type} has no {field}")
    return child


def _type_text(node: Node, storage: bool = True) -> str:
    kinds = {"type_qualifier"} | ({"storage_class_specifier"} if storage else set())
    typed = node.child_by_field_name("type")
    words = [_text(n) for n in node.children if n.type in kinds or (typed is not None and n.id == typed.id)]
    return " ".join(" ".join(words).split())


def _function_declarator(node: Node) -> bool:
    while node.type == "pointer_declarator":
        node = _child(node, "declarator")
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
