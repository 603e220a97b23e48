"""Names in specialised code: the user's prefix, constants after policy members, functions after pools."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any

from heapwright._generate import syntax as c
from heapwright._generate.fold import Folder
from heapwright._generate.inline import reachable
from heapwright._generate.printer import Printer, broken, comment_words, commented_lines
from heapwright._generate.program import ROOT, Program, number
from heapwright._generate.residual import Specialisation
from heapwright._generate.syntax import replace

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
        program = self.program
        if name.startswith("HW_") or name in program.macros:
            return self.upper(name.removeprefix("HW_"))
        commented = name.endswith("()") and name[:-2] in program.functions
        return f"{self.prefix}_{name}" if commented or name in program.opaque or name in program.globals else name

    def upper(self, name: str) -> str:
        """The name of a constant behind the prefix."""
        return f"{self.prefix.upper()}_{name}"

    def constant(self, expr: c.Named) -> str:
        """The name of a number, table or static result."""
        return self.constants[expr.named]

    def words(self, target: Specialisation) -> object:
        """The names in a function that another policy may choose otherwise."""
        remaining = target.left
        return [callee.name for callee in remaining.callees], [self.constants[named] for named in remaining.constants]

    # ---- pools

    def label(self, path: c.Path) -> str:
        """The pool that a path leads into: its kind, with a number where several have it; empty outside pools."""
        if len(path) < 2 or path[0] != POOLS or not isinstance(path[1], int):
            return ""
        kinds = [self.kind(index) for index in range(len(self.value((POOLS,))))]
        kind = kinds[path[1]]
        return f"{kind}{kinds[: path[1]].count(kind) + 1}" if kinds.count(kind) > 1 else kind

    def kind(self, index: int) -> str:
        """A pool's kind, as the policy's enumerators name it, without HW_."""
        value = self.folder.lookup((POOLS, index, "kind"))
        members = self.program.fields(c.bare_type(self.program.fields(ROOT)[POOLS].type))
        results = (name for name in members if self.program.enumerators.get(f"HW_{name.upper()}") == value)
        return next(results, "pool")

    def value(self, path: c.Path) -> Any:
        """What stands at a path of the policy."""
        value: Any = self.folder.values
        for part in path:
            value = value[part]
        return value

    def _way(self, path: c.Path) -> Iterator[tuple[int, str]]:
        """Where each part of a path stands in its array or struct, with what policy.h says of a member."""
        fields = self.program.fields(ROOT)
        for part in path:
            if isinstance(part, int):
                yield part, ""
            else:
                field = fields[part]
                above = field.comments[-1] if field.comments else ""
                yield list(fields).index(part), comment_words(field.trailing or above).removeprefix("derived: ")
                fields = self.program.fields(c.bare_type(field.type))

    # ---- constants

    def assign(self, live: Iterable[Specialisation], public: Mapping[str, str]) -> None:
        """Name the functions that are left, then the constants they use.

        `public`: the names under which entries replace other functions, by the entry's own.
        """
        by_function: dict[str, list[Specialisation]] = {}
        for target in live:
            by_function.setdefault(target.function.name, []).append(target)
        taken = set(by_function) | set(self.program.opaque)
        for name, targets in by_function.items():
            for target in targets:
                if target.entry:
                    result = public.get(name, name)
                elif name in public.values():
                    result = f"unlocked_{name.removeprefix('hw_')}"
                else:
                    result = name if len(targets) == 1 else self._function_name(target, taken)
                taken.add(result)
                target.name = "hw_" + result.removeprefix("hw_")
        self.name_constants(live)

    def _function_name(self, target: Specialisation, taken: set[str]) -> str:
        name = target.function.name
        places = [static for static in target.statics.values() if isinstance(static, c.Place)]
        label = next((label for place in places if (label := self.label(place.path))), "")
        kind = label.rstrip("0123456789")
        if label:
            name = label + name.removeprefix(kind) if name.startswith(kind + "_") else f"{name}_{label}"
        numbers = [static.value for static in target.statics.values() if static not in places]
        name += "".join(f"_{value}".replace("-", "minus_") for value in numbers)
        return next(free for at in count(1) if (free := name if at == 1 else f"{name}_{at}") not in taken)

    def name_constants(self, live: Iterable[Specialisation]) -> None:
        """Give each policy value, table and static result in use its name."""
        self.constants, self.meanings = {}, {}
        results: dict[object, c.Named] = {}
        todo = [expr for target in live for expr in target.left.constants.values()]
        while todo:
            expr = todo.pop()
            if expr.named not in results:
                results[expr.named] = expr
                if isinstance(expr, c.Derived):
                    todo += [part for part in c.walk(expr.form) if isinstance(part, c.Named)]
        by_base = self._by_base(results.values())
        taken = {self.rename(name) for name in (*self.program.macros, *self.program.enumerators)}
        for base, group in sorted(by_base.items()):
            agree = len({self.meaning(expr) for expr in group}) == 1 and self.upper(base) not in taken
            for expr in sorted(group, key=self._place_of):
                label = "" if agree else self.label(expr.path).upper()
                self.constants[expr.named] = self._free_name(expr, f"{label}_{base}".lstrip("_"), taken)
            taken |= {self.constants[expr.named] for expr in group}

    def _by_base(self, constants: Iterable[c.Named]) -> dict[str, list[c.Named]]:
        """The constants by their names while no pools disagree. Constants at one address share one, a pool's first."""
        results: dict[str, list[c.Named]] = {}
        addresses: dict[object, list[c.Named]] = {}
        for expr in constants:
            if _is_address(expr):
                addresses.setdefault((expr.value, expr.type), []).append(expr)
            else:
                results.setdefault(self.base(expr), []).append(expr)
        bases = Counter(base for group in addresses.values() for base in {self.base(expr) for expr in group})
        for group in addresses.values():
            first = min(group, key=lambda expr: (bases[self.base(expr)], expr.path[0] != POOLS, self._place_of(expr)))
            results.setdefault(self.base(first), []).extend(group)
        return results

    def _free_name(self, expr: c.Named, base: str, taken: set[str]) -> str:
        for at in count(1):
            name = self.upper(base if at == 1 else f"{base}_{at}")
            known = self.meanings.get(name)
            if known is not None and self.meaning(known) == self.meaning(expr):
                break
            if known is None and name not in taken:
                self.meanings[name] = expr
                break
        return name

    def base(self, expr: c.Named) -> str:
        """A constant's name while no pools disagree."""
        if isinstance(expr, c.Derived):
            return expr.function.name.upper()
        path = expr.path
        rest = path[2:] if path[0] == POOLS else path
        if len(rest) > 1 and path[0] == POOLS and rest[0] == self.kind(int(path[1])) and isinstance(rest[1], str):
            rest = rest[1:]
        if isinstance(rest[-1], int) and len(self.value(path[:-1])) == 1:
            rest = rest[:-1]
        return "_".join(map(str, rest)).upper()

    def meaning(self, expr: c.Named) -> object:
        """What has to be equal for two constants to share a name."""
        if isinstance(expr, c.ConstantTable):
            return tuple(self.value(expr.path))
        return expr.value, expr.type, isinstance(expr, c.Derived)

    def _place_of(self, expr: c.Named) -> tuple[int, ...]:
        """Where a constant stands: the heap's before the pools', members in the order of their structs."""
        if isinstance(expr, c.Derived):
            return (2,)
        return int(expr.path[0] == POOLS), *(at for at, _ in self._way(expr.path))

    def addresses(self, printer: Printer) -> list[tuple[str, int, str]]:
        """Names of addresses in use with what lies there, in the order of the arena."""
        found = [
            (name, expr.value or 0, self._note(expr, printer))
            for name, expr in self.meanings.items()
            if _is_address(expr)
        ]
        return sorted(found, key=lambda address: address[1])

    def definitions(self, printer: Printer, addresses: bool = True) -> str:
        """The constants in use: those of the policy in its order, then static results, then tables."""
        rows, tables = [], ""
        for name, expr in sorted(self.meanings.items(), key=lambda pair: (self._place_of(pair[1]), pair[0])):
            if not addresses and _is_address(expr):
                continue
            note = self._note(expr, printer)
            if isinstance(expr, c.ConstantTable):
                tables += (f"/* {note} */\n" if note else "") + self._table(name, expr, printer)
            else:
                text = f"UINT32_C({expr.value})" if expr.type == "uint32_t" else number(expr.value or 0, expr.type).text
                text = printer.flat(expr.form, 15) if isinstance(expr, c.Derived) else text
                rows.append((f"#define {name} {text}", note))
        return "\n".join(part for part in (commented_lines(rows), tables) if part)

    def _note(self, expr: c.Named, printer: Printer) -> str:
        """The comment of a constant: that of the policy member, or the function's."""
        if isinstance(expr, c.Derived):
            comments = expr.function.comments
            text = comments[-1].removeprefix("/*").removesuffix("*/").strip() if comments else ""
            return "" if "\n" in text else printer.words(printer.prose(text))
        value = None if isinstance(expr, c.ConstantTable) else expr.value
        clauses = re.split(r"(?:; |^)(?=\d+: )", ": ".join(note for _, note in self._way(expr.path) if note))
        of = [re.match(r"(\d+): ", clause) for clause in clauses]  # what is said of one value of the member
        true = [clause for clause, item in zip(clauses, of, strict=True) if item is None or int(item[1]) == value]
        return printer.words(printer.prose("; ".join(filter(None, true))))

    def _table(self, name: str, expr: c.Named, printer: Printer) -> str:
        """The definition of an array, in the smallest unsigned type that holds its values."""
        values = self.value(expr.path)
        bits = next(bits for bits in (8, 16, 32) if max(values, default=0) < 1 << bits)
        element = (expr.type or "").removesuffix(" *")
        kind = self.program.integer(element)
        element = f"uint{bits}_t" if kind and not kind.signed else element
        items = c.Braces([c.Literal(str(int(value))) for value in values])
        table = c.Declare(f"static const {element}", name, f"[{len(values)}]", items)
        return broken(f"{printer.declaration(table)};", 0) + "\n"

    # ---- equal functions

    def merge_equal(self, entries: list[Specialisation]) -> None:
        """Let specialisations of one function that come out equal be one, in place."""
        live = reachable(entries)
        self.name_constants(live)
        printer = Printer(lambda name: name, self.constant)
        times = Counter(target.function.name for target in live)
        several = [target for target in live if times[target.function.name] > 1]
        groups: dict[Specialisation, tuple[object, int]] = {target: (target.function.name, 0) for target in live}
        known = 0
        while len(set(groups.values())) != known:
            known = len(set(groups.values()))
            for target, (name, at) in groups.items():
                target.name = f"{name}#{at}"
            texts = {target: (target.function.name, target.entry, self._text(target, printer)) for target in several}
            numbers = {text: index for index, text in enumerate(dict.fromkeys(texts.values()))}
            groups |= {target: (text[0], numbers[text]) for target, text in texts.items()}
        first = {group: target for target, group in reversed(groups.items())}
        others = {target: other for target in live if (other := first[groups[target]]) is not target}
        for target in live:
            target.left = target.left.with_calls("merged", others, lambda call, other: replace(call, callee=other))

    def _text(self, target: Specialisation, printer: Printer) -> str:
        head = ", ".join(f"{parameter.type} {parameter.name}" for parameter in target.left.parameters)
        return target.left.text("plain", self.words(target), lambda: f"({head}) {printer.body(target.left.body, 1)}")


def _is_address(expr: c.Named) -> bool:
    """Whether a constant is the address of control data."""
    return isinstance(expr, c.Constant) and str(expr.path[-1]).endswith("_at")
