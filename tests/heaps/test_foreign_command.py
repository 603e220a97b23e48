"""Foreign heaps on the command line: what fails costs a row, or is one line."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from command_runner import run_here
from foreign_heaps import BROKEN, BUMP, BUMP_TOML, THREE, Make, maker, replayed
from tool_requirements import programs_of_32_bits

from heapwright._heaps import heaps
from heapwright._heaps.heaps import replay_each
from heapwright._replay.metrics import METRICS


@pytest.fixture
def make(tmp_path: Path) -> Make:
    return maker(tmp_path)


@pytest.fixture
def run(tmp_path: Path, make: Make) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the installed command in a folder with a trace, a good heap and a crashing one."""
    THREE.write(tmp_path / "three.parquet")
    make()
    (tmp_path / "bad.c").write_text(BROKEN["crashed (SIGSEGV) in call 2 (free)"])
    (tmp_path / "bad.toml").write_text(BUMP_TOML.replace("bump.c", "bad.c"))

    def command(*words: str) -> subprocess.CompletedProcess[str]:
        return run_here(*words, folder=tmp_path)

    return command


def test_a_crash_costs_only_its_own_row(run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    words = ("three.parquet", "--heap", "kingsley", "--heap", "bad.c", "--heap", "bump.toml", "--word-size", "64")
    done = run("replay", *words, "--time", "--json")
    assert done.returncode == 0, done.stderr
    kingsley, bad, bump = json.loads(done.stdout)
    assert [item["heap"] for item in (kingsley, bad, bump)] == ["kingsley", "bad.c", "bump.toml"]
    assert kingsley["metrics"]["ns_per_event"] > 0
    assert bump["metrics"]["ns_per_event"] > 0
    assert bad["metrics"] == dict.fromkeys(METRICS)
    assert bad["error"] == "bad.c: crashed (SIGSEGV) in call 2 (free)"
    assert "error" not in bump
    table = run("replay", *words)
    assert table.returncode == 0, table.stderr
    assert "No metrics: bad.c: crashed (SIGSEGV) in call 2 (free)" in table.stdout


def test_fit_takes_foreign_heaps(run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    words = ("--heap", "bump.c", "--heap", "bad.c", "--word-size", "64")
    done = run("fit", "three.parquet", *words, "--json")
    assert done.returncode == 0, done.stderr
    bump, bad = json.loads(done.stdout)
    assert (bump["trace"], bump["heap"], bump["smallest_arena_bytes"]) == ("three", "bump.c", 64)
    assert (bump["safe_arena_bytes"], bump["safe_tried"], bump["safe_proved"]) == (64, 64, False)
    assert bad["smallest_arena_bytes"] is None
    assert "SIGSEGV" in bad["error"]


@pytest.mark.parametrize(
    ("heap", "says"),
    [
        ("lib:nosuch", "known: glibc, jemalloc, mimalloc, tcmalloc"),
        ("missing.c", "missing.c: must define heap_init.*missing.toml next to it"),
        ("heap_4.c", "as in freertos-heap4=heap_4.c"),
        ("freertos-heap4=nowhere", "nowhere is missing"),
        ("freertos-heap=.", "did you mean freertos-heap"),
        ("tlsf=.", "tlsf.c is missing; github.com/mattconte/tlsf"),
        ("text.so", "not a shared object"),
        ("wrong.toml", 'unknown key "mallok"; did you mean "malloc"'),
        ("wrong.c", "wrong.c: cannot be built: .*error"),
    ],
)
def test_what_cannot_be_used_is_one_line(
    heap: str, says: str, run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "text.so").write_text("no ELF")
    (tmp_path / "wrong.c").write_text("this is no C")
    (tmp_path / "wrong.toml").write_text('style = "libc"\nmallok = "x"\n')
    if heap == "wrong.c":
        (tmp_path / "wrong.toml").write_text('style = "libc"\nsources = ["wrong.c"]\n')
    done = run("replay", "three.parquet", "--heap", heap, "--word-size", "64")
    assert (done.returncode, done.stdout) == (1, "")
    assert re.search(says, done.stderr), done.stderr
    picked_up = "heapwright: wrong.toml: the adapter next to wrong.c is used\n" if heap == "wrong.c" else ""
    assert done.stderr.removeprefix(picked_up).count("\n") == 1


LIBC = 'style = "libc"\n'
UNUSABLE = {
    "text.so": ("no ELF", "text.so: not a shared object of this system"),
    "wrong.toml": (LIBC + 'mallok = "x"', 'wrong.toml: unknown key "mallok"'),
    "extended.toml": (LIBC + 'extends = "nothing"', "extended.toml: extends nothing: no such adapter"),
    "no_sources.toml": (LIBC + 'sources = ["missing.c"]', "missing.c is missing; the adapter lists it as a source"),
    "no_file.toml": (LIBC + 'library = "./no_such.so"', "no_such.so: the adapter's library is missing"),
    "no_library.toml": (LIBC + 'library = "libnosuch.so.1"', "libnosuch.so.1 is not installed for 64-bit programs"),
    "no_c.toml": (LIBC + 'sources = ["no_c.toml"]', "no_c.toml: cannot be built: "),
    "tlsf=.": ("", "tlsf.c is missing; github.com/mattconte/tlsf"),
}


@pytest.mark.parametrize("command", ["replay", "fit"])
def test_a_foreign_heap_that_cannot_be_used_costs_only_its_own_row(
    command: str, run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    for name, (text, _) in UNUSABLE.items():
        if text:
            (tmp_path / name).write_text(text)
    names = ["kingsley", *UNUSABLE, "bump.toml"]
    words = [word for name in names for word in ("--heap", name)]
    done = run(command, "three.parquet", *words, "--word-size", "64", "--json")
    assert done.returncode == 0, done.stderr
    rows = {row["heap"]: row for row in json.loads(done.stdout)}
    assert list(rows) == names
    for name in ("kingsley", "bump.toml"):
        assert "error" not in rows[name]
    for name, (_, says) in UNUSABLE.items():
        assert says in rows[name]["error"]
        assert "Traceback" not in rows[name]["error"]


def test_without_any_heap_that_can_be_used_the_command_fails(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "text.so").write_text("no ELF")
    for command in ("replay", "fit"):
        done = run(command, "three.parquet", "--heap", "text.so", "--heap", "bad.c", "--word-size", "64", "--json")
        assert (done.returncode, done.stdout) == (1, "")
        says = r"heapwright: .*text.so: not a shared object .*; bad.c: crashed \(SIGSEGV\) in call 2 \(free\)\n"
        assert re.fullmatch(r"heapwright: bad.toml: the adapter next to bad.c is used\n" + says, done.stderr), (
            done.stderr
        )


def test_a_name_that_nothing_has_ends_the_command(run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = run("replay", "three.parquet", "--heap", "kingsley", "--heap", "tlsf=nowhere")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("heapwright: tlsf=nowhere: nowhere is missing")


def test_an_adapter_that_was_picked_up_is_named(run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    words = ("replay", "three.parquet", "--word-size", "64", "--json", "--heap")
    beside, named = run(*words, "bump.c"), run(*words, "bump.toml")
    assert (beside.returncode, named.returncode) == (0, 0)
    assert beside.stderr == "heapwright: bump.toml: the adapter next to bump.c is used\n"
    assert named.stderr == ""
    assert json.loads(beside.stdout)[0]["metrics"] == json.loads(named.stdout)[0]["metrics"]


def test_help_says_that_foreign_heaps_are_programs(run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    for command in ("replay", "fit"):
        said = " ".join(run(command, "--help").stdout.split())
        assert "Foreign heaps are programs" in said
        assert "is compiled and run with your rights" in said


def test_a_heap_that_fails_while_it_is_timed_costs_only_its_own_row(make: Make) -> None:
    """Objects are filled with bytes that are odd; where time is measured they are not filled."""
    source = "void abort(void);\n" + BUMP.replace("(void)pointer;", "if (*(char *)pointer % 2 == 0) abort();")
    heap = make(source)
    assert replayed(THREE, heap)["failed"] == 0
    result = replay_each(THREE, {"tlsf": heaps.find("tlsf"), "odd": heap}, time=True)
    assert result["tlsf"].error is None
    assert result["tlsf"].metrics["ns_per_event"] is not None
    assert result["odd"].error == "odd: failed while it was timed: exit code -6"
    assert set(result["odd"].metrics.values()) == {None}


def test_other_commands_say_that_they_take_recipes_only(run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    for heap in ("lib:glibc", "bump.c", "bump.toml", "kingsley+lib:glibc"):
        done = run("generate", heap, "-o", "out")
        assert done.returncode == 1
        assert f"{heap}: no recipe but a foreign heap" in done.stderr


OWN = """#include <stddef.h>
#include <string.h>
static unsigned char *next, *end;
int heap_init(void *arena, size_t bytes) { next = arena; end = next + bytes; return bytes >= 64; }
void *heap_malloc(size_t size)
{
    size = (size + 7) & ~(size_t)7;
    if (size > (size_t)(end - next)) return NULL;
    next += size;
    return next - size;
}
void heap_free(void *pointer) { (void)pointer; }
/* void *heap_calloc(size_t count, size_t size); is only named here, and not defined */
"""


def test_a_c_file_that_measure_takes_needs_no_adapter(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "own.c").write_text(OWN)
    done = run("replay", "three.parquet", "--heap", "own.c", "--heap", "bump.c", "--word-size", "64", "--json")
    assert done.returncode == 0, done.stderr
    own, bump = json.loads(done.stdout)
    assert own["metrics"]["footprint_bytes"] == bump["metrics"]["footprint_bytes"] == 64
    fitted = json.loads(run("fit", "three.parquet", "--heap", "own.c", "--word-size", "64", "--json").stdout)
    assert fitted[0]["smallest_arena_bytes"] == 64
    (tmp_path / "own.c").write_text(OWN.replace("heap_free", "heap_release"))
    assert "must define heap_init, heap_malloc and heap_free" in run("fit", "three.parquet", "--heap", "own.c").stderr


def test_a_c_file_is_the_current_allocator_of_an_exploration(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    programs_of_32_bits()
    (tmp_path / "own.c").write_text(OWN)
    words = ("explore", "three.parquet", "--strategy", "random", "--limit", "3", "--long-run", "0", "-o", "s.duckdb")
    assert "own.c, your current allocator, needs 64 bytes for three" in " ".join(
        run(*words, "--current", "own.c").stdout.split()
    )
    current = json.loads(run(*words, "--current", "own.c", "--json").stdout)["current"]
    assert current == {"heap": "own.c", "smallest_arena_bytes": {"three": 64}}
