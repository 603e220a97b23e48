"""What a scanner reads of a log is what the patterns of its format read line by line."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from heap_logs import LOGS, MORE_LOGS

from heapwright._support.errors import HeapwrightError
from heapwright._traces.logs import import_log
from heapwright._traces.logs.scanning import ScannedLog
from heapwright._traces.trace import Trace

INPUTS = 40
TOKENS = [
    *(b"9" * 30, b"-1", b"0x", b"(nil)", b"nil", b"0", b"00012", b"0xFF", b"0x0", b"18446744073709551615"),
    *(b"9223372036854775808", b"2147483649", b"\r", b"\t", b" ", b"\xff", b'"', b";", b",", b".", b":", b"(", b")"),
    *(b"+", b"-", b"=", b"hw+ 0x1 5", b"<unfinished ...>", b"free", b"malloc", b"ptr=0x5", b"[7]", b"lost 5 events"),
]
"""What a damaged line may hold in place of a word."""

TEXTS = {
    name: text.encode() if isinstance(text, str) else text
    for name, text in {**LOGS, **MORE_LOGS}.items()
    if isinstance(text, str)
}
COLUMNS = ("ts_us", "tid", "op", "id", "size", "align", "failed", "site")


def by_lines(log: ScannedLog, scanner: Callable[[], object]) -> None:
    """Read each line by the patterns of its format alone."""
    for line in log._source.lines():
        log._read_line(line)


def imported(path: Path) -> Trace | str:
    try:
        return import_log(path)
    except HeapwrightError as error:
        return str(error)


def damaged(text: bytes, draw: random.Random) -> bytes:
    lines = text.split(b"\n")
    for _ in range(draw.choice([0, 1, 3, 10, 40])):
        at = draw.randrange(len(lines))
        words = [match.span() for match in re.finditer(rb"\w+|\W", lines[at])]
        begin, end = draw.choice(words) if words else (0, 0)
        instead = draw.choice([b"", draw.choice(TOKENS), lines[at][slice(*draw.choice(words or [(0, 0)]))]])
        lines[at] = lines[at][:begin] + instead + lines[at][end:]
        if draw.random() < 0.2:
            lines.insert(draw.randrange(len(lines)), lines[at])
    return b"\n".join(lines)


@pytest.mark.parametrize("name", TEXTS)
def test_a_scanned_log_is_as_read_line_by_line(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, log = TEXTS[name], tmp_path / "app.log"
    for seed in range(INPUTS):
        log.write_bytes(first + damaged(first * 20, random.Random(seed)) + b"\n")
        scanned = imported(log)
        with monkeypatch.context() as patched:
            patched.setattr(ScannedLog, "read", by_lines)
            expected = imported(log)
        if isinstance(scanned, str) or isinstance(expected, str):
            assert scanned == expected, seed
            continue
        for column in COLUMNS:
            assert np.array_equal(getattr(scanned, column), getattr(expected, column)), (seed, column)
        assert (scanned.sites, scanned.metadata, scanned.repairs) == (
            expected.sites,
            expected.metadata,
            expected.repairs,
        )


def test_most_lines_of_a_log_fit_a_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables learn their words from the first 500 lines."""
    lines = [f"{row % 4},{('malloc', 'free')[row % 2]},{row // 2 % 9 * 64 + 64:#x},24" for row in range(5000)]
    log = tmp_path / "app.csv"
    log.write_text("\n".join(["thread,op,address,size", *lines]) + "\n")
    read: list[bytes] = []
    read_one = ScannedLog._read_one

    def counted(log: ScannedLog, line: bytes) -> None:
        read.append(line)
        read_one(log, line)

    monkeypatch.setattr(ScannedLog, "_read_one", counted)
    assert len(import_log(log)) == 5000
    assert len(read) == 500
