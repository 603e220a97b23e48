"""The page about pools for packets: the paper's example, its pools with free lists, and its baseline."""

from __future__ import annotations

from pathlib import Path

import pytest

from heapwright.papers import wifi
from heapwright.papers.page import Page
from heapwright.replay.replay import replay
from heapwright.traces.trace import Trace


@pytest.mark.parametrize("size", [513, 1000, 1024])
def test_a_request_takes_the_third_block_of_figure_2(size: int) -> None:
    """Loads of the head, of word and link of two blocks in use and of the free one's word; a store that takes it."""
    assert wifi.figure_2(size) == (1024, 1 + 2 + 2 + 1 + 1, False)


@pytest.mark.parametrize(("size", "block"), [(512, 512), (1025, 1500), (1200, 1500), (1500, 1500)])
def test_a_class_without_blocks_grows(size: int, block: int) -> None:
    """The head; limit, high-water mark, new limit; word, tail, chain, head, tail of the block, which is taken."""
    assert wifi.figure_2(size) == (block, 1 + 3 + 5, True)


def test_free_lists_change_the_search_and_nothing_else() -> None:
    """The n-th allocation walks over n - 1 blocks, word and link each, before it grows."""
    count = 50
    op, id = [0] * count + [3] * count, [*range(count)] * 2
    trace = Trace.from_columns(op=op, id=id, size=[40] * count + [0] * count)
    walking, listed = (replay(trace, wifi.recipe_of(heap)) for heap in (wifi.FIXED, wifi.LISTED))
    assert walking["allocated_peak_bytes"] == listed["allocated_peak_bytes"] == 40 * count
    assert walking["accesses"] == 9 * count + 2 * (count * (count - 1) // 2) + 3 * count
    assert listed["accesses"] == 11 * count + 5 * count


def test_names_are_heaps() -> None:
    for heap in wifi.HEAPS:
        if heap != wifi.TUNED:
            assert wifi.recipe_of(heap).name == heap


def test_the_papers_mix_gives_its_fragmentation_and_explains_its_baseline(tmp_path: Path, no_tools: None) -> None:
    page = Page("mix", "Mix", "paper")
    wifi._paper_mix(page)
    claims = {claim.claim: claim for claim in page.claims}
    assert claims["8.05 % of fragmentation (wifi-special-pools, the paper's mix)"].holds
    linux = claims["188.74 % of Linux (linux-pow2-page, the paper's mix)"]
    assert 140 < float(linux.our_value.split()[0]) < 190
    rows = [line.strip("| ").split(" | ") for line in page.write(tmp_path)[0].read_text().splitlines()]
    wasted = {row[0]: row[-1] for row in rows if len(row) == 5}
    assert float(wasted["1025–4096 B"].replace(",", "")) == pytest.approx(960_000, rel=0.05), "most of the waste"
