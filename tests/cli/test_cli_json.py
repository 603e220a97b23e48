"""What every installed command prints, with --json and without: docs/commands.md, "Conventions"."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from captures import pcap
from click.testing import CliRunner
from command_runner import run_here
from tool_requirements import needs

from heapwright._cli import COMMANDS, heapwright
from heapwright._replay.metrics import METRICS
from heapwright._support.errors import HeapwrightError
from heapwright._traces.trace import Trace
from heapwright._traffic.packets import PacketTable

Run = Callable[..., "subprocess.CompletedProcess[str]"]

SPACE = '[[pool]]\nkind = "general"\nfit = ["first", "best"]\n'
WRITTEN = ["path", "events", "requested_peak_bytes", "live_objects_peak", "metadata"]
PROFILE = ["name", "events", "sizes", "requested_peak_bytes", "live_objects_peak"]
FACTS = ["trace", "events", "seconds", "threads", "requested_peak_bytes", "live_objects_peak", "metadata"]
FIT = [
    "trace",
    "heap",
    "smallest_arena_bytes",
    "safe_arena_bytes",
    "reserve_bytes",
    "copies",
    "worst_case_bytes",
    "reach_bytes",
]
RECIPE = ["name", "source", "pools", "hash"]

# Words -> whether it prints an array, and keys that each of its objects has.
TOLD: dict[str, tuple[bool, list[str]]] = {
    "record -o sort.parquet -- sort -o /dev/null space.toml": (False, ["files", "exit_status", "cost"]),
    "import network.pcap -o imported.parquet": (False, ["path", "packets", "warning"]),
    "import network.json -o drawn.parquet --count 9": (False, ["path", "packets", "warning"]),
    "trace info a.parquet": (True, FACTS),
    "trace cut a.parquet --part :2 -o cut.parquet": (True, WRITTEN),
    "trace merge timed.parquet timed.parquet -o merged.parquet": (True, WRITTEN),
    "trace scale a.parquet --recorded-pointer-bytes 8 -o scaled.parquet": (True, WRITTEN),
    "trace diff a.parquet timed.parquet": (False, ["traces", "totals", "lifetimes", "sizes", "sites", "caveats"]),
    "trace export a.parquet --format c -o a.h": (False, ["path", "format", "events", "loses", "caveats"]),
    "trace copies a.parquet --count 2 -o copies": (True, WRITTEN),
    "trace resample a.parquet --calls 9 -o future.parquet": (True, WRITTEN),
    "trace worst a.parquet tlsf --tries 2 -o worst.parquet": (
        False,
        [*WRITTEN, "heap", "objective", "value", "original_value", "worst_case_bytes"],
    ),
    "diagnose a.parquet": (False, ["kind", "confidence", "sentence", "files", "findings", "notes"]),
    "profile a.parquet": (False, PROFILE),
    "profile packets.parquet": (False, ["name", "packets", "sizes", "flows"]),
    "network packets.parquet --ring 8 --budget 1s -o network": (
        False,
        ["packets", "traces", "queues", "study", "heap", "reserve_bytes", "proofs", "metrics", "page", "commands"],
    ),
    "workload queue packets.parquet -o queue.parquet": (False, WRITTEN),
    "workload poisson --set requests=50 -o poisson.parquet": (False, WRITTEN),
    "zoo": (True, RECIPE),
    "zoo tlsf": (True, RECIPE),
    "zoo wifi-special-pools --from-profile a.parquet": (True, RECIPE),
    "replay a.parquet --heap tlsf": (True, ["trace", "heap", "metrics"]),
    "fit a.parquet --heap victim-bins": (True, FIT),
    "check a.parquet --heap tlsf --budget 1M": (True, ["trace", "heap", "passed", "values", "verdicts", "holders"]),
    "stress a.parquet --heap tlsf --calls 10000": (
        True,
        ["trace", "heap", "growth_ratio", "worst", "lasts", "refused", "calls", "footprint_bytes"],
    ),
    "attack tlsf a.parquet --runs 2 --checks frees": (True, ["heap", "checks", "cpu", "faults"]),
    "suggest a.parquet -o suggested.duckdb": (
        False,
        ["id", "recipe", "metrics", "reserve_bytes", "recipes", "seconds", "sentences", "kept_out", "study"],
    ),
    "explore a.parquet --space space.toml -o again.duckdb": (
        False,
        ["study", "recipes", "evaluations", "seconds", "complete", "tolerance", "given_up", "front", "short"],
    ),
    "pareto s.duckdb": (True, ["id", "recipe", "metrics", "traces"]),
    "pareto s.duckdb --pick balanced": (True, ["id", "recipe", "metrics", "traces"]),
    "generate tlsf -o heap": (False, ["files"]),
    "hooks freertos -o trace": (False, ["files"]),
    "live board.log -o live.parquet --for 0.2s": (
        False,
        ["path", "format", "calls", "requested_peak_bytes", "live_bytes", "at_peak", "heaps", "repairs"],
    ),
    "platforms": (True, ["name", "title", "align", "lock", "writes"]),
    "study diff s.duckdb s.duckdb": (False, ["before", "after", "same_traces", "reserve", "picks", "causes"]),
    "study info s.duckdb": (False, ["study", "objectives", "space", "traces", "runs", "tried", "complete"]),
    "study sql s.duckdb SELECT/**/42/**/AS/**/found": (True, ["found"]),
    "study export s.duckdb -o results.csv": (False, ["path", "rows"]),
    "measure kingsley a.parquet": (True, ["heap", "trace", "cpu", "compiler", "backend", "code_bytes", "calls"]),
    "measure s.duckdb": (True, ["heap", "trace", "cpu", "compiler", "backend", "code_bytes", "calls"]),
    "report a.parquet -o a.html --no-plots": (False, ["page", "plots"]),
    "report s.duckdb": (False, ["markdown", "files"]),
}

JSON_AT = {"study": 1, "trace": 1, "workload": 1}
"""Words of a command's name beyond the first."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace, packets as a table, a capture and a profile, a space of two recipes and its study."""
    folder = tmp_path_factory.mktemp("json")
    Trace.from_columns(op=[0, 0, 3, 0], id=[1, 2, 1, 3], size=[40, 100, 0, 24]).write(folder / "a.parquet")
    Trace.from_columns(op=[0], id=[1], size=[40], ts_us=[7]).write(folder / "timed.parquet")
    (folder / "board.log").write_text("hw+ 0x100 24 0\nhw- 0x100 10\n")
    (folder / "network.pcap").write_bytes(pcap([bytes(60)] * 9))
    table = PacketTable(
        ts_us=np.arange(9) * 1000,
        frame_len=np.full(9, 60, np.uint32),
        ip_len=np.full(9, 46, np.uint32),
        proto=np.zeros(9, np.uint8),
        flow=np.ones(9, np.uint32),
        dir=np.zeros(9, np.uint8),
    )
    table.write(folder / "packets.parquet")
    (folder / "space.toml").write_text("include_zoo = false\n" + SPACE)
    for words in ("explore a.parquet --space space.toml -o s.duckdb", "profile packets.parquet --json"):
        done = run_here(*words.split(), folder=folder)
        done.check_returncode()
        (folder / "network.json").write_text(done.stdout)
    return folder


@pytest.fixture
def run(folder: Path) -> Run:
    def heapwright_command(*words: str) -> "subprocess.CompletedProcess[str]":
        return run_here(*words, folder=folder)

    return heapwright_command


def paths(document: Any) -> Iterator[str]:
    """Every path in what was printed."""
    for item in document if isinstance(document, list) else [document]:
        if isinstance(item, dict):
            yield from (item[key] for key in ("path", "study", "page") if key in item)
            yield from (path for key in ("plots", "pages") for path in item.get(key, ()))
            yield from (file if isinstance(file, str) else file["path"] for file in item.get("files", ()))


def test_every_command_is_here() -> None:
    """But two, which have tests of their own: the papers take long, and proofs need a model checker."""
    assert {words.split()[0] for words in TOLD} == set(COMMANDS) - {"reproduce", "prove", "demo"}


@pytest.mark.parametrize("words", TOLD)
def test_a_command_tells_its_result_on_stdout(words: str, run: Run, folder: Path) -> None:
    if words.startswith("measure"):
        needs("arm-none-eabi-gcc", "qemu-system-arm")
    array, keys = TOLD[words]
    name, *rest = words.split()
    plain, output = run(name, *rest), run(name, *rest[: JSON_AT.get(name, 0)], "--json", *rest[JSON_AT.get(name, 0) :])
    for done in (plain, output):
        assert done.returncode == 0, done.stderr
        assert all(line.startswith("heapwright: ") for line in done.stderr.splitlines())
    assert plain.stdout or name == "record"  # its stdout is the program's
    assert output.stdout.count("\n") == 1
    document = json.loads(output.stdout)
    assert isinstance(document, list) == array
    for item in document if array else [document]:
        assert item.keys() >= set(keys)
        assert "error" not in item
        if "metrics" in item:
            assert set(item["metrics"]) == set(METRICS)
    for path in paths(document):
        assert (folder / path).is_file(), path


def test_reproduce_tells_its_result_on_stdout(monkeypatch: pytest.MonkeyPatch) -> None:
    claim = {"paper": "p", "claim": "it is so", "paper_value": "1", "our_value": "2", "holds": False}

    def reproduce(*_: Any, progress: Callable[[str], None], **__: Any) -> dict[str, Any]:
        progress("working")
        return {"pages": ["papers/modem.md"], "claims": [claim]}

    monkeypatch.setattr("heapwright._api.reproduce", reproduce)
    plain = CliRunner().invoke(heapwright, ["reproduce", "modem"])
    assert plain.stdout == "papers/modem.md\nDOES NOT HOLD: it is so (paper: 1; here: 2)\n"
    output = CliRunner().invoke(heapwright, ["reproduce", "modem", "--json"])
    assert json.loads(output.stdout) == {"pages": ["papers/modem.md"], "claims": [claim]}
    assert plain.stderr == output.stderr == "heapwright: working\n"


def test_reproduce_hands_readings_on_and_tells_what_holds_under_each(monkeypatch: pytest.MonkeyPatch) -> None:
    claim = {"paper": "p", "claim": "less", "paper_value": "2 %", "our_value": "90 %", "holds": False}
    read = {"page": "drr", "reading": "pool-fifo", "id": "drr-time-by", "on": "real networks", "verdict": "holds"}
    handed: list[dict[str, Any]] = []

    def reproduce(*_: Any, progress: Callable[[str], None], **given: Any) -> dict[str, Any]:
        handed.append(given)
        return {"pages": [], "claims": [claim | {"verdict": "larger than stated"}], "readings": [read]}

    monkeypatch.setattr("heapwright._api.reproduce", reproduce)
    output = CliRunner().invoke(heapwright, ["reproduce", "drr", "--reading", "all"])
    assert output.stdout == (
        "LARGER THAN STATED: less (paper: 2 %; here: 90 %)\ndrr, read as pool-fifo: drr-time-by, real networks: holds\n"
    )
    CliRunner().invoke(heapwright, ["reproduce", "drr", "--reading", "pool-fifo"])
    assert [(item["reading"], item["readings"]) for item in handed] == [(None, True), ("pool-fifo", False)]


def test_reproduce_says_what_to_install_where_the_papers_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "heapwright_papers", None)
    done = CliRunner().invoke(heapwright, ["reproduce", "modem"])
    assert isinstance(done.exception, HeapwrightError)
    assert str(done.exception) == "the source papers are not installed; pip install 'heapwright[papers]'"


def test_an_error_stands_only_in_what_failed(run: Run, folder: Path) -> None:
    (folder / "bad.c").write_text(
        "void *bad(unsigned long size) { return *(void **)size; }\nvoid bad_free(void *p) {}\n"
    )
    (folder / "bad.toml").write_text('style = "libc"\nsources = ["bad.c"]\nmalloc = "bad"\nfree = "bad_free"\n')
    words = ("--heap", "tlsf", "--heap", "bad.c", "--word-size", "64", "--json")
    for command in ("replay", "fit"):
        done = run(command, "a.parquet", *words)
        assert done.returncode == 0, done.stderr
        tlsf, bad = json.loads(done.stdout)
        assert "error" not in tlsf
        assert bad["error"].startswith("bad.c: ")


def test_help_is_shown_without_the_libraries_that_do_the_work() -> None:
    code = """
import sys
from click.testing import CliRunner
from heapwright._cli import heapwright
assert CliRunner().invoke(heapwright, ["--help"]).exit_code == 0
print(*{"numpy", "duckdb", "pydantic", "altair", "rich", "jinja2", "tree_sitter"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_python_m_heapwright_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "heapwright", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("heapwright, version ")
