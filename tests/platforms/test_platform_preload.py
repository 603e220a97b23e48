"""The platform `preload`: its page's commands, its own test, and real programs with a million calls each."""

from __future__ import annotations

import subprocess
from pathlib import Path

import preload
import pytest
from run_length import brief
from tool_requirements import absent

import heapwright as hw


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The zoo's tlsf, at the alignment of this machine."""
    folder = tmp_path_factory.mktemp("preload")
    recipe = folder / "tlsf16.toml"
    recipe.write_text(hw.zoo("tlsf").at_alignment(16).to_toml())
    return preload.build(str(recipe), folder / "heap", prefix="net")


def test_every_function_goes_through_and_keeps_its_promises(library: Path) -> None:
    (command,) = preload.commands(library.parent / "net_README.md", "LD_PRELOAD=$PWD/net_preload.so ./")
    done = subprocess.run(command, shell=True, cwd=library.parent, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "net_preload: ok\n")


def test_long_quick_lists_keep_the_promises_too(tmp_path: Path) -> None:
    preload.build("fast", tmp_path)
    (command,) = preload.commands(tmp_path / "app_README.md", "LD_PRELOAD=$PWD/app_preload.so ./")
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "app_preload: ok\n")


def test_the_test_notices_where_nothing_is_preloaded(library: Path) -> None:
    done = subprocess.run(["./net_preload_test"], cwd=library.parent, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "malloc is found in " in done.stdout


def test_a_limit_of_address_space_makes_a_smaller_heap(library: Path) -> None:
    script = "ulimit -v 300000; LD_PRELOAD=$PWD/net_preload.so ./net_preload_test"
    done = subprocess.run(script, shell=True, cwd=library.parent, capture_output=True, text=True, timeout=60)
    assert done.stdout == "net_preload: ok\n"


def test_a_heap_with_checks_has_no_caches(tmp_path: Path) -> None:
    recipe = hw.zoo("half-fit").at_alignment(16)
    hw.generate(recipe.from_dict(recipe.to_dict() | {"checks": "frees"}), tmp_path, platform="preload")
    assert "APP_CACHES" not in (tmp_path / "app_heap.h").read_text()


@pytest.mark.parametrize("name", ["sqlite", "git", "redis", "c++", *brief([], ["lua", "python"])])
def test_a_program_prints_the_same_after_a_million_calls(name: str, library: Path, tmp_path: Path) -> None:
    programs = preload.loads(tmp_path, [name])
    if name not in programs:
        absent(f"the program for {name}")
    theirs, ours = (preload.run(programs[name], item, tmp_path, "net") for item in (None, library))
    assert ours.printed == theirs.printed
    assert ours.printed
    assert ours.calls >= preload.LEAST_CALLS
