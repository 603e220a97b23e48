"""Generated heaps under AddressSanitizer and Valgrind: faults are reported where they happen, and nothing else is."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from c_programs import SANITIZED, STRICT, UNCHECKED
from run_length import brief, by_turns, some
from tool_requirements import compilers, needs

import heapwright as hw
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo

DRIVER = Path(__file__).resolve().parents[1] / "c" / "watched.c"
LINES = {
    match[1]: number
    for number, line in enumerate(DRIVER.read_text().splitlines(), 1)
    if (match := re.search(r"/\* (\w+) \*/$", line))
}
UNSEEN_AT_FOUR = {"underflow", "changed_header"}
"""Writes into a header in front of an object that begins in the middle of 8 bytes."""
HEAPS = ("tlsf", "lea-2.7.2", "first-fit-fast-free", "binary-buddy", "drr-proposed")


OPTIMISED = "-O2"


def build(heap: str | Recipe, folder: Path, compiler: str, flags: list[str], **keys: str | int) -> Path:
    """The program, each of whose calls keeps its line; the heap may be optimised."""
    recipe = zoo.load(heap) if isinstance(heap, str) else heap
    hw.generate(recipe.model_copy(update={"align": 16, **keys}), folder, watched=True)
    program, heap_object = folder / f"watched_{compiler}", folder / "app_heap.o"
    command = [compiler, "-std=gnu11", "-g", "-Wall", "-Wextra", "-Werror", f"-I{folder}"]
    for step in (
        ["-O0", *flags, "-c", str(folder / "app_heap_watched.c"), "-o", str(heap_object)],
        [*flags, "-O0", str(DRIVER), str(heap_object), "-o", str(program)],
    ):
        done = subprocess.run([*command, *step], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr[-3000:]
    return program


def told_lines(report: str) -> list[int]:
    """Lines of the program in the first stack of a report."""
    return [int(line) for line in re.findall(r"\bwatched\.c:(\d+)", report)][:1]


def reported(*command: str | Path, faults: Iterable[str] = LINES) -> dict[str, str]:
    """What is said of each fault that ends its fork, and nothing of what is no fault."""
    done = subprocess.run([*command, "none", *faults], capture_output=True, text=True, timeout=120)
    _, *reports = re.split(r"^fault (\w+)\n", done.stderr, flags=re.MULTILINE)
    said = dict(zip(reports[::2], reports[1::2], strict=True))
    assert [*said] == ["none", *faults]
    good, *ended = done.stdout.splitlines()
    assert (good, ended.pop(0), said["none"]) == ("check 0", "none 0", "")
    output = {fault: said[fault] for fault, status in map(str.split, ended) if status != "0"}
    for fault, report in output.items():
        assert told_lines(report) == [LINES[fault]], (fault, report[:3000])
    return output


def test_ten_faults_and_one_more_have_a_line() -> None:
    assert len(LINES) == 11


@pytest.mark.parametrize(
    ("heap", "compiler"), [(heap, item) for turn, heap in enumerate(HEAPS) for item in by_turns(compilers(), turn)]
)
def test_asan_tells_the_faulting_line(heap: str, compiler: str, tmp_path: Path) -> None:
    program = build(heap, tmp_path, compiler, ["-fsanitize=address", "-fno-omit-frame-pointer", OPTIMISED])
    faults = some(list(LINES), 2, HEAPS.index(heap) % 2)
    assert [*reported(program, faults=faults)] == faults


@pytest.mark.parametrize("heap", ["tlsf", "binary-buddy", *brief([], ["lea-2.7.2"])])
def test_valgrind_tells_the_faulting_line(heap: str, tmp_path: Path) -> None:
    needs("valgrind", "valgrind/memcheck.h")
    program = build(heap, tmp_path, "gcc", ["-DAPP_VALGRIND", OPTIMISED])
    faults = some(list(LINES), 2, heap == "tlsf")
    assert [*reported("valgrind", "--error-exitcode=9", "-q", program, faults=faults)] == faults


def test_full_checks_and_threads_are_watched_as_well(tmp_path: Path) -> None:
    choices: list[dict[str, str | int]] = [{"checks": "full"}, {"threads": "cached"}]
    for keys in choices:
        folder = tmp_path / next(iter(keys))
        folder.mkdir()
        program = build("tlsf", folder, "gcc", ["-fsanitize=address", "-pthread"], **keys)
        assert reported(program, faults=["use_after_free"])


OTHER_ENTRIES = {
    "-DLOW": 'align = 16\nreserve = 2000\n[[pool]]\nkind = "general"\n',
    "-DSITE": 'align = 16\n[[pool]]\nkind = "general"\nsites = ["here"]\nregion = 20000\n[[pool]]\nkind = "general"\n',
}


@pytest.mark.parametrize("entries", OTHER_ENTRIES)
def test_requests_of_low_priority_and_of_call_sites_are_watched_as_well(entries: str, tmp_path: Path) -> None:
    program = build(Recipe.parse(OTHER_ENTRIES[entries]), tmp_path, "gcc", ["-fsanitize=address", entries])
    faults = some(list(LINES), 2, entries == "-DLOW")
    assert [*reported(program, faults=faults)] == faults


def test_what_objects_share_with_others_stays_open(tmp_path: Path) -> None:
    """At alignment 4 an object may begin in the middle of the 8 bytes that the tool marks at a time."""
    program = build("tlsf", tmp_path, "gcc", ["-fsanitize=address", UNCHECKED], align=4)
    assert set(LINES) - set(reported(program)) == UNSEEN_AT_FOUR


@pytest.mark.parametrize("checks", ["none", "frees"])
def test_an_address_inside_an_object_of_a_pool_without_headers_is_seen_with_checks(checks: str, tmp_path: Path) -> None:
    pool = Recipe.parse('align = 16\n[[pool]]\nkind = "fixed"\nsizes = [64]\ncounts = [500]\n')
    program = build(pool, tmp_path, "gcc", ["-fsanitize=address"], checks=checks)
    assert ("interior_free" in reported(program, faults=["interior_free"])) == (checks == "frees")


UNLIKE = ("fixed-pool", "variable-pool", "kingsley", "newlib-nano", "st-memmgr-1", "drr-proposed", "sos-kernel")
"""Heaps of every kind, most of them with objects that share 8 bytes."""


@pytest.mark.parametrize("name", UNLIKE)
def test_nothing_is_reported_that_is_no_fault(name: str, tmp_path: Path) -> None:
    """Among others objects of no bytes, which are freed and resized like any other."""
    recipe: Recipe = zoo.load(name)
    hw.generate(recipe, tmp_path, watched=True)
    sources = [str(tmp_path / file) for file in ("app_heap_watched.c", "app_heap_test.c")]
    for compiler in by_turns(compilers(), UNLIKE.index(name)):
        program = tmp_path / compiler
        command = [compiler, *STRICT, UNCHECKED, *SANITIZED, *sources, "-o", str(program)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        done = subprocess.run([program], capture_output=True, text=True, timeout=60)
        assert (done.stdout, done.returncode) == ("app_heap: ok\n", 0), done.stderr[:3000]


TARGETS = {
    "gcc": ["-O2"],
    "clang": ["-O2"],
    "arm-none-eabi-gcc": ["-Os", "-mcpu=cortex-m3", "-mthumb", "-ffreestanding"],
}


COMPARED = ("tlsf", "lea-2.7.2", "fixed-pool")


@pytest.mark.parametrize("name", COMPARED)
def test_other_builds_have_the_same_code_with_it(name: str, tmp_path: Path) -> None:
    hw.generate(zoo.load(name), tmp_path, watched=True)
    for compiler in by_turns([*TARGETS], COMPARED.index(name)):
        needs(compiler)
        flags = TARGETS[compiler]
        objects = []
        for source in ("app_heap.c", "app_heap_watched.c"):
            command = [compiler, "-std=c11", UNCHECKED, *flags, "-x", "c", "-c", "-", "-o", "heap.o", "-I."]
            subprocess.run(command, cwd=tmp_path, check=True, timeout=60, input=f'#include "{source}"\n', text=True)
            objects.append((tmp_path / "heap.o").read_bytes())
        assert objects[0] == objects[1], compiler


def test_it_is_written_on_request_and_not_for_heaps_that_move_their_objects(tmp_path: Path) -> None:
    assert not [file for file in hw.generate("tlsf", tmp_path) if "watched" in file.name]
    with pytest.raises(hw.HeapwrightError, match="moves its objects, which no tool can follow"):
        hw.generate("contiki-mmem", tmp_path, watched=True)
