"""The text of generated heaps, as a reader sees it who knows one recipe and nothing of the core."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import pytest
from case_tables import each
from generated_functions import zoo_files

from heapwright._generate import residual, specialise
from heapwright._generate.emit import generated_files
from heapwright._recipes.pools import Compact, Fixed, General, Partition, Quick
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo

THREADS = {f"victim-bins, {threads}": threads for threads in ("lock", "cached")}
NAMES = [*zoo.names(), *THREADS]


def recipe_of(name: str) -> Recipe:
    if name in THREADS:
        return Recipe.from_dict(zoo.load("victim-bins").to_dict() | {"threads": THREADS[name]})
    return zoo.load(name)


@cache
def files(name: str) -> dict[str, str]:
    return generated_files(recipe_of(name)) if name in THREADS else zoo_files(name)


def source_of(name: str) -> str:
    """All of a heap but its interface and test."""
    return "".join(files(name)[file] for file in ("app_heap.c", "app_heap_checks.h"))


@pytest.mark.parametrize("name", ["tlsf", "windows-xp", "victim-bins, cached"])
def test_what_was_written_before_changes_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(residual, "MOST_TEXTS", -1)
    for other in ("lea-2.7.2", "all-round", "victim-bins, cached"):
        files(other)
    kept = generated_files(recipe_of(name))
    monkeypatch.setattr(residual.Memo, "find", lambda *_: None)
    assert generated_files(recipe_of(name)) == kept


def test_what_is_kept_is_forgotten_before_it_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = residual.Memo()
    monkeypatch.setattr(residual, "MOST_TEXTS", -1)
    monkeypatch.setattr(specialise, "Memo", lambda: kept)
    specialise._program.cache_clear()
    counts = []
    for name in ("tlsf", "lea-2.7.2", "tlsf"):
        assert generated_files(recipe_of(name)) == files(name)
        counts.append(kept.count)
    assert counts[0] < counts[1] == counts[2]
    monkeypatch.setattr(residual, "MOST_KEPT", counts[1] - 1)
    assert generated_files(recipe_of("tlsf")) == files("tlsf")
    assert kept.count == counts[0]
    specialise._program.cache_clear()


def test_whole_texts_are_kept_by_all_that_they_are_made_of_until_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memo = residual.Memo()
    monkeypatch.setattr(residual, "MOST_TEXTS", 2)
    monkeypatch.setattr(specialise, "Memo", lambda: memo)
    specialise._program.cache_clear()
    tlsf, counts = recipe_of("tlsf"), []
    for recipe, prefix in ((tlsf, "app"), (tlsf, "net"), (tlsf, "app"), (recipe_of("half-fit"), "app"), (tlsf, "app")):
        assert f"{prefix}_malloc(" in generated_files(recipe, prefix)[f"{prefix}_heap.c"]
        counts.append(len(memo.texts))
    assert counts == [1, 2, 2, 3, 1]
    assert generated_files(tlsf) == files("tlsf") != files("half-fit")
    specialise._program.cache_clear()


def test_threads_that_write_at_once_write_what_each_writes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("tlsf", "half-fit", "freertos-heap4", "sos") * 2
    alone = [files(name) for name in names]
    monkeypatch.setattr(residual, "MOST_TEXTS", -1)
    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(lambda name: generated_files(recipe_of(name)), names)) == alone


@cache
def comments(name: str) -> list[str]:
    """The comments of the source on one line each, but for the first, which holds the recipe."""
    result = re.findall(r"/\*.*?\*/", source_of(name), re.DOTALL)
    return [" ".join(comment.replace("\n *", "\n").split()) for comment in result[1:]]


@cache
def header_comments(name: str) -> list[str]:
    """The comments of the header on one line each, but for the first, which holds the recipe's summary."""
    result = re.findall(r"/\*.*?\*/", files(name)["app_heap.h"], re.DOTALL)
    return [" ".join(comment.replace("\n *", "\n").split()) for comment in result[1:]]


def words_without_meaning(recipe: Recipe) -> dict[str, bool]:
    """Patterns, and whether the recipe has what they speak of."""
    general = [pool for pool in recipe.pools if isinstance(pool, General)]
    kinds = {type(pool) for pool in recipe.pools}
    caches = recipe.threads == "cached"
    return {
        r"\bpolicy|\brecipe|\bHW_|\bhw_|\bexplor|counted as": False,
        r"\bquick\b|\bcache": Quick in kinds or caches,
        r"\bvictim": any(pool.victim_up_to for pool in general),
        r"\bqueue": any(pool.unsorted for pool in general),
        r"\bbins?\b|\bbitmap": any(pool.bins != "none" for pool in general) or Partition in kinds,
        r"\btree": any(pool.free_list == "tree" for pool in general),
        r"\bboundary tag|\btags?\b": any(pool.boundary_tags for pool in general),
        r"\bnext fit|\bNext fit": any(pool.fit == "next" for pool in general),
        r"\blazy|\bsweep": any(pool.coalesce in ("lazy", "deferred", "sweep") for pool in general) or Compact in kinds,
        r"\bclass\b|\bclasses\b": several_classes(recipe) or caches,
        r"\bhandle|\breference": Compact in kinds,
        r"\bgroup|\bpartition": Partition in kinds,
        r"\bthreads?\b|\block\b": recipe.threads != "none",
        r"\bhardened\b|\bmasked\b|\bseal\b": recipe.checks in ("neighbours", "full"),
        r"\bpool by pool\b|\b[Ss]everal pools\b": len(recipe.pools) > 1,
        r"\bsites?\b": bool(recipe.sites),
        r"\bFIFO\b": any("fifo" in (pool.order, pool.large_order) for pool in general),
    }


@each("name", NAMES)
def test_comments_speak_of_nothing_that_the_recipe_does_not_have(name: str) -> None:
    absent = [pattern for pattern, there in words_without_meaning(recipe_of(name)).items() if not there]
    assert [comment for comment in comments(name) if re.search("|".join(absent), comment)] == []


@each("name", NAMES)
def test_headers_speak_of_nothing_that_the_recipe_does_not_have(name: str) -> None:
    words = words_without_meaning(recipe_of(name))
    absent = [pattern for pattern, there in words.items() if not there and "policy" not in pattern]
    assert [comment for comment in header_comments(name) if re.search("|".join(absent), comment)] == []


def several_classes(recipe: Recipe) -> bool:
    return any(isinstance(pool, Fixed) and len(pool.sizes) > 1 for pool in recipe.pools)


def test_one_class_is_no_table() -> None:
    code = re.sub(r"/\*.*?\*/", "", source_of("fixed-pool"), flags=re.DOTALL)
    assert re.findall(r"static const .*\[", code) == []
    assert re.findall(r"class|for \(uint32_t i", code) == []
    assert "O(classes)" not in source_of("fixed-pool")
    realloc = code[code.index("void *app_realloc(struct") :].partition("\n}\n")[0]
    assert "app_malloc(heap, size);" in realloc
    assert "app_copy_payload" not in code
    assert realloc.count("app_malloc(") == 1


@each("name", NAMES)
def test_comments_name_functions_and_parameters_that_are_there(name: str) -> None:
    text = source_of(name)
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    named = {function for comment in comments(name) for function in re.findall(r"\b(app_\w+)\(\)", comment)}
    assert {function for function in named if f"{function}(" not in code} == set()
    for comment, head in re.findall(r"\n(/\*(?:(?!\*/).)*?\*/)\n([^\n;{]*(?:\n[^\n;{]*)?\))\n\{", text, re.DOTALL):
        missing = [word for word in re.findall(r"`(\w+)`", comment) if not re.search(rf"\b{word}\b", head)]
        assert not missing, (comment, head)


@each("name", NAMES)
def test_lines_have_at_most_120_columns(name: str) -> None:
    assert [line for text in files(name).values() for line in text.splitlines() if len(line) > 120] == []


@each("name", NAMES)
def test_nothing_silly_is_left_of_what_was_folded_away(name: str) -> None:
    code = re.sub(r"/\*.*?\*/\s*", "", source_of(name), flags=re.DOTALL)
    assert re.findall(r"\b(\w+) = \d+u?;\s+if \(!?\1(?: [!=]= 0)?\)", code) == []
    assert re.findall(r"if \((\w+) == 0\) \{\s+\1 = 0u?;\s+\}", code) == []
    assert re.findall(r"_(?:load|store)\d\(h, \d+u", code) == [], "an address that has a name"
    assert re.findall(r"\w+\(\w+ (\w+)\)\n\{\n    return \1;\n\}", code) == []
    assert re.findall(r"if \((.*) != (.*)\) \{\s+return \1;\s+\}\s+return \2;", code) == []


@pytest.mark.parametrize("source", ["Masmano et al. 2004", ""])
def test_the_opening_comment_says_whom_a_heap_is_after(source: str) -> None:
    recipe = zoo.load("tlsf").model_copy(update={"source": source})
    opening = generated_files(recipe)["app_heap.c"].split("*/")[0]
    assert ("After Masmano et al. 2004." in opening) == bool(source) and (" After ." in opening) is False


def test_prose_and_text_in_quotes_of_a_wide_recipe_are_broken() -> None:
    wide = "a word " * 40
    output = {"name": "wide", "source": wide.strip(), "about": f"{wide}\n\nshort\n"}
    recipe = Recipe.from_dict(
        output | {"pool": [{"kind": "quick", "sizes": list(range(8, 500, 8))}, {"kind": "general"}]}
    )
    text = generated_files(recipe)["app_heap.c"]
    toml = text[text.index("The recipe:\n *\n") + len("The recipe:\n *\n") : text.index(" * Freestanding")]
    again = Recipe.parse("\n".join(line[7:] for line in toml.splitlines()), "app_heap.c")
    assert max(map(len, text.splitlines())) <= 120
    assert (again.hash, again.source, again.about.split()) == (recipe.hash, recipe.source, recipe.about.split())
