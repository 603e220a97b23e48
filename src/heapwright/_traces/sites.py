"""Names of the places in a program where calls were made, from its files: symbols, and lines with addr2line."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from numpy.typing import NDArray


@dataclass(frozen=True)
class Module:
    """A file that was mapped from `begin` to `end`; an address less `bias` is the file's own."""

    begin: int
    end: int
    bias: int
    path: Path


class Sites:
    """The names of return addresses in a process that had loaded some modules.

    A name is ``function (file.c:12)`` where the module has debug information and addr2line is installed,
    ``function+0x1c (module)`` where it has symbols, else ``module+0x1234``, or the address alone where no module holds
    it. Of functions that were inlined it is the one that holds them, at the line where it calls the first.
    """

    def __init__(self, modules: Iterable[Module]) -> None:
        self._modules = list(modules)
        self._names: dict[int, str] = {0: ""}

    def names(self, addresses: NDArray[np.uint64]) -> NDArray[np.object_]:
        """Names of shape (n,), one for each address."""
        distinct, at = np.unique(addresses, return_inverse=True)
        fresh = [address for address in distinct.tolist() if address not in self._names]
        for module in self._modules:
            inside = [address for address in fresh if module.begin <= address < module.end]
            if inside:
                self._names.update(zip(inside, _names_in(module, inside), strict=True))
        names = [self._names.setdefault(address, f"{address:#x}") for address in distinct.tolist()]
        return np.array(names, dtype=object)[at]


def name_in(path: Path, address: int) -> str:
    """The name of a return address in a program that lies where it was linked to."""
    return _names_in(Module(0, 1 << 32, 0, path), [address])[0]


def _names_in(module: Module, addresses: Sequence[int]) -> list[str]:
    own = [address - module.bias for address in addresses]
    name = os.fsencode(module.path.name).decode(errors="replace")
    if not module.path.is_file() or min(own) < 1:
        return [f"{name}+{address:#x}" for address in own]
    lines = _lines(module.path, own)
    rest = [address for address in own if address not in lines]
    if rest:
        functions, starts = _symbols(module.path).before(rest)
        for address, function, start in zip(rest, _readable(functions), starts, strict=True):
            lines[address] = f"{function}+{address - start:#x} ({name})" if function else f"{name}+{address:#x}"
    return [lines[address] for address in own]


def _lines(path: Path, addresses: Sequence[int]) -> dict[int, str]:
    """Function and line of each address in the debug information; a call is before the address it returns to."""
    program = shutil.which("addr2line")
    if program is None:
        return {}
    requested = "".join(f"{address - 1:#x}\n" for address in addresses)
    command = [program, "-a", "-f", "-i", "-C", "-e", str(path)]
    done = subprocess.run(command, input=requested, capture_output=True, text=True, errors="replace", check=False)
    answers: list[list[str]] = []  # of each address: itself, then function and line from the innermost to the outermost
    for line in done.stdout.splitlines():
        if line.startswith("0x"):
            answers.append([])
        if answers:
            answers[-1].append(line)
    if len(answers) != len(addresses):
        return {}
    return {
        address: f"{answer[-2]} ({os.path.basename(answer[-1].partition(' (')[0])})"
        for address, answer in zip(addresses, answers, strict=True)
        if len(answer) > 2 and answer[-2] != "??" and "?" not in answer[-1]
    }


_SYMBOL = {
    64: [("name", "u4"), ("info", "u1"), ("other", "u1"), ("section", "u2"), ("value", "u8"), ("size", "u8")],
    32: [("name", "u4"), ("value", "u4"), ("size", "u4"), ("info", "u1"), ("other", "u1"), ("section", "u2")],
}
_OBJECT, _FUNCTION, _INDIRECT_FUNCTION = 1, 2, 10
_POOL = b"memp_"
"""Begins the names of lwIP's pool descriptors, which its hooks record as the call sites of what is of a pool."""


@dataclass(frozen=True)
class _Symbols:
    """Functions of a file and the pool descriptors of lwIP, by address, and the text that holds their names."""

    functions: NDArray[Any]
    text: bytes

    def before(self, addresses: Sequence[int]) -> tuple[list[str], list[int]]:
        """For each address the function that calls from there, and where it starts; an empty name where none does."""
        if not len(self.functions):
            return [""] * len(addresses), [0] * len(addresses)
        calls = np.array(addresses, np.uint64) - np.uint64(1)
        starts, sizes = self.functions["value"], np.maximum(self.functions["size"], 1)
        at = np.maximum(np.searchsorted(starts, calls, side="right") - 1, 0)
        inside = (calls >= starts[at]) & (calls - starts[at] < sizes[at])
        names = [
            self.text[begin : self.text.find(b"\0", begin)].decode(errors="replace") if good else ""
            for begin, good in zip(self.functions["name"][at].tolist(), inside, strict=True)
        ]
        return names, starts[at].tolist()


@functools.lru_cache(maxsize=64)
def _symbols(path: Path) -> _Symbols:
    with contextlib.suppress(OSError, ELFError), path.open("rb") as file:
        elf = ELFFile(file)
        tables = [elf.get_section_by_name(name) for name in (".symtab", ".dynsym")]
        table = next((table for table in tables if isinstance(table, SymbolTableSection)), None)
        if table is not None:
            layout = np.dtype(_SYMBOL[elf.elfclass]).newbyteorder("<" if elf.little_endian else ">")
            symbols = np.frombuffer(table.data(), layout)
            text = table.stringtable.data()
            is_function = np.isin(symbols["info"] & 15, [_FUNCTION, _INDIRECT_FUNCTION])
            for at in np.flatnonzero((symbols["info"] & 15) == _OBJECT):
                is_function[at] = text.startswith(_POOL, int(symbols["name"][at]))
            functions = symbols[is_function & (symbols["section"] != 0)]
            return _Symbols(functions[np.argsort(functions["value"], kind="stable")], text)
    return _Symbols(np.zeros(0, _SYMBOL[64]), b"")


def _readable(names: list[str]) -> list[str]:
    """The names as C++ wrote them, where c++filt is installed."""
    program = shutil.which("c++filt")
    if program is None or not any(name.startswith("_Z") for name in names):
        return names
    done = subprocess.run([program], input="\n".join(names), capture_output=True, text=True, check=False)
    readable = done.stdout.splitlines()
    return readable if len(readable) == len(names) else names
