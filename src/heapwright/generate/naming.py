"""Names in specialised code: the user's prefix, constants after policy members, functions after pools."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any

from heapwright.generate import syntax as c
from heapwright.generate.fold import Folder
from heapwright.generate.left import Specialisation
from heapwright.generate.printer import Printer, comment_words, commented_lines
from heapwright.generate.program import ROOT, Program, number
from heapwright.generate.syntax import replace
from heapwright.generate.together import reachable

POOLS = "pools"


class Names:
    """The names of one specialisation."""

    def __init__(self, program: Program, folder: Folder, prefix: str) -> None:
        self.program = program
        self.folder = folder
        self.prefix = prefix
        self.constants: dict[object, str] = {}
        self.meanings: dict[str, c.Named] = {}

    def rename(self, name: str) -> str:
        """An identifier of the core in the output; in comments functions stand with parentheses, as find()."""
        if name.startswith("hw_"):
            return f"{self.prefix}_{name[3:]}"
        if name.startswith("HW_"):
            return self.upper(name[3:])
        program = self.program
        commented = name.endswith("()") and name[:-2] in program.functions
        if commented or name in program.opaque or name in program.globals:
            return f"{self.prefix}_{name}"
        return self.upper(name) if name in program.macros else name

    def upper(self, name: str) -> str:
        """The name of a constant behind the prefix."""
        return f"{self.prefix.upper()}_{name}"

    def constant(self, expr: c.Named) -> str:
        """The name of a number, table or static result."""
        return self.constants[expr.named]

    def words(self, target: Specialisation) -> object:
        """The names in a function that another policy may choose otherwise."""
        left = target.left
        return [callee.name for callee in left.callees], [self.constants[named] for named in left.constants]

    # ---- pools

    def label(self, path: c.Path) -> str:
        """The pool that a path leads into: its kind, with a number where several have it; empty outside pools."""
        if len(path) < 2 or path[0] != POOLS or not isinstance(path[1], int):
            return ""
        kinds = [self.kind(index) for index in range(len(self.folder.values[POOLS]))]  # type: ignore[arg-type]
        kind = kinds[path[1]]
        return f"{kind}{kinds[: path[1]].count(kind) + 1}" if kinds.count(kind) > 1 else kind

    def kind(self, index: int) -> str:
        """A pool's kind, as the policy's enumerators name it, without HW_."""
        value = self.folder.lookup((POOLS, index, "kind"))
        members = self.program.fields(c.bare_type(self.program.fields(ROOT)[POOLS].type))
        found = (name for name in members if self.program.enumerators.get(f"HW_{name.upper()}") == value)
        return next(found, "pool")

    def _way(self, path: c.Path) -> Iterator[tuple[int, str]]:
        """Where each part of a path stands in its array or struct, with what policy.h says of a member."""
        fields = self.program.fields(ROOT)
        for part in path:
            if isinstance(part, int):
                yield part, ""
            else:
                field = fields[part]
                above = field.comments[-1].text if field.comments else ""
                yield list(fields).index(part), comment_words(field.trailing or above).removeprefix("derived: ")
                fields = self.program.fields(c.bare_type(field.type))

    # ---- constants

    def assign(self, live: Iterable[Specialisation], public: Mapping[str, str]) -> None:
        """Name the functions that are left, then the constants they use.

        `public`: the names of entries that stand in for other functions, by the entry's own.
        """
        by_function: dict[str, list[Specialisation]] = {}
        for target in live:
            by_function.setdefault(target.function.name, []).append(target)
        taken = set(by_function) | set(self.program.opaque)
        for name, targets in by_function.items():
            for target in targets:
                if target.entry:
                    found = public.get(name, name)
                elif name in public.values():
                    found = f"unlocked_{name.removeprefix('hw_')}"
                else:
                    found = name if len(targets) == 1 else self._function_name(target, taken)
                taken.add(found)
                target.name = "hw_" + found.removeprefix("hw_")
        self.name_constants(live)

    def _function_name(self, target: Specialisation, taken: set[str]) -> str:
        name = target.function.name
        paths = [static.path for static in target.statics.values() if isinstance(static, c.Place)]
        label = next((label for path in paths if (label := self.label(path))), "")
        kind = label.rstrip("0123456789")
        if label:
            name = label + name.removeprefix(kind) if name.startswith(kind + "_") else f"{name}_{label}"
        numbers = [static.value for static in target.statics.values() if not isinstance(static, c.Place)]
        name += "".join(f"_{value}".replace("-", "minus_") for value in numbers)
        free, count = name, 2
        while free in taken:
            free, count = f"{name}_{count}", count + 1
        return free

    def name_constants(self, live: Iterable[Specialisation]) -> None:
        """Give each policy value, table and static result in use its name."""
        self.constants, self.meanings = {}, {}
        found: dict[object, c.Named] = {}
        todo = [item for target in live for item in target.left.constants.items()]
        while todo:
            named, expr = todo.pop()
            if named not in found:
                found[named] = expr
                if isinstance(expr, c.Derived):
                    inner = (part for part in c.walk(expr.form) if isinstance(part, c.Named))
                    todo += [(part.named, part) for part in inner]
        by_base: dict[str, list[c.Named]] = {}
        for expr in found.values():
            by_base.setdefault(self.base(expr), []).append(expr)
        taken = {self.rename(name) for name in (*self.program.macros, *self.program.enumerators)}
        for base, group in sorted(by_base.items()):
            agree = len({self.meaning(expr) for expr in group}) == 1 and self.upper(base) not in taken
            for expr in sorted(group, key=self._place_of):
                self.constants[expr.named] = self._free_name(expr, base, agree, taken)
            taken |= {self.constants[expr.named] for expr in group}

    def _free_name(self, expr: c.Named, base: str, agree: bool, taken: set[str]) -> str:
        label = self.label(expr.path).upper()
        name = self.upper(base if agree or not label else f"{label}_{base}")
        for number_ in count(1):
            candidate = name if number_ == 1 else f"{name}_{number_}"
            known = self.meanings.get(candidate)
            if known is not None and self.meaning(known) == self.meaning(expr):
                return candidate
            if known is None and candidate not in taken:
                self.meanings[candidate] = expr
                return candidate
        raise AssertionError(name)

    def base(self, expr: c.Named) -> str:
        """A constant's name while no pools disagree."""
        if isinstance(expr, c.Derived):
            return expr.function.name.upper()
        path = expr.path
        rest = path[2:] if path[0] == POOLS else path
        if len(rest) > 1 and path[0] == POOLS and isinstance(rest[1], str) and rest[0] == self.kind(int(path[1])):
            rest = rest[1:]
        if isinstance(rest[-1], int) and len(self.values(path[:-1])) == 1:
            rest = rest[:-1]
        return "_".join(str(part) for part in rest).upper()

    def values(self, path: c.Path) -> list[int]:
        """The elements of an array of the policy."""
        value: Any = self.folder.values
        for part in path:
            value = value[part]
        return [int(element) for element in value]

    def meaning(self, expr: c.Named) -> object:
        """What has to be equal for two constants to share a name."""
        if isinstance(expr, c.Table):
            return tuple(self.values(expr.path))
        return expr.value, expr.type, isinstance(expr, c.Derived)

    def _place_of(self, expr: c.Named) -> tuple[int, ...]:
        """Where a constant stands: the heap's before the pools', members in the order of their structs."""
        if isinstance(expr, c.Derived):
            return (2,)
        return int(expr.path[0] == POOLS), *(at for at, _ in self._way(expr.path))

    def definitions(self, printer: Printer) -> str:
        """The constants in use: those of the policy in its order, then static results, then tables."""
        ordered = sorted(self.meanings.items(), key=lambda pair: (self._place_of(pair[1]), pair[0]))
        rows, tables = [], ""
        for name, expr in ordered:
            if isinstance(expr, c.Table):
                tables += self._table(name, expr, printer)
            else:
                rows.append((f"#define {name} {self._value(expr, printer)}", self._note(expr, printer)))
        return "\n".join(part for part in (commented_lines(rows), tables) if part)

    def _value(self, expr: c.Named, printer: Printer) -> str:
        if isinstance(expr, c.Derived):
            text = printer.flat(expr.form)
            return f"({text})" if printer.parenthesised(expr.form, 15) else text
        assert expr.value is not None
        if expr.type == "uint32_t":
            return f"UINT32_C({expr.value})"
        return number(expr.value, expr.type).text

    def _note(self, expr: c.Named, printer: Printer) -> str:
        """The comment of a constant: that of the policy member, or the function's."""
        if isinstance(expr, c.Derived):
            comments = expr.function.comments
            text = comments[-1].text.removeprefix("/*").removesuffix("*/").strip() if comments else ""
            return "" if "\n" in text else printer.words(text)
        value = None if isinstance(expr, c.Table) else expr.value
        comment = ": ".join(note for _, note in self._way(expr.path) if note)
        clauses = re.split(r"(?:; |^)(?=\d+: )", comment)
        return printer.words("; ".join(clause for clause in clauses if clause and _is_true_of(value, clause)))

    def _table(self, name: str, expr: c.Table, printer: Printer) -> str:
        """The definition of an array, in the smallest unsigned type that holds its values."""
        values = self.values(expr.path)
        bits = next(bits for bits in (8, 16, 32) if max(values, default=0) < 1 << bits)
        element = expr.type.removesuffix(" *") if expr.type else "uint32_t"
        kind = self.program.integer(element)
        element = f"uint{bits}_t" if kind and not kind.signed else element
        items = c.Braces([c.Literal(str(value)) for value in values])
        note = self._note(expr, printer)
        comment = f"/* {note} */\n" if note else ""
        table = c.Declare(f"static const {element}", name, f"[{len(values)}]", items)
        return f"{comment}{printer.declaration(table, 0)};\n"

    # ---- equal functions

    def merge_equal(self, entries: list[Specialisation]) -> None:
        """Let specialisations of one function that come out equal be one, in place."""
        live = reachable(entries)
        self.name_constants(live)
        printer = Printer(lambda name: name, self.constant)
        times = Counter(target.function.name for target in live)
        several = [target for target in live if times[target.function.name] > 1]
        groups = {id(target): (target.function.name, 0) for target in live}
        known = 0
        while len(set(groups.values())) != known:
            known = len(set(groups.values()))
            for target in live:
                name, number_ = groups[id(target)]
                target.name = f"{name}#{number_}"
            texts = {id(t): (t.function.name, t.entry, self._text(t, printer)) for t in several}
            numbers = {text: index for index, text in enumerate(dict.fromkeys(texts.values()))}
            groups |= {key: (text[0], numbers[text]) for key, text in texts.items()}
        first: dict[tuple[str, int], Specialisation] = {}
        for target in live:
            first.setdefault(groups[id(target)], target)
        others = {target: other for target in live if (other := first[groups[id(target)]]) is not target}
        for target in live:
            target.left = target.left.with_calls("merged", others, lambda call, other: replace(call, callee=other))

    def _text(self, target: Specialisation, printer: Printer) -> str:
        head = ", ".join(f"{parameter.type} {parameter.name}" for parameter in target.parameters)
        return target.left.text("plain", self.words(target), lambda: f"({head}) {printer.body(target.body, 1)}")


def _is_true_of(value: int | None, clause: str) -> bool:
    """Whether what a member's comment says, maybe of one value of it, holds for this one."""
    of = re.match(r"(\d+): ", clause)
    return of is None or int(of[1]) == value
