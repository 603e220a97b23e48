"""Platforms: what each requires of a recipe, and the files that it writes."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from case_tables import each
from click.testing import CliRunner

import heapwright as hw
from heapwright._cli import heapwright as command_line
from heapwright._generate.emit import NOTHING
from heapwright._platforms.catalogue import Platform
from heapwright._platforms.files import generate_for, platform_files
from heapwright._support.errors import HeapwrightError

OTHER_NAMES = {"Cargo.toml", "CMakeLists.txt", "Kconfig", "Makefile", "linker.lf"}
"""Files that a build system looks for by their names."""
NAMES = [platform.name for platform in hw.platforms()]
MEMORIES = {"memory": {"a": 4096, "b": 8192}, "pool": [{"kind": "general", "memory": one} for one in "ab"]}
FIXED = '[[pool]]\nkind = "fixed"\nsizes = [64]\ncounts = [10]\n'


@each("name", NAMES)
def test_a_platform_says_what_it_needs_and_where_that_comes_from(name: str) -> None:
    platform = hw.platforms(name)
    assert platform.align in (4, 8, 16)
    assert platform.sources and all(re.search(r"\d", source) for source in platform.sources), "file and version"
    assert platform.files[0] == "app_README.md"
    assert all(file.startswith("app_") or file in OTHER_NAMES for file in platform.files)
    assert any("test" in file for file in platform.files)


@each("name", NAMES)
def test_a_page_tells_the_whole_way_and_is_one_page(name: str) -> None:
    page = hw.platforms(name).readme
    headings = re.findall(r"^## (.*)", page, re.MULTILINE)
    assert {"Build it", "What to set", "What to delete", "See that it works"} <= set(headings)
    assert len(page.splitlines()) <= 80
    for file in hw.platforms(name).files[1:]:
        assert file in page


@each("name", NAMES)
def test_a_prefix_stands_in_every_name(name: str) -> None:
    for file, text in platform_files(hw.platforms(name), "net").items():
        assert file.startswith("net_") or file in OTHER_NAMES
        assert re.findall(r"(?<![A-Za-z0-9])(?:app|APP)_\w*", re.sub(r"O_APPEND", "", text)) == []


HOOKED = [platform.name for platform in hw.platforms() if platform.hooks]


def test_boards_have_hooks() -> None:
    boards = {"freertos", "zephyr", "esp-idf", "newlib", "newlib-nano", "picolibc", "lwip", "threadx"}
    assert set(HOOKED) == boards


@pytest.mark.parametrize("name", HOOKED)
def test_hooks_are_written_with_a_page_that_names_them_and_every_function_that_is_wrapped(
    name: str, tmp_path: Path
) -> None:
    written = [path.name for path in hw.hooks(name, tmp_path, prefix="net")]
    assert written[0] == "net_trace_README.md"
    page = (tmp_path / written[0]).read_text()
    assert {"Build it", "What to set", "Get the trace"} <= set(re.findall(r"^## (.*)", page, re.MULTILINE))
    assert len(page.splitlines()) <= 80
    code = "".join((tmp_path / file).read_text() for file in written[1:])
    assert all(file in page for file in written[1:])
    assert re.findall(r"(?<![A-Za-z0-9])(?:app|APP)_\w*", page + code) == []
    wrapped = set(re.findall(r"--wrap=(\w+)", page))
    assert wrapped and wrapped == set(re.findall(r"--wrap=(\w+)", code))
    assert wrapped == set(re.findall(r"__wrap_(\w+)\(", code)) == set(re.findall(r"__real_(\w+)\(", code))


@pytest.mark.parametrize("name", ["bpftrace", "perf"])
def test_scripts_that_record_programs_on_linux_are_written_with_a_page_that_names_them(
    name: str, tmp_path: Path
) -> None:
    written = hw.hooks(name, tmp_path, prefix="net")
    texts = {path.name: path.read_text() for path in written}
    page = texts.pop("net_trace_README.md")
    assert f"net_trace_{name}.sh" in texts
    assert all(file in page for file in texts)
    assert re.findall(r"(?<![A-Za-z0-9])(?:app|APP)_\w*", page + "".join(texts.values())) == []
    with pytest.raises(HeapwrightError, match="bpftrac: no such platform, nor tracer of Linux; did you mean bpftrace"):
        hw.hooks("bpftrac", tmp_path)


def test_a_platform_without_hooks_says_which_have_some(tmp_path: Path) -> None:
    with pytest.raises(HeapwrightError, match="sqlite: no hooks record its heap; they do for esp-idf, freertos"):
        hw.hooks("sqlite", tmp_path)
    with pytest.raises(HeapwrightError, match="cannot begin a C name"):
        hw.hooks("newlib", tmp_path, prefix="2net")
    output = CliRunner().invoke(command_line, ["hooks", "newlib", "-o", str(tmp_path), "--json"])
    assert [Path(file).name for file in json.loads(output.stdout)["files"]] == list(hw.platforms("newlib").hooks)


def test_a_recipe_below_a_platforms_alignment_is_raised_and_told(tmp_path: Path) -> None:
    notes: list[str] = []
    hw.generate("all-round", tmp_path / "api", platform="preload", notes=notes.append)
    assert notes == ["all-round: objects are aligned to 16 bytes, raised from 8: preload needs it."]
    hw.generate("all-round", tmp_path / "newlib", platform="newlib", notes=notes.append)  # it needs no more
    assert len(notes) == 1
    command = ["generate", "all-round", "--platform", "preload", "-o", str(tmp_path / "cli"), "--json"]
    done = CliRunner().invoke(command_line, command)
    assert done.stderr == f"heapwright: {notes[0]}\n"
    assert len(json.loads(done.stdout)["files"]) == 8
    for folder in ("api", "cli"):
        header = (tmp_path / folder / "app_heap.h").read_text()
        assert " * Objects are aligned to 16 bytes, raised from 8: preload needs it.\n" in header
        assert "#define APP_ALIGNMENT 16u" in header
    assert "raised from" not in (tmp_path / "newlib" / "app_heap.h").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_every_platform_has_the_alignment_that_it_needs(name: str, tmp_path: Path) -> None:
    platform = hw.platforms(name)
    hw.generate("st-memmgr-1", tmp_path, platform=name)  # align 1
    assert f"#define APP_ALIGNMENT {platform.align}u" in (tmp_path / "app_heap.h").read_text()


def test_preload_has_caches_of_threads_where_the_recipe_can(tmp_path: Path) -> None:
    recipe = hw.zoo("half-fit").at_alignment(16)
    ways = {"cached": recipe, "stays": recipe.from_dict(recipe.to_dict() | {"threads": "lock"})}
    for name, item in ways.items():
        hw.generate(item, tmp_path / name, platform="preload")
    cached = {name for name in ways if "APP_CACHES" in (tmp_path / name / "app_heap.h").read_text()}
    assert cached == {"cached"}


def test_a_function_that_a_platform_adds_is_nowhere_else(tmp_path: Path) -> None:
    hw.generate("freertos-heap4", tmp_path / "alone")
    hw.generate("freertos-heap4", tmp_path / "kernel", platform="freertos")
    for file in ("app_heap.c", "app_heap.h"):
        alone, kernel = ((tmp_path / folder / file).read_text() for folder in ("alone", "kernel"))
        assert "app_block_bytes(struct app_heap *heap" in kernel
        assert "block_bytes" not in alone


def test_objects_that_move_are_refused(tmp_path: Path) -> None:
    with pytest.raises(HeapwrightError, match="contiki-mmem: its objects move, and preload needs them to stay"):
        hw.generate("contiki-mmem", tmp_path, platform="preload")


@pytest.mark.parametrize("name", NAMES)
def test_a_platforms_lock_is_the_lock_of_a_recipe(name: str, tmp_path: Path) -> None:
    recipe = hw.zoo("half-fit").at_alignment(16)
    hw.generate(recipe, tmp_path / "none", platform=name)
    hw.generate(recipe.model_copy(update={"threads": "lock"}), tmp_path / "lock", platform=name)
    alone, locked = ((tmp_path / folder / "app_heap.c").read_text() for folder in ("none", "lock"))
    assert (alone == locked) == bool(hw.platforms(name).lock)
    assert ("APP_LOCK" in alone) == bool(hw.platforms(name).threads)
    assert ("APP_LOCK" in locked) != bool(hw.platforms(name).lock)


@pytest.mark.parametrize("name", [name for name in NAMES if hw.platforms(name).lock])
def test_caches_of_threads_are_refused_where_the_platform_has_a_lock(name: str, tmp_path: Path) -> None:
    recipe = hw.zoo("half-fit").at_alignment(16).model_copy(update={"threads": "cached"})
    with pytest.raises(HeapwrightError, match=r'takes a lock around each call \(.*\); give .* "lock"'):
        hw.generate(recipe, tmp_path / "heap", platform=name)


def test_preload_needs_a_pool_that_can_align_to_more(tmp_path: Path) -> None:
    recipe = tmp_path / "fixed.toml"
    recipe.write_text(f"align = 16\n{FIXED}")
    with pytest.raises(HeapwrightError, match="cannot align objects to more than 16 bytes, as preload needs"):
        hw.generate(recipe, tmp_path / "heap", platform="preload")


def test_an_unknown_platform_is_named() -> None:
    with pytest.raises(HeapwrightError, match=r"prelod: no such platform; did you mean preload\?"):
        hw.platforms("prelod")


def test_the_commands_list_and_write_what_the_library_has(tmp_path: Path) -> None:
    listed = CliRunner().invoke(command_line, ["platforms", "--json"])
    assert [platform["name"] for platform in json.loads(listed.stdout)] == NAMES
    page = CliRunner().invoke(command_line, ["platforms", "preload"])
    assert page.stdout == hw.platforms("preload").readme
    item = ["generate", "half-fit", "--platform", "preload", "--prefix", "net", "-o", str(tmp_path), "--json"]
    files = [Path(file).name for file in json.loads(CliRunner().invoke(command_line, item).stdout)["files"]]
    assert files[:4] == ["net_heap.c", "net_heap.h", "net_heap_test.c", "net_heap_checks.h"]
    assert files[4:] == [file.replace("app_", "net_") for file in hw.platforms("preload").files]
    assert sorted(files) == sorted(path.name for path in tmp_path.iterdir())


@each("name", NAMES)
def test_a_recipe_gets_what_the_platform_tells_of_it_and_what_its_threads_need(name: str) -> None:
    platform, recipe = hw.platforms(name), hw.zoo("tlsf")
    output = platform.adapted(recipe)
    assert output.counters == (name in {"esp-idf", "freertos", "nuttx", "threadx", "zephyr"})
    assert output.threads == {"preload": "cached"}.get(name, "none")
    assert name != "preload" or output.cache_bytes == platform.cache_bytes == 524288
    assert output.align == max(platform.align, recipe.align)
    checked = platform.adapted(recipe.from_dict(recipe.to_dict() | {"checks": "frees"}))
    assert checked.threads == {"preload": "lock"}.get(name, "none"), "caches would keep most frees from what is checked"
    locked = platform.adapted(recipe.from_dict(recipe.to_dict() | {"threads": "lock"}))
    assert locked.threads == ("none" if platform.lock else "lock")
    cached = recipe.from_dict(recipe.to_dict() | {"threads": "cached"})
    if platform.lock is None:
        platform.require(cached, "caches of threads, which nothing locks")
        bytes_each = output.cache_bytes if name == "preload" else cached.cache_bytes
        assert platform.threaded(cached) == cached.model_copy(update={"cache_bytes": bytes_each})
        own = recipe.from_dict(cached.to_dict() | {"cache_bytes": 131072})
        assert platform.threaded(own) == own, "what a recipe says of its caches stays"


def test_a_heap_without_a_name_is_told_by_its_hash(tmp_path: Path) -> None:
    plain = hw.Recipe.parse(FIXED, "here")
    refused = {
        "preload": (plain, "cannot align objects to more than 16 bytes"),
        "freertos": (hw.Recipe.from_dict({**MEMORIES}), "lies in several memories, and freertos gives it one"),
    }
    for name, (recipe, says) in refused.items():
        with pytest.raises(HeapwrightError, match=f"^{recipe.hash}: {says}"):
            hw.generate(recipe, tmp_path, platform=name)


def test_packages_are_for_what_the_program_builds(tmp_path: Path) -> None:
    own = {"esp-idf", "nuttx", "preload", "riot", "rust"}
    assert {name for name in NAMES if hw.platforms(name).builds} == own
    with pytest.raises(HeapwrightError, match="rust: is a crate, which Cargo builds, and its page says how"):
        hw.generate("tlsf", tmp_path, platform="rust", package=True)
    files = {path.name for path in hw.generate("tlsf", tmp_path, platform="freertos", package=True)}
    assert {"library.json", "app_heap.c"} <= files
    assert "library.json" not in {path.name for path in hw.generate("tlsf", tmp_path, platform="rust")}


def test_files_stand_in_one_order_on_every_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    def backwards(folder: Path, listing: Callable[[Path], Iterator[Path]] = Path.iterdir) -> list[Path]:
        return sorted(listing(folder), reverse=True)

    before = {name: (list(hw.platforms(name).hooks.items()), hw.platforms(name).files) for name in HOOKED}
    monkeypatch.setattr(Path, "iterdir", backwards)
    assert {name: (list(hw.platforms(name).hooks.items()), hw.platforms(name).files) for name in HOOKED} == before


def test_what_to_reserve_stands_below_the_title_of_a_platforms_page(tmp_path: Path) -> None:
    platform, recipe = hw.platforms("freertos"), hw.zoo("tlsf")
    plain = platform.readme.replace("app_", "net_").replace("APP_", "NET_").splitlines()
    for reserve in ("", "Reserve 4,096 bytes."):
        files = generate_for(platform, recipe, tmp_path, "net", replace(NOTHING, reserve=reserve))
        (page,) = (path for path in files if path.name == "net_README.md")
        output = [plain[0], *(["", reserve] if reserve else []), *plain[1:]]
        assert page.read_text().splitlines() == output


def test_a_platform_whose_threads_have_caches_gives_each_64_kb_unless_it_says_more() -> None:
    mine = Platform("mine", "My platform", 8, ("mine 1",), "nowhere", threads=("cached", "lock"))
    output = mine.adapted(hw.zoo("tlsf"))
    assert (output.threads, output.cache_bytes, output.counters) == ("cached", 65536, False)
    mine.require(hw.zoo("fixed-pool"), "one class of blocks aligns to no more than it says")
    assert (mine.hooks, mine.traps, mine.builds) == ({}, False, None)


def test_esp_idf_keeps_whole_objects_in_iram() -> None:
    """A function that the compiler splits or renames (`enter.isra.0`) has a section that no entry for it matches."""
    lines = hw.platforms("esp-idf").text("linker.lf").splitlines()
    assert "archive: libheap.a" in lines
    entries = [line.strip() for line in lines if "(" in line and not line.startswith("#")]
    assert entries == ["app_heap (noflash)", "app_multi_heap (noflash)"]
    assert "app_multi_heap.c" in hw.platforms("esp-idf").files
