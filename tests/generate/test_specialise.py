"""The partial evaluator: golden cases for each rule of the core's grammar (docs/developing/core-grammar.md)."""

from __future__ import annotations

from textwrap import dedent

import pytest
from case_tables import each
from core_grammar import check_grammar
from small_policy import HEAD, POLICY, SINK, body, function, general, lines, quick, shipped

from heapwright._generate.core import core_sources
from heapwright._generate.syntax import GrammarError
from heapwright._support.errors import HeapwrightError

# ---- conditions -----------------------------------------------------------------------------------------------------


@each(
    ("source", "left"),
    [
        ("if (g->tags) { return n; } return 1u;", "return 1u;\n"),
        ("if (!g->tags) { return n; } return 1u;", "return n;\n"),
        ("if (g->fit == HW_BEST) { n++; } else if (n > 3u) { n--; } else { n = 0; } return n;",
         "if (n > 3u) {\n    n--;\n} else {\n    n = 0;\n}\nreturn n;\n"),
        ("if (n > 3u) { n--; } else if (g->fit == HW_FIRST) { n = 7u; } else { n = 0; } return n;",
         "if (n > 3u) {\n    n--;\n} else {\n    n = 7u;\n}\nreturn n;\n"),
        ("if (n > 3u) { n--; } else if (g->fit == HW_BEST) { n = 7u; } return n;",
         "if (n > 3u) {\n    n--;\n}\nreturn n;\n"),
        ("if (n > 3u) { if (g->tags) { n--; } } else { n = 0; } return n;",
         "if (n <= 3u) {\n    n = 0;\n}\nreturn n;\n"),
        ("if (g->fit == HW_FIRST && n > 2u) { return 3u; } return n;", "if (n > 2u) {\n    return 3u;\n}\nreturn n;\n"),
        ("if (n > 2u || g->tags) { return 3u; } return n;", "if (n > 2u) {\n    return 3u;\n}\nreturn n;\n"),
        ("while (g->tags) { n++; } return n;", "return n;\n"),
        ("do { n++; } while (g->tags); return n;", "n++;\nreturn n;\n"),
        ("do { if (n) { break; } n++; } while (g->tags); return n;",
         "do {\n    if (n) {\n        break;\n    }\n    n++;\n} while (0);\nreturn n;\n"),
        ("return g->tags ? n : n + 1u;", "return n + 1u;\n"),
        ("return (n > 1u ? g->header : 0u) + (g->tags ? 2u : 1u);", "return (n > 1u ? HEADER : 0u) + 1u;\n"),
        ("n = g->tags == 0 && n; return n;", "return n != 0u;\n"),
        ("n = n > 2u && g->tags == 0; return n;", "return n > 2u;\n"),
        ("if (n > 3u) { n--; } else if (n > 1u) { n = 7u; } else { n = 2u; } return n;",
         "if (n > 3u) {\n    n--;\n} else if (n > 1u) {\n    n = 7u;\n} else {\n    n = 2u;\n}\nreturn n;\n"),
    ],
)  # fmt: skip
def test_static_conditions_are_folded(source: str, left: str) -> None:
    assert body(source) == left


@each(
    ("source", "left"),
    [
        ("if (g->tags && sink(&n)) { n = 0; } return n;", "return n;\n"),
        ("if (sink(&n) && g->tags) { n = 0; } return n;", "sink(&n);\nreturn n;\n"),
        ("if (sink(&n) || !g->tags) { n = 0; } return n;", "sink(&n);\nreturn 0;\n"),
        ("if (sink(&n) && !g->tags) { n = 0; } return n;", "if (sink(&n)) {\n    n = 0;\n}\nreturn n;\n"),
        ("if (sink(&n)) { if (g->tags) { n = 0; } } return n;", "sink(&n);\nreturn n;\n"),
        ("if (sink(&n) > 3u) { if (g->tags) { n = 0; } } return n;", "(void)(sink(&n) > 3u);\nreturn n;\n"),
        ("if (n && sink(&n)) { if (g->tags) { n = 0; } } return n;", "(void)(n && sink(&n));\nreturn n;\n"),
        ("uint32_t x = sink(&n) + 2u; if (g->tags) { n = x; } return n;", "(void)(sink(&n) + 2u);\nreturn n;\n"),
        ("return g->tags * sink(&n) + n;", "return TAGS * sink(&n) + n;\n"),
    ],
)
def test_effects_of_dropped_operands_are_kept(source: str, left: str) -> None:
    assert body(source, more=SINK) == left


def test_what_follows_a_return_goes() -> None:
    assert body("if (!g->tags) { return n; } n = 2u; return n + g->header;") == "return n;\n"


def test_spliced_declarations_that_meet_become_assignments() -> None:
    source = """
    if (g->fit == HW_FIRST) { const uint32_t x = n * 2u; n += x; }
    if (!g->tags) { const uint32_t x = n * 3u; n -= x; }
    return n;
    """
    assert body(source) == "uint32_t x = n * 2u;\nn += x;\nx = n * 3u;\nn -= x;\nreturn n;\n"


def test_spliced_declarations_that_clash_are_an_error() -> None:
    source = """
    if (g->fit == HW_FIRST) { const uint32_t x = n * 2u; n += x; }
    if (!g->tags) { const uint16_t x = (uint16_t)n; n -= x; }
    return n;
    """
    with pytest.raises(GrammarError, match=r"core.h:7: x is declared twice .*; rename one"):
        body(source)


def test_a_variable_named_like_a_dropped_counter_is_const_once() -> None:
    source = """
    if (g->tags) { for (uint32_t x = 0; x < n; x++) { n += x; } }
    const uint32_t x = n * 2u;
    return x + x;
    """
    assert body(source) == "const uint32_t x = n * 2u;\nreturn x + x;\n"


# ---- values ---------------------------------------------------------------------------------------------------------


@each(
    ("source", "left"),
    [
        ("n + g->header", "n + HEADER"),
        ("(n + (g->align - 1u)) & ~(g->align - 1u)", "(n + (ALIGN - 1u)) & ~(ALIGN - 1u)"),
        ("n + g->tags", "n"),
        ("(n << g->links.shift) * (g->tags + 1u)", "n"),
        ("n - g->tags * 4u", "n"),
        ("g->tags * n + 3u", "0u + 3u"),
        ("n & ~g->tags", "n"),
        ("n % (g->tags + 1u)", "0u"),
        ("n / g->header", "n / HEADER"),
        ("n >= g->tags", "1"),
        ("n < g->tags", "0"),
        ("n <= p->pools[0].max_size", "1"),
        ("(uint8_t)n + g->tags", "(uint32_t)(uint8_t)n"),
        ("g->align == 8u ? n : 0u", "n"),
        ("n * (uint32_t)sizeof(uint32_t)", "n * (uint32_t)sizeof(uint32_t)"),
        ("n + (g->tags ? 4u : 2u) * (g->fit + 3u)", "n + 6u"),
    ],
)
def test_values_become_constants_and_neutral_ones_go(source: str, left: str) -> None:
    wanted = "3u" if left == "0u + 3u" else left
    assert body(f"return {source};") == f"return {wanted};\n"


def test_constants_are_named_and_commented_after_policy_members() -> None:
    code = """
    static inline uint32_t hw_f(const struct hw_policy *p, uint32_t n)
    {
        const struct hw_general *g = &p->pools[0].general;
        return (n + g->header * p->align) >> g->links.shift;
    }
    """
    text = shipped(code, general(shift=2))
    assert (
        lines("""
    #define ALIGN UINT32_C(8)  /* alignment of payloads */
    #define LINKS_SHIFT 2      /* log2 of the unit of links */
    #define HEADER UINT32_C(4) /* bytes before the payload */
    """)
        in text
    )
    assert "return (n + HEADER * ALIGN) >> LINKS_SHIFT;" in text


def test_pools_that_disagree_get_constants_and_functions_of_their_own() -> None:
    code = """
    static inline uint32_t general_up(const struct hw_general *g, uint32_t n)
    {
        return n + g->header * g->align;
    }
    static inline uint32_t hw_f(const struct hw_policy *p, uint32_t n)
    {
        return general_up(&p->pools[0].general, n) - general_up(&p->pools[1].general, n);
    }
    """
    text = shipped(code, general(), general(header=8))
    assert "GENERAL1_HEADER UINT32_C(4)" in text and "GENERAL2_HEADER UINT32_C(8)" in text
    assert "#define ALIGN UINT32_C(8)" in text
    assert "return general1_up(n) - general2_up(n);" in text
    same = shipped(code, general(), general(shift=3))
    assert "return general_up(n) - general_up(n);" in same and same.count("return n + HEADER * ALIGN;") == 1


def test_static_results_become_numbers_or_constants() -> None:
    more = """
/* Smallest block. */
static inline uint32_t least(const struct hw_general *g)
{
    const uint32_t links = g->fit == HW_BEST ? 2u : 1u;
    return g->header + 4u * links;
}
static inline uint32_t kinds(const struct hw_general *g)
{
    if (g->tags) {
        return 2u;
    }
    return 0;
}
"""
    assert body("return (n + least(g)) << kinds(g);", more=more) == "return n + LEAST;\n"
    text = shipped(more + "static inline uint32_t hw_f(const struct hw_policy *p, uint32_t n)\n{\n"
                          "    return n + least(&p->pools[0].general);\n}\n")  # fmt: skip
    assert "#define LEAST (HEADER + 4u) /* Smallest block. */\n" in text


def test_local_values_are_bound_and_unused_ones_go() -> None:
    source = """
    const uint32_t header = g->header;
    uint32_t twice = g->align * 2u;
    uint32_t zero = g->tags;
    uint32_t change = 5u;
    if (g->tags) {
        change = n;
    }
    return n * twice + header + zero + change;
    """
    remaining = "uint32_t twice = ALIGN * 2u;\nreturn n * twice + HEADER + 5u;\n"
    assert body(source) == remaining


@each(
    ("source", "left"),
    [
        ("const uint32_t m = n; return m * m;", "return n * n;\n"),
        ("const uint32_t m = n; n = 3u; return m + n * n;", "const uint32_t m = n;\nn = 3u;\nreturn m + n * n;\n"),
        ("const uint8_t m = n; return m + 1u;", "const uint8_t m = n;\nreturn m + 1u;\n"),
        ("const uint32_t step = g->tags ? n : 1u; return n * n - 1u + step;", "return n * n;\n"),
        ("const uint32_t step = g->tags ? n : 1u; return n * n - 2u + step;", "return n * n - 2u + 1u;\n"),
        ("if (!(n < 3u)) { return 1u; } return 2u;", "if (n >= 3u) {\n    return 1u;\n}\nreturn 2u;\n"),
        ("if (n > 4u) { return 0; } return 1;", "return n <= 4u;\n"),
        ("while (n) { if (n > 2u) { return 7u; } return 3u; } return n;",
         "if (n) {\n    if (n > 2u) {\n        return 7u;\n    }\n    return 3u;\n}\nreturn n;\n"),
        ("if (n > 3u) { n--; return 7u; } return 7u;", "if (n > 3u) {\n    n--;\n}\nreturn 7u;\n"),
        ("if (n > 3u) { n--; return 7u; } return 6u;", "if (n > 3u) {\n    n--;\n    return 7u;\n}\nreturn 6u;\n"),
        ("return !n | 0u;", "return (uint32_t)!n;\n"),
    ],
)  # fmt: skip
def test_what_dispatch_left_is_said_in_few_words(source: str, left: str) -> None:
    assert body(source) == left


def test_a_declaration_moves_to_its_first_value() -> None:
    source = "uint32_t x = 0; n += 2u; if (g->tags) { x = 1u; } else { x = n * 3u; } return x + n;"
    assert body(source) == "n += 2u;\nconst uint32_t x = n * 3u;\nreturn x + n;\n"


@pytest.mark.parametrize(
    ("source", "left"),
    [
        ("uint32_t x = 0; while (n) { x = n / 2u; n = x; } return n;",
         "while (n) {\n    const uint32_t x = n / 2u;\n    n = x;\n}\nreturn n;\n"),
        ("uint32_t x = 0; if (n) { x = n * 3u; n += x; } if (n > 3u) { x = n; n *= x; } return n;",
         "if (n) {\n    const uint32_t x = n * 3u;\n    n += x;\n}\n"
         "if (n > 3u) {\n    const uint32_t x = n;\n    n *= x;\n}\nreturn n;\n"),
        ("uint32_t x = n; while (n) { n -= x; x = n; } return n;",
         "uint32_t x = n;\nwhile (n) {\n    n -= x;\n    x = n;\n}\nreturn n;\n"),
        ("uint32_t x = 0; if (n) { x = n; } return x;", "uint32_t x = 0;\nif (n) {\n    x = n;\n}\nreturn x;\n"),
        ("uint32_t x = n; n += x; while (n > 9u) { n /= 2u; x = n; } return n;",
         "uint32_t x = n;\nn += x;\nwhile (n > 9u) {\n    n /= 2u;\n}\nreturn n;\n"),
    ],
)  # fmt: skip
def test_a_variable_lives_where_it_is_known_and_holds_what_is_read(source: str, left: str) -> None:
    assert body(source) == left


@pytest.mark.parametrize(
    ("source", "left"),
    [
        ("return n > 2u ? 4u : 4u;", "return 4u;\n"),
        ("return n <= 0u ? 4u : n;", "return n == 0u ? 4u : n;\n"),
        ("uint32_t x = 0; while (x > 0 && n) { x--; } return n + x;", "return n;\n"),
    ],
)
def test_what_has_one_outcome_is_no_choice(source: str, left: str) -> None:
    assert body(source) == left


def test_a_value_overwritten_before_a_loop_is_not_taken_for_constant() -> None:
    source = "uint32_t x = 0; if (!g->tags) { x = n; } while (x > 9u) { x /= 2u; } return x;"
    assert body(source) == "uint32_t x = n;\nwhile (x > 9u) {\n    x /= 2u;\n}\nreturn x;\n"


# ---- loops ----------------------------------------------------------------------------------------------------------

ROUTE = """
static inline uint32_t quick_take(const struct hw_quick *q, uint32_t n)
{
    for (unsigned i = 0; i < q->count; i++) {
        if (n == q->sizes[i]) {
            return n * 2u;
        }
    }
    return 0;
}
static inline uint32_t general_take(const struct hw_general *g, uint32_t n)
{
    return n % 7u == 0u ? 0u : n + g->header;
}
static inline uint32_t hw_f(const struct hw_policy *p, uint32_t n)
{
    for (unsigned i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (n >= pool->min_size && n <= pool->max_size) {
            uint32_t r = 0;
            if (pool->kind == HW_QUICK) {
                r = quick_take(&pool->quick, n);
            } else {
                r = general_take(&pool->general, n);
            }
            if (r != 0u) {
                return r;
            }
        }
    }
    return 0;
}
"""


def test_a_loop_over_pools_is_unrolled() -> None:
    assert lines("""
    uint32_t f(uint32_t n)
    {
        uint32_t r = quick_take(n);
        if (r != 0u) {
            return r;
        }
        return general_take(n);
    }
    """) in function(ROUTE, quick(16, 40), general())


def test_dispatch_that_is_left_to_one_pool_collapses() -> None:
    text = function(ROUTE, general())
    assert text == lines("""
    static inline uint32_t general_take(uint32_t n)
    {
        return n % 7u == 0u ? 0u : n + HEADER;
    }

    uint32_t f(uint32_t n)
    {
        return general_take(n);
    }
    """)


def test_macros_that_paste_names_are_written_out() -> None:
    """Also one in another, and a call over several lines; the lines behind keep their numbers."""
    code = """
    #define HW_ANY(pool, what, ...)                     \\
        ((pool)->kind == HW_QUICK                        \\
             ? quick_##what(&(pool)->quick, __VA_ARGS__) \\
             : general_##what(&(pool)->general, __VA_ARGS__))
    #define HW_FIRST_POOL(p, what, ...) HW_ANY(&(p)->pools[0], first_##what, __VA_ARGS__)
    static inline uint32_t quick_first_take(const struct hw_quick *q, uint32_t n, uint32_t more)
    {
        const uint32_t all = n + more;
        return all * q->count;
    }
    static inline uint32_t general_first_take(const struct hw_general *g, uint32_t n, uint32_t more)
    {
        const uint32_t all = n + more;
        return all + g->header;
    }
    static inline uint32_t hw_f(const struct hw_policy *p, uint32_t n)
    {
        return HW_FIRST_POOL(p, take, n,
                             (n + 1u) * 2u);
        WRONG
    }
    """
    fine = code.replace("        WRONG\n", "")
    assert "return all + HEADER;" in function(fine) and "general_first_take(n, (n + 1u) * 2u)" in function(fine)
    assert "quick_first_take(n, (n + 1u) * 2u)" in function(fine, quick(16, 40))
    assert [error.line for error in check_grammar([("policy.h", POLICY), ("core.h", dedent(code))])] == [21]


def test_run_time_bounds_of_pools_keep_their_guard() -> None:
    text = function(ROUTE, general(max_size=64), general(min_size=65, header=8))
    assert "if (n <= MAX_SIZE) {" in text and "if (n >= MIN_SIZE) {" in text and "continue" not in text


def test_a_loop_over_numbers_stays_and_reads_a_table() -> None:
    text = shipped(ROUTE, quick(16, 1476), general())
    assert "static const uint16_t SIZES[2] = {16, 1476};" in text
    assert "for (unsigned i = 0; i < COUNT; i++) {\n        if (n == SIZES[i]) {" in text


def test_a_loop_that_runs_once_is_no_loop() -> None:
    text = shipped(ROUTE, quick(16), general())
    assert "for (" not in text and "if (n == SIZES) {" in text and "#define SIZES UINT32_C(16)" in text
    assert "for (" not in shipped(ROUTE, quick(), general()) and "quick" not in function(ROUTE, quick(), general())


@pytest.mark.parametrize(
    ("source", "left"),
    [
        ("for (uint32_t at = g->header; at < g->header + 4u; at += 4u) { n += at; }", "n += HEADER;"),
        ("for (uint8_t at = g->header; at < g->header + 4u; at += 4u) { n += at; }", "n += 4;"),
        ("for (uint32_t at = 2u; at < 4u; at += 4u) { n += at; }", "n += 2u;"),
    ],
)
def test_a_counter_with_one_value_is_called_by_the_name_of_that(source: str, left: str) -> None:
    assert body(f"{source} return n;") == f"{left}\nreturn n;\n"


@pytest.mark.parametrize("jump", ["break", "continue"])
def test_what_cannot_be_unrolled_is_an_error(jump: str) -> None:
    source = f"""
    for (unsigned i = 0; i < p->pool_count; i++) {{
        if (n < p->pools[i].min_size) {{
            {jump};
        }}
        n += p->pools[i].general.header;
    }}
    return n;
    """
    with pytest.raises(GrammarError, match="break or continue in an unrolled loop; put the body into a function"):
        body(source, general(min_size=3), general(min_size=9))


# ---- errors ---------------------------------------------------------------------------------------------------------


@each(
    ("statement", "line", "what"),
    [
        ("return p->pools[n].general.header;", 3, "index into an array of struct hw_pool is not static"),
        ("switch (n) { default: return n; }", 3, "switch statement is not allowed"),
        ("goto end; end: return n;", 3, "goto statement is not allowed"),
        ("if (n) return 1u;\nreturn n;", 3, "a body needs braces"),
        ("uint32_t a = 1u, b = n;\nreturn a + b;", 3, "declares one variable"),
        ("const struct hw_policy *q = p;\nq = p;\nreturn q->align;", 3, "q: a policy pointer is initialised once"),
        ("if (n) { uint32_t n = 2u; return n; } return n;", 3, "n shadows"),
        ("{ n = 2u; } return n;", 3, "compound statement is not allowed"),
        ("for (n = 0; n < 3u; n++) { } return n;", 3, "a for loop declares its counter"),
        ("return n + /* why */ 2u;", 3, "a comment inside an expression"),
        ("for (uint32_t i = 0; i < n; i++) {\n    n += p->pools[i].min_size;\n}\nreturn n;", 3, "bounds are not"),
        ("return hw_g(p->pools);", 3, "struct hw_pool is passed to run-time code"),
        ("return (n) (n);", 3, "a call through a pointer"),
        ("return p->nothing;", 3, "struct hw_policy has no member nothing"),
        ("return n +;", 3, "cannot be read as C"),
        ("#if defined(HW_OTHER)\nn = 2u;\n#endif\nreturn n;", 3, "a condition over HW_ names is #ifdef or #ifndef"),
        ("return n & 1u << n % 32u;", 3, "needs a cast"),
        ("return n & ~7u;", 3, "needs a cast"),
        ("n = UINT32_MAX << n;\nn = (uint32_t)1 << n;\nreturn n & ~(8u - 1u);", 5, "needs a cast"),
    ],
)
def test_violations_name_the_line(statement: str, line: int, what: str) -> None:
    result = check_grammar([("policy.h", POLICY), ("core.h", f"{HEAD}{statement}\n}}\n")])
    assert [error.file for error in result][:1] == ["core.h"]
    assert result[0].line == line and what in result[0].what


@pytest.mark.parametrize("does", ["*x = 1u;", "sink(x);"])
def test_what_stands_between_compiler_conditionals_only_computes(does: str) -> None:
    text = f"#if defined(__GNUC__)\nstatic inline void put(uint32_t *x)\n{{\n    {does}\n}}\n#endif\n"
    result = check_grammar([("policy.h", POLICY), ("core.h", text)])
    assert [str(error) for error in result] == ["core.h:4: put does more than to compute"]


def test_code_within_the_grammar_has_no_violation() -> None:
    assert check_grammar([("policy.h", POLICY), ("core.h", ROUTE)]) == []


def test_undefined_static_arithmetic_is_an_error_unless_guarded() -> None:
    assert body("return g->tags != 0u && n % g->tags == 0u;") == "return 0;\n"
    with pytest.raises(GrammarError, match=r"static 8 / 0 is undefined"):
        body("return n + g->align / g->tags;")
    with pytest.raises(GrammarError, match=r"a static shift by 40"):
        body("return n + (1u << g->header);", general(header=40))


def test_a_policy_that_lacks_a_value_is_an_error() -> None:
    with pytest.raises(HeapwrightError, match=r"policy: no value for pools\[0\].general.header"):
        body("return n + g->header;", quick(16))
    with pytest.raises(HeapwrightError, match=r"entry hw_nothing: the core defines no such function"):
        shipped(ROUTE, general(), entry="hw_nothing")


# ---- the core itself ------------------------------------------------------------------------------------------------


def test_the_core_keeps_to_its_grammar() -> None:
    assert check_grammar(core_sources()) == []
    assert check_grammar(core_sources(), {"HW_EXPLORE"}) == []
