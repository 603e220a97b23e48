"""Writes copies of the core and of the replaying in which what many recipes have in common is constant.

The first switches below are the same in nine of ten recipes of a default space, and most of these recipes are of one of
a few shapes, in which others are the same too. Read as numbers, not from the policy, they let the compiler drop what
such recipes never do. The text stays that of csrc/ and native/: the generator replaces what reads these fields, as the
core never writes to a policy.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from heapwright._generate.partial_policy import Sources  # noqa: E402

Fields = dict[str, int | str]

ORDINARY: dict[str, Fields] = {
    "policy": {
        "checks": 0,
        "reserve": 0,
        "counters_at": 0,
        "classes_at": 0,
        "threads": 0,
        "empty_as_one": 1,
        "grows_down": 0,
        "end_header": 0,
        "sited": 0,
        "end_mark": 0,
    },
    "quick": {
        "by_size": 0,
        "mixed": 0,
        "block_header": 4,
        "block_doubles": 0,
    },
    "general": {
        "header": 4,
        "trailer": 0,
        "overhead": 4,
        "pad": 0,
        "node": 4,
        "powers": 0,
        "tag_in_header": 0,
        "free_list": "HW_DOUBLE",
        "unsorted": 0,
        "search_most": 0,
        "search_from": "HW_FROM_START",
        "split_tail": 0,
        "refile": 0,
        "merge_enough": 0,
        "merged": "HW_MERGED_FILED",
        "bin_last": 0,
        "bin_less": 0,
        "bin_fill": 0,
        "top": "HW_TOP_LAST",
        "end_word": 0,
        "grow_least": 0,
        "resize": "HW_RESIZE_IN_PLACE",
        "region": 0,
        "checks": 0,
        "size_raw": 1,
    },
    "links": {"shift": 0},
    "field": {"bytes": 4, "natural": 1},
    "pool": {"min_size": 0, "max_size": "HW_MAX_REQUEST", "site": 0},
    "engine": {"stored": "((uint8_t *)0)"},
}
"""What all copies have in common; a field is a header word's, or a link's."""

GUARDED: dict[str, Fields] = {
    "policy": ORDINARY["policy"] | {"checks": "HW_CHECKS_FULL"},
    "quick": {"block_doubles": 0},
    "general": {
        "trailer": 4,
        "pad": 0,
        "powers": 0,
        "bin_fill": 0,
        "region": 0,
        "checks": "HW_CHECKS_FULL",
        "size_raw": 1,
    },
    "links": {"shift": 0, "hardened": 1, "keyed": "HW_KEYS_NONE"},
    "field": ORDINARY["field"],
    "pool": {"min_size": 0, "site": 0},
    "engine": {"seen": 0},
}
"""Fields of level full, which has one copy for many shapes. No reader sees its masked words, so it masks nothing."""

LAST: Fields = {"last": 1}
"""Fields of the second pool, the only one whose `last` is read."""

BEHIND: dict[str, Fields] = {"pool": {"cached": 1}}
"""The same of the ordinary ones alone: behind empty quick lists is another answer than behind none."""

KINDS = {("hw_pool", "kind"): ("HW_QUICK", "HW_GENERAL")}
"""What pools there are."""

PLAIN: dict[str, Fields] = {
    "policy": {"flushes": 0},
    "quick": {
        "limit_blocks": 0,
        "flush": "HW_FLUSH_BEFORE_REFUSING",
        "flush_from": 0,
        "apart": 0,
        "marks": 0,
    },
    "general": {"order": "HW_LIFO", "large_order": "HW_LIFO"},
    "links": {"hardened": 0},
}
"""What the shapes have in common: lists that nothing bounds, last in, first out."""

MERGING: dict[str, Fields] = {
    "immediate": {"coalesce": "HW_IMMEDIATE", "boundary_tags": 1, "flag_bits": 2},
    "forward": {"coalesce": "HW_FORWARD", "boundary_tags": 0, "flag_bits": 1},
    "never": {"coalesce": "HW_NEVER", "boundary_tags": 0, "flag_bits": 1},
}
LISTS: dict[str, dict[str, Fields]] = {
    "list": {"general": {"bins": 0, "victim_up_to": 0, "close_bins": 0}, "pool": {"fast_max": "HW_MAX_REQUEST"}},
    "bins": {"general": {}},
}

SHAPES: dict[str, dict[str, Fields]] = {
    f"{merging}_{lists}": PLAIN | each | {"general": PLAIN["general"] | MERGING[merging] | each["general"]}
    for lists, each in LISTS.items()
    for merging in MERGING
}
"""A copy each, of which the first that a policy fits replays it; what fits none has one of its own."""

SOURCE = """/* Made by native/build_copies.py. */
#include "ordinary.h"

#include "replay_loop.h"

hw_replaying hw_replay_{name};

int hw_replay_{name}(const struct hw_policy *policy, const struct hw_calls *calls, void *memory, size_t bytes,
                     const struct hw_options *options, struct hw_metrics *metrics)
{{
    return replay_all(policy, calls, memory, bytes, options, metrics);
}}
"""

TESTS = """
static int {name}_links(const struct hw_links *it)
{{
    return {links};
}}

static int {name}_quick(const struct hw_quick *it)
{{
    return {name}_links(&it->links) && {quick};
}}

static int {name}_general(const struct hw_general *it)
{{
    return {name}_links(&it->links) && {general};
}}

/* Whether a policy of quick lists and a general pool leaves its switches there. */
static int {name}(const struct hw_policy *it)
{{
    const struct hw_pool *first = &it->pools[0];
    const struct hw_pool *second = &it->pools[1];
    return {policy} && {name}_quick(&first->quick) && {name}_general(&second->general);
}}
"""

CHOICE = """/* Made by native/build_copies.py. */
#include "ordinary.h"

#include <string.h>

#include "policy.h"

{declarations}
{tests}
/* The policy with quick lists in front, of no size where it has none, which then hold nothing; 0 where it is
 * of other pools. */
static int is_of_two(const struct hw_policy *policy, struct hw_policy *two)
{{
    *two = *policy;
    if (policy->pool_count == 1u) {{
        two->pools[1] = policy->pools[0];
        memset(&two->pools[0], 0, sizeof two->pools[0]);
        two->pools[0].kind = HW_QUICK;
        two->pools[0].max_size = two->pools[0].fast_max = HW_MAX_REQUEST;
        two->pools[0].quick.links = policy->pools[0].general.links;
        two->pools[0].quick.block_header = policy->pools[0].general.overhead;
        two->pools[0].quick.block_unit_shift = policy->pools[0].general.unit_shift;
        two->pools[0].quick.block_least = policy->pools[0].general.min_block;
        two->pool_count = 2u;
    }}
    return two->pool_count == 2u && two->pools[0].kind == HW_QUICK && two->pools[1].kind == HW_GENERAL;
}}

int hw_leaves_switches(const struct hw_policy *policy)
{{
    struct hw_policy two;
    return is_of_two(policy, &two) && (is_ordinary(&two) || is_guarded(&two));
}}

int hw_replay_ordinary(const struct hw_policy *policy, const struct hw_calls *calls, void *memory, size_t bytes,
                       const struct hw_options *options, struct hw_metrics *metrics)
{{
    struct hw_policy two;
    (void)is_of_two(policy, &two);
    hw_replaying *own = hw_replay_any;
{choices}
    return own(&two, calls, memory, bytes, options, metrics);
}}
"""


def constant(value: int | str) -> str:
    """A value as C text."""
    return value if isinstance(value, str) else f"{value}u"


def conditions(fields: Fields, it: str = "it->") -> str:
    """A condition in C: whether `it` has these values."""
    return " && ".join(f"{it}{name} == {constant(value)}" for name, value in fields.items())


def known(*shape: dict[str, Fields]) -> dict[str, dict[str, str]]:
    """What reads of the policy are in a copy, by struct and field."""
    parts = [*shape, {"policy": {"pool_count": 2}, "pool": LAST}]
    names = dict.fromkeys(name for part in parts for name in part)
    return {
        f"hw_{name}": {field: constant(value) for part in parts for field, value in part.get(name, {}).items()}
        for name in names
    }


def test(name: str, shape: dict[str, Fields]) -> str:
    """C text of a condition: whether a policy has a shape."""

    def told(part: str, *of: str) -> list[str]:
        return [conditions(shape[part], it) for it in of if part in shape]

    return TESTS.format(
        name=name,
        policy=" && ".join([*told("policy", "it->"), *told("pool", "first->", "second->")]),
        quick=conditions(shape["quick"]),
        links=" && ".join([*told("links", "it->"), *told("field", "it->field.")]),
        general=" && ".join([*told("general", "it->"), *told("field", "it->word.")]),
    )


def headers(folder: str) -> list[tuple[str, str]]:
    """The headers of a folder and of those in it, by their paths there, with their text."""
    paths = sorted((ROOT / folder).rglob("*.h"))
    return [(path.relative_to(ROOT / folder).as_posix(), path.read_text(encoding="utf-8")) for path in paths]


def main(output: Path) -> None:
    """Fill a folder with `ordinary.c`, which chooses, and a folder for each copy, of headers and `replay.c`."""
    sources = Sources(headers("csrc"), headers("native"))
    copies = {name: known(ORDINARY, BEHIND, shape) for name, shape in {**SHAPES, "any": {}}.items()}
    copies["guarded"] = known(GUARDED)
    for name, fields in copies.items():
        folder = output / name
        folder.mkdir(parents=True, exist_ok=True)
        for header, text in sources.with_known(fields, KINDS).items():
            (folder / header).parent.mkdir(exist_ok=True)
            (folder / header).write_text(text, encoding="utf-8")
        (folder / "replay.c").write_text(SOURCE.format(name=name), encoding="utf-8")
    choice = CHOICE.format(
        declarations="\n".join(f"hw_replaying hw_replay_{name};" for name in copies),
        tests="".join(
            test(f"is_{name}", shape) for name, shape in {"ordinary": ORDINARY, "guarded": GUARDED, **SHAPES}.items()
        ),
        choices="".join(
            f"    {'else ' if at else ''}if (is_{name}(&two)) {{\n        own = hw_replay_{name};\n    }}\n"
            for at, name in enumerate(["guarded", *SHAPES])
        ).rstrip(),
    )
    (output / "ordinary.c").write_text(choice, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
