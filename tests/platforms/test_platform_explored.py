"""What ships is what was explored: a study for a platform has the numbers of the heap that is generated for it."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from run_length import brief

import heapwright as hw
from heapwright._traces.validation import FREE, MALLOC, REALLOC

SPACE = """
include_zoo = false
link_bytes = [2, 4]
[[pool]]
kind = "quick"
most_frequent = [0, 2]
[[pool]]
kind = "general"
bins = ["none", "exact"]
fit = ["first", "best"]
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> hw.Trace:
    """A program of 3,000 calls on objects of 1 to 400 bytes, one in nine a realloc."""
    rng = random.Random(4)
    live: list[int] = []
    calls: list[tuple[int, int, int]] = []
    for number in range(3000):
        kind = rng.randrange(9)
        if live and kind == 8:
            calls.append((REALLOC, rng.choice(live), rng.randint(1, 400)))
        elif live and (kind > 4 or len(live) > 90):
            calls.append((FREE, live.pop(rng.randrange(len(live))), 0))
        else:
            live.append(number)
            calls.append((MALLOC, number, rng.choice([24, 40, 150, rng.randint(1, 400)])))
    op, id_, size = zip(*calls, strict=True)
    path = tmp_path_factory.mktemp("traces") / "program.parquet"
    hw.Trace.from_columns(op=op, id=id_, size=size, name="program").write(path)
    return hw.read_trace(path)


@pytest.mark.parametrize("name", [platform.name for platform in hw.platforms()])
def test_the_generated_header_has_the_numbers_of_the_study(name: str, trace: hw.Trace, tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text(SPACE)
    space = hw.Space.load(tmp_path / "space.toml", [trace], platform=hw.platforms(name))
    study = hw.explore(trace, tmp_path / "it.duckdb", space=space, platform=name, copies=0, stress_test=False)
    assert study.platform == name
    platform = hw.platforms(name)
    members = [*study.front(), study.pick()]
    for member in members[: brief(1, 100)]:
        assert member.recipe.align >= platform.align
        assert member.recipe.counters == platform.counters
        if not platform.realloc:
            assert all(getattr(pool, "resize", "move") == "move" for pool in member.recipe.pools)
        folder = tmp_path / member.id
        hw.generate(member, folder)
        assert (folder / "app_README.md").exists()
        text = " ".join((folder / "app_heap.c").read_text().replace("\n *", " ").split())
        measured = re.search(r"Measured there: ([\d,]+) bytes of arena, .*? ([\d,]+) metadata accesses", text)
        assert measured
        numbers = [int(number.replace(",", "")) for number in measured.groups()]
        assert numbers == [member.metrics["footprint_bytes"], member.metrics["accesses"]]
        again = hw.replay(trace, folder / "app_heap.toml").metrics
        assert {key: again[key] for key in ("footprint_bytes", "accesses", "failed")} == {
            key: member.metrics[key] for key in ("footprint_bytes", "accesses", "failed")
        }


def test_generate_takes_the_platform_of_the_study_unless_told_otherwise(trace: hw.Trace, tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text(SPACE)
    study = hw.explore(trace, tmp_path / "it.duckdb", space=tmp_path / "space.toml", platform="lua", stress_test=False)
    said: list[str] = []
    hw.generate(f"{study.path}:balanced", tmp_path / "lua", notes=said.append)
    assert said == ["written for lua, for which it was explored; platform none leaves that out"]
    hw.generate(f"{study.path}:balanced", tmp_path / "none", platform="none", notes=said.append)
    hw.generate(f"{study.path}:balanced", tmp_path / "other", platform="newlib", notes=said.append)
    assert len(said) == 1
    assert [(tmp_path / name / "app_lua.c").exists() for name in ("lua", "none", "other")] == [True, False, False]


def test_counters_are_counted_where_they_ship(trace: hw.Trace, tmp_path: Path) -> None:
    """FreeRTOS's port returns counters, which every call writes: the study has them, as the generated heap does."""
    (tmp_path / "space.toml").write_text(SPACE)
    accesses = {}
    for name in (None, "freertos"):
        study = hw.explore(
            trace, tmp_path / f"{name}.duckdb", space=tmp_path / "space.toml", platform=name, stress_test=False
        )
        accesses[name] = min(float(member.metrics["accesses"] or 0) for member in study.front())
    assert accesses["freertos"] > 1.2 * accesses[None]


def test_a_platform_that_cannot_be_explored_for_is_told(trace: hw.Trace, tmp_path: Path) -> None:
    output = tmp_path / "it.duckdb"
    with pytest.raises(hw.HeapwrightError, match="4: freertos needs 8 or more"):
        hw.explore(trace, output, align=4, platform="freertos")
    with pytest.raises(hw.HeapwrightError, match="no such platform; did you mean freertos"):
        hw.explore(trace, output, platform="freertoss")
    space = hw.Space.default([trace])
    with pytest.raises(hw.HeapwrightError, match="freertos: the space is for none; give it there"):
        hw.explore(trace, output, space=space, platform="freertos")
    assert not output.exists()


def test_what_the_platform_cannot_use_is_left_out(trace: hw.Trace) -> None:
    """Zephyr needs objects of larger alignment, which pools without headers do not have; FreeRTOS does not resize."""
    space = {name: hw.Space.default([trace], platform=hw.platforms(name)) for name in ("zephyr", "freertos")}
    names = {name: {recipe.name for recipe in space[name].zoo.values()} for name in space}
    assert names["freertos"] - names["zephyr"] >= {"fixed-pool"}
