"""What every allocator of the zoo owes its caller: what was freed can be had again, and impossible requests fail."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from c_programs import SANITIZED, compile_c
from run_length import brief

from heapwright._generate.emit import NOTHING, generated_files
from heapwright._recipes.policy import policy, policy_struct, whole_bytes
from heapwright._recipes.zoo import catalogue as zoo

ROOM = 40_000
NAMES = [name for name in zoo.names() if zoo.load(name).pools[0].kind != "compact"]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(tmp_path_factory.mktemp("promises") / "promises", "promises.c", flags=[*SANITIZED, "-w"])


@pytest.mark.parametrize("name", NAMES)
def test_a_heap_keeps_what_its_header_promises(name: str, program: Path, tmp_path: Path) -> None:
    recipe = zoo.load(name)
    (tmp_path / "policy").write_bytes(whole_bytes(policy_struct(recipe.canonical())))
    values = policy(recipe)
    arena = min(values["fixed_end"] + ROOM, values["reach"]) + 4095 & ~4095
    command = [str(program), str(tmp_path / "policy"), str(arena), str(brief(20, 200)), "1"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    counts = map(int, done.stdout.split())
    requests, passed, again, refused, smaller, failed, impossible, served, aligned, misaligned = counts
    header = generated_files(recipe, "app", NOTHING)["app_heap.h"]
    assert min(requests, again, smaller, impossible, aligned) >= brief(8, 80)
    assert passed == 0 or "no room for it" in header, f"{passed} of {requests} refusals left out free memory"
    assert refused == 0 or "just freed" in header, f"{refused} of {again} freed objects were refused"
    assert failed == 0, f"{failed} of {smaller} objects could not be made smaller"
    assert served == 0, f"{served} of {impossible} impossible requests were served, or changed an object"
    assert misaligned == 0, f"{misaligned} of {aligned} objects were misaligned"


def test_own_rows_serve_what_was_just_freed() -> None:
    for name in ("all-round", "fast", "small", "small-lists", "exact-bins", "victim-bins"):
        assert "just freed" not in generated_files(zoo.load(name), "app", NOTHING)["app_heap.h"]
