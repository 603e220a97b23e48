"""Names of heaps: what each kind of name means, for any characters in its paths."""

import re
from pathlib import Path

import pytest

from heapwright._heaps.heaps import find, fit_each, resolve
from heapwright._heaps.names import HeapName, is_heap, parse, resolve_recipe
from heapwright._support.errors import ForeignHeapError, HeapwrightError
from heapwright._traces.trace import Trace

FILES = {
    "recipe.toml": '[[pool]]\nkind = "fixed"\nsizes = [64]\ncounts = [4]\n',
    "adapter.toml": 'style = "libc"\nsources = ["heap.c"]\n',
    "heap.c": "",
    "a+b/heap.c": "",
    "a+b/adapter.toml": 'style = "libc"\nsources = ["heap.c"]\n',
    "a+b/libx.so": "",
    "my+front.toml": '[[pool]]\nkind = "fixed"\nsizes = [64]\ncounts = [4]\n',
    "x=y.c": "",
}

NAMES = {
    "tlsf": HeapName("zoo", "tlsf"),
    "no-such-heap": HeapName("zoo", "no-such-heap"),
    "recipe.toml": HeapName("recipe", "recipe.toml"),
    "missing.toml": HeapName("recipe", "missing.toml"),
    "my+front.toml": HeapName("recipe", "my+front.toml"),
    "app.duckdb:a882": HeapName("study", "app.duckdb", "a882"),
    "lib:glibc": HeapName("library", "glibc"),
    "lib:a+b": HeapName("library", "a+b"),
    "heap.c": HeapName("file", "heap.c"),
    "missing.c": HeapName("file", "missing.c"),
    "x=y.c": HeapName("file", "x=y.c"),
    "libheap.so": HeapName("file", "libheap.so"),
    "libheap.so.1.2": HeapName("file", "libheap.so.1.2"),
    "a+b/heap.c": HeapName("file", "a+b/heap.c"),
    "no/a+b/heap.c": HeapName("file", "no/a+b/heap.c"),
    "adapter.toml": HeapName("adapter", "adapter.toml"),
    "a+b/adapter.toml": HeapName("adapter", "a+b/adapter.toml"),
    "tlsf=src": HeapName("sources", "src", "tlsf"),
    "tlsf=a+b/heap.c": HeapName("sources", "a+b/heap.c", "tlsf"),
    "tlsf=no/a+b/tlsf.c": HeapName("sources", "no/a+b/tlsf.c", "tlsf"),
    "tlsf=a=b": HeapName("sources", "a=b", "tlsf"),
    "tlsf=a+lib:glibc": HeapName("sources", "a+lib:glibc", "tlsf"),
    "own.toml=src/heap.c": HeapName("sources", "src/heap.c", "own.toml"),
    "adapter.toml=a+b": HeapName("sources", "a+b", "adapter.toml"),
    "a+b/adapter.toml=a+b/heap.c": HeapName("sources", "a+b/heap.c", "a+b/adapter.toml"),
    "kingsley+lib:glibc": HeapName("front", "kingsley", "lib:glibc"),
    "recipe.toml+lib:glibc": HeapName("front", "recipe.toml", "lib:glibc"),
    "recipe.toml+malloc": HeapName("front", "recipe.toml", "lib:glibc"),
    "my+front.toml+lib:glibc": HeapName("front", "my+front.toml", "lib:glibc"),
    "app.duckdb:a8+lib:glibc": HeapName("front", "app.duckdb:a8", "lib:glibc"),
    "recipe.toml+heap.c": HeapName("front", "recipe.toml", "heap.c"),
    "recipe.toml+a+b/libx.so": HeapName("front", "recipe.toml", "a+b/libx.so"),
    "recipe.toml+adapter.toml": HeapName("front", "recipe.toml", "adapter.toml"),
    "tlsf+tlsf=src": HeapName("front", "tlsf", "tlsf=src"),
    "recipe.toml+tlsf=a+b": HeapName("front", "recipe.toml", "tlsf=a+b"),
    "recipe.toml+a+b/adapter.toml=a+b": HeapName("front", "recipe.toml", "a+b/adapter.toml=a+b"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("text", "name"), NAMES.items())
def test_a_name_is_taken_apart(text: str, name: HeapName, folder: Path) -> None:
    assert parse(text) == name
    assert name.is_recipe == (name.kind in ("zoo", "recipe", "study"))


def test_what_lies_there_is_a_file_whatever_its_name(tmp_path: Path) -> None:
    for name in ("a+lib:glibc.c", "a=b.c", "heap++.c"):
        (tmp_path / name).touch()
        assert parse(str(tmp_path / name)).kind == "file"


def test_a_zoo_heap_has_its_alignment_in_its_name() -> None:
    assert resolve_recipe("tlsf@8") == resolve_recipe("tlsf").at_alignment(8) != resolve_recipe("tlsf")
    assert resolve_recipe("tlsf@4") == resolve_recipe("tlsf") and is_heap("tlsf@8") and not is_heap("tlfs@8")
    for text, message in (
        ("tlsf@7", "tlsf@7: '7' is no alignment; valid: 1, 2, 4, 8, 16"),
        ("nano-qplus@8", "nano-qplus: cannot be had at align 8"),
        ("tlfs@8", "tlfs"),
    ):
        with pytest.raises(HeapwrightError, match=re.escape(message)):
            resolve_recipe(text)


def test_a_heap_is_told_from_a_trace(tmp_path: Path) -> None:
    for name in ("tlsf", "mine.toml", "lib:glibc", "heap.c", "s.duckdb:ab", "tlsf=src"):
        assert is_heap(name), name
    trace = tmp_path / "10:30"
    trace.touch()
    for name in ("nosuch", str(tmp_path / "nosuch"), str(trace)):
        assert not is_heap(name), name


@pytest.mark.parametrize(
    "text", ["heap.c=nowhere", "missing.c", "tlsf=nowhere", "lib:nosuch", "no-such-heap", "no.toml=."]
)
def test_what_nothing_has_as_its_name_is_not_put_off(text: str, folder: Path) -> None:
    with pytest.raises(HeapwrightError) as result:
        find(text)
    assert not isinstance(result.value, ForeignHeapError)


@pytest.mark.parametrize("text", ["a+b/libx.so", "tlsf=a+b", "wrong.toml", "recipe.toml+wrong.toml"])
def test_what_is_there_and_cannot_be_used_says_so_when_it_is_used(text: str, folder: Path) -> None:
    (folder / "wrong.toml").write_text('style = "libc"\nalign = 12\n')
    with pytest.raises(ForeignHeapError) as strict:
        resolve(text)
    heap = find(text)
    assert heap.label == text
    for ask in (heap.replay, heap.fit, heap.safe_arena):
        with pytest.raises(ForeignHeapError) as put_off:
            ask(None)  # type: ignore[arg-type]
        assert str(put_off.value) == str(strict.value)


def test_where_no_arena_serves_a_trace_the_requests_refused_are_counted(folder: Path) -> None:
    trace = Trace.from_columns(op=[0, 0, 0], id=[1, 2, 3], size=[64, 100, 200])
    heaps = {name: find(name) for name in ("recipe.toml", "tlsf")}
    none, some = fit_each(trace, heaps).values()
    assert (none.smallest, none.safe, none.reserve, none.failed) == (None, None, None, 2)
    assert some.smallest is not None and some.reserve is not None and some.failed == 0


def test_every_copy_counts_where_no_share_of_them_is_asked_for(folder: Path) -> None:
    requested, larger, beyond = (
        Trace.from_columns(op=[0] * len(sizes), id=range(len(sizes)), size=sizes, name=str(len(sizes)))
        for sizes in ([64], [64] * 3, [64, 100])
    )
    heaps = {"recipe.toml": find("recipe.toml")}
    (served,) = fit_each(requested, heaps, copies=[requested, larger]).values()
    (most,) = fit_each(larger, heaps).values()
    assert served.reserve == most.reserve is not None and served.refused == ()
    (refused,) = fit_each(requested, heaps, copies=[larger, beyond]).values()
    assert (refused.reserve, refused.refused) == (None, ("2",))
    (some,) = fit_each(requested, heaps, copies=[larger, beyond], share=0.5).values()
    assert some.reserve == served.reserve


def test_a_study_without_an_id_is_told_with_what_to_write(tmp_path: Path) -> None:
    (tmp_path / "app.duckdb").touch()
    with pytest.raises(HeapwrightError, match=r"app\.duckdb: a file, and no heap; .* as .*app\.duckdb:balanced or "):
        resolve_recipe(str(tmp_path / "app.duckdb"))


def test_a_file_that_is_called_like_a_heap_of_the_zoo_hides_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tlsf").touch()
    (tmp_path / "TLSF").touch()
    expected = resolve_recipe("tlsf@8")
    monkeypatch.chdir(tmp_path)
    assert resolve_recipe("tlsf").at_alignment(8) == resolve_recipe("TLSF").at_alignment(8) == expected


def test_the_zoo_is_named_in_any_case() -> None:
    assert parse("TLSF@16") == parse("tlsf@16")
    assert resolve_recipe("TLSF@16") == resolve_recipe("tlsf@16")
