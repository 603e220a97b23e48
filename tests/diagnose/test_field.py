"""The inputs of the field cases: each is answered right in one sentence."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from tool_requirements import missing

from heapwright._diagnose.diagnosis import diagnose
from heapwright._diagnose.model import Diagnosis
from heapwright._heaps.heaps import resolve
from heapwright._support.errors import HeapwrightError
from heapwright._traces.logs import import_log

ANSWERS = {
    "refused.log": ("too small", "likely", ["50 requests of 16,717 B failed", "93,434 B are live", "94,680 B"]),
    "esp_leaks_mode.log": ("not enough data", "sure", ["no trace", "3 of 4,821", "31 were not freed", "overflowed"]),
    "esp_riscv.log": ("not enough data", "inconclusive", ["5 allocations and 3 frees", "608 B alive at the end"]),
    "esp_two_memories.log": ("not enough data", "inconclusive", ["Internal", "peak 400 B", "PSRAM", "peak 49,152 B"]),
    "ftrace_lost.log": ("not enough data", "sure", ["840 events were lost"]),
    "riot_style.log": ("not enough data", "inconclusive", ["3 allocations and 1 free", "peak 1,280 B"]),
    "sysview_text.log": ("not enough data", "inconclusive", ["2 allocations and 1 free", "peak 1,508 B"]),
    "telemetry.csv": ("fragmentation", "likely", ["110,000 to 15,900 B", "free memory stays near 121,010 B"]),
    "heap_calls.csv": ("not enough data", "inconclusive", ["3 allocations and 1 free", "peak 576 B, 576 B alive"]),
    "same1500.log": ("nothing wrong", "likely", ["240 calls", "peak of 60,000 B", "40 objects of 1,500 B"]),
    "tls.log": ("fragmentation", "likely", ["16,717 B"]),
    "tls2.log": ("fragmentation", "likely", ["16,717 B"]),
    "leak.log": ("leak", "likely", ["150 objects of 72 B"]),
    "noleak.log": ("nothing wrong", "likely", ["no leak"]),
    "pins.log": ("fragmentation", "likely", ["an object of 40 B", "pins", "best-fit-fast-free"]),
    "pool.log": ("nothing wrong", "likely", ["at most 12 objects of 1,536 B"]),
    "string.log": ("fragmentation", "likely", ["60 objects that grow", "String.reserve"]),
    "ttmetal.log": ("fragmentation", "likely", ["41,152 B", "best-fit-fast-free", "24,736 B"]),
}


@pytest.fixture(scope="module")
def field(shared_data: Path) -> Path:
    folder = shared_data.parent / "field"
    if not folder.is_dir():
        missing(f"{folder} is absent: it holds the inputs of the field cases")
    return folder


@pytest.fixture(scope="module")
def inputs(field: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The inputs, and the traces that the script of the field cases generates."""
    folder = tmp_path_factory.mktemp("field")
    subprocess.run([sys.executable, str(field / "gen.py")], cwd=folder, check=True)
    for path in field.iterdir():
        if path.suffix in {".log", ".csv"}:
            (folder / path.name).symlink_to(path)
    return folder


@cache
def diagnosis(path: Path) -> Diagnosis:
    return diagnose([path])


@pytest.mark.parametrize("name", ANSWERS)
def test_an_input_is_answered_right(inputs: Path, name: str) -> None:
    kind, confidence, words = ANSWERS[name]
    result = diagnosis(inputs / name)
    assert (result.kind, result.confidence) == (kind, confidence)
    assert [item for item in words if item not in result.sentence] == []


def test_a_place_of_its_own_for_the_buffers_needs_no_more_than_the_known_cure(inputs: Path, field: Path) -> None:
    known = resolve(str(field / "tlspool.toml"))
    for name in ("tls.log", "tls2.log"):
        pooled = [cure.after for cure in diagnosis(inputs / name).finding.cures if "16,717 B" in cure.text]
        arena = known.fit(import_log(inputs / name))
        assert arena is not None
        assert min(after for after in pooled if after is not None) <= arena


def test_a_recipe_is_nothing_to_diagnose(field: Path) -> None:
    with pytest.raises(HeapwrightError, match="a recipe; give it as the heap"):
        diagnose([field / "tlspool.toml"])
