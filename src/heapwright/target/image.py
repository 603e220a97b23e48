"""Images: a heap and the driver around it, compiled for one processor, and the bytes of code a heap takes."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heapwright.errors import HeapwrightError
from heapwright.target.compilers import LEVELS, Compiler

if TYPE_CHECKING:
    from heapwright.recipes import Recipe

DRIVER = Path(__file__).with_name("driver")
SPECS = {"newlib-nano": "nano.specs", "newlib": None, "picolibc": "picolibc.specs"}
"""C libraries that `lib:NAME` names, and the specs file that selects them; newlib is the compiler's default."""

ENTRIES = ("malloc", "free", "realloc")
_SUPPORT = ("memcpy", "memmove", "memset")
_LIBRARY_SUPPORT = (*_SUPPORT, "_sbrk", "sbrk", "errno", "__errno", "_impure_ptr")
# Not counted as the heap's: what firmware has anyway, and what the driver supplies.


@dataclass(frozen=True)
class Heap:
    """What is measured: exactly one of a recipe, the name of a C library, and a C file."""

    name: str
    recipe: Recipe | None = None
    library: str | None = None
    file: Path | None = None

    @classmethod
    def resolve(cls, name: str) -> Heap:
        """The heap that a command line names: zoo NAME, RECIPE.toml, STUDY:ID, lib:NAME or FILE.c.

        Raises HeapwrightError where nothing has that name.
        """
        if name.startswith("lib:"):
            library = name.removeprefix("lib:")
            if library not in SPECS:
                raise HeapwrightError(f"{name}: no C library that can be measured; known: {', '.join(SPECS)}")
            return cls(name, library=library)
        if name.endswith(".c"):
            if not Path(name).is_file():
                raise HeapwrightError(f"{name}: no such file; a C heap defines heap_init, heap_malloc and heap_free")
            return cls(name, file=Path(name))
        from heapwright.recipes import resolve_heap

        return cls(name, recipe=resolve_heap(name))

    @property
    def reference_words(self) -> int:
        """Pointers that the caller keeps for each object that moves; 0 where objects stay."""
        pool = self.recipe.pools[0] if self.recipe else None
        return pool.reference_words if pool is not None and pool.kind == "compact" else 0

    def symbol(self, entry: str) -> str:
        """The function behind one of the calls ENTRIES."""
        if self.reference_words:
            return "target_handle_" + {"malloc": "alloc"}.get(entry, entry)
        return ("target_" if self.recipe else "heap_" if self.file else "") + entry


@dataclass(frozen=True)
class Size:
    """Bytes of an image's sections: code and constants, initialised data, zeroed data."""

    text: int
    data: int
    bss: int

    def __sub__(self, other: Size) -> Size:
        return Size(self.text - other.text, self.data - other.data, self.bss - other.bss)


@dataclass(frozen=True)
class Image:
    """A linked image: loadable pieces as (address, bytes), symbols by name, and its sizes."""

    path: Path
    segments: tuple[tuple[int, bytes], ...]
    symbols: dict[str, int]
    size: Size
    compiler: Compiler

    @classmethod
    def read(cls, path: Path, compiler: Compiler) -> Image:
        """Read an ELF file."""
        from elftools.elf.elffile import ELFFile

        with path.open("rb") as file:
            elf = ELFFile(file)
            segments = tuple(
                (segment["p_paddr"], segment.data())
                for segment in elf.iter_segments("PT_LOAD")
                if segment["p_filesz"] and segment.data()
            )
            table: Any = elf.get_section_by_name(".symtab")
            symbols = {one.name: int(one["st_value"]) & ~_thumb_bit(one) for one in table.iter_symbols()}
            return cls(path, segments, symbols, _size(elf), compiler)


def _thumb_bit(symbol: Any) -> int:
    """Arm sets the lowest bit of a Thumb function's address; RISC-V never does."""
    return 1 if symbol["st_info"]["type"] == "STT_FUNC" else 0


def _size(elf: Any) -> Size:
    text = data = bss = 0
    for section in elf.iter_sections():
        flags, bytes_ = section["sh_flags"], section["sh_size"]
        if not flags & 2 or section.name == ".stack":  # SHF_ALLOC
            continue
        if section["sh_type"] == "SHT_NOBITS":
            bss += bytes_
        elif flags & 1:  # SHF_WRITE
            data += bytes_
        else:
            text += bytes_
    return Size(text, data, bss)


@dataclass
class Workshop:
    """A temporary folder in which one heap is compiled; use it in a `with` statement."""

    heap: Heap
    compiler: Compiler
    _objects: dict[tuple[str, tuple[str, ...]], Path] = field(default_factory=dict)
    _sizes: dict[tuple[str, tuple[str, ...]], Size] = field(default_factory=dict)

    def __enter__(self) -> Workshop:
        self._folder = tempfile.TemporaryDirectory(prefix="heapwright-target-")
        self.folder = Path(self._folder.name)
        self._sources = self._heap_sources()
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def image(self, level: str = LEVELS[0]) -> Image:
        """The heap with the driver around it, the heap compiled at this level of optimisation."""
        family = self.compiler.cpu.family
        kind = "GENERATED" if self.heap.recipe else "FILE" if self.heap.file else "LIBRARY"
        words = self.heap.reference_words
        defines = [f"-DHEAP_{kind}", *([f"-DHEAP_HANDLES={words}"] if words else [])]
        objects = [
            self._compile(DRIVER / f"start_{family}.c", "-Os"),
            self._compile(DRIVER / "driver.c", "-Os", *defines, f"-I{self.folder}"),
            *self._support(),
            *(self._compile(source, f"-{level}", f"-I{source.parent}") for source in self._sources),
        ]
        entry = "hw_entry" if family == "riscv" else "hw_reset"
        return self._link(objects, f"image-{level}", [f"-Wl,-e,{entry}"])

    def code_bytes(self, level: str = LEVELS[0]) -> dict[str, int]:
        """Bytes of code, constants and initialised data that a firmware links for each call alone and for all three.

        Keys: malloc, free, realloc, total; and the total's text, data and bss. What a firmware has anyway (memcpy,
        memset, errno) and the driver's sbrk are not counted.
        """
        sizes = {entry: self.size_of((entry,), level) for entry in ENTRIES}
        found = {entry: size.text + size.data for entry, size in sizes.items()}
        total = self.size_of(ENTRIES, level)
        return found | {"total": total.text + total.data} | vars(total)

    def total_bytes(self, level: str = LEVELS[0]) -> int:
        """The total of `code_bytes`, with two links in place of five."""
        size = self.size_of(ENTRIES, level)
        return size.text + size.data

    def size_of(self, entries: tuple[str, ...], level: str = LEVELS[0]) -> Size:
        """What a firmware links that makes these of the calls ENTRIES, counted as for `code_bytes`."""
        return self._linked_size(level, entries) - self._linked_size(level, ())

    def _linked_size(self, level: str, entries: tuple[str, ...]) -> Size:
        if (level, entries) not in self._sizes:
            self._sizes[level, entries] = self._link_size(level, entries)
        return self._sizes[level, entries]

    def _link_size(self, level: str, entries: tuple[str, ...]) -> Size:
        sources = [self._compile(source, f"-{level}", f"-I{source.parent}") for source in self._sources]
        support = self._compile(DRIVER / "sbrk.c", "-Os") if self.heap.library else None
        objects = [*([support] if support else []), *self._support(), *sources]
        keep = [
            *(_LIBRARY_SUPPORT if self.heap.library else _SUPPORT),
            *map(self.heap.symbol, entries),
        ]
        name = f"size-{level}-{'-'.join(entries)}"
        return self._link(objects, name, [*(f"-Wl,-u,{symbol}" for symbol in keep), "-Wl,-e,memcpy"]).size

    def _support(self) -> list[Path]:
        """The functions that compilers call by themselves; a C library has its own."""
        if self.heap.library:
            return []
        return [self._compile(DRIVER / "memory.c", "-O2", "-fno-builtin", *_no_loop_idioms(self.compiler))]

    def _compile(self, source: Path, *flags: str) -> Path:
        key = str(source), flags
        if key not in self._objects:
            variant = hashlib.sha256(repr(key).encode()).hexdigest()[:12]
            output = self.folder / f"{source.stem}-{variant}.o"
            self.compiler.compile(source, output, flags)
            self._objects[key] = output
        return self._objects[key]

    def _link(self, objects: list[Path], name: str, flags: list[str]) -> Image:
        script = DRIVER / f"{self.compiler.cpu.family}.ld"
        specs = SPECS[self.heap.library] if self.heap.library else None
        if specs:
            flags = [*flags, f"--specs={specs}"]
        output = self.folder / f"{name}.elf"
        self.compiler.link(objects, output, [f"-T{script}", *flags], library=bool(self.heap.library))
        return Image.read(output, self.compiler)

    def _heap_sources(self) -> list[Path]:
        if self.heap.recipe:
            from heapwright.generate import generate

            paths = generate(self.heap.recipe, self.folder, "target")
            return [path for path in paths if path.name == "target_heap.c"]
        if self.heap.file:
            return [self.heap.file.resolve()]
        self._require_library()
        return []

    def _require_library(self) -> None:
        library = self.heap.library
        assert library is not None
        family = self.compiler.cpu.family
        if self.compiler.kind != "gcc":
            raise HeapwrightError(f"lib:{library}: only gcc links Debian's C libraries; use --compiler gcc")
        probe = SPECS[library] or "libc.a"
        if family == "riscv" and library != "picolibc":
            raise HeapwrightError(f"lib:{library}: Debian has no newlib for RISC-V; use lib:picolibc")
        if not self.compiler.has_file(probe):
            package = "picolibc" if library == "picolibc" else "libnewlib"
            raise HeapwrightError(
                f"lib:{library}: not installed; apt-get install --no-install-recommends {package}-arm-none-eabi"
            )


def _no_loop_idioms(compiler: Compiler) -> tuple[str, ...]:
    """Keeps a compiler from turning memcpy's loop into a call of memcpy."""
    return ("-fno-tree-loop-distribute-patterns",) if compiler.kind == "gcc" else ()
