"""Runs the `$` commands of a page in a fresh folder, and compares what they print with what the page shows.

A block of commands is indented by four blanks and begins with `$`. Below a command stands what it prints on a terminal
of 80 columns; if that is nothing, what it prints on stderr. A page runs from its top in one empty folder,
with the files of the checkout that its commands name. Three things may differ:

- times, rates and process numbers: what `MASKS` lists;
- what `...` stands for in what is shown: on a line of its own for any lines, within a line for any characters;
- all numbers of a block with the comment `<!-- numbers vary: WHY -->` before it, which readers do not see.

`<!-- not run: WHY -->` before a block: it cannot be run everywhere, or takes minutes. `<!-- needs: PROGRAM TEXT -->`:
it is run if `PROGRAM --version` prints TEXT.

    python tests/helpers/doc_commands.py docs/tutorial.md    # writes what is printed now into the page
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tool_requirements import is_installed

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = 80
SECONDS = 300
INDENT = "    "

BINARIES = [Path(sys.executable).parent]
"""Folders where programs are looked for first."""

MASKS: tuple[tuple[str, str], ...] = (
    (r"\b\d[\d.,]* (?=(s|ms|ns|seconds?|minutes?)\b)", "# "),
    (r"\b\d[\d.]* % of the run's processor time", "# % of the run's processor time"),
    (r"\bprocess \d+", "process #"),
    (r'("(pid|share|\w*seconds|\w*_ns|ns_per_\w+)": )\d[\d.e+-]*', r"\1#"),
)
"""What is never compared, as (pattern, what takes its place): times, what recording costs, process numbers."""

_MARK = re.compile(r"<!-- (not run|numbers vary|needs): (.+) -->")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


@dataclass(frozen=True)
class Command:
    """A command of a page: what it says, what it shows, where that is, and the mark of its block."""

    text: str
    shown: list[str]
    begin: int
    end: int
    mark: str = ""
    why: str = ""


def pages() -> list[Path]:
    """The pages that have commands."""
    results = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "examples/README.md", ROOT / "bench/README.md"]
    results += sorted((ROOT / "docs").rglob("*.md"))
    return [path for path in results if re.search(r"^\s*\$ ", path.read_text(encoding="utf-8"), re.MULTILINE)]


def commands(page: str) -> list[Command]:
    """The commands of a page, from the top; ValueError for one that stands where none is looked for."""
    lines = page.split("\n")
    results: list[Command] = []
    mark, why, at = "", "", 0
    while at < len(lines):
        line = lines[at]
        if output := _MARK.fullmatch(line):
            mark, why = output.groups()
        elif line.startswith(INDENT + "$ ") and _begins(lines, at):
            end = _end_of_block(lines, at)
            results += _split(lines, at, end, mark, why)
            mark, at = "", end
            continue
        elif re.match(r"\s*\$ ", line):
            raise ValueError(f"line {at + 1}: {line.strip()}: commands begin a block indented by four blanks")
        elif mark and line.strip():
            raise ValueError(f"line {at + 1}: {line.strip()}: after '{mark}: {why}' a block of commands is expected")
        at += 1
    return results


def _begins(lines: Sequence[str], at: int) -> bool:
    """Whether a line of code begins a block."""
    before = next((line for line in reversed(lines[:at]) if line.strip()), "")
    return not before.startswith(INDENT)


def _end_of_block(lines: Sequence[str], at: int) -> int:
    end = at + 1
    for index in range(at, len(lines)):
        if lines[index].startswith(INDENT):
            end = index + 1
        elif lines[index].strip():
            break
    return end


def _split(lines: Sequence[str], begin: int, end: int, mark: str, why: str) -> Iterator[Command]:
    starts = [at for at in range(begin, end) if lines[at].startswith(INDENT + "$ ")]
    for start, after in zip(starts, [*starts[1:], end], strict=True):
        at = start + 1
        while at < after and _goes_on("\n".join(lines[start:at])):
            at += 1
        text = "\n".join(line.removeprefix(INDENT) for line in lines[start:at]).removeprefix("$ ")
        yield Command(text, [line.removeprefix(INDENT) for line in lines[at:after]], at, after, mark, why)


def _goes_on(text: str) -> bool:
    """Whether a command has more lines: this one ends with a backslash, or inside quotes."""
    quotes = re.sub(r"\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"", "", text, flags=re.DOTALL)
    return text.endswith("\\") or "'" in quotes or '"' in quotes


def folder_of(page: Path, folder: Path) -> None:
    """Put the files of the checkout that the page's commands name into a folder."""
    for command in commands(page.read_text(encoding="utf-8")):
        for word in re.findall(r"[\w./-]+", command.text):
            source = ROOT / word
            if re.match(r"(examples/)?[\w.-]+$", word) and source.is_file():
                (folder / word).parent.mkdir(exist_ok=True)
                shutil.copy(source, folder / word)


def can_run(command: Command) -> bool:
    """Whether a command can be run here."""
    if command.mark != "needs":
        return command.mark != "not run"
    program, _, text = command.why.partition(" ")
    if not is_installed(program):
        return False
    output = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    return text in output


def run(command: Command, folder: Path) -> tuple[list[str], int]:
    """The lines that a command prints on a terminal, without colours, and its exit code."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    written: list[bytes] = []
    reader = threading.Thread(target=lambda: written.extend(iter(lambda: _read(ours), b"")))
    reader.start()
    with tempfile.TemporaryFile() as errors:
        try:
            status = subprocess.run(
                ["bash", "-c", command.text],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=theirs,
                stderr=errors,
                env=_environment(),
                timeout=SECONDS,
                check=False,
            ).returncode
        finally:
            os.close(theirs)
            reader.join()
            os.close(ours)
        errors.seek(0)
        output = errors.read()
    text = (b"".join(written) or output).decode().replace("\r\n", "\n")
    return _trimmed(_ESCAPES.sub("", text).split("\n")), status


def _environment() -> dict[str, str]:
    ours = ("COLUMNS", "LINES", "NO_COLOR", "PYTHONPATH")
    kept = {key: value for key, value in os.environ.items() if key not in ours}
    path = ":".join(map(str, [*BINARIES, kept["PATH"]]))
    return kept | {"PATH": path, "TERM": "xterm", "LC_ALL": "C.UTF-8"}


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the other end is closed
        return b""


def _trimmed(lines: Sequence[str]) -> list[str]:
    """Lines without blanks at their ends, and without empty ones at the end."""
    stripped = [line.rstrip() for line in lines]
    while stripped and not stripped[-1]:
        stripped.pop()
    return stripped


def masked(line: str, *, numbers: bool = False) -> str:
    """A line without what is never compared; with `numbers` without any, nor the widths of columns."""
    for pattern, instead in MASKS:
        line = re.sub(pattern, instead, line)
    return re.sub(r" +", " ", re.sub(r"\d[\d.,]*", "#", line)) if numbers else line


def differs(command: Command, printed: Sequence[str]) -> bool:
    """Whether a command prints something else than its page shows."""
    numbers = command.mark == "numbers vary"
    now = "\n".join(masked(line, numbers=numbers) for line in _trimmed(printed))
    parts = []
    for line in _trimmed(command.shown):
        if line.strip() == "...":
            parts.append(r"(?:.*\n)*")
        else:
            parts.append(".*".join(map(re.escape, masked(line, numbers=numbers).split("..."))) + "\n")
    return not re.fullmatch("".join(parts), now + "\n" if now else "")


def differences(page: Path, folder: Path, see: Callable[[Command, list[str]], None] | None = None) -> list[str]:
    """Run a page in a folder; what is printed otherwise than shown, and what fails and shows nothing, in words."""
    folder_of(page, folder)
    output = []
    for command in commands(page.read_text(encoding="utf-8")):
        if not can_run(command):
            continue
        printed, status = run(command, folder)
        if differs(command, printed):
            shown, now = "\n".join(_trimmed(command.shown)), "\n".join(printed)
            output.append(f"{page.name}, line {command.begin}: $ {command.text}\nshown:\n{shown}\nprinted:\n{now}\n")
            if see:
                see(command, printed)
        elif status and not printed:
            output.append(f"{page.name}, line {command.begin}: $ {command.text}\nends with exit code {status}\n")
    return output


def abridged(shown: Sequence[str], printed: list[str]) -> list[str]:
    """What is printed, left out in the middle where one line `...` did so before."""
    dots = [at for at, line in enumerate(shown) if line.strip() == "..."]
    if len(dots) != 1 or len(printed) < len(shown):
        return printed
    after = len(shown) - dots[0] - 1
    return [*printed[: dots[0]], "...", *printed[len(printed) - after :]]


def rewrite(page: Path) -> int:
    """Write what is printed now into a page; how many commands that changes."""
    lines = page.read_text(encoding="utf-8").split("\n")
    changed: list[tuple[Command, list[str]]] = []
    with tempfile.TemporaryDirectory() as folder:
        differences(page, Path(folder), lambda command, printed: changed.append((command, printed)))
    for command, printed in reversed(changed):
        blanks = len(command.shown) - len(_trimmed(command.shown))
        new = abridged(_trimmed(command.shown), printed) + [""] * blanks
        lines[command.begin : command.end] = [(INDENT + line).rstrip() for line in new]
    page.write_text("\n".join(lines), encoding="utf-8")
    return len(changed)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(f"{name}: {rewrite(Path(name).resolve())} commands show something new")
