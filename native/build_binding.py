"""Writes the C source of the cffi binding (API mode, stable ABI) from the headers themselves."""

import re
import sys
from pathlib import Path

import cffi

ROOT = Path(__file__).resolve().parent.parent


def declarations(header: Path) -> str:
    """The header without comments and preprocessor lines, which is what cffi reads."""
    text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.DOTALL)
    return "\n".join(line for line in text.splitlines() if not line.startswith("#"))


def main(output: Path) -> None:
    """Write the binding of native/native.h and native/counter.h to `output`."""
    ffi = cffi.FFI()
    ffi.cdef(declarations(ROOT / "csrc" / "policy.h"))
    ffi.cdef(declarations(ROOT / "native" / "native.h"))
    ffi.cdef(declarations(ROOT / "native" / "counter.h"))
    ffi.set_source("heapwright._native", '#include "native.h"\n#include "counter.h"', py_limited_api=True)
    ffi.emit_c_code(str(output))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
