"""Machines that lack a part of a tool, which has its name nevertheless: a PATH with wrappers of the tools in front."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

HOSTS = ("cc", "gcc", "c++", "g++", "clang", "clang++")
CROSS = ("arm-none-eabi-gcc", "riscv64-unknown-elf-gcc")
KERNEL_HEADERS = ("types", "errno", "bitsperlong", "posix_types", "socket", "sockios", "ioctl", "ioctls", "param")


class Machine(NamedTuple):
    """What a machine lacks: programs that are not there, and of others the words with which they fail."""

    hides: tuple[str, ...] = ()
    wraps: tuple[str, ...] = ()
    pattern: str = ""
    """Of the shell: a word that fits it does not work."""
    headless: bool = False
    """Such a word takes the kernel's headers away, and does nothing else."""


MACHINES = {
    "Arm's gcc without picolibc": Machine(wraps=CROSS, pattern="*picolibc*|--oslib=*|--crt0=*"),
    "QEMU without gcc": Machine(hides=CROSS),
    "clang without libFuzzer": Machine(wraps=("clang", "clang++"), pattern="-fsanitize=*fuzzer*"),
    "gcc without -m32": Machine(wraps=HOSTS, pattern="-m32"),
    "-m32 without headers": Machine(wraps=HOSTS, pattern="-m32", headless=True),
}

FAILS = """#!/bin/sh
for word; do
    case $word in
    -print-file-name=*) ;;
    {pattern}) echo "fatal error: $word: no such option or file here" >&2; exit 1 ;;
    esac
done
case $1 in
-print-file-name={pattern}) echo "${{1#*=}}"; exit 0 ;;
esac
exec {program} "$@"
"""
HEADLESS = """#!/bin/sh
for word; do
    case $word in
    {pattern}) exec {program} -isystem {headers} "$@" ;;
    esac
done
exec {program} "$@"
"""


def path_of(machine: Machine, folder: Path, path: str | None = None) -> str:
    """The PATH of such a machine, whose tools are those of a PATH but for what it lacks."""
    before = os.environ["PATH"] if path is None else path
    wrappers, headers = folder / "wrappers", folder / "headers"
    for place in (wrappers, headers / "asm"):
        place.mkdir(parents=True)
    for name in KERNEL_HEADERS:
        (headers / f"asm/{name}.h").write_text(f"#error asm/{name}.h: No such file or directory\n")
    for name in machine.wraps:
        if program := shutil.which(name, path=before):
            text = HEADLESS if machine.headless else FAILS
            wrapper = wrappers / name
            wrapper.write_text(text.format(pattern=machine.pattern, program=program, headers=headers))
            wrapper.chmod(0o755)
    return ":".join([str(wrappers), *_without(machine.hides, before.split(":"), folder)])


def _without(names: Iterable[str], places: Iterable[str], folder: Path) -> Iterable[str]:
    """The folders of a PATH; one that has such a program is a folder of links to its others."""
    for at, place in enumerate(places):
        if not any((Path(place) / name).exists() for name in names):
            yield place
            continue
        links = folder / f"links-{at}"
        links.mkdir()
        for program in Path(place).iterdir():
            if program.name not in names:
                (links / program.name).symlink_to(program)
        yield str(links)
