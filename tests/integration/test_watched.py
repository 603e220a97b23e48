"""Generated heaps under AddressSanitizer and Valgrind: faults are told where they happen, and nothing else is."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from c_programs import SANITIZED, STRICT, UNCHECKED
from needed import compilers, needs

import heapwright as hw
from heapwright.recipes.recipe import Recipe
from heapwright.recipes.zoo import catalogue as zoo

DRIVER = Path(__file__).resolve().parents[1] / "c" / "watched.c"
LINES = {
    match[1]: number
    for number, line in enumerate(DRIVER.read_text().splitlines(), 1)
    if (match := re.search(r"/\* (\w+) \*/$", line))
}
UNSEEN_AT_FOUR = {"underflow", "changed_header"}
"""Writes into a header in front of an object that begins in the middle of 8 bytes."""
HEAPS = ("tlsf", "lea-2.7.2", "first-fit-fast-free", "binary-buddy", "drr-proposed")


def build(heap: str | Recipe, folder: Path, compiler: str, flags: list[str], **keys: str | int) -> Path:
    """The program, each of whose calls keeps its line, with a heap that is optimised."""
    recipe = zoo.load(heap) if isinstance(heap, str) else heap
    hw.generate(recipe.model_copy(update={"align": 16, **keys}), folder, watched=True)
    program, heap_object = folder / f"watched_{compiler}", folder / "app_heap.o"
    command = [compiler, "-std=c11", "-g", "-Wall", "-Wextra", "-Werror", *flags, f"-I{folder}"]
    for step in (
        ["-O2", "-c", str(folder / "app_heap_watched.c"), "-o", str(heap_object)],
        ["-O0", str(DRIVER), str(heap_object), "-o", str(program)],
    ):
        done = subprocess.run([*command, *step], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr[-3000:]
    return program


def told_lines(report: str) -> list[int]:
    """Lines of the program in the first stack of a report."""
    return [int(line) for line in re.findall(r"\bwatched\.c:(\d+)", report)][:1]


def test_ten_faults_and_one_more_have_a_line() -> None:
    assert len(LINES) == 11


@pytest.mark.parametrize("compiler", compilers())
@pytest.mark.parametrize("heap", HEAPS)
def test_asan_tells_the_faulting_line(heap: str, compiler: str, tmp_path: Path) -> None:
    program = build(heap, tmp_path, compiler, ["-fsanitize=address", "-fno-omit-frame-pointer"])
    good = subprocess.run([program, "none"], capture_output=True, text=True, timeout=60)
    assert (good.returncode, good.stdout, good.stderr) == (0, "check 0\n", "")
    for fault, line in LINES.items():
        done = subprocess.run([program, fault], capture_output=True, text=True, timeout=60)
        assert done.returncode != 0, fault
        assert told_lines(done.stderr) == [line], (fault, done.stderr[:3000])


@pytest.mark.parametrize("heap", ["tlsf", "lea-2.7.2", "binary-buddy"])
def test_valgrind_tells_the_faulting_line(heap: str, tmp_path: Path) -> None:
    needs("valgrind", "valgrind/memcheck.h")
    program = build(heap, tmp_path, "gcc", ["-DAPP_VALGRIND"])
    command = ["valgrind", "--error-exitcode=9", "-q", str(program)]
    good = subprocess.run([*command, "none"], capture_output=True, text=True, timeout=60)
    assert (good.returncode, good.stdout, good.stderr) == (0, "check 0\n", "")
    for fault, line in LINES.items():
        done = subprocess.run([*command, fault], capture_output=True, text=True, timeout=60)
        assert done.returncode == 9, fault
        assert told_lines(done.stderr) == [line], (fault, done.stderr[:3000])


def test_full_checks_and_threads_are_watched_as_well(tmp_path: Path) -> None:
    choices: list[dict[str, str | int]] = [{"checks": "full"}, {"threads": "cached"}]
    for keys in choices:
        folder = tmp_path / next(iter(keys))
        folder.mkdir()
        program = build("tlsf", folder, "gcc", ["-fsanitize=address", "-pthread"], **keys)
        good = subprocess.run([program, "none"], capture_output=True, text=True, timeout=60)
        assert (good.returncode, good.stdout, good.stderr) == (0, "check 0\n", "")
        done = subprocess.run([program, "use_after_free"], capture_output=True, text=True, timeout=60)
        assert told_lines(done.stderr) == [LINES["use_after_free"]]


OTHER_ENTRIES = {
    "-DLOW": 'align = 16\nreserve = 2000\n[[pool]]\nkind = "general"\n',
    "-DSITE": 'align = 16\n[[pool]]\nkind = "general"\nsites = ["here"]\nregion = 20000\n[[pool]]\nkind = "general"\n',
}


@pytest.mark.parametrize("entries", OTHER_ENTRIES)
def test_requests_of_low_priority_and_of_call_sites_are_watched_as_well(entries: str, tmp_path: Path) -> None:
    program = build(Recipe.parse(OTHER_ENTRIES[entries]), tmp_path, "gcc", ["-fsanitize=address", entries])
    good = subprocess.run([program, "none"], capture_output=True, text=True, timeout=60)
    assert (good.returncode, good.stdout, good.stderr) == (0, "check 0\n", "")
    assert reported(program).keys() == LINES.keys()


def reported(program: Path) -> dict[str, str]:
    """The faults that end the program, and what it said."""
    runs = {fault: subprocess.run([program, fault], capture_output=True, text=True, timeout=60) for fault in LINES}
    for fault, done in runs.items():
        assert done.returncode == 0 or told_lines(done.stderr) == [LINES[fault]], (fault, done.stderr[:3000])
    return {fault: done.stderr for fault, done in runs.items() if done.returncode}


def test_what_objects_share_with_others_stays_open(tmp_path: Path) -> None:
    """At alignment 4 an object may begin in the middle of the 8 bytes that the tool marks at a time."""
    program = build("tlsf", tmp_path, "gcc", ["-fsanitize=address", UNCHECKED], align=4)
    good = subprocess.run([program, "none"], capture_output=True, text=True, timeout=60)
    assert (good.returncode, good.stdout, good.stderr) == (0, "check 0\n", "")
    assert set(LINES) - set(reported(program)) == UNSEEN_AT_FOUR


@pytest.mark.parametrize("checks", ["none", "frees"])
def test_an_address_inside_an_object_of_a_pool_without_headers_is_seen_with_checks(checks: str, tmp_path: Path) -> None:
    pool = Recipe.parse('align = 16\n[[pool]]\nkind = "fixed"\nsizes = [64]\ncounts = [500]\n')
    program = build(pool, tmp_path, "gcc", ["-fsanitize=address"], checks=checks)
    assert ("interior_free" in reported(program)) == (checks == "frees")


UNLIKE = ("fixed-pool", "variable-pool", "kingsley", "newlib-nano", "st-memmgr-1", "drr-proposed", "sos-kernel")
"""Heaps of every kind, most of them with objects that share 8 bytes."""


@pytest.mark.parametrize("name", UNLIKE)
def test_nothing_is_reported_that_is_no_fault(name: str, tmp_path: Path) -> None:
    """Among others objects of no bytes, which are freed and resized like any other."""
    recipe: Recipe = zoo.load(name)
    hw.generate(recipe, tmp_path, watched=True)
    sources = [str(tmp_path / file) for file in ("app_heap_watched.c", "app_heap_test.c")]
    for compiler in compilers():
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


@pytest.mark.parametrize("name", ["tlsf", "lea-2.7.2", "fixed-pool"])
def test_other_builds_have_the_same_code_with_it(name: str, tmp_path: Path) -> None:
    hw.generate(zoo.load(name), tmp_path, watched=True)
    for compiler, flags in TARGETS.items():
        needs(compiler)
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
