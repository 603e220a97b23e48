"""The page about pools under Poisson load, against theory and an independent simulation."""

from __future__ import annotations

from pathlib import Path

import pytest

from heapwright.papers import pools


def test_erlang_b_against_known_values() -> None:
    assert pools.erlang_b(2, 2) == pytest.approx(0.4)
    assert pools.erlang_b(10, 10) == pytest.approx(0.2146, abs=1e-4)
    assert 1 - pools.erlang_b(500, 272) == pytest.approx(0.54, abs=0.005)


# Admission of the variable pool by an independent simulation of the paper's rules, in experiments 1 to 3.
VARIABLE_POOL = {
    "load": (0.17, 0.36, 0.55, 0.75, 0.92, 0.999, 1.0),
    "smallest": (0.744, 0.727, 0.679, 0.608, 0.512),
    "largest": (1.0, 0.998, 0.964, 0.891, 0.811, 0.744),
}


def test_pools_admit_what_theory_and_an_independent_simulation_expect() -> None:
    # A tenth of the paper's requests: three times as much is left to chance as on the page.
    found = pools.experiments(requests=100_000)
    for name, expected in VARIABLE_POOL.items():
        assert found[name].of(pools.VARIABLE, "admission") == pytest.approx(list(expected), abs=0.03)
    theory = [1 - pools.erlang_b(1 / load, 272) for load in pools.LOADS]
    assert found["load"].of(pools.FIXED, "admission") == pytest.approx(theory, abs=0.02)
    assert found["load"].of(pools.FIXED, "utilisation") == pytest.approx([0.50] * 7, abs=0.02)


def test_the_page_of_pools_has_all_five_experiments(tmp_path: Path) -> None:
    page = pools.page(None, lambda line: None, requests=10_000)
    page.write(tmp_path)
    for figure in ("load", "smallest", "largest", "partition", "overhead"):
        assert (tmp_path / f"pools-{figure}.png").is_file()
    claims = {claim.claim: claim.holds for claim in page.claims}
    assert claims["fixed-size pools always have the smaller overhead"]
    assert not claims["utility has a maximum, after which memory is idle (fixed pool)"]


def test_a_partition_costs_its_descriptor_and_a_buffer_what_one_says() -> None:
    shares = {(one.pool, one.total, one.size): one.share for one in pools.overheads()}
    assert shares["variable pool", 65536, 16] == pytest.approx(32 / 16, abs=0.001)
    assert shares["variable pool", 524288, 1024] == pytest.approx(32 / 1024, abs=0.001)
    assert shares["fixed pool, 8 B a buffer", 65536, 64] == pytest.approx(8 / 64, abs=0.001)
    assert shares["fixed pool, 0 B a buffer", 65536, 64] < 0.001
