"""The papers' pages without packets are those that `papers/digests.txt` promises."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from click.testing import CliRunner
from needed import absent

from heapwright.cli import heapwright
from heapwright_papers import measuring

DIGESTS = Path(__file__).resolve().parents[2] / "papers" / "digests.txt"
COMPILER = "12.2"
"""Of Debian 12, by which instructions and bytes of code on the pages were counted: `docs/artifact.md`."""


@pytest.mark.slow
def test_the_pages_are_the_same_bytes(tmp_path: Path) -> None:
    setting = measuring.session()
    if setting is None or COMPILER not in setting.setting:
        absent("the cross compiler of Debian 12", f"found: {setting and setting.setting}")
    result = CliRunner().invoke(heapwright, ["reproduce", "-o", str(tmp_path / "papers")])
    assert result.exit_code == 0, result.output
    promised = {name: digest for digest, name in map(str.split, DIGESTS.read_text(encoding="utf-8").splitlines())}
    made = {name: hashlib.sha256((tmp_path / "papers" / name).read_bytes()).hexdigest() for name in promised}
    assert [name for name in promised if made[name] != promised[name]] == []
