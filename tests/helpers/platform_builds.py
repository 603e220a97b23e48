"""What the tests of platforms share: programs that may not be installed, compilers, emulated boards."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import originals
from tool_requirements import library, missing, tool

BOARDS = Path(__file__).resolve().parents[1] / "c" / "boards"
CORTEX_M3 = ("-mcpu=cortex-m3", "-mthumb")
NANO, NOSYS = "--specs=nano.specs", "--specs=nosys.specs"
PICOLIBC = ("--specs=picolibc.specs", "--oslib=semihost", "--crt0=hosted")


def fetched(sources: Callable[[], Path]) -> Path:
    """The folder of sources from elsewhere."""
    try:
        return sources()
    except originals.MissingError as error:
        missing(str(error))


def run(command: Sequence[str | Path], folder: Path, seconds: int = 120) -> str:
    """What a program printed on stdout; a failure shows what it printed."""
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def emulate(image: Path, machine: str = "mps2-an385", bits: str = "arm", more: Sequence[str] = ()) -> str:
    """What an image printed on an emulated board, by semihosting."""
    qemu = [tool(f"qemu-system-{bits}"), "-M", machine, "-display", "none", "-monitor", "none", "-serial", "none"]
    qemu += ["-chardev", "stdio,id=out", "-semihosting-config", "enable=on,target=native,chardev=out"]
    qemu += ["-bios", "none"] if bits.startswith("riscv") else []
    return run([*qemu, *more, "-kernel", image], image.parent)


def cross_compiler(flags: Iterable[str | Path], compiler: str = "arm-none-eabi-gcc") -> str:
    """The path of a cross compiler that links programs with the C library which these flags choose."""
    choice = [str(flag) for flag in flags if str(flag).startswith(("-m", "--specs=", "--oslib=", "--crt0="))]
    specs = [flag.removeprefix("--specs=").removesuffix(".specs") for flag in choice if flag.startswith("--specs=")]
    return library(" and ".join(specs), compiler, choice)


def picolibc_memory(flash: int, ram: int) -> str:
    """Picolibc's linker script asks where memory is."""
    sizes = {"__flash": flash, "__flash_size": 1 << 22, "__ram": ram, "__ram_size": 1 << 20}
    return "-Wl," + ",".join(f"--defsym={name}={value:#x}" for name, value in sizes.items())


def page_commands(folder: Path, first: str, naming: str = "") -> list[str]:
    """The commands of the page in a folder that begin so and name something."""
    page = next(folder.glob("*_README.md")).read_text()
    return [line.strip() for line in page.splitlines() if line.startswith(f"    {first}") and naming in line]
