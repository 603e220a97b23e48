"""Folding, against the compiler's own: clang folds the core itself where a constant policy has one pool.

So the core as it stands and the text that the generator leaves of it become two programs that have to give the same
addresses, and are about as long: what the generator fails to fold, or folds wrongly, shows. gcc does not fold the core,
nor does clang with two pools.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from c_programs import CSRC
from test_core_folded import initialiser
from tool_requirements import is_installed, tool

from heapwright._generate.core import core_sources
from heapwright._generate.specialise import specialise
from heapwright._recipes.policy import policy
from heapwright._recipes.zoo import catalogue as zoo

CALLS = 200_000
LONGEST = 1.2
"""Bytes of machine code that the generated text may have for each one that clang leaves of the core."""

AROUND = """
struct tried;
struct tried *tried_init(void *arena, size_t bytes)
{
    return (struct tried *)FIRST_init(POLICY arena, bytes);
}
void *tried_malloc(struct tried *heap, size_t size)
{
    return FIRST_malloc(POLICY (struct FIRST_heap *)heap, size);
}
void tried_free(struct tried *heap, void *pointer)
{
    FIRST_free(POLICY (struct FIRST_heap *)heap, pointer);
}
"""

LOAD = """
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
struct tried;
struct tried *tried_init(void *arena, size_t bytes);
void *tried_malloc(struct tried *heap, size_t size);
void tried_free(struct tried *heap, void *pointer);
static _Alignas(4096) unsigned char arena[1 << 18];
static unsigned char *objects[1024];
int main(void)
{
    struct tried *heap = tried_init(arena, sizeof arena);
    uint64_t seed = 7, addresses = 14695981039346656037u;
    unsigned served = 0, freed = 0;
    for (int call = 0; call < CALLS; call++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        unsigned char **object = &objects[seed >> 54];
        if (*object) {
            tried_free(heap, *object);
            *object = NULL;
            freed++;
            continue;
        }
        *object = tried_malloc(heap, 1 + (seed >> 30) % (seed >> 40 & 7 ? 200 : 2000));
        served += *object != NULL;
        addresses = (addresses ^ (*object ? (uint64_t)(*object - arena) : 1u)) * 1099511628211u;
    }
    printf("%u %u %llx", served, freed, (unsigned long long)addresses);
    return 0;
}
"""


def clang() -> list[str]:
    """The command of clang, or of zig, which is clang."""
    if not is_installed("clang") and importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "cc"]
    return [tool("clang")]


def built(folder: Path, text: str) -> tuple[str, int]:
    """What the load prints of a heap, and the bytes of the heap's machine code."""
    (folder / "heap.c").write_text(text)
    (folder / "load.c").write_text(LOAD)
    flags = ["-std=c11", "-Os", f"-I{CSRC}", f"-DCALLS={CALLS}", "-fno-asynchronous-unwind-tables"]
    for command in (["-c", "heap.c", "-o", "heap.o"], ["load.c", "heap.o", "-o", "load"]):
        done = subprocess.run([*clang(), *flags, *command], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:3000]
    sizes = subprocess.run(
        [tool("size"), "-A", "heap.o"], cwd=folder, capture_output=True, text=True, check=True
    ).stdout
    code = sum(int(line.split()[1]) for line in sizes.splitlines() if line.startswith(".text"))
    return subprocess.run([folder / "load"], capture_output=True, text=True, check=True).stdout, code


@pytest.mark.parametrize("name", ["tlsf", "half-fit", "victim-bins"])
def test_generated_text_is_what_clang_folds(name: str, tmp_path: Path) -> None:
    values = policy(zoo.load(name))
    assert len(values["pools"]) == 1
    core = f'#include "entries.h"\nstatic const struct hw_policy policy = {initialiser(values)};\n'
    text = specialise(core_sources(), values, ["hw_init", "hw_malloc", "hw_free"], "app").text
    by_clang = built(tmp_path, core + AROUND.replace("FIRST", "hw").replace("POLICY", "&policy,"))
    by_generator = built(tmp_path, text + AROUND.replace("FIRST", "app").replace("POLICY ", ""))
    assert by_generator[0] == by_clang[0] and by_clang[0].count(" ") == 2
    assert by_generator[1] <= LONGEST * by_clang[1], (by_generator[1], by_clang[1])
