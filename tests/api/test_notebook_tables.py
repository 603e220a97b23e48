"""What a notebook shows of studies, members, recipes, arenas, profiles and robustness."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sample_studies import IDS, TRACES, identity, metrics, result, write_five

import heapwright as hw
from heapwright._studies.records import TraceInfo


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> hw.Study:
    return hw.open_study(write_five(tmp_path_factory.mktemp("shown") / "five.duckdb"))


def cells(html: str) -> list[list[str]]:
    """The text of each cell, row by row; fails where there is markup in it."""
    rows = re.findall(r"<tr>(.*?)</tr>", html, flags=re.DOTALL)
    return [re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", row) for row in rows]


def test_a_study_shows_its_front_with_reserve_and_role(study: hw.Study) -> None:
    headings, *rows = cells(study._repr_html_())
    assert headings[:3] == ["heap", "reserve", "footprint_bytes"]
    assert headings[-1] == "role"
    assert {row[0] for row in rows} >= {item.label for item in study.front()}
    roles = {row[0]: row[-1] for row in rows}
    assert "balanced" in roles[study.pick().label]


def test_a_member_shows_its_metrics_and_its_recipe(study: hw.Study) -> None:
    html = study[IDS[0]]._repr_html_()
    assert ["footprint_bytes", f"{study[IDS[0]].metrics['footprint_bytes']:,}"] in cells(html)
    assert "kind = &quot;general&quot;" in html


def test_names_are_text_and_no_markup() -> None:
    recipe = hw.Recipe.parse('name = "<b>x</b>"\n[[pool]]\nkind = "general"\n', "here")
    assert "<b>" not in recipe._repr_html_()
    assert "&lt;b&gt;x" in recipe._repr_html_()


def test_an_arena_and_a_profile_are_tables() -> None:
    fit = hw.fit(TRACES[0], "tlsf")
    assert ["reserve bytes", f"{fit.reserve_bytes:,}"] in cells(fit._repr_html_())
    profile = hw.profile(TRACES[0])
    assert ["24", "1", "50.0%"] in cells(profile._repr_html_())
    assert dict(profile) == profile


def test_robustness_shows_what_was_tried_elsewhere(study: hw.Study) -> None:
    headings, *rows = cells(study.robustness()._repr_html_())
    assert headings[0] == "heap"
    assert headings[-1] == "fit to ship"
    assert rows == []  # nothing was


def test_robustness_shows_each_recipe_that_was_tried_on_all_of_them(tmp_path: Path) -> None:
    with hw.Study.create_or_resume(write_five(tmp_path / "five.duckdb"), identity()) as study:
        study.set_apart([TraceInfo.of(TRACES[1])], "held out")
        study.add([result(0, metrics(10, 20), "idle"), result(1, metrics(25, 10), "idle")], "held out")
        study.add([result(2, metrics(20, 10, failed=3), "idle")], "held out")
        headings, *rows = cells(study.robustness()._repr_html_())
    there = ["footprint_bytes, traces held out", "accesses, traces held out"]
    assert headings == ["heap", *there, "fit to ship"]
    assert sorted(rows) == sorted(
        [
            [IDS[0], "1.00 x", "2.00 x", "yes"],
            ["alpha", "2.50 x", "1.00 x", "yes"],
            ["beta", "inf x", "inf x", "failed 3 requests on traces held out, as on idle"],
        ]
    )
