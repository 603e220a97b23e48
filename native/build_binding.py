"""Writes the C source of the cffi binding (API mode, stable ABI) from the headers themselves."""

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import cffi

ROOT = Path(__file__).resolve().parent.parent

HEADERS = ("types.h", "calls.h", "native.h", "workloads.h", "counter.h", "logs.h")


def text_of(path: str) -> str:
    """A header without comments."""
    return re.sub(r"/\*.*?\*/", "", (ROOT / path).read_text(encoding="utf-8"), flags=re.DOTALL)


def numbers(path: str) -> str:
    """Macros of a header that are integers; the C compiler evaluates them."""
    result = re.findall(r"^#define (\w+) +\d\w* *$", text_of(path), flags=re.MULTILINE)
    return "".join(f"#define {name} ...\n" for name in result)


def enums(path: str) -> str:
    """The enums of a header."""
    return "".join(f"{enum}\n" for enum in re.findall(r"^enum [^;]*;", text_of(path), flags=re.MULTILINE))


def declarations(path: str) -> str:
    """Everything but preprocessor lines, which is what cffi reads."""
    return "".join(f"{line}\n" for line in text_of(path).splitlines() if not line.startswith("#"))


def digest() -> str:
    """Of the sources of the core and of the replay engine: SHA-256, in hexadecimal."""
    result = hashlib.sha256()
    sources = [path for folder in ("csrc", "native") for path in (ROOT / folder).rglob("*.[ch]")]
    for path in sorted(sources, key=lambda path: path.relative_to(ROOT).as_posix()):
        text = path.read_bytes()
        result.update(f"{path.relative_to(ROOT).as_posix()} {len(text)}\n".encode() + text)
    return result.hexdigest()


def commit() -> str:
    """The last commit that changed them, where this is a checkout; "" elsewhere, as in a source distribution."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        return ""
    words = [git, "-C", str(ROOT), "log", "-1", "--format=%H", "--", "csrc", "native"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()


BUILT = "const char *hw_engine_digest(void);\nconst char *hw_engine_commit(void);\n"
"""Functions that identify the build of the engine."""


def built() -> str:
    """The same as C."""
    texts = {"digest": digest(), "commit": commit()}
    return "".join(
        f'static const char *hw_engine_{name}(void)\n{{\n    return "{text}";\n}}\n' for name, text in texts.items()
    )


def main(output: Path) -> None:
    """Write the binding of the engine's headers, and of the numbers in the files that the recorder writes."""
    ffi = cffi.FFI()
    for path in ("csrc/policy.h", *(f"native/{name}" for name in HEADERS)):
        ffi.cdef(declarations(path) + numbers(path))
    ffi.cdef('extern "Python" int hw_go_on(void *, const struct hw_so_far *);')
    ffi.cdef(enums("recorder/raw_format.h") + numbers("recorder/raw_format.h"))
    ffi.cdef(BUILT)
    source = built() + "".join(f'#include "{name}"\n' for name in ("policy.h", *HEADERS, "raw_format.h"))
    ffi.set_source("heapwright._native", source, py_limited_api=True)
    ffi.emit_c_code(str(output))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
