"""The page about pools for packets: the paper's example, its pools, and what it is measured against."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from networks import network

from heapwright import default_energy_table
from heapwright._explore.special_pools import SPECIAL_POOLS
from heapwright._replay.replay import replay
from heapwright._traces.trace import Trace
from heapwright._traffic.synthetic import synthesise
from heapwright._traffic.workloads.queue import LIMIT, queue
from heapwright_papers import measuring, wifi
from heapwright_papers.documents import statements_of
from heapwright_papers.verdicts import Kind


@pytest.mark.parametrize("size", [513, 1000, 1024])
def test_a_request_takes_the_third_block_of_figure_2(size: int) -> None:
    """The number of blocks; the flags of two blocks in use and of the free one; that one is set."""
    assert wifi.figure_2(size) == (1024, 1 + 3 + 1, False)


@pytest.mark.parametrize(("size", "block"), [(512, 512), (1025, 1500), (1200, 1500), (1500, 1500)])
def test_a_class_without_blocks_grows(size: int, block: int) -> None:
    """The number of blocks, looked up and again, and one more; its flag."""
    assert wifi.figure_2(size) == (block, 4, True)


def test_the_rule_gives_the_papers_seven_pools_for_its_mix() -> None:
    pool = wifi.pools_of(wifi.paper_mix()).pools[0]
    assert pool.model_dump(include={"sizes", "counts", "header", "find"}) == {
        "sizes": (40, 64, 128, 256, 512, 1024, 1500),
        "counts": (LIMIT,) * 7,
        "header": 0,
        "find": "first-fit",
    }


@pytest.mark.parametrize(
    ("size", "accesses"), [(40, 1), (1500, 2), (10, 3), (64, 3), (65, 4), (1000, 7), (1024, 7), (1025, 8), (1499, 8)]
)
def test_a_pool_is_found_in_eight_accesses_at_worst(size: int, accesses: int) -> None:
    """Both special pools by exact fit, then 64 to 1024 bytes by first fit, and the special one that holds it last."""
    assert wifi.finding(wifi.pools_of(wifi.paper_mix()), np.array([size], np.uint32)) == accesses
    assert wifi.finding(wifi.allocators(wifi.paper_mix())[wifi.LEA], np.array([size], np.uint32)) == 0


def test_finding_the_pool_counts_as_accesses_and_as_energy() -> None:
    trace = Trace.from_columns(op=[0, 0, 3, 3], id=[0, 1, 0, 1], size=[40, 1200, 0, 0])
    pools = wifi.pools_of(wifi.paper_mix())
    (found,), bare = wifi.run(pools, [trace], 0), replay(trace, pools)
    assert found.search == 1 + 8 and found.accesses == int(bare["accesses"] or 0) + 9
    assert found.energy == pytest.approx(default_energy_table().energy_nj(found.reads, found.writes, found.allocated))


def test_the_walk_looks_at_every_used_block_once_and_free_lists_at_none() -> None:
    """The n-th allocation reads n - 1 flags. Where blocks are chained in headers each costs two accesses."""
    count = 50
    op, id = [0] * count + [3] * count, [*range(count)] * 2
    trace = Trace.from_columns(op=op, id=id, size=[40] * count + [0] * count)
    heaps = wifi.allocators(wifi.paper_mix())
    results = {heap: replay(trace, recipe) for heap, recipe in heaps.items()}
    accesses = {heap: int(item["accesses"] or 0) for heap, item in results.items()}
    walk = count * (count - 1) // 2
    assert accesses[wifi.POOLS] - walk == 5 * count
    assert accesses[SPECIAL_POOLS] > 2 * walk
    assert accesses[wifi.LISTED] <= 10 * count
    assert accesses[wifi.WALK] > walk
    for heap in (wifi.POOLS, wifi.LISTED, SPECIAL_POOLS):
        assert results[heap]["allocated_peak_bytes"] == 40 * count


def test_samples_are_the_first_packets_averaged_over_networks() -> None:
    """Half acknowledgements in one network, none in the other; the third packet is the first full one."""
    first, other = (network(seed) for seed in (1, 2))
    first.ip_len[:4] = (40, 50, 1500, 40)
    other.ip_len[:4] = (60, 70, 80, 90)
    both = [wifi.network_of(name, table) for name, table in (("a", first), ("b", other))]
    assert wifi.samples(both, 2) == (0.25, 0.0)
    assert wifi.samples(both, 4) == (0.25, 0.125)


def test_a_network_is_foretold_by_its_first_packets() -> None:
    table = network(3)
    table.ip_len[: wifi.SAMPLE] = 100
    table.ip_len[wifi.SAMPLE :] = 200
    result = wifi.foretell(wifi.network_of("late", table))
    assert result.packets == len(table) - wifi.SAMPLE
    assert result.rest == 0, "one pool, of 200 bytes"
    assert result.published == pytest.approx(256 / 200 - 1), "the pool of 256 bytes"
    assert result.first < 0.05, "above the largest pool a general pool serves"


def test_every_statement_is_answered_without_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "session", lambda: None)
    for name, with_ip in (("campus", True), ("air", False)):
        network(len(name), with_ip).write(tmp_path / f"{name}.parquet")
    page = wifi.page(tmp_path, lambda line: None)
    answered = {finding.statement.id: finding for finding in page.findings}
    assert {id for id, finding in statements_of("wifi").items() if not finding.standing} == set(answered)
    assert answered["wifi-performance"].verdict.kind is Kind.NOT_TESTED
    assert answered["wifi-object-code"].verdict.kind is Kind.NOT_TESTED
    mix = {finding.statement.id: finding for finding in page.findings if finding.on == wifi.MIX}
    assert mix["wifi-fragmentation"].here.startswith("8.16")
    assert mix["wifi-fragmentation"].verdict.kind is Kind.HOLDS, "8.05 % follows from the mix that two totals fix"
    assert mix["wifi-footprint"].verdict.kind is Kind.HOLDS
    assert mix["wifi-requested"].verdict.kind is Kind.FITTED, "one of the two totals"
    assert mix["wifi-energy"].here == "15,050 nJ", "with the accesses that find the pool"
    assert mix["wifi-mechanisms"].verdict.kind is mix["wifi-128-pools"].verdict.kind is Kind.FAILS, "by its own walk"


def test_the_papers_baseline_wastes_in_pages_that_hold_one_packet() -> None:
    mix = [queue(synthesise(wifi.paper_mix(), seed=seed)) for seed in range(1, 5)]
    drawn = {heap: wifi.run(recipe, mix, 0) for heap, recipe in wifi.allocators(wifi.paper_mix()).items()}
    results = wifi.Results(mix, drawn, (), {}, None)
    share, needed = wifi.in_pages(results)
    assert share == pytest.approx(0.40, abs=0.01) and needed == pytest.approx(0.40, abs=0.02)
    wasted = {most: count * most - requested for _, most, count, requested in wifi.page_classes(results)}
    assert wasted[4096] > 0.9 * sum(wasted.values())
