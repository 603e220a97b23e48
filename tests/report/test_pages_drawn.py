"""Every part that pages and pictures promise is there, and holds numbers that can be drawn (`sample_pages.py`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from case_tables import each
from sample_pages import drawn, plain

from heapwright._report.figure import quantity

STUDY = """
reserve, arena, trade-off, trade-off-target, search, instructions-malloc-1-busy, instructions-free-1-busy, sizes-busy,
histogram-busy, timeline-busy-balanced-pick, heap-map-busy-balanced-pick, timeline-busy-all-round,
heap-map-busy-all-round, animation-busy-balanced-pick, animation-busy-all-round, title, lead, facts, front, zoo,
held_out, choice, On the target: busy, overview, fronts
"""
"""What a page shows of a study that was tried on copies and a trace held out, and measured on a board."""

TRACE = """
sizes-busy, histogram-busy, live-busy, lifetimes-busy, peak-busy, timeline-busy-wifi-special-pools,
heap-map-busy-wifi-special-pools, timeline-busy-victim-bins, heap-map-busy-victim-bins,
animation-busy-wifi-special-pools, animation-busy-victim-bins, busy, held, title, lead, facts
"""
"""What a page shows of a trace and two heaps."""


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    return drawn(tmp_path_factory.mktemp("drawn"))


@pytest.mark.parametrize(("page", "names"), [("study", STUDY), ("trace", TRACE)])
def test_a_page_has_all_its_parts(page: str, names: str, parts: Mapping[str, Any]) -> None:
    results = {name.removeprefix(f"{page}: ") for name in parts if name.startswith(f"{page}: ")}
    wanted = {*" ".join(names.split()).replace("busy, held", "busy; held").split(", ")}
    assert {name.replace("busy; held", "busy, held") for name in wanted} <= results


def test_commands_draw_attacks_and_stress_tests(parts: Mapping[str, Any]) -> None:
    assert {"picture: attack", "picture: stress test"} <= parts.keys()


def test_no_part_holds_a_number_that_cannot_be_drawn(parts: Mapping[str, Any]) -> None:
    for name, part in parts.items():
        assert json.dumps(plain(part), allow_nan=False), name


@each(
    ("size", "words"),
    [(0, "0 B"), (9_999, "9,999 B"), (10_000, "10 KB"), (999_499, "999 KB"), (999_500, "1,000 KB"),
     (1_000_000, "1 MB"), (1_234_567, "1.23 MB"), (10**9, "1 GB")],
)  # fmt: skip
def test_bytes_have_three_digits_and_the_prefix_of_the_axes(size: int, words: str) -> None:
    assert quantity(size) == words
