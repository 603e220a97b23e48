"""Rewrites the core for one policy, at source level.

The core (csrc/) is one text for all policies. `specialise` evaluates everything in it that the policy decides and
writes what is left: C that holds only what one recipe uses. CONTRIBUTING.md has the grammar of the core.

What is left is a tree, not the text with some of its ranges edited. Of `uint32_t r = 0; if (kind == KIND) { r =
take(q, n); }` folding leaves `uint32_t r = 0; r = take(n);`. That this is one declaration, `const` where nothing else
changes r, follows from types, values and what is left of `take`. So passes read one another's results, until nothing
changes; and names of other lengths break most lines anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache

from heapwright.generate import syntax as c
from heapwright.generate.explicit import write_out
from heapwright.generate.hooks import without_hooks
from heapwright.generate.inline import inline
from heapwright.generate.left import Specialisation
from heapwright.generate.macros import HEAT, HEAT_DEFINITIONS, heat, written_out
from heapwright.generate.memo import Memo
from heapwright.generate.naming import Names
from heapwright.generate.parse import parse
from heapwright.generate.printer import (
    Printer,
    collapse_blank_lines,
    comment_words,
    commented_lines,
    without_sentences_on,
)
from heapwright.generate.program import PolicyValues, Program
from heapwright.generate.syntax import GrammarError, replace
from heapwright.generate.together import reachable, settle
from heapwright.generate.whole import fold_all

__all__ = ["GrammarError", "Parting", "PolicyValues", "Specialised", "specialise", "specialise_parts"]

Sources = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Parting:
    """How specialised code becomes a header and a source file.

    What the file `header` of the sources declares becomes the interface: prototypes of entries, with their comments,
    and the types and macros that are used. `public` gives entries the names of other functions of the core, which lose
    theirs: so what goes around a function can stand in for it. The entries in `apart` go with what they alone call.
    With `finish` the text is as one writes it for one recipe: entries first, short helpers put in place, conditions
    compared; else it stays as the source has it.
    """

    header: str = ""
    public: Mapping[str, str] = field(default_factory=dict)
    apart: Sequence[str] = ()
    finish: bool = False


@dataclass(frozen=True)
class Specialised:
    """Specialised code in parts, each empty or ending with a line break.

    `includes`: system headers, as `<stdint.h>`; `interface`: what the public header declares, entries included;
    `types`: the other structs, enums and typedefs; `constants`: the policy's numbers, tables, macros; `functions`: the
    entries, then what they call; `apart`: likewise those that were wanted apart, and what they alone call.
    """

    includes: tuple[str, ...]
    interface: str
    types: str
    constants: str
    functions: str
    apart: str

    @property
    def text(self) -> str:
        """Everything in one C file."""
        includes = "".join(f"#include {path}\n" for path in self.includes)
        parts = [includes, self.interface, self.types, self.constants, self.functions, self.apart]
        parts = [part for part in parts if part]
        return collapse_blank_lines("\n".join(parts))


def specialise(
    sources: Sources, values: PolicyValues, entries: Sequence[str], prefix: str, defines: Iterable[str] = frozenset()
) -> str:
    """The core rewritten for one policy, as one C file.

    `sources`: (file name, text) in the order of inclusion; `values`: struct hw_policy as nested dicts and lists, arrays
    holding exactly the elements in use; `entries`: the public functions wanted, whose policy parameter goes;
    `prefix`: what hw_ becomes (HW_: in upper case); `defines`: HW_ names taken as defined. Raises GrammarError for a
    source outside the grammar in CONTRIBUTING.md, HeapwrightError for an unknown entry or a policy without a value.
    """
    return specialise_parts(sources, values, entries, prefix, defines).text


def specialise_parts(
    sources: Sources,
    values: PolicyValues,
    entries: Sequence[str],
    prefix: str,
    defines: Iterable[str] = frozenset(),
    parting: Parting = Parting(),
) -> Specialised:
    """Like `specialise`, in the parts that a header and a source file are made of."""
    program, memo = _program(tuple(sources), frozenset(defines))
    with memo.alone():
        folder, wanted = fold_all(program, memo, values, entries)
        names = Names(program, folder, prefix)
        names.merge_equal(wanted)
        live = inline(wanted, program) if parting.finish else settle(wanted, program)
        if parting.finish:
            write_out(live, program)
        names.assign(live, parting.public)
        return _Writer(program, names, live, wanted, parting.finish).parts(parting.header, parting.apart)


@lru_cache(maxsize=8)
def _program(sources: tuple[tuple[str, str], ...], defines: frozenset[str]) -> tuple[Program, Memo]:
    # A file that does not name a define is the same with and without it: it is read once for both.
    parsed = [parse(file, text, frozenset(n for n in defines if n in text)) for file, text in written_out(sources)]
    for name, macro in heat(sources).items():
        for source in parsed:
            for item in source.items:
                if isinstance(item, c.Function) and item.name == name:
                    item.storage = macro
    return Program(without_hooks(parsed)), Memo()


class _Writer:
    """Puts the parts in the order of the source."""

    def __init__(
        self,
        program: Program,
        names: Names,
        live: list[Specialisation],
        entries: list[Specialisation],
        entries_first: bool,
    ) -> None:
        self.program = program
        self.names = names
        self.live = live
        self.entries = entries
        self.entries_first = entries_first
        self.printer = Printer(names.rename, names.constant)
        self.by_function: dict[str, list[Specialisation]] = {}
        for target in sorted(live, key=lambda target: target.name):
            self.by_function.setdefault(target.function.name, []).append(target)
        self.used = self.used_words()

    def parts(self, header: str, apart: Sequence[str]) -> Specialised:
        """All parts; the items of the file `header` make the interface, the entries `apart` have one of their own."""
        kept = [kept for source in self.program.sources for kept in self.kept(source.items, self.used)]
        public = [item for item in kept if header and item.file == header]
        inner = _without_repeats(public, [item for item in kept if item not in public])
        macros = [item for item in inner if isinstance(item, c.Macro)]
        guarded = [
            item
            for item in inner
            if isinstance(item, c.GuardedItems)
            and any(isinstance(within, c.Function) for _, items in item.branches for within in items)
        ]
        types = [item for item in inner if item not in guarded and item not in macros]
        constants = [self.names.definitions(self.printer), self.items(macros)]
        hot = any(target.function.storage in HEAT for target in self.live)
        heat_first = [self.printer.words(HEAT_DEFINITIONS)] if hot else []
        return Specialised(
            tuple(sorted({path for source in self.program.sources for path in source.includes})),
            self.interface(header, public) if header else "",
            "\n".join([*heat_first, self.items(types).lstrip("\n")]),
            "\n".join(part.lstrip("\n") for part in constants if part),
            *self.functions(guarded, apart),
        )

    def interface(self, header: str, public: list[c.Item]) -> str:
        """What the header declares, in its order."""
        out = ""
        group: list[c.Item] = []
        entries = {entry.name: entry for entry in self.entries}
        for source in self.program.sources:
            for item in source.items if source.file == header else []:
                group += [other for other in public if other.line == item.line]
                if isinstance(item, c.Function) and item.name in entries:
                    out += self.items(group) + "\n" + self.prototype(entries[item.name], item)
                    group = []
        return collapse_blank_lines(out + self.items(group))

    # ---- what is used

    def used_words(self) -> set[str]:
        """Every identifier of the functions left, and of what these need in turn."""
        words = {word for target in self.live for word in target.left.once("words", _words_left, target)}
        while True:
            kept = [item for source in self.program.sources for item in self.kept(source.items, words)]
            more = words.union(*map(_words_of, kept))
            if more == words:
                return words
            words = more

    def kept(self, items: list[c.Item], used: set[str], guarded: bool = False) -> list[c.Item]:
        """The items at file level that are used; of functions those that are `guarded` by a compiler's #if."""
        out: list[c.Item] = []
        blank = False
        for item in items:
            blank |= item.blank
            if left := self.used_of(item, used, guarded):
                out.append(replace(left, blank=blank))
                blank = False
        return out

    def used_of(self, item: c.Item, used: set[str], guarded: bool) -> c.Item | None:
        """An item without what is not used, or None."""
        match item:
            case c.GuardedItems():
                branches = [(head, self.kept(inner, used, guarded=True)) for head, inner in item.branches]
                return replace(item, branches=branches) if any(inner for _, inner in branches) else None
            case c.Enum():
                return item if used & {item.name, *(member.name for member in item.members)} else None
            case c.Function():
                return item if guarded and item.name in used else None
            case c.Struct() | c.Macro() | c.Global():
                dropped = "struct " + item.name in self.program.policy_structs or item.name in HEAT
                return item if item.name in used and not dropped else None
            case _:
                return None

    # ---- items

    def items(self, items: Sequence[c.Item]) -> str:
        """Items in a row; the comments behind neighbouring macros are aligned."""
        out = ""
        rows: list[tuple[str, str]] = []
        for item in items:
            macro = isinstance(item, c.Macro)
            if rows and (item.blank or item.comments or not macro):
                out, rows = out + commented_lines(rows), []
            if isinstance(item, c.Macro):
                out += "\n" if item.blank else ""
                out += "".join(self.printer.comment(comment, "") for comment in item.comments)
                rows.append((self.printer.words(item.text), comment_words(self.printer.words(item.trailing))))
            else:
                out += self.item(item)
        return out + commented_lines(rows)

    def item(self, item: c.Item) -> str:
        head = "\n" if item.blank else ""
        head += "".join(self.printer.comment(comment, "") for comment in item.comments)
        tail = f" {self.printer.words(item.trailing)}\n" if item.trailing else "\n"
        match item:
            case c.GuardedItems():
                branches = (f"{line}\n{''.join(map(self.item, items)).lstrip()}" for line, items in item.branches)
                return head + "".join(branches) + "#endif" + tail
            case c.Enum():
                return head + self.enum(item) + tail
            case c.Function():
                first = self.printer.signature(item.storage, item, item.name, item.parameters)
                return head + first + self.braced(item, item.body or []) + tail
            case c.Struct() | c.Macro() | c.Global():
                return head + self.printer.words(item.text) + tail
            case _:
                raise AssertionError(type(item).__name__)

    def braced(self, function: c.Function, body: list[c.Stmt], ahead: str = "") -> str:
        """A body in braces, the first of which stands where the source has it."""
        return f"{' ' if function.attached else chr(10)}{{\n{ahead}{self.printer.body(body, 1)}}}"

    def enum(self, item: c.Enum) -> str:
        """An enum with the enumerators that are used, their values as they were."""
        rows = []
        expected: int | None = 0
        for member in item.members:
            value = self.program.enumerators[member.name]
            if member.name in self.used or item.name in self.used:
                text = self.printer.words(member.name)
                initial = member.text or ("" if value == expected else str(value))
                rows.append((text + (f" = {self.printer.words(initial)}" if initial else ""), member))
                expected = value + 1
        tag = f"enum {self.printer.words(item.name)} " if item.name else "enum "
        if item.flat:
            flat = ", ".join(text + (f" {self.printer.words(m.trailing)}" if m.trailing else "") for text, m in rows)
            return f"{tag}{{ {flat} }};"
        commas = [","] * (len(rows) - 1) + [""]
        lines = [
            (f"    {text}{comma}", comment_words(self.printer.words(member.trailing)))
            for (text, member), comma in zip(rows, commas, strict=True)
        ]
        return f"{tag}{{\n{commented_lines(lines)}}};"

    # ---- functions

    def definition(self, target: Specialisation) -> str:
        """A specialised function with its comments."""
        words = self.names.prefix, target.name, target.entry, self.names.words(target)
        return target.left.text("definition", words, lambda: self.comments(target) + self.code(target))

    def comments(self, target: Specialisation) -> str:
        gone = {p.name for p in target.function.parameters} - {p.name for p in target.parameters}
        told = (without_sentences_on(gone, comment) for comment in target.function.comments)
        return "".join(self.printer.comment(comment, "") for comment in told)

    def code(self, target: Specialisation) -> str:
        function = _typed(target)
        storage = function.storage.replace("static inline", "").strip() if target.entry else function.storage
        head = self.printer.signature(storage, function, target.name, target.parameters)
        names = [target.parameters[index].name for index in target.left.unused] if target.entry else []
        unused = "".join(f"    (void){name};\n" for name in names)
        return f"{head}{self.braced(function, target.body, unused)}\n"

    def functions(self, guarded: list[c.GuardedItems], apart: Sequence[str]) -> tuple[str, str]:
        """All functions, in two parts: without and with the entries `apart` and what they alone call.

        In each the entries come first, with prototypes of what they call, then the others in the order of the source;
        or all are in that order.
        """
        near = set(reachable([entry for entry in self.entries if entry.function.name not in apart]))
        ahead = self.entries if self.entries_first else []
        inner = [
            target
            for source in self.program.sources
            for item in source.items
            if isinstance(item, c.Function)
            for target in self.ordered(item)
            if target not in ahead
        ]
        known: set[str] = set()
        guards = "".join(map(self.item, guarded))
        here, there = (
            self.in_order(
                [t for t in ahead if (t in near) == wanted], [t for t in inner if (t in near) == wanted], known
            )
            for wanted in (True, False)
        )
        return collapse_blank_lines(guards + here), collapse_blank_lines(there)

    def in_order(self, entries: list[Specialisation], others: list[Specialisation], known: set[str]) -> str:
        """Entries, then other functions, and prototypes ahead of what wants them. `known`: what has been declared."""
        out = "".join(line for entry in entries for line in self.early(entry, known))
        for target in [*entries, *others]:
            if target not in entries:
                out += "".join(f"\n{line}" for line in self.early(target, known))
            known.add(target.name)
            out += "\n" + self.definition(target)
        return out

    def ordered(self, item: c.Function) -> list[Specialisation]:
        """The specialisations of one function, those that others of them call first."""
        waiting = list(self.by_function.get(item.name, [])) if item.body is not None else []
        out: list[Specialisation] = []
        while waiting:
            free = [t for t in waiting if not any(callee in waiting and callee is not t for callee in t.left.callees)]
            out += free or waiting
            waiting = [target for target in waiting if target not in out]
        return out

    def early(self, target: Specialisation, known: set[str]) -> list[str]:
        """Prototypes of functions that `target` calls before their definition."""
        out = []
        for callee in target.left.callees:
            if callee.name not in known and callee is not target and not callee.entry:
                known.add(callee.name)
                head = self.printer.signature(callee.function.storage, _typed(callee), callee.name, callee.parameters)
                out.append(f"{head};\n")
        return out

    def prototype(self, entry: Specialisation, declared: c.Function) -> str:
        """The declaration of an entry, with the comment and the parameter names of the one in the source."""
        head = "".join(self.printer.comment(comment, "") for comment in declared.comments)
        names = dict(zip((p.name for p in entry.function.parameters), declared.parameters, strict=True))
        parameters = [names[parameter.name] for parameter in entry.parameters]
        return head + self.printer.signature("", entry.function, entry.name, parameters) + ";\n"


def _typed(target: Specialisation) -> c.Function:
    """The function with the type that it is written with."""
    return replace(target.function, type="bool") if target.boolean else target.function


def _without_repeats(earlier: list[c.Item], items: list[c.Item]) -> list[c.Item]:
    """The items without declarations of structs that are declared before."""
    seen = {item.name for item in earlier if isinstance(item, c.Struct)}
    out = []
    for item in items:
        if isinstance(item, c.Struct) and item.fields is None and item.name in seen:
            continue
        seen |= {item.name} if isinstance(item, c.Struct) else set()
        out.append(item)
    return out


def _words_of(item: c.Item) -> Set[str]:
    """Identifiers that an item at file level mentions."""
    match item:
        case c.Struct() | c.Macro() | c.Global():
            return _words(item.text)
        case c.Enum():
            return {word for member in item.members for word in _words(member.text)}
        case c.Function():
            return _words_of_function(item, item.body or [], item.parameters)
        case c.GuardedItems():
            return {word for _, items in item.branches for inner in items for word in _words_of(inner)}
        case _:
            return set()


def _words_left(target: Specialisation) -> frozenset[str]:
    return frozenset(_words_of_function(target.function, target.body, target.parameters))


def _words_of_function(function: c.Function, body: list[c.Stmt], parameters: Sequence[c.Parameter]) -> set[str]:
    return _words_in(body) | set(c.WORD.findall(" ".join((function.type, *(p.type for p in parameters)))))


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    return frozenset(c.WORD.findall(text))


def _words_in(body: list[c.Stmt]) -> set[str]:
    """Identifiers that statements mention, but for members and specialised functions."""
    declared = [f"{stmt.type} {stmt.suffix}" for stmt in c.all_statements(body) if isinstance(stmt, c.Declare)]
    parts = [expr for expr in c.all_expressions(body) if not isinstance(expr, c.Member)]
    texts = [getattr(expr, name, "") for expr in parts for name in ("name", "text", "to")]
    return set(c.WORD.findall(" ".join(declared + texts)))
