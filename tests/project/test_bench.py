"""The benchmark runs and says what it promises. No speed is asserted: that depends on the machine."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tool_requirements
import traces
from c_programs import kept_once
from click.testing import CliRunner
from run_length import LONG
from run_length import brief as briefly

from heapwright._measure.host import timing
from heapwright._recipes.zoo import catalogue as zoo
from heapwright._replay.arena_sizes import fit
from heapwright._traces.trace import Trace

BENCH = Path(__file__).resolve().parents[2] / "bench"
BOTH_WAYS = {"exact-bins", "tlsf", "exact-bins + 3 lists", "tlsf + 3 lists"}
RECIPES = {"broker pick", "fast", "all-round", "victim-bins", "drr-proposed", "half-fit"} | BOTH_WAYS
ORIGINALS = {"dlmalloc", "o1heap", "freertos-heap4", "tlsf, original"}
THREADED = {"none x1", "lock x1", "lock x2", "cached x1", "cached x2"}
RIVALS = {"rlsf"}
EVERY_RIVAL = ["mimalloc 3", "rlsf", "rpmalloc", "snmalloc", "talc"]
OPTIMISED = timing.FLAGS
LIBRARIES = {"glibc", "mimalloc", "jemalloc", "tcmalloc"}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    tool_requirements.programs_of_32_bits()
    with kept_once(tmp_path_factory.mktemp("bench") / "told", "bench/run.py --quick") as path:
        if not path.exists():
            done = CliRunner().invoke(importlib.import_module("run").main, ["--quick", "--json"])
            assert done.exit_code == 0, done.output
            path.write_text(done.stdout, encoding="utf-8")
        return json.loads(path.read_text(encoding="utf-8"))


def test_says_what_the_numbers_depend_on(told: Any) -> None:
    assert set(told["machine"]) == {"processor", "processors", "system", "compiler"}
    assert told["machine"]["compiler"].endswith(", " + " ".join(timing.FLAGS))
    assert "-O2" in OPTIMISED
    assert (told["rounds"], told["milliseconds"]) == (1, 1)
    assert told["pick"]["trace"] == "mosquitto_broker"
    assert told["exploration"]["recipes"] > 60
    assert told["exploration"]["recipes_per_second"] > 0


def test_measures_every_heap_on_the_shipped_trace(told: Any) -> None:
    (item,) = told["traces"]
    assert (item["trace"], item["set"], item["events"]) == ("mosquitto_broker", "real", 3_000)
    wanted = ORIGINALS | LIBRARIES | RIVALS
    peers = {name for name in wanted if not any(name.partition(" ")[0] in why for why in told["missing"])}
    if os.environ.get("CI") and not os.environ.get("GITHUB_ACTIONS"):
        assert peers >= ORIGINALS | {"glibc"}, told["missing"]
    assert set(item["ns"]) == set(item["ns_written"]) == RECIPES | peers | {"empty"}
    assert set(item["ns_folded"]) == set(item["ns_run_time"]) == BOTH_WAYS
    assert set(item["ns_threads"]) == THREADED | {f"{name} x2" for name in peers & LIBRARIES}
    assert all(ns > 0 for key in item if key.startswith("ns") for ns in item[key].values())


@pytest.mark.parametrize("name", briefly(["rlsf"], EVERY_RIVAL))
def test_a_rival_of_a_crate_is_built_and_linked(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCH)
    contenders, rivals, originals = map(importlib.import_module, ("contenders", "rivals", "originals"))
    assert sorted(rivals.RIVALS) == EVERY_RIVAL
    try:
        contenders.rival(name).heap.program()
    except originals.MissingError as error:
        tool_requirements.absent(str(error))


def test_arenas_are_those_of_fit(told: Any) -> None:
    trace = traces.cut(Trace.read(BENCH.parent / "examples" / "mosquitto_broker.parquet"), 3_000)
    arenas = told["traces"][0]["arena_bytes"]
    assert RECIPES <= set(arenas) <= RECIPES | ORIGINALS
    assert arenas["tlsf"] == fit(trace, zoo.load("tlsf"))
    assert arenas["exact-bins + 3 lists"] != arenas["exact-bins"]


def test_ratios_and_aims_are_told(told: Any) -> None:
    """Their arithmetic is tested on numbers that are known, in tests/project/test_bench_results.py."""
    (item,) = told["traces"]
    ratios = told["ratios"]
    assert set(ratios) == {
        *(
            "time",
            "time_written",
            "time_without_loop",
            "arena_over_live",
            "arena_over_dlmalloc",
            "folded_over_run_time",
        ),
        "cached_over_lock",
    }
    assert set(ratios["time"]) == set(item["ns"]) - {"empty"}
    assert ratios["time"]["tlsf"]["tlsf"] == {"synthetic": None, "real": 1, "all": 1}
    assert set(ratios["folded_over_run_time"]) == BOTH_WAYS | {"all four"}
    recommended = [0.65, 0.42, 0.60, 0.20, 1.01]
    assert [aim["limit"] for aim in told["aims"]] == [0.95, 0.60, 1, 0.65, 0.55, 1, 0.60, 0.90, 750, *recommended, 0.50]
    # Arenas do not depend on the machine, and the emulated code's size only on the compiler.
    arenas = told["aims"][5]
    assert (arenas["measured"], arenas["met"]) == (pytest.approx(91_824 / 92_584), True)
    assert told["aims"][8]["met"] is True


def test_a_realloc_is_timed_as_a_free_and_a_malloc() -> None:
    trace = Trace.from_columns(op=[0, 0, 2, 3, 2, 3], id=[1, 2, 1, 2, 1, 1], size=[8, 9, 16, 0, 4, 0], name="grows")
    timed = traces.without_realloc(trace)
    assert timed.op.tolist() == [0, 0, 3, 0, 3, 3, 0, 3]
    assert timed.id.tolist() == [1, 2, 1, 1, 2, 1, 1, 1]
    assert [size for op, size in zip(timed.op, timed.size, strict=True) if op == 0] == [8, 9, 16, 4]


def test_prints_one_table_for_each_question(
    told: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(BENCH)
    from printing import print_results
    from results import Aim, Measured

    measured = [Measured(**item) for item in told["traces"]]
    print_results({**told, "missing": ["mimalloc is not installed"]}, measured, [Aim(**aim) for aim in told["aims"]])
    text = capsys.readouterr().out
    assert "mimalloc is not installed" in text
    for heading in ("payload untouched", "payload written once", "Smallest arena", "policy folded", "Aims"):
        assert heading in text
    assert f"{told['traces'][0]['ns']['tlsf']:.1f}" in text


def test_a_page_is_made_of_the_numbers(told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCH)
    from page import page

    text = page(told)
    assert told["date"] in text
    assert told["machine"]["processor"] in text
    (row,) = [line for line in text.splitlines() if line.startswith("| all-round |")]
    means = told["ratios"]
    dlmalloc = "dlmalloc" in told["traces"][0]["ns"]
    assert dlmalloc == (f"{means['time']['all-round'].get('dlmalloc', {}).get('all', 0):.3f}" in row)


def test_threads_are_measured_on_traces_of_ones_own(told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In long runs; else bench/run.py, by the same functions, has measured what is reported."""
    trace = BENCH.parent / "examples" / "lighttpd_server.parquet"
    monkeypatch.syspath_prepend(BENCH)
    import threads

    def measured(*words: str) -> str:
        done = CliRunner().invoke(threads.main, ["--quick", str(trace), *words])
        assert done.exit_code == 0, done.output
        return done.stdout

    if not LONG:
        monkeypatch.setattr(threads, "threaded_programs", lambda _: {})
        monkeypatch.setattr(threads, "times", lambda *_: told["traces"][0]["ns_threads"])
    result = json.loads(measured("--json"))["ns_threads"]
    assert list(result) == ["lighttpd_server"]
    assert set(result["lighttpd_server"]) >= THREADED

    monkeypatch.setattr(threads, "threaded_programs", lambda _: {})
    monkeypatch.setattr(threads, "times", lambda *_: result["lighttpd_server"])
    shown = measured()
    assert "cached x2 / lock x2" in shown and f"{result['lighttpd_server']['lock x2']:.1f}" in shown


def test_a_wrong_trace_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"no parquet")
    command = [sys.executable, str(BENCH / "run.py"), "--quick", "--traces", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "bad.parquet" in done.stderr
