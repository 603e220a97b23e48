"""The strongest allocators of crates, each built by cargo into a folder of its own, and how they are called from C.

`bench/crates` is one small crate with a feature for each of them; its library is linked with the driver, so that a call
goes straight to the allocator. None is part of the repository.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import originals

CRATES = Path(__file__).resolve().parent / "crates"

_LIBC = """\
style = "libc"
word_size = 64
align = 8
flags = ["-Wl,-u,{prefix}malloc,-u,{prefix}free,-u,{prefix}realloc", "{library}", "-lstdc++", "-lpthread", "-ldl"]
malloc = "{prefix}malloc"
free = "{prefix}free"
realloc = "{prefix}realloc"
"""
_ARENA = """\
style = "arena"
word_size = 64
align = 8
flags = ["-Wl,-u,rival_init,-u,rival_malloc,-u,rival_free", "{library}", "-lpthread", "-ldl", "-lm"]
init = "heap = rival_init(memory, bytes)"
malloc = "rival_malloc(heap, size)"
free = "rival_free(heap, pointer)"
prologue = \"\"\"
void *rival_init(void *memory, size_t bytes);
void *rival_malloc(void *heap, size_t size);
void rival_free(void *heap, void *pointer);
\"\"\"
"""
_READY = """\
prologue = \"\"\"
int rpmalloc_initialize(void);
static void __attribute__((constructor)) make_ready(void) { rpmalloc_initialize(); }
\"\"\"
"""

RIVALS = {
    "snmalloc": ("snmalloc-sys", _LIBC.replace("{prefix}", "sn_")),
    "mimalloc 3": ("libmimalloc-sys", _LIBC.replace("{prefix}", "mi_")),
    "rpmalloc": ("rpmalloc-sys", _LIBC.replace("{prefix}", "rp") + _READY),
    "talc": ("talc", _ARENA),
    "rlsf": ("rlsf", _ARENA),
}
"""By name: the feature of `bench/crates`, and its adapter."""


def adapter(name: str) -> Path:
    """The adapter of a competitor, built. Raises MissingError where cargo cannot have or build its crate."""
    feature, text = RIVALS[name]
    folder = originals.CACHE / "rivals" / feature
    library = folder / "release" / "librivals.a"
    with originals.alone():
        if not library.exists() or library.stat().st_mtime < max(path.stat().st_mtime for path in CRATES.iterdir()):
            copied = folder / "crate"
            shutil.copytree(CRATES, copied, dirs_exist_ok=True)
            command = ["cargo", "build", "--release", "--locked", "--features", feature, "--target-dir", str(folder)]
            originals.run(command, copied, f"crate {feature}", {"CARGO_HOME": str(originals.CACHE / "cargo")})
        path = folder / "rival.toml"
        path.write_text(text.replace("{library}", str(library)))
    return path
