"""Copies of C in which members of structs are numbers: which reads are replaced, and what is reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from case_tables import each

from heapwright._generate.partial_policy import Sources
from heapwright._generate.syntax import GrammarError

TYPES = """
enum { HW_FIRST = 0, HW_SECOND = 1, HW_THIRD = 2 };

struct hw_links {
    uint32_t shift;
};

struct hw_part {
    uint32_t align;
    struct hw_links links;
    uint32_t kind;
    uint32_t sizes[4];
};

struct hw_policy {
    uint32_t align;
    struct hw_part parts[2];
    union {
        struct hw_part part;
        uint32_t other;
    };
};

struct calls {
    uint32_t align;
};

static inline const struct hw_part *part_of(const struct hw_policy *policy, uint32_t i)
{
    return &policy->parts[i];
}
"""
KNOWN = {"hw_part": {"align": "8u"}, "hw_links": {"shift": "3u"}}
KINDS = {("hw_part", "kind"): ("HW_FIRST", "HW_SECOND")}


def left(expression: str, before: str = "") -> str:
    """What is left of an expression over a policy p, a part x and calls c."""
    parameters = "const struct hw_policy *p, struct hw_part *x, const struct calls *c"
    code = f"{TYPES}{before}\nstatic inline uint32_t f({parameters})\n{{\n    return {expression};\n}}\n"
    text = Sources([("core.h", code)], []).with_known(KNOWN, KINDS)["core.h"]
    return text.rsplit("return ", 1)[1].split(";")[0]


@each(
    ("expression", "expected"),
    [
        ("x->align", "8u"),
        ("p->parts[x->align].align + p->align", "8u + p->align"),
        ("x->sizes[x->align]", "x->sizes[8u]"),
        ("c->align", "c->align"),
        ("p->part.align", "8u"),
        ("part_of(p, 1u)->links.shift", "3u"),
        ("(*x).align", "8u"),
        ("(&p->parts[0])->align", "8u"),
        ("((const struct hw_part *)c)->align", "8u"),
        ("(c ? p->parts : x)->align", "8u"),
        ("(x + 1)->align", "8u"),
        ("x->align++", "x->align++"),
        ("x->align = 4u", "x->align = 4u"),
        ("*&x->align", "*&x->align"),
        ("x->kind == HW_FIRST", "x->kind == HW_FIRST"),
        ("x->kind == HW_SECOND", "x->kind != HW_FIRST"),
        ("x->kind != HW_SECOND", "x->kind == HW_FIRST"),
        ("x->kind == HW_THIRD", "0"),
        ("x->kind != HW_THIRD && x->align", "1 && 8u"),
        ("x->align == HW_THIRD", "8u == HW_THIRD"),
        ("x->sizes[x->align] == HW_FIRST", "x->sizes[8u] == HW_FIRST"),
    ],
)
def test_reads_are_replaced_by_the_struct_that_they_are_of(expression: str, expected: str) -> None:
    assert left(expression) == expected


def test_a_block_s_own_name_ends_with_it() -> None:
    code = f"""{TYPES}
static inline uint32_t f(struct hw_part *x, const struct calls *c)
{{
    if (c) {{
        const struct calls *x = c;
        return x->align;
    }}
    return x->align;
}}
"""
    text = Sources([], [("around.h", code)]).with_known(KNOWN, KINDS)["around.h"]
    assert "return x->align;\n    }\n    return 8u;" in text


def test_macros_that_paste_names_are_looked_into() -> None:
    macro = "#define ASK(part, what) ((part)->kind == HW_THIRD ? third_##what(part) : first_##what((part)->align))\n"
    assert left("ASK(x, count)", macro) == "(0 ? third_count(x) : first_count(8u))"


def test_attributes_stand_where_they_stood() -> None:
    macro = "#define NOINLINE __attribute__((noinline))\nstatic NOINLINE uint32_t twice(struct hw_part *x)\n{\n"
    macro += "    return 2u * x->align;\n}\n"
    code = f"{TYPES}{macro}"
    text = Sources([("core.h", code)], []).with_known(KNOWN, KINDS)["core.h"]
    assert text == code.replace("x->align", "8u")


@pytest.mark.parametrize(
    ("expression", "wrong"),
    [("y->align", "core.h:35: of what align is a member is not known"), ("f(", "core.h:35: this cannot be read as C")],
)
def test_what_cannot_be_told_is_refused(expression: str, wrong: str) -> None:
    with pytest.raises(GrammarError, match=wrong):
        left(expression)


def test_a_member_that_was_renamed_is_refused() -> None:
    sources = Sources([("core.h", TYPES)], [])
    with pytest.raises(GrammarError, match="struct hw_part has no member alignment"):
        sources.with_known({"hw_part": {"alignment": "8u"}}, {})
    with pytest.raises(GrammarError, match="struct hw_part has no member sort"):
        sources.with_known({}, {("hw_part", "sort"): ("HW_FIRST",)})


def test_the_core_s_own_files_leave_no_read_of_what_is_known() -> None:
    root = Path(__file__).resolve().parents[2]
    core, around = ([(str(p), p.read_text()) for p in sorted((root / d).rglob("*.h"))] for d in ("csrc", "native"))
    known = {"hw_general": {"min_block": "16u"}, "hw_links": {"shift": "0u", "hardened": "0u"}}
    copy = Sources(core, around).with_known(known, {})
    reads = [read for file in Sources(list(copy.items()), []).files for read in file.reads]
    assert reads
    assert not [read for read in reads if read.member in known.get(read.struct, ())]
