"""`heapwright attack`: what each level of checks notices, with a fixed seed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from heapwright.errors import HeapwrightError
from heapwright.host.attack import OUTCOMES, attack
from heapwright.zoo import catalogue as zoo

HEAPWRIGHT = str(Path(sys.executable).with_name("heapwright"))
RUNS = 40
FAULTS = [
    *("double_free", "foreign_free", "interior_free", "changed_header", "underflow"),
    *("overflow_1", "overflow_4", "overflow_16", "use_after_free", "wild_write", "metadata_write"),
]


@pytest.mark.parametrize("name", ["tlsf", "lea-2.7.2", "victim-bins"])
def test_the_level_neighbours_notices_what_it_says(name: str) -> None:
    (found,) = attack(zoo.load(name), checks=["neighbours"], runs=RUNS)
    assert (found["heap"], found["checks"], list(found["faults"])) == (name, "neighbours", FAULTS)
    for counts in found["faults"].values():
        assert counts["runs"] == RUNS == sum(counts[outcome] for outcome in OUTCOMES)
    for fault in ("double_free", "foreign_free", "interior_free"):
        assert found["faults"][fault]["at_once"] >= 0.95 * RUNS, fault
    underflow = found["faults"]["underflow"]
    assert underflow["at_once"] + underflow["later"] >= 0.95 * RUNS


@pytest.mark.parametrize("name", ["tlsf", "first-fit-fast-free", "binary-buddy"])
def test_the_level_full_notices_what_it_says(name: str) -> None:
    (found,) = attack(zoo.load(name), checks=["full"], runs=RUNS)
    faults = found["faults"]
    for fault in ("double_free", "foreign_free", "interior_free", "overflow_1", "overflow_4"):
        assert faults[fault]["at_once"] >= 0.95 * RUNS, fault
    for fault in ("underflow", "overflow_16", "use_after_free"):
        assert faults[fault]["at_once"] + faults[fault]["later"] >= 0.9 * RUNS, fault


def test_levels_notice_more_and_more_and_a_seed_gives_the_same_counts() -> None:
    heap = zoo.load("tlsf")
    none, frees, neighbours, full = attack(heap, runs=RUNS, seed=3)
    assert all(counts["at_once"] == counts["later"] == 0 for counts in none["faults"].values())
    interior = [level["faults"]["interior_free"]["at_once"] for level in (none, frees, neighbours)]
    assert interior == sorted(set(interior))
    assert attack(heap, checks=["neighbours", "full"], runs=RUNS, seed=3) == [neighbours, full]
    assert attack(heap, checks=["neighbours"], runs=RUNS, seed=4) != [neighbours]


def test_the_command_prints_the_levels_asked_for() -> None:
    command = [HEAPWRIGHT, "attack", "tlsf", "--checks", "frees", "--runs", "3"]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    (level,) = json.loads(done.stdout)
    assert level["checks"] == "frees"
    assert level["faults"]["double_free"]["at_once"] == 3
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "double_free" in shown and "100.0%" in shown


def test_a_heap_that_cannot_have_a_level_is_tried_at_the_others() -> None:
    cached = zoo.load("tlsf").model_copy(update={"threads": "cached"})
    assert [level["checks"] for level in attack(cached, runs=1)] == ["none", "frees", "neighbours"]
    with pytest.raises(HeapwrightError, match="keeps most from the heap"):
        attack(cached, checks=["full"], runs=1)


def test_objects_that_move_cannot_be_attacked() -> None:
    with pytest.raises(HeapwrightError, match="objects of a compact pool move"):
        attack(zoo.load("contiki-mmem"))
