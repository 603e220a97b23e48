"""Names of the places in a program where calls were made, from its files: symbols, and lines with addr2line."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

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


def _names_in(module: Module, addresses: Sequence[int]) -> list[str]:
    own = [address - module.bias for address in addresses]
    lines = _lines(module.path, own)
    symbols = _symbols(module.path)
    return [lines.get(address) or _symbol(symbols, address, module.path.name) for address in own]


def _lines(path: Path, addresses: Sequence[int]) -> dict[int, str]:
    """Function and line of each address that debug information tells; a call is before the address it returns to."""
    program = shutil.which("addr2line")
    if program is None or not path.is_file():
        return {}
    asked = "".join(f"{address - 1:#x}\n" for address in addresses)
    command = [program, "-a", "-f", "-i", "-C", "-e", str(path)]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, errors="replace", check=False)
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


Symbols = tuple[NDArray[np.uint64], NDArray[np.uint64], list[str]]
"""Addresses and sizes of functions, by address, and their names."""


def _symbols(path: Path) -> Symbols:
    found: dict[int, tuple[int, str]] = {}
    with contextlib.suppress(OSError, ELFError), path.open("rb") as file:
        elf = ELFFile(file)
        tables = [elf.get_section_by_name(name) for name in (".symtab", ".dynsym")]
        table = next((table for table in tables if isinstance(table, SymbolTableSection)), None)
        for symbol in table.iter_symbols() if table else ():
            if symbol["st_info"]["type"] in ("STT_FUNC", "STT_GNU_IFUNC") and symbol["st_shndx"] != "SHN_UNDEF":
                found[symbol["st_value"]] = symbol["st_size"], symbol.name
    ordered = sorted(found.items())
    return (
        np.array([address for address, _ in ordered], np.uint64),
        np.array([size for _, (size, _) in ordered], np.uint64),
        _readable([name for _, (_, name) in ordered]),
    )


def _readable(names: list[str]) -> list[str]:
    """The names as C++ wrote them, where c++filt is installed."""
    program = shutil.which("c++filt")
    if program is None or not any(name.startswith("_Z") for name in names):
        return names
    done = subprocess.run([program], input="\n".join(names), capture_output=True, text=True, check=False)
    readable = done.stdout.splitlines()
    return readable if len(readable) == len(names) else names


def _symbol(symbols: Symbols, address: int, module: str) -> str:
    addresses, sizes, names = symbols
    at = int(np.searchsorted(addresses, np.uint64(address - 1), side="right")) - 1
    if at < 0 or address - 1 >= int(addresses[at]) + max(1, int(sizes[at])):
        return f"{module}+{address:#x}"
    return f"{names[at]}+{address - int(addresses[at]):#x} ({module})"
