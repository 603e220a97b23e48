"""Constants that the generator works out are those that C would have, and are written as C reads them."""

from __future__ import annotations

import pytest
from case_tables import each

from heapwright._generate.program import MIRRORED, binary_value, negated, number, unary_value
from heapwright._generate.syntax import Binary, Identifier


@each(
    ("op", "left", "right", "value"),
    [
        *(("/", left, right, value) for left, right, value in ((7, 2, 3), (-7, 2, -3), (7, -2, -3), (-7, -2, 3))),
        *(("%", left, right, value) for left, right, value in ((7, 3, 1), (-7, 3, -1), (7, -3, 1), (-7, -3, -1))),
        *((op, 1, 0, None) for op in "/%"),
        *((op, 1, far, None) for op in ("<<", ">>") for far in (64, -1)),
        ("<<", 1, 63, 1 << 63),
        (">>", 9, 0, 9),
        (">>", 9, 2, 2),
        ("+", 3, 4, 7),
        ("-", 3, 4, -1),
        ("*", 3, 4, 12),
        ("&", 6, 3, 2),
        ("|", 6, 3, 7),
        ("^", 6, 3, 5),
        ("&&", 1, 1, None),
        (",", 1, 2, None),
    ],
)
def test_operations_are_those_of_c(op: str, left: int, right: int, value: int | None) -> None:
    assert binary_value(op, left, right) == value


@pytest.mark.parametrize(
    ("op", "of"), [("==", "010"), ("!=", "101"), ("<", "100"), ("<=", "110"), (">", "001"), (">=", "011")]
)
def test_comparisons_are_those_of_c(op: str, of: str) -> None:
    for remaining, wanted in enumerate(of, 1):
        assert binary_value(op, remaining, 2) == binary_value(MIRRORED[op], 2, remaining) == int(wanted)
        opposite = negated(Binary(op, Identifier("a"), Identifier("b")))
        assert isinstance(opposite, Binary) and binary_value(opposite.op, remaining, 2) == 1 - int(wanted)


def test_unary_operations_are_those_of_c() -> None:
    assert [unary_value(op, 5) for op in "-~!+*"] == [-5, ~5, 0, 5, None]
    assert unary_value("!", 0) == 1


@pytest.mark.parametrize(
    ("value", "typed", "text"),
    [
        (7, "uint32_t", "7u"),
        (0xFFFFFFFF, "uint32_t", "UINT32_MAX"),
        (0xFFFFFFFE, "uint32_t", "4294967294u"),
        (0xFFFFFFFF, "uint64_t", "4294967295ull"),
        (-1, "int64_t", "-1ll"),
        (7, "int", "7"),
        (7, None, "7"),
    ],
)
def test_numbers_have_the_suffix_of_their_type(value: int, typed: str | None, text: str) -> None:
    result = number(value, typed)
    assert (result.text, result.value, result.type) == (text, value, typed)
