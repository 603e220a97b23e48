"""Contracts in ACSL for the generated C of a fixed pool: what each function requires and ensures, for Frama-C's WP.

templates/contracts.acsl holds them, in sections: the `view` of the heap's state; what stands in several contracts
(`part`, asked for as {NAME}, or as {NAME for HEAP} of another variable than h); the `contract` of each function; and
each `statement` with what stands around it in the proof alone.

A stack of the free blocks' numbers describes the heap's state; it exists in the proof alone (ghost code). The list that
runs through the arena holds just these blocks, from the last to the first, and none twice. A block is live if it was
carved and is not in the stack.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from heapwright._recipes.pools import Fixed
from heapwright._recipes.recipe import Recipe

_SOUND = ("counted", "ordered", "placed", "headed", "ended", "linked")
"""The parts of app_sound()."""


@cache
def _sections() -> list[tuple[str, str, str]]:
    """The kind, the name and the text of each section."""
    text = (Path(__file__).with_name("templates") / "contracts.acsl").read_text(encoding="utf-8")
    return re.findall(r"^== (\w+) ?(\w*)\n(.*?)(?=^== |\Z)", text, re.MULTILINE | re.DOTALL)


def has_contracts(recipe: Recipe) -> bool:
    """Whether contracts are known of a recipe: one counted class of blocks in a list, and nothing around it."""
    pool = recipe.pools[0]
    plain = recipe.checks == "none" and recipe.threads == "none" and not recipe.counts and recipe.link_bytes == 4
    return (
        plain
        and len(recipe.pools) == 1
        and isinstance(pool, Fixed)
        and len(pool.sizes) == 1
        and pool.counts != "grow"
        and pool.find == "freelist"
        and pool.header == 0
        and recipe.align % 4 == 0
    )


def with_contracts(source: str) -> str:
    """The text of app_heap.c with a contract before each function that init, malloc and free call, or are."""
    first = min(_place(source, name) for kind, name, _ in _sections() if kind == "contract")
    source = source[:first] + _sections()[0][2] + source[first:]
    for kind, name, text in _sections():
        if kind == "contract":
            source = _before_function(source, name, f"/*@\n{_written_out(text)}*/\n")
        elif kind == "statement":
            source = source.replace(re.sub(r"^ *\/\*@.*?\*/\n", "", text, flags=re.MULTILINE | re.DOTALL), text)
    return source


def _written_out(contract: str) -> str:
    """A contract with its parts, and a promise of its own for each part of a sound heap: provers find one at a time."""
    parts = {name: text for kind, name, text in _sections() if kind == "part"}
    contract = re.sub(
        r"\{(\w+)(?: for (.*?))?\}\n", lambda asked: re.sub(r"\bh\b", asked[2] or "h", parts[asked[1]]), contract
    )
    each = "".join(rf"  ensures app_{part}(\1);\n" for part in _SOUND)
    return re.sub(r"  ensures app_sound\((.*?)\);\n", each, contract)


def _place(source: str, name: str) -> int:
    """Where the function's definition begins; the end where there is none."""
    match = re.search(rf"^[\w ]+\**app_{name}\([^;]*?\)\n\{{", source, re.MULTILINE)
    return len(source) if match is None else match.start()


def _before_function(source: str, name: str, text: str) -> str:
    """The source with `text` before the function's definition, where there is one."""
    place = _place(source, name)
    return source if place == len(source) else source[:place] + text + source[place:]


def functions_with_contracts(source: str) -> list[str]:
    """The functions that are proved, by name."""
    names = [f"app_{name}" for name in (*(name for kind, name, _ in _sections() if kind == "contract"), "put")]
    return [name for name in names if re.search(rf"^[\w ]+\**{name}\([^;]*?\)\n\s*\{{", source, re.MULTILINE)]
