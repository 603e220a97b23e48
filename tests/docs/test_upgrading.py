"""docs/upgrading.md lists every renamed public name, and each old name still works and warns."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import heapwright as hw
from heapwright import _cli as cli

ROOT = Path(__file__).resolve().parents[2]
WORKS = "works, with a warning"


def rows() -> list[tuple[str, str, str]]:
    """The rows of all tables: old name, new name, what became of the old one."""
    page = (ROOT / "docs" / "upgrading.md").read_text(encoding="utf-8")
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in page.split("\n") if line[:1] == "|"]
    return [(old, new, state) for old, new, state in cells if old not in ("old", "---")]


def accepted() -> dict[str, str]:
    return {old.strip("`"): new.strip("`") for old, new, state in rows() if state == WORKS}


def test_a_row_has_an_old_name_a_new_one_and_what_became_of_the_old() -> None:
    assert len(rows()) >= 5
    assert [row for row in rows() if not row[2].startswith((WORKS, "gone", "both are there"))] == []
    assert [old for old, _, _ in rows() if "`" not in old] == []


def test_every_renamed_name_of_the_api_and_command_is_listed() -> None:
    expected = {f"hw.{old}": f"hw.{new}" for old, new in hw.RENAMED.items()}
    expected |= {f"heapwright {old}": f"heapwright {new}" for old, new in cli.RENAMED.items()}
    assert expected.items() <= accepted().items()


@pytest.mark.parametrize(("old", "new"), [pair for pair in accepted().items() if re.fullmatch(r"hw\.\w+", pair[0])])
def test_an_old_name_of_the_api_works_and_warns(old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=re.escape(new.removeprefix("hw."))):
        assert getattr(hw, old.removeprefix("hw.")) is getattr(hw, new.removeprefix("hw."))


COMMANDS = [pair for pair in accepted().items() if re.fullmatch(r"heapwright [\w-]+", pair[0])]


@pytest.mark.parametrize(("old", "new"), COMMANDS)
def test_an_old_command_works_and_warns(old: str, new: str) -> None:
    run = CliRunner().invoke(cli.heapwright, [old.removeprefix("heapwright "), "--help"])
    assert run.exit_code == 0
    assert f"{old} is now {new}" in run.stderr


def test_other_old_names_have_a_test_of_their_own() -> None:
    tests = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    others = [old for old in accepted() if not re.fullmatch(r"hw\.\w+|heapwright [\w-]+", old)]
    names = {old: re.findall(r"[A-Za-z_][\w-]{3,}", old)[-1] for old in others}
    assert [old for old, name in names.items() if not re.search(rf"\b{name}\b", tests)] == []
