"""Images: a heap and the driver around it, compiled for one processor, and the bytes of code a heap takes."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from heapwright._measure.boards.compilers import LEVELS, Compiler
from heapwright._support.errors import HeapwrightError
from heapwright._support.temporary import folder_for, temporary_folder

if TYPE_CHECKING:
    from heapwright._measure.boards.feed import FeedLayout
    from heapwright._recipes.pools import Pool
    from heapwright._recipes.recipe import Recipe

DRIVER = Path(__file__).with_name("driver")
SPECS = {"newlib-nano": "nano.specs", "newlib": None, "picolibc": "picolibc.specs"}
"""C libraries that `lib:NAME` names, and the specs file that selects them; newlib is the compiler's default."""

_ENTRIES = ("malloc", "free", "realloc")
_HANDLE_ENTRIES = {"malloc": "handle_alloc", "free": "handle_free", "realloc": "handle_realloc"}
_SUPPORT = ("memcpy", "memmove", "memset")
_LIBRARY_SUPPORT = (*_SUPPORT, "_sbrk", "sbrk", "errno", "__errno", "_impure_ptr")
# Not counted as the heap's: what firmware has anyway, and what the driver supplies.


def no_lock(prefix: str) -> tuple[str, ...]:
    """Hooks of a heap for several threads where there is one: what is measured is what the lock is held for."""
    upper = prefix.upper()
    return (
        f"-D{upper}_LOCK(heap)=((void)(heap),(uintptr_t)0)",
        f"-D{upper}_UNLOCK(heap,key)=((void)(heap),(void)(key))",
        "-D_Thread_local=",
    )


@dataclass(frozen=True)
class BoardHeap:
    """Heap to measure on a board: exactly one of a recipe, the name of a C library, and a C file.

    `files`: of a recipe that goes into a kernel, heap and glue by their names, for the prefix `target`.
    """

    name: str
    recipe: Recipe | None = None
    library: str | None = None
    file: Path | None = None
    files: Mapping[str, str] | None = None

    @classmethod
    def of_library(cls, library: str) -> BoardHeap:
        """The heap of a C library for the target. Raises HeapwrightError where it is none of `SPECS`."""
        if library not in SPECS:
            raise HeapwrightError(f"lib:{library}: no C library that can be measured; known: {', '.join(SPECS)}")
        return cls(f"lib:{library}", library=library)

    @classmethod
    def of_file(cls, file: Path) -> BoardHeap:
        """The heap in a C file. Raises HeapwrightError where there is no such file."""
        if not file.is_file():
            raise HeapwrightError(f"{file}: no such file; a C heap defines heap_init, heap_malloc and heap_free")
        return cls(str(file), file=file)

    @classmethod
    def of_recipe(cls, recipe: Recipe) -> BoardHeap:
        """The heap of a recipe, called by its name or hash."""
        return cls(recipe.name or recipe.hash, recipe=recipe)

    @property
    def moving(self) -> Pool | None:
        """The pool of a recipe whose objects move; None for every other heap."""
        pool = self.recipe.canonical().pools[0] if self.recipe else None
        return pool if pool and pool.moves_objects else None

    @property
    def reference_bytes(self) -> int:
        """Bytes in front of the arena that the program keeps for each object, which the heap moves."""
        return 4 * self.moving.reference_words if self.moving else 0

    def symbol(self, entry: str) -> str:
        """The name of its malloc, free or realloc."""
        if self.recipe:
            return "target_" + (_HANDLE_ENTRIES[entry] if self.moving else entry)
        return f"heap_{entry}" if self.file else entry

    def driver_flags(self) -> tuple[str, ...]:
        """What the driver is compiled with; see driver/driver.c."""
        if self.recipe and self.moving:
            words = self.moving.reference_words
            return "-DHEAP_MOVING", f"-DREFERENCE_WORDS={words}", f"-DHEAP_ALIGN={self.recipe.align}u"
        return ("-DHEAP_GENERATED" if self.recipe else "-DHEAP_FILE" if self.file else "-DHEAP_LIBRARY",)


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
    """A linked image: loadable pieces as (address, bytes), and symbols by name."""

    path: Path
    segments: tuple[tuple[int, bytes], ...]
    symbols: dict[str, int]
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
            symbols = {item.name: int(item["st_value"]) & ~_thumb_bit(item) for item in table.iter_symbols()}
            return cls(path, segments, symbols, compiler)


def _thumb_bit(symbol: Any) -> int:
    """Arm sets the lowest bit of a Thumb function's address; RISC-V never does."""
    return 1 if symbol["st_info"]["type"] == "STT_FUNC" else 0


@cache
def _shared_folder() -> Path:
    """Where everything lies that is the same for all heaps, until the process ends."""
    return folder_for(_shared_folder, "target")


_shared: dict[Any, Any] = {}
_shared_lock = threading.Lock()


def _shared_object(compiler: Compiler, source: Path, flags: tuple[str, ...]) -> Path:
    """One of the driver's files, compiled once in this process."""
    with _shared_lock:
        key = compiler, source.name, flags
        if key not in _shared:
            output = _shared_folder() / f"{len(_shared)}-{source.stem}.o"
            compiler.compile(source, output, flags)
            _shared[key] = output
        return Path(_shared[key])


def _read_size(path: Path) -> Size:
    from elftools.elf.elffile import ELFFile

    with path.open("rb") as file:
        return _size(ELFFile(file))


def _size(elf: Any) -> Size:
    from elftools.elf.constants import SH_FLAGS

    text = data = bss = 0
    for section in elf.iter_sections():
        flags, bytes_ = section["sh_flags"], section["sh_size"]
        if not flags & SH_FLAGS.SHF_ALLOC or section.name == ".stack":
            continue
        if section["sh_type"] == "SHT_NOBITS":
            bss += bytes_
        elif flags & SH_FLAGS.SHF_WRITE:
            data += bytes_
        else:
            text += bytes_
    return Size(text, data, bss)


@dataclass
class Workshop:
    """A temporary folder in which one heap is compiled; use it in a `with` statement.

    `generated`: a recipe's files by name, where they are at hand.
    """

    heap: BoardHeap
    compiler: Compiler
    generated: dict[str, str] | None = None
    _objects: dict[tuple[str, tuple[str, ...]], Path] = field(default_factory=dict)
    _images: dict[str, Image] = field(default_factory=dict)

    def __enter__(self) -> Workshop:
        self._folder = temporary_folder("target")
        self.folder = self._folder.__enter__()
        self._sources = self._heap_sources()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._folder.__exit__(*exception)

    def image(self, level: str = LEVELS[0], layout: FeedLayout | None = None) -> Image:
        """The heap with the driver around it, the heap compiled at this level of optimisation.

        One image serves every layout: only a kernel gets its arena at compile time.
        """
        if level not in self._images:
            objects = [
                _start_up(self.compiler),
                _shared_object(self.compiler, DRIVER / "driver.c", ("-Os", *self.heap.driver_flags())),
                *self._support(),
                *self._heap_objects(level),
            ]
            linked = self._link(objects, f"image-{level}", [_entry(self.compiler)])
            self._images[level] = Image.read(linked, self.compiler)
        return self._images[level]

    def code_bytes(self, level: str = LEVELS[0]) -> dict[str, int]:
        """Bytes of code, constants and initialised data that a firmware links for each call alone and for all three.

        Keys: malloc, free, realloc, total; and the total's text, data and bss. What a firmware has anyway (memcpy,
        memset, errno) and the driver's sbrk are not counted.
        """
        results = {}
        for entry in _ENTRIES:
            size = self.size_of((entry,), level)
            results[entry] = size.text + size.data
        total = self.size_of(_ENTRIES, level)
        return results | {"total": total.text + total.data} | vars(total)

    def total_bytes(self, level: str = LEVELS[0]) -> int:
        """The total of `code_bytes`, with one link in place of four."""
        size = self.size_of(_ENTRIES, level)
        return size.text + size.data

    def size_of(self, entries: tuple[str, ...], level: str = LEVELS[0]) -> Size:
        """What a firmware links for these calls, beyond what it has anyway."""
        objects = self._heap_objects(level)
        kept = [self.heap.symbol(entry) for entry in entries]
        return self._size_with(objects, kept, f"size-{level}-{'-'.join(entries)}") - self._size_without()

    def _size_without(self) -> Size:
        """Size of an image without a heap, measured once for all recipes and C files, and once for each C library.

        A library has its own memcpy and errno.
        """
        key = self.compiler, self.heap.library
        with _shared_lock:
            result = _shared.get(key)
        if result is None:
            result = self._size_with([], [], "size-without")
            with _shared_lock:
                _shared[key] = result
        assert isinstance(result, Size)
        return result

    def _size_with(self, objects: list[Path], kept: list[str], name: str) -> Size:
        own = [_shared_object(self.compiler, DRIVER / "sbrk.c", ("-Os",))] if self.heap.library else []
        kept = [*(_LIBRARY_SUPPORT if self.heap.library else _SUPPORT), *kept]
        flags = [*(f"-Wl,-u,{symbol}" for symbol in kept), "-Wl,-e,memcpy"]
        return _read_size(self._link([*own, *self._support(), *objects], name, flags))

    def _support(self) -> list[Path]:
        """The functions that compilers call by themselves; a C library has its own."""
        return [] if self.heap.library else [_memory_functions(self.compiler)]

    def _compile(self, source: Path, *flags: str) -> Path:
        key = str(source), flags
        if key not in self._objects:
            variant = hashlib.sha256(repr(key).encode()).hexdigest()[:12]
            output = self.folder / f"{source.stem}-{variant}.o"
            self.compiler.compile(source, output, flags)
            self._objects[key] = output
        return self._objects[key]

    def _link(self, objects: list[Path], name: str, flags: list[str]) -> Path:
        specs = SPECS[self.heap.library] if self.heap.library else None
        if specs:
            flags = [*flags, f"--specs={specs}"]
        output = self.folder / f"{name}.elf"
        self.compiler.link(objects, output, [_script(self.compiler), *flags], library=bool(self.heap.library))
        return output

    def _heap_objects(self, level: str) -> list[Path]:
        """The compiled heap, at any alignment: a trace has no types."""
        from heapwright._generate.emit import align_unchecked, replayed_secret

        checked = self.heap.recipe is not None and self.heap.recipe.checks != "none"
        secret = [replayed_secret("target")] if checked else []  # so that it leaves the metadata that a replay leaves
        flags = f"-{level}", f"-D{align_unchecked('target')}", *no_lock("target"), *(f"-D{item}" for item in secret)
        return [self._compile(source, *flags, f"-I{source.parent}") for source in self._sources]

    def _heap_sources(self) -> list[Path]:
        if self.heap.recipe:
            from heapwright._generate import generated_files
            from heapwright._recipes.policy import require_no_sites, require_one_memory

            require_one_memory(self.heap.recipe)
            require_no_sites(self.heap.recipe)
            for name, text in (self.generated or generated_files(self.heap.recipe, "target")).items():
                (self.folder / name).write_text(text, encoding="utf-8")
            return [self.folder / "target_heap.c"]
        if self.heap.file:
            return [self.heap.file.resolve()]
        self._require_library()
        return []

    def _require_library(self) -> None:
        library = self.heap.library
        assert library is not None
        family = self.compiler.cpu.family
        if self.compiler.kind != "gcc":
            raise HeapwrightError(f"lib:{library}: only gcc links Debian's C libraries; use gcc", parameter="compiler")
        probe = SPECS[library] or "libc.a"
        if family == "riscv" and library != "picolibc":
            raise HeapwrightError(f"lib:{library}: Debian has no newlib for RISC-V; use lib:picolibc")
        if not self.compiler.has_file(probe):
            package = "picolibc" if library == "picolibc" else "libnewlib"
            raise HeapwrightError(
                f"lib:{library}: not installed; apt-get install --no-install-recommends {package}-arm-none-eabi"
            )


def link_alone(compiler: Compiler, objects: Sequence[Path], output: Path) -> Image:
    """Link an image without a C library, from objects that define hw_main(). Raises HeapwrightError as `link` does."""
    objects = _with_start(compiler, objects)
    compiler.link(objects, output, [_script(compiler), _entry(compiler)], library=False)
    return Image.read(output, compiler)


def named_nowhere(compiler: Compiler, objects: Sequence[Path]) -> list[str]:
    """The symbols that an image of these objects, as `link_alone` makes it, would lack.

    Symbols of the linker's script begin with `hw_`, symbols of the compiler's library with two underscores.
    """
    linked = _with_start(compiler, objects)
    made: set[str] = set().union(*(_symbols(path, defined=True) for path in linked))
    wanted: set[str] = set().union(*map(undefined, linked))
    return sorted(item for item in wanted - made if not item.startswith(("hw_", "__")))


def undefined(path: Path) -> set[str]:
    """The symbols that an object file wants of others."""
    return _symbols(path, defined=False)


def _symbols(path: Path, *, defined: bool) -> set[str]:
    from elftools.elf.elffile import ELFFile

    with path.open("rb") as file:
        table: Any = ELFFile(file).get_section_by_name(".symtab")
        return {
            item.name for item in table.iter_symbols() if item.name and defined != (item["st_shndx"] == "SHN_UNDEF")
        }


def _with_start(compiler: Compiler, objects: Sequence[Path]) -> list[Path]:
    return [_start_up(compiler), *objects, _memory_functions(compiler)]


def _start_up(compiler: Compiler) -> Path:
    return _shared_object(compiler, DRIVER / f"start_{compiler.cpu.family}.c", ("-Os",))


def _memory_functions(compiler: Compiler) -> Path:
    """What compilers call by themselves."""
    return _shared_object(compiler, DRIVER / "memory.c", ("-O2", "-fno-builtin", *_no_loop_idioms(compiler)))


def _script(compiler: Compiler) -> str:
    """The linker's script, with the addresses of this processor's memory."""
    memory, path = compiler.cpu.memory, _shared_folder() / f"{compiler.cpu.name}.ld"
    template = Template((DRIVER / f"{compiler.cpu.family}.ld").read_text(encoding="utf-8"))
    places = {name: f"{value:#010x}" for name, value in vars(memory).items()}
    with _shared_lock:
        if not path.exists():
            path.write_text(template.substitute(places), encoding="utf-8")
    return f"-T{path}"


def _entry(compiler: Compiler) -> str:
    return "-Wl,-e,hw_entry" if compiler.cpu.family == "riscv" else "-Wl,-e,hw_reset"


def _no_loop_idioms(compiler: Compiler) -> tuple[str, ...]:
    """Keeps a compiler from turning memcpy's loop into a call of memcpy."""
    return ("-fno-tree-loop-distribute-patterns",) if compiler.kind == "gcc" else ()
