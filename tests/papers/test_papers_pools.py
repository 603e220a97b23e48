"""The page about pools under Poisson load, against theory and an independent simulation."""

from __future__ import annotations

import pytest
from networks import network

from heapwright_papers import pools as pools


def test_erlang_b_against_known_values() -> None:
    assert pools.erlang_b(2, 2) == pytest.approx(0.4)
    assert pools.erlang_b(10, 10) == pytest.approx(0.2146, abs=1e-4)
    assert 1 - pools.erlang_b(500, 272) == pytest.approx(0.54, abs=0.005)


def test_a_partition_costs_its_descriptor_and_a_buffer_what_one_says() -> None:
    shares = {(item.pool, item.total, item.size): item.share for item in pools.overheads()}
    assert shares["variable pool", 65536, 16] == pytest.approx(32 / 16, abs=0.001)
    assert shares["variable pool", 524288, 1024] == pytest.approx(32 / 1024, abs=0.001)
    assert shares["fixed pool, 8 B a buffer", 65536, 64] == pytest.approx(8 / 64, abs=0.001)
    assert shares["fixed pool, 0 B a buffer", 65536, 64] < 0.001


def test_the_exact_admission_is_erlangs_at_the_papers_load() -> None:
    assert pools.exact_admission(1 / 500) == pytest.approx(0.5417, abs=1e-4)


def test_lists_by_length_take_fewer_accesses_and_refuse_no_more() -> None:
    scenario = pools.Scenario(0.002, 80, 2000)
    linked, listed = pools.run(
        scenario, [pools.pool_alone(pools.pools()[name]) for name in (pools.VARIABLE, pools.INDEXED)], 20_000
    )
    assert listed.accesses < 0.5 * linked.accesses
    assert listed.admission > linked.admission - 0.01


def test_real_packets_come_at_the_papers_rate_in_their_own_order() -> None:
    table = network(1)
    result = pools.on_packets("campus", table, requests=2_000)
    assert result is not None and result.network == "campus"
    assert result.mean_size == pytest.approx(float(table.ip_len[table.ip_len > 0][:2_000].mean()))
    assert result.points[pools.FIXED].admission == pytest.approx(pools.exact_admission(1 / pools.RATE), abs=0.15)
    assert pools.on_packets("air", network(1, with_ip=False)) is None
