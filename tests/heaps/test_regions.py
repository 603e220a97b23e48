"""Several memory regions: in which order they serve a trace, and what each then holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import heapwright as hw
from heapwright._cli import heapwright
from heapwright._traces.trace import Trace


def large_after_small() -> Trace:
    """Forty objects of 100 bytes, then one of 3,060: small ones that come first take the room of a larger one."""
    op, id, size = [0] * 40 + [0], list(range(41)), [100] * 40 + [3060]
    return Trace.from_columns(op=op, id=id, size=size, name="t")


REGIONS = (4520, 3110)
HEAP = "freertos-heap4"


def test_the_order_of_regions_decides_what_fails() -> None:
    by_order = {(p.order, p.limit): p.failed for p in hw.fit_regions(large_after_small(), HEAP, REGIONS)}
    assert by_order[(1, 0), None] > 0, "small objects fill the region that alone is left for 3,060 bytes"
    assert min(by_order.values()) == 0


def test_the_best_placement_serves_all_and_says_what_lies_where() -> None:
    trace = large_after_small()
    best = hw.fit_regions(trace, HEAP, REGIONS)[0]
    assert best.failed == 0
    assert all(used <= size for used, size in zip(best.used_bytes, REGIONS, strict=True))
    assert [(c.region, c.objects) for c in hw.region_contents(trace, best)] == [(0, 40), (1, 1)]
    assert hw.replay(trace, best.recipe).metrics["failed"] == 0


def test_of_placements_that_serve_all_the_one_with_most_bytes_spare_in_its_fullest_region_comes_first() -> None:
    regions = (20_000, 6_000)
    placements = hw.fit_regions(large_after_small(), HEAP, regions)
    serving = [item for item in placements if item.failed == 0 and item.limit is None]
    spare = [min(size - used for size, used in zip(regions, item.used_bytes, strict=True)) for item in serving]
    assert len(set(spare)) > 1
    assert spare == sorted(spare, reverse=True)


def test_regions_of_one_size_have_one_order() -> None:
    assert {p.order for p in hw.fit_regions(large_after_small(), HEAP, (8000, 8000))} == {(0, 1)}


def test_a_region_that_gets_nothing_holds_its_control_data() -> None:
    (placement, *_) = hw.fit_regions(large_after_small(), HEAP, (20000, 400))
    assert placement.failed == 0 and 0 < min(placement.used_bytes) < 400


@pytest.mark.parametrize("regions", [(1000,), (1000,) * 5])
def test_too_few_or_many_regions_are_an_error(regions: tuple[int, ...]) -> None:
    with pytest.raises(hw.HeapwrightError, match=f"{len(regions)} regions; give 2 to 4"):
        hw.fit_regions(large_after_small(), HEAP, regions)


def test_the_command_prints_the_best_order_first(tmp_path: Path) -> None:
    large_after_small().write(tmp_path / "t.parquet")
    words = ["fit", str(tmp_path / "t.parquet"), "--heap", HEAP, "--regions", "4520,3110"]
    printed = CliRunner().invoke(heapwright, words).stdout
    assert "4,520 then 3,110" in printed.splitlines()[3]
    assert "In the order 3,110, then 4,520 requests fail." in printed
    failing = CliRunner().invoke(heapwright, [*words[:-1], "4520,300"])
    assert "No order serves the trace" in failing.stdout
    assert "Best: 4,520 holds 40 objects of 100 to 100 B; 3,110 holds 1 objects of 3,060 to 3,060 B." in " ".join(
        printed.split()
    )
    rows = json.loads(CliRunner().invoke(heapwright, [*words, "--json"]).stdout)
    assert rows[0]["failed"] == 0 and rows[0]["recipe"]["memory"] == {"region1": 4520, "region2": 3110}
