"""What the package makes again and again in tests, once in a run: C of recipes, heaps for a target, proofs' core."""

from __future__ import annotations

import contextlib
import pickle
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from c_programs import kept_once
from run_length import LONG

from heapwright._assure.proof import edges, enumeration
from heapwright._generate import residual
from heapwright._generate import specialise as specialising
from heapwright._generate.core import core_sources
from heapwright._measure.boards.compilers import Compiler
from heapwright._support.subprocesses import run_tool

HEAP, CORE = "target_heap.c", "core.c"
MOST_TEXTS = residual.MOST_TEXTS


@contextlib.contextmanager
def keeping(folder: Path) -> Iterator[None]:
    """While objects are kept next to this folder by what they are made of: compiler, flags, text and headers."""
    compile_anew = Compiler.compile

    def compile_heap(compiler: Compiler, source: Path, output: Path, flags: Sequence[str]) -> None:
        plain = [flag for flag in flags if flag != f"-I{source.parent}"]
        if source.name != HEAP or any(flag.startswith("-I") for flag in plain):
            compile_anew(compiler, source, output, flags)
            return
        with once(folder, (compiler, plain, texts(source.parent)), output) as is_new:
            if is_new:
                compile_anew(compiler, source, output, flags)

    def run(command: Sequence[str], *where: Any, **how: Any) -> CompletedProcess[Any]:
        if CORE not in command:
            return run_tool(command, *where, **how)
        cwd: Path = how["cwd"]
        plain = [word for word in command if not word.startswith("-I")]
        headers = [texts(Path(word[2:])) for word in command if word.startswith("-I")]
        key = plain, (cwd / CORE).read_text(encoding="utf-8"), headers
        with once(folder, key, (cwd / CORE).with_suffix(".o")) as is_new:
            return run_tool(command, *where, **how) if is_new else CompletedProcess(command, 0, "", "")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(specialising, "specialise", partial(specialised, folder, specialising.specialise))
        patched.setattr(Compiler, "compile", compile_heap)
        patched.setattr(enumeration, "run_tool", run)
        yield


def specialised(folder: Path, specialise: Callable[..., Any], sources: object, *what: Any) -> Any:
    """As `specialise`, which one process of a run does for all; itself where a test limits what its memo keeps."""
    if sources is not core_sources() or residual.MOST_TEXTS != MOST_TEXTS:
        return specialise(sources, *what)
    plain = [sorted(item) if isinstance(item, frozenset) else item for item in what]
    with kept_once(folder / "text", repr(plain)) as kept:
        if not kept.exists():
            kept.write_bytes(pickle.dumps(specialise(sources, *what)))
        return pickle.loads(kept.read_bytes())


@contextlib.contextmanager
def once(folder: Path, key: object, output: Path) -> Iterator[bool]:
    """Whether an object has to be made, which then is kept if it was; else it is there."""
    with kept_once(folder / "object", repr(key)) as kept:
        is_new = not kept.exists()
        if not is_new:
            shutil.copy2(kept, output)
        yield is_new
        if is_new and output.exists():
            shutil.copy2(output, kept)


@contextlib.contextmanager
def brief_proofs() -> Iterator[None]:
    """While a heap's proof compiles faster, and its edges are tried with a fifth of the programs, but in long runs."""
    with pytest.MonkeyPatch.context() as patched:
        if not LONG:
            patched.setattr(enumeration, "FLAGS", tuple("-O0" if item == "-O1" else item for item in enumeration.FLAGS))
            patched.setattr(edges, "PROGRAMS", edges.PROGRAMS // 5)
            patched.setattr(edges, "MOST_PAIRS", edges.MOST_PAIRS // 5)
        yield


def texts(folder: Path) -> list[tuple[str, str]]:
    """All C in a folder, by its place in it."""
    paths = sorted(folder.rglob("*.[ch]"))
    return [(str(path.relative_to(folder)), path.read_text(encoding="utf-8")) for path in paths]
