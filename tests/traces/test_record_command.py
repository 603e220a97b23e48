"""`heapwright record`: what the command says and passes through, how it ends, and what it cannot record."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from forked_commands import HEAPWRIGHT
from processes import ended_at_last
from recorded_programs import HAMMER, Compile, calls_after, compiler, only
from tool_requirements import machine

from heapwright import import_recording
from heapwright._support.errors import HeapwrightError
from heapwright._traces.record import record
from heapwright._traces.trace import Trace
from heapwright._traces.validation import MALLOC

pytestmark = [machine(sys.platform == "linux", "the recorder is for Linux"), pytest.mark.usefixtures("forks")]

COMMAND = [str(Path(sysconfig.get_path("scripts")) / "heapwright"), "record"]


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    return compiler(tmp_path_factory.mktemp("programs"))


def test_a_limit_ends_the_recording_not_the_program(compiled: Compile, tmp_path: Path) -> None:
    program = compiled(
        HAMMER
        + """
        for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
        puts("done");
    """,
        "-DROUNDS=40000",
    )
    done = run_command("--limit", "25000", "-o", "app.parquet", "--", program, cwd=tmp_path)
    assert done.stdout == "done\n"
    assert "app.parquet: recording ended at the limit of 25,000 calls\n" in done.stderr
    trace = Trace.read(tmp_path / "app.parquet")
    assert len(trace) == 25000
    everything = Trace.read(record([program], tmp_path / "all.parquet").files[0].path)
    assert len(everything) > 10 * len(trace)


@pytest.mark.parametrize("limit", [1, 1500, 10**6])
def test_exactly_the_first_calls_are_kept(limit: int, compiled: Compile, tmp_path: Path) -> None:
    program = compiled("for (int i = 1; i < 3000; i++) malloc(i);")
    whole = Trace.read(record([program], tmp_path / "whole.parquet").files[0].path)
    file, trace = only(record([program], tmp_path / "app.parquet", limit=limit))
    assert trace.size.tolist() == whole.size.tolist()[:limit]
    assert len(file.notes) == (limit < len(whole))


def test_every_request_that_fails_is_in_the_trace_and_counts_as_served(compiled: Compile, tmp_path: Path) -> None:
    program = compiled(
        """
        int failed = 0;
        for (int i = 0; i < 40; i++) failed += malloc(10000000 + i) == NULL;
        printf("%d\\n", failed);
        """
    )
    line = f"ulimit -v 300000; exec {program}"
    done = run_command("-o", "app.parquet", "--", "sh", "-c", line, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    traces, failed = [Trace.read(path) for path in tmp_path.glob("*.parquet")], int(done.stdout)
    (trace,) = (trace for trace in traces if trace.failed.any())  # the others are of the shell
    assert 0 < failed < 40
    assert trace.failed.sum() == failed
    assert f"{failed} request{'s' * (failed != 1)} failed in the recording" in done.stderr
    assert trace.peak_live_bytes > 40 * 10_000_000, "none of their size is freed: so all live to the end"


def test_one_trace_of_a_shell_and_what_it_starts(tmp_path: Path) -> None:
    script = "for i in 1 2 3; do ls / >/dev/null; done; sort /etc/passwd | tail -1"
    done = run_command("--follow", "one", "-o", "app.parquet", "--", "sh", "-c", script, cwd=tmp_path)
    assert done.returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["app.parquet"]
    trace = Trace.read(tmp_path / "app.parquet")
    assert int(trace.metadata["processes"]) >= 5
    assert len(set(trace.tid.tolist())) >= 5


def run_command(*arguments: str, cwd: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [HEAPWRIGHT, "record", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=60, **options)


def test_input_output_and_exit_status_pass_through(tmp_path: Path) -> None:
    done = run_command("--", "sh", "-c", "cat; exit 3", cwd=tmp_path, input="hello\n")
    assert done.returncode == 0
    assert done.stdout == "hello\n"
    assert "heapwright: the program ended with exit status 3\n" in done.stderr
    assert " ns a call of recording, " in done.stderr
    assert len(Trace.read(tmp_path / "sh.parquet")) > 0


def test_json_has_stdout_to_itself(tmp_path: Path) -> None:
    done = run_command("--json", "-o", "x.parquet", "--", "ls", "/", cwd=tmp_path)
    result = json.loads(done.stdout)
    assert "etc\n" in done.stderr
    assert result["files"][0]["path"] == "x.parquet"
    assert result["files"][0]["program"].endswith("/ls")
    assert {
        "pid",
        "name",
        "events",
        "inherited",
        "threads",
        "requested_peak_bytes",
        "live_objects_peak",
        "notes",
    } <= set(result["files"][0])
    assert {"events", "ns_per_event", "recording_seconds", "run_seconds", "share"} <= set(result["cost"])
    assert result["exit_status"] == 0


def test_what_cannot_be_recorded_is_one_line(compiled: Compile, tmp_path: Path) -> None:
    static, idle = compiled("malloc(1);", "-static"), compiled("")
    (tmp_path / "plain.txt").write_text("no program")
    (tmp_path / "plain.txt").chmod(0o644)
    (tmp_path / "taken").mkdir()
    advice = "give a program in PATH or its path"
    cases = {
        ("--", "no-such-command"): f"no-such-command: command not found; {advice}",
        ("-o", "x.parquet", "--", "./plain.txt"): f"./plain.txt: Permission denied; {advice}",
        ("-o", "x.parquet", "--", static): f"{static}: no heap call was recorded: it is statically linked; "
        "link it dynamically (no -static), or the recorder into it",
        ("-o", "x.parquet", "--", idle): f"{idle}: no heap call was recorded: it made no call, or calls an allocator "
        "linked into it; link it with the C library's malloc",
        ("-o", "absent/x.parquet", "--", "true"): "absent/x.parquet: cannot be written: No such file or directory; "
        "name a file in another folder",
        ("-o", "taken", "--", "true"): "taken: cannot be written: is a folder; name a file in it",
    }
    for arguments, line in cases.items():
        done = run_command(*arguments, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (1, "", f"heapwright: {line}\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plain.txt", "taken"]
    assert run_command(cwd=tmp_path).returncode == 2


@machine(os.geteuid() == 0, "only root can give a program away")
def test_a_setuid_program_is_named_as_such(compiled: Compile, tmp_path: Path) -> None:
    program = Path(shutil.copy(compiled("malloc(1);"), tmp_path / "other"))
    os.chown(program, 65534, 65534)
    program.chmod(0o4755)
    with pytest.raises(HeapwrightError, match="no heap call was recorded: it is setuid or setgid"):
        record([str(program)], tmp_path / "app.parquet")


SERVE = 'malloc(424242); for (int i = 0; i < 999; i++) malloc(10); puts("ready"); fflush(stdout); for (;;) pause();'


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_program_and_keeps_the_trace(
    number: signal.Signals, compiled: Compile, tmp_path: Path
) -> None:
    command = [*COMMAND, "-o", "app.parquet", "--", compiled(SERVE)]
    streams: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    running = subprocess.Popen(command, cwd=tmp_path, start_new_session=True, text=True, **streams)
    with ended_at_last(running) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        _, messages = process.communicate(timeout=30)
    assert process.returncode == 0
    assert f"heapwright: the program was ended by {number.name}\n" in messages
    assert calls_after(Trace.read(tmp_path / "app.parquet"), 424242)[:999] == [
        (MALLOC, i + 1, 10, 0) for i in range(999)
    ]


def test_ctrl_c_at_a_terminal_reaches_the_program_once(compiled: Compile, tmp_path: Path) -> None:
    program = compiled("""
        static volatile sig_atomic_t seen;
        static void count(int number) { seen++; }
        ---
        signal(SIGINT, count);
        malloc(424242);
        puts("ready");
        fflush(stdout);
        while (seen == 0) usleep(1000);
        usleep(300000);
        return seen;
    """)
    take_terminal = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)"
    take_terminal += "; os.execv(sys.argv[1], sys.argv[1:])"
    command = [sys.executable, "-c", take_terminal, *COMMAND, "-o", "app.parquet", "--", program]
    ours, theirs = os.openpty()
    streams: Any = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
    with subprocess.Popen(command, cwd=tmp_path, start_new_session=True, **streams) as process:
        os.close(theirs)
        shown = b""
        while b"ready" not in shown:
            shown += os.read(ours, 1000)
        os.write(ours, b"\x03")
        shown += rest_of(ours)
        assert process.wait(timeout=30) == 0
    assert b"the program ended with exit status 1\r\n" in shown
    assert 424242 in Trace.read(tmp_path / "app.parquet").size


def test_what_a_killed_record_leaves_is_imported(compiled: Compile, tmp_path: Path) -> None:
    command = [*COMMAND, "-o", "app.parquet", "--", compiled(SERVE)]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.kill()
    (folder,) = tmp_path.glob(".heapwright-*.recording")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o711  # others pass, and see no name of what is in it
    (raw,) = folder.glob("*/*.raw")
    os.kill(int(raw.name.partition(".")[0]), signal.SIGKILL)
    assert raw.stat().st_size <= 70 << 20  # a copy that does not know holes is no larger
    importing = [COMMAND[0], "import", str(folder), "-o", "app.parquet", "--json"]
    done = subprocess.run(importing, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["files"][0]["path"] == "app.parquet"
    made = calls_after(Trace.read(tmp_path / "app.parquet"), 424242)[:999]
    assert made == [(MALLOC, i + 1, 10, 0) for i in range(999)]
    subprocess.run([*importing[:-1], "--follow", "one"], cwd=tmp_path, check=True)
    assert Trace.read(tmp_path / "app.parquet").metadata["processes"] == "1"


def test_many_small_processes_beside_a_program_share_a_folder(tmp_path: Path) -> None:
    script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do ls / > /dev/null; done"
    recording = record(["sh", "-c", script], tmp_path / "app.parquet")
    assert len(recording.files) > 11
    assert {path.name for path in tmp_path.glob("*.p*")} == {"app.parquet", "app.processes"}
    others = {file.path for file in recording.files[1:]}
    assert others == {*(tmp_path / "app.processes").iterdir()}
    assert len(others) == len(recording.files) - 1
    assert {file.path.name.partition(".")[0].partition("-")[0] for file in recording.files} >= {"app", "ls"}


def test_a_folder_without_a_recording_is_told(tmp_path: Path) -> None:
    with pytest.raises(HeapwrightError, match="holds no recording; give the folder that a killed `record` left"):
        import_recording(tmp_path, tmp_path / "app.parquet")


def rest_of(terminal: int) -> bytes:
    """Read until the other side is gone, which Linux reports as an error."""
    shown = b""
    with open(terminal, "rb", buffering=0) as stream, contextlib.suppress(OSError):
        while some := stream.read(1000):
            shown += some
    return shown
