"""Pages and figures that TOML declares: which parts stand there, and what becomes of a chart."""

from __future__ import annotations

from typing import Any

import pytest

from heapwright_papers.answers import NO_PACKETS, AbsentError
from heapwright_papers.declared import constants, fill, metrics, page_of, parts, seen
from heapwright_papers.documents import merged
from heapwright_papers.pictures import decades, drawn

FILES: dict[str, Any] = {
    "pages/shared": {"row": {"header": "('name', 'value')", "rows": "[[name, twice]]", "let": {"twice": "2 * value"}}},
    "pages/forms": {
        "dots": {
            "note": "{len(values)} of them",
            "rows": "values",
            "let": {"values": "[{'x': at} for at in range(count)]"},
            "mark": {"type": "point", "color": "=BLUE"},
            "encoding": {"x": {"field": "x:Q", "title": "=axis"}, "y": {"field": "y:N"}},
        }
    },
    "pages/p": {
        "title": "T",
        "paper": "P",
        "constants": {"LIMIT": 2},
        "let": {"twice": "[LIMIT * one for one in runs]", "thrice": "[one + runs[at] for at, one in enumerate(twice)]"}
        | {"of_networks": "[one.name for one in networks]"},
        "metrics": {"run": {"accesses": "reads + writes", "a call": "accesses / calls"}},
        "lead": [{"text": "first"}],
        "part": [{"text": "second"}, {"figure": {"form": "dots", "name": "f", "title": "t", "let": {"count": "3"}}}],
    },
}


@pytest.fixture(autouse=True)
def files(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("declared", "pictures"):
        monkeypatch.setattr(f"heapwright_papers.{module}.tables", FILES.__getitem__)


def told(*given: dict[str, Any], **names: Any) -> list[str]:
    return [str(item) for item in parts(given, names)]


def test_a_part_is_text_and_a_table_of_what_the_expressions_see() -> None:
    part = {"text": "{LIMIT} rows", "header": "('a', 'b')", "rows": "[[1, cell(None)], [2, LIMIT]]", "words": 2}
    assert told(part, LIMIT=2) == ["2 rows", "| a | b |\n| --- | --- |\n| 1 | – |\n| 2 | 2 |"]


def test_a_part_is_like_another_but_for_what_it_says_itself() -> None:
    assert told({"like": "row", "let": {"name": "'n'"}}, value=4) == ["| name | value |\n| --- | ---: |\n| n | 8 |"]
    assert told({"like": "row", "rows": "[['own', 1]]"}, value=4)[0].endswith("| own | 1 |")


def test_a_part_stands_for_each_value_and_only_when_it_is_to() -> None:
    assert told({"each": {"n": "(1, 2, 3)"}, "when": "n != 2", "text": "{n}"}) == ["1", "3"]
    assert told({"when": "networks", "text": "{networks.name}"}, networks=NO_PACKETS) == []
    assert told({"text": "{networks.name}"}, networks=NO_PACKETS) == [], "what is absent is left out"
    with pytest.raises(NameError):
        told({"text": "{other}"})


def test_a_page_is_filled_in_order_and_its_constants_are_the_papers_and_the_modules() -> None:
    page = page_of("p")
    fill(page, {"axis": "the axis"})
    assert (page.title, page.paper, page._lead) == ("T", "P", ["first"])
    assert page._parts == ["second", "![t. 3 of them](f.png)"]
    assert constants("p", {"MOST": 3, "most": 4}) == {"LIMIT": 2, "MOST": 3}


def test_what_a_page_makes_of_its_results_is_seen_by_its_statements_and_of_the_absent_is_absent() -> None:
    known = seen("p", {"MOST": 3, "most": 4}, {"runs": [1, 2], "networks": NO_PACKETS})
    assert (known["LIMIT"], known["MOST"], known["twice"], known["thrice"]) == (2, 3, [2, 4], [3, 6])
    assert "most" not in known
    with pytest.raises(AbsentError, match="--packets"):
        len(known["of_networks"])


def test_metrics_are_what_a_replay_tells_and_what_the_page_makes_of_it() -> None:
    result = metrics("p", "run", {"reads": 4, "writes": 2}, calls=3)
    assert (result.accesses, result["a call"], result.reads) == (6, 2, 4)


def chart(**own: Any) -> dict[str, Any]:
    figure = {"form": "dots", "name": "f{n}", "title": "t", "let": {"count": "2"}, **own}
    result: dict[str, Any] = drawn(figure, {"axis": "the axis", "n": 1}).chart.to_dict()
    return result


def test_a_figure_is_its_form_with_values_types_and_colours() -> None:
    result = chart(encoding={"y": {"title": "own"}})
    assert result["data"] == {"values": [{"x": 0}, {"x": 1}]}
    assert result["mark"] == {"type": "point", "color": "#0072B2"}
    assert result["encoding"]["x"] == {"field": "x", "type": "quantitative", "title": "the axis"}
    assert result["encoding"]["y"] == {"title": "own", "field": "y", "type": "nominal"}
    assert not {"let", "form", "name", "note", "rows"} & set(result)


def test_a_layer_is_left_out_and_panels_stand_below_each_other() -> None:
    layers = [{"mark": {"type": "line"}, "when": "count > 2"}, {"mark": {"type": "bar"}, "when": "count > 1"}]
    assert chart(layer=layers)["layer"] == [{"mark": {"type": "bar"}}]
    result = chart(panels={"at": "('a', 'b')"}, heading="=at * 2", spacing=8)
    assert [panel["title"]["text"] for panel in result["vconcat"]] == ["aa", "bb"] and result["spacing"] == 8


def test_tables_are_merged_and_lists_are_not() -> None:
    assert merged({"a": {"b": 1, "c": 2}, "d": [1]}, {"a": {"c": 3}, "d": [2]}) == {"a": {"c": 3, "b": 1}, "d": [2]}


def test_ticks_are_powers_of_ten_and_threes_where_there_are_few() -> None:
    assert decades(5, 2000) == [10, 100, 1000]
    assert decades(5, 2000, few=3) == [10, 30, 100, 300, 1000]
