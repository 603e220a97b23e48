"""The installed trace command on real files."""

import json
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_programs import compile_c
from command_runner import run_here
from traces_random import random_trace

from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run the installed command in a folder with one trace."""
    calls: dict[str, Any] = {"op": [0, 0, 3, 2, 0], "id": [1, 2, 1, 2, 3], "size": [40, 100, 0, 120, 40]}
    Trace.from_columns(**calls, ts_us=[0, 1, 2, 3, 2_000_000]).write(tmp_path / "app.parquet")

    def heapwright_command(*words: str) -> "subprocess.CompletedProcess[str]":
        return run_here(*words, folder=tmp_path)

    return heapwright_command


def test_info_tells_what_is_in_a_trace(run: Run) -> None:
    assert run("trace", "info", "app.parquet").stdout.startswith("app: 5 calls, 2.0 s, threads: 1\n  peak 160 B live")
    (facts,) = json.loads(run("trace", "info", "app.parquet", "--json").stdout)
    assert facts["trace"] == "app"
    assert facts["requested_peak_bytes"] == 160
    assert facts["phases"] == []


def test_copies_are_written_and_listed(run: Run, tmp_path: Path) -> None:
    done = run("trace", "copies", "app.parquet", "-o", "made/copies", "--count", "4", "--seed", "3", "--json")
    written = json.loads(done.stdout)
    assert [Path(item["path"]).stem for item in written] == [
        f"app~{kind}-{number}" for number in (1, 2) for kind in ("sizes+blocks", "load")
    ]
    for item in written:
        trace = Trace.read(tmp_path / item["path"])
        assert len(trace) == item["events"]
        assert trace.metadata == item["metadata"]
        assert trace.metadata["copy_seed"] == "3"


def test_copies_of_one_kind_in_words(run: Run) -> None:
    done = run("trace", "copies", "app.parquet", "-o", ".", "--kind", "load", "--count", "2")
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["app~load-1.parquet", "app~load-2.parquet"]
    assert "20 calls" in done.stdout


def test_a_recording_is_continued(run: Run, tmp_path: Path) -> None:
    op, id_ = [0, 3] * 500, [1, 1] * 500
    Trace.from_columns(op=op, id=id_, size=[24, 0] * 500, name="loop").write(tmp_path / "loop.parquet")
    done = run("trace", "resample", "loop.parquet", "-o", "future.parquet", "--calls", "2000", "--seed", "4", "--json")
    (written,) = json.loads(done.stdout)
    assert written["events"] == 3000
    assert written["metadata"]["resample_of"] == "loop"
    assert Trace.read(tmp_path / "future.parquet").metadata == written["metadata"]
    words = run(
        "trace", "resample", "loop.parquet", "-o", "x.parquet", "--calls", "10", "--swing", "0", "--stalls", "0"
    )
    assert words.stdout == "x.parquet: 1,010 calls, peak 24 B in 1 objects\n"


def test_a_part_is_cut_and_closed(run: Run, tmp_path: Path) -> None:
    done = run("trace", "cut", "app.parquet", "--part", ":1.5s", "-o", "part.parquet")
    assert done.stdout == "part.parquet: 5 calls, peak 140 B in 2 objects\n"
    assert Trace.read(tmp_path / "part.parquet").live_bytes[-1] == 0
    remaining = run("trace", "cut", "app.parquet", "--part", "-1:", "--leave-live", "-o", "part.parquet", "--json")
    assert json.loads(remaining.stdout)[0]["events"] == 1


def test_a_stretch_with_what_lived_and_an_object_s_thread(run: Run, tmp_path: Path) -> None:
    run("trace", "cut", "app.parquet", "--part", "2us:", "-o", "x")
    done = run("trace", "cut", "app.parquet", "--part", "3:5", "--live", "-o", "part.parquet", "--json")
    (output,) = json.loads(done.stdout)
    assert output["metadata"]["inherited"] == "1"
    assert Trace.read(tmp_path / "part.parquet").size.tolist() == [100, 120, 40, 0, 0]
    done = run("trace", "cut", "app.parquet", "--thread", "0", "-o", "part.parquet")
    assert done.stdout == "part.parquet: 7 calls, peak 160 B in 2 objects\n"


def test_two_traces_are_merged_and_compared(run: Run, tmp_path: Path) -> None:
    Trace.from_columns(op=[0], id=[1], size=[24], ts_us=[1_000_000]).write(tmp_path / "other.parquet")
    done = run("trace", "merge", "app.parquet", "other.parquet", "-o", "both.parquet")
    assert done.stdout == "both.parquet: 6 calls, peak 184 B in 3 objects\n"
    output = run("trace", "diff", "app.parquet", "both.parquet").stdout
    assert output.startswith("app -> both\n")
    assert "requested peak, B" in output
    assert "160    184  +24 (+15.0%)" in output
    assert "24 B         0      1          0     24     +24\n" in output
    result = json.loads(run("trace", "diff", "app.parquet", "both.parquet", "--json").stdout)
    assert result["totals"]["requested_peak_bytes"] == [160, 184]
    assert result["sizes"][0] == {"size": 24, "requests": [0, 1], "peak_bytes": [0, 24]}


def test_changes_by_site_fit_a_terminal(run: Run, tmp_path: Path) -> None:
    sites = ("", "main;parse;src/node.c:3", "/usr/lib/very/long/" + "name_of_a_function" * 3)
    for name, size in (("old", 1_000_000), ("new", 2_500_000)):
        trace = Trace.from_columns(op=[0] * 3, id=[0, 1, 2], size=[8, size, size], site=[0, 1, 2], sites=sites)
        trace.write(tmp_path / f"{name}.parquet")
    lines = run("trace", "diff", "old.parquet", "new.parquet").stdout.splitlines()
    assert "2 sites changed, 1 did not" in lines
    assert max(map(len, lines)) <= 80
    (row,) = (line.split() for line in lines if line.startswith("node.c:3"))
    assert row == ["node.c:3", "1", "1", "1,000,000", "2,500,000", "+1,500,000"]
    assert any(line.startswith("name_of_a_functionname_of_a… ") for line in lines)


def test_an_estimate_says_so_on_stderr_and_in_info(run: Run) -> None:
    done = run("trace", "scale", "app.parquet", "--recorded-pointer-bytes", "8", "-o", "narrow.parquet")
    assert done.stdout == "narrow.parquet: 5 calls, peak 132 B in 2 objects\n"
    assert "heapwright: narrow.parquet: sizes are an estimate" in done.stderr
    assert "\n  caveat: sizes are an estimate" in run("trace", "info", "narrow.parquet").stdout
    assert "sizes are an estimate" in run("profile", "narrow.parquet").stderr
    assert "sizes are an estimate" in run("fit", "narrow.parquet", "--heap", "tlsf").stderr


STRICT = ("-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror")

REPLAY = """
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include "app.h"

static void *objects[APP_OBJECTS];
static size_t sizes[APP_OBJECTS];

int main(void)
{
    unsigned long long live = 0, peak = 0, aligned = 0;
    for (size_t i = 0; i < APP_CALLS; i++) {
        const struct app_call call = app_calls[i];
        const uint32_t object = APP_OBJECT(call);
        aligned += APP_ALIGNMENT(call);
        live -= sizes[object];
        sizes[object] = APP_OPERATION(call) == 3u ? 0 : call.size;
        live += sizes[object];
        switch (APP_OPERATION(call)) {
        case 0: case 1: if (objects[object]) return 1; objects[object] = malloc(1); break;
        case 2: objects[object] = realloc(objects[object], 2); break;
        case 3: free(objects[object]); objects[object] = NULL; break;
        }
        peak = live > peak ? live : peak;
    }
    printf("%llu %llu %llu\\n", peak, live, aligned);
    return 0;
}
"""


def test_the_array_in_c_compiles_without_a_warning_and_makes_the_same_calls(run: Run, tmp_path: Path) -> None:
    trace = random_trace(random.Random(4), 3000)
    trace.write(tmp_path / "random.parquet")
    run("trace", "export", "random.parquet", "--format", "c", "-o", "app.h")
    (tmp_path / "main.c").write_text(REPLAY, encoding="utf-8")
    program = compile_c(tmp_path / "main", tmp_path / "main.c", flags=STRICT)
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    aligned = int(np.where((trace.op == FREE) | (trace.align == 0), 1, trace.align).astype(np.int64).sum())
    assert done.stdout.split() == [str(trace.peak_live_bytes), str(trace.live_bytes[-1]), str(aligned)]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("cut", "app.parquet", "-o", "x"), 2, "Give a --part, --thread"),
        (("cut", "app.parquet", "-o", "x", "--part", ":2", "--part", "-2:"), 1, "cut: give either first or last"),
        (("cut", "app.parquet", "-o", "x", "--part", ":"), 2, ":: valid: FROM:TO, as 2000:5000 (calls)"),
        (("cut", "app.parquet", "-o", "x", "--part", "5:"), 1, "app: it has 5 calls, none of which is in this part"),
        (("cut", "app.parquet", "-o", "x", "--site", "main"), 1, "main: not among the trace's sites"),
        (("merge", "app.parquet", "-o", "x"), 2, "Give two traces or more."),
        (("merge", "app.parquet", "none.parquet", "-o", "x"), 1, "heapwright: none.parquet: no such file"),
        (("scale", "app.parquet", "-o", "x"), 1, "give their bytes (--recorded-pointer-bytes)"),
        (("scale", "app.parquet", "-o", "x", "--pointer-bytes", "6"), 2, "'--pointer-bytes': 6; must be 4 or 8"),
        (("diff", "app.parquet", "app.parquet.none"), 1, "heapwright: app.parquet.none: no such file"),
        (("export", "app.parquet", "-o", "x", "--format", "csv"), 2, "'csv' is not one of"),
        (("export", "app.parquet", "-o", ".", "--format", "c"), 1, ".: cannot be written: is a folder"),
        (("cut", "app.parquet", "-o", "x", "--part", ":2x"), 2, ":2x: valid: FROM:TO, as 2000:5000 (calls)"),
        (("cut", "app.parquet", "-o", "x", "--part", ":0"), 1, "first: 0 calls; must be 1"),
        (("resample", "app.parquet", "-o", "x", "--swing", "1"), 2, "not in the range 0<=x<1"),
        (("resample", "app.parquet", "-o", "x", "--calls", "0"), 2, "not in the range x>=1"),
        (("copies", "app.parquet", "-o", "x", "--kind", "size"), 2, "'size' is not one of"),
        (("copies", "app.parquet", "-o", "x", "--count", "0"), 2, "not in the range x>=1"),
        (("copies", "none.parquet", "-o", "x"), 1, "heapwright: none.parquet: no such file"),
        (("copies", "app.parquet", "-o", "app.parquet"), 1, "app.parquet: is a file; name a folder"),
    ],
)
def test_wrong_words_are_said(run: Run, tmp_path: Path, words: tuple[str, ...], code: int, says: str) -> None:
    done = run("trace", *words)
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "x").exists()
