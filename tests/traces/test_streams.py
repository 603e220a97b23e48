"""Traces a window at a time: what is read, cut, merged, scaled, compared and exported is what whole traces say."""

from __future__ import annotations

import csv
import random
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_tables import each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from traces_random import labelled_traces, random_trace

import heapwright as hw
from heapwright._support import parquet
from heapwright._traces import streams, tables
from heapwright._traces.diff import LifetimeHistogram, _least, _step
from heapwright._traces.merge import merge as merged_streams
from heapwright._traces.profile import profile
from heapwright._traces.streams import COLUMNS, Stream
from heapwright._traces.trace import Trace
from heapwright._traces.validation import CALLOC, FREE, MALLOC, REALLOC, Columns

MANY = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
FEW = settings(MANY, max_examples=8)


@pytest.fixture
def short_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows and parts of a few calls, so that small traces have many."""
    monkeypatch.setattr(tables, "WINDOW", 7)
    monkeypatch.setattr(streams, "WINDOW", 7)
    monkeypatch.setattr(tables, "_PART", 20)


pytestmark = pytest.mark.usefixtures("short_windows")


def same(one: Trace, other: Trace, leaving: Sequence[str] = ()) -> bool:
    columns = [key for key in COLUMNS if key not in ("phase", "site", *leaving)]
    return all(np.array_equal(getattr(one, key), getattr(other, key)) for key in columns) and all(
        named(one, key) == named(other, key) for key in ("phase", "site")
    )


def named(trace: Trace, key: str) -> list[str]:
    """The phase or the site of every call, by its name."""
    names: tuple[str, ...] = getattr(trace, f"{key}s")
    return [names[at] for at in getattr(trace, key).tolist()]


# ---- windows -------------------------------------------------------------------------------------------------------


@FEW
@given(labelled_traces())
def test_a_trace_read_and_written_by_windows_is_the_trace(tmp_path: Path, trace: Trace) -> None:
    trace.write(tmp_path / "a.parquet")
    output = Stream.of(tmp_path / "a.parquet").write(tmp_path / "b.parquet")
    again = Trace.read(tmp_path / "b.parquet")
    assert same(trace, again)
    assert again.metadata == trace.metadata == output.metadata
    assert (output.events, output.requested_peak_bytes, output.live_objects_peak) == (
        len(trace),
        trace.peak_live_bytes,
        trace.peak_live_objects,
    )
    assert same(Stream.of(trace).trace(), trace)


@MANY
@given(labelled_traces())
def test_facts_are_those_of_the_whole_trace(trace: Trace) -> None:
    facts = hw.trace_facts(trace)
    assert facts["events"] == len(trace)
    assert facts["seconds"] == trace.seconds
    assert facts["threads"] == len(set(trace.tid.tolist()))
    assert facts["requested_peak_bytes"] == trace.peak_live_bytes
    assert facts["live_objects_peak"] == trace.peak_live_objects
    assert Stream.of(trace).totals().peak_event == int(trace.live_bytes.argmax())


@FEW
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5), st.integers(-2, 40)), min_size=1, max_size=60))
def test_faults_are_found_and_repaired_as_in_the_whole_trace(tmp_path: Path, rows: list[tuple[int, int, int]]) -> None:
    """An op, an id and a time each, most of them wrong."""
    op, id, time = (np.array(column) for column in zip(*rows, strict=True))
    columns = {"ts_us": time, "tid": id, "op": op, "id": id, "size": np.full(len(op), 8)}
    parquet.write(tmp_path / "a.parquet", columns, {})

    def tried(read: Any) -> tuple[str, Any]:
        try:
            return "", read()
        except hw.HeapwrightError as error:
            return str(error), None

    stream = Stream.of(tmp_path / "a.parquet", repair=True)
    said, whole = tried(lambda: Trace.read(tmp_path / "a.parquet", repair=True))
    said_of_windows, windows = tried(stream.trace)
    assert (said == "") == (said_of_windows == "")
    if whole is not None:
        assert same(whole, windows)
        changed = [int(output.split()[0]) for output in whole.repairs]
        changed_by_window = [int(output.rpartition(".parquet: ")[2].split()[0]) for output in stream.repairs]
        assert sum(changed) == sum(changed_by_window)
    said, _ = tried(lambda: Trace.read(tmp_path / "a.parquet"))
    said_of_windows, _ = tried(Stream.of(tmp_path / "a.parquet").trace)
    assert (said == "") == (said_of_windows == "")


def test_a_fault_behind_the_first_window_names_its_row(tmp_path: Path) -> None:
    calls = [(MALLOC, at) for at in range(20)]
    for wrong, says in (
        ((FREE, 77), "row 20: free of id 77, which is not live"),
        ((MALLOC, 3), "row 20: id 3 is still live (allocated in row 3)"),
        ((MALLOC, 19), "row 20: id 19 is still live (allocated in row 19)"),
    ):
        op, id = (np.array(column) for column in zip(*calls, wrong, strict=True))
        zeros = np.zeros(len(op), np.int64)
        columns = {"ts_us": np.arange(len(op)), "tid": zeros, "op": op, "id": id, "size": zeros}
        parquet.write(tmp_path / "a.parquet", columns, {})
        with pytest.raises(hw.HeapwrightError, match=r"a.parquet: row 20: ") as caught:
            hw.trace_facts(tmp_path / "a.parquet")
        assert says in str(caught.value)
    columns |= {"op": np.zeros(21, np.uint8), "id": np.arange(21), "ts_us": np.append(np.arange(20), 5)}
    parquet.write(tmp_path / "a.parquet", columns, {})
    with pytest.raises(hw.HeapwrightError, match=r"row 20: ts_us 5 after 19"):
        hw.trace_facts(tmp_path / "a.parquet")
    assert hw.trace_facts(tmp_path / "a.parquet", repair=True)["repairs"] == [
        f"{tmp_path / 'a.parquet'}: 1 time raised: went backwards"
    ]


# ---- parts ---------------------------------------------------------------------------------------------------------


@MANY
@given(labelled_traces(), st.integers(1, 300), st.booleans())
def test_a_first_part_is_the_trace_up_to_there(trace: Trace, calls: int, close: bool) -> None:
    part = hw.cut(trace, first=calls, close=close)
    kept = min(calls, len(trace))
    assert part.name == "app~first"
    assert np.array_equal(part.op[:kept], trace.op[:kept])
    assert np.array_equal(part.size[:kept], trace.size[:kept])
    assert np.array_equal(part.live_bytes[:kept], trace.live_bytes[:kept])
    assert len(part) == (kept + int(trace.live_objects[kept - 1]) if close else kept)
    assert not close or part.live_bytes[-1] == 0


@MANY
@given(labelled_traces(), st.integers(0, 299), st.integers(1, 300))
def test_a_part_with_what_lived_has_the_live_bytes_of_the_whole(trace: Trace, start: int, calls: int) -> None:
    start = min(start, len(trace) - 1)
    stop = min(start + calls, len(trace))
    part = hw.cut(trace, start=start, stop=stop, live=True, close=False)
    before = int(part.metadata.get("inherited", 0))
    assert before == (trace.live_objects[start - 1] if start else 0)
    assert np.array_equal(part.live_bytes[before:], trace.live_bytes[start:stop])
    assert np.array_equal(part.live_objects[before:], trace.live_objects[start:stop])
    assert part.metadata["cut_calls"] == f"{start}-{stop - 1}"
    assert not part.ts_us[:before].any() or part.ts_us[0] == -1


@MANY
@given(labelled_traces(), st.sampled_from(("threads", "phases", "sites")), st.integers(0, 3), st.booleans())
def test_a_part_of_a_place_has_the_objects_that_are_born_there(
    tmp_path: Path, trace: Trace, what: str, which: int, written: bool
) -> None:
    column, names = {
        "threads": (trace.tid, range(2)),
        "phases": (trace.phase, trace.phases),
        "sites": (trace.site, trace.sites),
    }[what]
    number, _ = trace.objects()
    births = (trace.op <= CALLOC) & (column == which % len(names))
    kept = np.isin(number, number[births])
    given: Any = {what: [names[which % len(names)]], "close": False}
    if not births.any():
        with pytest.raises(hw.HeapwrightError, match=r"nothing is allocated there|none of which is in this part"):
            hw.cut(trace, **given)
        return
    part = hw.cut(trace, **given)
    assert np.array_equal(part.id, number[kept])
    assert np.array_equal(part.size, trace.size[kept])
    if written:
        assert hw.cut(trace, tmp_path / "part.parquet", **given).events == len(part)
        assert same(Trace.read(tmp_path / "part.parquet"), part)


def test_a_last_part_leaves_out_objects_born_before() -> None:
    trace = Trace.from_columns(
        op=[0, 0, 3, 2, 0, 3], id=[1, 2, 1, 2, 1, 2], size=[8, 16, 0, 32, 24, 0], ts_us=[0, 5, 6, 7, 9, 12], name="app"
    )
    part = hw.cut(trace, last=4)
    assert part.op.tolist() == [0, FREE]
    assert part.size[0] == 24
    assert part.ts_us.tolist() == [0, 0]
    assert part.metadata["cut_calls"] == "2-5"
    assert len(hw.cut(trace, last=4, close=False)) == 1


def test_what_lived_has_its_size_at_the_cut_and_dies_as_it_did() -> None:
    trace = Trace.from_columns(
        op=[1, 0, 2, 0, 3, 2, 3],
        id=[1, 2, 1, 3, 2, 1, 1],
        size=[8, 16, 32, 24, 0, 40, 0],
        ts_us=[0, 5, 6, 7, 9, 12, 13],
        tid=[0, 1, 1, 0, 0, 0, 0],
        name="app",
    )
    part = hw.cut(trace, start=4, live=True)
    assert part.op.tolist() == [CALLOC, MALLOC, MALLOC, FREE, REALLOC, FREE, FREE]
    assert part.size.tolist()[:3] == [32, 16, 24]
    assert part.ts_us.tolist() == [0, 0, 0, 0, 3, 4, 4]
    assert part.metadata["inherited"] == "3"
    of_thread = hw.cut(trace, start=4, live=True, threads=0, close=False)
    assert of_thread.size.tolist() == [24]  # the calloc's latest request came from thread 1


def test_a_part_may_be_a_time() -> None:
    trace = Trace.from_columns(op=[0, 0, 3], id=[1, 2, 1], size=[8, 8, 0], ts_us=[0, 100, 2_000_000], name="app")
    assert len(hw.cut(trace, first=timedelta(seconds=1), close=False)) == 2
    assert len(hw.cut(trace, first=timedelta(seconds=2), close=False)) == 3
    assert len(hw.cut(trace, stop=timedelta(seconds=2), close=False)) == 2
    assert hw.cut(trace, start=timedelta(microseconds=100), close=False).metadata["cut_calls"] == "1-2"
    with pytest.raises(hw.HeapwrightError, match="calls 2 to 2 all use objects allocated earlier"):
        hw.cut(trace, last=timedelta(seconds=1))


def test_a_star_in_a_site_stands_for_any_letters() -> None:
    sites = ("lwip/pbuf.c:12", "lwip/tcp.c:3", "main [a]")
    trace = Trace.from_columns(op=[0, 0, 0], id=[1, 2, 3], size=[8, 16, 32], site=[0, 1, 2], sites=sites, name="app")
    assert hw.cut(trace, sites="lwip/*", close=False).size.tolist() == [8, 16]
    assert hw.cut(trace, sites=["*[a]", "*.c:3"], close=False).size.tolist() == [16, 32]


@each(
    ("asked", "says"),
    [
        ({}, "give either first or last, start or stop, or threads"),
        ({"first": 1, "last": 1}, "give either first or last"),
        ({"first": 1, "stop": 1}, "give either first or last"),
        ({"first": 0}, "first: 0 calls; must be 1 or more"),
        ({"last": timedelta(seconds=-1)}, "last: -1 s; must be 0 or more"),
        ({"last": timedelta(seconds=1)}, "some calls have no time; give a number of calls"),
        ({"start": 9}, "app: it has 1 calls, none of which is in this part"),
        ({"threads": 3}, "app: calls 0 to 0: nothing is allocated there"),
        ({"sites": "mian"}, "mian: not among the trace's sites; did you mean main?"),
        ({"phases": "start"}, "start: not among the trace's phases; the trace names none"),
    ],
)
def test_a_part_that_cannot_be_is_said(asked: dict[str, Any], says: str) -> None:
    trace = Trace.from_columns(op=[0], id=[1], size=[8], site=[0], sites=("main",), name="app")
    with pytest.raises(hw.HeapwrightError, match=says):
        hw.cut(trace, **asked)


# ---- merging -------------------------------------------------------------------------------------------------------


def timed(seed: int, calls: int, name: str, **metadata: str) -> Trace:
    """A random trace with few different times, two threads and two sites."""
    rng = random.Random(seed)
    plain = random_trace(rng, calls, live=20)
    times = np.sort([rng.randrange(12) for _ in range(calls)])
    return Trace.from_columns(
        op=plain.op,
        id=plain.calls.slot,
        size=plain.size,
        align=plain.align,
        ts_us=times,
        tid=[rng.randrange(2) for _ in range(calls)],
        site=[rng.randrange(2) for _ in range(calls)],
        sites=("main", name),
        name=name,
        metadata=metadata,
    )


@settings(max_examples=20)
@given(st.lists(st.integers(1, 60), min_size=2, max_size=4), st.integers(0, 99))
def test_merged_calls_are_in_the_order_of_time_and_each_trace_is_in_there(lengths: list[int], seed: int) -> None:
    given = [timed(seed + at, calls, f"app{at}") for at, calls in enumerate(lengths)]
    merged = hw.merge(given)
    key = np.concatenate([item.ts_us for item in given])
    order = np.argsort(key, kind="stable")
    for column in ("ts_us", "op", "size", "align"):
        assert np.array_equal(
            getattr(merged, column), np.concatenate([getattr(item, column) for item in given])[order]
        ), column
    for item, threads in zip(given, merged.metadata["merge_threads"].split("\n"), strict=True):
        low, high = map(int, threads.split("-"))
        its = (merged.tid >= low) & (merged.tid <= high)
        assert np.array_equal(merged.tid[its] - low, item.tid)
        own = np.unique(merged.id[its], return_inverse=True)[1]
        assert np.array_equal(own, item.objects()[0])
        assert [merged.sites[at] for at in merged.site[its]] == [item.sites[at] for at in item.site]


@each("ends", [(1,), (2,), (3,), (4,), (2, 3), (2, 4), (2, 3, 4), (1, 2, 3, 4)], ids=str)
def test_a_call_without_a_time_is_merged_behind_the_one_before_it_in_another_window(ends: tuple[int, ...]) -> None:
    """Calls without times on both sides of where a window ends, or alone in theirs; the other trace's lie around."""
    times = [5, 9, -1, -1, 20]
    calls: Columns = {
        "op": np.zeros(5, np.uint8),
        "id": np.arange(5, dtype=np.uint32),
        "size": np.arange(1, 6, dtype=np.uint32),
        "ts_us": np.array(times, np.int64),
    }
    whole = {key: calls.get(key, np.zeros(5, dtype)) for key, dtype in COLUMNS.items()}
    parts = [slice(start, stop) for start, stop in pairwise([0, *ends, 5])]
    item = Stream("one", lambda: iter([{key: column[part] for key, column in whole.items()} for part in parts]))
    other = Trace.from_columns(op=[0, 0, 0], id=[0, 1, 2], size=[100, 101, 102], ts_us=[0, 8, 10], name="other")
    sizes = [size for window in merged_streams([item, Stream.of(other)]).windows() for size in window["size"].tolist()]
    assert sizes == [100, 1, 101, 2, 3, 4, 102, 5]


def test_what_merged_traces_agree_in_stays_and_caveats_keep_their_names(tmp_path: Path) -> None:
    item = timed(1, 30, "one", pointer_bytes="4", program="app", caveats="no threads")
    two = timed(2, 30, "two", pointer_bytes="4", program="other", inherited="3")
    output = hw.merge([item, two], tmp_path / "both.parquet")
    assert output.metadata == {
        "format_version": "1",
        "pointer_bytes": "4",
        "merge_of": "one\ntwo",
        "merge_threads": "0-1\n2-3",
        "caveats": "one: no threads",
    }
    assert hw.read_trace(tmp_path / "both.parquet").notes == ("both: one: no threads",)


def test_a_merged_trace_states_no_recording_cost_and_no_inherited_calls_of_its_parts(tmp_path: Path) -> None:
    parts = [timed(n, 30, name, recording_ns_per_call="55", inherited="3") for n, name in ((1, "one"), (2, "two"))]
    metadata = hw.merge(parts, tmp_path / "both.parquet").metadata
    assert {"recording_ns_per_call", "inherited"} & set(metadata) == set(), "the mean over both is neither's"


def test_traces_that_cannot_be_merged_are_said() -> None:
    narrow, wide = timed(1, 9, "narrow", pointer_bytes="4"), timed(1, 9, "wide", pointer_bytes="8")
    with pytest.raises(hw.HeapwrightError, match="wide: recorded with 8-byte pointers, narrow with 4-byte ones"):
        hw.merge([narrow, wide])
    with pytest.raises(hw.HeapwrightError, match="give two traces or more"):
        hw.merge([narrow])
    untimed = Trace.from_columns(op=[0], id=[0], size=[8], name="untimed")
    with pytest.raises(hw.HeapwrightError, match="untimed: its calls have no times to merge them by"):
        hw.merge([narrow, untimed])
    busy = Trace.from_columns(op=[0], id=[0], size=[8], ts_us=[0], tid=[65535], name="busy")
    with pytest.raises(hw.HeapwrightError, match="65,538 threads in all; a trace has at most 65,536"):
        hw.merge([busy, narrow])


# ---- scaling -------------------------------------------------------------------------------------------------------


def sized(sizes: Sequence[int], **columns: Any) -> Trace:
    metadata = columns.pop("metadata", {"pointer_bytes": "8"})
    return Trace.from_columns(
        op=np.zeros(len(sizes), np.uint8), id=range(len(sizes)), size=sizes, name="app", metadata=metadata, **columns
    )


def test_structs_shrink_by_their_pointers_and_bytes_and_buffers_stay() -> None:
    trace = sized([0, 8, 13, 16, 24, 40, 48, 256, 1000, 4096])
    assert hw.scale(trace).size.tolist() == [0, 8, 13, 12, 20, 32, 36, 256, 752, 4096]
    assert hw.scale(trace, pointer_share=0).size.tolist() == trace.size.tolist()
    assert hw.scale(trace, pointer_share=1).size.tolist() == [0, 4, 13, 8, 12, 20, 24, 256, 500, 4096]


def test_structs_grow_to_whole_words_of_the_wider_pointers() -> None:
    trace = sized([4, 8, 12, 13, 20, 1 << 31], metadata={"pointer_bytes": "4"})
    wide = hw.scale(trace, pointer_bytes=8)
    assert wide.size.tolist() == [8, 16, 24, 13, 32, 1 << 31]
    assert wide.name == "app~64-bit"


def test_a_site_that_asks_for_odd_sizes_allocates_bytes_whatever_else_it_asks_for() -> None:
    sizes, site = [24, 24, 13, 24, 40, 13, 40], [0, 1, 1, 1, 0, 2, 2]
    assert hw.scale(sized(sizes, site=site, sites=("node", "text", ""))).size.tolist() == [20, 24, 13, 24, 32, 13, 32]


def test_the_share_of_pointers_is_fitted_to_a_peak_that_is_known() -> None:
    """Half of the words of a program of its own are pointers: from 640 to 480 bytes at 10 structs of 64."""
    trace = sized([64] * 10)
    assert hw.scale(trace, peak_bytes=480).peak_live_bytes == hw.scale(trace, pointer_share=0.5).peak_live_bytes == 480
    assert hw.scale(trace, peak_bytes=340).size.tolist() == [36] * 10, "the nearest in whole words, below it is 320"
    assert hw.scale(trace, peak_bytes=640).size.tolist() == [64] * 10
    tables = sized([1024, 2048, 24])
    assert hw.scale(tables, peak_bytes=1548).size.tolist() == [512, 1024, 12]
    with pytest.raises(
        hw.HeapwrightError, match="any share of pointers gives 3,084 to 3,096 bytes; do its tables double"
    ):
        hw.scale(tables, peak_bytes=1548, buffers=True)
    with pytest.raises(hw.HeapwrightError, match=r"any share of pointers gives 1,548 to 3,096 bytes$"):
        hw.scale(tables, peak_bytes=9)
    with pytest.raises(hw.HeapwrightError, match="give one of them"):
        hw.scale(tables, peak_bytes=2000, pointer_share=0.5)


def test_an_estimate_is_labelled_wherever_it_goes(tmp_path: Path) -> None:
    output = hw.scale(sized([16, 24]), tmp_path / "narrow.parquet")
    trace = hw.read_trace(tmp_path / "narrow.parquet")
    assert trace.size.tolist() == [12, 20]
    (caveat,) = trace.caveats
    assert caveat.startswith("sizes are an estimate: scaled from 8-byte to 4-byte pointers, 50% of the words")
    assert trace.metadata["pointer_bytes"] == "4"
    assert trace.notes == (f"narrow: {caveat}",)
    assert output.metadata["scale_of"] == "app"
    assert hw.cut(trace, first=1).metadata["caveats"] == caveat
    assert hw.copies(trace, 1)[0].metadata["caveats"] == caveat
    assert hw.profile(trace)["caveats"] == [caveat]
    assert hw.diff(sized([16]), trace)["caveats"] == [f"narrow: {caveat}"]


def test_a_width_that_is_unknown_or_the_same_is_said() -> None:
    unknown = sized([8], metadata={})
    with pytest.raises(hw.HeapwrightError, match="app: does not say how wide its pointers are; give their bytes"):
        hw.scale(unknown)
    assert hw.scale(unknown, recorded_pointer_bytes=8).size.tolist() == [8]
    with pytest.raises(hw.HeapwrightError, match="app: has 8-byte pointers already"):
        hw.scale(sized([8]), pointer_bytes=8)
    with pytest.raises(hw.HeapwrightError, match="recorded_pointer_bytes: app says 8"):
        hw.scale(sized([8]), recorded_pointer_bytes=4)
    with pytest.raises(hw.HeapwrightError, match="pointer_share: 2; must be 0 to 1"):
        hw.scale(sized([8]), pointer_share=2)
    with pytest.raises(hw.HeapwrightError, match="pointer_bytes: 6; must be 4 or 8"):
        hw.scale(sized([8]), pointer_bytes=6)


# ---- comparing -----------------------------------------------------------------------------------------------------


@MANY
@given(labelled_traces(), labelled_traces())
def test_a_comparison_says_of_each_what_its_profile_says(before: Trace, after: Trace) -> None:
    result = hw.diff(before, after)
    for at, trace in enumerate((before, after)):
        described = profile(trace)
        for key in ("events", "requests", "requested_bytes", "requested_peak_bytes", "live_objects_peak", "seconds"):
            assert result["totals"][key][at] == described[key], key
        assert result["totals"]["never_freed_bytes"][at] == described["never_freed"]["bytes"]
        assert result["totals"]["distinct_sizes"][at] == described["distinct_sizes"]
        for key, (exact, output) in {
            key: (described["lifetimes"]["events"][key], result["lifetimes"][key][at]) for key in result["lifetimes"]
        }.items():
            assert exact is output is None or exact * 31 / 32 <= output <= exact, key
        asks = trace.op != FREE
        assert Counter(trace.size[asks].tolist()) == {
            row["size"]: row["requests"][at] for row in result["sizes"] if row["requests"][at]
        }
        alive = alive_at_the_peak(trace)
        by_size, by_site = Counter[int](), Counter[str]()
        for size, site in alive:
            by_size[size] += size
            by_site[site] += size
        assert {row["size"]: row["peak_bytes"][at] for row in result["sizes"]} == {
            row["size"]: by_size[row["size"]] for row in result["sizes"]
        }
        assert {row["site"]: row["peak_bytes"][at] for row in result["sites"]} == {
            row["site"]: by_site[row["site"]] for row in result["sites"]
        }
    changes = [abs(b - a) for a, b in (row["peak_bytes"] for row in result["sizes"])]
    assert changes == sorted(changes, reverse=True)


def alive_at_the_peak(trace: Trace) -> list[tuple[int, str]]:
    """Size and site of the live objects at the peak, by walking the calls."""
    alive: dict[int, tuple[int, str]] = {}
    for at in range(int(trace.live_bytes.argmax()) + 1):
        if trace.op[at] == FREE:
            del alive[int(trace.id[at])]
        else:
            alive[int(trace.id[at])] = int(trace.size[at]), trace.sites[trace.site[at]]
    return list(alive.values())


def test_every_lifetime_lies_in_its_step() -> None:
    values = np.unique([*range(5000), *(2**bits + more for bits in range(6, 40) for more in (-1, 0, 1))])
    steps = _step(values)
    assert (np.diff(steps) >= 0).all()
    least = np.array([_least(int(step)) for step in steps])
    assert (least <= values).all()
    assert (values * 31 <= least * 32).all()
    assert np.array_equal(least[values < 64], values[values < 64])
    assert LifetimeHistogram().percentiles()["p50"] is None


# ---- exporting -----------------------------------------------------------------------------------------------------


@MANY
@given(labelled_traces())
def test_a_rep_file_imported_again_gives_the_same_calls(tmp_path: Path, trace: Trace) -> None:
    output = hw.export_trace(trace, tmp_path / "app.rep", format="malloclab")
    again = hw.import_log(tmp_path / "app.rep")
    assert np.array_equal(again.op, np.where(trace.op == CALLOC, MALLOC, trace.op))
    assert np.array_equal(again.id, trace.objects()[0])
    assert np.array_equal(again.size, np.where(trace.op == FREE, 0, trace.size))
    assert again.repairs == ()
    assert ("calloc apart from malloc" in output.loses) == bool((trace.op == CALLOC).any())
    head = [int(line) for line in (tmp_path / "app.rep").read_text(encoding="utf-8").split("\n")[:4]]
    assert head == [trace.peak_live_bytes, trace.objects()[1], len(trace), 1]


@MANY
@given(labelled_traces())
def test_buffers_for_a_planner_are_live_as_the_objects_are(tmp_path: Path, trace: Trace) -> None:
    hw.export_trace(trace, tmp_path / "app.csv", format="minimalloc")
    with (tmp_path / "app.csv").open(encoding="utf-8", newline="") as file:
        rows = [{key: int(value) for key, value in row.items()} for row in csv.DictReader(file)]
    assert [row["id"] for row in rows] == list(range(len(rows)))
    change = np.zeros(len(trace) + 1, np.int64)
    for row in rows:
        assert row["lower"] < row["upper"]
        assert row["size"] > 0
        change[row["lower"]] += row["size"]
        change[row["upper"]] -= row["size"]
    sizes = np.maximum(trace.size, 1)  # a request of nothing is served as one of a byte
    again = Trace.from_columns(op=trace.op, id=trace.id, size=sizes)
    assert np.array_equal(np.cumsum(change)[:-1], again.live_bytes)


def test_what_a_format_loses_is_said(tmp_path: Path) -> None:
    trace = timed(3, 200, "app", caveats="no sizes below 8")
    (tmp_path / "old.h").write_text("old", encoding="utf-8")
    output = hw.export_trace(trace, tmp_path / "old.h", format="c")
    assert output.loses == ("times", "threads", "sites")
    assert output.caveats == ("no sizes below 8",)
    assert "no sizes below 8." in (tmp_path / "old.h").read_text(encoding="utf-8").split("#include")[0]
    assert set(hw.export_trace(trace, tmp_path / "x", format="malloclab").loses) >= {"alignments", "times"}
    with pytest.raises(hw.HeapwrightError, match="format: 'cc' is no format; valid: minimalloc, malloclab, c"):
        hw.export_trace(trace, tmp_path / "old.h", format="cc")
