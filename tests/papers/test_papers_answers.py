"""Statements judged by their TOML: the expressions that it may hold, and the verdicts that follow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from case_tables import each

import heapwright_papers
from heapwright_papers.answers import (
    band,
    between,
    compiled,
    evaluate,
    judged,
    listed,
    literal,
    near,
    one_sided,
    sentence,
)
from heapwright_papers.documents import documents, tables
from heapwright_papers.verdicts import HOLDS, Cause, Kind


def check(answer: dict[str, Any]) -> None:
    """Compile every expression and sentence of an answer."""
    for key, value in answer.items():
        if key in ("let", "each"):
            list(map(compiled, value.values()))
        elif key in ("unless", "lacks", "holds", "at_least", "larger", "noise"):
            compiled(value)
        else:
            compiled(literal(value))


def test_every_expression_of_the_documents_is_one() -> None:
    answers = [
        (statement.id, answer)
        for document in documents()
        for statement in document.statements
        for answer in statement.answers
    ]
    assert len(answers) > 180
    for _, answer in answers:
        check(dict(answer))


PAGES = Path(heapwright_papers.__file__).parent / "pages"
SENTENCES = ("text", "name", "title", "note")
EXPRESSIONS = ("header", "rows", "when")


def check_part(part: object) -> int:
    """Compile the expressions of a part, a figure or a chart; how many there are."""
    if isinstance(part, list):
        return sum(map(check_part, part))
    if not isinstance(part, dict):
        if isinstance(part, str) and part.startswith("="):
            check({"holds": part[1:]})
            return 1
        return 0
    result = 0
    for key, value in part.items():
        if key in ("let", "each", "panels"):
            check({"let": value})
            result += len(value)
        elif key == "metrics":
            result += sum(check_part({"let": item}) for item in value.values())
        elif key in (*SENTENCES, *EXPRESSIONS) and isinstance(value, str) and not value.startswith("="):
            check({"here" if key in SENTENCES else "holds": value})
            result += 1
        elif key != "constants":
            result += check_part(value)
    return result


@each("name", sorted(path.stem for path in PAGES.glob("*.toml")))
def test_every_expression_of_the_pages_is_one(name: str) -> None:
    assert check_part(tables(f"pages/{name}")) >= 4


@pytest.mark.parametrize(
    "part", [{"text": "{a +}"}, {"rows": "lambda: 1"}, {"x": [{"scale": "=a.__b"}]}, {"metrics": {"a": {"b": "c +"}}}]
)
def test_an_expression_of_a_page_that_is_none_is_seen(part: dict[str, object]) -> None:
    with pytest.raises((ValueError, SyntaxError)):
        check_part(part)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("a + 1", 3),
        ("[x for x in b if x > a]", [3]),
        ("f'{a:.1f} of {max(b)}'", "2.0 of 3"),
        ("'less' if a < b[0] else 'more'", "more"),
        ("{name: mean(of) for name, of in {'b': b}.items()}['b']", 2),
        ("near(a, 2.1) and not near(a, 3)", True),
    ],
)
def test_an_expression_sees_results_and_functions(expression: str, value: object) -> None:
    assert evaluate(expression, {"a": 2, "b": [1, 3]}) == value


@pytest.mark.parametrize(
    "expression",
    ["(lambda: 1)()", "a.__class__", "__import__('os')", "(a := 1)", "'{0}'.format(a)", "[_ for _ in a]", "await_(a"],
)
def test_what_the_language_lacks_is_refused(expression: str) -> None:
    with pytest.raises((ValueError, SyntaxError)):
        evaluate(expression, {"a": 2})


def test_nothing_is_seen_but_what_is_handed_over() -> None:
    with pytest.raises(NameError):
        evaluate("open('f')", {})


def test_a_sentence_keeps_its_quotes() -> None:
    assert sentence("Lea's {a} times the pools'", {"a": 2}) == "Lea's 2 times the pools'"
    assert sentence("nothing to put in", {}) == "nothing to put in"


def answered(names: dict[str, Any], **answer: Any) -> list[tuple[str, str, str, str]]:
    return [(here, item.kind.value, item.why, on) for here, item, on in judged(answer, names)]


def test_verdicts() -> None:
    bound = {"here": "{a} B", "holds": "a < 5", "cause": Cause.CHOICE.value, "why": "{a} is 5 or more"}
    assert list(judged(bound, {"a": 4})) == [("4 B", HOLDS, "")]
    assert answered({"a": 7}, **bound) == [("7 B", "does not hold", "7 is 5 or more", "")]
    noise = bound | {"noise": "a < 8", "spread": "up to {a}"}
    assert answered({"a": 7}, **noise) == [("7 B", "holds within noise", "up to 7", "")]
    assert answered({"a": 9}, **noise)[0][1] == "does not hold"
    assert answered({}, here="a table") == [("a table", "shown", "", "")]
    assert answered({}, here="no bound", kind="not tested", why="told") == [("no bound", "not tested", "told", "")]
    assert answered({"tools": "no tools"}, here="{a}", unless="tools") == [("–", "not tested", "no tools", "")]
    (verdict,) = (item for _, item, _ in judged({"here": "x", "holds": "False"}, {}))
    assert verdict.kind is Kind.FAILS and verdict.cause is Cause.UNEXPLAINED


def test_what_goes_beyond_and_what_was_fitted_are_verdicts_of_their_own() -> None:
    beyond = {"here": "{a}", "holds": "band(a, 50) == 0", "larger": "band(a, 50) > 0"}
    kinds = {a: answered({"a": a}, **beyond)[0][1] for a in (-10, 20, 25, 50, 75, 80)}
    assert [*kinds.values()] == ["does not hold", "does not hold", "holds", "holds", "holds", "larger than stated"]
    fitted = beyond | {"fitted": "chosen for it"}
    assert answered({"a": 50}, **fitted) == [("50", "fitted", "chosen for it", "")]
    assert answered({"a": 20}, **fitted)[0][1] == "does not hold"


def test_the_band_is_of_what_is_saved_and_of_what_is_left() -> None:
    assert [band(result, 1.64) for result in (0.7, 0.9, 3.2, 50, 99.3)] == [-1, 0, 0, 1, 1]
    assert [band(result, 97.2) for result in (95, 98.5, 98.7)] == [0, 0, 1]


def test_a_reduction_that_is_smaller_by_a_tenth_at_most_holds_as_any_number_does() -> None:
    assert [band(result, 97.2) for result in (87, 88, 94, 99.9)] == [-1, 0, 0, 1]


def test_on_one_side_what_is_larger_holds_too_and_what_is_short_of_it_does_not() -> None:
    beyond = {"here": "{a}", "holds": "band(a, 50) == 0", "larger": "band(a, 50) > 0", "why": "less"}
    assert [answered({"a": a}, **one_sided(beyond))[0][1] for a in (20, 30, 90)] == ["does not hold", "holds", "holds"]
    least = beyond | {"at_least": "a >= 45", "noise": "True", "spread": "any", "fitted": "chosen"}
    assert [answered({"a": a}, **one_sided(least))[0][1] for a in (30, 90)] == ["does not hold", "holds"]


def test_an_answer_is_given_for_each_value_with_what_follows_from_it() -> None:
    output = answered(
        {}, each={"n": "(1, 2)"}, on="case {n}", let={"twice": "2 * n", "more": "twice + 1"}, here="{more}"
    )
    assert output == [("3", "shown", "", "case 1"), ("5", "shown", "", "case 2")]


def test_a_key_that_is_none_is_named() -> None:
    with pytest.raises(ValueError, match="hold: no key of an answer; valid: at_least, cause, each"):
        answered({}, here="x", hold="True")


def test_numbers_in_words() -> None:
    assert listed([1000, 2]) == "1,000, 2"
    assert between([12.4, 3.14159]) == "3.1 to 12" and between([2, 2]) == "2"
    assert near(1.09, 1.0) and not near(1.2, 1.0)


def test_a_statement_like_another_has_its_answer_but_for_what_it_says_itself() -> None:
    (document,) = (item for item in documents() if item.name == "variable-pools")
    by_id = {statement.id: statement.answers[0] for statement in document.statements if statement.answers}
    base, like = by_id["pools-load-admission"], by_id["pools-load-utility"]
    assert {key for key in base if base[key] != like[key]} == {"let"} and base.keys() == like.keys()
