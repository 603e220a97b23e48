"""Damaged control data at the hardened levels: bent words, and flipped bits anywhere outside payloads."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from c_programs import CSRC, LEVEL, compile_c
from run_length import brief

from heapwright._assure.attack import exploits
from heapwright._assure.attack.attack import levels
from heapwright._assure.attack.exploits import Exploits
from heapwright._recipes.policy import policy_struct, whole_bytes
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo

NAMES = [name for name in zoo.names() if zoo.load(name).pools[0].kind != "compact"]
FLIPPED = ("all-round", "fast", "small-lists", "tlsf", "half-fit", "lea-2.7.2")
HARDENED = ("neighbours", "full")
WITHOUT = {"memmgr": ("full",)}
ARENA = 24_576


def hardened(name: str) -> list[Recipe]:
    """The row at the levels that it can have: the smallest blocks of memmgr are too small for a guard."""
    recipe = zoo.load(name)
    return [made for level in HARDENED if level not in WITHOUT.get(name, ()) for made in levels(recipe, [level])]


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Exploits:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(exploits, "core_directory", lambda: CSRC)
        return Exploits(tmp_path_factory.mktemp("exploits"), 64, generated=False)


@pytest.fixture(scope="module")
def flips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(tmp_path_factory.mktemp("flips") / "flips", "flips.c", flags=[LEVEL, "-w"])


@pytest.mark.parametrize("name", NAMES)
def test_a_bent_word_never_makes_two_live_objects_overlap(name: str, ground: Exploits) -> None:
    """Any word of the control data, led to a live block, a free one or beyond the arena."""
    for recipe in hardened(name):
        result = ground.attempt(recipe, trials=brief(800, 20_000), only="bent_word")["bent_word"]
        assert result["control"] is None, (recipe.checks, result)
        assert result["crashed"] == 0, (recipe.checks, result)
        assert result["trials"] > 500


@pytest.mark.parametrize("name", FLIPPED)
@pytest.mark.parametrize("level", HARDENED)
def test_a_flipped_bit_is_noticed_or_harmless(name: str, level: str, flips: Path, tmp_path: Path) -> None:
    (recipe,) = levels(zoo.load(name), [level])
    (tmp_path / "policy").write_bytes(whole_bytes(policy_struct(recipe.canonical())))
    command = [str(flips), str(tmp_path / "policy"), str(ARENA), str(brief(150, 4000)), str(brief(1, 2))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    crashed, silent, noticed, harmless = map(int, done.stdout.split())
    assert (crashed, silent) == (0, 0)
    assert noticed > 0, "no flip was noticed, so none was where it matters"
    assert crashed + silent + noticed + harmless == brief(150, 4000)
