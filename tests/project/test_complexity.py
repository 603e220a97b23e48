"""No function of the package and the recorder has a cyclomatic complexity above 15, `and` and `or` counted."""

from __future__ import annotations

from pathlib import Path

import lizard

ROOT = Path(__file__).resolve().parents[2]
MOST = 15
SOURCES = {".py", ".c", ".h"}


def complex_functions(folder: Path, most: int) -> tuple[int, list[str]]:
    """How many functions a folder has, and those of a complexity above a bound."""
    files = sorted(str(path) for path in folder.rglob("*") if path.suffix in SOURCES)
    functions = [(file.filename, item) for file in lizard.analyze_files(files) for item in file.function_list]
    return len(functions), [
        f"{Path(name).relative_to(folder)}:{item.start_line}: {item.name}, {item.cyclomatic_complexity}"
        for name, item in functions
        if item.cyclomatic_complexity > most
    ]


def test_no_function_of_the_package_is_above_the_bound() -> None:
    count, results = complex_functions(ROOT / "src", MOST)
    assert count > 4000
    assert results == []


def test_no_function_of_the_recorder_is_above_the_bound() -> None:
    count, results = complex_functions(ROOT / "recorder", MOST)
    assert count > 50
    assert results == []


def test_operators_of_conditions_and_functions_in_c_count(tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text("def two(a, b):\n    return 1 if a and b else 0\n")
    (tmp_path / "three.c").write_text("int three(int a, int b)\n{\n    return a && b || a > 1;\n}\n")
    assert complex_functions(tmp_path, 2) == (2, ["three.c:1: three, 3", "two.py:1: two, 3"])
