"""What the benchmark concludes from its measurements: ratios and aims of made-up times, worked out by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"

FOLDED = {"exact-bins": 10.0, "tlsf": 40.0, "exact-bins + 3 lists": 6.0, "tlsf + 3 lists": 9.0}
RUN_TIME = {"exact-bins": 20.0, "tlsf": 40.0, "exact-bins + 3 lists": 24.0, "tlsf + 3 lists": 18.0}


@pytest.fixture(scope="module")
def results() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCH)
        import results

        yield results


@pytest.fixture
def measured(results: ModuleType) -> list[Any]:
    """A synthetic and a real trace; on the real one an arena of tlsf is not to be had."""
    lists = "exact-bins + 3 lists"
    return [
        results.Measured(
            trace="made", set="synthetic", events=10, peak_live_bytes=1000,
            arena_bytes={"victim-bins": 1200, "tlsf": 1500, "dlmalloc": 1000},
            ns={"victim-bins": 10.0, "glibc": 20.0, "tlsf": 40.0, "dlmalloc": 16.0, lists: 6.0, "empty": 4.0},
            ns_written={"victim-bins": 30.0, "glibc": 20.0, "empty": 4.0}, ns_folded=FOLDED, ns_run_time=RUN_TIME,
            ns_threads={"lock x2": 40.0, "cached x2": 10.0},
        ),
        results.Measured(
            trace="seen", set="real", events=10, peak_live_bytes=2000,
            arena_bytes={"victim-bins": 5000, "tlsf": None, "dlmalloc": None},
            ns={"victim-bins": 80.0, "glibc": 10.0, "tlsf": 40.0, lists: 6.0, "empty": 2.0},
            ns_written={"victim-bins": 30.0, "tlsf": 15.0, "empty": 2.0}, ns_folded=FOLDED, ns_run_time=RUN_TIME,
            ns_threads={"lock x2": 25.0, "cached x2": 25.0},
        ),
    ]  # fmt: skip


def test_ratios_are_geometric_means_over_the_traces_of_a_set(results: ModuleType, measured: list[Any]) -> None:
    result = results.ratios(measured)
    assert result["time"]["victim-bins"]["glibc"] == pytest.approx({"synthetic": 0.5, "real": 8, "all": 2})
    assert result["time"]["victim-bins"]["tlsf"] == pytest.approx({"synthetic": 0.25, "real": 2, "all": 0.5**0.5})
    assert set(result["time"]) == {"victim-bins", "glibc", "tlsf", "dlmalloc", "exact-bins + 3 lists"}
    assert set(result["time"]["tlsf"]) == {"dlmalloc", "tlsf", "glibc"}


def test_without_the_loop_an_empty_heaps_time_is_taken_from_both(results: ModuleType, measured: list[Any]) -> None:
    result = results.ratios(measured)["time_without_loop"]["victim-bins"]["glibc"]
    assert result == pytest.approx({"synthetic": 6 / 16, "real": 78 / 8, "all": (6 / 16 * 78 / 8) ** 0.5})


def test_arenas_stand_over_live_bytes_and_over_dlmallocs(results: ModuleType, measured: list[Any]) -> None:
    result = results.ratios(measured)["arena_over_dlmalloc"]
    assert result["tlsf"] == {"synthetic": pytest.approx(1.5), "real": None, "all": pytest.approx(1.5)}


def test_a_trace_that_lacks_a_number_does_not_count(results: ModuleType, measured: list[Any]) -> None:
    result = results.ratios(measured)
    assert result["time_written"]["victim-bins"] == {
        "dlmalloc": {"synthetic": None, "real": None, "all": None},
        "glibc": {"synthetic": pytest.approx(1.5), "real": None, "all": pytest.approx(1.5)},
        "tlsf": {"synthetic": None, "real": pytest.approx(2), "all": pytest.approx(2)},
    }
    arenas = result["arena_over_live"]
    assert arenas["victim-bins"] == pytest.approx({"synthetic": 1.2, "real": 2.5, "all": 3**0.5})
    assert arenas["tlsf"] == {"synthetic": pytest.approx(1.5), "real": None, "all": pytest.approx(1.5)}


def test_folded_policies_over_those_read_at_run_time(results: ModuleType, measured: list[Any]) -> None:
    """1/2, 1, 1/4 and 1/2: their product is 1/16, its fourth root 1/2."""
    folded = results.ratios(measured)["folded_over_run_time"]
    assert {name: item["all"] for name, item in folded.items()} == pytest.approx(
        {"exact-bins": 0.5, "tlsf": 1, "exact-bins + 3 lists": 0.25, "tlsf + 3 lists": 0.5, "all four": 0.5}
    )


def test_aims_that_are_met_and_missed(results: ModuleType, measured: list[Any]) -> None:
    result = results.aims(measured, 751)
    assert [(aim.limit, aim.measured, aim.met) for aim in result] == [
        (0.95, None, None),
        (0.60, pytest.approx(10 / 16, abs=1e-4), False),
        (1.00, None, None),
        (0.65, pytest.approx(2), False),
        (0.55, pytest.approx(0.7071, abs=1e-4), False),
        (1, pytest.approx(0.8), True),
        (0.60, pytest.approx(0.4243, abs=1e-4), True),  # 6/20 and 6/10: the root of 0.18
        (0.90, pytest.approx(0.5), True),
        (750, 751, False),
        *((limit, None, None) for limit in (0.65, 0.42, 0.60, 0.20, 1.01)),  # nothing named all-round was measured
        (0.50, pytest.approx(0.5), True),  # 1/4 and 1
    ]
    assert result[5].remark == "largest on made; not below on 0 of 1 traces"


def test_an_aim_is_met_at_its_limit_but_an_arena_has_to_be_smaller(results: ModuleType, measured: list[Any]) -> None:
    measured[1].arena_bytes["tlsf"] = 5000
    result = results.aims(measured, 750)
    arena, code = result[5], result[8]
    assert (arena.measured, arena.met, arena.remark) == (1, False, "largest on seen; not below on 1 of 2 traces")
    assert code.met


def test_what_could_not_be_measured_has_no_verdict(results: ModuleType, measured: list[Any]) -> None:
    for item in measured:
        del item.ns["glibc"]
        item.arena_bytes["tlsf"] = None
    result = results.aims(measured, None)
    assert [(aim.measured, aim.met) for aim in result if aim.limit in (0.65, 1, 750)] == [(None, None)] * 5
