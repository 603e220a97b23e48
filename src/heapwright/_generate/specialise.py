"""Rewrites the core for one policy, at source level.

The core (csrc/) is one text for all policies. `specialise` evaluates everything in it that the policy decides and
writes what is left: C that holds only what one recipe uses. docs/developing/core-grammar.md has the grammar.

What is left is a tree, not the text with some of its ranges edited. Of `uint32_t r = 0; if (kind == KIND) { r =
take(q, n); }` folding leaves `uint32_t r = 0; r = take(n);`. That this is one declaration, `const` where nothing else
changes r, follows from types, values and what is left of `take`. So passes read one another's results, until nothing
changes. Only lines are text: `printer.broken` breaks them where names of other lengths made them too wide.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache

from heapwright._generate import syntax as c
from heapwright._generate.core import Sources, parsed
from heapwright._generate.fold import fold_all
from heapwright._generate.inline import inline, reachable, settle, write_out
from heapwright._generate.naming import Names
from heapwright._generate.printer import (
    Printer,
    collapse_blank_lines,
    comment_words,
    commented_lines,
    without_sentences_on,
)
from heapwright._generate.program import PolicyValues, Program
from heapwright._generate.residual import Memo, Specialisation
from heapwright._generate.syntax import GrammarError

__all__ = ["GrammarError", "Parting", "PolicyValues", "Specialised", "specialise"]

FIRST = ("arena.h", "arithmetic.h")
"""The files whose functions all others use."""
HEAT = {
    "HW_HOT": ("What a call does as a rule", "static inline", "inline __attribute__((__always_inline__))"),
    "HW_COLD": ("What a call does rarely", "static", "__attribute__((__noinline__))"),
}
"""Macros for storage that generated code defines itself: what they mark, in C, and what compilers add."""


@dataclass(frozen=True)
class Parting:
    """How specialised code becomes a header and a source file.

    What the file `header` of the sources declares becomes the interface: prototypes of entries, with their comments,
    and the types and macros that are used. `public` gives entries the names of other functions of the core, which lose
    theirs: so what goes around a function can replace it. The entries in `apart` go with what they alone call.
    `absent` matches words for what the recipe lacks, of which no comment speaks.
    With `finish` the text is as one writes it for one recipe: entries first, short helpers put in place, conditions
    compared; else it stays as the source has it.
    """

    header: str = ""
    public: Mapping[str, str] = field(default_factory=dict)
    apart: Sequence[str] = ()
    finish: bool = False
    absent: str = ""


@dataclass(frozen=True)
class Specialised:
    """Specialised code in parts, each empty or ending with a line break.

    `includes`: system headers, as `<stdint.h>`; `interface`: what the public header declares, entries included;
    `types`: the other structs, enums and typedefs; `constants`: the policy's numbers, tables, macros; `functions`: the
    entries, then what they call; `apart`: the same of those that were wanted apart, and what they alone call.
    `addresses`: names of addresses, their values, and what lies there; of finished text alone, else in `constants`.
    """

    includes: tuple[str, ...]
    interface: str
    types: str
    constants: str
    functions: str
    apart: str
    addresses: tuple[tuple[str, int, str], ...] = ()

    @property
    def text(self) -> str:
        """Everything in one C file."""
        includes = "".join(f"#include {path}\n" for path in self.includes)
        addresses = "".join(f"#define {name} UINT32_C({value})\n" for name, value, _ in self.addresses)
        parts = [includes, self.interface, self.types, addresses, self.constants, self.functions, self.apart]
        parts = [part for part in parts if part]
        return collapse_blank_lines("\n".join(parts))


def specialise(
    sources: Sources,
    values: PolicyValues,
    entries: Sequence[str],
    prefix: str,
    defines: Iterable[str] = frozenset(),
    parting: Parting = Parting(),
) -> Specialised:
    """The core rewritten for one policy, in the parts that a header and a source file are made of.

    `sources`: (file name, text) in the order of inclusion; `values`: struct hw_policy as nested dicts and lists, arrays
    holding exactly the elements in use; `entries`: the public functions wanted, whose policy parameter goes;
    `prefix`: what hw_ becomes (HW_: in upper case); `defines`: HW_ names taken as defined. Raises GrammarError for a
    source outside the grammar (docs/developing/core-grammar.md), HeapwrightError for an unknown entry or missing value.
    """
    program, memo = _program(tuple(sources), frozenset(defines))
    requested = prefix, *map(repr, (values, list(entries), parting))
    with memo.alone():
        if requested in memo.texts:
            kept: Specialised = memo.texts[requested]
            return kept
        folder, wanted = fold_all(program, memo, values, entries)
        names = Names(program, folder, prefix)
        names.merge_equal(wanted)
        live = inline(wanted, program) if parting.finish else settle(wanted, program)
        if parting.finish:
            write_out(live, program)
        names.assign(live, parting.public)
        printer = Printer(names.rename, names.constant, parting.absent)
        written = _Writer(program, names, printer, live, wanted, parting.finish).parts(parting.header, parting.apart)
        memo.texts[requested] = written
        return written


@lru_cache(maxsize=8)
def _program(sources: tuple[tuple[str, str], ...], defines: frozenset[str]) -> tuple[Program, Memo]:
    return Program(parsed(sources, defines)), Memo()


@dataclass(frozen=True)
class _Kinds:
    """Items at file level by what they become: types, macros, and functions between a compiler's conditionals."""

    types: list[c.Item]
    macros: list[c.Item]
    guarded: list[c.Item]

    @classmethod
    def of(cls, items: list[c.Item], shown: Collection[str]) -> _Kinds:
        """The items, without declarations of structs that are `shown` elsewhere or come before."""
        result, seen = cls([], [], []), set(shown)
        for item in items:
            if isinstance(item, c.Macro):
                result.macros.append(item)
            elif _has_functions(item):
                result.guarded.append(item)
            elif not isinstance(item, c.Struct) or item.fields is not None or item.name not in seen:
                result.types.append(item)
                seen |= {item.name} if isinstance(item, c.Struct) else set()
        return result


def _heat(used: Collection[str]) -> str:
    """The definitions of the macros for storage that are used."""
    there = [(name, *HEAT[name]) for name in HEAT if name in used]
    about = "; ".join(text for _, text, _, _ in there).replace("; What a call does", ", and what it does")
    with_gnu = "".join(f"#define {name} static {added}\n" for name, _, _, added in there)
    without = "".join(f"#define {name} {plain}\n" for name, _, plain, _ in there)
    return f"/* {about}. */\n#if defined(__GNUC__)\n{with_gnu}#else\n{without}#endif\n" if there else ""


def _has_functions(item: c.Item) -> bool:
    inside = [entry for _, of in item.branches for entry in of] if isinstance(item, c.GuardedItems) else []
    return any(isinstance(entry, c.Function) for entry in inside)


class _Writer:
    """Puts the parts in the order of the source."""

    def __init__(
        self,
        program: Program,
        names: Names,
        printer: Printer,
        live: list[Specialisation],
        entries: list[Specialisation],
        finish: bool,
    ) -> None:
        self.program = program
        self.names = names
        self.live = live
        self.entries = entries
        self.finish = finish
        self.printer = printer
        self.by_function: dict[str, list[Specialisation]] = {}
        for target in sorted(live, key=lambda target: target.name):
            self.by_function.setdefault(target.function.name, []).append(target)
        self.source = [item for source in program.sources for item in source.items]
        self.used = {word for target in live for word in target.left.once("words", _words_left, target)}
        known = 0
        while known != len(self.used):
            known = len(self.used)
            self.used.update(*map(_words_of, self.kept(self.source)))

    def parts(self, header: str, apart: Sequence[str]) -> Specialised:
        """All parts; the items of the file `header` make the interface, the entries `apart` have one of their own."""
        kept = self.kept(self.source)
        inner = [item for item in kept if not (header and item.file == header)]
        shown = {item.name for item in kept if item not in inner and isinstance(item, c.Struct)}
        kinds = _Kinds.of(inner, shown)
        constants = [self.names.definitions(self.printer, addresses=not self.finish), self.items(kinds.macros)]
        heat_first = [self.printer.words(_heat({target.function.storage for target in self.live}))]
        return Specialised(
            tuple(sorted({path for source in self.program.sources for path in source.includes})),
            self.interface(header) if header else "",
            "\n".join([*filter(None, heat_first), self.items(kinds.types).lstrip("\n")]),
            "\n".join(part.lstrip("\n") for part in constants if part),
            *self.functions(kinds.guarded, apart),
            addresses=tuple(self.names.addresses(self.printer)) if self.finish else (),
        )

    def interface(self, header: str) -> str:
        """What the header declares, in its order."""
        out = ""
        group: list[c.Item] = []
        entries = {entry.name: entry for entry in self.entries}
        for item in self.source:
            if item.file == header:
                group.append(item)
                if isinstance(item, c.Function) and item.name in entries:
                    out += self.items(self.kept(group)) + "\n" + self.prototype(entries[item.name], item)
                    group = []
        return collapse_blank_lines(out + self.items(self.kept(group)))

    def kept(self, items: list[c.Item], guarded: bool = False) -> list[c.Item]:
        """The items at file level that are used; of functions those that are `guarded` by a compiler's #if."""
        out: list[c.Item] = []
        blank = False
        for item in items:
            blank |= item.blank
            remaining: c.Item = item
            match item:
                case c.GuardedItems():
                    branches = [(head, self.kept(inner, guarded=True)) for head, inner in item.branches]
                    remaining, there = c.replace(item, branches=branches), any(inner for _, inner in branches)
                case c.Enum():
                    there = not self.used.isdisjoint([item.name, *(member.name for member in item.members)])
                case c.Function():
                    there = guarded and item.name in self.used
                case _:
                    gone = "struct " + item.name in self.program.policy_structs or item.name in HEAT
                    there = item.name in self.used and not gone
            if there:
                out.append(c.replace(remaining, blank=blank))
                blank = False
        return out

    # ---- items

    def items(self, items: Sequence[c.Item]) -> str:
        """Items in a row; the comments behind neighbouring macros are aligned."""
        out = ""
        rows: list[tuple[str, str]] = []
        for item in items:
            macro = isinstance(item, c.Macro)
            if rows and (item.blank or item.comments or not macro):
                out, rows = out + commented_lines(rows), []
            if macro:
                out += self.above(item)
                rows.append((self.printer.words(item.text), comment_words(self.printer.words(item.trailing))))
            else:
                out += self.item(item)
        return out + commented_lines(rows)

    def above(self, item: c.Commented) -> str:
        """The comments above an item, and a blank line ahead of them."""
        return "\n" * item.blank + "".join(self.printer.comment(comment, "") for comment in item.comments)

    def item(self, item: c.Item) -> str:
        match item:
            case c.GuardedItems():
                branches = (f"{line}\n{''.join(map(self.item, items)).lstrip()}" for line, items in item.branches)
                code = "".join(branches) + "#endif"
            case c.Enum():
                code = self.enum(item)
            case c.Function():
                first = self.printer.signature(item.storage, item, item.name, item.parameters)
                code = first + self.braced(item, item.body or [])
            case _:
                code = self.printer.words(item.text)
        return self.above(item) + code + f" {self.printer.words(item.trailing)}".rstrip() + "\n"

    def braced(self, function: c.Function, body: list[c.Stmt], ahead: str = "") -> str:
        """A body in braces, the first of which stands where the source has it."""
        return f"{' ' if function.attached else chr(10)}{{\n{ahead}{self.printer.body(body, 1)}}}"

    def enum(self, item: c.Enum) -> str:
        """An enum with the enumerators that are used, their values as they were."""
        rows = []
        expected = 0
        words = self.printer.words
        for member in item.members:
            value = self.program.enumerators[member.name]
            if member.name in self.used or item.name in self.used:
                initial = member.suffix or ("" if value == expected else str(value))
                note = words(member.trailing)
                rows.append((words(member.name) + (f" = {words(initial)}" if initial else ""), note))
                expected = value + 1
        tag = f"enum {words(item.name)} " if item.name else "enum "
        if item.flat:
            return f"{tag}{{ {', '.join(text + (f' {note}' if note else '') for text, note in rows)} }};"
        commas = ["," for _ in rows[1:]] + [""]
        lines = [(f"    {text}{comma}", comment_words(note)) for (text, note), comma in zip(rows, commas, strict=True)]
        return f"{tag}{{\n{commented_lines(lines)}}};"

    # ---- functions

    def definition(self, target: Specialisation) -> str:
        """A specialised function with its comments."""
        words = self.names.prefix, target.name, target.entry, self.names.words(target), self.printer.absent
        return target.left.text("definition", words, lambda: self.code(target))

    def code(self, target: Specialisation) -> str:
        """The text of a specialised function with its comments."""
        gone = {p.name for p in target.function.parameters} - {p.name for p in target.left.parameters}
        info = (without_sentences_on(gone, comment) for comment in target.function.comments)
        function = _typed(target)
        storage = function.storage.replace("static inline", "").strip() if target.entry else function.storage
        head = "".join(self.printer.comment(comment, "") for comment in info)
        head += self.printer.signature(storage, function, target.name, target.left.parameters)
        unused = target.left.unused if target.entry else []
        ahead = "".join(f"    (void){target.left.parameters[index].name};\n" for index in unused)
        return f"{head}{self.braced(function, target.left.body, ahead)}\n"

    def functions(self, guarded: Sequence[c.Item], apart: Sequence[str]) -> tuple[str, str]:
        """All functions, in two parts: without and with the entries `apart` and what they alone call.

        In each the entries come first, with prototypes of what they call, then the others in the order of the source;
        or all are in that order. Ahead of the entries stands what reaches the arena.
        """
        near = set(reachable([entry for entry in self.entries if entry.function.name not in apart]))
        ahead = self.entries if self.finish else []
        inner = self.helpers(ahead)
        known: set[str] = set()
        first = [target for target in inner if target in near and self.leads(target)]
        leading = self.in_order([], first, known)
        inner = [target for target in inner if target not in first]
        near_ones, others = (
            self.in_order(_among(near, here, ahead), _among(near, here, inner), known) for here in (True, False)
        )
        text = "".join([*map(self.item, guarded), leading, "\n" * bool(leading), near_ones])
        return collapse_blank_lines(text), collapse_blank_lines(others)

    def helpers(self, entries: Collection[Specialisation]) -> list[Specialisation]:
        """All functions but these entries, in the order of the source."""
        functions = [item for item in self.source if isinstance(item, c.Function) and item.body is not None]
        return [target for item in functions for target in self.ordered(item.name) if target not in entries]

    def leads(self, target: Specialisation) -> bool:
        """Whether a function stands ahead of the entries."""
        return self.finish and target.function.file in FIRST

    def in_order(self, entries: list[Specialisation], others: list[Specialisation], known: set[str]) -> str:
        """Entries, then other functions, and prototypes ahead of what wants them. `known`: what has been declared."""
        out = "".join(line for entry in entries for line in self.early(entry, known))
        for target in [*entries, *others]:
            if target not in entries:
                out += "".join(f"\n{line}" for line in self.early(target, known))
            known.add(target.name)
            out += "\n" + self.definition(target)
        return out

    def ordered(self, name: str) -> list[Specialisation]:
        """The specialisations of one function, those that others of them call first."""
        waiting = self.by_function.get(name, [])
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
                storage, parameters = callee.function.storage, callee.left.parameters
                out.append(self.printer.signature(storage, _typed(callee), callee.name, parameters) + ";\n")
        return out

    def prototype(self, entry: Specialisation, declared: c.Function) -> str:
        """The declaration of an entry, with the comment and the parameter names of the one in the source."""
        head = "".join(self.printer.comment(comment, "") for comment in declared.comments)
        names = dict(zip((p.name for p in entry.function.parameters), declared.parameters, strict=True))
        parameters = [names[parameter.name] for parameter in entry.left.parameters]
        return head + self.printer.signature("", entry.function, entry.name, parameters) + ";\n"


def _among(near: Set[Specialisation], here: bool, targets: Iterable[Specialisation]) -> list[Specialisation]:
    """The functions that are in a set, or that are not in it."""
    return [target for target in targets if (target in near) == here]


def _typed(target: Specialisation) -> c.Function:
    """The function with the type that it is written with."""
    return c.replace(target.function, type="bool") if target.boolean else target.function


def _words_of(item: c.Item) -> Set[str]:
    """Identifiers that an item at file level mentions."""
    match item:
        case c.Enum():
            return {word for member in item.members for word in _words(member.suffix)}
        case c.Function():
            return _words_of_function(item, item.body or [], item.parameters)
        case c.GuardedItems():
            return {word for _, items in item.branches for inner in items for word in _words_of(inner)}
        case _:
            return _words(item.text)


def _words_left(target: Specialisation) -> frozenset[str]:
    return _words_of_function(target.function, target.left.body, target.left.parameters)


def _words_of_function(function: c.Function, body: list[c.Stmt], parameters: list[c.Declare]) -> frozenset[str]:
    """Identifiers that a function mentions, but for members and specialised functions."""
    declared = [stmt for stmt in c.all_statements(body) if isinstance(stmt, c.Declare)]
    texts = [function.type, *(f"{item.type} {item.suffix}" for item in (*declared, *parameters))]
    for part in c.all_expressions(body):
        if not isinstance(part, c.MemberAccess):
            texts += [getattr(part, word) for word in part.words if word in ("name", "text", "to")]
            texts += [part.to] if isinstance(part, c.Braces) else []
    return frozenset(c.WORD.findall(" ".join(texts)))


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    return frozenset(c.WORD.findall(text))
