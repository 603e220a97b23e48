"""The page about pools for packets: the paper's example, its pools with free lists, and its baseline."""

from __future__ import annotations

from pathlib import Path

import pytest

from heapwright.papers import wifi
from heapwright.papers.page import Page
from heapwright.replay.replay import replay
from heapwright.traces.trace import Trace


def test_the_example_of_figure_2() -> None:
    block, accesses, grew = wifi.figure_2(1000)
    assert (block, grew) == (1024, False), "the third block, which is free"
    assert wifi.figure_2(1200)[::2] == (1500, True)
    assert accesses < wifi.figure_2(1024)[1] + 1, "any size of the class looks at the same blocks"


def test_free_lists_change_the_search_and_nothing_else() -> None:
    count = 50
    op, id = [0] * count + [3] * count, [*range(count)] * 2
    trace = Trace.from_columns(op=op, id=id, size=[40] * count + [0] * count)
    walking, listed = (replay(trace, wifi.recipe_of(heap)) for heap in (wifi.FIXED, wifi.LISTED))
    assert walking["allocated_peak_bytes"] == listed["allocated_peak_bytes"] == 40 * count
    # Each allocation of the first walks over all blocks before it: n (n - 1) / 2 of them, two loads each.
    assert int(walking["accesses"] or 0) - int(listed["accesses"] or 0) > count * (count - 1) / 2


def test_names_are_heaps() -> None:
    for heap in wifi.HEAPS:
        if heap != wifi.TUNED:
            assert wifi.recipe_of(heap).name == heap


def test_the_papers_mix_gives_its_fragmentation_and_explains_its_baseline(tmp_path: Path) -> None:
    page = Page("mix", "Mix", "paper")
    wifi._paper_mix(page)
    claims = {claim.claim: claim for claim in page.claims}
    assert claims["8.05 % of fragmentation (wifi-special-pools, the paper's mix)"].holds
    linux = claims["188.74 % of Linux (linux-pow2-page, the paper's mix)"]
    assert 140 < float(linux.our_value.split()[0]) < 190
    rows = [line.strip("| ").split(" | ") for line in page.write(tmp_path)[0].read_text().splitlines()]
    wasted = {row[0]: row[-1] for row in rows if len(row) == 5}
    assert float(wasted["1025–4096 B"].replace(",", "")) == pytest.approx(960_000, rel=0.05), "most of the waste"
