import math
from pathlib import Path

import numpy as np
import pytest

from heapwright._replay.energy import EnergyTable, default_energy_table, with_energy
from heapwright._replay.metrics import METRICS, combine, combine_columns, metric, parse_objectives
from heapwright._support.errors import HeapwrightError

KEYS_OF_THE_DESIGN = """
requested_peak_bytes allocated_peak_bytes fragmentation fragmentation_with_headers footprint_bytes
internal_bytes external_bytes header_bytes accesses reads writes accesses_malloc_max accesses_malloc_p999
accesses_realloc_max accesses_free_max accesses_free_p999 energy_nJ moved_bytes failed admitted_fraction utilisation
pool_utilisation smallest_arena_bytes lower_bound_bytes reach_bytes long_run_bytes long_run_accesses long_run_growth
long_run_calls long_run_malloc_max long_run_free_max growth_ratio lasts endured_calls worst_steps ns_per_event
instructions_malloc_mean instructions_malloc_max instructions_calloc_max
instructions_realloc_max instructions_free_mean instructions_free_max instructions_pair_mean code_bytes
"""

FRACTIONS = """
fragmentation fragmentation_with_headers energy_nJ admitted_fraction utilisation pool_utilisation
long_run_accesses long_run_growth growth_ratio ns_per_event
instructions_malloc_mean instructions_free_mean instructions_pair_mean
"""
RULES = {
    "sum": "accesses reads writes energy_nJ moved_bytes failed",
    "of-largest-footprint": "internal_bytes external_bytes header_bytes",
    "smallest": "admitted_fraction utilisation pool_utilisation reach_bytes long_run_calls lasts endured_calls",
}

WRITTEN_TABLE = "size_bytes,read_pJ,write_pJ\n100,1,2\n10000,10,4\n"


def measured(**changes: float | None) -> dict[str, float | None]:
    return {**dict.fromkeys(METRICS, 1), **changes}


def test_the_keys_are_the_contract() -> None:
    assert list(METRICS) == KEYS_OF_THE_DESIGN.split()
    assert [key for key, metric in METRICS.items() if not metric.integer] == FRACTIONS.split()
    output = {rule: " ".join(key for key, metric in METRICS.items() if metric.rule == rule) for rule in RULES}
    assert output == RULES and {metric.rule for metric in METRICS.values()} == {*RULES, "largest"}
    assert not METRICS["accesses / 2"].integer


def test_unknown_metric_names_the_nearest() -> None:
    with pytest.raises(HeapwrightError, match="did you mean footprint_bytes"):
        metric("footprint")
    with pytest.raises(HeapwrightError, match="known: requested_peak_bytes"):
        metric("zzz")


def test_objectives_are_checked() -> None:
    assert parse_objectives("footprint_bytes, accesses") == ("footprint_bytes", "accesses")
    for wrong in ("", " , ", "accesses,accesses", "accesses,speed"):
        with pytest.raises(HeapwrightError, match="objectives: "):
            parse_objectives(wrong)


def test_counts_add_peaks_take_the_largest_fractions_the_smallest() -> None:
    small = measured(footprint_bytes=10, header_bytes=9, accesses=5, failed=1, admitted_fraction=0.5, energy_nJ=0.25)
    large = measured(footprint_bytes=20, header_bytes=2, accesses=7, failed=0, admitted_fraction=1.0, energy_nJ=0.5)
    both = combine([small, large])
    assert both["footprint_bytes"] == 20
    assert both["header_bytes"] == 2
    assert both["accesses"] == 12
    assert both["failed"] == 1
    assert both["admitted_fraction"] == 0.5
    assert both["energy_nJ"] == 0.75


def test_the_split_of_the_footprint_still_adds_up() -> None:
    split = ("internal_bytes", "external_bytes", "header_bytes")
    traces = [
        measured(footprint_bytes=100, internal_bytes=50, external_bytes=0, header_bytes=10),
        measured(footprint_bytes=110, internal_bytes=5, external_bytes=60, header_bytes=5),
    ]
    both = combine(traces)
    assert both["footprint_bytes"] == 110
    assert [both[key] for key in split] == [traces[1][key] for key in split]


def test_what_one_trace_did_not_measure_is_unknown_for_all() -> None:
    both = combine([measured(ns_per_event=None), measured(ns_per_event=20.0)])
    assert both["ns_per_event"] is None


def test_one_trace_combines_to_itself_with_its_types() -> None:
    item = measured(fragmentation=0.125, smallest_arena_bytes=None)
    assert combine([item]) == item
    assert isinstance(combine([item])["accesses"], int)


def test_combining_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one trace"):
        combine([])


def test_columns_combine_as_single_recipes_do() -> None:
    generator = np.random.default_rng(3)
    columns = {key: generator.integers(0, 9, (40, 3)).astype(float) for key in METRICS}
    combined = combine_columns(columns)
    for row in range(40):
        traces = [{key: METRICS[key].plain(columns[key][row, trace]) for key in METRICS} for trace in range(3)]
        assert combine(traces) == {key: METRICS[key].plain(combined[key][row]) for key in METRICS}


@pytest.fixture
def table(tmp_path: Path) -> EnergyTable:
    path = tmp_path / "table.csv"
    path.write_text(WRITTEN_TABLE)
    return EnergyTable.read(path)


@pytest.mark.parametrize(
    ("size", "read_pj", "write_pj"),
    [
        (100, 1, 2),
        (10_000, 10, 4),
        (1000, math.sqrt(10), math.sqrt(8)),  # half way in log size: the geometric mean
        (7, 1, 2),  # below: clamped
        (1_000_000, 100, 8),  # above: the last slope goes on
    ],
)
def test_energy_is_interpolated_log_log(table: EnergyTable, size: int, read_pj: float, write_pj: float) -> None:
    assert table.energy_nj(1000, 0, size) == pytest.approx(read_pj)
    assert table.energy_nj(0, 1000, size) == pytest.approx(write_pj)


def test_default_table_gives_its_own_rows() -> None:
    default = default_energy_table()
    assert len(default.sizes) == 15
    assert default.energy_nj(1e6, 0, 65536) == pytest.approx(16.753e3)
    assert default.energy_nj(0, 1e6, 4096) == pytest.approx(6.198e3)


def test_energy_is_filled_in(table: EnergyTable) -> None:
    filled = with_energy({"reads": 1000, "writes": 500, "footprint_bytes": 100}, table)
    assert filled["energy_nJ"] == pytest.approx(2.0)
    assert with_energy({"reads": None, "writes": 5, "footprint_bytes": 100}, table)["energy_nJ"] is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "size_bytes,read_pJ\n100,1\n200,2\n",
        "size_bytes,read_pJ,write_pJ\n100,1,1\n",
        "size_bytes,read_pJ,write_pJ\n200,1,1\n100,1,1\n",
        "size_bytes,read_pJ,write_pJ\n100,1,1\n100,2,2\n",
        "size_bytes,read_pJ,write_pJ\n100,1,1\n200,1,1\n200,1,1\n",
        "size_bytes,read_pJ,write_pJ\n0,1,1\n200,1,1\n",
        "size_bytes,read_pJ,write_pJ\n100,1,-1\n200,1,1\n",
        "size_bytes,read_pJ,write_pJ\n100,1,1\ninf,1,1\n",
        "size_bytes,read_pJ,write_pJ\n100,1,nan\n200,1,1\n",
        "size_bytes,read_pJ,write_pJ\n100,0,1\n200,1,1\n",
        "size_bytes,read_pJ,write_pJ\n100,x,1\n200,1,1\n",
        "size_bytes,read_pJ,write_pJ\n100,1\n200,1,1\n",
    ],
)
def test_an_unusable_table_is_one_clear_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(HeapwrightError, match="energy table") as caught:
        EnergyTable.read(path)
    assert str(path) in str(caught.value)


def test_a_table_that_is_none_is_refused_however_it_is_made() -> None:
    with pytest.raises(HeapwrightError, match=r"^default: an energy table needs two rows or more, rising sizes"):
        EnergyTable((100, 100), (1, 2), (1, 2))
    with pytest.raises(HeapwrightError, match="energy table"):
        EnergyTable((100, 200), (1, 2), (1, 2, 3))
