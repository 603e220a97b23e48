"""Logs that other tools really write, against what the recorder saw of the same program."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path

import numpy as np
import pytest
from tool_requirements import absent, is_installed, machine, needs

import heapwright as hw
from heapwright._traces.trace import Trace
from heapwright._traces.validation import CALLOC, FREE, REALLOC

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

THREADED = """
#include <pthread.h>
#include <stdlib.h>
static void *_Atomic shared[8];
static void *work(void *given)
{
    for (int i = 0; i < 3000; i++) {
        void *mine = malloc((size_t)((i * 31 + *(int *)given) % 700 + 1));
        if (i % 5 == 0) {
            mine = realloc(mine, (size_t)(i % 1000 + 1));
        }
        free(__atomic_exchange_n(&shared[i % 8], mine, __ATOMIC_ACQ_REL));
    }
    return given;
}
int main(void)
{
    static pthread_t threads[4];
    static int numbers[4] = {1, 2, 3, 4};
    void *aligned = NULL;
    if (posix_memalign(&aligned, 256, 300) != 0) {
        return 1;
    }
    for (int i = 0; i < 4; i++) {
        pthread_create(&threads[i], NULL, work, &numbers[i]);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < 8; i++) {
        free(shared[i]);
    }
    free(aligned);
    return 0;
}
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
    needs("cc", "c++")
    folder = tmp_path_factory.mktemp("logs")
    for name, text in (
        ("program.c", PROGRAM),
        ("mtraced.c", MTRACED),
        ("plus.cc", PLUS_PLUS),
        ("threaded.c", THREADED),
    ):
        (folder / name).write_text(text)
    run(folder, "cc", "-O0", "-g", "-fno-builtin", "-o", "program", "program.c")
    run(folder, "cc", "-O0", "-g", "-fno-builtin", "-o", "mtraced", "program.c", "mtraced.c")
    run(folder, "c++", "-O0", "-o", "plus", "plus.cc")
    run(folder, "cc", "-O0", "-fno-builtin", "-pthread", "-o", "threaded", "threaded.c")
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
    """The requested sizes, each as often as it was."""
    return Counter(trace.size[trace.op != FREE].tolist())


def agrees(found: Trace, recorded: Trace, *, no_calloc: bool = False, realloc_apart: bool = False) -> None:
    """A log's trace is the recorder's, but for what the format cannot show."""
    assert asked(found) == asked(recorded)
    if realloc_apart:  # then each realloc is a free and a malloc
        assert len(found) == len(recorded) + int((recorded.op == REALLOC).sum())
        return
    assert found.peak_live_bytes == recorded.peak_live_bytes
    expected = np.where(no_calloc & (recorded.op == CALLOC), 0, recorded.op)
    assert np.array_equal(found.op, expected)
    assert np.array_equal(found.objects()[0], recorded.objects()[0])


@pytest.mark.needs("valgrind")
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


@pytest.mark.needs("ltrace")
@pytest.mark.parametrize("flags", [(), ("-f", "-tt"), ("-f", "-r"), ("-ttt",)], ids=" ".join)
def test_ltrace(folder: Path, recorded: Callable[[str], Trace], flags: tuple[str, ...]) -> None:
    run(folder, "ltrace", *flags, "-o", "ltrace.txt", "./program")
    trace = hw.import_log(folder / "ltrace.txt")
    assert (trace.metadata["recorder"], trace.repairs) == ("ltrace", ())
    agrees(trace, recorded("program"))
    assert (trace.ts_us[-1] > 0) == bool(flags)


@machine(Path("/lib/x86_64-linux-gnu/libc_malloc_debug.so.0").exists(), "no libc_malloc_debug.so.0 of glibc on x86")
def test_mtrace(folder: Path, recorded: Callable[[str], Trace]) -> None:
    run(folder, "./mtraced", LD_PRELOAD="libc_malloc_debug.so.0", MALLOC_TRACE=str(folder / "mtrace.txt"))
    trace = hw.import_log(folder / "mtrace.txt")
    assert (trace.metadata["recorder"], trace.repairs) == ("mtrace", ())
    agrees(trace, recorded("program"), no_calloc=True)
    assert len(trace.sites) > 3


@pytest.mark.needs("heaptrack")
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
    assert any("newest" in note for note in trace.notes) == (not flags)


@pytest.mark.needs("lttng", "babeltrace2")
def test_lttng(folder: Path, recorded: Callable[[str], Trace]) -> None:
    wrappers = sorted(Path("/usr/lib").glob("*/liblttng-ust-libc-wrapper.so*"))
    wrapper = wrappers[0] if wrappers else absent("liblttng-ust-libc-wrapper.so", "Debian: liblttng-ust-dev")
    home = {"LTTNG_HOME": str(folder), "LTTNG_UST_REGISTER_TIMEOUT": "-1"}
    daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel"], env=os.environ | home, stderr=subprocess.DEVNULL)
    try:
        create = ["lttng", "--no-sessiond", "create", "s", f"--output={folder}/ctf"]  # else it may start daemons itself
        for _ in range(100):
            if subprocess.run(create, env=os.environ | home, capture_output=True).returncode == 0:
                break
            time.sleep(0.1)
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


@pytest.fixture(scope="module")
def own_library(folder: Path) -> Path:
    """A copy of the C library: probes on it stop no other process of this machine."""
    result = subprocess.run(["ldd", folder / "program"], capture_output=True, text=True, check=True).stdout
    (library,) = (line.split()[2] for line in result.splitlines() if "libc.so" in line)
    return Path(shutil.copy(library, folder / "libc.so.6"))


def traced(tool: str, folder: Path, library: Path, program: str) -> Trace:
    """What the script of `heapwright hooks` records of a program."""
    hw.hooks(tool, folder / tool)
    log = folder / f"{program}.{tool}"
    started: list[str | Path] = ["env", f"LD_LIBRARY_PATH={folder}", folder / program]
    command: list[str | Path] = ["sh", folder / tool / f"app_trace_{tool}.sh", log, *started]
    more = {"LIBC": str(library)}
    done = subprocess.run(command, env=os.environ | more, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return hw.import_log(log)


def runs(*command: str) -> bool:
    return is_installed(command[0]) and subprocess.run(command, capture_output=True).returncode == 0


@pytest.mark.parametrize("tool", ["bpftrace", "perf"])
def test_scripts_say_what_they_need(tool: str, tmp_path: Path) -> None:
    hw.hooks(tool, tmp_path)
    script = tmp_path / f"app_trace_{tool}.sh"
    output = subprocess.run(["sh", script], capture_output=True, text=True, check=False)
    assert (output.returncode, output.stderr) == (2, f"usage: {script} LOG PROGRAM [ARGUMENT]...\n")
    output = subprocess.run(
        ["sh", script, tmp_path / "log", "true"],
        env=os.environ | {"LIBC": "none"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (output.returncode, output.stderr.partition(";")[0]) == (1, f"{script}: no C library found for true")


CACHES = "frees of blocks allocated before the log, left out: "
"""What glibc frees of its own when a thread ends looks like that."""


def without_calloc(trace: Trace) -> Counter[int]:
    """Sizes asked for, but for the calls of pthread_create, whose sizes depend on how many libraries there are."""
    return Counter(trace.size[(trace.op != FREE) & (trace.op != CALLOC)].tolist())


@pytest.mark.needs("perf")
@machine(os.access("/sys/kernel/tracing/uprobe_events", os.W_OK), "perf may put no probes on programs")
@pytest.mark.parametrize("program", ["program", "threaded"])
def test_perf(folder: Path, own_library: Path, recorded: Callable[[str], Trace], program: str) -> None:
    trace = traced("perf", folder, own_library, program)
    assert (trace.metadata["recorder"], trace.ts_us[-1] > 0) == ("perf", True)
    if program == "program":
        assert trace.repairs == ()
        agrees(trace, recorded(program))
    else:
        of_posix_memalign = Counter({300: 1})
        assert without_calloc(trace) + of_posix_memalign == without_calloc(recorded(program))
        assert [repair.startswith(CACHES) for repair in trace.repairs] == [True]
        assert len(set(trace.tid)) == 5


@pytest.mark.needs("bpftrace")
@machine(runs("bpftrace", "-e", "BEGIN { exit(); }"), "bpftrace does not run here")
@pytest.mark.parametrize("program", ["program", "threaded"])
def test_bpftrace(folder: Path, own_library: Path, recorded: Callable[[str], Trace], program: str) -> None:
    trace = traced("bpftrace", folder, own_library, program)
    assert (trace.metadata["recorder"], trace.ts_us[-1] > 0, trace.notes) == ("bpftrace", True, ())
    if program == "program":
        assert trace.repairs == ()
        agrees(trace, recorded(program))
    else:
        assert without_calloc(trace) == without_calloc(recorded(program))
        assert [repair.startswith(CACHES) for repair in trace.repairs] == [True]
        assert (len(set(trace.tid)), trace.align.max()) == (5, 256)


FREERTOS_CALLS = """
int main(void)
{
    traceMALLOC((void *)0x20000100, 40);
    traceMALLOC(NULL, 5000);
    traceMALLOC((void *)0x20000200, 104u);
    traceFREE((void *)0x20000100, 40);
    return 0;
}
"""

ZEPHYR_STAND_IN = """
#include <stdint.h>
#include <stddef.h>
#define printk printf
#define HEAP_ID_FROM_POINTER(pointer) ((uintptr_t)(pointer))
#define HEAP_LISTENER_ALLOC_DEFINE(name, heap, function) void (*name)(uintptr_t, void *, size_t) = function
#define HEAP_LISTENER_FREE_DEFINE(name, heap, function) void (*name)(uintptr_t, void *, size_t) = function
static struct { int heap; } my_heap;
"""

ZEPHYR_CALLS = """
int main(void)
{
    void *const a = (void *)0x20000100, *const b = (void *)0x20000200;
    on_allocated(0, a, 40);
    on_freed(0, a, 40);
    on_allocated(0, a, 40);
    on_allocated(0, b, 24);
    on_allocated(0, a, 72); /* resized where it lies, as lib/heap/heap.c reports it */
    on_freed(0, a, 40);
    on_freed(0, a, 72);
    on_freed(0, b, 24);
    return 0;
}
"""


def printed(folder: Path, begins: str, before: str, calls: str) -> list[tuple[int, int, int]]:
    """The calls that the lines of C in docs/logs.md make of some events."""
    page = (Path(__file__).parents[2] / "docs" / "logs.md").read_text()
    code = begins + page.partition(f"    {begins}")[2]
    lines = list(takewhile(lambda line: line.startswith("    ") or not line, f"    {code}".splitlines()))
    (folder / "lines.c").write_text("#include <stdio.h>\n" + before + "\n".join(line[4:] for line in lines) + calls)
    run(folder, "cc", "-Wall", "-Werror", "-Wno-unused-variable", "-o", "lines", "lines.c")
    (folder / "lines.log").write_bytes(subprocess.run([folder / "lines"], capture_output=True, check=True).stdout)
    trace = hw.import_log(folder / "lines.log")
    return list(zip(trace.op.tolist(), trace.objects()[0].tolist(), trace.size.tolist(), strict=True))


def test_freertos_prints_lines_by_its_macros(folder: Path) -> None:
    assert printed(folder, "#define traceMALLOC", "", FREERTOS_CALLS) == [
        (0, 0, 40),
        (0, 1, 5000),  # failed, and lives as the served objects do
        (0, 2, 104),
        (FREE, 0, 0),
    ]


def test_zephyrs_listeners_print_lines_and_pass_over_the_free_of_a_realloc_in_place(folder: Path) -> None:
    assert printed(folder, "static void *last;", ZEPHYR_STAND_IN, ZEPHYR_CALLS) == [
        (0, 0, 40),
        (FREE, 0, 0),
        (0, 1, 40),
        (0, 2, 24),
        (FREE, 1, 0),
        (0, 3, 72),
        (FREE, 3, 0),
        (FREE, 2, 0),
    ]
