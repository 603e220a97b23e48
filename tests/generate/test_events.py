"""Hooks of a generated heap: they report what happens, and are no code where they are not defined."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from c_programs import LEVEL, ROOT, STRICT, UNCHECKED
from run_length import by_turns, some
from tool_requirements import compilers, needs

from heapwright._generate.emit import generated_files
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo

HOOKS = "|".join(("ALLOCATED", "RESIZED", "FREED", "REFUSED"))


def variant(name: str, **keys: str | int) -> Recipe:
    return Recipe.from_dict(zoo.load(name).to_dict() | keys)


RECIPES = {
    **{name: zoo.load(name) for name in ("victim-bins", "half-fit", "drr-proposed", "kingsley", "binary-buddy", "sos")},
    "checked": variant("tlsf", checks="neighbours"),
    "lock": variant("victim-bins", threads="lock"),
    "cached": variant("victim-bins", threads="cached", cache_up_to=512, cache_bytes=2000),
    "cached and checked": variant("victim-bins", threads="cached", checks="frees", cache_up_to=512, cache_bytes=2000),
}
TO_COMPARE = {name: RECIPES[name] for name in ("victim-bins", "half-fit", "checked", "cached")}
TO_COMPARE |= {"moving": zoo.load("contiki-mmem")}


def run(*words: str | Path) -> None:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def without_hooks(source: str) -> str:
    """The heap as it would be if no hook had been thought of."""
    source = re.sub(rf"^ *APP_(?:{HOOKS})\(.*\);\n", "", source, flags=re.MULTILINE)
    source = re.sub(r"^ *\(void\)app_notify\(.*\);\n", "", source, flags=re.MULTILINE)
    source = re.sub(r"return app_notify\(heap, (.*), size\);", r"return \1;", source)
    source = re.sub(r"return APP_SILENT\(.*, (app_malloc\(.*\))\);", r"return \1;", source)
    functions = source[source.index("/* Compares in a function of its own") :]
    assert not re.search(rf"APP_(?:{HOOKS}|TOLD|UNTOLD|TOLD_RESIZED)\(", functions)
    return source


COMPILERS = ["arm-none-eabi-gcc", *compilers()]


@pytest.mark.parametrize(
    ("name", "compiler"), [(name, item) for turn, name in enumerate(TO_COMPARE) for item in by_turns(COMPILERS, turn)]
)
def test_hooks_that_nobody_defines_leave_the_code_as_it_is(name: str, compiler: str, tmp_path: Path) -> None:
    needs(compiler)
    written = generated_files(TO_COMPARE[name])
    for name in ("app_heap.h", "app_heap_checks.h"):
        (tmp_path / name).write_text(written[name])
    flags = ["-std=c11", "-ffreestanding", UNCHECKED, "-w", "-c"]
    flags += [
        "-DAPP_SECRET_OF_ADDRESS",
        "-DAPP_LOCK(heap)=0u",
        "-DAPP_UNLOCK(heap,key)=((void)(key))",
        "-DAPP_THREAD(heap)=((void *)(heap))",
    ]
    objcopy = "arm-none-eabi-objcopy" if compiler.startswith("arm") else "objcopy"
    for level in some(("-Os", "-O2"), 2):
        code = []
        for text in (written["app_heap.c"], without_hooks(written["app_heap.c"])):
            (tmp_path / "app_heap.c").write_text(text)
            run(compiler, *flags, level, tmp_path / "app_heap.c", "-o", tmp_path / "heap.o")
            run(objcopy, "-O", "binary", "--only-section=.text", tmp_path / "heap.o", tmp_path / "text")
            code.append((tmp_path / "text").read_bytes())
        assert len(code[0]) > 500
        assert code[0] == code[1], f"{level}: {len(code[0])} and {len(code[1])} bytes"


@pytest.mark.parametrize("name", RECIPES)
def test_hooks_tell_of_every_call(name: str, tmp_path: Path) -> None:
    recipe = RECIPES[name]
    for file, text in generated_files(recipe).items():
        (tmp_path / file).write_text(text)
    aligns = int(any(pool.kind == "general" for pool in recipe.pools))
    flags = [*STRICT, LEVEL, UNCHECKED, f"-I{tmp_path}", f"-I{ROOT / 'tests' / 'c'}", "-pthread"]
    flags += ['-DAPP_HOOKS="events_hooks.h"', f"-DALIGNS={aligns}"] + ["-DCHECKED"] * (recipe.checks != "none")
    sources = [tmp_path / "app_heap.c", ROOT / "tests" / "c" / "events.c"]
    run("cc", *flags, "-Wno-cast-qual", *sources, "-o", tmp_path / "test")
    run(tmp_path / "test")
