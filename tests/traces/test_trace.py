"""Traces: what reading accepts, the exact line for everything it does not, repair, round trips and facts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from case_tables import each
from hypothesis import given, settings
from hypothesis import strategies as st

from heapwright._support.errors import HeapwrightError
from heapwright._traces import tables
from heapwright._traces.trace import Trace
from heapwright._traces.validation import CALLOC, FREE, MALLOC

HINT = "; repairing drops such calls"


def trace_of(*rows: tuple[int, int, int], repair: bool = False, **columns: Any) -> Trace:
    op, ids, size = zip(*rows, strict=True)
    return Trace.from_columns(op=op, id=ids, size=size, name="t", repair=repair, **columns)


def write_sql(path: Path, query: str) -> Path:
    """Write the rows of a DuckDB query as Parquet."""
    with duckdb.connect() as database:
        database.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    return path


GOOD = "0::BIGINT AS ts_us, 0::USMALLINT AS tid, 0::UTINYINT AS op, 7::UINTEGER AS id, 16::UINTEGER AS size"


# What is wrong -> rows (op, id, size), further columns, the line after "t: ".
INVALID_ROWS: dict[str, tuple[list[tuple[int, int, int]], dict[str, Any], str]] = {
    "double free": (
        [(0, 7, 8), (3, 7, 0), (3, 7, 0)],
        {},
        f"row 2: double free of id 7 (freed in row 1){HINT}",
    ),
    "free of nothing": ([(0, 1, 8), (3, 7, 0)], {}, f"row 1: free of id 7, never allocated{HINT}"),
    "realloc of nothing": ([(0, 1, 8), (2, 7, 9)], {}, f"row 1: realloc of id 7, never allocated{HINT}"),
    "realloc after free": (
        [(1, 7, 8), (3, 7, 0), (2, 7, 9)],
        {},
        f"row 2: realloc of id 7, freed in row 1{HINT}",
    ),
    "id live": (
        [(0, 7, 8), (2, 7, 9), (1, 7, 8)],
        {},
        f"row 2: id 7 is still live (allocated in row 0){HINT}",
    ),
    "size": ([(0, 7, 2**31 + 1)], {}, f"row 0: size 2147483649; must be 0 to 2147483648 bytes{HINT}"),
    "negative size": ([(0, 7, -1)], {}, f"row 0: size -1; must be 0 to 2147483648 bytes{HINT}"),
    "op": ([(0, 7, 8), (4, 7, 8)], {}, f"row 1: op 4; must be 0 to 3 (malloc, calloc, realloc, free){HINT}"),
    "id": ([(0, 2**32, 8)], {}, f"row 0: id 4294967296; must be 0 to 4294967295{HINT}"),
    "tid": ([(0, 7, 8)], {"tid": [65536]}, f"row 0: tid 65536; must be 0 to 65535{HINT}"),
    "align": (
        [(0, 7, 8)],
        {"align": [24]},
        f"row 0: align 24; must be 0 (the default) or a power of two{HINT}",
    ),
    "time below -1": ([(0, 7, 8)], {"ts_us": [-2]}, f"row 0: ts_us -2; must be 0 or more, or -1{HINT}"),
    "time back": (
        [(0, 1, 8), (0, 2, 8), (0, 3, 8)],
        {"ts_us": [5, -1, 4]},
        "row 2: ts_us 4 after 5; times must not decrease, repairing raises such times",
    ),
    "first of several": (
        [(0, 1, 8), (3, 9, 0), (3, 1, 0), (3, 1, 0)],
        {},
        f"row 1: free of id 9, never allocated{HINT}",
    ),
    "phase": (
        [(0, 1, 8)],
        {"phase": [1]},
        "column phase points outside its names; must be 0 to 0",
    ),
    "length": ([(0, 1, 8)], {"tid": [0, 0]}, "column tid has shape (2,); must be (1,) as op has"),
    "type": ([(0, 1, 8)], {"tid": [0.5]}, "column tid is float64; must be integers"),
}


@each("name", INVALID_ROWS)
def test_invalid_columns_are_named_in_one_line(name: str) -> None:
    rows, columns, line = INVALID_ROWS[name]
    with pytest.raises(HeapwrightError) as caught:
        trace_of(*rows, **columns)
    assert str(caught.value) == f"t: {line}"


def test_no_calls_is_an_error() -> None:
    with pytest.raises(HeapwrightError, match=r"^t: no calls; a trace has at least one row$"):
        Trace.from_columns(op=[], id=[], size=[], name="t")


# What is wrong -> query that makes the file, the line after "FILE: ".
INVALID_FILES = {
    "missing column": (
        "SELECT 0 AS op, 1 AS id",
        "no column ts_us, tid, size; a trace has ts_us, tid, op, id, size",
    ),
    "packet table": (
        "SELECT 0 AS ts_us, 60 AS frame_len",
        "a packet table, not a trace; `heapwright workload` turns it into one",
    ),
    "text for a number": (
        f"SELECT * REPLACE ('x' AS size) FROM (SELECT {GOOD})",
        "column size is VARCHAR; must be uint32",
    ),
    "fraction": (f"SELECT * REPLACE (0.5::DOUBLE AS id) FROM (SELECT {GOOD})", "column id is DOUBLE; must be uint32"),
    "null": (
        f"SELECT {GOOD} UNION ALL SELECT 1, 0, 0, 8, NULL",
        f"row 1: no size{HINT}",
    ),
    "empty": (f"SELECT {GOOD} WHERE false", "no calls; a trace has at least one row"),
}


@pytest.mark.parametrize("name", INVALID_FILES)
def test_invalid_files_are_named_in_one_line(name: str, tmp_path: Path) -> None:
    query, line = INVALID_FILES[name]
    path = write_sql(tmp_path / "t.parquet", query)
    with pytest.raises(HeapwrightError) as caught:
        Trace.read(path)
    assert str(caught.value) == f"{path}: {line}"


def test_broken_files_are_one_line(tmp_path: Path) -> None:
    whole = write_sql(tmp_path / "whole.parquet", f"SELECT {GOOD}").read_bytes()
    contents = {"truncated": whole[:-20], "empty": b"", "text": b"malloc(8) = 0x1\n" * 10}
    for name, content in contents.items():
        path = tmp_path / f"{name}.parquet"
        path.write_bytes(content)
        with pytest.raises(HeapwrightError) as caught:
            Trace.read(path)
        message = str(caught.value)
        assert message.startswith(f"{path}: not a whole Parquet file (")
        assert message.endswith("; record or import it again")
        assert "\n" not in message


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(HeapwrightError, match=r"absent\.parquet: no such file$"):
        Trace.read(tmp_path / "absent.parquet")
    with pytest.raises(HeapwrightError, match=r": is not a file$"):
        Trace.read(tmp_path)


def test_a_later_format_version_is_refused() -> None:
    with pytest.raises(HeapwrightError, match=r"^t: trace format version 2; this Heapwright reads 1$"):
        Trace.from_columns(op=[0], id=[0], size=[1], name="t", metadata={"format_version": "2"})


def test_more_calls_than_are_read_at_once_are_refused_before_any_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bomb.parquet"
    with duckdb.connect() as database:
        database.execute(
            "COPY (SELECT 0::BIGINT AS ts_us, 0::USMALLINT AS tid, 0::UTINYINT AS op, range::UINTEGER AS id, "
            f"8::UINTEGER AS size FROM range(9)) TO '{path}' (FORMAT parquet)"
        )
    monkeypatch.setattr(tables, "MOST_WHOLE", 9)
    assert len(Trace.read(path)) == 9
    monkeypatch.setattr(tables, "MOST_WHOLE", 8)
    with pytest.raises(
        HeapwrightError, match=r"bomb.parquet: 9 calls; at most 8 are read at once: heapwright trace cut"
    ):
        Trace.read(path)
    with tables.reading(path) as table:
        assert sum(len(window["op"]) for window in table.windows()) == 9


def test_wider_integers_missing_labels_and_extra_columns_are_accepted(tmp_path: Path) -> None:
    query = "SELECT 0 AS ts_us, 0 AS tid, 0 AS op, 7 AS id, 16 AS size, 'x' AS comment, NULL::VARCHAR AS phase"
    trace = Trace.read(write_sql(tmp_path / "t.parquet", query))
    assert trace.size.dtype == np.uint32
    assert trace.phases == ("",)
    assert not trace.align.any()


@pytest.mark.parametrize("name", ["a[1].parquet", "what?.parquet", "all*.parquet", "it's.parquet", "op=3/t.parquet"])
def test_names_that_are_patterns_elsewhere(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    (tmp_path / "all-but.parquet").write_bytes(b"")
    trace_of((0, 5, 8)).write(path)
    trace = Trace.read(path)
    assert trace.op.tolist() == [MALLOC]
    assert trace.name == path.stem


def test_the_largest_values_are_valid() -> None:
    columns: dict[str, Any] = {"ts_us": [2**62], "tid": [65535], "align": [2**31]}
    trace = trace_of((MALLOC, 2**32 - 1, 2**31), **columns)
    assert (trace.id[0], trace.size[0]) == (2**32 - 1, 2**31)
    assert {key: getattr(trace, key).tolist() for key in columns} == columns


def test_a_bound_is_told_by_the_first_value_beyond_it() -> None:
    for column, beyond, bound in (("tid", 65536, "to 65535"), ("tid", -1, "to 65535"), ("align", 3, "power of two")):
        with pytest.raises(HeapwrightError, match=rf"row 0: {column} {beyond}; must be .*{bound}"):
            trace_of((MALLOC, 1, 8), **{column: [beyond]})  # type: ignore[arg-type]


def test_a_free_may_have_any_size() -> None:
    assert len(trace_of((0, 1, 8), (3, 1, 2**40))) == 2


def test_repair_says_what_it_dropped() -> None:
    rows = [(0, 1, 8), (0, 1, 9), (3, 1, 0), (3, 1, 0), (3, 2, 0), (9, 3, 1), (3, 3, 0), (0, 4, 2**32), (0, 5, 1)]
    trace = trace_of(*rows, repair=True, ts_us=[0, 1, 2, 3, 4, 5, 6, 7, 5])
    assert trace.id.tolist() == [1, 1, 5]
    assert trace.op.tolist() == [MALLOC, FREE, MALLOC]
    assert trace.repairs == (
        "1 call dropped: unknown op",
        "1 call dropped: size above 2^31",
        "1 call dropped: id reused while live",
        "1 call dropped: double free",
        "2 calls dropped: free of nothing",
    )


def test_repair_keeps_calls_whose_time_went_backwards() -> None:
    trace = trace_of((0, 1, 8), (0, 2, 8), (0, 3, 8), repair=True, ts_us=[5, -1, 4])
    assert trace.ts_us.tolist() == [5, -1, 5]
    assert trace.repairs == ("1 time raised: went backwards",)


def test_phases_and_sites_round_trip_by_name(tmp_path: Path) -> None:
    trace = trace_of((0, 1, 8), (0, 2, 8), (3, 1, 0))
    trace = Trace.from_columns(
        op=trace.op,
        id=trace.id,
        size=trace.size,
        align=[0, 64, 0],
        phase=[1, 0, 1],
        phases=["steady", "it's start-up"],
        site=[0, 0, 0],
        sites=["main"],
        metadata={"program": "o'clock", "pointer_bytes": "4"},
    )
    trace.write(tmp_path / "t.parquet")
    again = Trace.read(tmp_path / "t.parquet")
    assert [again.phases[i] for i in again.phase] == ["it's start-up", "steady", "it's start-up"]
    assert again.sites == ("main",)
    assert again.align.tolist() == [0, 64, 0]
    assert again.metadata == {"format_version": "1", "program": "o'clock", "pointer_bytes": "4"}


def test_arrays_are_read_only() -> None:
    sizes = np.array([8], np.uint32)
    trace = Trace.from_columns(op=[0], id=[0], size=sizes)
    with pytest.raises(ValueError, match="read-only"):
        trace.size[0] = 9
    sizes[0] = 9


def test_writing_into_no_folder_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "absent" / "t.parquet"
    with pytest.raises(HeapwrightError) as caught:
        trace_of((0, 1, 8)).write(path)
    assert str(caught.value) == f"{path}: cannot be written: No such file or directory; name a file in another folder"


# Properties, against a model with one dictionary of live objects

Call = tuple[int, int, int]


def calls(max_id: int = 5) -> st.SearchStrategy[list[Call]]:
    """Any calls at all on few ids: most lists are invalid."""
    call = st.tuples(st.integers(0, 3), st.integers(0, max_id), st.integers(0, 2**31))
    return st.lists(call, min_size=1, max_size=60)


def model(rows: list[Call]) -> tuple[list[int], list[int], list[int]]:
    """Row numbers that are valid when faulty calls never happen; live bytes after each; the object of each."""
    live: dict[int, tuple[int, int]] = {}
    kept, live_bytes, objects, born = [], [], [], 0
    for row, (op, id_, size) in enumerate(rows):
        if (id_ in live) == (op <= CALLOC):
            continue
        object_ = born if op <= CALLOC else live[id_][0]
        born += op <= CALLOC
        if op == FREE:
            del live[id_]
        else:
            live[id_] = (object_, size)
        kept.append(row)
        live_bytes.append(sum(entry[1] for entry in live.values()))
        objects.append(object_)
    return kept, live_bytes, objects


@given(calls())
def test_repair_drops_exactly_the_faulty_calls(rows: list[Call]) -> None:
    kept, live_bytes, objects = model(rows)
    if not kept:
        with pytest.raises(HeapwrightError, match="no calls"):
            trace_of(*rows, repair=True)
        return
    trace = trace_of(*rows, repair=True)
    assert list(zip(trace.op.tolist(), trace.id.tolist(), trace.size.tolist(), strict=True)) == [rows[i] for i in kept]
    assert trace.live_bytes.tolist() == live_bytes
    assert trace.peak_live_bytes == max(live_bytes)
    number, count = trace.objects()
    assert number.tolist() == objects
    assert count == max(objects) + 1
    assert bool(trace.repairs) == (len(kept) < len(rows))


@given(calls())
def test_an_error_names_the_first_faulty_call(rows: list[Call]) -> None:
    kept = model(rows)[0]
    faulty = sorted(set(range(len(rows))) - set(kept))
    if faulty:
        with pytest.raises(HeapwrightError, match=f"^t: row {faulty[0]}: "):
            trace_of(*rows)
    else:
        assert len(trace_of(*rows)) == len(rows)


@settings(max_examples=12)
@given(calls(), st.data())
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, rows: list[Call], data: st.DataObject) -> None:
    rows = [(MALLOC, 6, 1), *rows]
    count = len(rows)

    def column(values: st.SearchStrategy[int]) -> list[int]:
        return data.draw(st.lists(values, min_size=count, max_size=count))

    trace = trace_of(
        *rows,
        repair=True,
        ts_us=sorted(column(st.integers(-1, 2**62))),
        tid=column(st.integers(0, 65535)),
        align=column(st.sampled_from([0, 1, 8, 4096, 2**31])),
    )
    path = tmp_path_factory.mktemp("trace") / "t.parquet"
    trace.write(path)
    again = Trace.read(path)
    for key in ("ts_us", "tid", "op", "id", "size", "align"):
        assert getattr(again, key).tolist() == getattr(trace, key).tolist()
        assert getattr(again, key).dtype == getattr(trace, key).dtype


def test_what_a_column_masks_is_missing() -> None:
    size = np.ma.masked_array([8, 8], [False, True])
    with pytest.raises(HeapwrightError, match=r"row 1: no size; repairing drops such calls"):
        Trace.from_columns(op=[0, 0], id=[1, 2], size=size)
