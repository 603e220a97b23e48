"""Memory maps in comments: blocks drawn with the offsets of one recipe, and the table of its control data."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from heapwright._recipes.policy import control_data

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe

WIDTH = 114
"""Columns that a line of a comment has for text."""
_NARROWEST = 6
_FROM_END = 1 << 40
"""Offsets from here on count back from the end of what is drawn."""


class BlockField(NamedTuple):
    """Bytes of a block that hold one thing; `start` may be `from_end`."""

    start: int
    size: int
    text: str


class Address(NamedTuple):
    """A constant that is an address: its name in the source, its value, and what lies there."""

    name: str
    value: int
    meaning: str


def from_end(size: int) -> int:
    """The offset of the last bytes of a block of any size."""
    return _FROM_END - size


def drawing(rows: Mapping[str, Sequence[BlockField]], end: str) -> list[str]:
    """Blocks below each other, each a row of cells in proportion to no scale, with the offsets above and below.

    Args:
        rows: the cells of each block in order of their offsets, by what it is; gaps are drawn empty.
        end: what the offset behind the last cell is called.
    """
    filled = {name: _without_gaps(cells) for name, cells in rows.items()}
    bounds = sorted({0, _FROM_END, *(cell.start for cells in filled.values() for cell in cells)})
    widths = {bound: max(_NARROWEST, len(_label(bound, end)) + 1) for bound in bounds}
    for cells in filled.values():
        for cell in sorted(cells, key=lambda cell: cell.size):
            inside = [bound for bound in bounds if cell.start <= bound < cell.start + cell.size]
            missing = len(cell.text) + 3 - sum(widths[bound] for bound in inside)
            widths[inside[-1]] += max(0, missing)
    indent = max(map(len, rows)) + 2
    column, at = {}, indent
    for bound in bounds:
        column[bound], at = at, at + widths[bound]
    labels = "".join(_label(bound, end).ljust(widths[bound]) for bound in bounds)
    lines = [" " * indent + labels.rstrip()]
    above: set[int] = set()
    for name, cells in filled.items():
        starts = {column[cell.start] for cell in cells} | {column[_FROM_END]}
        lines.append(_rule(above | starts))
        text = f"{name}:".rjust(indent - 1).ljust(indent)
        for cell in cells:
            room = column[cell.start + cell.size] - column[cell.start]
            text += f"| {cell.text}".ljust(room)
        lines.append(f"{text}|")
        above = starts
    return [*lines, _rule(above)]


def _without_gaps(cells: Iterable[BlockField]) -> list[BlockField]:
    """The cells with empty ones between them."""
    out: list[BlockField] = []
    at = 0
    for cell in sorted(cells):
        out += [BlockField(at, cell.start - at, "")] * (cell.start > at) + [cell]
        at = cell.start + cell.size
    return out + [BlockField(at, _FROM_END - at, "")] * (at < _FROM_END)


def _label(bound: int, end: str) -> str:
    if bound < _FROM_END // 2:
        return str(bound)
    back = _FROM_END - bound
    if not back:
        return end
    return str(int(end) - back) if end.isdigit() else f"{end} - {back}"


def _rule(columns: set[int]) -> str:
    return "".join("+" if at in columns else "-" if at > min(columns) else " " for at in range(max(columns) + 1))


# ---- blocks ---------------------------------------------------------------------------------------------------------


def block_maps(recipe: Recipe, values: Mapping[str, Any]) -> list[str]:
    """The lines of a comment that draws a block of each pool, used and free, with what its words hold."""
    recipe = recipe.canonical()
    owners = [(pool, laid_out[pool.kind]) for pool, laid_out in zip(recipe.pools, values["pools"], strict=True)]
    owners = [(pool, laid_out) for pool, laid_out in owners if pool.owns_blocks]
    listed = any(not pool.owns_blocks for pool in recipe.pools) or recipe.threads == "cached"
    out: list[str] = []
    for number, (pool, laid_out) in enumerate(owners):
        lines, notes = _DRAWN[pool.kind](laid_out, recipe, listed)
        title = f"A block of pool {number + len(recipe.pools) - len(owners)} ({pool.kind})" if owners[1:] else "A block"
        out += ["", f"{title}, offsets in bytes:", "", *(f"    {line}" for line in lines)]
        out += [""] * bool(notes) + [line for note in notes for line in textwrap.wrap(note, WIDTH)]
    return out[1:]


def _links(laid_out: Mapping[str, Any], at: int, count: int) -> list[BlockField]:
    size = laid_out["links"]["field"]["bytes"]
    names = ("next", "previous")
    return [BlockField(at + index * size, size, name) for index, name in enumerate(names[:count])]


def _behind(recipe: Recipe, trailer: int) -> list[BlockField]:
    """What lies behind the payload of a used block."""
    guard = recipe.geometry.guard
    cells = [BlockField(from_end(guard), guard, "guard")] if guard else []
    return cells + [BlockField(from_end(trailer), trailer - guard, "unused")] * (trailer > guard)


def _payload(start: int, trailer: int) -> BlockField:
    return BlockField(start, from_end(trailer) - start, "payload")


def _masked(laid_out: Mapping[str, Any]) -> list[str]:
    keyed, hardened = laid_out["links"]["keyed"], laid_out["links"]["hardened"]
    if keyed:
        return ["Headers and links are stored masked with the heap's keys." if hardened else "Headers are masked."]
    return []


_LINKS = {0: ("next", "previous"), 1: ("next",), 3: ("before", "after")}
"""The links of a free block, by the kind of list that holds it; others have none."""


def _general(pool: Mapping[str, Any], recipe: Recipe, listed: bool) -> tuple[list[str], list[str]]:
    word, header, trailer, link = (
        pool["word"]["bytes"],
        pool["header"],
        pool["trailer"],
        pool["links"]["field"]["bytes"],
    )
    tag = [BlockField(word, word, "tag")] if pool["tag_in_header"] else []
    at_end = bool(pool["boundary_tags"] and not pool["tag_in_header"])
    used = [BlockField(0, word, "size, used"), *tag, _payload(header, trailer), *_behind(recipe, trailer)]
    names = _LINKS.get(pool["free_list"], ())
    links = [BlockField(pool["node"] + index * link, link, name) for index, name in enumerate(names)]
    free = [BlockField(0, word, "size"), *tag, *links]
    free += [BlockField(from_end(word), word, "size")] if at_end else []
    rows = {"used": used, "free": free}
    if listed:
        rows["cached"] = [BlockField(0, word, "size, used"), *tag, BlockField(header, link, "next")]
    notes = [_size_note(pool)]
    if tag:
        notes += ["The tag is the size of the free block that ends here; 0 if the block before is used."]
    if pool["pad"]:
        notes += [f"Up to {pool['pad']} bytes of padding before or behind the payload align it to {recipe.align}."]
    return drawing(rows, "size"), notes + _masked(pool)


def _size_note(pool: Mapping[str, Any]) -> str:
    """How the first word of a block holds its size and flags."""
    unit, bits = 1 << pool["unit_shift"], pool["flag_bits"]
    stored = "size"
    if not pool["size_raw"]:
        shift = f" / {1 << pool['size_shift']}" if pool["size_shift"] else ""
        stored = f"size{shift} << {bits}" if bits else f"size{shift}"
    flags = ["bit 0: the block is used", "bit 1: the block before is used or does not merge"][:bits]
    multiples = f"; sizes are multiples of {unit}" if unit > 1 else ""
    return f"The word at offset 0 is {stored} | flags{multiples}. Flags: {'; '.join(flags)}."


def _fixed(pool: Mapping[str, Any], recipe: Recipe, listed: bool) -> tuple[list[str], list[str]]:
    word, header, trailer, link = (
        pool["word"]["bytes"],
        pool["header"],
        pool["trailer"],
        pool["links"]["field"]["bytes"],
    )
    chained = bool(pool["first_fit"] and pool["grow"])
    in_list = not pool["first_fit"]
    head = [BlockField(0, word, "class")] if header else []
    chain = [BlockField(4, link, "next")] if chained else []
    rows = {
        "used": [*([BlockField(0, word, "class, used")] if chained else head), *chain],
        "free": [*head, *chain, *([BlockField(header, link, "next")] if in_list else [])],
    }
    rows["used"] += [_payload(header, trailer), *_behind(recipe, trailer)]
    stride = (pool["sizes"][0] + header + trailer + recipe.align - 1) & -recipe.align
    end = str(stride) if len(pool["sizes"]) == 1 else "size"
    notes = ["The word at offset 0 is class << 1 | used."] if chained else []
    notes += [] if in_list or chained else ["Flags in the control data say which blocks are used."]
    if len(pool["sizes"]) > 1:
        notes += [f"The size is that of the block's class: payloads of {_listed(pool['sizes'])} bytes."]
    return drawing(rows, end), notes + _masked(pool)


def _buddy(pool: Mapping[str, Any], recipe: Recipe, listed: bool) -> tuple[list[str], list[str]]:
    word, header, trailer = pool["word"]["bytes"], pool["header"], pool["trailer"]
    rows = {
        "used": [BlockField(0, word, "order, used"), _payload(header, trailer), *_behind(recipe, trailer)],
        "free": [BlockField(0, word, "order"), *_links(pool, header, 2)],
    }
    if listed:
        rows["cached"] = [BlockField(0, word, "order, used"), *_links(pool, header, 1)]
    least = 1 << pool["min_block_log2"]
    notes = [
        f"The word at offset 0 is order << 1 | used. The size is {least} << order; orders 0 to {pool['orders'] - 1}."
    ]
    return drawing(rows, "size"), notes + _masked(pool)


def _partition(pool: Mapping[str, Any], recipe: Recipe, listed: bool) -> tuple[list[str], list[str]]:
    number, size = pool["field"]["bytes"], pool["partition"]
    names = ("count, used", "first", "next", "previous")
    cells = [BlockField(index * number, number, name) for index, name in enumerate(names)]
    rows = {"descriptor": [*cells[:-1], BlockField(3 * number, _FROM_END - 3 * number, names[-1])]}
    if pool["descriptor"] > 4 * number:
        rows = {"descriptor": cells}
    notes = [
        f"A block is a group of partitions of {size} bytes side by side, and is all payload. Its descriptors lie "
        "outside: that of its first partition holds count << 1 | used and, in a free group, the numbers of the next "
        "and the previous free group; that of its last partition the number of its first."
    ]
    return drawing(rows, str(pool["descriptor"])), notes


def _compact(pool: Mapping[str, Any], recipe: Recipe, listed: bool) -> tuple[list[str], list[str]]:
    word, header = pool["word"]["bytes"], pool["header"]
    if not header:
        rows = {"used": [BlockField(0, _FROM_END, "payload")]}
        notes = ["Blocks have no header: their handles hold address, size and the next block's handle."]
    else:
        rows = {
            "used": [
                BlockField(0, word, "size"),
                BlockField(word, word, "handle"),
                BlockField(header, _FROM_END - header, "payload"),
            ],
            "hole": [BlockField(0, word, "size"), BlockField(word, word, "0")],
        }
        notes = [f"Sizes are stored in units of {recipe.align} bytes; a handle by its number."]
    return drawing(rows, "size"), notes


_DRAWN = {
    "general": _general,
    "fixed": _fixed,
    "buddy": _buddy,
    "partition": _partition,
    "compact": _compact,
}


def _listed(sizes: Sequence[int]) -> str:
    texts = [f"{size:,}" for size in sizes]
    return ", ".join(texts[:8]) + (f" ... {texts[-1]}" if len(texts) > 8 else "")


# ---- control data ---------------------------------------------------------------------------------------------------


def control_table(recipe: Recipe, values: Mapping[str, Any], addresses: Sequence[Address]) -> list[str]:
    """The lines of a comment that lists the control data by address: bytes, name, and what it is."""
    names = {address.value: address for address in reversed(addresses)}
    rows = [("address", "bytes", "name", "meaning")]
    at = 0
    for placed in sorted(control_data(recipe), key=lambda placed: placed.address):
        if placed.address > at:
            rows.append((f"{at}", f"{placed.address - at}", "", "unused"))
        named = names.get(placed.address)
        meaning = named.meaning if named else placed.meaning
        rows.append((f"{placed.address}", f"{placed.size}", named.name if named else "", meaning))
        at = placed.address + placed.size
    if at < values["control"]:
        rows.append((f"{at}", f"{values['control'] - at}", "", "unused"))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = []
    for row in rows:
        head = f"    {row[0].rjust(widths[0])}  {row[1].rjust(widths[1])}  {row[2].ljust(widths[2])}  "
        text = textwrap.wrap(row[3], WIDTH - len(head)) or [""]
        lines += [(head + text[0]).rstrip(), *(" " * len(head) + more for more in text[1:])]
    return lines
