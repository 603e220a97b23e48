"""What `heapwright measure` prints of what was counted, and `pareto` of how far a heap is from another."""

from __future__ import annotations

from typing import Any

import pytest

from heapwright._cli.front import _difference
from heapwright._cli.tables import styled
from heapwright._cli.target_tables import print_measured

CALL = {
    "count": 1200,
    "instructions_mean": 50.25,
    "instructions_p99": 90,
    "instructions_p999": 95,
    "instructions_max": 120,
    "instructions_max_call": 7,
    "loads_mean": 10.5,
    "stores_mean": 4.25,
    "arena_accesses_mean": None,
    "stack_bytes_max": 64,
    "cycles": None,
}
CYCLES = {"mean": {"minimum": 60.0, "maximum": 75.5}}
ONE: dict[str, Any] = {
    "cpu": "cortex-m3",
    "compiler": "gcc 12",
    "level": "Os",
    "backend": "unicorn 2",
    "platform": None,
    "note": None,
    "heap": "here/mine.toml",
    "trace": "busy",
    "calls": {"malloc": CALL, "free": {**CALL, "cycles": CYCLES}},
    "footprint_bytes": 4096,
    "code_bytes": {"total": 700},
    "prediction": None,
}
PREDICTION = {"metadata_equal": True, "metadata_bytes": 1000, "ratio": 1.25}


def test_a_row_is_a_kind_of_calls_and_a_line_what_was_predicted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    differs = {**PREDICTION, "metadata_equal": False, "ratio": None}
    kernel = {"platform": "freertos", "lock": "scheduler", "config": "FreeRTOSConfig.h"}
    print_measured([{**ONE, **kernel, "prediction": PREDICTION}, {**ONE, "heap": "tlsf", "prediction": differs}])
    words = " ".join(capsys.readouterr().out.split())
    where = "cortex-m3, gcc 12 -Os, unicorn 2, in freertos with the scheduler suspended, as FreeRTOSConfig.h says"
    assert words.startswith(f"Instructions a call on {where} heap trace call calls mean p99 p99.9 max worst call")
    assert "mine.toml busy malloc 1,200 50.2 90 95 120 7" in words and "tlsf busy malloc 1,200" in words
    assert words.count(" 60.0 to 75.5") == 2 and words.count("4,096 700") == 2
    equal = "here/mine.toml on busy: metadata (1,000 bytes) equals the host's; loads and stores in the arena / counted"
    assert f"{equal} accesses: 1.25" in words
    assert "tlsf on busy: metadata (1,000 bytes) DIFFERS from the host's;" in words
    assert words.endswith("counted accesses: not counted")


def test_nothing_measured_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    print_measured([])
    assert capsys.readouterr().out == "nothing was measured\n"


@pytest.mark.parametrize(
    ("key", "ratio", "told"),
    [
        ("accesses", 1.254, "+25.4 %"),
        ("accesses", 1.0004, "+0.04 %"),
        ("utilisation", 1.25, "-20.0 %"),
        ("accesses", 9.99, "+899.0 %"),
        ("accesses", 1234.4, "1,234 x worse"),
    ],
)
def test_how_far_a_value_is_from_a_better_one(key: str, ratio: float, told: str) -> None:
    assert _difference(key, ratio) == told


def test_styles_are_those_that_the_terminal_and_its_person_want(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert styled("a") == "a"
    assert styled("a", bold=True, green=True) == "\x1b[1;32ma\x1b[0m"
    assert styled("a", dim=True) == "\x1b[2ma\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert styled("a", green=True) == "\x1b[1ma\x1b[0m"
    monkeypatch.setenv("TERM", "dumb")
    assert styled("a", bold=True, green=True) == "a"
