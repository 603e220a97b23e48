"""Writes trees as C: four spaces, 120 columns, comments where the source had them."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

from heapwright._generate import syntax as c
from heapwright._generate.program import COMPARISONS

WIDTH = 120
_LEVELS = ["||", "&&", "|", "^", "&", "== !=", "< > <= >=", "<< >>", "+ -", "* / %"]
_PRECEDENCE = {op: level for level, ops in enumerate(_LEVELS, start=3) for op in ops.split()} | {",": 0}
_UNARY = 13
_DRAWING = re.compile(r"^\W*\|.*\|", re.MULTILINE)
"""A line of a comment that draws blocks."""
_COMMENT = re.compile(r"([ \t]*)(/\*.*?\*/)", re.DOTALL)
_SENTENCE = re.compile(r"(?<=\.)\s+(?=[A-Z`])")
_CLAUSE = re.compile(r";\s+")
_CONFUSED = {op: {"+", "-", "&", "|", "^", *COMPARISONS} - {op} for op in "&|^"} | {"||": {"&&"}}
_CONFUSED |= {op: {"+", "-"} for op in ("<<", ">>")}
"""Inner operators that compilers warn about without parentheses."""


_ASSIGNING = {f"{op}=" for op in ("", *"+-*/%&|^", "<<", ">>")}


class Printer:
    """Writes one text. `rename` maps identifiers of the core to those of the text; `name` gives constants theirs.

    `absent` matches the words for what the recipe lacks: comments are written without the sentences that have any.
    """

    def __init__(self, rename: Callable[[str], str], name: Callable[[c.Named], str], absent: str = "") -> None:
        self.rename = rename
        self.name = name
        self.absent = absent
        self._forms: dict[type[c.Expr], Callable[[Any], str]] = {
            c.Identifier: lambda expr: self.rename(expr.name),
            c.Literal: lambda expr: self.type(expr.text),
            c.Verbatim: lambda expr: self.type(expr.text),
            **dict.fromkeys((c.Named, c.Constant, c.ConstantTable, c.Derived), lambda expr: self.name(expr)),
            c.Unary: self._unary,
            c.Change: self._change,
            c.Binary: self._binary,
            c.Conditional: self._conditional,
            c.Index: lambda expr: f"{self.flat(expr.base, _UNARY + 1)}[{self.flat(expr.index)}]",
            c.MemberAccess: lambda expr: f"{self.flat(expr.base, _UNARY + 1)}{'->' if expr.arrow else '.'}{expr.name}",
            c.Cast: lambda expr: f"({self.type(expr.to)}){self.flat(expr.operand, _UNARY)}",
            c.Call: self._call,
            c.Braces: self._braces,
        }
        """What writes each kind of expression, without parentheses around it."""

    # ---- expressions

    def flat(self, expr: c.Expr, outer: int = 0, op: str = "") -> str:
        """An expression on one line, in parentheses where `outer` (the precedence around it) asks for them."""
        text = self._bare(expr)
        return f"({text})" if self.parenthesised(expr, outer, op) else text

    def parenthesised(self, expr: c.Expr, outer: int, op: str = "") -> bool:
        """Whether an expression stands in parentheses inside one of precedence `outer` and operator `op`."""
        level = _level(expr)
        if level < outer or (isinstance(expr, c.Change) and expr.source and expr.paren):
            return True
        if outer == 0 or level > _UNARY:
            return False
        if isinstance(expr, c.Binary):
            compares = op in COMPARISONS and 8 <= level <= 9
            return expr.paren or compares or expr.op in _CONFUSED.get(op, ())
        return expr.paren and not isinstance(expr, (c.Cast, c.Unary))

    def _bare(self, expr: c.Expr) -> str:
        write = self._forms.get(type(expr))
        if write is None:
            raise AssertionError(f"{type(expr).__name__} is left in specialised code")
        return write(expr)

    def _unary(self, expr: c.Unary) -> str:
        inner = self.flat(expr.operand, _UNARY)
        return f"{expr.op} {inner}" if expr.op in "+-&" and inner[0] == expr.op else expr.op + inner

    def _change(self, expr: c.Change) -> str:
        if expr.source is not None:
            return f"{self.flat(expr.target, _UNARY)} {expr.op} {self.flat(expr.source, 1)}"
        target = self.flat(expr.target, _UNARY + 1)
        return expr.op + target if expr.prefix else target + expr.op

    def _binary(self, expr: c.Binary) -> str:
        if expr.op == ",":
            return f"{self.flat(expr.left)}, {self.flat(expr.right, 1)}"
        level = _PRECEDENCE[expr.op]
        return f"{self.flat(expr.left, level, expr.op)} {expr.op} {self.flat(expr.right, level + 1, expr.op)}"

    def _conditional(self, expr: c.Conditional) -> str:
        return f"{self.flat(expr.test, 3)} ? {self.flat(expr.yes, 1)} : {self.flat(expr.no, 2)}"

    def _call(self, expr: c.Call) -> str:
        name = self.rename(expr.callee.name if expr.callee else expr.name)
        return f"{name}({', '.join(self.flat(argument, 1) for argument in expr.arguments)})"

    def _braces(self, expr: c.Braces) -> str:
        to = f"({self.type(expr.to)})" if expr.to else ""
        return f"{to}{{{', '.join(self.flat(item, 1) for item in expr.items)}}}"

    def type(self, text: str) -> str:
        """A type's text in the names of the output."""
        return c.WORD.sub(lambda match: self.rename(match.group()), text)

    # ---- statements

    def body(self, body: list[c.Stmt], depth: int) -> str:
        """Statements, each line with its line break."""
        return "".join(self._statement(stmt, depth) for stmt in body)

    def _statement(self, stmt: c.Stmt, depth: int) -> str:
        indent = "    " * depth
        head = "\n" if stmt.blank else ""
        head += "".join(self.comment(comment, indent) for comment in stmt.comments)
        trailing = self.words(stmt.trailing)
        tail = f" {trailing}\n" if trailing else "\n"
        code = f"{indent}{self._code(stmt, depth)}"
        if stmt.trailing and len(code.split("\n")[-1]) + len(tail) > WIDTH + 1:
            return f"{head}{self.comment(stmt.trailing, indent)}{code}\n"
        return f"{head}{code}{tail}"

    def _code(self, stmt: c.Stmt, depth: int, ahead: str = "") -> str:
        match stmt:
            case c.Declare():
                return broken(self.declaration(stmt) + ";", 4 * depth)
            case c.Do():
                return broken(self.flat(stmt.expr) + ";", 4 * depth)
            case c.Return(expr=expr):
                return broken(f"return {self.flat(expr)};" if expr else "return;", 4 * depth)
            case c.Jump():
                return stmt.word + ";"
            case c.If():
                return self._if(stmt, depth, ahead)
            case c.For():
                init = self.declaration(stmt.init) if stmt.init else ""
                parts = [init, *(self.flat(expr) if expr else "" for expr in (stmt.test, stmt.update))]
                return self._block(f"for ({'; '.join(parts) if any(parts) else ';;'}) {{", stmt.body, depth)
            case c.While(at_end=True):
                head = self._block("do {", stmt.body, depth)
                return head[:-1] + broken(f"}} while ({self.flat(stmt.test)});", 4 * depth)
            case _:
                return self._block(f"while ({self.flat(stmt.test)}) {{", stmt.body, depth)

    def _if(self, stmt: c.If, depth: int, ahead: str) -> str:
        """An if behind what is `ahead` of it: the else of the one before."""
        text = self._block(f"{ahead}if ({self.flat(stmt.test)}) {{", stmt.yes, depth)
        if len(stmt.no) == 1 and isinstance(stmt.no[0], c.If) and not stmt.no[0].comments:
            return text[:-1] + self._code(stmt.no[0], depth, "} else ")
        return text + " else " + self._block("{", stmt.no, depth) if stmt.no else text

    def _block(self, head: str, body: list[c.Stmt], depth: int) -> str:
        """A body behind its head, which ends with a brace."""
        return f"{broken(head, 4 * depth)}\n{self.body(body, depth + 1)}{'    ' * depth}}}"

    def declaration(self, stmt: c.Declare) -> str:
        """A declaration, without its semicolon."""
        typed = self.type(stmt.type)
        gap = "" if typed.endswith("*") or not stmt.name else " "
        head = f"{typed}{gap}{stmt.name}{self.type(stmt.suffix)}"
        return f"{head} = {self.flat(stmt.init, 1)}" if stmt.init else head

    # ---- comments and functions

    def words(self, text: str) -> str:
        """Text with comments, or that of a comment, in the names of the output."""
        if self.absent:
            text = _COMMENT.sub(lambda match: match[1] * bool(kept := self.present(match[2])) + kept, text)
        return re.sub(rf"{c.WORD.pattern}(?:\(\))?", lambda match: self.rename(match.group()), text)

    def present(self, comment: str) -> str:
        """A comment without the sentences and clauses on what the recipe lacks; empty if it has no others."""
        if not self.absent or not re.search(self.absent, " ".join(comment.replace("\n *", "\n").split())):
            return comment
        text = self.prose(comment_words(comment))
        return "\n".join(_filled_comment(text, "")) if text else ""

    def prose(self, text: str) -> str:
        """The sentences and clauses of a text that are not on what the recipe lacks."""
        if not self.absent or not re.search(self.absent, text):
            return text
        out = []
        for sentence in _SENTENCE.split(text):
            kept = "; ".join(part for part in _CLAUSE.split(sentence) if not re.search(self.absent, part))
            end = "." if kept and sentence.endswith(".") and not kept.endswith(".") else ""
            out.append(kept + end)
        return " ".join(filter(None, out))

    def comment(self, comment: str, indent: str) -> str:
        """A comment with its line break, moved to an indent; filled again if names made it too wide."""
        comment = self.present(comment)
        if not comment:
            return ""
        words = self.words(comment)
        lines = [f"{indent}{line}".rstrip() for line in words.split("\n")]
        if any(len(line) > WIDTH for line in lines) and not _DRAWING.search(comment):
            lines = _filled_comment(words, indent)
        return "".join(f"{line}\n" for line in lines)

    def signature(self, storage: str, function: c.Function, name: str, parameters: list[c.Declare]) -> str:
        """The head of a function definition, without its brace."""
        info = ", ".join(map(self.declaration, parameters)) or "void"
        head = self.declaration(c.Declare(function.type, self.rename(name), "", None))
        return broken(f"{self.words(storage)} {head}({info})".lstrip(), 0)


def _level(expr: c.Expr) -> int:
    match expr:
        case c.Binary():
            return _PRECEDENCE[expr.op]
        case c.Change(source=c.Expr()):
            return 1
        case c.Conditional():
            return 2
        case c.Unary() | c.Cast() | c.Change(prefix=True):
            return _UNARY
        case _:
            return _UNARY + 1


# ---- lines ----------------------------------------------------------------------------------------------------------


class _Words(NamedTuple):
    """Code as words outside of all brackets, and where the last brackets that hold something open and close."""

    words: list[str]
    opened: int
    closed: int

    @classmethod
    def of(cls, text: str) -> _Words:
        """The words of some code; `opened` is 0 if there are no brackets."""
        words, depth, opened, closed = [""], 0, 0, 0
        for at, sign in enumerate(text):
            if sign in "([{":
                opened = at + 1 if depth == 0 and at + 1 < len(text) else opened
                depth += 1
            elif sign in ")]}":
                depth -= 1
                closed = at if depth == 0 else closed
            if sign == " " and depth == 0:
                words.append("")
            else:
                words[-1] += sign
        return cls(words, opened, closed)

    @property
    def separated(self) -> list[int]:
        """The words that end with the loosest separator; none if there is no separator."""
        separator = next((end for end in ";," if any(word.endswith(end) for word in self.words[:-1])), None)
        return [at for at, word in enumerate(self.words) if word.endswith(separator)] if separator else []

    @property
    def head(self) -> str:
        """All up to the first assignment or return; empty if there is none."""
        ahead = next((at for at, word in enumerate(self.words) if word == "return" or word in _ASSIGNING), None)
        return " ".join(self.words[: ahead + 1]) + " " if ahead is not None else ""

    @property
    def operators(self) -> list[int]:
        """The words that are operators of the lowest precedence."""
        loosest = min((_PRECEDENCE[word] for word in self.words if word in _PRECEDENCE), default=None)
        return [at for at, word in enumerate(self.words) if word in _PRECEDENCE and _PRECEDENCE[word] == loosest]


def broken(text: str, column: int, room: int = 0) -> str:
    """Code that starts in a column, over several lines where it does not fit; `room` is kept free behind it.

    It is broken where it is loosest: behind a separator or an operator outside of all brackets, else in the last of
    these. What goes on begins in the same column.
    """
    if column + len(text) + room <= WIDTH:
        return text
    code = _Words.of(text)
    words, ends = code.words, code.separated
    if not ends and (head := code.head):
        return head + broken(text[len(head) :], column + len(head), room)
    if not ends and "?" in words:
        return _choice(words, column, room)
    ends = ends or code.operators
    if ends:
        pieces = [words[a + 1 : b + 1] for a, b in pairwise([-1, *ends, len(words) - 1]) if a < b]
        return _filled([" ".join(piece) for piece in pieces], column, room)
    if not code.opened:
        return text
    inner = broken(text[code.opened : code.closed], column + code.opened, room + len(text) - code.closed)
    return text[: code.opened] + inner + text[code.closed :]


def _choice(words: list[str], column: int, room: int) -> str:
    """A choice of two values, each on a line of its own."""
    requested, other = words.index("?"), words.index(":")
    test, yes, no = (" ".join(part) for part in (words[:requested], words[requested + 1 : other], words[other + 1 :]))
    test = broken(test, column)
    beside = "\n" not in test and column + len(test) + 3 + len(yes) <= WIDTH
    at = column + len(test) + 1 if beside else column + 4
    gap = " " if beside else "\n" + " " * at
    return f"{test}{gap}? {broken(yes, at + 2)}\n{' ' * at}: {broken(no, at + 2, room)}"


def _filled(pieces: list[str], column: int, room: int) -> str:
    """Pieces, as many on a line as fit but one of a for loop's head, all lines starting in the same column."""
    text, at = "", column
    for index, piece in enumerate(pieces):
        after = room if index == len(pieces) - 1 else 0
        if index and (text.endswith(";") or at + 1 + len(piece) + after > WIDTH):
            text, at = f"{text}\n{' ' * column}", column
        elif index:
            text, at = text + " ", at + 1
        last = piece.rpartition(" ")
        code = last[0] if last[2] in _PRECEDENCE else piece.rstrip(",;")
        end = piece[len(code) :]
        text += broken(code, at, after + len(end)) + end
        line = text.rpartition("\n")
        at = len(line[2]) + column * (not line[0])
    return text


# ---- comments -------------------------------------------------------------------------------------------------------


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


def without_sentences_on(gone: set[str], comment: str) -> str:
    """A function's comment without the sentences, behind the first, that name parameters which are gone."""
    first, *others = re.split(r"(?<=\.)\s+(?:\* )?(?=[A-Z`])", comment.removesuffix("*/").rstrip())
    kept = [other for other in others if not gone & set(re.findall(r"`(\w+)`", other))]
    if len(kept) == len(others) or _DRAWING.search(comment):
        return comment
    return "\n".join(_filled_comment(" ".join([first, *kept, "*/"]), ""))


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
