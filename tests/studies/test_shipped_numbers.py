"""Numbers that ship are true: in a generated header, and in the first lines of pareto and fit.

Each is compared with a computation that shares no code with the one it comes from: the generated C makes the calls
and counts its loads and stores (`counted_calls.py`), or plain Python adds sizes.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from command_runner import run_here
from counted_calls import CountedHeap
from metric_values import known
from run_length import by_turns
from short_explorations import FUTURE

import heapwright as hw
from heapwright._api import cut
from heapwright._generate.emit import generated_files
from heapwright._recipes.pools import BEST_FIT
from heapwright._recipes.recipe import Recipe
from heapwright._replay.replay import replay
from heapwright._studies.decision import decide
from heapwright._studies.recommendations import PICKS
from heapwright._traces.futures import resample
from heapwright._traces.trace import Trace

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PLATFORMS = ("freertos", "newlib", "threadx", "lwip", "sqlite")


@pytest.fixture(scope="module")
def trace_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("trace") / "part.parquet"
    cut(Trace.read(EXAMPLES / "mosquitto_broker.parquet"), first=1200).write(file)
    return file


@pytest.fixture(scope="module")
def study(trace_file: Path, tmp_path_factory: pytest.TempPathFactory) -> hw.Study:
    return hw.explore(trace_file, tmp_path_factory.mktemp("study") / "small.duckdb", limit=40)


def words_of(header: Path) -> str:
    """The opening comment in one line."""
    comment = header.read_text().partition("*/")[0]
    return re.sub(r"\s+\*?\s*", " ", comment)


def stated(metrics: Any) -> str:
    malloc, realloc, free = (metrics[f"accesses_{kind}_max"] for kind in ("malloc", "realloc", "free"))
    assert realloc
    return (
        f"Measured there: {metrics['footprint_bytes']:,} bytes of arena, for a peak of "
        f"{metrics['requested_peak_bytes']:,} requested, {metrics['accesses']:,} metadata accesses, at most "
        f"{malloc:,} in a malloc, in a realloc at most {realloc:,} and its copy, at most {free:,} in a free."
    )


@pytest.mark.parametrize(
    ("platform", "how"),
    [(item, how) for turn, item in enumerate([None, *PLATFORMS]) for how in by_turns([*PICKS], turn)],
)
def test_a_replay_of_what_was_generated_gives_the_headers_numbers(
    platform: str | None, how: Any, study: hw.Study, trace_file: Path, tmp_path: Path
) -> None:
    pick = study.pick(how)
    files = hw.generate(pick, tmp_path, platform=platform)
    recipe = tmp_path / "app_heap.toml"
    assert recipe in files
    output = words_of(tmp_path / "app_heap.h")
    assert stated(hw.replay(trace_file, recipe).metrics) in output
    reserve = decide(study, how).reserve_bytes
    assert reserve
    assert f"Reserve {reserve:,} bytes" in output
    if platform:
        assert f"Reserve {reserve:,} bytes" in (tmp_path / "app_README.md").read_text()


def test_counters_are_counted(study: hw.Study, tmp_path: Path) -> None:
    pick = study.pick()
    hw.generate(f"{study.path}:{pick.id}", tmp_path, platform="freertos")
    assert Recipe.load(tmp_path / "app_heap.toml").counters
    assert stated(pick.metrics) not in words_of(tmp_path / "app_heap.h")


def test_where_the_trace_is_gone_no_other_heaps_numbers_are_stated(trace_file: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved.parquet"
    moved.write_bytes(trace_file.read_bytes())
    small = hw.explore(moved, tmp_path / "gone.duckdb", limit=20, copies=0, stress_test=False)
    moved.unlink()
    pick = small.pick()
    hw.generate(pick, tmp_path / "alone")
    assert stated(pick.metrics) in words_of(tmp_path / "alone" / "app_heap.h")
    hw.generate(pick, tmp_path / "freertos", platform="freertos")
    assert "Measured there" not in words_of(tmp_path / "freertos" / "app_heap.h")


@pytest.mark.parametrize("name", ["first-fit-fast-free", "lea-2.7.2", "tlsf", "kingsley"])
def test_fragmentation_is_not_negative_where_headers_went(name: str) -> None:
    count = 1000
    trace = Trace.from_columns(
        op=[0] * count + [3] * count + [0],
        id=[*range(count), *range(count), count],
        size=[8] * count + [0] * count + [11_000],
    )
    metrics = replay(trace, hw.zoo(name))
    assert metrics["fragmentation"] is not None and metrics["fragmentation"] >= 0
    assert known(metrics["allocated_peak_bytes"]) >= known(metrics["requested_peak_bytes"]) == 11_000


# --- compared with the generated C as it runs ------------------------------------------------------------------------

CHOICES: list[Any] = ["balanced", "smallest"]


def number(pattern: str, text: str) -> int:
    """The number behind the words of a pattern, which has one group and stands once in the text."""
    (match,) = set(re.findall(pattern, text))
    return int(match.replace(",", ""))


@pytest.fixture(scope="module")
def recording(trace_file: Path) -> Trace:
    return Trace.read(trace_file)


@pytest.fixture(scope="module")
def future(recording: Trace) -> Trace:
    """What candidates are replayed on for the long run, with as few calls as in any test."""
    return resample(recording, FUTURE, seed=0)


@pytest.fixture(scope="module")
def heaps(study: hw.Study, tmp_path_factory: pytest.TempPathFactory) -> dict[str, CountedHeap]:
    """The recommendations as generated C whose accesses are counted."""
    result = {}
    for how in CHOICES:
        folder = tmp_path_factory.mktemp(how)
        hw.generate(study.pick(how), folder)
        result[how] = CountedHeap(folder)
    return result


def header(heap: CountedHeap) -> str:
    return words_of(heap.folder / "app_heap.h")


def live_peak(trace: Trace) -> int:
    """The largest sum of live requested bytes, added up call by call."""
    sizes: dict[int, int] = {}
    live = most = 0
    for id, size in zip(trace.id.tolist(), trace.size.tolist(), strict=True):
        live += size - sizes.get(id, 0)
        sizes[id] = size
        most = max(most, live)
    return most


@pytest.mark.parametrize("how", CHOICES)
def test_the_generated_c_makes_the_accesses_that_its_header_states(
    how: str, heaps: dict[str, CountedHeap], recording: Trace
) -> None:
    text, counted = header(heaps[how]), heaps[how].run(recording)
    assert number(r"([\d,]+) metadata accesses", text) == counted.accesses, "all accesses, copies included"
    assert number(r"at most ([\d,]+) in a malloc", text) == counted.malloc_max, "the worst-case malloc"
    assert number(r"in a realloc at most ([\d,]+) and its copy", text) == counted.realloc_max, "the worst-case realloc"
    assert number(r"at most ([\d,]+) in a free", text) == counted.free_max, "the worst-case free"


@pytest.mark.parametrize("how", CHOICES)
def test_the_generated_c_completes_the_recording_in_the_arena_that_its_header_states_and_in_no_smaller(
    how: str, heaps: dict[str, CountedHeap], recording: Trace
) -> None:
    arena = number(r"Measured there: ([\d,]+) bytes of arena", header(heaps[how]))
    assert heaps[how].run(recording, arena).failed == 0
    assert heaps[how].run(recording, arena - 8).failed > 0, "the header states more than the recording needs"


@pytest.mark.parametrize("how", CHOICES)
def test_the_peak_that_a_header_states_is_the_sum_of_the_live_sizes(
    how: str, heaps: dict[str, CountedHeap], recording: Trace
) -> None:
    assert number(r"for a peak of ([\d,]+) requested", header(heaps[how])) == live_peak(recording)


@pytest.mark.parametrize("how", CHOICES)
def test_the_size_that_a_header_recommends_completes_the_recording_and_its_future(
    how: str, heaps: dict[str, CountedHeap], recording: Trace, future: Trace
) -> None:
    reserve = number(r"Reserve ([\d,]+) bytes for a load like the recorded one", header(heaps[how]))
    assert heaps[how].run(recording, reserve).failed == 0, "the recommended size fails on the recording"
    assert heaps[how].run(future, reserve).failed == 0, "the recommended size fails on the future"
    needed = max(1.2 * heaps[how].run(recording).footprint, heaps[how].run(future).footprint)
    assert needed <= reserve <= 1.005 * needed, "a fifth above the recording's need, or the future's if that is more"


@pytest.mark.parametrize("how", CHOICES)
def test_no_call_of_the_future_makes_more_accesses_than_its_header_bounds(
    how: str, heaps: dict[str, CountedHeap], future: Trace
) -> None:
    bound = number(r"By construction a malloc or free takes at most ([\d,]+) accesses", header(heaps[how]))
    counted = heaps[how].run(future)
    assert max(counted.malloc_max, counted.free_max) <= bound


def test_the_first_line_of_pareto_states_what_the_generated_c_needs(
    study: hw.Study, heaps: dict[str, CountedHeap], recording: Trace, future: Trace
) -> None:
    text = " ".join(run_here("pareto", str(study.path)).stdout.split())
    heap = heaps["balanced"]
    assert number(r"reserve ([\d,]+) bytes\.", text) == number(r"Reserve ([\d,]+) bytes", header(heap))
    for trace, arena in (
        (recording, number(r"It needs ([\d,]+) on the recording", text)),
        (future, number(r"on the recording and ([\d,]+) in the long run", text)),
    ):
        assert heap.run(trace, arena).failed == 0, f"{arena:,} bytes are too few"
        assert heap.run(trace, arena - 8).failed > 0, f"{arena:,} bytes are more than needed"


def test_the_long_run_that_pareto_states_is_that_of_the_generated_c(
    study: hw.Study, heaps: dict[str, CountedHeap], future: Trace, tmp_path: Path
) -> None:
    text = " ".join(run_here("pareto", str(study.path)).stdout.split())
    counted = heaps["balanced"].run(future)
    assert number(r"On a future of ([\d,]+) calls", text) == len(future)
    worst = max(counted.malloc_max, counted.free_max)
    assert number(r"its worst-case malloc or free makes ([\d,]+) accesses", text) == worst
    for file, source in generated_files(Recipe.unchecked((BEST_FIT,))).items():
        (tmp_path / file).write_text(source)
    best_fit = CountedHeap(tmp_path).run(future)
    growth = counted.footprint / counted.early / max(1.0, best_fit.footprint / best_fit.early)
    (stated,) = re.findall(r"its footprint grows by ([\d.]+) % in the last nine tenths", text)
    assert float(stated) == pytest.approx(max(0.0, 100 * (growth - 1)), abs=0.3)


def test_a_row_of_pareto_states_the_accesses_of_the_generated_c(
    study: hw.Study, heaps: dict[str, CountedHeap], future: Trace
) -> None:
    counted, lines = heaps["balanced"].run(future), run_here("pareto", str(study.path)).stdout.splitlines()
    pick = study.pick("balanced")
    row = " ".join(line for line in lines if line.split()[:1] in ([pick.id], [pick.label])).split()
    assert f"{decide(study, 'balanced').reserve_bytes:,}" in row
    assert f"{counted.footprint:,}" in row, "the long-run arena"
    numbers = [float(cell.replace(",", "")) for cell in row if cell.replace(",", "").replace(".", "").isdigit()]
    per_call = counted.accesses / len(future)
    assert any(abs(number - per_call) <= per_call / 1000 for number in numbers), "accesses per call"
    assert {f"{counted.malloc_max:,}", f"{counted.free_max:,}"} <= set(row), "the worst-case malloc and free"


@pytest.mark.parametrize("name", ["tlsf", "victim-bins", "first-fit-fast-free"])
def test_the_sizes_that_fit_prints_are_those_of_the_generated_c(
    name: str, trace_file: Path, recording: Trace, tmp_path: Path
) -> None:
    hw.generate(name, tmp_path)
    heap, text = CountedHeap(tmp_path), run_here("fit", str(trace_file), "--heap", name).stdout
    (row,) = [line.split() for line in text.splitlines() if line.startswith(name)]
    least, monotone, recommended = (int(cell.replace(",", "")) for cell in (row[1], row[2], row[4]))
    assert heap.run(recording, least).failed == 0, "the minimum is too small"
    assert heap.run(recording, least - 8).failed > 0, "the minimum is larger than needed"
    sizes = [*range(monotone, monotone + 800, 8), recommended]
    assert not any(heap.run(recording, size).failed for size in sizes), "not every larger arena completes the trace"
    assert 1.2 * monotone <= recommended <= 1.2 * monotone + 16, "a fifth above the need"
    permanent = number(r"([\d,]+) live bytes are permanent", text)
    assert permanent + number(r"([\d,]+) depend on the load", text) == live_peak(recording)
