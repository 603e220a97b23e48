"""The benchmark runs and says what it promises. No speed is asserted: that depends on the machine."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
RECIPES = {"broker pick", "victim-bins", "exact-bins", "drr-proposed", "tlsf", "exact-bins + 3 lists", "tlsf + 3 lists"}
RUN_TIME = {f"{name} (run time)" for name in ("exact-bins", "tlsf", "exact-bins + 3 lists", "tlsf + 3 lists")}


@pytest.fixture(scope="module")
def told() -> Any:
    command = [sys.executable, str(BENCH / "run.py"), "--quick", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_says_what_the_numbers_depend_on(told: Any) -> None:
    assert set(told["machine"]) == {"processor", "processors", "system", "compiler"}
    assert "-O2" in told["machine"]["compiler"]
    assert (told["rounds"], told["passes"]) == (2, 1)
    assert told["pick"]["trace"] == "mosquitto_broker"
    assert told["exploration"]["recipes"] > 100
    assert told["exploration"]["recipes_per_second"] > 0


def test_measures_every_heap_on_the_shipped_trace(told: Any) -> None:
    (one,) = told["traces"]
    assert (one["trace"], one["set"], one["events"]) == ("mosquitto_broker", "real", 12620)
    installed = {"mimalloc", "jemalloc", "tcmalloc"} - set(told["missing"])
    assert set(one["ns_touched"]) == RECIPES | installed | {"glibc"}
    assert set(one["ns"]) == set(one["ns_touched"]) | RUN_TIME
    assert all(ns > 0 for ns in (*one["ns"].values(), *one["ns_touched"].values()))


def test_arenas_are_those_of_fit(told: Any) -> None:
    from heapwright.replay.smallest import fit
    from heapwright.traces.trace import Trace
    from heapwright.zoo import catalogue as zoo

    trace = Trace.read(BENCH.parent / "examples" / "mosquitto_broker.parquet")
    arenas = told["traces"][0]["arena_bytes"]
    assert set(arenas) == RECIPES
    assert arenas["tlsf"] == fit(trace, zoo.load("tlsf"))
    assert arenas["exact-bins + 3 lists"] != arenas["exact-bins"]


def test_ratios_and_aims_are_told(told: Any) -> None:
    """Their arithmetic is tested on numbers that are known, in tests/unit/test_bench_results.py."""
    (one,) = told["traces"]
    ratios = told["ratios"]
    assert set(ratios) == {"time", "time_touched", "arena_over_live", "folded_over_run_time"}
    assert set(ratios["time"]) == set(one["ns_touched"])
    assert ratios["time"]["tlsf"]["tlsf"] == {"synthetic": None, "real": 1, "all": 1}
    assert ratios["arena_over_live"]["glibc"]["all"] is None
    assert set(ratios["folded_over_run_time"]) == {name.removesuffix(" (run time)") for name in RUN_TIME} | {"all four"}
    assert [aim["limit"] for aim in told["aims"]] == [0.65, 0.55, 1, 0.60, 0.90, 750]
    # Arenas do not depend on the machine, and the emulated code's size only on the compiler.
    arenas = told["aims"][2]
    assert (arenas["measured"], arenas["met"]) == (pytest.approx(133_804 / 125_928), False)
    assert told["aims"][5]["met"] is True


def test_prints_one_table_for_each_question(
    told: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(BENCH)
    from printing import print_results  # type: ignore[import-not-found]
    from results import Aim, Measured  # type: ignore[import-not-found]

    measured = [Measured(**one) for one in told["traces"]]
    print_results({**told, "missing": ["mimalloc"]}, measured, [Aim(**aim) for aim in told["aims"]])
    text = capsys.readouterr().out
    assert "mimalloc (not installed)" in text
    for heading in ("payload untouched", "payload written once", "Smallest arena", "policy folded", "Aims"):
        assert heading in text
    assert f"{told['traces'][0]['ns']['tlsf']:.1f}" in text


def test_a_wrong_trace_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"no parquet")
    command = [sys.executable, str(BENCH / "run.py"), "--quick", "--traces", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "bad.parquet" in done.stderr
