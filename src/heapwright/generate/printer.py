"""Writes trees as C: four spaces, 120 columns, comments where the source had them."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence

from heapwright.generate import syntax as c

WIDTH = 120
_LEVELS = [
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", ">", "<=", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
]
_PRECEDENCE = {op: level for level, ops in enumerate(_LEVELS, start=3) for op in ops} | {",": 0}
_UNARY = 13
_DRAWING = re.compile(r"^\W*\|.*\|", re.MULTILINE)
"""A line of a comment that draws blocks."""
_BITWISE = {"&", "|", "^"}
_CONFUSED = {  # inner operators that compilers warn about without parentheses
    "||": {"&&"},
    "&": {"+", "-", "|", "^", "==", "!=", "<", ">", "<=", ">="},
    "|": {"+", "-", "&", "^", "==", "!=", "<", ">", "<=", ">="},
    "^": {"+", "-", "&", "|", "==", "!=", "<", ">", "<=", ">="},
    "<<": {"+", "-"},
    ">>": {"+", "-"},
}


Part = tuple[c.Expr, str, int, str]
"""An operand, the separator behind it, the precedence around it, and the operator."""


class Printer:
    """Writes one text. `rename` maps identifiers of the core to those of the text; `name` gives constants theirs."""

    def __init__(self, rename: Callable[[str], str], name: Callable[[c.Named], str]) -> None:
        self.rename = rename
        self.name = name

    # ---- expressions

    def flat(self, expr: c.Expr, outer: int = 0, op: str = "") -> str:
        """An expression on one line, in parentheses where `outer` (the precedence around it) asks for them."""
        text = self._bare(expr)
        return f"({text})" if self.parenthesised(expr, outer, op) else text

    def parenthesised(self, expr: c.Expr, outer: int, op: str = "") -> bool:
        """Whether an expression stands in parentheses inside one of precedence `outer` and operator `op`."""
        level = _level(expr)
        if level < outer:
            return True
        if isinstance(expr, c.Assign) and expr.paren:
            return True
        if outer == 0 or level > _UNARY:
            return False
        if isinstance(expr, c.Binary) and expr.op in _CONFUSED.get(op, ()):
            return True
        if isinstance(expr, c.Binary) and op in ("==", "!=", "<", ">", "<=", ">=") and 8 <= level <= 9:
            return True
        return expr.paren and not isinstance(expr, (c.Cast, c.Unary))

    def _bare(self, expr: c.Expr) -> str:
        match expr:
            case c.Binary(op=op) if op != ",":
                level = _PRECEDENCE[op]
                return f"{self.flat(expr.left, level, op)} {op} {self.flat(expr.right, level + 1, op)}"
            case c.Conditional():
                return f"{self.flat(expr.test, 3)} ? {self.flat(expr.yes, 1)} : {self.flat(expr.no, 2)}"
            case _:
                head, parts, tail = self._pieces(expr)
                return head + ", ".join([self.flat(part, level) for part, _, level, _ in parts]) + tail

    def _pieces(self, expr: c.Expr) -> tuple[str, list[Part], str]:
        """What stands ahead of the operands that may begin new lines, these, and what stands behind them."""
        match expr:
            case c.Name():
                return self.rename(expr.name), [], ""
            case c.Literal():
                return expr.text, [], ""
            case c.Verbatim():
                return self.type(expr.text), [], ""
            case c.Named():
                return self.name(expr), [], ""
            case c.Unary():
                space = " " if expr.op in "+-&" and self.flat(expr.operand, _UNARY)[0] == expr.op else ""
                return expr.op + space, [(expr.operand, "", _UNARY, "")], ""
            case c.Update():
                inner = self.flat(expr.target, _UNARY + 1)
                return expr.op + inner if expr.prefix else inner + expr.op, [], ""
            case c.Binary():
                return f"{self.flat(expr.left)}, {self.flat(expr.right, 1)}", [], ""
            case c.Assign():
                return f"{self.flat(expr.target, _UNARY)} {expr.op} ", [(expr.source, "", 1, "")], ""
            case c.Index():
                return f"{self.flat(expr.base, _UNARY + 1)}[{self.flat(expr.index)}]", [], ""
            case c.Member():
                return f"{self.flat(expr.base, _UNARY + 1)}{'->' if expr.arrow else '.'}{expr.name}", [], ""
            case c.Cast():
                return f"({self.type(expr.to)})", [(expr.operand, "", _UNARY, "")], ""
            case c.Call():
                name = expr.callee.name if expr.callee else expr.name
                return f"{self.rename(name)}(", [(argument, ",", 1, "") for argument in expr.arguments], ")"
            case c.Braces():
                to = f"({self.type(expr.to)})" if expr.to else ""
                return to + "{", [(item, ",", 1, "") for item in expr.items], "}"
            case _:
                raise AssertionError(f"{type(expr).__name__} is left in specialised code")

    def type(self, text: str) -> str:
        """A type's text in the names of the output."""
        return c.WORD.sub(lambda match: self.rename(match.group()), text)

    def _broken(self, expr: c.Expr, column: int, room: int, outer: int = 0, op: str = "") -> str:
        """An expression starting in a column, over several lines where it does not fit; `room` is kept free behind."""
        flat = self.flat(expr, outer, op)
        if column + len(flat) + room <= WIDTH:
            return flat
        if self.parenthesised(expr, outer, op):
            return f"({self._split(expr, column + 1, room + 1)})"
        return self._split(expr, column, room)

    def _split(self, expr: c.Expr, column: int, room: int) -> str:
        match expr:
            case c.Binary(op=operator) if operator != ",":
                level = _PRECEDENCE[operator]
                links = _chain(expr, level, self)
                return self.filled([(part, f" {op}", level, op) for part, op in links], column, room)
            case c.Conditional():
                test = self._broken(expr.test, column, 0, 3)
                beside = "\n" not in test and column + len(test) + 3 + len(self.flat(expr.yes, 1)) <= WIDTH
                at = column + len(test) + 1 if beside else column + 4
                gap = " " if beside else "\n" + " " * at
                yes = self._broken(expr.yes, at + 2, 0, 1)
                return f"{test}{gap}? {yes}\n{' ' * at}: {self._broken(expr.no, at + 2, room, 2)}"
            case _:
                head, parts, tail = self._pieces(expr)
                return head + self.filled(parts, column + len(head), room + len(tail)) + tail

    def filled(self, parts: Sequence[Part], column: int, room: int) -> str:
        """Parts and the separators behind them, as many on a line as fit, all lines starting in the same column."""
        text = ""
        at = column
        for index, (part, separator, level, op) in enumerate(parts):
            last = index == len(parts) - 1
            after = room if last else len(separator)
            inner = level + (1 if index and op and op not in ("&&", "||") else 0)
            flat = self.flat(part, inner, op)
            if index and at + 1 + len(flat) + after > WIDTH:
                text += "\n" + " " * column
                at = column
            elif index:
                text += " "
                at += 1
            piece = self._broken(part, at, after, inner, op) + ("" if last else separator)
            text += piece
            at = len(piece.split("\n")[-1]) if "\n" in piece else at + len(piece)
        return text

    # ---- statements

    def body(self, body: list[c.Stmt], depth: int) -> str:
        """Statements, each line with its line break."""
        return "".join(self._statement(stmt, depth) for stmt in body)

    def _statement(self, stmt: c.Stmt, depth: int) -> str:
        indent = "    " * depth
        head = "\n" if stmt.blank else ""
        head += "".join(self.comment(comment, indent) for comment in stmt.comments)
        tail = f" {self.words(stmt.trailing)}\n" if stmt.trailing else "\n"
        code = f"{indent}{self._code(stmt, depth)}"
        if stmt.trailing and len(code.split("\n")[-1]) + len(tail) > WIDTH + 1:
            return f"{head}{self.comment(c.Comment(stmt.trailing, 0), indent)}{code}\n"
        return f"{head}{code}{tail}"

    def _code(self, stmt: c.Stmt, depth: int) -> str:
        column = 4 * depth
        match stmt:
            case c.Declare():
                return self.declaration(stmt, column) + ";"
            case c.Do():
                return self._broken(stmt.expr, column, 1) + ";"
            case c.Return(expr=None):
                return "return;"
            case c.Return(expr=c.Expr() as expr):
                return f"return {self._broken(expr, column + 7, 1)};"
            case c.Jump():
                return stmt.word + ";"
            case c.If():
                return self._if_statement(stmt, depth)
            case c.For():
                return f"for ({self._for_head(stmt, column + 5)}) {self._braces(stmt.body, depth)}"
            case c.While(at_end=True):
                return f"do {self._braces(stmt.body, depth)} while ({self._broken(stmt.test, column + 9, 2)});"
            case c.While():
                return f"while ({self._broken(stmt.test, column + 7, 3)}) {self._braces(stmt.body, depth)}"
            case _:
                raise AssertionError(type(stmt).__name__)

    def declaration(self, stmt: c.Declare, column: int) -> str:
        """A declaration that starts in a column, without its semicolon."""
        head = declarator(self.type(stmt.type), stmt.name) + self.type(stmt.suffix)
        if stmt.init is None:
            return head
        flat = self.flat(stmt.init, 1)
        if column + len(head) + 3 + len(flat) + 1 > WIDTH and not isinstance(
            stmt.init, (c.Binary, c.Braces, c.Conditional, c.Call)
        ):
            return f"{head} =\n{' ' * (column + 4)}{self._broken(stmt.init, column + 4, 1, 1)}"
        return f"{head} = {self._broken(stmt.init, column + len(head) + 3, 1, 1)}"

    def _if_statement(self, stmt: c.If, depth: int) -> str:
        text = f"if ({self._broken(stmt.test, 4 * depth + 4, 3)}) {self._braces(stmt.yes, depth)}"
        match stmt.no:
            case []:
                return text
            case [c.If(comments=[]) as chained]:
                return f"{text} else {self._if_statement(chained, depth)}"
            case _:
                return f"{text} else {self._braces(stmt.no, depth)}"

    def _for_head(self, stmt: c.For, column: int) -> str:
        init = self.declaration(stmt.init, 0) if stmt.init else ""
        parts = [init] + [self.flat(expr) if expr else "" for expr in (stmt.test, stmt.update)]
        flat = "; ".join(parts) if any(parts) else ";;"
        if column + len(flat) + 3 <= WIDTH:
            return flat
        return f";\n{' ' * column}".join(parts)

    def _braces(self, body: list[c.Stmt], depth: int) -> str:
        return "{\n" + self.body(body, depth + 1) + "    " * depth + "}" if body else "{\n" + "    " * depth + "}"

    # ---- comments and functions

    def words(self, text: str) -> str:
        """Text of a comment in the names of the output."""
        return re.sub(rf"{c.WORD.pattern}(?:\(\))?", lambda match: self.rename(match.group()), text)

    def comment(self, comment: c.Comment, indent: str) -> str:
        """A comment with its line break, moved to an indent; filled anew where names made it too wide."""
        first, *rest = self.words(comment.text).split("\n")
        moved = [line[min(comment.column, len(line) - len(line.lstrip())) :] for line in rest]
        lines = [f"{indent}{line}".rstrip() for line in [first, *moved]]
        if any(len(line) > WIDTH for line in lines) and not _DRAWING.search(comment.text):
            lines = _filled_comment(self.words(comment.text), indent)
        return "".join(f"{line}\n" for line in lines)

    def signature(self, storage: str, function: c.Function, name: str, parameters: list[c.Parameter]) -> str:
        """The head of a function definition, without its brace."""
        head = f"{self.words(storage)} " if storage else ""
        head += declarator(self.type(function.type), self.rename(name)) + "("
        texts = [declarator(self.type(p.type), p.name) + self.type(p.suffix) for p in parameters] or ["void"]
        return head + self.filled([(c.Literal(text), ",", 0, "") for text in texts], len(head), 1) + ")"


def declarator(typed: str, name: str) -> str:
    """A type and the name declared with it."""
    return f"{typed}{name}" if typed.endswith("*") or not name else f"{typed} {name}"


def _level(expr: c.Expr) -> int:
    match expr:
        case c.Binary():
            return _PRECEDENCE[expr.op]
        case c.Assign():
            return 1
        case c.Conditional():
            return 2
        case c.Unary() | c.Cast() | c.Update(prefix=True):
            return _UNARY
        case _:
            return _UNARY + 1


def _chain(expr: c.Binary, level: int, printer: Printer) -> list[tuple[c.Expr, str]]:
    """Operands of a row of operators of one precedence, each with the operator behind it."""
    left = expr.left
    same = isinstance(left, c.Binary) and _PRECEDENCE[left.op] == level
    if isinstance(left, c.Binary) and same and not printer.parenthesised(left, level, expr.op):
        links = _chain(left, level, printer)
        return [*links[:-1], (links[-1][0], expr.op), (expr.right, expr.op)]
    return [(left, expr.op), (expr.right, expr.op)]


def comment_words(comment: str) -> str:
    """The words of a comment, without its marks and line breaks."""
    text = re.sub(r"^/\*+|\*/$|^//+", "", comment.strip(), flags=re.MULTILINE)
    return " ".join(re.sub(r"^\s*\*", "", line).strip() for line in text.split("\n")).strip()


def _filled_comment(text: str, indent: str) -> list[str]:
    """The lines of a comment in prose."""
    glued = " ".join(comment_words(text).split()) + "\N{NO-BREAK SPACE}*/"  # the end stays with the last word
    lines = textwrap.wrap(glued, WIDTH - len(indent) - 3, break_long_words=False, break_on_hyphens=False)
    marked = [f"{indent}{' *' if index else '/*'} {line}" for index, line in enumerate(lines)]
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in marked]


def without_sentences_on(gone: set[str], comment: c.Comment) -> c.Comment:
    """A function's comment without the sentences, behind the first, that name parameters which are gone."""
    first, *others = re.split(r"(?<=\.)\s+(?:\* )?(?=[A-Z`])", comment.text.removesuffix("*/").rstrip())
    kept = [other for other in others if not gone & set(re.findall(r"`(\w+)`", other))]
    if len(kept) == len(others) or _DRAWING.search(comment.text):
        return comment
    return c.Comment("\n".join(_filled_comment(" ".join([first, *kept, "*/"]), "")), 0)


def commented_lines(rows: list[tuple[str, str]]) -> str:
    """Lines of code with comments behind them, aligned while they fit, else above."""
    width = max((len(code) for code, note in rows if note), default=0)
    fits = all(width + len(note) + 7 <= WIDTH for _, note in rows if note)
    lines = []
    for code, note in rows:
        at = width if fits else len(code)
        if note and at + len(note) + 7 > WIDTH:
            lines += [f"/* {note} */", code]
        else:
            lines.append(f"{code.ljust(at)} /* {note} */" if note else code)
    return "".join(f"{line}\n" for line in lines)


def collapse_blank_lines(text: str) -> str:
    """The text without runs of blank lines."""
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"
