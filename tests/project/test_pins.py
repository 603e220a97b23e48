"""The pins with hashes are the versions that `make` and CI install, and cover what an installation needs."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PIN = re.compile(r"^([a-z0-9-]+)==([^\s;]+)", re.MULTILINE)
HASHED = (ROOT / "requirements" / "install.txt").read_text(encoding="utf-8")


def test_pins_with_hashes_are_the_versions_that_are_tested() -> None:
    tested = set(PIN.findall((ROOT / "requirements" / "constraints.txt").read_text(encoding="utf-8")))
    assert set(PIN.findall(HASHED)) <= tested


def test_each_has_a_hash() -> None:
    pins = re.split(r"^(?=[a-z])", HASHED, flags=re.MULTILINE)[1:]
    assert len(pins) == len(PIN.findall(HASHED)) > 20
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", pin) for pin in pins)


def test_every_dependency_has_one() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    needed = re.findall(r'^    "([a-z0-9-]+)', text.partition("\ndependencies = [")[2].partition("]")[0], re.MULTILINE)
    assert len(needed) > 10
    assert set(needed) <= {name for name, _ in PIN.findall(HASHED)}


def test_actions_are_pinned_by_commit() -> None:
    """A tag can be moved to another commit; the comment says which version a commit is."""
    files = [*(ROOT / ".github" / "workflows").glob("*.yml"), ROOT / "gate" / "action.yml"]
    used = [result for file in files for result in re.findall(r"\buses: (.*)", file.read_text(encoding="utf-8"))]
    assert len(used) > 20
    assert [item for item in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+(\.\d+){2}", item)] == []
    assert len(set(used)) == len({item.split("@")[0] for item in used}), "one version of each"
