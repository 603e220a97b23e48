"""Adapters: how to build a third-party allocator and how to call it, each a TOML file.

An adapter names the C sources or the library, what they need to compile, and the calls; `docs/adapters.md` is the
reference of every key. Ready-made ones for well-known allocators lie in this folder; the sources themselves do not.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from heapwright._support.errors import ForeignHeapError, HeapwrightError, unknown_key
from heapwright._support.resources import toml_files, toml_text
from heapwright._support.toml import parse_toml

WordSize = Literal[32, 64]

SHIPPED = "heapwright._heaps.foreign.adapters"
"""Where the ready-made adapters lie."""

BYTES = "{bytes}"
"""What stands for the size of the arena, as a number, in the value of a define: the heap is compiled for each size."""

LARGER = re.compile(r"\{bytes > (\d+)\}")
"""What stands for 1 where the arena is larger, else for 0: the heap is compiled for either."""

CAPACITY = "{capacity}"
"""The same for a heap that is compiled once: a constant where it bounds its array, a variable inside of functions."""

_NAME = re.compile(r"[A-Za-z_]\w*")
_OWN_KEYS = ("style", "extends")


class Adapter(BaseModel):
    """How to build and call one allocator. Calls are a function's name, or C in terms of the names in `ARGUMENTS`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str = ""
    extends: str = ""
    source: str = ""
    about: str = ""
    style: Literal["libc", "arena"]

    sources: tuple[str, ...] = ()
    library: str = ""
    package: str = ""

    word_size: WordSize = 32
    defines: dict[str, str | int] = {}
    include_dirs: tuple[str, ...] = ()
    headers: dict[str, str] = {}
    flags: tuple[str, ...] = ()
    prologue: str = ""
    epilogue: str = ""

    array: str = ""
    init: str = ""
    malloc: str = "malloc"
    free: str = "free"
    realloc: str = ""
    calloc: str = ""
    aligned_alloc: str = ""
    usable_size: str = ""
    handle: str = ""
    pointer: str = ""

    align: int = Field(default=0, ge=0)
    zeroed: bool = False
    min_arena: int = Field(default=1, ge=1)
    max_arena: int = Field(default=1 << 28, ge=1)
    unit: int = Field(default=0, ge=0)
    time_limit: float = Field(default=0.0, ge=0.0)

    @field_validator("align", "unit")
    @classmethod
    def _power_of_two(cls, value: int) -> int:
        if value & (value - 1):
            raise ValueError(f"must be a power of two, not {value}")
        return value

    @field_validator("headers")
    @classmethod
    def _relative(cls, value: dict[str, str]) -> dict[str, str]:
        outside = [name for name in value if Path(name).is_absolute() or ".." in Path(name).parts]
        if outside:
            raise ValueError(f"{outside[0]!r} is not the name of a header, such as task.h or lwip/opt.h")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Adapter:
        if self.library and self.sources:
            raise ValueError('give "sources" or a "library", not both')
        self._check_style()
        self._check_handle()
        if self.min_arena > self.max_arena:
            raise ValueError(f'"min_arena" {self.min_arena} is above "max_arena" {self.max_arena}')
        if self.has_capacity and self.max_arena >= 1 << 31:
            raise ValueError(f'"max_arena" {self.max_arena} bounds an array with {{capacity}}; give less than 2^31')
        return self

    def _check_style(self) -> None:
        """Raise ValueError if the memory of the heap does not agree with its style."""
        bounded = self.is_sized or self.has_capacity
        if self.style == "libc" and (self.init or self.array or bounded):
            raise ValueError(
                '"init", "array", {bytes} and {capacity} are for style "arena"; a "libc" heap gets its own memory'
            )
        if self.style == "arena" and not (self.init or self.array):
            raise ValueError('style "arena" needs "init" (it is given the arena) or "array" (the heap has its own)')
        if self.array and not bounded:
            raise ValueError('"array" needs a define that sets its size, as in defines = {HEAP_SIZE = "{bytes}"}')

    def _check_handle(self) -> None:
        """Raise ValueError if the keys of a heap whose objects move do not agree."""
        if bool(self.handle) != bool(self.pointer) or (self.handle and not self.realloc):
            raise ValueError('a heap whose objects move needs "handle" (the type of one), "pointer" and "realloc"')
        if self.handle and (self.style == "libc" or self.calloc or self.aligned_alloc or self.usable_size):
            raise ValueError('"handle" goes with style "arena", "malloc", "free", "realloc" and "pointer" only')

    @classmethod
    def parse(cls, text: str, where: str) -> Adapter:
        """Read TOML text; `where` leads every message. Raises ForeignHeapError where it is no adapter."""
        try:
            data = parse_toml(text)
        except ValueError as error:
            raise ForeignHeapError(f"{where}: not TOML: {error}") from None
        try:
            return cls.model_validate(_with_tuples(_extended(data)))
        except ValidationError as error:
            problem = _one_line(error)
        except HeapwrightError as error:
            problem = f"extends {error}"
        raise ForeignHeapError(f"{where}: {problem}")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Adapter:
        """Read an adapter file. Raises HeapwrightError where there is none, ForeignHeapError where it is wrong."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            raise HeapwrightError(f"{path}: cannot read the adapter: {error.strerror or error}") from None
        except UnicodeDecodeError as error:
            raise ForeignHeapError(f"{path}: not TOML: {error}") from None
        return cls.parse(text, str(path))

    @property
    def is_sized(self) -> bool:
        """Whether the size of the arena is settled when the sources are compiled."""
        return self._defines(BYTES)

    @property
    def has_capacity(self) -> bool:
        """Whether the heap's array is as large as the largest arena, and the arena a part of it."""
        return self._defines(CAPACITY)

    def _defines(self, placeholder: str) -> bool:
        return any(isinstance(value, str) and placeholder in value for value in self.defines.values())


ARGUMENTS: Mapping[str, tuple[str, str]] = {
    "init": ("void", "memory, bytes"),
    "malloc": ("void *", "size"),
    "free": ("void", "pointer"),
    "realloc": ("void *", "pointer, size"),
    "calloc": ("void *", "1, size"),
    "aligned_alloc": ("void *", "align, size"),
    "usable_size": ("size_t", "pointer"),
    "pointer": ("void *", "handle"),
}
"""What each call returns and, where an adapter gives only a function's name, the arguments it is called with."""


def call(adapter: Adapter, key: str) -> str:
    """The C of a call of the adapter; empty where it has none."""
    text: str = getattr(adapter, key)
    return f"{text}({ARGUMENTS[key][1]})" if _NAME.fullmatch(text) else text


def is_name(text: str) -> bool:
    """Whether a call is given as a function's name."""
    return bool(_NAME.fullmatch(text))


def _extended(data: dict[str, Any]) -> dict[str, Any]:
    """The keys of the ready-made adapter that this one extends, overridden; tables are merged."""
    base = data.get("extends")
    if not isinstance(base, str):
        return data
    merged = _extended(parse_toml(_text(base)))
    for key, value in data.items():
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            value = {**merged[key], **value}
        merged[key] = value
    return merged


def _with_tuples(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}


def _one_line(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return unknown_key(key, Adapter.model_fields)
    message = first["msg"].removeprefix("Value error, ")
    return f'"{key}": {message}' if key else message


def is_adapter(path: Path) -> bool:
    """Whether a TOML file is an adapter: whether it has one of the keys that each adapter and no recipe has."""
    try:
        data = parse_toml(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return any(key in data for key in _OWN_KEYS)


# ---- the ready-made ones -------------------------------------------------------------------------------------------


def names() -> list[str]:
    """Return the names of the ready-made adapters, in alphabetical order."""
    return list(toml_files(SHIPPED))


def _text(name: str) -> str:
    return toml_text(SHIPPED, name, "no such adapter", "ready-made", "an ADAPTER.toml")


@cache
def ready_made(name: str) -> Adapter:
    """Return the ready-made adapter of that name. Raises HeapwrightError for an unknown name."""
    return Adapter.parse(_text(name), f"adapters/{name}.toml")


def libraries() -> list[str]:
    """Return the names of the ready-made adapters that need no sources: what may follow ``lib:``."""
    return [name for name in names() if not ready_made(name).sources]
