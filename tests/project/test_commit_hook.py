"""The commit-msg hook: which subjects it accepts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

HOOK = Path(__file__).resolve().parents[2] / ".ci" / "commit-msg"


def run(folder: Path, message: str) -> subprocess.CompletedProcess[str]:
    """Run the hook on a message as git does, with the file that holds it."""
    file = folder / "COMMIT_EDITMSG"
    file.write_text(message, encoding="utf-8")
    return subprocess.run([HOOK, file], capture_output=True, text=True)


@pytest.mark.parametrize(
    "message",
    ["Add a test\n\nA body that may be longer.\n", "Feed the board\n", "Merge branch 'x'\n", "A" * 72 + "\n"],
)
def test_an_imperative_of_at_most_72_characters_is_accepted(tmp_path: Path, message: str) -> None:
    assert run(tmp_path, message).returncode == 0


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("", "the message is empty"),
        ("A" * 73 + "\n", "the subject has 73 characters, at most 72"),
        ("add a test\n", "the subject begins with a capital letter"),
        ("Added a test\n", "the subject is an imperative"),
        ("Adding a test\n", "the subject is an imperative"),
        ("Add a test.\n", "the subject has no full stop"),
    ],
)
def test_any_other_subject_is_refused_with_the_reason(tmp_path: Path, message: str, reason: str) -> None:
    done = run(tmp_path, message)
    assert done.returncode == 1
    assert done.stderr.startswith(f"commit-msg: {reason}")
