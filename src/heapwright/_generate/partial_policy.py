"""Copies of C in which some members of structs are numbers: a policy of which only a part is known.

`specialise` folds a whole policy and drops what is dead. Here the text stays as it is but for reads of members that are
known, and the compiler folds. Declarations show which struct a member is of, not the names of variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tree_sitter import Node

from heapwright._generate.parse import child_of, text_of, tree_of
from heapwright._generate.pasting import written_out
from heapwright._generate.syntax import GrammarError

_ATTRIBUTE_MACRO = re.compile(r"^#define (\w+) .*__attribute__", re.MULTILINE)

PartialResult = Mapping[str, Mapping[str, str]]
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

    def becomes(self, known: PartialResult, alternatives: Alternatives, text: bytes) -> bytes | None:
        """What stands in its place; None where that is not known."""
        if not self.op:
            constant = known.get(self.struct, {}).get(self.member)
            return None if constant is None else constant.encode()
        possible = alternatives.get((self.struct, self.member), ())
        if possible and self.other not in possible:
            return b"%d" % (self.op == "!=")
        if len(possible) == 2 and self.other == possible[1]:
            # the first is the one that all comparisons are with, so that the compiler sees one condition
            turned = "!=" if self.op == "==" else "=="
            return text[self.start : self.compared] + f" {turned} {possible[0]}".encode()
        return None


class _File(NamedTuple):
    """A text, and what it reads in its order, each before what is read within it."""

    name: str
    text: bytes
    reads: list[_Read]

    def with_known(self, known: PartialResult, alternatives: Alternatives) -> str:
        """The text with known members written out."""
        out, at = b"", 0
        for read in self.reads:
            value = read.becomes(known, alternatives, self.text) if read.start >= at else None
            if value is not None:
                out, at = out + self.text[at : read.start] + value, read.end
        return (out + self.text[at:]).decode()


class Sources:
    """C files that are read together, (name, text) pairs: those of the core, and those around it.

    Raises GrammarError for text that cannot be read as C, or that does not show which struct a member is of.
    """

    def __init__(self, core: Sequence[tuple[str, str]], around: Sequence[tuple[str, str]]) -> None:
        self.structs: dict[str, dict[str, str]] = {}
        self.functions: dict[str, str] = {}
        sources = [*written_out(core), *around]
        macros = {name for _, text in sources for name in _ATTRIBUTE_MACRO.findall(text)}
        roots = [tree_of(name, text, macros) for name, text in sources]
        for node in (node for root in roots for node in _all(root)):
            if node.type == "struct_specifier" and node.child_by_field_name("body"):
                self.structs[_named(node)] = dict(self._members(node))
            elif node.type in ("function_definition", "declaration"):
                declarator = node.child_by_field_name("declarator")
                if declarator and any(inner.type == "function_declarator" for inner in _all(declarator)):
                    self.functions[_declared(declarator)] = _struct_of(child_of(node, "type"))
        self.files = [
            _File(name, text.encode(), list(_Reader(self, name).within(root)))
            for (name, text), root in zip(sources, roots, strict=True)
        ]

    def _members(self, struct: Node) -> Iterator[tuple[str, str]]:
        """The members of a struct and the structs that they are, or point to; "" for none."""
        for member in child_of(struct, "body").named_children:
            kind = member.child_by_field_name("type")
            declarators = member.children_by_field_name("declarator")
            if kind and not declarators and kind.type in ("union_specifier", "struct_specifier"):
                yield from self._members(kind)
            for declarator in declarators if kind else ():
                yield _declared(declarator), _struct_of(child_of(member, "type"))

    def with_known(self, known: PartialResult, alternatives: Alternatives) -> dict[str, str]:
        """The text of each file, by its name, with what is known in place of what is read.

        Raises GrammarError for a member that its struct does not have.
        """
        for struct, member in [*((struct, item) for struct, of in known.items() for item in of), *alternatives]:
            if member not in self.structs.get(struct, ()):
                raise GrammarError("", 0, f"struct {struct} has no member {member}")
        return {file.name: file.with_known(known, alternatives) for file in self.files}


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
                struct = _struct_of(child_of(node, "type"))
                for declarator in node.children_by_field_name("declarator"):
                    self.scopes[-1][_declared(declarator)] = struct
            case "binary_expression":
                yield from self.compared(node)
            case "field_expression":
                struct, name = self.member(node)
                if struct and not _is_place(node):
                    yield _Read(node.start_byte, node.end_byte, struct, name)
            case _:
                pass
        for child in node.named_children:
            yield from self.within(child)
        if opens:
            self.scopes.pop()

    def compared(self, node: Node) -> Iterator[_Read]:
        """The comparison of a member with an enumerator that a node is, if it is one."""
        left, right, op = (child_of(node, name) for name in ("left", "right", "operator"))
        enumerator = right.type == "identifier" and text_of(right).isupper()
        if left.type == "field_expression" and enumerator and text_of(op) in ("==", "!="):
            yield _Read(node.start_byte, node.end_byte, *self.member(left), text_of(op), text_of(right), left.end_byte)

    def member(self, node: Node) -> tuple[str, str]:
        """The struct that a member is of, and its name."""
        name, struct = text_of(child_of(node, "field")), self.struct(child_of(node, "argument"))
        if struct is None:
            raise GrammarError(self.file, node.start_point[0] + 1, f"of what {name} is a member is not known")
        return struct, name

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
    if above is not None and above.type == "assignment_expression":
        return child_of(above, "left").id == node.id
    address = above is not None and above.type == "pointer_expression" and text_of(above).startswith("&")
    return address or (above is not None and above.type == "update_expression")


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
