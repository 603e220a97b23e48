"""A policy of a few members, for C that the partial evaluator specialises in tests."""

from __future__ import annotations

import re
from textwrap import dedent
from typing import Any

from heapwright._generate.specialise import specialise

POLICY = """\
#ifndef HW_POLICY_H
#define HW_POLICY_H
#include <stdint.h>
enum { HW_QUICK = 1, HW_GENERAL = 2 };
enum { HW_FIRST, HW_BEST, HW_WORST };
struct hw_links {
    uint8_t shift; /* log2 of the unit of links */
};
struct hw_quick {
    uint32_t count;    /* number of lists */
    uint32_t sizes[8]; /* size of each list's blocks */
};
/* Blocks of any size. */
struct hw_general {
    struct hw_links links;
    uint32_t header; /* bytes before the payload */
    uint32_t align;
    uint32_t fit;
    /* 1: blocks repeat their size at their end */
    uint32_t tags;
};
struct hw_pool {
    uint32_t kind;
    uint32_t min_size;
    uint32_t max_size;
    union {
        struct hw_quick quick;
        struct hw_general general;
    };
};
struct hw_policy {
    uint32_t align; /* alignment of payloads */
    uint32_t pool_count;
    struct hw_pool pools[4];
};
#endif
"""


SINK = "static inline uint32_t sink(uint32_t *x)\n{\n    *x += 1u;\n    return *x;\n}\n"
"""A function with an effect, which is kept."""

HEAD = "static inline uint32_t hw_f(const struct hw_policy *p, uint32_t n)\n{\n"
"""How a function begins whose statements begin in its third line."""


def general(**values: int) -> dict[str, Any]:
    shift = values.pop("shift", 0)
    limits = {"min_size": values.pop("min_size", 0), "max_size": values.pop("max_size", 0xFFFFFFFF)}
    defaults = {"header": 4, "align": 8, "fit": 0, "tags": 0}
    return {"kind": 2, **limits, "general": {**defaults, **values, "links": {"shift": shift}}}


def quick(*sizes: int) -> dict[str, Any]:
    lists = {"count": len(sizes), "sizes": list(sizes)}
    return {"kind": 1, "min_size": 0, "max_size": 0xFFFFFFFF, "quick": lists}


def policy(*pools: dict[str, Any]) -> dict[str, Any]:
    return {"align": 8, "pool_count": len(pools), "pools": list(pools)}


def shipped(code: str, *pools: dict[str, Any], entry: str = "hw_f") -> str:
    """The specialised text of a piece of C behind POLICY, without its prefix."""
    chosen = policy(*(pools or (general(),)))
    return unprefixed(specialise([("policy.h", POLICY), ("core.h", dedent(code))], chosen, [entry], "app").text)


def function(code: str, *pools: dict[str, Any]) -> str:
    """The functions of the specialised text, without its prefix."""
    chosen = policy(*(pools or (general(),)))
    parts = specialise([("policy.h", POLICY), ("core.h", dedent(code))], chosen, ["hw_f"], "app")
    return unprefixed(parts.functions)


def unprefixed(text: str) -> str:
    """Text specialised for the prefix app, without it."""
    return re.sub(r"\b(app|APP)_", "", text)


def body(statements: str, *pools: dict[str, Any], result: str = "uint32_t", more: str = "") -> str:
    """What is left of the body of hw_f(p, n), where g is the first pool, without its indentation."""
    code = f"""{more}
static inline {result} hw_f(const struct hw_policy *p, uint32_t n)
{{
    const struct hw_general *g = &p->pools[0].general;
{dedent(statements)}
}}
"""
    text = function(code, *pools)
    assert "hw_" not in text
    return dedent(text[text.index(" f(") :].split("{\n", 1)[1].rsplit("}\n", 1)[0]).removeprefix("(void)n;\n")


def lines(text: str) -> str:
    return dedent(text).lstrip("\n")
