"""Names of heaps: how a text is taken apart."""

from pathlib import Path

import pytest

from heapwright.heaps import Name, is_heap, parse


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("tlsf", Name("zoo", "tlsf")),
        ("mine.toml", Name("recipe", "mine.toml")),
        ("s.duckdb:ab12", Name("study", "s.duckdb", "ab12")),
        ("lib:glibc", Name("library", "glibc")),
        ("heap.c", Name("file", "heap.c")),
        ("libheap.so.1", Name("file", "libheap.so.1")),
        ("tlsf=src/tlsf", Name("sources", "src/tlsf", "tlsf")),
        ("own.toml=src/heap.c", Name("sources", "src/heap.c", "own.toml")),
        ("mine.toml+lib:glibc", Name("front", "mine.toml", "lib:glibc")),
        ("tlsf+tlsf=src", Name("front", "tlsf", "tlsf=src")),
        # a path may hold what takes names apart elsewhere
        ("tlsf=src/c++/tlsf", Name("sources", "src/c++/tlsf", "tlsf")),
        ("tlsf=a+lib:glibc", Name("sources", "a+lib:glibc", "tlsf")),
        ("tlsf=a=b", Name("sources", "a=b", "tlsf")),
    ],
)
def test_a_name_is_taken_apart(text: str, name: Name) -> None:
    assert parse(text) == name


def test_what_lies_there_is_a_file_whatever_its_name(tmp_path: Path) -> None:
    for name in ("a+lib:glibc.c", "a=b.c", "heap++.c"):
        (tmp_path / name).touch()
        assert parse(str(tmp_path / name)).kind == "file"


def test_a_heap_is_told_from_a_trace(tmp_path: Path) -> None:
    for name in ("tlsf", "mine.toml", "lib:glibc", "heap.c", "s.duckdb:ab", "tlsf=src"):
        assert is_heap(name), name
    trace = tmp_path / "10:30"
    trace.touch()
    for name in ("nosuch", str(tmp_path / "nosuch"), str(trace)):
        assert not is_heap(name), name
