"""Layering: no import points up, no two files of a folder import each other, in C neither."""

from __future__ import annotations

import ast
import inspect
import pickle
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import tree_sitter_c
from tree_sitter import Language, Node, Parser

import heapwright
import heapwright_papers
from heapwright import _api as api

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(heapwright.__file__).parent
CHECKOUT = Path(__file__).resolve().parents[2]

ORDER = (
    ("_support",),
    ("_traces",),
    ("_recipes",),
    ("_traffic", "_replay"),
    ("_generate",),
    ("_platforms", "_measure"),
    ("_assure", "_studies"),
    ("_explore",),
    ("_heaps",),
    ("_diagnose",),
    ("_report",),
    ("_api",),
    ("_cli",),
)
"""From the ground up. What stands on one line does not know of one another; `_native` lies below all."""

FLOOR = {room: floor for floor, rooms in enumerate(ORDER) for room in rooms}


def imported(path: Path) -> Iterator[str]:
    """The modules of heapwright that a file names in any import, those for types and inside functions included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "heapwright")
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "heapwright":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def test_every_room_has_its_floor() -> None:
    rooms = {path.stem for path in ROOT.glob("*.py")} | {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert rooms - {"__init__", "__main__"} == set(FLOOR)


def test_no_import_points_up() -> None:
    wrong = []
    for path in (*ROOT.rglob("*.py"), *ROOT.rglob("*.pyi")):
        here = path.relative_to(ROOT).parts[0].removesuffix(".py")
        for module in imported(path):
            there = room_of(module)
            if here in FLOOR and there in FLOOR and here != there and FLOOR[there] >= FLOOR[here]:
                wrong.append(f"{path.relative_to(ROOT)} -> {module}")
    assert wrong == []


def test_rooms_know_few_others() -> None:
    """One arrow for each room that another imports; papers and bench, which take `heapwright` alone, have none."""
    arrows = {
        (path.relative_to(ROOT).parts[0], room_of(module))
        for path in (*ROOT.glob("*/**/*.py"), *ROOT.glob("*/**/*.pyi"))
        for module in imported(path)
        if room_of(module) in FLOOR
    }
    assert len({(start, end) for start, end in arrows if start != end}) <= 75


def test_no_circle_within_a_folder() -> None:
    graph: dict[Path, set[Path]] = {}
    for path in ROOT.rglob("*.py"):
        targets = {ROOT.joinpath(*module.split(".")[1:depth]) for module in imported(path) for depth in (2, 3, 4)}
        results = {target.with_suffix(".py") for target in targets if target.with_suffix(".py").is_file()}
        graph[path] = results - {path}
    while free := [path for path, targets in graph.items() if not targets & graph.keys()]:
        for path in free:
            del graph[path]
    assert sorted(str(path.relative_to(ROOT)) for path in graph) == []


def included(path: Path) -> set[str]:
    """The headers of ours that a C file includes."""
    return set(re.findall(r'^#include "(.*)"', path.read_text(encoding="utf-8"), re.MULTILINE))


def test_the_core_knows_nothing_around_it() -> None:
    core = {path.relative_to(CHECKOUT / "csrc").as_posix(): path for path in CHECKOUT.glob("csrc/**/*.h")}
    assert set().union(*map(included, core.values())) <= core.keys()
    asking = [name for name, path in core.items() if re.search(r"\bHW_ENGINE\b", path.read_text(encoding="utf-8"))]
    assert asking == ["replay_hooks.h"]  # the door alone asks whether hooks are defined
    assert included(CHECKOUT / "native" / "types.h") == set()


def test_no_circle_of_c_files() -> None:
    graph: dict[str, set[str]] = {}  # a header and its source are one
    for root in (CHECKOUT / "csrc", CHECKOUT / "native", ROOT / "_assure" / "attack"):
        for path in root.rglob("*.[ch]"):
            name = path.relative_to(root).with_suffix("").as_posix()
            graph.setdefault(name, set()).update(target.removesuffix(".h") for target in included(path))
    graph = {name: targets - {name} for name, targets in graph.items()}
    while free := [name for name, targets in graph.items() if not targets & graph.keys()]:
        for name in free:
            del graph[name]
    assert sorted(graph) == []


def test_no_c_file_is_longer_than_600_lines() -> None:
    roots = [CHECKOUT / folder for folder in ("csrc", "native", "recorder", "src", "tests")]
    longer = [
        str(path.relative_to(CHECKOUT))
        for root in roots
        for path in root.rglob("*.[ch]")
        if len(path.read_text(encoding="utf-8").splitlines()) > 600
    ]
    assert longer == []


def test_no_file_is_longer_than_600_lines() -> None:
    roots = (ROOT, Path(heapwright_papers.__file__).parent, CHECKOUT / "tests", CHECKOUT / "bench")
    longer = {
        str(path.relative_to(root.parent))
        for root in roots
        for path in root.rglob("*.py")
        if len(path.read_text(encoding="utf-8").splitlines()) > 600
    }
    assert longer == set()


DECISIONS = {
    "if_statement",
    "for_statement",
    "while_statement",
    "do_statement",
    "case_statement",
    "conditional_expression",
}
"""What ruff counts in Python; `default` is the way on."""


def nodes(root: Node) -> Iterator[Node]:
    yield root
    for child in root.children:
        yield from nodes(child)


def decisions(function: Node) -> int:
    """Ways through a function, as McCabe counts them."""
    results = (node for node in nodes(function) if node.type in DECISIONS)
    return 1 + sum(node.children[0].type != "default" for node in results)


def declarator(node: Node) -> Node | None:
    """The part with name and parameters of what declares a function or a type of functions; None for other things."""
    while (inner := node.child_by_field_name("declarator")) and inner.type != "function_declarator":
        node = inner
    return inner


def too_much(text: bytes) -> Iterator[str]:
    """Functions of C text with more than 7 parameters, or more than 15 ways through."""
    for node in nodes(Parser(Language(tree_sitter_c.language())).parse(text).root_node):
        if node.type in {"function_definition", "declaration", "type_definition"} and (head := declarator(node)):
            name, output = head.child_by_field_name("declarator"), head.child_by_field_name("parameters")
            assert name and name.text and output
            parameters = sum(item.type == "parameter_declaration" for item in output.children)
            if parameters > 7 or decisions(node) > 15:
                yield f"{name.text.decode()}: {parameters} parameters, {decisions(node)} ways"


def test_what_is_too_much_is_seen() -> None:
    longer = ", ".join(f"int {name}" for name in "abcdefgh")
    assert list(too_much(f"typedef int one({longer});".encode())) == ["one: 8 parameters, 1 ways"]
    assert list(too_much(f"static HW_HOT int one({longer});".encode())) == ["one: 8 parameters, 1 ways"]
    cases = "".join(f"case {n}: break; " for n in range(13))
    text = "static int *one(int n)\n{ do { switch (n) { %sdefault: n = n ? 1 : 2; } } while (n && n); }"
    assert list(too_much((text % cases).encode())) == ["one: 1 parameters, 16 ways"]
    assert list(too_much((text % cases.replace("case 0: break; ", "")).encode())) == []


def test_no_c_function_takes_or_decides_too_much() -> None:
    results = [
        f"{path.relative_to(CHECKOUT)}: {function}"
        for root in ("csrc", "native", "recorder")
        for path in CHECKOUT.joinpath(root).rglob("*.[ch]")
        for function in too_much(path.read_bytes())
    ]
    assert results == []


def test_papers_benchmarks_and_pictures_import_the_public_api_alone() -> None:
    names = {f"heapwright.{name}" for name in heapwright.__all__} | {"heapwright"}
    wrong = [
        f"{path.relative_to(CHECKOUT)}: {name}"
        for files in ("papers/heapwright_papers/**/*.py", "bench/**/*.py", "docs/pictures/**/*.py", "research/*.py")
        for path in CHECKOUT.glob(files)
        for name in imported(path)
        if name not in names
    ]
    assert wrong == []


def test_the_page_of_the_api_has_every_name() -> None:
    page = (CHECKOUT / "docs" / "api.md").read_text(encoding="utf-8")
    output = set(re.findall(r"\bhw\.(\w+)", page)) | set(re.findall(r"`(\w+)`", page))
    assert [name for name in heapwright.__all__ if name not in output] == []


def test_everything_is_of_one_version_and_licence() -> None:
    version = heapwright.__version__
    project = tomllib.loads((CHECKOUT / "papers" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == version
    assert f"heapwright=={version}" in project["dependencies"]
    texts = {
        "CITATION.cff": f"\nversion: {version}\n",
        ".github/ISSUE_TEMPLATE/bug.yml": f"placeholder: heapwright {version},",
        "CHANGELOG.md": f"\n## {version} - 2",
    }
    assert [name for name, output in texts.items() if output not in (CHECKOUT / name).read_text(encoding="utf-8")] == []
    licences = {(CHECKOUT / folder / "LICENSE").read_bytes() for folder in (".", "papers")}
    assert len(licences) == 1  # each distribution carries it


def test_every_folder_says_in_one_line_what_it_is() -> None:
    for path in ROOT.rglob("__init__.py"):
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        assert docstring, path
        first = docstring.splitlines()[0]
        assert first.endswith((".", ":")), path


SHARED_OBJECTS = {"heapwright.recorder", "heapwright.recorder_sites"}
"""What lies next to the modules to be preloaded, and is none."""

MODULES = sorted({found.name for found in pkgutil.walk_packages(heapwright.__path__, "heapwright.")} - SHARED_OBJECTS)


def test_every_module_imports_by_its_name_as_a_module() -> None:
    wrong = []
    for name in MODULES:
        scope: dict[str, object] = {}
        exec(f"import {name} as m", scope)
        if scope["m"] is not sys.modules[name]:
            wrong.append(name)
    assert len(MODULES) > 200
    assert wrong == []


def test_names_of_the_api_are_those_of_its_stub_and_all_load() -> None:
    tree = ast.parse(Path(api.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    listed = [str(alias.asname).replace("_copies", "copy_kinds") for node in imports for alias in node.names]
    assert dir(api) == sorted(listed)
    assert {*heapwright.__all__} - {*listed} == {"HeapwrightError", "__version__"}
    assert [name for name in listed if not hasattr(api, name)] == []
    with pytest.raises(AttributeError, match=r"'heapwright\._api' has no attribute 'nothing'"):
        getattr(api, "nothing")  # noqa: B009


@pytest.mark.parametrize("name", sorted(name for name in heapwright.__all__ if callable(getattr(heapwright, name))))
def test_a_callable_of_the_api_pickles_as_itself(name: str) -> None:
    of_api = getattr(heapwright, name)
    assert inspect.isfunction(of_api) or inspect.isclass(of_api)
    assert pickle.loads(pickle.dumps(of_api)) is of_api


def test_all_that_is_public_is_what_the_root_lists() -> None:
    assert [path.name for path in ROOT.iterdir() if path.is_dir() and path.name[0] != "_"] == []


@pytest.mark.parametrize(("old", "new"), heapwright.RENAMED.items())
def test_an_older_name_of_the_api_warns_and_works(old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"heapwright.{old} is now heapwright.{new}"):
        assert getattr(heapwright, old) is getattr(heapwright, new)


def test_how_to_add_a_pool_kind_names_every_file_that_its_example_is_in() -> None:
    kind = re.compile(r"(?<!binary-)buddy", re.IGNORECASE)  # the zoo has a binary-buddy
    sources = [path for pattern in ("csrc/**/*.h", "native/*.[ch]", "src/**/*.py*") for path in CHECKOUT.glob(pattern)]
    texts = {path: path.read_text(encoding="utf-8") for path in sources if path.suffix != ".pyc"}
    page = (CHECKOUT / "docs" / "developing" / "pool-kind.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/.]+\.\w+)`", page)
    files = {CHECKOUT / name if (CHECKOUT / name).is_file() else ROOT / name for name in named}
    assert [path for path in files if not path.is_file()] == []
    assert [path for path, text in texts.items() if kind.search(text) and path not in files] == []
