"""`heapwright attack`: what each level of checks notices, with a fixed seed."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_runner import run_here
from run_length import brief
from tool_requirements import emulator

import heapwright as hw
from heapwright._assure.attack import on_host
from heapwright._assure.attack.attack import attack
from heapwright._assure.attack.faults import FAULTS, OUTCOMES, program
from heapwright._recipes.zoo import catalogue as zoo
from heapwright._support.errors import HeapwrightError
from heapwright._traces.validation import FREE, MALLOC, REALLOC

RUNS = brief(20, 40)
MATRIX = Path(__file__).with_name("attack_matrix.txt")


@pytest.fixture(scope="module", autouse=True)
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A heap that several tests attack is compiled by the first of them."""
    folder, output = tmp_path_factory.mktemp("programs"), on_host._told

    def kept(command: list[str], problem: str) -> str:
        if "-o" not in command:
            return output(command, problem)
        at = command.index("-o")
        sources = b"".join(Path(item).read_bytes() for item in command[at + 2 :])
        flags = [word for word in command[:at] if not word.startswith("-I")]
        program = folder / hashlib.sha256("\0".join(flags).encode() + sources).hexdigest()
        if not program.exists():
            output([*command[: at + 1], str(program), *command[at + 2 :]], problem)
        Path(command[at + 1]).symlink_to(program)
        return ""

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(on_host, "_told", kept)
        yield


@cache
def at_full(name: str) -> dict[str, Any]:
    """What each fault comes to at level full."""
    (result,) = attack(zoo.load(name), checks=["full"], runs=RUNS)
    faults: dict[str, Any] = result["faults"]
    return faults


def test_a_random_program_asks_for_sizes_alone_and_frees_without() -> None:
    calls = program(None, 7)
    op = calls[:, 0] >> 30
    assert set(op.tolist()) == {MALLOC, REALLOC, FREE} and not calls[:, 2].any(), "no alignments"
    assert np.array_equal(calls[:, 1] == 0, op == FREE)


@pytest.mark.parametrize("name", ["tlsf", "lea-2.7.2", "victim-bins"])
def test_the_level_neighbours_notices_what_it_says(name: str) -> None:
    (result,) = attack(zoo.load(name), checks=["neighbours"], runs=RUNS)
    assert (result["heap"], result["checks"], tuple(result["faults"])) == (name, "neighbours", FAULTS)
    for counts in result["faults"].values():
        assert counts["runs"] == RUNS == sum(counts[outcome] for outcome in OUTCOMES)
    for fault in ("double_free", "foreign_free", "interior_free"):
        assert result["faults"][fault]["at_once"] >= 0.95 * RUNS, fault
    underflow = result["faults"]["underflow"]
    assert underflow["at_once"] + underflow["later"] >= 0.95 * RUNS


@pytest.mark.parametrize("name", ["tlsf", "first-fit-fast-free", "binary-buddy"])
def test_the_level_full_notices_what_it_says(name: str) -> None:
    faults = at_full(name)
    for fault in ("double_free", "foreign_free", "interior_free", "overflow_1", "overflow_4"):
        assert faults[fault]["at_once"] >= 0.95 * RUNS, fault
    for fault in ("underflow", "overflow_16", "use_after_free"):
        assert faults[fault]["at_once"] + faults[fault]["later"] >= 0.9 * RUNS, fault


@pytest.mark.parametrize("name", ["lea-2.7.2", "first-fit-fast-free", "binary-buddy"])
def test_most_writes_into_metadata_that_do_harm_are_noticed(name: str) -> None:
    counts = at_full(name)["metadata_write"]
    noticed = counts["at_once"] + counts["later"]
    assert noticed >= 0.8 * (RUNS - counts["harmless"]) > RUNS / 4


def test_levels_notice_more_and_more_and_a_seed_gives_the_same_counts() -> None:
    heap = zoo.load("tlsf")
    none, frees, neighbours, full = attack(heap, runs=RUNS, seed=3)
    assert all(counts["at_once"] == counts["later"] == 0 for counts in none["faults"].values())
    changed = [level["faults"]["changed_header"]["at_once"] for level in (none, frees, neighbours)]
    assert changed == sorted(set(changed))
    assert full["faults"]["use_after_free"]["later"] >= 0.95 * RUNS
    for level in (neighbours, full):
        assert [fault for fault, counts in level["faults"].items() if counts["crashed"]] == []
    assert attack(heap, checks=["full"], runs=RUNS, seed=3) == [full]
    assert attack(heap, checks=["neighbours"], runs=RUNS, seed=4) != [neighbours]


@pytest.mark.parametrize(
    "heap", ["all-round", "drr-proposed", "lea-2.7.2", "umm-malloc", "nano-qplus", "variable-pool"]
)
def test_no_fault_ends_a_program_at_level_full(heap: str) -> None:
    """Heaps of which some fault once did: by overwritten tops and last remainders, lists in a circle, wild groups."""
    (level,) = attack(zoo.load(heap), checks=["full"], runs=30, seed=11)
    assert {fault: counts["crashed"] for fault, counts in level["faults"].items() if counts["crashed"]} == {}


def test_counts_are_those_of_the_matrix(tmp_path: Path) -> None:
    """Four recipes, three levels, eleven faults of twelve runs: a check that changes shows in the table."""
    output = tmp_path / MATRIX.name
    with output.open("w", encoding="utf-8") as file:
        print(_row("heap", "checks", "fault", OUTCOMES), file=file)
        for heap in ("tlsf", "lea-2.7.2", "first-fit-fast-free", "binary-buddy"):
            for level in attack(zoo.load(heap), checks=["frees", "neighbours", "full"], runs=12):
                for fault, counts in level["faults"].items():
                    print(_row(heap, level["checks"], fault, [counts[item] for item in OUTCOMES]), file=file)
    assert output.read_text() == MATRIX.read_text(), f"where that is meant, {output} is the new table"


def _row(heap: str, checks: str, fault: str, counts: Sequence[object]) -> str:
    return f"{heap:<20} {checks:<10} {fault:<14}" + "".join(f"{count:>10}" for count in counts)


@pytest.mark.parametrize("name", brief(["tlsf"], ["tlsf", "first-fit-fast-free"]))
def test_an_emulated_processor_gives_the_counts_of_this_machine(name: str) -> None:
    """Every fault at every level: 32-bit metadata is the same, and so is what comes of damaging it."""
    emulator()
    here = attack(zoo.load(name), runs=4, seed=1)
    there = attack(zoo.load(name), runs=4, seed=1, cpu="cortex-m3")
    assert [level.pop("cpu") for level in here + there] == [None] * 4 + ["cortex-m3"] * 4
    assert there == here
    assert sum(counts["crashed"] for level in here for counts in level["faults"].values()) > 10


def test_what_only_a_processor_has_and_what_it_cannot_have() -> None:
    with pytest.raises(HeapwrightError, match="only an emulated processor has a choice of compilers"):
        hw.attack("tlsf", compiler="gcc")
    with pytest.raises(HeapwrightError, match="lib:glibc: a foreign heap is attacked on this machine alone"):
        hw.attack("tlsf", cpu="cortex-m3", beside=["lib:glibc"])
    with pytest.raises(HeapwrightError, match="no processor that can be measured"):
        hw.attack("tlsf", cpu="cortex-m9")


def test_the_command_prints_the_levels_asked_for() -> None:
    command = ["attack", "tlsf", "--checks", "frees", "--runs", "3"]
    done = run_here(*command, "--json")
    (level,) = json.loads(done.stdout)
    assert level["checks"] == "frees"
    assert level["faults"]["double_free"]["at_once"] == 3
    shown = run_here(*command).stdout
    assert "double_free" in shown and "100.0%" in shown


WATCHFUL = """
#include <stdint.h>
#include <stdlib.h>
static unsigned char *next, *end;
static void init(void *memory, size_t bytes)
{
    if (bytes < 65536 || bytes > 1 << 24) abort();
    next = memory;
    end = next + bytes;
}
static void *take(size_t size)
{
    size = (size + 15u) / 8u * 8u;
    if (size > (size_t)(end - next)) return 0;
    *(uint64_t *)next = 0xfeed;
    next += size;
    return next - size + 8;
}
static void give(void *pointer)
{
    uint64_t *mark = (uint64_t *)pointer - 1;
    if (*mark != 0xfeed) abort();
    *mark = 0;
}
"""


def test_a_foreign_heap_stands_beside_and_has_noticed_where_it_stops_the_program(tmp_path: Path) -> None:
    (tmp_path / "watchful.c").write_text(WATCHFUL)
    (tmp_path / "watchful.toml").write_text(
        'style = "arena"\nsources = ["watchful.c"]\nalign = 8\nword_size = 64\n'
        'init = "init"\nmalloc = "take"\nfree = "give"\n'
    )
    heap = str(tmp_path / "watchful.c")
    ours, theirs = hw.attack("tlsf", checks=["frees"], runs=RUNS, beside=[heap])
    assert (ours["heap"], theirs["heap"], theirs["checks"]) == ("tlsf", heap, None)
    assert tuple(theirs["faults"]) == FAULTS[:-1]
    for fault in ("double_free", "foreign_free", "interior_free"):
        assert theirs["faults"][fault]["at_once"] == RUNS
    assert theirs["faults"]["underflow"]["crashed"] == 0
    assert theirs["faults"]["overflow_1"]["silent"] == 0
    noticed = sum(counts["at_once"] + counts["later"] for counts in theirs["faults"].values())
    assert theirs["signals"] == {"SIGABRT": noticed}


def test_glibc_and_a_missing_library_as_comparison() -> None:
    _, glibc = hw.attack("tlsf", checks=["none"], runs=10, beside=["lib:glibc"])
    assert glibc["faults"]["double_free"]["at_once"] == 10
    assert set(glibc["signals"]) <= {"SIGABRT", "SIGSEGV", "SIGBUS", "SIGALRM"}
    with pytest.raises(HeapwrightError, match="no such library"):
        hw.attack("tlsf", checks=["none"], runs=1, beside=["lib:nothing"])


def test_the_picture_says_its_numbers_in_words(tmp_path: Path) -> None:
    for name in ("faults.svg", "faults.html"):
        result = hw.attack("tlsf", checks=["frees", "full"], runs=4, output=tmp_path / name)
        drawn = (tmp_path / name).read_text()
        assert [drawn.count(f">tlsf, {level['checks']}</text>") for level in result] == [1, 1]
        assert "tlsf, full: double free 100.0% at once, 0.0% later" in drawn
    with pytest.raises(HeapwrightError, match=r"a picture ends in .svg or .html"):
        hw.attack("tlsf", output=tmp_path / "faults.txt")


def test_a_heap_that_cannot_have_a_level_is_tried_at_the_others() -> None:
    cached = zoo.load("tlsf").model_copy(update={"threads": "cached"})
    assert [level["checks"] for level in attack(cached, runs=1)] == ["none", "frees", "neighbours"]
    with pytest.raises(HeapwrightError, match="keeps most from the heap"):
        attack(cached, checks=["full"], runs=1)


def test_objects_that_move_cannot_be_attacked() -> None:
    with pytest.raises(HeapwrightError, match="objects of a compact pool move"):
        attack(zoo.load("contiki-mmem"))
