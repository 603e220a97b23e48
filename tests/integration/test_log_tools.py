"""Logs that other tools really write, against what the recorder saw of the same program."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import heapwright as hw
from heapwright.traces.trace import Trace
from heapwright.traces.validation import CALLOC, FREE, REALLOC

PROGRAM = """
#include <stdlib.h>
int main(void)
{
    static void *kept[40];
    for (int i = 0; i < 2000; i++) {
        const int slot = (i * 7 + i / 40) % 40;
        if (kept[slot] != NULL && i % 3 == 0) {
            kept[slot] = realloc(kept[slot], i % 900 + 1);
        } else {
            free(kept[slot]);
            kept[slot] = i % 5 ? malloc(i * 3 % 1000 + 1) : calloc(3, i % 100 + 1);
        }
    }
    void *aligned = aligned_alloc(64, 128);
    free(aligned);
    kept[0] = realloc(NULL, 77);
    free(NULL);
    for (int slot = 0; slot < 40; slot++) {
        free(kept[slot]);
    }
    return 0;
}
"""

MTRACED = """
#include <mcheck.h>
__attribute__((constructor)) static void begin(void) { mtrace(); }
"""

PLUS_PLUS = """
#include <map>
#include <string>
#include <vector>
int main()
{
    std::map<int, std::string> texts;
    std::vector<int> numbers;
    for (int i = 0; i < 500; i++) {
        texts[i % 30] = std::string(i % 200, 'x');
        numbers.push_back(i);
    }
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the programs."""
    folder = tmp_path_factory.mktemp("logs")
    for name, text in (("program.c", PROGRAM), ("mtraced.c", MTRACED), ("plus.cc", PLUS_PLUS)):
        (folder / name).write_text(text)
    run(folder, "cc", "-O0", "-g", "-fno-builtin", "-o", "program", "program.c")
    run(folder, "cc", "-O0", "-g", "-fno-builtin", "-o", "mtraced", "program.c", "mtraced.c")
    run(folder, "c++", "-O0", "-o", "plus", "plus.cc")
    return folder


def run(folder: Path, *command: str, **more: str) -> None:
    done = subprocess.run(command, cwd=folder, env=os.environ | more, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def recorded(folder: Path) -> Callable[[str], Trace]:
    """What the recorder sees of a program."""
    return lambda program: hw.read_trace(
        hw.record([str(folder / program)], folder / f"{program}.parquet").files[0].path
    )


def asked(trace: Trace) -> Counter[int]:
    """The sizes that were asked for, each so many times."""
    return Counter(trace.size[trace.op != FREE].tolist())


def agrees(found: Trace, recorded: Trace, *, no_calloc: bool = False, realloc_apart: bool = False) -> None:
    """A log's trace is the recorder's, but for what the format cannot tell."""
    assert asked(found) == asked(recorded)
    if realloc_apart:  # then each realloc is a free and a malloc
        assert len(found) == len(recorded) + int((recorded.op == REALLOC).sum())
        return
    assert found.peak_live_bytes == recorded.peak_live_bytes
    expected = np.where(no_calloc & (recorded.op == CALLOC), 0, recorded.op)
    assert np.array_equal(found.op, expected)
    assert np.array_equal(found.objects()[0], recorded.objects()[0])


def needing(*tools: str) -> pytest.MarkDecorator:
    missing = [tool for tool in tools if not shutil.which(tool)]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} is not installed")


@needing("valgrind")
@pytest.mark.parametrize("program", ["program", "plus"])
def test_valgrind(folder: Path, recorded: Callable[[str], Trace], program: str) -> None:
    log = folder / f"{program}.valgrind"
    run(
        folder,
        "valgrind",
        "--trace-malloc=yes",
        "--run-libc-freeres=no",
        "--run-cxx-freeres=no",
        f"--log-file={log}",
        f"./{program}",
    )
    trace = hw.import_log(log)
    assert (trace.metadata["recorder"], trace.repairs) == ("valgrind", ())
    agrees(trace, recorded(program))


@needing("ltrace")
@pytest.mark.parametrize("flags", [(), ("-f", "-tt"), ("-f", "-r"), ("-ttt",)], ids=" ".join)
def test_ltrace(folder: Path, recorded: Callable[[str], Trace], flags: tuple[str, ...]) -> None:
    run(folder, "ltrace", *flags, "-o", "ltrace.txt", "./program")
    trace = hw.import_log(folder / "ltrace.txt")
    assert (trace.metadata["recorder"], trace.repairs) == ("ltrace", ())
    agrees(trace, recorded("program"))
    assert (trace.ts_us[-1] > 0) == bool(flags)


@pytest.mark.skipif(
    not Path("/lib/x86_64-linux-gnu/libc_malloc_debug.so.0").exists(), reason="no libc_malloc_debug.so.0"
)
def test_mtrace(folder: Path, recorded: Callable[[str], Trace]) -> None:
    run(folder, "./mtraced", LD_PRELOAD="libc_malloc_debug.so.0", MALLOC_TRACE=str(folder / "mtrace.txt"))
    trace = hw.import_log(folder / "mtrace.txt")
    assert (trace.metadata["recorder"], trace.repairs) == ("mtrace", ())
    agrees(trace, recorded("program"), no_calloc=True)
    assert len(trace.sites) > 3


@needing("heaptrack")
@pytest.mark.parametrize("flags", [("--raw",), ()], ids=["raw", "interpreted"])
def test_heaptrack(folder: Path, recorded: Callable[[str], Trace], flags: tuple[str, ...]) -> None:
    run(folder, "heaptrack", *flags, "-o", "heaptrack", "./program")
    (file,) = folder.glob("heaptrack*.zst")
    trace = hw.import_log(file)
    file.unlink()
    assert trace.metadata["recorder"] == "heaptrack"
    ours = asked(recorded("program"))
    assert ours <= asked(trace)
    assert (asked(trace) - ours).total() <= 2  # the C++ library that heaptrack brings asks, too
    assert any("guess" in note or "youngest" in note for note in trace.notes) == (not flags)


@needing("lttng", "babeltrace2")
@pytest.mark.skipif(not list(Path("/usr/lib").glob("*/liblttng-ust-libc-wrapper.so*")), reason="no libc wrapper")
def test_lttng(folder: Path, recorded: Callable[[str], Trace]) -> None:
    (wrapper, *_) = sorted(Path("/usr/lib").glob("*/liblttng-ust-libc-wrapper.so*"))
    home = {"LTTNG_HOME": str(folder), "LTTNG_UST_REGISTER_TIMEOUT": "-1"}
    daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel"], env=os.environ | home, stderr=subprocess.DEVNULL)
    try:
        for _ in range(100):
            done = subprocess.run(
                ["lttng", "create", "s", f"--output={folder}/ctf"], env=os.environ | home, capture_output=True
            )
            if done.returncode == 0:
                break
        run(folder, "lttng", "enable-event", "-u", "lttng_ust_libc:*", **home)
        run(folder, "lttng", "add-context", "-u", "-t", "vtid", **home)
        run(folder, "lttng", "start", **home)
        run(folder, "./program", LD_PRELOAD=str(wrapper), **home)
        run(folder, "lttng", "destroy", **home)
    finally:
        daemon.terminate()
        daemon.wait()
    text = subprocess.run(["babeltrace2", str(folder / "ctf")], capture_output=True, check=True).stdout
    (folder / "lttng.txt").write_bytes(text)
    trace = hw.import_log(folder / "lttng.txt")
    assert trace.metadata["recorder"] == "lttng"
    ours = asked(recorded("program"))
    assert ours - asked(trace) == Counter({128: 1})  # the aligned one
    assert (asked(trace) - ours).total() < 100
    assert trace.ts_us[-1] > 0
