"""Writes a copy of the core and of the replaying in which what nearly all recipes have in common is constant.

The switches below are the same in nine of ten recipes of a default space. Read as numbers, not from the policy, they
let the compiler drop what such recipes never do, and a replay takes two thirds of the time. The text stays that of
csrc/ and native/: only accesses to these fields are replaced, as the core never writes to a policy.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

POLICY = {
    "align": 8,
    "checks": 0,
    "counters_at": 0,
    "threads": 0,
    "empty_as_one": 1,
    "grows_down": 0,
    "end_header": 0,
}
QUICK = {
    "by_size": 0,
    "mixed": 0,
    "block_header": 4,
    "block_unit_shift": 3,
    "block_doubles": 0,
    "block_least": 16,
}
GENERAL = {
    "header": 4,
    "trailer": 0,
    "overhead": 4,
    "pad": 0,
    "node": 4,
    "align": 8,
    "unit_shift": 3,
    "min_block": 16,
    "powers": 0,
    "tag_in_header": 0,
    "free_list": "HW_DOUBLE",
    "unsorted": 0,
    "search_most": 0,
    "search_from": "HW_FROM_START",
    "split_tail": 0,
    "refile": 0,
    "merge_enough": 0,
    "keep_place": 0,
    "bin_last": 0,
    "bin_less": 0,
    "top": "HW_TOP_LAST",
    "end_word": 0,
    "grow_least": 0,
    "resize": "HW_RESIZE_IN_PLACE",
    "region": 0,
    "checks": 0,
    "size_raw": 1,
}
FIELD = {"bytes": 4, "natural": 1}
"""Of header words and links."""

SOURCE = """/* Made by native/ordinary.py. */
#include "ordinary.h"

#include "replay.h"

static int has_ordinary_field(const struct hw_field *it)
{{
    return {field};
}}

static int is_ordinary_quick(const struct hw_quick *it)
{{
    return has_ordinary_field(&it->links.field) && it->links.shift == 0 && {quick};
}}

static int is_ordinary_general(const struct hw_general *it)
{{
    return has_ordinary_field(&it->word) && has_ordinary_field(&it->links.field) && it->links.shift == 0 && {general};
}}

int hw_is_ordinary(const struct hw_policy *it)
{{
    const struct hw_pool *first = &it->pools[0];
    const struct hw_pool *last = &it->pools[it->pool_count - 1u];
    return it->pool_count <= 2u && (first == last || (first->kind == HW_QUICK && is_ordinary_quick(&first->quick))) &&
           last->kind == HW_GENERAL && is_ordinary_general(&last->general) && {policy};
}}

int hw_replay_ordinary(const struct hw_policy *policy, const struct hw_calls *calls, void *memory, size_t bytes,
                       int check, const struct hw_watch *watch, const struct hw_timeline *timeline,
                       struct hw_metrics *metrics)
{{
    struct hw_policy two = *policy;
    if (two.pool_count == 1u) {{
        /* quick lists of no size are never asked for anything */
        two.pools[1] = policy->pools[0];
        memset(&two.pools[0], 0, sizeof two.pools[0]);
        two.pools[0].kind = HW_QUICK;
        two.pools[0].max_size = HW_MAX_REQUEST;
        two.pool_count = 2u;
    }}
    return replay_all(&two, calls, memory, bytes, check, watch, timeline, metrics);
}}
"""


def constant(value: int | str) -> str:
    """A value as C text."""
    return value if isinstance(value, str) else f"{value}u"


def conditions(fields: dict[str, int | str]) -> str:
    """A condition in C: whether `it` has these values."""
    return " && ".join(f"it->{name} == {constant(value)}" for name, value in fields.items())


def folded(text: str) -> str:
    """C text with constants for the fields: `g`, `q` and `p` are what the core calls the parts of a policy."""
    for owner, fields in (
        (r"g->|general\.", GENERAL),
        (r"q->", QUICK),
        (r"p->|policy->", {**POLICY, "pool_count": 2}),
        (r"field->|word->|word\.|field\.", FIELD),
        (r"links->", {"shift": 0}),
    ):
        for name, value in fields.items():
            text = re.sub(rf"(?:\b\w+(?:->|\.))*\b(?:{owner}){name}\b", constant(value), text)
    pool = r"(?:\(\w+\)|\w+)(?:->pools\[\w+\])?(?:->|\.)"
    text = re.sub(rf"{pool}kind == HW_(?:FIXED|BUDDY|PARTITION|COMPACT)\b", "0", text)
    return text.replace("kind == HW_GENERAL", "kind != HW_QUICK")


def main(output: Path) -> None:
    """Fill a folder with the headers and `ordinary.c`."""
    output.mkdir(parents=True, exist_ok=True)
    for path in [*ROOT.glob("csrc/*.h"), *ROOT.glob("native/*.h")]:
        text = path.read_text(encoding="utf-8")
        is_open = path.name in ("policy.h", "native.h")  # what a caller passes stays as it is
        (output / path.name).write_text(text if is_open else folded(text), encoding="utf-8")
    source = SOURCE.format(
        field=conditions(FIELD), quick=conditions(QUICK), general=conditions(GENERAL), policy=conditions(POLICY)
    )
    (output / "ordinary.c").write_text(source, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
