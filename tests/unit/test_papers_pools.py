"""The page about pools under Poisson load, against theory and an independent simulation."""

from __future__ import annotations

import pytest

from heapwright.papers import pools


def test_erlang_b_against_known_values() -> None:
    assert pools.erlang_b(2, 2) == pytest.approx(0.4)
    assert pools.erlang_b(10, 10) == pytest.approx(0.2146, abs=1e-4)
    assert 1 - pools.erlang_b(500, 272) == pytest.approx(0.54, abs=0.005)


def test_a_partition_costs_its_descriptor_and_a_buffer_what_one_says() -> None:
    shares = {(one.pool, one.total, one.size): one.share for one in pools.overheads()}
    assert shares["variable pool", 65536, 16] == pytest.approx(32 / 16, abs=0.001)
    assert shares["variable pool", 524288, 1024] == pytest.approx(32 / 1024, abs=0.001)
    assert shares["fixed pool, 8 B a buffer", 65536, 64] == pytest.approx(8 / 64, abs=0.001)
    assert shares["fixed pool, 0 B a buffer", 65536, 64] < 0.001
