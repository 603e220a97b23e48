"""What is printed fits a terminal of 80 columns, and a file that it goes to has no blanks at the ends of lines."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

COLUMNS = 80
TRACE = Path(__file__).parents[2] / "examples" / "lighttpd_server.parquet"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("terminal")
    words = ["explore", str(TRACE), "--limit", "30", "--copies", "2", "-o", "s.duckdb"]
    subprocess.run([sys.executable, "-m", "heapwright", *words], cwd=made, check=True, capture_output=True)
    return made


COMMANDS = (
    ["zoo"],
    ["platforms"],
    ["pareto", "s.duckdb"],
    ["pareto", "s.duckdb", "--all"],
    ["pareto", "s.duckdb", "--pick", "smallest"],
    ["fit", str(TRACE), "--heap", "tlsf", "--copies", "2"],
    ["replay", str(TRACE), "--heap", "tlsf", "--heap", "freertos-heap4", "--heap", "newlib-nano"],
    ["profile", str(TRACE)],
    ["attack", "tlsf"],
    ["measure", "tlsf", str(TRACE)],
)
every_command = pytest.mark.parametrize("words", COMMANDS, ids=[" ".join(words[:2]) for words in COMMANDS])


@every_command
def test_no_line_is_wider_than_the_terminal(words: list[str], folder: Path) -> None:
    printed = on_a_terminal(words, folder)
    assert len(printed) > 3
    assert [line for line in printed if len(line) > COLUMNS] == []


@every_command
def test_lines_of_a_file_end_with_what_they_say(words: list[str], folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "heapwright", *words], cwd=folder, capture_output=True, text=True, check=True
    )
    assert [line for line in done.stdout.splitlines() if line != line.rstrip()] == []
    assert "\x1b" not in done.stdout


def on_a_terminal(words: list[str], folder: Path) -> list[str]:
    """The lines that a command prints on a terminal, without colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES", "NO_COLOR")}
    command = [sys.executable, "-m", "heapwright", *words]
    with subprocess.Popen(
        command, cwd=folder, stdout=theirs, stderr=subprocess.DEVNULL, env=environment | {"TERM": "xterm"}
    ) as started:
        os.close(theirs)
        written = b"".join(iter(lambda: _read(ours), b""))
    os.close(ours)
    assert started.returncode == 0
    text = written.decode().replace("\r\n", "\n")
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text).splitlines()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the other end is closed
        return b""
