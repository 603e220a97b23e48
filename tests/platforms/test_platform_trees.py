"""Public trees that the ports are tried on: their headers, if $HEAPWRIGHT_TREES has them, and the recorded results.

`trees.toml` says how to get them. None of their files is part of the project, and no test needs the network.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from platform_builds import BOARDS, run
from tool_requirements import needs, unsuited

import heapwright as hw
from heapwright._platforms.files import platform_files

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TREES: dict[str, dict[str, Any]] = tomllib.loads((Path(__file__).parent / "trees.toml").read_text(encoding="utf-8"))
TABLE = Path(__file__).parents[2] / "bench" / "ports.md"
FLAGS = ("-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-c")


def version(reference: str) -> str:
    """The last part of a branch's or tag's name."""
    return reference.rpartition("/")[2]


def tree_folder(platform: str, reference: str) -> Path:
    """Where a tree lies; skips if it is not there."""
    trees = os.environ.get("HEAPWRIGHT_TREES")
    if not trees:
        unsuited("HEAPWRIGHT_TREES names no folder of trees; tests/platforms/trees.toml says how to get them")
    folder = Path(trees) / f"{platform}-{version(reference)}"
    if not folder.is_dir():
        unsuited(f"{folder} is not there")
    return folder


def port_digest(platform: str) -> str:
    """The digest of a port's files, without its page, its test and what only the linker of a whole image reads."""
    files = platform_files(hw.platforms(platform), "app")
    parts = [f"{name}\n{files[name]}" for name in sorted(files) if not name.endswith(("_README.md", "_test.c", ".lf"))]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def rows() -> list[str]:
    """The table of results, as in bench/ports.md."""
    result = [
        "| tree | compiles without a warning for | its own tests on the port | excluded |",
        "| --- | --- | --- | --- |",
    ]
    for tree in TREES.values():
        compiled = ", ".join(f"{version(name)} ({commit[:9]})" for name, commit in tree["commits"].items())
        result.append(f"| {tree['title']} | {compiled} | {tree['tests']} | {tree['excluded']} |")
    return result


@pytest.mark.parametrize(
    ("platform", "reference"), [(name, ref) for name, tree in TREES.items() for ref in tree["commits"]]
)
def test_a_port_compiles_with_the_headers_of_a_tree(platform: str, reference: str, tmp_path: Path) -> None:
    tree, folder = TREES[platform], tree_folder(platform, reference)
    hw.generate(hw.zoo("tlsf").at_alignment(16), tmp_path, platform=platform)
    for name, target in tree.get("links", {}).items():
        (tmp_path / name).symlink_to(folder / target)
    includes = [f"-isystem{folder / path}" for path in tree["includes"]]
    includes += [f"-isystem{tmp_path}", f"-I{BOARDS / tree['board']}"] if "board" in tree else [f"-isystem{tmp_path}"]
    compiler = tree.get("compiler", "gcc")
    needs(compiler)
    if "-nostdinc" in tree.get("flags", ()):
        includes += ["-isystem", run([compiler, "-print-file-name=include"], tmp_path).strip()]
    run([compiler, *FLAGS, *tree.get("flags", ()), "-I.", *includes, "app_heap.c", *tree["sources"]], tmp_path)


@pytest.mark.parametrize("platform", TREES)
def test_results_are_of_the_port_as_it_is(platform: str) -> None:
    now = port_digest(platform)
    assert TREES[platform]["digest"] == now, (
        f"the glue of {platform} changed since its tree's tests ran: run make ports and the tree's tests, and record "
        f'digest = "{now}" with their results in tests/platforms/trees.toml'
    )


def test_the_page_has_the_results() -> None:
    assert "\n".join(rows()) in TABLE.read_text(encoding="utf-8"), "\n".join(rows())
