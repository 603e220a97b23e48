"""What a command imports is what it needs: most of a short command's time is its imports."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

import heapwright as hw

TRACE = str(Path(__file__).resolve().parents[2] / "examples" / "mosquitto_broker.parquet")

RUN_EACH = """
import json, os, sys
for words in json.loads(sys.argv[1]):
    if os.fork() == 0:
        output = os.dup(1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        sys.argv = ["heapwright", *words]
        from heapwright._cli import main
        try:
            main()
        except SystemExit as ended:
            os.write(output, (json.dumps([ended.code, sorted(sys.modules)]) + chr(10)).encode())
        os._exit(0)
    os.wait()
"""
"""In a process of its own, each command in a fork that has imported nothing yet."""

LIBRARIES = {
    *("PIL", "_duckdb", "altair", "cffi", "click", "dpkt", "duckdb", "elftools", "html", "jinja2", "markdown_it"),
    *("multiprocessing", "numpy", "numpy.ma", "pydantic", "rich", "subprocess", "tomli_w", "tree_sitter", "unicorn"),
    "vl_convert",
}
STUDY, FEW = "s.duckdb", "few.parquet"
TABLES = {"_duckdb" if find_spec("_duckdb") else "duckdb", "numpy"}
ALL_READ = {"_native", "_api", "_cli", "_studies", "_support", "_recipes", "_replay"}


class Needed(NamedTuple):
    """What a command may load: libraries, rooms of the house, and how many of its modules; and how it ends."""

    words: tuple[str, ...]
    libraries: set[str]
    rooms: set[str]
    most: int
    ends: int = 0


NEEDED = (
    Needed(("--help",), set(), {"_cli", "_support"}, 12),
    Needed(("explore", "--help"), set(), {"_cli", "_support", "_replay"}, 20),
    Needed(("zoo", "tlsf"), set(), ALL_READ, 56),
    Needed(("zoo",), set(), ALL_READ, 59),
    Needed(("platforms",), set(), {*ALL_READ, "_platforms"}, 50),
    Needed(("hooks", "freertos", "-o", "."), set(), {*ALL_READ, "_generate", "_platforms"}, 66),
    Needed(
        ("generate", "tlsf", "--prefix", "1", "-o", "."),
        set(),
        {*ALL_READ, "_generate", "_heaps", "_measure", "_platforms"},
        89,
        2,
    ),
    Needed(
        ("trace", "info", TRACE), TABLES, {"_native", "_api", "_cli", "_studies", "_support", "_replay", "_traces"}, 41
    ),
    Needed(
        ("profile", TRACE),
        TABLES | {"numpy.ma"},
        {"_native", "_api", "_cli", "_studies", "_support", "_replay", "_traces", "_traffic"},
        45,
    ),
    Needed(("replay", TRACE, "--heap", "tlsf"), TABLES, {*ALL_READ, "_heaps", "_traces"}, 82),
    Needed(
        ("fit", FEW, "--heap", "tlsf"),
        TABLES | {"numpy.ma"},
        {*ALL_READ, "_diagnose", "_heaps", "_platforms", "_traces"},
        97,
    ),
    Needed(("check", FEW, "--heap", "tlsf"), TABLES | {"numpy.ma"}, {*ALL_READ, "_heaps", "_traces", "_traffic"}, 115),
    Needed(("study", "info", STUDY), TABLES | {"pydantic"}, {*ALL_READ, "_studies", "_traces"} - {"_api"}, 88),
    Needed(("pareto", STUDY), TABLES | {"pydantic"}, {*ALL_READ, "_platforms", "_studies", "_traces"}, 96),
)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, ...], tuple[int, set[str]]]:
    """How each command ended, and the names of the modules that it had loaded."""
    words = json.dumps([item.words for item in NEEDED])
    folder = tmp_path_factory.mktemp("commands")
    few = hw.cut(hw.read_trace(TRACE), first=200)
    few.write(folder / FEW)
    hw.explore(few, folder / STUDY, strategy="random", limit=20, copies=0, stress_test=False)
    code = [sys.executable, "-c", RUN_EACH, words]
    lines = subprocess.run(code, capture_output=True, text=True, check=True, cwd=folder).stdout.splitlines()
    output = [json.loads(line) for line in lines]
    return {item.words: (code, set(modules)) for item, (code, modules) in zip(NEEDED, output, strict=True)}


@pytest.mark.parametrize("needed", NEEDED, ids=lambda needed: " ".join(needed.words[:2]))
def test_a_command_imports_what_it_needs(needed: Needed, loaded: dict[tuple[str, ...], tuple[int, set[str]]]) -> None:
    ended, modules = loaded[needed.words]
    ours = {name for name in modules if name.startswith("heapwright.")}
    assert ended == needed.ends
    assert LIBRARIES & modules - {"click"} <= needed.libraries
    assert {name.split(".")[1] for name in ours} <= needed.rooms
    assert len(ours) <= needed.most


def test_numpy_starts_no_threads_and_what_is_recorded_has_its_own_environment(tmp_path: Path) -> None:
    def told(last: str, *words: str) -> str:
        code = f"import atexit, os\natexit.register(lambda: {last})\nfrom heapwright._cli import program; program()"
        command = [sys.executable, "-c", code, *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout

    assert told("__import__('numpy') and print(len(os.listdir('/proc/self/task')))", "--version").endswith("\n1\n")
    requested = "echo [$OPENBLAS_NUM_THREADS]"
    assert told("None", "record", "-o", "a.parquet", "--", "sh", "-c", requested).startswith("[]\n")


def test_the_end_of_a_command_looks_through_nothing() -> None:
    def told(first: str, *words: str) -> subprocess.CompletedProcess[str]:
        code = f"import atexit, gc, sys\n{first}\nfrom heapwright._cli import program; program()"
        return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)

    frozen = told("atexit.register(lambda: print(gc.get_freeze_count()))", "--version")
    assert int(frozen.stdout.split()[-1]) > 1000

    requested = "import duckdb; atexit.register(print, 'looked through')"
    ended = told(requested, "--version")
    assert (ended.returncode, ended.stdout.count("\n")) == (0, 1)
    assert told(requested.replace("duckdb", "numpy"), "--version").stdout.endswith("looked through\n")
    read = told("", "trace", "info", TRACE)
    assert (read.returncode, read.stderr) == (0, "")
    wrong = told("import duckdb", "zoo", "no-such-heap")
    assert wrong.returncode == 1 and wrong.stderr.startswith("heapwright: ")
