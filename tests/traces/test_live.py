"""A log that is followed while it is written: from every kind of source, to the trace that import makes of it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from forked_commands import HEAPWRIGHT
from heap_logs import BOARD_COUNTED, LOGS

import heapwright as hw
from heapwright._api import Moment
from heapwright._cli import heapwright
from heapwright._support.errors import HeapwrightError, ParameterError
from heapwright._traces.trace import Trace

BROKER = Path(__file__).parents[2] / "examples" / "mosquitto_broker.parquet"
PIECE = 997
"""Bytes that are written at once: a call's line lies in two of them."""


def lines_of(trace: Trace, calls: int) -> bytes:
    """The first calls as any program can print them, among a boot's lines."""
    at: dict[int, int] = {}
    lines = ["boot: 3 tasks"]
    columns = (column[:calls].tolist() for column in (trace.op, trace.id, trace.size, trace.ts_us))
    for number, (op, id_, size, time_us) in enumerate(zip(*columns, strict=True), 1):
        place = 0x20000000 + 0x100000 * number
        if op == hw.FREE:
            lines.append(f"hw- 0x{at.pop(id_):x} {time_us}")
        elif op == hw.REALLOC:
            lines.append(f"hw= 0x{at[id_]:x} 0x{place:x} {size} {time_us}")
        else:
            lines.append(f"hw+ 0x{place:x} {size} {time_us}")
        at[id_] = place
    return "\n".join([*lines, ""]).encode()


@pytest.fixture(scope="module")
def log() -> bytes:
    return lines_of(hw.read_trace(BROKER), 3000)


def imported(log: bytes, folder: Path) -> bytes:
    """The trace that import makes of it."""
    (folder / "whole.log").write_bytes(log)
    hw.convert_log(folder / "whole.log", folder / "whole.parquet")
    return (folder / "whole.parquet").read_bytes()


def pieces(log: bytes) -> list[bytes]:
    return [log[at : at + PIECE] for at in range(0, len(log), PIECE)]


def writing(write: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=write)
    thread.start()
    return thread


# ---- sources -------------------------------------------------------------------------------------------------------


def _through_a_pipe(log: bytes, folder: Path) -> tuple[str, Callable[[], None]]:
    os.mkfifo(folder / "pipe")

    def write() -> None:
        with (folder / "pipe").open("wb", buffering=0) as pipe:
            for piece in pieces(log):
                pipe.write(piece)

    return str(folder / "pipe"), write


def _through_a_terminal(log: bytes, folder: Path) -> tuple[str, Callable[[], None]]:
    ours, theirs = pty.openpty()
    path = os.ttyname(theirs)

    def write() -> None:
        while termios.tcgetattr(theirs)[3] & termios.ICANON:  # until it is read as a serial port
            time.sleep(0.01)
        for piece in pieces(log):
            os.write(ours, piece)
        kept = folder / "live.parquet.log"
        deadline = time.monotonic() + 60
        while kept.stat().st_size < len(log) and time.monotonic() < deadline:
            time.sleep(0.01)
        os.close(theirs)
        os.close(ours)

    return path, write


def _through_a_socket(log: bytes, folder: Path, family: int = socket.AF_INET) -> tuple[str, Callable[[], None]]:
    server = socket.socket(family)
    server.bind(("127.0.0.1", 0) if family == socket.AF_INET else str(folder / "socket"))
    server.listen()

    def write() -> None:
        with server, server.accept()[0] as board:
            for piece in pieces(log):
                board.sendall(piece)

    output = server.getsockname()
    return output if isinstance(output, str) else "{}:{}".format(*output), write


def _through_a_unix_socket(log: bytes, folder: Path) -> tuple[str, Callable[[], None]]:
    return _through_a_socket(log, folder, socket.AF_UNIX)


@pytest.mark.parametrize("through", [_through_a_pipe, _through_a_terminal, _through_a_socket, _through_a_unix_socket])
def test_what_comes_is_the_trace_that_import_makes_of_it(
    through: Callable[[bytes, Path], tuple[str, Callable[[], None]]], log: bytes, tmp_path: Path
) -> None:
    source, write = through(log, tmp_path)
    writer = writing(write)
    lived = hw.live(source, tmp_path / "live.parquet", ["all-round", "freertos-heap4"])
    writer.join()
    assert (tmp_path / "live.parquet").read_bytes() == imported(log, tmp_path)
    assert not (tmp_path / "live.parquet.log").exists()
    trace = hw.read_trace(tmp_path / "live.parquet")
    last = lived.last
    assert (lived.trace.calls, last.calls, last.repairs) == (3000, 3000, [])
    assert (last.peak_bytes, last.peak_objects) == (trace.peak_live_bytes, trace.peak_live_objects)
    for name, heap in last.heaps.items():
        assert heap.used_bytes == hw.replay(trace, name).metrics["footprint_bytes"]


@pytest.mark.parametrize("name", ["text", "board"])
def test_a_file_that_grows_is_followed_until_somebody_ends_it(name: str, tmp_path: Path) -> None:
    log = LOGS[name]
    log = log.encode() if isinstance(log, str) else log
    whole = imported(log, tmp_path)
    calls = hw.convert_log(tmp_path / "whole.log", tmp_path / "again.parquet").calls
    grown = tmp_path / "app.log"
    grown.write_bytes(log[:50])
    shown: list[Moment] = []
    rest = iter([log[50:90], log[90:]])

    def show(moment: Moment) -> None:
        shown.append(moment)
        with grown.open("ab") as file:
            file.write(next(rest, b""))

    def going_on() -> bool:
        return not shown or shown[-1].calls < calls

    lived = hw.live(grown, tmp_path / "live.parquet", every=0.01, show=show, going_on=going_on)
    assert (tmp_path / "live.parquet").read_bytes() == whole
    assert [item.calls for item in shown] == sorted(item.calls for item in shown)
    assert shown[0].calls < lived.last.calls == calls


def test_a_file_that_is_begun_anew_is_read_on(tmp_path: Path) -> None:
    grown = tmp_path / "app.log"
    grown.write_text("hw+ 0x100 24\nhw+ 0x200 8\n")

    shown: list[int] = []

    def show(moment: Moment) -> None:
        shown.append(moment.calls)
        if shown == [2]:
            grown.write_text("hw- 0x100\n")

    lived = hw.live(grown, tmp_path / "live.parquet", every=0.01, show=show, going_on=lambda: 3 not in shown)
    assert (lived.last.calls, lived.last.live_bytes) == (3, 8)


# ---- the command ---------------------------------------------------------------------------------------------------


def test_who_holds_the_peak_is_shown_where_a_board_tells_sites(tmp_path: Path) -> None:
    (tmp_path / "board.log").write_text(BOARD_COUNTED)
    moments: list[Moment] = []
    lived = hw.live(
        tmp_path / "board.log",
        tmp_path / "app.parquet",
        every=0.01,
        show=moments.append,
        going_on=lambda: not moments or moments[-1].calls < 20,
    )
    assert dict(lived.last.holders).keys() == {"", "0xf7ceb2d5"}
    assert sum(held for _, held in lived.last.holders) == lived.last.peak_bytes == sum(range(40, 70))


def test_ctrl_c_ends_it_and_leaves_the_trace(log: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("board.log").write_bytes(log[:-5])

    def interrupt() -> None:
        while not Path("live.parquet.log").exists() or Path("live.parquet.log").stat().st_size < len(log) - 5:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    interrupting = writing(interrupt)
    done = CliRunner().invoke(heapwright, ["live", "board.log", "-o", "live.parquet"])
    interrupting.join()
    assert done.exit_code == 0, done.output
    assert Path("live.parquet").read_bytes() == imported(log[:-5], tmp_path)
    assert not Path("live.parquet.log").exists()
    *shown, last = done.stdout.splitlines()
    assert re.fullmatch(r"\d s: 2,999 calls, live [\d,]+ B in \d+ objects \(peak [\d,]+ B\)", shown[0])
    assert re.fullmatch(r"  all-round: used [\d,]+ B, largest free [\d,]+ B, failed 0", shown[1])
    assert len(shown) == 2  # nothing new, no line
    assert last.startswith("live.parquet: 2,999 calls of a text log, peak ")
    assert (
        done.stderr == "heapwright: board.log: the log is cut, and what is sound was read: its last line has no end\n"
    )


@pytest.mark.usefixtures("forks")
def test_a_terminal_shows_a_page(log: bytes, tmp_path: Path) -> None:
    source, write = _through_a_socket(log, tmp_path)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 80, 0, 0))
    words = ["live", source, "-o", "live.parquet", "--heap", "all-round", "--heap", "tlsf", "--arena", "48K"]
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
    with subprocess.Popen(
        [HEAPWRIGHT, *words], cwd=tmp_path, stdout=theirs, stderr=theirs, env=environment | {"TERM": "xterm"}
    ) as started:
        os.close(theirs)
        write()
        shown = b"".join(iter(lambda: _read(ours), b"")).decode().replace("\r\n", "\n")
    os.close(ours)
    assert started.returncode == 0, shown
    page = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.rpartition("\x1b[2K")[2]).splitlines()
    assert [line for line in page if len(line) > 80] == []
    assert re.fullmatch(re.escape(source) + r"  0:00:\d\d  3,000 calls, .*", page[0])
    trace = hw.read_trace(tmp_path / "live.parquet")
    assert f"peak {trace.peak_live_bytes:,} B in {trace.peak_live_objects:,}" in page[1]
    chart = page[2:8]
    assert {len(line) for line in chart} == {80}
    assert "█" in chart[0] or "▇" in chart[0]  # the peak
    for heap in ("all-round", "tlsf"):
        (row,) = (line.split() for line in page if line.startswith(f"{heap} "))
        assert row[-1] == f"{hw.replay(trace, heap, arena=49152).metrics['failed']:,}"
    largest = hw.profile(trace)["at_peak"][0]
    assert [f"{largest['size']:,}", f"{largest['objects']:,}", f"{largest['bytes']:,}"] in [
        line.split()[:3] for line in page
    ]


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the other end is closed
        return b""


# ---- what goes wrong -----------------------------------------------------------------------------------------------


def test_whatever_kills_it_what_was_read_is_kept(log: bytes, tmp_path: Path) -> None:
    (tmp_path / "board.log").write_bytes(log)
    kept = tmp_path / "live.parquet.log"

    def fail(moment: Moment) -> None:
        if moment.calls:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        hw.live(tmp_path / "board.log", tmp_path / "live.parquet", every=0.01, show=fail)
    assert kept.read_bytes() == log
    assert not (tmp_path / "live.parquet").exists()
    with pytest.raises(HeapwrightError, match=r"live\.parquet\.log: exists already, from a live view"):
        hw.live(tmp_path / "board.log", tmp_path / "live.parquet")
    assert kept.read_bytes() == log


def test_an_interrupt_while_nothing_comes_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "board.log").write_text("hw+ 0x100 24\n")

    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupt)  # as Ctrl-C in a notebook
    assert hw.live(tmp_path / "board.log", tmp_path / "live.parquet").trace.calls == 1


@pytest.mark.parametrize(
    ("written", "named", "told"),
    [
        ("", None, "nothing came"),
        ("booting\n", None, "no heap call is among the 8 bytes that came"),
        ("hw+ 0x100 24\n", "board", r"no heap call is among the 13 bytes that came; they are in .*live\.parquet\.log"),
    ],
)
def test_where_no_call_comes_it_says_so(written: str, named: str | None, told: str, tmp_path: Path) -> None:
    (tmp_path / "board.log").write_text(written)
    ends = iter([True, True, False])
    with pytest.raises(HeapwrightError, match=f"{told}$"):
        hw.live(tmp_path / "board.log", tmp_path / "live.parquet", format=named, going_on=lambda: next(ends))
    assert (tmp_path / "live.parquet.log").exists() is (named is not None)
    assert not (tmp_path / "live.parquet").exists()


def test_a_source_that_cannot_be_read_is_told_in_a_line(tmp_path: Path) -> None:
    output = tmp_path / "live.parquet"
    with pytest.raises(HeapwrightError, match="ttyUSB9: no such file; valid: a serial port, a file, a pipe, a socket"):
        hw.live("ttyUSB9", output)
    with pytest.raises(HeapwrightError, match="a folder; name a serial port"):
        hw.live(tmp_path, output)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(HeapwrightError, match=f"{place}: Connection refused; who writes has to listen there first"):
            hw.live(place, output)
    ours, theirs = pty.openpty()
    with pytest.raises(
        ParameterError, match=r"baud: .* 115201 is no speed of a serial port here; valid: 1200, .*115200"
    ):
        hw.live(os.ttyname(theirs), output, baud=115201)
    os.close(ours)
    os.close(theirs)
    with pytest.raises(ParameterError, match="'valgrind' is not followed; valid: text, board"):
        hw.live("ttyUSB9", output, format="valgrind")
    assert list(tmp_path.iterdir()) == []
