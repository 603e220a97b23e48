"""Two studies beside each other: what changed, what of it is noise, and how a pull request tells it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner
from exploring import explore

import heapwright as hw
from heapwright.cli import heapwright as command_line
from heapwright.decide.changes import NOISE, Changes, Picked, compare, verdict_of
from heapwright.decide.study import Study
from heapwright.explore.space import Space
from heapwright.files.errors import HeapwrightError
from heapwright.recipes.recipe import Recipe
from heapwright.report.pull_request import MOST_LINES
from heapwright.traces.trace import Trace
from heapwright.traces.validation import FREE, MALLOC

GOLDEN = Path(__file__).with_name("pull_request.md")


def build(message: int) -> Trace:
    """Messages of one size that a queue holds, and lines of a log, each asked for at a line of a file."""
    random = np.random.default_rng(3)
    rows: list[tuple[int, int, int, int]] = []
    live: list[tuple[int, int]] = []
    for id in range(600):
        net = random.random() < 0.6
        size, site = (message, 1) if net else (int(random.integers(8, 300)), 2)
        rows.append((MALLOC, id, size, site))
        live.append((id, site))
        while live and random.random() < (0.3 if len(live) < 40 else 0.55):
            old, of = live.pop(int(random.integers(len(live))))
            rows.append((FREE, old, 0, of))
    op, ids, sizes, sites = (np.array(column) for column in zip(*rows, strict=True))
    return Trace.from_columns(op=op, id=ids, size=sizes, site=sites, sites=("", "src/net.c:88", "src/log.c:7"))


def space() -> Space:
    pools = [
        {"kind": "general", "order": order, "fit": fit, "coalesce": coalesce}
        for order in ("lifo", "address")
        for fit in ("first", "best")
        for coalesce in ("immediate", "never")
    ]
    return Space([[Recipe.from_dict({"pool": [pool]}) for pool in pools]])


@dataclass(frozen=True)
class Made:
    """Studies of the build before, of the same with other copies, and of one with larger messages."""

    folder: Path
    old: Path
    again: Path
    new: Path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("changes")
    found = Made(folder, *(folder / f"{name}.duckdb" for name in ("old", "again", "new")))
    for study, message, seed in ((found.old, 100, 0), (found.again, 100, 5), (found.new, 180, 0)):
        place = folder / str(message)
        place.mkdir(exist_ok=True)
        build(message).write(place / "app.parquet")
        explore([Trace.read(place / "app.parquet")], space(), study_path=study, jobs=2, seed=seed, endurance=False)
    return found


@pytest.fixture
def grown(made: Made) -> Iterator[Changes]:
    with Study.open(made.old) as old, Study.open(made.new) as new:
        yield compare(old, new)


def test_a_larger_size_is_a_change_with_who_caused_it(grown: Changes) -> None:
    before, after = grown.balanced
    assert before.reserve_bytes and after.reserve_bytes and before.reserve_bytes * NOISE < after.reserve_bytes
    assert grown.reserve == "change"
    assert not grown.same_traces and not grown.missing
    assert grown.after.requested_peak_bytes > grown.before.requested_peak_bytes
    first = grown.causes[0]
    assert (first.site, first.size) == ("src/net.c:88", 180)
    told = grown.sentences()
    assert told[0].startswith(f"Reserve: {before.reserve_bytes:,} bytes before, {after.reserve_bytes:,} now (+")
    assert f"src/net.c:88: {first.objects} objects of 180 bytes hold" in "".join(told)


def test_other_copies_of_the_same_recording_change_nothing(made: Made) -> None:
    with Study.open(made.old) as old, Study.open(made.again) as again:
        found = compare(old, again)
    assert found.reserve == "same" and found.same_traces and found.causes == () and not found.missing
    assert {one.verdict for one in found.picks} <= {"same", "noise"}
    assert found.before.front == found.after.front


@pytest.mark.parametrize(("size", "same", "verdict"), [(1000, False, "same"), (1040, False, "noise"),
                                                       (960, False, "noise"), (1056, False, "change"),
                                                       (1040, True, "change"), (None, False, "change")])  # fmt: skip
def test_another_recording_moves_a_reserve_a_little(size: int | None, same: bool, verdict: str) -> None:
    before, after = (Picked("", "", "", reserve, {}) for reserve in (1000, size))
    assert verdict_of(before, after, same) == verdict


def test_without_traces_nobody_knows_who_holds_more(made: Made, tmp_path: Path) -> None:
    for study in (made.old, made.new):
        shutil.copy(study, tmp_path)
    place = made.folder / "100"
    hidden = place.rename(made.folder / "hidden")
    try:
        found = hw.compare_studies(tmp_path / "old.duckdb", tmp_path / "new.duckdb")
        given = hw.compare_studies(tmp_path / "old.duckdb", tmp_path / "new.duckdb", moved=[hidden / "app.parquet"])
    finally:
        hidden.rename(place)
    assert found.causes == () and "say where trace app lies now" in found.missing
    assert given.missing == "" and given.reserve == found.reserve == "change"


def test_a_pull_request_is_told_as_it_was(made: Made, tmp_path: Path) -> None:
    text, files = hw.pull_request(made.new, tmp_path / "heap.md", baseline=made.old)
    assert files == [tmp_path / "heap.md", tmp_path / "heap.svg"]
    assert text == files[0].read_text(encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8").format(version=hw.__version__), (
        "look at it; where it is right, write it there"
    )
    assert len(text.splitlines()) <= MOST_LINES
    drawing = ElementTree.parse(files[1]).getroot()
    words = {one.text for one in drawing.iter() if one.tag.endswith("}text")}
    assert {"before", "after"} <= words


def test_what_is_printed_shows_no_picture(made: Made) -> None:
    alone, files = hw.pull_request(made.new)
    assert files == [] and "![" not in alone and "ship: " in alone
    done = CliRunner().invoke(command_line, ["report", str(made.new), "--format", "github"])
    assert (done.exit_code, done.stdout) == (0, alone)
    tables = [line for line in alone.splitlines() if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in tables}) == 1


def test_the_command_tells_what_the_library_does(made: Made) -> None:
    words = ["study", "diff", str(made.old), str(made.new)]
    shown = CliRunner().invoke(command_line, words)
    assert shown.exit_code == 0 and "Reserve: " in shown.stdout and "before, " not in shown.stderr
    told = json.loads(CliRunner().invoke(command_line, [*words, "--json"]).stdout)
    assert told == json.loads(json.dumps(hw.compare_studies(made.old, made.new).as_json()))
    assert told["reserve"] == "change"


def test_a_page_begins_with_what_changed(made: Made, tmp_path: Path) -> None:
    page, *_ = hw.report(made.new, tmp_path / "page.html", baseline=made.old)
    text = page.read_text(encoding="utf-8")
    assert "What changed since old.duckdb" in text and 'id="before-after"' in text and 'id="fronts"' in text
    assert text.index('id="changes"') < text.index('id="trade-offs"')


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["report", "a", "b", "c", "-o", "x.html"], 2, "one study or trace, and at most one older study"),
        (["report", "old.duckdb"], 2, "a page is written to a file"),
        (["report", "old.duckdb", "--format", "github", "--no-plots"], 2, "are for pages"),
        (["report", "100/app.parquet", "--baseline", "old.duckdb", "-o", "x.html"], 2, "only a study is compared"),
        (["study", "diff", "old.duckdb", "100/app.parquet"], 1, "app.parquet: a trace, and no study"),
        (["study", "diff", "old.duckdb", "none.duckdb"], 1, "none.duckdb: no such study"),
    ],
)
def test_wrong_words_are_told(
    made: Made, words: list[str], code: int, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made.folder)
    done = CliRunner().invoke(command_line, words)
    assert done.exit_code == code or isinstance(done.exception, HeapwrightError)
    assert told in done.stderr + str(done.exception)
