"""Specialised code does what its source does.

The same source is compiled twice, with the policy as a run-time constant and rewritten for it, and both are driven with
the same random inputs: a small machine with every construct of the core's grammar, and the core itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from c_programs import COMPILER, CSRC, STRICT, policy_bytes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recipes_random import sample
from run_length import brief
from small_policy import POLICY, general, policy, quick
from tool_requirements import tool

from heapwright._generate.core import core_sources
from heapwright._generate.specialise import Parting, specialise
from heapwright._recipes.policy import policy as policy_of
from heapwright._recipes.zoo import catalogue as zoo

STRICTLY = [*STRICT, "-ffreestanding"]
CORE_ENTRIES = ["init", "malloc", "calloc", "realloc", "aligned_alloc", "free", "usable_size", "statistics", "check"]


def test_long_lines_are_broken_as_clang_format_would() -> None:
    source = """
    if (n > g->header + 1u && n < g->header * 10u && n != g->align * 77u && n != g->align * 78u && n != g->align * 7u &&
        n != 5u) {
        return some_function_with_a_long_name(n + g->header, n * g->header, n - g->header, n + g->align, n * g->align,
                                              n);
    }
    return n;
    """
    more = """
static inline uint32_t some_function_with_a_long_name(uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t e,
                                                      uint32_t f)
{
    return a + b + c + d + e + f;
}
"""
    style = "{BasedOnStyle: LLVM, IndentWidth: 4, ColumnLimit: 120, BreakBeforeBraces: Linux}"
    core = f"""{more}static inline uint32_t hw_f(const struct hw_policy *p, uint32_t n)
{{
    const struct hw_general *g = &p->pools[0].general;
{source}
}}
"""
    text = specialise([("policy.h", POLICY), ("core.h", core)], policy(general()), ["hw_f"], "app").functions
    formatter = tool("clang-format", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    neat = subprocess.run([formatter, f"--style={style}"], input=text, capture_output=True, text=True, check=True)
    assert neat.stdout == text and max(map(len, text.splitlines())) <= 120


MACHINE = """\
/* A small machine with every construct of the grammar. */

struct hw_heap {
    uint32_t memory[64];
    uint32_t steps;
};

enum { HW_DONE = 1, HW_STUCK = 2, HW_LOST };

#define SLOT(x) ((x) & 63u)
#define HW_ROUNDS 3u

static inline uint32_t load(struct hw_heap *h, uint32_t at)
{
    h->steps++;
    return h->memory[SLOT(at)];
}

static inline void store(struct hw_heap *h, uint32_t at, uint32_t value)
{
    h->steps++;
    h->memory[SLOT(at)] = value;
}

static inline void note(const struct hw_general *g, struct hw_heap *h, uint32_t value)
{
    if (g->tags) {
        store(h, 63u, value);
    }
}

static inline uint32_t unit(const struct hw_general *g)
{
    return 1u << g->links.shift;
}

static inline uint32_t round_up(const struct hw_general *g, uint32_t n)
{
    const uint32_t mask = g->align * unit(g) - 1u;
    return (n + g->header + mask) & ~mask;
}

static inline uint32_t level(const struct hw_general *g, const uint32_t depth, struct hw_heap *h, uint32_t n)
{
    if (depth == 0u) {
        return n >> g->links.shift;
    }
    const uint32_t below = level(g, depth - 1u, h, n + depth);
    note(g, h, below);
    return below ^ depth;
}

static inline int better(const struct hw_general *g, uint32_t have, uint32_t best)
{
    if (g->fit == HW_WORST) {
        return have > best;
    }
    return best == 0u || have < best;
}

static inline uint32_t general_find(const struct hw_general *g, struct hw_heap *h, uint32_t n)
{
    const uint32_t size = round_up(g, n);
    uint32_t best = 0;
    uint32_t found = 0;
    for (uint32_t at = 1u; at < 20u; at++) {
        const uint32_t have = load(h, at) % 97u;
        if (have < (size & 31u)) {
            continue;
        }
        if (g->fit == HW_FIRST) {
            return at;
        }
        if (better(g, have, best)) {
            best = have;
            found = at;
        }
        if (g->fit == HW_BEST && have == (size & 31u)) {
            break;
        }
    }
    if (g->tags && found == 0u) {
        store(h, 20u, size);
    } else if (g->fit == HW_WORST) {
        found += best != 0u;
    }
    note(g, h, found);
    return found;
}

static inline uint32_t quick_find(const struct hw_quick *q, struct hw_heap *h, uint32_t n)
{
    uint32_t list = 0;
    while (list < q->count && q->sizes[list] != n % 50u) {
        list++;
    }
    if (list < q->count) {
        store(h, 30u + list, load(h, 30u + list) + q->sizes[list]);
        return 30u + list;
    }
    uint32_t sum = 0;
    for (uint32_t i = 0; i < q->count; i++) {
        sum += q->sizes[i] * (i + 1u);
    }
    return sum % 2u ? 0u : sum;
}

#define HW_ASK(pool, what, ...) \\
    ((pool)->kind == HW_QUICK ? quick_##what(&(pool)->quick, __VA_ARGS__) \\
                              : general_##what(&(pool)->general, __VA_ARGS__))

static inline uint32_t pool_find(const struct hw_pool *pool, struct hw_heap *h, uint32_t n)
{
    return HW_ASK(pool, find, h, n);
}

static inline uint32_t above(const struct hw_policy *p, const uint32_t owner, struct hw_heap *h, uint32_t n)
{
    uint32_t result = 0;
    for (uint32_t i = 0; i < owner; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool->kind == HW_QUICK) {
            if (load(h, 40u + i) == n) {
                return result;
            }
            result += i + pool->quick.count;
        }
    }
    return result;
}

static inline uint32_t route(const struct hw_policy *p, struct hw_heap *h, uint32_t n)
{
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (n >= pool->min_size && n <= pool->max_size) {
            uint32_t r = pool_find(pool, h, n);
            if (pool->kind == HW_GENERAL && r == 0u) {
                r = above(p, i, h, n);
            }
            if (r) {
                return r;
            }
        }
    }
    store(h, 62u, load(h, 62u) + 1u);
    return 0;
}

static inline uint32_t hw_step(const struct hw_policy *p, struct hw_heap *h, uint32_t n)
{
    uint32_t result = route(p, h, n);
    for (uint32_t i = 0; i < p->pool_count; i++) {
        if (p->pools[i].kind == HW_GENERAL) {
            result = result * 31u + level(&p->pools[i].general, HW_ROUNDS, h, n);
        }
    }
    do {
        result ^= p->align;
        result = (result << 1) | (result >> 31);
    } while (p->pool_count > 2u && result % 5u == 1u);
    if (result % 3u == 0u) {
        return result + HW_DONE;
    }
    return p->align > 8u && result % 3u == 1u ? HW_LOST : result * HW_STUCK;
}
"""


MACHINE_DRIVER = """
#include <stdio.h>
int main(void)
{
    static struct HEAP heap;
    uint32_t seed = 1u;
    for (uint32_t i = 0; i < 64u; i++) {
        heap.memory[i] = i * 2654435761u;
    }
    for (uint32_t i = 0; i < 2000u; i++) {
        seed = seed * 1664525u + 1013904223u;
        heap.memory[seed >> 26] ^= STEP(&heap, (seed >> 8) % (i % 7u ? 300u : 70000u));
    }
    for (uint32_t i = 0; i < 64u; i++) {
        printf("%u ", (unsigned)heap.memory[i]);
    }
    printf("%u\\n", (unsigned)heap.steps);
    return 0;
}
"""


def compiled(folder: Path, name: str, text: str, flags: Sequence[str]) -> Path:
    source = folder / f"{name}.c"
    source.write_text(text)
    result = subprocess.run([COMPILER, *flags, str(source), "-o", str(folder / name)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[:4000]
    return folder / name


def printed(program: Path, *arguments: str) -> str:
    result = subprocess.run([str(program), *arguments], capture_output=True, text=True, timeout=20)
    assert result.returncode == 0, result.stdout[-500:]
    return result.stdout


def initialiser(values: Mapping[str, Any]) -> str:
    """A policy as C writes it."""

    def text(value: Any) -> str:
        if isinstance(value, Mapping):
            return initialiser(value)
        return "{" + (", ".join(map(text, value)) or "0") + "}" if isinstance(value, list) else f"{int(value)}u"

    return "{" + (", ".join(f".{name} = {text(value)}" for name, value in values.items()) or "0") + "}"


sizes = st.lists(st.integers(0, 49), max_size=4, unique=True)


generals = st.builds(
    general,
    header=st.sampled_from([0, 4, 8]),
    align=st.sampled_from([1, 4, 8]),
    fit=st.integers(0, 2),
    tags=st.integers(0, 1),
    shift=st.integers(0, 2),
    min_size=st.sampled_from([0, 0, 40]),
    max_size=st.sampled_from([0xFFFFFFFF, 0xFFFFFFFF, 90]),
)


quicks = sizes.map(lambda found: quick(*found))


policies = st.lists(st.one_of(quicks, generals), max_size=4).map(lambda pools: policy(*pools))


@settings(max_examples=brief(12, 25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chosen=policies, align=st.sampled_from([0, 8, 16]))
def test_specialised_code_does_what_the_source_does(chosen: dict[str, Any], align: int, tmp_path: Path) -> None:
    chosen["align"] = align
    generic = f"{POLICY}{MACHINE}static const struct hw_policy policy = {initialiser(chosen)};\n"
    special = specialise([("policy.h", POLICY), ("machine.h", MACHINE)], chosen, ["hw_step"], "app").text
    compiled(tmp_path, "alone.o", special, [*STRICTLY, "-Os", "-c"])
    steps = {
        "generic": "#define HEAP hw_heap\n#define STEP(h, n) hw_step(&policy, h, n)\n",
        "special": "#define HEAP app_heap\n#define STEP app_step\n",
    }
    texts = {"generic": generic, "special": special}
    outputs = [
        printed(compiled(tmp_path, name, texts[name] + steps[name] + MACHINE_DRIVER, ["-std=c11", "-O0"]))
        for name in texts
    ]
    assert outputs[0] == outputs[1]
    assert specialise([("policy.h", POLICY), ("machine.h", MACHINE)], chosen, ["hw_step"], "app").text == special


CORE_DRIVER = """
#include <stdio.h>
#include <stdlib.h>
static uint64_t seed;
static _Alignas(4096) unsigned char arena[1 << 17];
static unsigned char *objects[256];
static uint32_t below(uint32_t bound)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(seed >> 33) % bound;
}
int main(int argc, char **argv)
{
    const uint32_t size = (uint32_t)atoi(argv[1]) + (uint32_t)argc - 2u;
    struct HEAP *h = INIT(arena, size);
    uint64_t sum = 1469598103934665603ull;
    static const uint32_t common[5] = {16, 1476, 64, 40, 200};
    for (uint32_t k = 0; h != NULL && k < 3000u; k++) {
        const uint32_t i = below(256u);
        const uint32_t n = below(3u) ? below(500u) : common[below(5u)];
        const uint32_t choice = below(16u);
        if (objects[i] == NULL) {
            objects[i] = choice < 12u ? MALLOC(h, n) : choice < 14u ? CALLOC(h, n, 2u) : ALIGNED(h, 1u << below(7u), n);
        } else if (choice < 5u) {
            unsigned char *moved = REALLOC(h, objects[i], n);
            objects[i] = moved ? moved : objects[i];
        } else {
            FREE(h, objects[i]);
            objects[i] = NULL;
        }
        sum = (sum ^ (objects[i] ? (uint64_t)(objects[i] - arena) + USABLE(h, objects[i]) : 0u)) * 1099511628211ull;
        if (k % 50u == 0u && CHECK(h) != 0) {
            printf("broken: %d at %u\\n", CHECK(h), (unsigned)k);
            return 1;
        }
    }
    for (uint32_t k = 0; k < size; k++) {
        sum = (sum ^ arena[k]) * 1099511628211ull;
    }
    printf("%llx\\n", (unsigned long long)sum);
    return 0;
}
"""


def core_calls(prefix: str, first: str) -> str:
    names = ["INIT", "MALLOC", "CALLOC", "REALLOC", "ALIGNED", "FREE", "USABLE", "STATISTICS", "CHECK"]
    calls = zip(names, CORE_ENTRIES, strict=True)
    defines = (f"#define {name}(...) {prefix}_{call}({first}__VA_ARGS__)\n" for name, call in calls)
    return f"#define HEAP {prefix}_heap\n" + "".join(defines)


RUN_TIME = """
#include "check.h"
#include <stdio.h>
#include <stdlib.h>
static struct hw_policy policy;
__attribute__((constructor)) static void read_policy(void)
{
    FILE *file = fopen(getenv("POLICY"), "rb");
    if (file == NULL || fread(&policy, sizeof policy, 1, file) != 1 || fclose(file) != 0) {
        abort();
    }
}
"""


@pytest.fixture(scope="module")
def generic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The core with a policy that it reads when it starts."""
    text = RUN_TIME + core_calls("hw", "&policy, ") + CORE_DRIVER
    return compiled(tmp_path_factory.mktemp("generic"), "generic", text, ["-std=c11", "-O0", f"-I{CSRC}"])


@pytest.mark.parametrize("name", [recipe.name for recipe in sample(zoo.staying())])
def test_shipped_allocators_do_what_the_core_does(
    name: str, generic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That the specialised text compiles alone, without a warning, is tested in test_generate.py."""

    chosen = policy_of(zoo.load(name))
    entries = [f"hw_{entry}" for entry in CORE_ENTRIES]
    special = specialise(core_sources(), chosen, entries, "app", parting=Parting("heapwright.h")).text
    flags = ["-std=c11", "-O0", f"-I{CSRC}"]
    program = compiled(tmp_path, "special", special + core_calls("app", "") + CORE_DRIVER, flags)
    (tmp_path / "policy").write_bytes(policy_bytes(zoo.load(name)))
    monkeypatch.setenv("POLICY", str(tmp_path / "policy"))
    for arena in ("9000", "60000", "131072"):
        assert printed(generic, arena) == printed(program, arena)
