"""Every page prints what it shows: its `$` commands are run, from the top, in a fresh folder.

Pictures of the studies that they leave are those of the page.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import doc_commands
import pytest
import short_explorations
from doc_commands import ROOT, commands, differences, pages
from forked_commands import HEAPWRIGHT
from run_length import brief

from pictures.catalogue import EXPLORED, IMAGES

PAGES = {str(path.relative_to(ROOT)): path for path in pages()}

WHOLE = "docs/tutorial.md"
"""Explores a whole space, 31 s of processor time: it is run in long runs alone."""

NOT_RUN = {
    "docs/many-machines.md": 5,
    "docs/ci-check.md": 1,
    "docs/slurm.md": 1,
    "docs/kubernetes.md": 4,
    "docs/traces.md": 1,
}
"""Commands that are not run anywhere, by page: each that is marked is counted here."""

ACCEPTED = (
    "needs a board: ",
    "needs a network: ",
    "needs root: ",
    "needs another recording: ",
    "takes minutes: ",
)


@pytest.mark.slow
@pytest.mark.usefixtures("forks")
@pytest.mark.parametrize("name", [name for name in PAGES if name != brief(WHOLE, "")])
def test_a_page_prints_what_it_shows(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(short_explorations.ASKED)  # as commands ship
    monkeypatch.setattr(doc_commands, "BINARIES", [Path(HEAPWRIGHT).parent, *doc_commands.BINARIES])
    output = differences(PAGES[name], tmp_path)
    assert not output, "\n".join([*output, f"python tests/helpers/doc_commands.py {name} writes what is printed now"])
    if name in EXPLORED:
        for picture, drawn in EXPLORED[name].drawn(tmp_path).items():
            stored = (IMAGES / f"{picture}.svg").read_text(encoding="utf-8")
            assert stored == drawn.svg(), f"make pictures draws {picture} again"


def test_no_command_is_left_out_in_silence() -> None:
    results = {name: commands(path.read_text(encoding="utf-8")) for name, path in PAGES.items()}
    left_out = [(name, item.why) for name, listed in results.items() for item in listed if item.mark == "not run"]
    assert Counter(name for name, _ in left_out) == NOT_RUN
    assert [(name, why) for name, why in left_out if not why.startswith(ACCEPTED)] == []


def test_the_manual_is_run_in_the_main() -> None:
    run = {name: len(commands(path.read_text(encoding="utf-8"))) - NOT_RUN.get(name, 0) for name, path in PAGES.items()}
    assert run["docs/tutorial.md"] >= 15
    assert run["docs/commands.md"] >= 18
