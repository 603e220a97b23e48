"""Two studies compared: what changed, what of it is noise, and how a pull request reports it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner
from keyword_explorations import explore
from sample_studies import IDS, OBJECTIVES, TRACES, identity, in_the_long_run, metrics, result, trace

import heapwright as hw
from heapwright._cli import heapwright as command_line
from heapwright._explore.space import Space
from heapwright._recipes.recipe import Recipe
from heapwright._replay.metrics import DEFAULT_OBJECTIVES, Value
from heapwright._report.pull_request import MOST_LINES
from heapwright._studies.analysis import Analysis
from heapwright._studies.gate import Cause
from heapwright._studies.records import Result
from heapwright._studies.study_diff import NOISE, RecommendedHeap, StudyDiff, _causes, compare, verdict_of
from heapwright._support.errors import HeapwrightError
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC

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
    outcome = Made(folder, *(folder / f"{name}.duckdb" for name in ("old", "again", "new")))
    for study, message, seed in ((outcome.old, 100, 0), (outcome.again, 100, 5), (outcome.new, 180, 0)):
        place = folder / str(message)
        place.mkdir(exist_ok=True)
        build(message).write(place / "app.parquet")
        explore([Trace.read(place / "app.parquet")], space(), study_path=study, jobs=2, seed=seed, stress_test=False)
    return outcome


@pytest.fixture
def grown(made: Made) -> Iterator[StudyDiff]:
    with Analysis.open(made.old) as old, Analysis.open(made.new) as new:
        yield compare(old, new)


def test_a_larger_size_is_a_change_with_who_caused_it(grown: StudyDiff) -> None:
    before, after = grown.balanced
    assert before.reserve_bytes and after.reserve_bytes and before.reserve_bytes * NOISE < after.reserve_bytes
    assert grown.reserve == "change"
    assert not grown.same_traces and not grown.missing
    assert grown.after.requested_peak_bytes > grown.before.requested_peak_bytes
    first = grown.causes[0]
    assert (first.site, first.size) == ("src/net.c:88", 180)
    told_json = grown.as_json()["causes"][0]
    assert told_json == {**vars(first), "told": str(first)} and told_json["size"] == 180
    output = grown.sentences()
    assert output[0].startswith(f"Reserve: {before.reserve_bytes:,} bytes before, {after.reserve_bytes:,} now (+")
    assert f"src/net.c:88: {first.objects} objects of 180 bytes hold" in "".join(output)


def test_other_copies_of_the_same_recording_change_nothing(made: Made) -> None:
    with Analysis.open(made.old) as old, Analysis.open(made.again) as again:
        outcome = compare(old, again)
    assert outcome.reserve == "same" and outcome.same_traces and outcome.causes == () and not outcome.missing
    assert {pick.verdict for pick in outcome.picks} <= {"same", "noise"}
    assert outcome.before.front == outcome.after.front


@pytest.mark.parametrize(("size", "same", "verdict"), [(1000, False, "same"), (1040, False, "noise"),
                                                       (960, False, "noise"), (1056, False, "change"),
                                                       (1040, True, "change"), (None, False, "change")])  # fmt: skip
def test_another_recording_moves_a_reserve_a_little(size: int | None, same: bool, verdict: str) -> None:
    before, after = (RecommendedHeap("", "", "", reserve, {}) for reserve in (1000, size))
    assert verdict_of(before, after, same) == verdict


def of_results(folder: Path, old: Sequence[Result], new: Sequence[Result], now: Trace = TRACES[0]) -> StudyDiff:
    """Two studies of these results compared, the newer one on the trace `now`."""
    for name, results, explored in (("old", old, TRACES[0]), ("new", new, now)):
        with Analysis.create_or_resume(folder / f"{name}.duckdb", identity([explored])) as study:
            study.add(results)
    with Analysis.open(folder / "old.duckdb") as before, Analysis.open(folder / "new.duckdb") as after:
        return compare(before, after)


def test_what_changed_is_told_by_reserve_picks_and_front(tmp_path: Path) -> None:
    pick, other, fast = result(0, metrics(100, 1000)), result(5, metrics(90, 500)), result(3, metrics(1000, 300))
    outcome = of_results(tmp_path, [pick, fast], [pick, other, fast])
    output = f"first fit ({IDS[0]}) before, first fit ({IDS[5]}) now; the one before would no longer do as well."
    least = "least footprint 90 (before 100), least accesses a call 100 (before 100)"
    assert outcome.sentences() == [
        "Reserve: 144 bytes before, 128 now (-11.1 %).",
        f"Balanced: {output}",
        f"Smallest: {output}",
        f"Fastest: first fit ({IDS[3]}), as before.",
        f"Front: 2 recipes, before 2, 1 on both, {least}.",
    ]
    assert outcome.today and (outcome.today.id, outcome.today.reserve_bytes) == (IDS[0], 144)
    assert [heap.role for heap in outcome.table.heaps] == ["before", "after", "before, tried now"]
    assert [cell.text for cell in outcome.table.rows[0].cells] == ["144", "128", "144"]
    assert (outcome.before.traces, outcome.after.tried) == ({"busy": 3}, "3 of 8")
    assert [pick.id for pick in outcome.after.picks] == [IDS[5], IDS[3]]
    told_json = outcome.as_json()
    assert (told_json["same_traces"], told_json["reserve"], told_json["front_in_both"]) == (True, "change", 1)
    for name, ids in (("before", [IDS[0], IDS[3]]), ("after", [IDS[5], IDS[3]])):
        assert told_json[name]["study"].endswith(("old.duckdb", "new.duckdb"))
        assert (told_json[name]["front"], told_json[name]["picks"]) == (ids, ids)
    assert told_json["today"]["id"] == told_json["picks"]["balanced"]["before"]["id"] == IDS[0]
    assert told_json["picks"]["balanced"]["after"]["id"] == IDS[5]
    assert [told_json["picks"][how]["verdict"] for how in ("balanced", "fastest")] == ["change", "same"]
    assert (told_json["causes"], told_json["missing"]) == ([], "")
    before, after = outcome.balanced
    without = [replace(outcome.picks[0], after=replace(after, reserve_bytes=None)), *outcome.picks[1:]]
    assert (
        replace(outcome, picks=tuple(without)).reserve_sentence() == "Reserve: 144 bytes before, no arena serves now."
    )
    without[0] = replace(without[0], before=replace(before, reserve_bytes=None), after=after)
    assert (
        replace(outcome, picks=tuple(without)).reserve_sentence() == "Reserve: no arena serves before, 128 bytes now."
    )
    assert (
        outcome.pick_sentence(replace(outcome.picks[1], before=None))
        == f"Smallest: none before, first fit ({IDS[5]}) now."
    )
    assert (
        replace(outcome, reserve="noise")
        .reserve_sentence()
        .endswith("(-11.1 %), no more than another recording of the same build makes (5 %).")
    )


@pytest.mark.parametrize(
    ("old_now", "new_now", "verdict"),
    [
        (metrics(104, 100), metrics(100, 100), "noise"),
        (metrics(1040, 100), metrics(1000, 100), "noise"),
        (metrics(120, 100), metrics(100, 100), "change"),
        (metrics(100, 103), metrics(100, 100), "change"),
        (metrics(101, 102), metrics(101, 100), "noise"),
        (metrics(90, 90, failed=1), metrics(100, 100), "change"),
        (metrics(100, 100, lasts=0, growth_ratio=2.5), metrics(100, 100, lasts=1, growth_ratio=1.0), "change"),
        (None, metrics(100, 100), "unknown"),
    ],
)
def test_another_pick_is_noise_where_the_old_one_does_as_well(
    tmp_path: Path, old_now: dict[str, Value] | None, new_now: dict[str, Value], verdict: str
) -> None:
    now = [result(1, new_now), *([result(0, old_now)] if old_now else [])]
    outcome = of_results(tmp_path, [result(0, metrics(100, 100))], now)
    assert {pick.verdict for pick in outcome.picks} == {verdict}
    words = {
        "noise": "still do as well",
        "change": "no longer do as well",
        "unknown": "not tried on all of today's traces",
    }
    assert outcome.pick_sentence(outcome.picks[0]).endswith(f" {words[verdict]}.")
    assert (outcome.today is None) == (old_now is None)


def test_a_study_without_futures_is_compared_by_the_recordings(tmp_path: Path) -> None:
    """As a baseline from before futures is: by footprint and accesses, for any objectives of the newer one."""
    with Analysis.create_or_resume(tmp_path / "old.duckdb", identity()) as study:
        study.add([result(0, metrics(100, 1000)), result(1, metrics(200, 400))])
    with Analysis.create_or_resume(tmp_path / "new.duckdb", identity(objectives=DEFAULT_OBJECTIVES)) as study:
        study.add([result(0, metrics(100, 1000, **in_the_long_run(150)))])
    with Analysis.open(tmp_path / "old.duckdb") as old, Analysis.open(tmp_path / "new.duckdb") as new:
        assert compare(old, new).after.objectives == OBJECTIVES
        assert compare(new, new).after.objectives == DEFAULT_OBJECTIVES


def test_of_other_traces_the_peak_of_what_is_live_is_told(tmp_path: Path) -> None:
    had, has = (metrics(100, calls, requested_peak_bytes=peak) for calls, peak in ((1000, 120), (3000, 150)))
    outcome = of_results(tmp_path, [result(0, had)], [result(0, has, "idle")], trace("idle", 100))
    assert not outcome.same_traces and outcome.reserve == "same"
    assert outcome.sentences() == [
        "Reserve: 144 bytes, as before.",
        *(f"{how}: first fit ({IDS[0]}), as before." for how in ("Balanced", "Smallest", "Fastest")),
        "Front: 1 recipes, before 1, 1 on both, least footprint 100 (before 100), "
        "least accesses a call 1,000 (before 333.3).",
        "Live at the peak: 150 bytes, before 120 (+25.0 %).",
        outcome.missing,
    ]


def test_of_several_traces_the_namesake_tells_who_held_less() -> None:
    old, new = ([trace("busy", busy), trace("idle", idle)] for busy, idle in ((100, 200), (200, 24)))
    assert _causes(old, new) == [Cause("", 200, 1, 200, 200)], "busy, as idle held as many before"


def test_without_traces_nobody_knows_who_holds_more(made: Made, tmp_path: Path) -> None:
    for study in (made.old, made.new):
        shutil.copy(study, tmp_path)
    place = made.folder / "100"
    hidden = place.rename(made.folder / "hidden")
    try:
        outcome = hw.compare_studies(tmp_path / "old.duckdb", tmp_path / "new.duckdb")
        given = hw.compare_studies(tmp_path / "old.duckdb", tmp_path / "new.duckdb", moved=[hidden / "app.parquet"])
    finally:
        hidden.rename(place)
    assert outcome.causes == () and "give the present path of trace app" in outcome.missing
    assert given.missing == "" and given.reserve == outcome.reserve == "change"


def test_a_pull_request_is_told_as_it_was(made: Made, tmp_path: Path) -> None:
    text, files = hw.pull_request(made.new, tmp_path / "heap.md", baseline=made.old)
    assert files == [tmp_path / "heap.md", tmp_path / "heap.svg"]
    assert text == files[0].read_text(encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8").format(version=hw.__version__), (
        "look at it; where it is right, write it there"
    )
    assert len(text.splitlines()) <= MOST_LINES
    drawing = ElementTree.parse(files[1]).getroot()
    words = {item.text for item in drawing.iter() if item.tag.endswith("}text")}
    assert {"before", "after"} <= words


def test_what_is_printed_shows_no_picture(made: Made) -> None:
    alone, files = hw.pull_request(made.new)
    assert files == [] and "![" not in alone and "ship: " in alone
    done = CliRunner().invoke(command_line, ["report", str(made.new)])
    assert (done.exit_code, done.stdout) == (0, alone)
    tables = [line for line in alone.splitlines() if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in tables}) == 1


def test_the_command_tells_what_the_library_does(made: Made) -> None:
    words = ["study", "diff", str(made.old), str(made.new)]
    shown = CliRunner().invoke(command_line, words)
    assert shown.exit_code == 0 and "Reserve: " in shown.stdout and "before, " not in shown.stderr
    output = json.loads(CliRunner().invoke(command_line, [*words, "--json"]).stdout)
    assert output == json.loads(json.dumps(hw.compare_studies(made.old, made.new).as_json()))
    assert output["reserve"] == "change"


def test_a_page_begins_with_what_changed(made: Made, tmp_path: Path) -> None:
    page, *_ = hw.report(made.new, tmp_path / "page.html", baseline=made.old)
    text = page.read_text(encoding="utf-8")
    assert "What changed since old.duckdb" in text and 'id="before-after"' in text and 'id="fronts"' in text
    assert text.index('id="changes"') < text.index('id="trade-offs"')


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["report", "a", "b", "c", "-o", "x.html"], 2, "one study or trace, and at most one older study"),
        (["report", "100/app.parquet"], 2, "the page of a trace is written to a file"),
        (["report", "old.duckdb", "--no-plots"], 2, "are for pages"),
        (["report", "old.duckdb", "100/app.parquet", "-o", "x.html"], 2, "only a study is compared"),
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
