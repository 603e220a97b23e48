"""The page of evidence says what the commands say, and the same each time."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from run_length import brief

import heapwright as hw
from heapwright._api import generation
from heapwright._assure.attack import faults
from heapwright._assure.proof import prove
from heapwright._report import evidence
from heapwright._support.errors import HeapwrightError

pytestmark = pytest.mark.usefixtures("brief_proofs")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SERVED, HELD_OUT = EXAMPLES / "mosquitto_broker.parquet", EXAMPLES / "lighttpd_server.parquet"
HEAP = "first-fit-slow-free"


def section(page: str, title: str) -> str:
    """What stands below a heading, up to the next."""
    return page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@pytest.fixture(scope="module", autouse=True)
def fewer_faults() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(faults, "RUNS", brief(20, faults.RUNS))
        yield


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("evidence")
    return hw.generate(HEAP, folder, evidence=SERVED, held_out=HELD_OUT)


@pytest.fixture(scope="module")
def page(written: list[Path]) -> str:
    assert written[-1].name == "app_heap_evidence.md"
    return written[-1].read_text(encoding="utf-8")


def test_digests_are_those_of_the_files(written: list[Path], page: str) -> None:
    for path in (*written[:-1], SERVED, HELD_OUT):
        assert hashlib.sha256(path.read_bytes()).hexdigest() in page


def test_the_reserve_is_what_fit_tells(page: str) -> None:
    fit = hw.fit(SERVED, HEAP, held_out=[HELD_OUT])
    assert f"**Reserve {fit.reserve_bytes:,} bytes.**" in section(page, "Arena")
    assert f"| {fit.smallest_arena_bytes:,} | {fit.safe_arena_bytes:,} | proved |" in section(page, "Arena")


def test_worst_calls_are_those_of_replay_and_measure(page: str) -> None:
    output, replayed = section(page, "Worst-case calls"), hw.replay(SERVED, HEAP).metrics
    worst = [replayed[f"accesses_{kind}_max"] for kind in ("malloc", "realloc", "free")]
    assert f"| {' | '.join(f'{count:,}' for count in worst)} |" in output
    measured = hw.measure(HEAP, SERVED)
    assert f"{measured['code_bytes']['total']:,} bytes of code" in output
    for kind, calls in measured["calls"].items():
        assert f"| {kind} | {calls['count']:,} | {calls['instructions_mean']:,.1f} |" in output
        assert f"| {calls['instructions_max']:,} | {calls['stack_bytes_max']:,} |" in output


def test_faults_are_those_of_attack(page: str) -> None:
    (attacked,) = hw.attack(HEAP, checks=["none"])
    for counts in attacked["faults"].values():
        assert " | ".join(f"{count:,}" for count in counts.values()) in section(page, "Misuse")


def test_it_is_the_same_each_time(page: str, tmp_path: Path) -> None:
    again = hw.generate(HEAP, tmp_path, evidence=[SERVED], held_out=[HELD_OUT])
    assert again[-1].read_text(encoding="utf-8") == page


def test_a_missing_tool_costs_its_section_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    page = hw.generate(HEAP, tmp_path, evidence=SERVED, prove_calls=2)[-1].read_text(encoding="utf-8")
    assert "No faults were injected: " in section(page, "Misuse")
    assert "None: cbmc: not installed" in section(page, "Proofs")
    assert "**Reserve " in section(page, "Arena")


def test_what_is_proved_stands_with_its_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(evidence._METHODS) == set(prove.METHODS)
    in_seconds = functools.partial(prove.prove, arena=56, largest=4, method="enumeration")
    monkeypatch.setattr(prove, "prove", lambda recipe, label, **given: in_seconds(recipe, label, calls=given["calls"]))

    def no_attack(*_: object, **__: object) -> None:
        raise HeapwrightError("of proofs alone")

    monkeypatch.setattr(generation, "attack", no_attack)
    page = hw.generate("first-fit-fast-free", tmp_path, evidence=SERVED, prove_calls=2)[-1].read_text(encoding="utf-8")
    output = section(page, "Proofs")
    assert evidence._METHODS["enumeration"] in " ".join(output.split())
    assert "| calls | an arena of 56 bytes; any 2 mallocs" in output
    assert output.count("| 0 |") == 5
