"""Writes a heap as C: the core specialised for one recipe, its header, and a small test.

The code is the core's own text (csrc/) with everything dropped that the recipe does not use, so what was explored is
what ships. The header's declarations and their comments come from csrc/heapwright.h.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from heapwright._generate.core import EVENTS, core_sources, defined
from heapwright._generate.fallback_malloc import family, of_pools, require_in_front
from heapwright._generate.memory_map import Address, block_maps, control_table
from heapwright._generate.package import package_files
from heapwright._generate.wording import absent_words, flushes
from heapwright._recipes.sites import c_names
from heapwright._recipes.worst_steps import worst_steps
from heapwright._support.engine import engine
from heapwright._support.errors import HeapwrightError, ParameterError
from heapwright._support.names import printable
from heapwright._support.templates import template
from heapwright._support.version import __version__
from heapwright._support.writing import filling

if TYPE_CHECKING:
    from heapwright._generate.specialise import Specialised
    from heapwright._recipes.recipe import Recipe

ALLOCATING = ("hw_init", "hw_malloc", "hw_calloc", "hw_realloc", "hw_aligned_alloc", "hw_free", "hw_usable_size")
MOVING = ("hw_init", *(f"hw_handle_{name}" for name in ("alloc", "realloc", "free", "pointer", "usable_size")))
WITH_CACHES = (*(name for name in ALLOCATING if name != "hw_usable_size"), "hw_check")
CACHES = ("hw_release_thread", "hw_after_fork", "hw_cached_bytes")
FLUSHING = ("hw_flush",)
APART = ("hw_next_block", "hw_statistics", "hw_largest_free", "hw_usage", "hw_check")
"""What looks at a heap and changes nothing, for a file of its own."""
LOOKING = ("hw_owns", *APART)
COUNTING = ("hw_counters", "hw_reset_least_free")
RESERVING = ("hw_malloc_low", "hw_realloc_low")
"""What a heap has for requests of low priority."""
CHECKING = ("hw_misused",)
SITED = ("hw_malloc_at", "hw_calloc_at")
"""What a heap has whose pools serve call sites alone."""
CONSTANT = ("hw_owns",)
"""Functions that look at nothing but what init() wrote, and need no lock."""


class Recorded(Protocol):
    """The most that a heap was used for, as `heapwright._replay.usage.Usage` has it."""

    @property
    def peak(self) -> int: ...
    @property
    def used_peak(self) -> int: ...
    @property
    def blocks(self) -> tuple[int, ...]: ...


@dataclass(frozen=True)
class Banner:
    """What the comment at the top says of a heap.

    Attributes:
        tuned_for: what the recipe was chosen on, in words.
        metrics: what it measured there.
        reserve: what memory to give it, a sentence.
        explored: how it was found, a sentence.
        reserve_bytes: the memory of `reserve`; None if it is not known.
        recorded: the most that the heap was used for by what it was chosen on; None if it is not known.
        notice: how the heap differs from the request, a sentence.
    """

    tuned_for: str | None = None
    metrics: Mapping[str, float | None] | None = None
    reserve: str = ""
    explored: str = ""
    reserve_bytes: int | None = None
    recorded: Recorded | None = None
    notice: str = ""


@dataclass(frozen=True)
class Surroundings:
    """What a heap is generated into.

    Attributes:
        functions: of the core, which a platform calls in addition to those of every heap.
        traps: whether an invalid pointer stops the program unless that defines something else; else it is ignored.
        entropy: where a random word comes from, a header and an expression, unless the program defines it.
    """

    functions: tuple[str, ...] = ()
    traps: bool = False
    entropy: tuple[str, ...] = ()


@dataclass(frozen=True)
class Extras:
    """What else is written: the files of `package_files`; PREFIX_heap_inline.h."""

    package: bool = False
    inline: bool = False


NOTHING = Banner()
HEAP_ALONE = Extras()
FREESTANDING = Surroundings()

_PACKAGE = "heapwright._generate"
_WIDTH = 118
_TOML_WIDTH = 113


def replayed_secret(prefix: str) -> str:
    """The definition by which links and guards at level full of `checks` are masked as a replay masks them."""
    return f"{prefix.upper()}_SECRET(heap)=((void)(heap), UINT32_C(0x5bd1e995))"


def align_unchecked(prefix: str) -> str:
    """The macro that turns off what the source checks at compile time: that its alignment suits the target's types."""
    return f"{prefix.upper()}_HEAP_ALIGN_UNCHECKED"


def check_prefix(prefix: str) -> None:
    """Raise ParameterError for a prefix that is no C identifier."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", prefix):
        raise ParameterError(
            f"{prefix!r} cannot begin a C name; valid: letters, digits and _, as in app", parameter="prefix"
        )


def generated_files(
    recipe: Recipe,
    prefix: str = "app",
    about: Banner = NOTHING,
    into: Surroundings = FREESTANDING,
    watched: bool = False,
    behind: str | None = None,
    inline: bool = False,
) -> dict[str, str]:
    """The text of each file, by its name: PREFIX_heap.c, PREFIX_heap.h, PREFIX_heap_test.c and PREFIX_heap_checks.h.

    A recipe in several memories also has these but the test of each PREFIX_MEMORY.

    Args:
        recipe: the allocator.
        prefix: what every public name begins with; a C identifier.
        about: what the comment at the top says.
        into: the platform.
        watched: also PREFIX_heap_watched.c, which reports allocations to AddressSanitizer and Valgrind.
        behind: the malloc that gets what the pools do not serve, by PREFIX_behind.c; None for none.
        inline: also PREFIX_heap_inline.h, by which calls of constant sizes are compiled where they are made.

    Raises ParameterError for a prefix that is no C identifier, a heap to watch that moves its objects, and a malloc of
    which `behind.family` knows no others, and a recipe whose lists cannot be inlined; HeapwrightError for a recipe that
    leaves nothing to it.
    """
    from heapwright._generate.constant_sizes import constant_sizes, require_plain_lists
    from heapwright._recipes.policy import policy

    check_prefix(prefix)
    called_behind = _called_behind(recipe, behind)
    if inline:
        require_plain_lists(recipe)
    if recipe.memory:
        return _memory_files(recipe, prefix, about, watched)
    values = policy(recipe)
    if recipe.pools[0].moves_objects and watched:
        raise ParameterError(
            f"{recipe.name or recipe.hash}: moves its objects, which no tool can follow; leave watched out",
            parameter="watched",
        )
    parts = _specialised(recipe, values, prefix, into)
    if behind is not None:
        parts = of_pools(parts, prefix)
    names = _common(recipe, prefix, about) | _of_recipe(recipe, values) | _of_code(parts, prefix)
    names |= _of_memory_map(recipe, values, parts, prefix)
    names |= {
        "traps": into.traps,
        "entropy": into.entropy,
        "counts": 2 if recipe.counters == "classes" else int(recipe.counts),
        "recorded": about.recorded,
        "behind": called_behind,
        "pools": "pools_" if behind is not None else "",
        "arena_bytes": _test_arena(values) if behind is None else values["fixed_end"],
    }
    if inline:
        names["constant"] = constant_sizes(recipe.canonical(), values)
    optional = {"heap_watched.c": watched, "behind.c": behind is not None, "heap_inline.h": inline}
    files = ["heap.c", "heap.h", "heap_test.c", "heap_checks.h", *(file for file, there in optional.items() if there)]
    return _written(prefix, {file: file for file in files}, names)


def _called_behind(recipe: Recipe, behind: str | None) -> dict[str, str]:
    """The functions of the malloc behind the pools; none without one. Raises as `generated_files` does."""
    if behind is None:
        return {}
    names = family(behind)
    require_in_front(recipe, recipe.name or recipe.hash)
    return names


def _specialised(recipe: Recipe, values: Mapping[str, Any], prefix: str, into: Surroundings) -> Specialised:
    """The core specialised for a recipe, with the functions that it and the platform need."""
    from heapwright._generate.specialise import Parting, specialise

    functions = (MOVING if recipe.pools[0].moves_objects else ALLOCATING) + LOOKING
    for wanted, more in (
        (recipe.counts, COUNTING),
        (recipe.reserve, RESERVING),
        (recipe.sites, SITED),
        (recipe.checks != "none", CHECKING),
        (flushes(recipe), FLUSHING),
    ):
        functions += more if wanted else ()
    public = _public(recipe, functions) | {name: name for name in into.functions}
    apart = [inner for inner, name in public.items() if name in APART]
    parting = Parting("heapwright.h", public, apart, finish=True, absent=absent_words(recipe))
    return specialise(core_sources(), values, list(public), prefix, defined(recipe.threads == "cached"), parting)


def _of_recipe(recipe: Recipe, values: Mapping[str, Any]) -> dict[str, object]:
    """What templates use of a recipe and its policy."""
    from heapwright._native import lib

    moving = recipe.pools[0] if recipe.pools[0].moves_objects else None
    least_header = min((getattr(pool, "header", 0) for pool in recipe.pools if pool.owns_blocks), default=0)
    return {
        "cache_bytes": recipe.cache_bytes,
        "cache_largest": values["cache_largest"],
        "arena_alignment": values["arena_align"],
        "least_arena": values["fixed_end"],
        "checks": recipe.checks,
        "guard": recipe.geometry.guard,
        "filled": lib.HW_FILLED,
        "sampled": lib.HW_SAMPLED,
        "waiting": lib.HW_WAITING,
        "moving": moving,
        "marked_apart": least_header + recipe.align >= 8,
        "headed": least_header > 0,
        "hooks": EVENTS,
        "reference_reach": values["pools"][0][moving.kind]["most"] >> 1 if moving else 0,
        "chained": moving is not None and moving.reference_words > 1,
        "aligned": any(pool.aligns for pool in recipe.pools),
        "offered": recipe.offered,
        "sites": [(word, number, _in_comment(site)) for word, number, site in c_names(recipe.sites)],
        "keeps": values["keeps"] or recipe.checks == "full",
        "priorities": ("", "_low") if recipe.reserve else ("",),
    }


def _of_code(parts: Specialised, prefix: str) -> dict[str, object]:
    """What templates use of the specialised core."""
    code = parts.functions + parts.apart
    notified = parts.functions.replace(f"{prefix.upper()}_NOTIFY(", f"{prefix}_notify(")
    return {
        "interface": parts.interface,
        "types": parts.types,
        "constants": parts.constants,
        "functions": notified.rstrip(),
        "apart": parts.apart.strip(),
        "boolean": re.search(r"\bbool\b", code),
        "asserting": "_ASSERT(" in code,
        "keyed": "_SECRET(" in code,
        "entries": _entries(parts.interface, prefix),
    }


def _of_memory_map(recipe: Recipe, values: Mapping[str, Any], parts: Specialised, prefix: str) -> dict[str, object]:
    """What templates use of the places of blocks and control data."""
    from heapwright._recipes.policy import SCRATCH

    scratch = f"{prefix.upper()}_SCRATCH_AT" if any(pool.has_null_node for pool in recipe.canonical().pools) else ""
    addresses = [Address(scratch, recipe.link_bytes, SCRATCH)] if scratch else []
    addresses += [
        Address(name, value, note.removeprefix("address of ").removeprefix("the "))
        for name, value, note in parts.addresses
    ]
    return {
        "blocks": block_maps(recipe, values),
        "control": control_table(recipe, values, addresses),
        "addresses": addresses,
        "longest": max((len(address.name) for address in addresses), default=0),
        "scratch": scratch,
    }


def _memory_files(recipe: Recipe, prefix: str, about: Banner, watched: bool) -> dict[str, str]:
    """The files of a recipe in several memories: a heap in each, and what routes calls to them."""
    from heapwright._recipes.policy import policy
    from heapwright._recipes.pools import MAX_REQUEST

    files: dict[str, str] = {}
    memories = []
    for name, part in recipe.parts().items():
        own = f"{prefix}_{name}"
        parts = generated_files(part, own, watched=watched)
        files |= {file: text for file, text in parts.items() if not file.endswith("_test.c")}
        values, (least, most) = policy(part), part.offered
        bounded = most < MAX_REQUEST
        conditions = [f"n >= {least}u"] * (least > 1) + [f"n <= {most}u"] * bounded
        size = dict(recipe.memory)[name]
        sizes = f"requests of {least:,} to {most:,}" if bounded else f"requests from {least:,}"
        memories.append(
            {
                "name": name,
                "prefix": own,
                "upper": own.upper(),
                "header": f"{own}_heap.h",
                "source": f"{own}_heap.c",
                "unchecked": f"-D{align_unchecked(own)}",
                "title": f"{name}: {size:,} bytes, {sizes}",
                "bytes": size,
                "conditions": conditions,
                "least": values["fixed_end"],
                "test_bytes": _test_arena(values),
            }
        )
    names = {"memories": memories, "compared": any(memory["conditions"] for memory in memories)}
    suffixes = {"heap.c": "memories.c", "heap.h": "memories.h", "heap_test.c": "memories_test.c"}
    return _written(prefix, suffixes, _common(recipe, prefix, about) | names) | files


def _written(prefix: str, suffixes: Mapping[str, str], names: Mapping[str, object]) -> dict[str, str]:
    """The files PREFIX_SUFFIX, each of its template."""
    return {f"{prefix}_{suffix}": template(_PACKAGE, file).render(names) for suffix, file in suffixes.items()}


def _common(recipe: Recipe, prefix: str, about: Banner) -> dict[str, object]:
    """What all templates ask for."""
    return {
        "prefix": prefix,
        "upper": prefix.upper(),
        "unchecked": align_unchecked(prefix),
        "title": _in_comment(recipe.name) or f"recipe {recipe.hash}",
        "about": [_in_comment(line) for line in _about(recipe, about)],
        "toml": [_in_comment(line) for line in _narrow(recipe.to_toml().rstrip())],
        "version": __version__,
        "hash": recipe.hash,
        "threads": recipe.threads,
        "align": recipe.align,
        "checked": recipe.checks != "none",
    }


def _entries(interface: str, prefix: str) -> list[dict[str, str | bool]]:
    """The functions that an interface declares, and whether they neither hand out nor take back an object."""
    info = {name.removeprefix("hw_") for name in (*ALLOCATING, *RESERVING, *SITED)}
    result = re.findall(rf"^(\w[\w ]*[ *]){prefix}_(\w+)\(([^)]*)\);", interface, re.MULTILINE)
    return [
        {
            "type": kind,
            "name": f"{prefix}_{name}",
            "unseen": f"{prefix}_unseen_{name}",
            "parameters": parameters,
            "arguments": ", ".join(re.findall(r"(\w+)(?:,|$)", parameters)),
            "looks": name.removeprefix("pools_") not in info,
        }
        for kind, name, parameters in result
    ]


def generate(
    recipe: Recipe,
    directory: str | Path,
    prefix: str = "app",
    about: Banner = NOTHING,
    watched: bool = False,
    behind: str | None = None,
    beside: Extras = HEAP_ALONE,
) -> list[Path]:
    """Write the files of `generated_files` into `directory`, made where it is missing; returns their paths.

    With what it was tuned for also PREFIX_heap.toml, the recipe to replay.

    Files take their places once all are written: a full disk leaves what was there, and no new folder. Raises
    HeapwrightError where it cannot write.
    """
    files = generated_files(recipe, prefix, about, watched=watched, behind=behind, inline=beside.inline)
    packed = package_files(files, prefix, described(recipe)) if beside.package else {}
    return write_files(files | recipe_file(recipe, prefix, about) | packed, Path(directory))


def described(recipe: Recipe) -> str:
    """What a package says of the heap, in a sentence."""
    return f"A heap in C11 without dependencies, generated by Heapwright: {recipe.name or recipe.hash}"


def recipe_file(recipe: Recipe, prefix: str, about: Banner) -> dict[str, str]:
    """The recipe of a heap that was tuned, as it is generated: what the numbers of its header are those of."""
    return {f"{prefix}_heap.toml": recipe.to_toml()} if about.tuned_for else {}


def write_files(files: Mapping[str, str], directory: Path) -> list[Path]:
    """Write the files, by their names, into `directory` as `generate` does."""
    if directory.exists() and not directory.is_dir():
        raise HeapwrightError(f"{directory}: is no folder; name one", parameter="output")
    with filling(directory) as put:
        return [put(name, text) for name, text in files.items()]


def _public(recipe: Recipe, functions: Sequence[str]) -> dict[str, str]:
    """The functions that a program calls, by those of the core that do what the recipe says for several threads."""
    if recipe.threads == "none":
        return {name: name for name in functions}
    around = {name: name if name in CONSTANT else f"hw_locked_{name.removeprefix('hw_')}" for name in functions}
    if recipe.threads == "cached":
        around |= {name: f"hw_cached_{name.removeprefix('hw_')}" for name in WITH_CACHES}
        around |= {name: name for name in CACHES}
        around["hw_usable_size"] = "hw_usable_size"
    return {inner: name for name, inner in around.items()}


def _in_comment(text: str) -> str:
    """The text without what would end a C comment, look as if it began one, or hide from its reader."""
    return printable(text).replace("*/", "* /").replace("/*", "/ *")


def _narrow(toml: str) -> list[str]:
    """The lines of a recipe, wide ones broken where TOML allows it: paragraphs of prose, text in quotes, lists."""
    parts = toml.split('"""')
    parts[::2] = ["\n".join(_narrow_line(line) for line in part.split("\n")) for part in parts[::2]]
    parts[1::2] = ["\n\n".join(_narrow_paragraph(text) for text in part.split("\n\n")) for part in parts[1::2]]
    return '"""'.join(parts).split("\n")


def _narrow_line(line: str) -> str:
    key, equals, value = line.partition(" = ")
    if len(line) <= _TOML_WIDTH or not equals:
        return line
    if value.startswith("["):
        return "\n".join(textwrap.wrap(line, _TOML_WIDTH, subsequent_indent="    "))
    parts = textwrap.wrap(value[1:-1], _TOML_WIDTH - 7, break_long_words=False, break_on_hyphens=False)
    return "\n".join([f'{key} = """\\', *(f"    {part} \\" for part in parts[:-1]), f'    {parts[-1]}"""'])


def _narrow_paragraph(text: str) -> str:
    """Prose filled again if a line is too wide, but for its first and last line breaks."""
    if max(map(len, text.split("\n"))) <= _TOML_WIDTH:
        return text
    filled = textwrap.fill(text.strip("\n"), _TOML_WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\n" * text.startswith("\n") + filled + "\n" * text.endswith("\n")


def _about(recipe: Recipe, about: Banner) -> list[str]:
    """Lines of the comment that says what the heap is and what it was chosen for."""
    source = f"After {recipe.source}." if recipe.source else ""
    tuned = f"Tuned for {about.tuned_for}." if about.tuned_for else ""
    steps = f"By construction {worst_steps(recipe).sentence()}."
    built = f"Made of the core of {engine().sentence()}."
    measured = _measured(about.metrics or {})
    info = (recipe.summary(), about.notice, source, tuned, measured, about.reserve, about.explored, steps, built)
    return [line for paragraph in info for line in textwrap.wrap(paragraph, _WIDTH - 4)]


def _measured(metrics: Mapping[str, float | None]) -> str:
    texts = {
        "footprint_bytes": "{:,} bytes of arena",
        "requested_peak_bytes": "for a peak of {:,} requested",
        "accesses": "{:,} metadata accesses",
        "accesses_malloc_max": "at most {:,} in a malloc",
        "accesses_realloc_max": "in a realloc at most {:,} and its copy",
        "accesses_free_max": "at most {:,} in a free",
    }
    known = {key: value for key in texts if (value := metrics.get(key)) is not None}
    words = [texts[key].format(value) for key, value in known.items() if value or key != "accesses_realloc_max"]
    return f"Measured there: {', '.join(words)}." if words else ""


def _test_arena(values: Mapping[str, object]) -> int:
    """Bytes of the generated test's arena: too few for all objects at a time, and within what the recipe reaches."""
    start, reach = values["fixed_end"], values["reach"]
    assert isinstance(start, int) and isinstance(reach, int)
    return int(min(start + 24576, reach))
