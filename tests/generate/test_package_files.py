"""What makes a folder of generated C a package: which sources are its library, and what each tool reads."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import heapwright as hw
from heapwright._cli import heapwright as command_line
from heapwright._support.errors import HeapwrightError

PACKAGE = ["CMakeLists.txt", "library.json", "idf_component.yml", "zephyr/module.yml"]
OF_THEIR_OWN = {"esp-idf", "nuttx", "preload", "riot", "rust"}


def written(folder: Path, heap: str = "tlsf", platform: str | None = None, **given: str | bool) -> list[str]:
    paths: list[Path] = hw.generate(heap, folder, platform=platform, package=True, **given)  # type: ignore[arg-type]
    return [path.relative_to(folder).as_posix() for path in paths]


def sources(folder: Path) -> list[str]:
    """The sources that CMake and PlatformIO build, which are the same."""
    (listed,) = re.findall(r"^set\(\w+_sources (.*)\)$", (folder / "CMakeLists.txt").read_text(), re.MULTILINE)
    nothing, *added = json.loads((folder / "library.json").read_text())["build"]["srcFilter"]
    assert nothing == "-<*>"
    assert added == [f"+<{name}>" for name in listed.split()]
    names: list[str] = listed.split()
    return names


def test_a_heap_is_a_package_where_that_is_asked_for(tmp_path: Path) -> None:
    plain = [path.name for path in hw.generate("tlsf", tmp_path / "plain", prefix="net")]
    assert written(tmp_path / "heap", prefix="net", watched=True) == [*plain, "net_heap_watched.c", *PACKAGE]
    assert sources(tmp_path / "heap") == ["net_heap.c"]
    assert "add_library(net_heap STATIC " in (tmp_path / "heap/CMakeLists.txt").read_text()
    library = json.loads((tmp_path / "heap/library.json").read_text())
    assert (library["name"], library["version"], library["headers"]) == ("net_heap", hw.__version__, "net_heap.h")
    assert library["description"].endswith(": tlsf")
    component = (tmp_path / "heap/idf_component.yml").read_text()
    assert component == f'version: "{hw.__version__}"\ndescription: "{library["description"]}"\n'
    assert (tmp_path / "heap/zephyr/module.yml").read_text() == 'name: "net_heap"\nbuild:\n  cmake: "."\n'


@pytest.mark.parametrize(
    ("platform", "of_library"),
    [
        ("freertos", ["app_freertos.c"]),  # which includes app_heap.c
        ("newlib", ["app_heap.c", "app_newlib.c"]),
        ("cpp", ["app_heap.c", "app_cpp.cpp"]),
    ],
)
def test_with_a_platform_its_glue_is_in_the_library_which_is_linked_whole(
    platform: str, of_library: list[str], tmp_path: Path
) -> None:
    assert written(tmp_path, platform=platform)[-4:] == PACKAGE
    assert sources(tmp_path) == of_library
    cmake = (tmp_path / "CMakeLists.txt").read_text()
    assert "add_library(app_heap OBJECT " in cmake and " WHOLE_ARCHIVE)" in cmake
    assert f"LANGUAGES C{' CXX' if platform == 'cpp' else ''})" in cmake
    assert json.loads((tmp_path / "library.json").read_text())["build"]["libArchive"] is False


def test_zephyrs_own_build_becomes_a_module(tmp_path: Path) -> None:
    assert written(tmp_path, platform="zephyr")[-1] == "zephyr/module.yml"
    assert (tmp_path / "CMakeLists.txt").read_text() == hw.platforms("zephyr").text("CMakeLists.txt")
    module = (tmp_path / "zephyr/module.yml").read_text()
    assert module == 'name: "app_heap"\nbuild:\n  cmake: "."\n  kconfig: "Kconfig"\n'


def test_what_goes_on_to_malloc_is_in_the_library(tmp_path: Path) -> None:
    fixed = '[[pool]]\nkind = "fixed"\nsizes = [64]\ncounts = [10]\n'
    (tmp_path / "fixed.toml").write_text(fixed)
    written(tmp_path / "behind", str(tmp_path / "fixed.toml"), behind="malloc")
    assert sources(tmp_path / "behind") == ["app_heap.c", "app_behind.c"]


@pytest.mark.parametrize("platform", [item.name for item in hw.platforms()])
def test_what_is_built_otherwise_is_no_package(platform: str, tmp_path: Path) -> None:
    if platform in OF_THEIR_OWN:
        with pytest.raises(HeapwrightError, match=rf"^{platform}: .*, and its page says how; leave the package out"):
            written(tmp_path / "heap", platform=platform)
        assert not (tmp_path / "heap").exists()
    else:
        assert "zephyr/module.yml" in written(tmp_path, platform=platform)


def test_the_command_names_its_flag(tmp_path: Path) -> None:
    words = ["generate", "tlsf", "--platform", "rust", "--also", "package", "-o", str(tmp_path / "heap")]
    done = CliRunner().invoke(command_line, words)
    assert isinstance(done.exception, HeapwrightError)
    assert str(done.exception).endswith("leave the package out (--also package)")
