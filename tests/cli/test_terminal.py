"""What is printed fits a terminal of 80 columns; in a file no line has more than 100, nor blanks at its end."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Mapping
from pathlib import Path

import pytest
from forked_commands import HEAPWRIGHT
from run_length import some

import heapwright as hw
import heapwright._cli

pytestmark = pytest.mark.usefixtures("forks")

COLUMNS = 80
PIPED_COLUMNS = 100
ESCAPES = r"\x1b\[[0-9;?]*[a-zA-Z]"
EXAMPLES = Path(__file__).parents[2] / "examples"
RECORDED = Path("a_folder_with_a_long_name", "of_recorded_programs")
TRACE, BROKER = (RECORDED / name for name in ("lighttpd_server.parquet", "mosquitto_broker.parquet"))
PACKETS = EXAMPLES / "tcp_transfers.parquet"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("terminal")
    (made / RECORDED).mkdir(parents=True)
    for trace in (TRACE, BROKER):
        hw.cut(EXAMPLES / trace.name, first=1_500).write(made / trace)
    words = [HEAPWRIGHT, "explore", str(TRACE), "--limit", "10", "--copies", "2", "-o"]
    subprocess.run([*words, "s.duckdb", "--long-run", "0"], cwd=made, check=True, capture_output=True)
    subprocess.run([*words, "endured.duckdb"], cwd=made, check=True, capture_output=True)
    (made / "board.log").write_text("hw+ 0x100 24 0\nhw- 0x100 10\n")
    return made


COMMANDS = (
    ["zoo"],
    ["platforms"],
    ["pareto", "s.duckdb"],
    ["pareto", "s.duckdb", "--all"],
    ["pareto", "s.duckdb", "--pick", "smallest"],
    ["pareto", "endured.duckdb"],
    ["pareto", "endured.duckdb", "--all"],
    ["fit", str(TRACE), "--heap", "tlsf", "--copies", "2"],
    ["stress", str(TRACE), "--heap", "tlsf", "--calls", "10000"],
    ["suggest", str(TRACE)],
    ["check", str(TRACE), "--heap", "tlsf", "--budget", "9M", "--fail-if", "accesses_malloc_max > 200"],
    ["replay", str(TRACE), "--heap", "tlsf", "--heap", "freertos-heap4", "--heap", "newlib-nano"],
    ["profile", str(TRACE)],
    ["attack", "tlsf", "--runs", "5", "--checks", "full"],
    ["measure", "tlsf", str(TRACE)],
    ["import", "board.log", "-o", "board.parquet"],
    ["hooks", "freertos", "-o", "hooks"],
    ["live", "board.log", "-o", "live.parquet", "--for", "0.2s"],
    ["trace", "info", str(TRACE), str(BROKER)],
    ["trace", "copies", str(TRACE), "-o", "copies", "--count", "2"],
    ["trace", "worst", str(BROKER), "freertos-heap4", "-o", "worst.parquet", "--tries", "3"],
    ["profile", str(PACKETS)],
    ["network", str(PACKETS), "--ring", "8", "--set", "count=500", "--budget", "1s", "-o", "network"],
    ["workload", "easyport", str(PACKETS), "--load", "0.7,0.9", "-o", "tcp.parquet"],
    ["fit", str(BROKER), "--heap", "zephyr-sys-heap", "--copies", "2"],
    ["replay", str(TRACE), str(BROKER), "--heap", "lwip-mem", "--heap", "lib:glibc"],
    ["pareto", "s.duckdb", "--objectives", "footprint_bytes,accesses_malloc_p999,fragmentation_with_headers"],
    ["study", "info", "s.duckdb"],
    ["study", "again", "s.duckdb:tlsf"],
    ["study", "diff", "s.duckdb", "endured.duckdb"],
    ["study", "export", "s.duckdb", "-o", "s.csv"],
    ["generate", "tlsf", "-o", "heap"],
)


def every_second_command(turn: int) -> pytest.MarkDecorator:
    """The other ones in the other test, and all in both in long runs."""
    chosen = some(COMMANDS, 2, turn)
    return pytest.mark.parametrize("words", chosen, ids=[" ".join(words[:2]) for words in chosen])


NOT_HERE = {
    "diagnose": "prints sentences and a table; tests/diagnose looks at them",
    "demo": "takes a minute; test_demo.py looks at what it prints",
    "record": "stdout is the program's",
    "explore": "prints what pareto does; the tutorial shows it, and test_doc_commands.py runs it on such a terminal",
    "prove": "needs CBMC, and prints sentences",
    "report": "prints a line; the gallery shows it, and test_doc_commands.py runs it",
    "reproduce": "takes minutes, and prints paths and sentences",
}
"""Commands that are not tried, and why."""


def test_every_command_is_tried() -> None:
    assert {words[0] for words in COMMANDS} | NOT_HERE.keys() == set(heapwright._cli.COMMANDS)


@every_second_command(0)
def test_no_line_is_wider_than_the_terminal(words: list[str], folder: Path) -> None:
    printed = re.sub(ESCAPES, "", on_a_terminal(words, folder)).splitlines()
    assert printed
    assert [line for line in printed if len(line) > COLUMNS] == []


@every_second_command(1)
def test_lines_of_a_file_are_short_and_end_with_what_they_say(words: list[str], folder: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    done = subprocess.run([HEAPWRIGHT, *words], cwd=folder, env=environment, capture_output=True, text=True, check=True)
    assert [line for line in done.stdout.splitlines() if len(line) > PIPED_COLUMNS] == []
    assert [line for line in done.stdout.splitlines() if line != line.rstrip()] == []
    assert "\x1b" not in done.stdout


def test_picks_are_green_where_colours_are_wanted(folder: Path) -> None:
    words = ["pareto", "s.duckdb"]
    shown = on_a_terminal(words, folder).splitlines()
    (coloured,) = {line[:16] for line in shown if "FASTEST" in line and not line[0].isupper()}  # rows, no sentences
    assert "\x1b[1;32m" in coloured
    assert "\x1b[1;32m" not in on_a_terminal(words, folder, {"NO_COLOR": "1"})


def on_a_terminal(words: list[str], folder: Path, more: Mapping[str, str] | None = None) -> str:
    """What a command prints on a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES", "NO_COLOR")}
    command = [HEAPWRIGHT, *words]
    with subprocess.Popen(
        command,
        cwd=folder,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        env=environment | {"TERM": "xterm", **(more or {})},
    ) as started:
        os.close(theirs)
        written = b"".join(iter(lambda: _read(ours), b""))
    os.close(ours)
    assert started.returncode == 0
    return written.decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the other end is closed
        return b""
