"""The partial evaluator: functions, their parameters and calls, and what a whole file is left with."""

from __future__ import annotations

from textwrap import dedent

import pytest
from core_grammar import check_grammar
from small_policy import HEAD, POLICY, SINK, body, function, general, lines, policy, quick, shipped

from heapwright._generate.specialise import Parting, specialise
from heapwright._generate.syntax import GrammarError

# ---- functions ------------------------------------------------------------------------------------------------------


DOOR = """\
static inline void note_word(const struct hw_general *g, uint32_t *x, uint32_t n)
{
    (void)g, (void)x, (void)n;
}

static inline int skip_words(uint32_t n, uint32_t *x)
{
    (void)n, (void)x;
    return 0;
}
"""


def behind_the_door(code: str, door: str = DOOR) -> str:
    sources = [("policy.h", POLICY), ("replay_hooks.h", door), ("core.h", code)]
    return specialise(sources, policy(general()), ["hw_f"], "app").functions


def test_hooks_go_as_if_they_had_never_been_called() -> None:
    code = """
static inline void put(const struct hw_general *g, uint32_t *x, uint32_t n)
{
    %s
    *x = n;
}

/* Whether n is odd. */
static inline int is_odd(uint32_t n)
{
    return (n & 1u) != 0;
}

static inline int asks(const struct hw_general *g, uint32_t *x, uint32_t n)
{
    %s
    return is_odd(n);
}

static inline uint32_t hw_f(const struct hw_policy *p, uint32_t n)
{
    const struct hw_general *g = &p->pools[0].general;
    uint32_t at = n + 1u;
    %s
    uint32_t x = 0;
    while (n < 9u) {
        %s
        n++;
    }
    put(g, &x, at);
    return %s ? x : at;
}
"""
    note = "note_word(g, x, n);"
    output = code % (
        note,
        note,
        "if (skip_words(n, &at)) { return at; }",
        "note_word(g, &at, n + 1u);",
        "asks(g, &n, n)",
    )
    remaining = behind_the_door(output)
    silent = code % ("", "", "", "", "is_odd(n)")
    assert remaining == behind_the_door(
        "".join(line for line in silent.splitlines(True) if line != "    \n" and line != "        \n")
    )
    assert "app_put(&x, at)" in remaining


@pytest.mark.parametrize(
    ("call", "door", "wrong"),
    [
        ("note_word(g, &n, n++);", DOOR, "core.h:4: an argument of the hook note_word does something"),
        (
            "note_word(g, &n, n);",
            DOOR.replace("(void)x,", "*x = 0,"),
            "replay_hooks.h:1: the hook note_word does something",
        ),
        (
            "note_word(g, &n, n);",
            DOOR.replace("return 0", "return n"),
            "replay_hooks.h:6: the hook skip_words does something",
        ),
    ],
)
def test_a_hook_that_does_something_is_told(call: str, door: str, wrong: str) -> None:
    code = f"""static inline uint32_t hw_f(const struct hw_policy *p, uint32_t n)
{{
    const struct hw_general *g = &p->pools[0].general;
    {call}
    return n;
}}
"""
    with pytest.raises(GrammarError, match=wrong):
        behind_the_door(code, door)
    assert [
        str(error) for error in check_grammar([("policy.h", POLICY), ("replay_hooks.h", door), ("core.h", code)])
    ] == [wrong]


def test_empty_functions_go_with_their_calls_but_not_with_effects() -> None:
    more = (
        SINK
        + """
static inline void hook(const struct hw_general *g, uint32_t *x, uint32_t n)
{
    if (g->tags) {
        *x = n;
    } else {
        (void)x;
        (void)n;
    }
}
"""
    )
    assert body("hook(g, &n, n + 1u); return n;", more=more) == "return n;\n"
    assert body("hook(g, &n, sink(&n)); return n;", more=more) == "hook(sink(&n));\nreturn n;\n"
    assert body("if (n > 2u) { hook(g, &n, n); } return n;", more=more) == "return n;\n"


def test_parameters_that_nothing_uses_go() -> None:
    more = """
static inline uint32_t add(const struct hw_general *g, uint32_t a, uint32_t b)
{
    uint32_t sum = a;
    if (g->tags) {
        sum += b;
    }
    return sum * sum;
}
"""
    assert body("return add(g, n, n + 3u) + add(g, 2u, 7u);", more=more) == "return add(n) + add(2u);\n"


def test_an_argument_with_an_effect_is_evaluated_once_whoever_uses_it() -> None:
    more = (
        SINK
        + """
static inline uint32_t other(uint32_t a)
{
    uint32_t sum = a;
    while (sum > 3u) {
        sum = sum / 2u + a;
    }
    return sum;
}

static inline uint32_t first(const struct hw_general *g, uint32_t a, uint32_t b)
{
    if (g->tags) {
        return b;
    }
    return other(a);
}

static inline uint32_t twice(const struct hw_general *g, uint32_t a)
{
    if (g->tags) {
        return 0;
    }
    return a + a;
}

static inline uint32_t add(const struct hw_general *g, uint32_t a, uint32_t b)
{
    uint32_t sum = a;
    if (g->tags) {
        sum += b;
    }
    return sum * sum;
}
"""
    )
    assert body("return first(g, n, sink(&n));", more=more).count("sink(&n)") == 1, "a call drops none"
    assert body("return twice(g, sink(&n));", more=more).count("sink(&n)") == 1, "a call repeats none"
    mixed = body("return add(g, n, sink(&n)) + add(g, 2u, 7u);", more=more)
    assert mixed.count("sink(&n)") == 1, "a parameter that one caller needs for its effect stays"
    assert body("return first(g, n, n * 2u);", more=more) == "return other(n);\n", "one without effect goes"


def test_an_unused_parameter_of_an_entry_stays() -> None:
    code = f"{HEAD}    return p->align;\n}}\n"
    assert function(code) == "uint32_t f(uint32_t n)\n{\n    (void)n;\n    return ALIGN;\n}\n"


def test_scalar_parameters_declared_const_are_static() -> None:
    more = """
static inline uint32_t twice(const uint32_t level, uint32_t n)
{
    if (level == 0u) {
        return n;
    }
    return twice(level - 1u, n * n) + level;
}
"""
    text = body("return twice(g->links.shift, n) + 1u;", general(shift=2), more=more)
    assert text == "return twice_2(n) + 1u;\n"
    with pytest.raises(GrammarError, match=r"core.h:13: twice: level needs a static argument"):
        body("return twice(n, n);", more=more)


def test_a_parameter_that_never_varies_goes() -> None:
    more = """
static inline uint32_t walk(uint32_t from, uint32_t n)
{
    uint32_t at = from;
    while (at < n) {
        at += at;
    }
    return at;
}
"""
    text = function(more + "static inline uint32_t hw_f(const struct hw_policy *p, uint32_t n)\n{\n"
                           "    return walk(p->align, n) + walk(p->align, n * 2u);\n}\n")  # fmt: skip
    assert "static inline uint32_t walk(uint32_t n)\n{\n    uint32_t at = ALIGN;\n" in text


# ---- files ----------------------------------------------------------------------------------------------------------


def test_conditionals_over_hw_names_are_resolved_and_others_kept() -> None:
    code = """
    #include <stddef.h>
    #include "policy.h"
    #ifdef HW_EXPLORE
    struct hw_heap {
        uint64_t reads;
    };
    #else
    struct hw_heap; /* never defined */
    #endif
    #if defined(__GNUC__)
    static inline uint32_t bits(uint32_t x)
    {
        return (uint32_t)__builtin_popcount(x);
    }
    #else
    static inline uint32_t bits(uint32_t x)
    {
        return x ? 1u + bits(x & (x - 1u)) : 0u;
    }
    static inline uint32_t unused(uint32_t x)
    {
        return x;
    }
    #endif
    static inline uint32_t hw_f(const struct hw_policy *p, struct hw_heap *h, uint32_t n)
    {
    #ifndef HW_EXPLORE
        (void)h;
    #else
        h->reads++;
    #endif
        return bits(n) + p->align;
    }
    """
    text = shipped(code)
    assert "struct heap; /* never defined */\n" in text and "reads" not in text and "unused" not in text
    assert "#if defined(__GNUC__)\nstatic inline uint32_t bits(uint32_t x)\n{\n" in text and text.count("#endif") == 1
    assert text.startswith("#include <stddef.h>\n#include <stdint.h>\n\n")
    files = [("policy.h", POLICY), ("core.h", dedent(code))]
    explore = specialise(files, policy(general()), ["hw_f"], "app", {"HW_EXPLORE"}).text
    assert "uint64_t reads;" in explore and "h->reads++;" in explore


def test_comments_belong_to_what_they_stand_on() -> None:
    code = """
    /* About the file. */

    /* About nothing. */

    /* Sums; see hw_f() and HW_FIRST. */
    static inline uint32_t hw_f(const struct hw_policy *p, uint32_t n)
    {
        /* Only with tags. */
        if (p->pools[0].general.tags) {
            n++; /* one more */
        } else {
            /* The
             * other way. */
            n--; /* one less */
        }

        /* The result. */
        return n;
    }
    """
    assert function(code) == lines("""
    /* Sums; see f() and FIRST. */
    uint32_t f(uint32_t n)
    {
        /* Only with tags. */
        /* The
         * other way. */
        n--; /* one less */

        /* The result. */
        return n;
    }
    """)


def test_only_what_is_used_is_shipped() -> None:
    code = """
    enum { HW_FREE, HW_USED /* in use */, HW_LAST };
    struct hw_unused { uint32_t a; };
    struct hw_pair { uint32_t a; };
    #define HW_LEAST 16u
    #define HW_OTHER 17u
    #define MASK(x) ((x) & 15u)
    static inline uint32_t other(uint32_t n) { return n * HW_OTHER; }
    static inline uint32_t hw_f(const struct hw_policy *p, uint32_t n)
    {
        struct hw_pair pair = {n};
        if (HW_LEAST > p->align) {
            pair.a += MASK(n) + HW_LEAST;
        }
        return pair.a + HW_USED;
    }
    """
    text = shipped(code)
    assert "enum { USED = 1 /* in use */ };" in text and "struct pair" in text
    assert "#define LEAST 16u\n" in text and "#define MASK(x) ((x) & 15u)\n" in text
    for gone in ("unused", "OTHER", "other", "hw_", "HW_", "struct policy", "FREE", "QUICK"):
        assert gone not in text


def test_every_name_of_the_file_carries_the_prefix() -> None:
    code = """
    #define MASK(x) ((x) & 15u)
    #if defined(__GNUC__)
    static inline uint32_t bits(uint32_t n) { return (uint32_t)__builtin_clz(n); }
    #else
    static inline uint32_t bits(uint32_t n) { return n ? 31u : 32u; }
    #endif
    /* The class of n bytes. */
    static inline uint32_t find(const struct hw_quick *q, uint32_t n)
    {
        uint32_t i = 0;
        while (q->sizes[i] < n) {
            i++;
        }
        return i;
    }
    /* What find() says of n bytes, to find more. */
    static inline uint32_t hw_f(const struct hw_policy *p, uint32_t n)
    {
        return find(&p->pools[0].quick, n) + bits(n) + MASK(n) + p->align;
    }
    """
    text = specialise([("policy.h", POLICY), ("core.h", dedent(code))], policy(quick(16, 40)), ["hw_f"], "net").text
    for name in ("NET_MASK(x)", "NET_ALIGN", "NET_SIZES[2]", "net_bits(uint32_t", "net_find(uint32_t"):
        assert name in text
    assert "return net_find(n) + net_bits(n) + NET_MASK(n) + NET_ALIGN;" in text
    assert "/* What net_find() says of n bytes, to find more. */" in text


def test_the_interface_is_apart() -> None:
    header = """
    #define HW_API static inline
    #define HW_BROKEN 1 /* something */
    #define HW_OTHER 2  /* not used */

    /* Does it, for hw_policy. */
    HW_API uint32_t hw_f(const struct hw_policy *policy, uint32_t wanted);
    HW_API uint32_t hw_g(const struct hw_policy *policy);
    """
    core = """
    static inline uint32_t hw_f(const struct hw_policy *p, uint32_t n)
    {
        return n + p->align + HW_BROKEN;
    }
    """
    files = [("policy.h", POLICY), ("public.h", dedent(header)), ("core.h", dedent(core))]
    parts = specialise(files, policy(general()), ["hw_f"], "app", parting=Parting("public.h"))
    assert parts.interface == lines("""
    #define APP_BROKEN 1 /* something */

    /* Does it, for app_policy. */
    uint32_t app_f(uint32_t wanted);
    """)
    assert "APP_BROKEN 1" not in parts.constants and parts.text.count("#define APP_BROKEN") == 1
