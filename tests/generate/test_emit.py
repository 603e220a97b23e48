"""What `heapwright generate` writes: names, comments and declarations in the text; the command, and what it refuses."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_runner import run_here
from forked_commands import INSTALLED
from generated_heaps import entries, generated_once
from recipes_random import random_recipes, sample
from run_length import brief

from heapwright._generate import generate
from heapwright._generate.core import core_sources
from heapwright._generate.emit import ALLOCATING, Banner, generated_files
from heapwright._generate.specialise import Parting, specialise
from heapwright._recipes.policy import policy
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo
from heapwright._support.errors import HeapwrightError

RECIPES = sample(zoo.recipes()) + random_recipes(brief(5, 25), seed=2006)

every_recipe = pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name or recipe.hash)


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Recipe], Path]:
    return generated_once(tmp_path_factory.getbasetemp())


# ---- the text ------------------------------------------------------------------------------------------------------


def text_of(folder: Path) -> str:
    """All of a heap but its interface and test."""
    return "".join((folder / file).read_text() for file in ("app_heap.c", "app_heap_checks.h"))


def without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


@every_recipe
def test_nothing_of_the_core_is_left_unfinished(recipe: Recipe, generated: Callable[[Recipe], Path]) -> None:
    written = {path.name: path.read_text() for path in sorted(generated(recipe).iterdir())}
    assert list(written) == ["app_heap.c", "app_heap.h", "app_heap_checks.h", "app_heap_test.c"]
    own = r"#include \"(?!app_heap(?:_checks)?\.h)"
    for text in written.values():
        assert not re.search(rf"\bhw_|\bHW_|struct (hw_)?policy|{own}|[ \t]$", text, re.MULTILINE)
    source = without_comments(written["app_heap.c"])
    assert not re.search(r"\bp->|\bg->|\bq->|\bf->|policy|EXPLORE|note_|ASAN|VALGRIND", source)
    entropy = ["#include <sys/random.h>"] if recipe.checks in ("neighbours", "full") else []
    boolean = ["#include <stdbool.h>"] if "bool " in source else []
    included = ['#include "app_heap.h"', *boolean, "#include APP_HOOKS", *entropy, '#include "app_heap_checks.h"']
    assert re.findall(r"#include .*", source) == included
    for text in written.values():
        assert not re.search(r"\n\n\n|\n\n$", text)


@every_recipe
def test_comments_speak_of_what_the_recipe_has(recipe: Recipe, generated: Callable[[Recipe], Path]) -> None:
    source = text_of(generated(recipe))
    comments = " ".join(re.findall(r"/\*.*?\*/", source[source.index("#include") :], flags=re.DOTALL))
    pools = [pool.model_dump() for pool in recipe.pools]
    features = {
        "victim": any(pool.get("victim_up_to") for pool in pools),
        "next fit": any(pool.get("fit") == "next" for pool in pools),
        "borrows": any(pool.get("fall_through") for pool in pools),
        "cached": any(pool["kind"] == "quick" for pool in pools),
        "FIXED_TAKEN": any(pool.get("find") == "first-fit" for pool in pools),
        "counted as": False,
    }
    assert [word for word, has in features.items() if not has and word in comments] == []


@every_recipe
def test_every_name_in_the_source_is_used(recipe: Recipe, generated: Callable[[Recipe], Path]) -> None:
    source = without_comments(text_of(generated(recipe)))
    words = Counter(re.findall(r"\w+", source))
    defined = re.findall(r"^static inline [^(;]*?(\w+)\(", source, re.MULTILINE)
    for definition in (r"^#define (\w+)", r"^struct (\w+) \{", r"^static const \w+ (\w+)", r"^ +(APP_\w+) = \d"):
        defined += re.findall(definition, source, re.MULTILINE)
    assert len(defined) > 20
    assert [name for name in defined if words[name] < 2] == []


@every_recipe
def test_every_name_of_the_source_carries_the_prefix(recipe: Recipe, generated: Callable[[Recipe], Path]) -> None:
    source = without_comments(text_of(generated(recipe)))
    patterns = [r"^#define (\w+)", r"^(?:static|APP_HOT|APP_COLD) [^(;=]*?\b(\w+)[(\[]", r"^struct (\w+) \{"]
    patterns += [r"^typedef [^;]*?(\w+);", r"\benum \{ *(\w+)", r"^ +(\w+) = \d+,?$"]
    defined = [name for pattern in patterns for name in re.findall(pattern, source, re.MULTILINE)]
    assert len(defined) > 20
    assert [name for name in defined if not re.match("app_|APP_", name)] == []


@every_recipe
def test_every_declaration_is_documented(recipe: Recipe, generated: Callable[[Recipe], Path]) -> None:
    header = (generated(recipe) / "app_heap.h").read_text()
    declared = re.findall(r"(.*)\n[\w *]+?\b(app_\w+)\([^)]*\);", header)
    expected = [entry.replace("hw_", "app_") for entry in entries(recipe)]
    assert [name for _, name in declared] == [*expected, "app_field_boot", "app_field"]
    for line_before, _ in declared:
        assert line_before.endswith("*/")
    structs = re.findall(r"struct app_\w+ \{(.*?)\};", header, re.DOTALL)
    members = [line for body in structs for line in body.strip().splitlines()]
    assert len(members) == 35 + 3 * ("struct app_handle {" in header) + 5 * recipe.counts
    assert all(re.search(r"; +/\* .+ \*/$", line) for line in members)
    assert all(re.search(r"/\* .+ \*/$", line) for line in re.findall(r"^#define APP_B.*", header, re.MULTILINE))


def test_the_comment_says_what_it_is_and_what_it_was_tuned_for() -> None:
    recipe = zoo.load("drr-proposed")
    measured = {"footprint_bytes": 81608, "requested_peak_bytes": 60000, "accesses": 12345, "failed": 0}
    about = Banner("home_router.parquet, objectives footprint_bytes,accesses", measured)
    written = generated_files(recipe, "net", about)
    for name in ("net_heap.c", "net_heap.h"):
        comment = " ".join(written[name].split("*/")[0].replace("\n * ", " ").split())
        assert "Tuned for home_router.parquet, objectives footprint_bytes,accesses." in comment
        assert "81,608 bytes of arena, for a peak of 60,000 requested, 12,345 metadata accesses." in comment
        assert "section 6" in comment
        assert recipe.hash in comment
        assert "in any product and under any licence" in comment
    comment = written["net_heap.c"].split("*/")[0]
    start = comment.index("The recipe:\n *\n") + len("The recipe:\n *\n")
    toml = comment[start : comment.index(" * Freestanding")]
    again = Recipe.parse("\n".join(line[7:] for line in toml.splitlines()), "app_heap.c")
    assert again.about.split() == recipe.about.split()  # filled again
    assert again.model_copy(update={"about": recipe.about}) == recipe


def test_a_recipe_without_a_name_goes_by_its_hash() -> None:
    recipe = Recipe.from_dict({"pool": [{"kind": "quick", "sizes": list(range(8, 800, 16))}, {"kind": "general"}]})
    written = generated_files(recipe)
    assert written["app_heap.h"].splitlines()[0] == f"/* app_heap.h: recipe {recipe.hash}"
    assert max(map(len, written["app_heap.h"].splitlines())) <= 125


def test_a_recipe_cannot_end_the_comment() -> None:
    recipe = Recipe.from_dict({"name": "odd */ int x; /*", "about": "a */ b", "pool": [{"kind": "general"}]})
    for text in generated_files(recipe, about=Banner("*/ int y;")).values():
        assert "int x" not in without_comments(text)
        assert "int y" not in without_comments(text)


def test_the_text_is_the_same_in_every_run() -> None:
    script = (
        "from heapwright._recipes.zoo import catalogue as zoo\nfrom heapwright._generate.emit import generated_files\n"
    )
    script += "print(generated_files(zoo.load('victim-bins')), generated_files(zoo.load('wifi-special-pools')))"
    texts = set()
    for seed in brief(("1",), ("1", "2")):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=True)
        texts.add(done.stdout.decode())
    ours = [generated_files(zoo.load(name)) for name in ("victim-bins", "wifi-special-pools")]
    assert texts == {f"{ours[0]} {ours[1]}\n"}


def test_a_simple_recipe_gives_a_short_text() -> None:
    values = policy(zoo.load("drr-proposed"))
    parts = specialise(core_sources(), values, ALLOCATING, "app", parting=Parting("heapwright.h"))
    lines = [line for text in (parts.types, parts.constants, parts.functions) for line in text.splitlines()]
    assert 300 < len(lines) < 1040
    assert max(map(len, lines)) <= 120


# ---- the command ---------------------------------------------------------------------------------------------------


def command(folder: Path, *words: str, limit: int | None = None) -> subprocess.CompletedProcess[str]:
    """Run `heapwright generate` in a folder; no file may become longer than `limit` bytes, as on a full disk."""

    def set_limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit or 0, limit or 0))

    if limit is None:
        return run_here("generate", *words, folder=folder)
    whole = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}  # Python keeps modules that it wrote in part
    return run_in(folder, INSTALLED, *words, preexec_fn=set_limit, env=whole)


def run_in(folder: Path, program: str, *words: str, **how: Any) -> subprocess.CompletedProcess[str]:
    line = [program, "generate", *words]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False, **how)


def expect_one_line(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    for word in words:
        assert word in done.stderr


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_command_says_what_it_wrote(tmp_path: Path) -> None:
    done = command(tmp_path, "victim-bins", "--prefix", "net", "-o", "a/b", "--json")
    names = ["a/b/net_heap.c", "a/b/net_heap.h", "a/b/net_heap_test.c", "a/b/net_heap_checks.h"]
    assert (done.returncode, json.loads(done.stdout), done.stderr) == (0, {"files": names}, "")
    assert set(contents(tmp_path)) == set(names)
    assert (tmp_path / names[0]).read_text() == generated_files(zoo.load("victim-bins"), "net")["net_heap.c"]
    assert command(tmp_path, "victim-bins", "--prefix", "net", "-o", "a/b").stdout.split() == names


def test_a_second_run_replaces_what_was_there(tmp_path: Path) -> None:
    assert command(tmp_path, "tlsf", "-o", ".").returncode == 0
    assert command(tmp_path, "kingsley", "-o", ".").returncode == 0
    written = generated_files(zoo.load("kingsley"))
    assert contents(tmp_path) == {name: text.encode() for name, text in written.items()}


@pytest.mark.parametrize("output", ["/proc", "/proc/heap", "a-file", "a-file/below"])
def test_a_folder_that_cannot_be_written(tmp_path: Path, output: str) -> None:
    (tmp_path / "a-file").write_text("mine")
    expect_one_line(command(tmp_path, "tlsf", "-o", output), output)
    assert contents(tmp_path) == {"a-file": b"mine"}


def test_a_folder_in_a_files_way(tmp_path: Path) -> None:
    (tmp_path / "app_heap.c").mkdir()
    expect_one_line(command(tmp_path, "tlsf", "-o", "."), "app_heap.c", "is a folder")
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("limit", [0, 8000])
def test_a_full_disk_leaves_what_was_there(tmp_path: Path, limit: int) -> None:
    assert command(tmp_path, "tlsf", "-o", ".").returncode == 0
    before = contents(tmp_path)
    expect_one_line(command(tmp_path, "drr-proposed", "-o", ".", limit=limit), "app_heap.c", "File too large")
    expect_one_line(command(tmp_path, "tlsf", "-o", "a/b", limit=limit), "a/b/app_heap.c", "File too large")
    assert contents(tmp_path) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(before)


@pytest.mark.parametrize("prefix", ["9lives", "my-heap", "", "a b", "\u00e4", "x\n"])
def test_a_prefix_that_is_no_c_name(tmp_path: Path, prefix: str) -> None:
    done = command(tmp_path, "tlsf", "--prefix", prefix, "-o", "out")
    assert (done.returncode, done.stdout) == (2, "")
    assert "'--prefix'" in done.stderr and "letters, digits and _" in done.stderr
    with pytest.raises(HeapwrightError, match="letters"):
        generate(zoo.load("tlsf"), tmp_path / "out", prefix)
    assert contents(tmp_path) == {}


def test_heaps_that_cannot_be_had(tmp_path: Path) -> None:
    (tmp_path / "wrong.toml").write_text('[[pool]]\nkind = "general"\nheader = 0\ncoalesce = "immediate"\n')
    expect_one_line(command(tmp_path, "tsfl", "-o", "out"), "tsfl", "tlsf")
    expect_one_line(command(tmp_path, "wrong.toml", "-o", "out"), "wrong.toml", "header")
    expect_one_line(command(tmp_path, "absent.toml", "-o", "out"), "absent.toml")
    expect_one_line(command(tmp_path, "absent.duckdb:3", "-o", "out"), "absent.duckdb")
    assert not (tmp_path / "out").exists()
