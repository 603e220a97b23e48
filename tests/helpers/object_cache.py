"""What is generated and compiled once in a run: what one test has compiled, others link.

An object is known by the compiler, its flags and the preprocessed source, so that a test that changes one file of a
program compiles that file alone.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from c_programs import kept_once

from heapwright._generate import generate
from heapwright._recipes.recipe import Recipe

_SOURCES = (".c", ".cpp", ".cc")
_FOR_THE_LINKER = (".o", ".a", ".so", ".ld")
_WITH_A_WORD = ("-o", "-T", "-u", "-I", "-isystem", "-include")


class Words:
    """A compiler's command, taken apart: what is for each of its sources, and what is for the linker."""

    def __init__(self, command: Sequence[str | Path]) -> None:
        self.compiler, *words = map(str, command)
        self.sources: list[str] = []
        self.flags: list[str] = []
        self.including: list[str] = []
        self.linked: list[str] = []
        self.only_objects = False
        given = iter(words)
        for word in given:
            self._take([word, next(given)] if word in _WITH_A_WORD else [word])

    def _take(self, words: list[str]) -> None:
        first = words[0]
        if first.endswith(_SOURCES) and not first.startswith("-"):
            self.sources.append(first)
            self.linked.append(first)
        elif first == "-c":
            self.only_objects = True
        elif first.startswith(("-I", "-isystem", "-D", "-include")):
            self.including += words
        elif first.startswith(("-l", "-L", "-Wl,")) or first in ("-o", "-T", "-u") or first.endswith(_FOR_THE_LINKER):
            self.linked += words
        else:
            self.flags += words


def generated(recipe: Recipe, output: Path) -> Path:
    """The folder of a recipe's C, which tests only read: generated once in a run. `output` is any file of the run."""
    with kept_once(output, f"generated of {recipe.to_toml()}") as kept:
        if not kept.exists():
            begun = kept.with_suffix(".begun")
            generate(recipe, begun)
            begun.rename(kept)
        return kept


def expanded(line: str, folder: Path) -> list[list[str]]:
    """The commands of a line that a shell would run one after the other, with globs and $(...) put in."""
    commands = [f"printf '%s\\0' {command}" for command in line.split(" && ")]
    texts = [subprocess.run(["sh", "-c", text], cwd=folder, capture_output=True, check=True) for text in commands]
    return [text.stdout.decode().split("\0")[:-1] for text in texts]


def built(command: Sequence[str | Path], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command that compiles and links, or compiles (`-c`), in that folder; stderr has what the compiler said."""
    words = Words(command)
    compiling = [words.compiler, *words.flags, *words.including]
    objects, output = {}, ""
    for number, source in enumerate(words.sources):
        made = folder / (f"{Path(source).stem}.o" if words.only_objects else f"{number}-{Path(source).stem}.o")
        done = _object(words, source, made, folder)
        output += done.stderr
        if done.returncode:
            return subprocess.CompletedProcess(compiling, done.returncode, "", output)
        objects[source] = str(made)
    if words.only_objects:
        return subprocess.CompletedProcess(compiling, 0, "", output)
    linking = [words.compiler, *words.flags, *(objects.get(word, word) for word in words.linked)]
    done = subprocess.run(linking, cwd=folder, capture_output=True, text=True)
    return subprocess.CompletedProcess(linking, done.returncode, done.stdout, output + done.stderr)


def built_line(line: str, folder: Path) -> str:
    """As `built`, of a line of a shell; a failure shows what the compiler printed, which otherwise is returned."""
    output = ""
    for command in expanded(line, folder):
        done = built(command, folder)
        assert done.returncode == 0, done.stderr
        output += done.stderr
    return output


def _object(words: Words, source: str, made: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Warnings of a compiler are shown at each compilation: such objects are not kept."""
    text = [words.compiler, *words.flags, *words.including, "-E", "-P", source]
    read = subprocess.run(text, cwd=folder, capture_output=True, text=True)
    if read.returncode:
        return read
    key = "\0".join([words.compiler, *words.flags, Path(source).suffix, read.stdout])
    with kept_once(made, key) as kept:
        if kept.exists():
            shutil.copy2(kept, made)
            return subprocess.CompletedProcess(text, 0, "", "")
        compiling = [words.compiler, *words.flags, *words.including, "-c", source, "-o", str(made)]
        done = subprocess.run(compiling, cwd=folder, capture_output=True, text=True)
        if done.returncode == 0 and not done.stderr:
            shutil.copy2(made, kept)
        return done
