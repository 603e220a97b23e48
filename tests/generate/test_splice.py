"""Bodies in place of the one call of a function: where one would have written them there, and nowhere else."""

from __future__ import annotations

from textwrap import dedent

import pytest
from small_policy import POLICY, general, policy, unprefixed

from heapwright._generate.specialise import Parting, specialise

SET = "static void set(uint32_t *x, uint32_t n)\n{\n    x[0] = n;\n    x[1] = n;\n}\n"


def body(helpers: str, statements: str, result: str = "uint32_t") -> str:
    """What is left of the body of hw_f(p, x, n), which calls the helpers."""
    code = f"{helpers}\nstatic inline {result} hw_f(const struct hw_policy *p, uint32_t *x, uint32_t n)\n{{\n"
    sources = [("policy.h", POLICY), ("core.h", f"{code}    {statements}\n}}\n")]
    parts = specialise(sources, policy(general()), ["hw_f"], "app", parting=Parting(finish=True))
    text = unprefixed(parts.functions)
    return dedent(text[text.index(f"{result} f(") :].split("{\n", 1)[1].split("\n}\n", 1)[0] + "\n")


def lines(text: str) -> str:
    return dedent(text).lstrip("\n")


def test_a_body_stands_where_it_was_called() -> None:
    assert body("/* Sets both words. */\n" + SET, "set(x, n); return n;") == lines("""
        /* sets both words */
        x[0] = n;
        x[1] = n;
        return n;
        """)


def test_an_argument_that_is_more_than_a_name_gets_one() -> None:
    helper = "static uint32_t twice(uint32_t *x, uint32_t m)\n{\n    x[0] = m;\n    return m * m;\n}\n"
    assert body(helper, "const uint32_t y = twice(x, n + 1u); return y - n;") == lines("""
        const uint32_t m = n + 1u;
        x[0] = m;
        const uint32_t y = m * m;
        return y - n;
        """)


def test_what_is_returned_at_once_becomes_a_condition() -> None:
    helper = """
static uint32_t got(uint32_t *x, uint32_t n)
{
    if (x[0] == 0) {
        return 0;
    }
    const uint32_t size = x[0];
    x[0] = n;
    return size;
}
"""
    assert body(helper, "const uint32_t gained = got(x, n); x[1] = gained; return gained + n;") == lines("""
        uint32_t gained = 0;
        if (x[0] != 0u) {
            gained = x[0];
            x[0] = n;
        }
        x[1] = gained;
        return gained + n;
        """)


def test_a_value_that_is_tested_already_is_not_given_again() -> None:
    helper = """
static uint32_t got(uint32_t *x, uint32_t n)
{
    const uint32_t size = x[0];
    if (size == 0) {
        return 0;
    }
    x[0] = n;
    return size;
}
"""
    assert body(helper, "const uint32_t gained = got(x, n); x[1] = gained; return gained + n;") == lines("""
        const uint32_t gained = x[0];
        if (gained != 0u) {
            x[0] = n;
        }
        x[1] = gained;
        return gained + n;
        """)


def test_another_value_is_given_before_the_condition() -> None:
    helper = """
static uint32_t got(uint32_t *x, uint32_t n)
{
    const uint32_t size = x[0];
    if (size == 3u) {
        return 0;
    }
    x[0] = n;
    return size;
}
"""
    remaining = body(helper, "const uint32_t gained = got(x, n); x[1] = gained; return gained + n;")
    assert "got(x, n)" in remaining  # one variable cannot hold both


def test_a_value_that_nobody_wants_is_found_where_that_does_something() -> None:
    helper = """
static uint32_t count(uint32_t *x)
{
    x[0] = x[0] + 1u;
    x[2] = x[0];
    return x[0];
}
static uint32_t set(uint32_t *x, uint32_t n)
{
    x[1] = n;
    return count(x);
}
"""
    assert body(helper, "set(x, n); count(x); return n;") == lines("""
        x[1] = n;
        count(x);
        count(x);
        return n;
        """)


def test_a_choice_of_a_call_becomes_a_guard() -> None:
    helper = "static uint32_t take(uint32_t *x, uint32_t n)\n{\n    x[0] = n;\n    return x[1];\n}\n"
    assert body(helper, "return n ? take(x, n) : 7u;") == lines("""
        if (n == 0u) {
            return 7u;
        }
        x[0] = n;
        return x[1];
        """)


def test_a_rare_call_that_is_no_longer_than_its_function_is_none() -> None:
    helper = SET.replace("static void", "#define HW_COLD static\nHW_COLD void")
    assert body(helper, "set(x, n); return n;") == "x[0] = n;\nx[1] = n;\nreturn n;\n"


def test_a_choice_by_a_call_becomes_what_is_returned() -> None:
    helper = """
static int fits(uint32_t *x, uint32_t n)
{
    if (n > x[1]) {
        return 0;
    }
    x[0] = n;
    return 1;
}
"""
    assert body(helper, "return fits(x, n) ? n : 7u;") == lines("""
        if (n > x[1]) {
            return 7u;
        }
        x[0] = n;
        return n;
        """)


def test_guards_that_return_the_value_at_hand_or_none_are_nested() -> None:
    helper = """
static uint32_t got(uint32_t *x, uint32_t n)
{
    if (n > 5u) {
        return 0;
    }
    const uint32_t at = x[0];
    if (at) {
        return at;
    }
    const uint32_t next = x[1];
    if (next == n) {
        return 0;
    }
    x[1] = next + 1u;
    return next * 4u;
}
"""
    assert body(helper, "const uint32_t at = got(x, n); x[2] = at; return at + n;") == lines("""
        uint32_t at = 0;
        if (n <= 5u) {
            at = x[0];
            if (at == 0u) {
                const uint32_t next = x[1];
                if (next != n) {
                    x[1] = next + 1u;
                    at = next * 4u;
                }
            }
        }
        x[2] = at;
        return at + n;
        """)


def test_a_value_that_a_condition_at_the_call_tells_is_not_given_again() -> None:
    helper = """
static uint32_t got(uint32_t *x, uint32_t n)
{
    const uint32_t next = x[1];
    if (next == n) {
        return 0;
    }
    x[1] = next + 1u;
    return next * 4u;
}
"""
    assert body(helper, "uint32_t at = x[0]; if (at == 0) { at = got(x, n); } x[2] = at; return at;") == lines("""
        uint32_t at = x[0];
        if (at == 0u) {
            const uint32_t next = x[1];
            if (next != n) {
                x[1] = next + 1u;
                at = next * 4u;
            }
        }
        x[2] = at;
        return at;
        """)


PARAMETERS = "(uint32_t *x, uint32_t n)\n{"
LOOP = "while (n > 5u) {\n        if (x[2] == n) {\n            return;\n        }\n        n--;\n    }"
LOW = "static uint8_t low(uint32_t *x, uint32_t n)\n{\n    x[0] = n;\n    return n + x[1];\n}\n"
OTHER = "/* See set(). */\nstatic uint32_t other(uint32_t *x)\n{\n    return x[7] + x[8] + x[9] * 2u;\n}\n"
RARE = SET.replace("static void", "HW_COLD void").replace("x[0] = n;", "x[0] = n;\n" * 2)
CALLS = {
    "called twice": (SET, "set(x, n); set(x, n + 1u); return n;"),
    "rare": (RARE, "set(x, n); return n;"),
    "a name taken": (
        SET.replace(PARAMETERS, PARAMETERS + "\n    uint32_t y = n;\n    n = y + x[0];"),
        "uint32_t y = 5u; y += n; set(x, n); return y;",
    ),
    "another type": (LOW, "return low(x, n);"),
    "a return in a loop": (SET.replace("x[0] = n;", LOOP), "set(x, n); return n;"),
    "too long": (SET.replace("x[0] = n;", "x[0] = n;\n" * 24), "set(x, n); return n;"),
    "spoken of": (OTHER + SET, "set(x, n); return other(x) + other(x + 1);"),
}


@pytest.mark.parametrize(("helpers", "statements"), CALLS.values(), ids=CALLS)
def test_a_call_stays(helpers: str, statements: str) -> None:
    cold = "#define HW_COLD static\n" if "HW_COLD" in helpers else ""
    remaining = body(cold + helpers, statements)
    assert "set(" in remaining or "low(" in remaining


def test_what_is_rare_stays_apart_from_what_is_frequent() -> None:
    """A function that is put into each of its callers would take with it, in each, what it calls once."""
    helper = SET + "HW_HOT void hot(uint32_t *x, uint32_t n)\n{\n    x[2] = n;\n    set(x, n);\n}\n"
    remaining = body("#define HW_HOT static\n" + helper, "hot(x, n); hot(x, n + 1u); return n;")
    assert "hot(x, n)" in remaining and "x[0]" not in remaining
