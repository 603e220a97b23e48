"""Objectives computed from metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_tables import each

from heapwright._replay.metrics import METRICS, Columns, named_in, parse_objectives
from heapwright._support.errors import ParameterError


def columns(**values: list[float]) -> Columns:
    result = Columns({key: np.array(values.get(key, [np.nan] * 3)) for key in METRICS})
    result.calls = 10.0
    return result


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("accesses/calls", [3.0, 0.0, np.nan]),
        ("1 / reads", [0.5, np.nan, 0.25]),
        ("greatest(reads, writes, 3) - least(reads, writes)", [23.0, 9.0, 3.0]),
        ("-(-reads) * 2 + sqrt(writes)", [9.0, 3.0, 9.0]),
        ("abs(reads - 3) + ln(calls / 10)", [1.0, 3.0, 1.0]),
    ],
)
def test_expressions_are_worked_out(text: str, values: list[float]) -> None:
    (key,) = parse_objectives([text])
    assert METRICS[key].direction == "min" and METRICS[key].key == key
    known = columns(accesses=[30.0, 0.0, np.nan], reads=[2.0, 0.0, 4.0], writes=[25.0, 9.0, 1.0])
    np.testing.assert_allclose(known[key], values)


def test_expressions_are_told_apart_at_commas_and_alike_whatever_their_blanks() -> None:
    assert parse_objectives("footprint_bytes, greatest(reads,writes), accesses/calls") == (
        "footprint_bytes",
        "greatest(reads, writes)",
        "accesses / calls",
    )
    with pytest.raises(ParameterError, match="repeats a metric"):
        parse_objectives("accesses / calls,accesses/calls")
    assert named_in("code_bytes + 2 * greatest(reads, calls)") == {"code_bytes", "reads"}


@each(
    ("text", "wrong"),
    [
        ("acceses / calls", r"'acceses' is no metric; did you mean accesses"),
        ("accesses /", "no arithmetic; valid: metrics, calls"),
        ("1 + 2", "names no metric"),
        ("calls" + " + accesses" * 700, "more than 64 operations within one another"),
        ("-" * 90 + "accesses", "more than 64 operations within one another"),
        ("accesses ** 2", r"'accesses \*\* 2' has no meaning here"),
        ("sqrt(reads, writes)", "sqrt takes one value"),
        ("reads if writes else 1", "has no meaning here"),
        ("reads.__class__", "has no meaning here"),
        ("open(reads)", "'open' is no metric"),
        ("sqrt", "'sqrt' is no metric"),
    ],
)
def test_what_is_no_expression_is_told_with_what_is(text: str, wrong: str) -> None:
    with pytest.raises(ParameterError, match=wrong):
        parse_objectives([text])


def test_values_below_0_are_refused() -> None:
    (key,) = parse_objectives("-utilisation")
    with pytest.raises(ParameterError, match="below 0 of some recipe, and less is better"):
        _ = columns(utilisation=[0.5, 0.6, 0.7])[key]


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda m: m["accesses"] / m["calls"], "accesses / calls"),
        (lambda m: 2 * (m["reads"] - 1) + abs(m["writes"]), "2.0 * (reads - 1.0) + abs(writes)"),
        (lambda m: 1 / m["utilisation"], "1.0 / utilisation"),
    ],
)
def test_a_function_becomes_its_expression(function: Callable[[Any], Any], text: str) -> None:
    assert parse_objectives(function) == parse_objectives(["accesses", function])[1:] == (text,)


@pytest.mark.parametrize(
    ("function", "wrong"),
    [
        (lambda m: m["acceses"], "'acceses' is no metric; did you mean accesses"),
        (lambda m: 3, "has to return a value computed from metrics"),
        (lambda m: max(m["reads"], m["writes"]), "arithmetic with metrics alone"),
        (lambda m: m["reads"] + "1", "arithmetic with metrics alone"),
    ],
)
def test_a_function_that_does_more_than_arithmetic_is_refused(function: Callable[[Any], Any], wrong: str) -> None:
    with pytest.raises(ParameterError, match=wrong):
        parse_objectives([function])
