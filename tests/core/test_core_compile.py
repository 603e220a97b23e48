"""The core compiles without a warning, freestanding, alone, header by header."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from c_programs import CSRC, ROOT, STRICT, compile_c
from run_length import brief, by_turns
from tool_requirements import compilers, syntax

HEADERS = sorted(path.relative_to(CSRC).as_posix() for path in CSRC.rglob("*.h"))


def complaints(compiler: str, source: Path, *flags: str) -> str:
    """What the strictest warnings say; empty where there is nothing to say."""
    command = [compiler, *STRICT, *flags, f"-I{CSRC}", "-fsyntax-only", str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stderr if done.returncode else ""


@pytest.mark.parametrize("compiler", compilers())
@pytest.mark.parametrize("build", [["-ffreestanding"], ["-ffreestanding", "-DHW_EXPLORE"], ["-m32", "-ffreestanding"]])
def test_no_warning(compiler: str, build: list[str]) -> None:
    more = ["-Wshadow", "-Wstrict-prototypes", "-Wmissing-prototypes", "-Wcast-qual", "-Wundef"]
    if "-m32" in build:
        syntax(compiler, *build)
    assert complaints(compiler, ROOT / "tests" / "c" / "strict_compile.c", *build, *more) == ""


@pytest.mark.parametrize(
    ("header", "compiler"),
    [(header, item) for turn, header in enumerate(HEADERS) for item in by_turns(compilers(), turn)],
)
def test_every_header_stands_alone(tmp_path: Path, compiler: str, header: str) -> None:
    source = tmp_path / "alone.c"
    source.write_text(f'#include "{header}"\n#include "{header}"\nextern int nothing;\n')
    # Outside a replay the file that includes threads.h brings the hooks of its lock.
    build = ["-DHW_EXPLORE"] if header.startswith("threads") else []
    assert complaints(compiler, source, "-ffreestanding", "-Wno-unused-function", *build) == ""


@pytest.mark.parametrize("compiler", compilers())
def test_a_warning_would_be_seen(tmp_path: Path, compiler: str) -> None:
    source = tmp_path / "warns.c"
    source.write_text(
        '#include "check.h"\nunsigned char cut(uint32_t x);\nunsigned char cut(uint32_t x) { return x; }\n'
    )
    assert "conversion" in complaints(compiler, source)


@pytest.mark.parametrize(
    ("compiler", "level"),
    [(item, brief(level, "-O1")) for item, level in zip(compilers(), ("-O1", "-O0"), strict=False)],
)
def test_no_libc_is_called(tmp_path: Path, compiler: str, level: str) -> None:
    """Firmware links the core without a C library: at most the compiler's own memset and memcpy may be left."""
    target = tmp_path / "core.o"
    source = ROOT / "tests" / "c" / "strict_compile.c"
    subprocess.run([compiler, "-std=c11", level, "-ffreestanding", f"-I{CSRC}", "-c", source, "-o", target], check=True)
    symbols = subprocess.run(["nm", "--undefined-only", target], capture_output=True, text=True, check=True).stdout
    assert {line.split()[-1] for line in symbols.splitlines()} <= {"memset", "memcpy", "_GLOBAL_OFFSET_TABLE_"}


@pytest.mark.parametrize("core", [[], ["-D__riscv"], ["-U__GNUC__"]], ids=["counts bits", "tables", "neither"])
def test_bits_are_found_in_every_way(tmp_path: Path, core: list[str]) -> None:
    """Cores without an instruction for it look into tables: here they are compiled for one that has it."""
    program = tmp_path / "bits.c"
    program.write_text("""
        #include "arithmetic.h"
        int main(void)
        {
            uint32_t random = 1;
            for (uint32_t bit = 0; bit < 32; bit++) {
                for (uint32_t i = 0; i < 1000; i++) {
                    random = random * 1664525u + 1013904223u;
                    const uint32_t only = UINT32_C(1) << bit;
                    const uint32_t below = i ? random & (only - 1u) : 0;
                    const uint32_t above = i ? random & ~(only - 1u) : 0;
                    if (highest_bit(only | below) != bit || lowest_bit(only | above) != bit) {
                        return 1;
                    }
                }
            }
            return 0;
        }
    """)
    assert subprocess.run([compile_c(tmp_path / "bits", program, flags=[*STRICT, *core])]).returncode == 0
