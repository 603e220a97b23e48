"""What a shell is offered for words that are begun."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from sample_studies import write_five

from heapwright._cli import heapwright as command_line
from heapwright._platforms.catalogue import platforms
from heapwright._recipes.zoo import catalogue as zoo
from heapwright._replay.metrics import METRICS


def offered(*words: str) -> list[str]:
    *before, begun = words
    result = ShellComplete(command_line, {}, "heapwright", "_COMPLETE").get_completions(before, begun)
    return [item.value for item in result if item.type == "plain"]


@pytest.mark.parametrize(
    "words", [("replay", "a.parquet", "--heap"), ("generate",), ("zoo",), ("pareto", "s.duckdb", "--against")]
)
def test_heaps_of_the_zoo(words: tuple[str, ...]) -> None:
    assert offered(*words, "tl") == ["tlsf"]
    assert offered(*words, "") == zoo.names()


def test_files_are_heaps_too() -> None:
    result = ShellComplete(command_line, {}, "heapwright", "_COMPLETE").get_completions(["generate"], "min")
    assert "file" in {item.type for item in result}


def test_picks_and_the_zoo_behind_a_study(tmp_path: Path) -> None:
    study = write_five(tmp_path / "s.duckdb")
    assert offered("generate", f"{study}:ba") == [f"{study}:balanced"]
    assert offered("generate", f"{study}:tl") == [f"{study}:tlsf"]
    assert offered("generate", f"{tmp_path}/none.duckdb:ba") == []


def test_platforms() -> None:
    assert offered("generate", "tlsf", "--platform", "newlib") == ["newlib", "newlib-nano"]
    assert offered("platforms", "") == list(platforms())


def test_metrics_one_after_the_other() -> None:
    assert offered("explore", "a.parquet", "--objectives", "") == list(METRICS)
    assert offered("pareto", "s.duckdb", "--objectives", "accesses,footp") == ["accesses,footprint_bytes"]
    assert offered("pareto", "s.duckdb", "--objectives", "footprint_bytes,footp") == []


def test_conditions_and_what_compares_in_them() -> None:
    assert offered("pareto", "s.duckdb", "--where", "res") == ["reserve_bytes"]
    assert offered("check", "a.parquet", "--fail-if", "failed >") == ["failed >= ", "failed > "]
