"""Copies of C in which some members of structs are numbers: a policy of which only a part is known.

`specialise` folds a whole policy and drops what is dead. Here the text stays as it is but for reads of members that are
known, and the compiler folds. Which struct a member is of is told by the declarations, whatever variables are called.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tree_sitter import Node, Parser

from heapwright.generate.macros import written_out
from heapwright.generate.parse import LANGUAGE, child_of, first_error, text_of
from heapwright.generate.syntax import GrammarError

_ATTRIBUTE_MACRO = re.compile(r"^#define (\w+) .*__attribute__", re.MULTILINE)

Known = Mapping[str, Mapping[str, str]]
"""By the names of structs and of their members what these are, as C text."""

Alternatives = Mapping[tuple[str, str], Sequence[str]]
"""By struct and member the only enumerators that the member can be."""


class _Read(NamedTuple):
    """A member that is read, at bytes of the text, or compared with an enumerator (`other`, by `op`)."""

    start: int
    end: int
    struct: str
    member: str
    op: str = ""
    other: str = ""
    compared: int = 0  # where the member ends that is compared


class _File(NamedTuple):
    """A text, and what it reads in its order, each before what is read within it."""

    name: str
    text: bytes
    reads: list[_Read]


class Sources:
    """C files that are read together, (name, text) pairs: those of the core, and those around it.

    Raises GrammarError for text that cannot be read as C, or where it does not tell what a member is one of.
    """

    def __init__(self, core: Sequence[tuple[str, str]], around: Sequence[tuple[str, str]]) -> None:
        self.structs: dict[str, dict[str, str]] = {}
        self.functions: dict[str, str] = {}
        sources = [*written_out(core), *around]
        extensions = _extensions(text for _, text in sources)
        roots = [_parsed(name, text, extensions) for name, text in sources]
        for root in roots:
            for node in _all(root):
                if node.type == "struct_specifier" and node.child_by_field_name("body"):
                    self.structs[_named(node)] = dict(self._members(node))
                elif node.type in ("function_definition", "declaration"):
                    self._declare_function(node)
        self.files = [
            _File(name, text.encode(), list(_Reader(self, name).within(root)))
            for (name, text), root in zip(sources, roots, strict=True)
        ]

    def _members(self, struct: Node) -> Iterator[tuple[str, str]]:
        """The members of a struct and the structs that they are, or point to; "" for none."""
        for member in child_of(struct, "body").named_children:
            if member.type != "field_declaration":
                continue
            kind = child_of(member, "type")
            declarators = member.children_by_field_name("declarator")
            for declarator in declarators:
                yield _declared(declarator), _struct_of(kind)
            if not declarators and kind.type in ("union_specifier", "struct_specifier"):
                yield from self._members(kind)

    def _declare_function(self, node: Node) -> None:
        declarator = node.child_by_field_name("declarator")
        if declarator and any(inner.type == "function_declarator" for inner in _all(declarator)):
            self.functions[_declared(declarator)] = _struct_of(child_of(node, "type"))

    def with_known(self, known: Known, alternatives: Alternatives) -> dict[str, str]:
        """The text of each file, by its name, with what is known in place of what is read.

        Raises GrammarError for a member that its struct does not have.
        """
        for struct, members in [*known.items(), *((struct, [member]) for struct, member in alternatives)]:
            for member in members:
                if member not in self.structs.get(struct, ()):
                    raise GrammarError("", 0, f"struct {struct} has no member {member}")
        return {file.name: _replaced(file, known, alternatives) for file in self.files}


def _extensions(texts: Iterable[str]) -> re.Pattern[str]:
    """Definitions of macros, and attributes elsewhere with the macros that stand for them.

    The parser does not know attributes behind a storage class, nor a definition with nothing but blanks.
    """
    names = {name for text in texts for name in _ATTRIBUTE_MACRO.findall(text)}
    attributes = [r"__attribute__\(\(\w+(?:\(.*?\))?\)\)", *(rf"\b{name}\b" for name in sorted(names))]
    return re.compile("|".join([r"^#define .*$", *attributes]), re.MULTILINE)


def _parsed(name: str, text: str, extensions: re.Pattern[str]) -> Node:
    plain = extensions.sub(lambda found: found[0] if found[0][0] == "#" else " " * len(found[0]), text)
    root = Parser(LANGUAGE).parse(plain.encode()).root_node
    if root.has_error:
        raise GrammarError(name, first_error(root).start_point[0] + 1, "this cannot be read as C")
    return root


def _replaced(file: _File, known: Known, alternatives: Alternatives) -> str:
    """The text of a file with known members written out."""
    out = b""
    at = 0
    for read in file.reads:
        value = _value(read, known, alternatives, file.text) if read.start >= at else None
        if value is not None:
            out += file.text[at : read.start] + value
            at = read.end
    return (out + file.text[at:]).decode()


def _value(read: _Read, known: Known, alternatives: Alternatives, text: bytes) -> bytes | None:
    """What stands in place of what is read; None where that is not known."""
    if not read.op:
        constant = known.get(read.struct, {}).get(read.member)
        return None if constant is None else constant.encode()
    possible = alternatives.get((read.struct, read.member), ())
    if possible and read.other not in possible:
        return b"%d" % (read.op == "!=")
    if len(possible) == 2 and read.other == possible[1]:
        # the first is the one that all comparisons are with, so that the compiler sees one condition
        turned = "!=" if read.op == "==" else "=="
        return text[read.start : read.compared] + f" {turned} {possible[0]}".encode()
    return None


_LIKE = {
    "subscript_expression": "argument",
    "pointer_expression": "argument",
    "update_expression": "argument",
    "conditional_expression": "alternative",
    "binary_expression": "left",
}
"""Expressions that are of the struct that one of their operands is of, or point to it."""


class _Reader:
    """Finds the members that one file reads, with the structs that they are of."""

    def __init__(self, sources: Sources, file: str) -> None:
        self.sources = sources
        self.file = file
        self.scopes: list[dict[str, str]] = [{}]

    def within(self, node: Node) -> Iterator[_Read]:
        """What is read inside a node; declarations on the way count from there on, up to the end of their block."""
        opens = node.type in ("function_definition", "compound_statement", "for_statement")
        if opens:
            self.scopes.append({})
        match node.type:
            case "parameter_declaration" | "declaration":
                self.declare(node)
            case "binary_expression":
                yield from self.comparison(node)
            case "field_expression":
                yield from self.member(node)
            case _:
                pass
        for child in node.named_children:
            yield from self.within(child)
        if opens:
            self.scopes.pop()

    def declare(self, node: Node) -> None:
        struct = _struct_of(child_of(node, "type"))
        for declarator in node.children_by_field_name("declarator"):
            self.scopes[-1][_declared(declarator)] = struct

    def member(self, node: Node) -> Iterator[_Read]:
        argument, name = child_of(node, "argument"), text_of(child_of(node, "field"))
        struct = self.struct(argument)
        if struct is None:
            raise GrammarError(self.file, node.start_point[0] + 1, f"of what {name} is a member is not known")
        if struct and not _is_place(node):
            yield _Read(node.start_byte, node.end_byte, struct, name)

    def comparison(self, node: Node) -> Iterator[_Read]:
        """A comparison of a member with a name in upper case."""
        left, right, op = (child_of(node, name) for name in ("left", "right", "operator"))
        enumerator = right.type == "identifier" and text_of(right).isupper()
        if left.type == "field_expression" and enumerator and text_of(op) in ("==", "!="):
            name, struct = text_of(child_of(left, "field")), self.struct(child_of(left, "argument"))
            yield _Read(node.start_byte, node.end_byte, struct or "", name, text_of(op), text_of(right), left.end_byte)

    def struct(self, node: Node) -> str | None:
        """The struct that an expression is, or points to; "" for one that is none; None where that is not known."""
        match node.type:
            case "identifier":
                name = text_of(node)
                return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)
            case "field_expression":
                struct = self.struct(child_of(node, "argument"))
                return self.sources.structs.get(struct or "", {}).get(text_of(child_of(node, "field")))
            case "call_expression":
                return self.sources.functions.get(text_of(child_of(node, "function")))
            case kind if kind in _LIKE:
                return self.struct(child_of(node, _LIKE[kind]))
            case "parenthesized_expression":
                return self.struct(node.named_children[0])
            case "cast_expression":
                return _struct_of(child_of(child_of(node, "type"), "type"))
            case _:
                return None


def _is_place(node: Node) -> bool:
    """Whether a member is written, or has its address taken."""
    above = node.parent
    if above is None:
        return False
    if above.type == "assignment_expression":
        return child_of(above, "left").id == node.id
    return above.type == "update_expression" or (above.type == "pointer_expression" and text_of(above).startswith("&"))


def _struct_of(kind: Node) -> str:
    """The struct that a type names; "" for any other type."""
    return _named(kind) if kind.type == "struct_specifier" else ""


def _named(node: Node) -> str:
    name = node.child_by_field_name("name")
    return text_of(name) if name else ""


def _declared(declarator: Node) -> str:
    """The name that a declarator declares; "" where it declares none."""
    return next((text_of(node) for node in _all(declarator) if node.type in ("identifier", "field_identifier")), "")


def _all(node: Node) -> Iterator[Node]:
    yield node
    for child in node.named_children:
        yield from _all(child)
