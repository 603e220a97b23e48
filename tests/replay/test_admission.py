"""The least memory that admits a share: against theory, against all smaller ones, and on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import heapwright as hw
from heapwright._cli import heapwright as command_line
from heapwright._recipes.recipe import Recipe
from heapwright._replay.admission import Admission, admit
from heapwright._replay.replay import replay
from heapwright._support.errors import HeapwrightError
from heapwright._traces.trace import Trace
from heapwright._traffic.workloads.poisson import poisson
from heapwright_papers.pools import erlang_b

POISSON = poisson(interarrival=0.01, requests=20_000, seed=3)


def shares(trace: Trace, recipe: Recipe, arena: int | None = None) -> tuple[float, float]:
    result = replay(trace, recipe, arena=arena)
    assert result["failed"] is not None and result["admitted_fraction"] is not None
    return 1 - result["failed"] / int((trace.op != 3).sum()), result["admitted_fraction"]


def recipe_of(found: Admission) -> Recipe:
    assert found.recipe is not None
    return Recipe.parse(found.recipe)


def pool(text: str) -> Recipe:
    return Recipe.parse(f"align = 4\n[[pool]]\n{text}")


@pytest.mark.parametrize("share", [0.9, 0.99])
def test_a_fixed_pool_gets_the_buffers_that_erlang_says(share: float) -> None:
    """100 requests are held on average, whatever their size; the largest is the block."""
    result = admit(POISSON, hw.zoo("fixed-pool"), share)
    least = next(count for count in range(1, 200) if 1 - erlang_b(100, count) >= share)
    assert result.sizes == (2000,) and result.counts[0] == pytest.approx(least, abs=3)
    assert min(shares(POISSON, recipe_of(result))) >= share
    fewer = pool(f'kind = "fixed"\nsizes = [2000]\ncounts = [{result.counts[0] - 1}]')
    assert min(shares(POISSON, fewer)) < share
    assert result.arena_bytes == replay(POISSON, recipe_of(result))["footprint_bytes"]


def test_partitions_get_number_and_size() -> None:
    result = admit(POISSON, hw.zoo("variable-pool"), 0.99)
    (size,), (count,), recipe = result.sizes, result.counts, recipe_of(result)
    assert (
        min(shares(POISSON, recipe))
        >= 0.99
        > min(shares(POISSON, pool(f'kind = "partition"\nsize = {size}\ncount = {count - 1}')))
    )
    assert result.arena_bytes is not None
    for other in (128, 192, 256, 384, 512, 1024):
        count = (result.arena_bytes - 100) // (other + 32)
        assert (
            other == size or min(shares(POISSON, pool(f'kind = "partition"\nsize = {other}\ncount = {count}'))) < 0.99
        )
    found_by = (result.admitted_requests, result.admitted_fraction)
    assert found_by == pytest.approx(shares(POISSON, recipe))


def test_every_class_serves_its_share_and_borrowing_needs_no_more() -> None:
    for fall_through in ("false", "true"):
        text = f'kind = "fixed"\nsizes = [2000, 512, 4000]\ncounts = [1, 1, 7]\nfall_through = {fall_through}'
        result = admit(POISSON, pool(text), 0.95)
        assert result.sizes == (512, 2000, 4000) and result.counts[2] == 1
        assert min(result.admitted_requests or 0, float(result.admitted_fraction or 0)) >= 0.95
        assert f"fall_through = {fall_through}" in str(result.recipe) or fall_through == "false"
    small = int((POISSON.size[POISSON.op == 0] <= 512).sum()) / 20_000 * 100
    least = next(count for count in range(1, 200) if 1 - erlang_b(small, count) >= 0.95)
    assert result.counts[0] == pytest.approx(least, abs=3)


def test_a_heap_that_grows_gets_the_least_arena() -> None:
    result = admit(POISSON, hw.zoo("exact-bins"), 0.99)
    assert result.arena_bytes is not None and (result.sizes, result.counts) == ((), ())
    assert min(shares(POISSON, hw.zoo("exact-bins"), result.arena_bytes)) >= 0.99
    assert min(shares(POISSON, hw.zoo("exact-bins"), result.arena_bytes - 8)) < 0.99
    everything = admit(POISSON, hw.zoo("exact-bins"), 1.0)
    assert everything.arena_bytes == hw.fit(POISSON, "exact-bins", copies=0).smallest_arena_bytes


def test_no_memory_admits_what_is_too_large_or_is_not_known_to_grow() -> None:
    assert admit(POISSON, pool('kind = "fixed"\nsizes = [64, 128]\ncounts = [1, 1]'), 0.5).arena_bytes is None
    with pytest.raises(HeapwrightError, match="no pool of it grows, and none is the only one with counts"):
        admit(POISSON, pool("\n[[pool]]\n".join(['kind = "fixed"\nsizes = [64]\ncounts = [1]'] * 2)), 0.9)
    with pytest.raises(HeapwrightError, match=r"admit: 0; must be above 0 and at most 1"):
        admit(POISSON, hw.zoo("tlsf"), 0)
    with pytest.raises(HeapwrightError, match="no recipe but a foreign heap"):
        hw.admit(POISSON, "lib:glibc", 0.9)


def test_few_large_requests_need_no_blocks_of_their_size() -> None:
    size = np.where(np.arange(4000) % 1000 == 0, 60_000, 40)
    trace = Trace.from_columns(op=[0, 3] * 4000, id=np.repeat(np.arange(4000), 2), size=np.repeat(size, 2))
    result = admit(trace, pool('kind = "fixed"\nsizes = [64]\ncounts = [3]'), 0.99)
    assert result.sizes == (60_000,), "four requests in 4,000 are most of the bytes"
    even = Trace.from_columns(op=[0, 3] * 4000, id=np.repeat(np.arange(4000), 2), size=np.repeat(size % 200, 2))
    assert admit(even, pool('kind = "fixed"\nsizes = [4096]\ncounts = [3]'), 0.99).sizes == (40,)


def test_blocks_are_counted_as_far_as_links_reach() -> None:
    narrow = Recipe.parse('align = 8\nlink_bytes = 2\n[[pool]]\nkind = "fixed"\nsizes = [64]\ncounts = [3]')
    held = Trace.from_columns(op=[0] * 50, id=range(50), size=[600] * 50)
    assert (result := admit(held, narrow, 0.9)).sizes == (600,) and result.counts == (46,)
    large = Trace.from_columns(op=[0, 3, 0], id=[0, 0, 1], size=[5_000_000, 0, 100])
    assert admit(large, narrow, 0.9).arena_bytes is None, "2-byte links reach 512 KB"
    assert admit(large, pool('kind = "fixed"\nsizes = [64]\ncounts = [3]'), 0.9).counts == (1,)
    all_of_it = Trace.from_columns(op=[0] * 870, id=range(870), size=[600] * 870)
    assert admit(all_of_it, narrow, 1.0).counts == (870,) and 871 * 600 < 0xFFFF * 8
    one_more = Trace.from_columns(op=[0] * 1000, id=range(1000), size=[600] * 1000)
    assert admit(one_more, narrow, 1.0).arena_bytes is None


def test_a_sweep_is_a_trace_for_each_value() -> None:
    traces = hw.sweep("poisson", "requests", [100, 200], hold=0.1)
    assert [(trace.name, len(trace.op[trace.op == 0])) for trace in traces] == [
        ("poisson-100", 100),
        ("poisson-200", 200),
    ]
    assert [trace.metadata["swept"] for trace in traces] == ["requests", "requests"]
    with pytest.raises(HeapwrightError, match="poisson: no option holding"):
        hw.sweep("poisson", "holding", [1])
    with pytest.raises(HeapwrightError, match=r"hold: \[1, 1\]: give one value or more, each once"):
        hw.sweep("poisson", "hold", [1, 1])


def run_fit(*words: str) -> tuple[int, str, str]:
    result = CliRunner(env={"COLUMNS": "999"}).invoke(command_line, ["fit", *words])
    return result.exit_code, result.stdout, result.stderr


SWEEP = ("--workload", "poisson", "--set", "requests=3000", "--sweep", "interarrival=0.01:0.03:0.01")


def test_the_command_sweeps_and_draws(tmp_path: Path) -> None:
    picture = tmp_path / "sweep.svg"
    words = [*SWEEP, "--heap", "fixed-pool", "--heap", "sos", "--admit", "0.99"]
    code, output, _ = run_fit(*words, "-o", str(picture))
    assert code == 0 and "The least memory in bytes that admits 99 % of the requests and of their bytes" in output
    nowhere = ", ".join(f"sos on poisson-{value}" for value in ("0.01", "0.02", "0.03"))
    assert output.endswith(f"Admit less than 99 % in any memory: {nowhere}.\n")
    drawing = picture.read_text(encoding="utf-8")
    assert "KB of arena" in drawing and "utilisation" in drawing
    rows = json.loads(run_fit(*words, "--json")[1])
    assert [row["swept"] for row in rows] == [0.01, 0.01, 0.02, 0.02, 0.03, 0.03]
    results = [row["counts"][0] for row in rows[::2]]
    assert results == sorted(results, reverse=True) and f"poisson-0.01  fixed-pool  {results[0]} x 2,000" in output
    assert Recipe.parse(rows[0]["recipe"]).pools[0].kind == "fixed"
    assert rows[1]["arena_bytes"] is None and rows[1]["recipe"] is None


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "give traces, or a --workload"),
        (("x.parquet", "--workload", "poisson"), "give traces, or a --workload"),
        (("x.parquet", "--sweep", "hold=1"), "--set and --sweep are options of a workload"),
        ((*SWEEP, "-o", "x.svg"), "a picture is drawn of what --admit finds"),
        ((*SWEEP, "--admit", "0.9", "--copies", "1"), "--admit looks at the traces and at recipes alone"),
        (("--workload", "poisson", "--set", "requests=many"), "'requests=many': valid: an option of the workload"),
        (("--workload", "poisson", "--sweep", "hold"), "valid: interarrival=0.001,0.002"),
    ],
)
def test_flags_that_do_not_go_together(words: tuple[str, ...], says: str) -> None:
    code, _, output = run_fit(*words, "--heap", "tlsf")
    assert code == 2 and says in " ".join(output.split())


def test_a_picture_is_of_one_sweep(tmp_path: Path) -> None:
    with pytest.raises(HeapwrightError, match="a picture is drawn of the traces of one sweep"):
        hw.admit(POISSON, "fixed-pool", 0.9, output=tmp_path / "x.svg")


def test_fit_says_why_no_arena_serves(tmp_path: Path) -> None:
    trace = tmp_path / "p.parquet"
    poisson(requests=3000).write(trace)
    code, output, _ = run_fit(str(trace), "--heap", "fixed-pool", "--copies", "1")
    refused = replay(Trace.read(trace), hw.zoo("fixed-pool"))["failed"]
    assert code == 0 and "The reserve is enough" not in output
    assert output.endswith(
        f"fixed-pool refuses {refused:,} requests of p however large the arena is: it holds 272 objects at most, uses "
        "557,076 bytes at most, serves no request above 2,048 bytes.\n"
    )
    fitted = json.loads(run_fit(str(trace), "--heap", "fixed-pool", "--heap", "tlsf", "--copies", "0", "--json")[1])
    assert [row["failed"] for row in fitted] == [refused, 0]
