"""Recording real programs: every call, many threads, fork, exec, kill, Ctrl-C, and programs that cannot be recorded."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forked_commands import HEAPWRIGHT
from needed import absent, is_installed, machine, needs, tool, unsuited

import heapwright._native
from heapwright import import_recording
from heapwright.files.errors import HeapwrightError
from heapwright.traces.record import Recording, record
from heapwright.traces.recorded import Recorded
from heapwright.traces.trace import Trace
from heapwright.traces.validation import CALLOC, FREE, MALLOC, REALLOC

pytestmark = [machine(sys.platform == "linux", "the recorder is for Linux"), pytest.mark.usefixtures("forks")]

RECORDER = Path(__file__).resolve().parents[2] / "recorder" / "recorder.c"
COMMAND = [str(Path(sysconfig.get_path("scripts")) / "heapwright"), "record"]
PAGE = os.sysconf("SC_PAGESIZE")

Compile = Callable[..., str]


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Compiles the body of main (and what stands before a line of ---) and gives the program's path."""
    cc = tool("cc")
    folder = tmp_path_factory.mktemp("programs")

    def build(code: str, *flags: str) -> str:
        before, _, body = code.rpartition("---")
        program = folder / f"program{len(list(folder.iterdir()))}"
        source = program.with_suffix(".c")
        source.write_text(f"{PRELUDE}{before}\nint main(void) {{\n{body}\nreturn 0;\n}}\n")
        # Without -fno-builtin the compiler removes allocations it can see through.
        options = ["-D_GNU_SOURCE", "-O0", "-fno-builtin", "-pthread", "-w", *flags]
        subprocess.run([cc, *options, str(source), "-o", str(program)], check=True)
        return str(program)

    return build


PRELUDE = """
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
"""

HAMMER = """
static _Atomic(void *) box[64];
static void *hammer(void *seed) {
    unsigned random = (unsigned)(uintptr_t)seed + 1;
    for (int i = 0; i < ROUNDS; i++) {
        random = random * 1103515245u + 12345u;
        size_t size = (random >> 16) % 500 + 1;
        void *block = i % 3 ? malloc(size) : calloc(1, size);
        if (i % 5 == 0) block = realloc(block, size * ((random >> 8) % 20 + 1));
        block = atomic_exchange(&box[(random >> 10) % 64], block);
        if (block && i % 7 == 0) block = realloc(block, size * 30);
        free(block);
    }
    return NULL;
}
---
pthread_t threads[4];
for (uintptr_t i = 0; i < 4; i++) pthread_create(&threads[i], NULL, hammer, (void *)i);
"""


def calls_after(trace: Trace, marker: int) -> list[tuple[int, int, int, int]]:
    """Calls (op, id less the marker's id, size, align) that follow a malloc of a telling size."""
    start = trace.size.tolist().index(marker)
    base = int(trace.id[start])
    rows = zip(trace.op.tolist(), trace.id.tolist(), trace.size.tolist(), trace.align.tolist(), strict=True)
    return [(op, id_ - base, size, align) for op, id_, size, align in list(rows)[start + 1 :]]


def only(recording: Recording) -> tuple[Recorded, Trace]:
    assert len(recording.files) == 1
    return recording.files[0], Trace.read(recording.files[0].path)


def test_every_call_is_recorded_as_made(compiled: Compile, tmp_path: Path) -> None:
    program = compiled("""
        void *p, *q, *r;
        malloc(424242);
        p = malloc(100);
        q = calloc(3, 7);
        p = realloc(p, 300000);
        r = realloc(NULL, 50);
        r = reallocarray(r, 6, 10);
        if (reallocarray(r, SIZE_MAX / 2, 4) != NULL || errno != ENOMEM) return 1;
        if (malloc(SIZE_MAX / 2) != NULL || realloc(r, SIZE_MAX / 2) != NULL) return 2;
        if (calloc(SIZE_MAX / 2, 4) != NULL) return 3;
        realloc(q, 0);
        free(NULL);
        free(p);
        free(r);
        if ((uintptr_t)(p = aligned_alloc(64, 128)) % 64) return 4;
        if (posix_memalign(&q, 256, 10) || (uintptr_t)q % 256) return 5;
        r = memalign(32, 33);
        valloc(5);
        pvalloc(6);
        if (malloc_usable_size(p) < 128) return 6;
        p = realloc(p, 200);
        free(p);
        malloc(0);
    """)
    recording = record([program], tmp_path / "app.parquet")
    assert recording.exit_status == 0
    expected = [
        (MALLOC, 1, 100, 0),
        (CALLOC, 2, 21, 0),
        (REALLOC, 1, 300000, 0),
        (MALLOC, 3, 50, 0),
        (REALLOC, 3, 60, 0),
        (FREE, 2, 0, 0),
        (FREE, 1, 0, 0),
        (FREE, 3, 0, 0),
        (MALLOC, 4, 128, 64),
        (MALLOC, 5, 10, 256),
        (MALLOC, 6, 33, 32),
        (MALLOC, 7, 5, PAGE),
        (MALLOC, 8, 6, PAGE),
        (REALLOC, 4, 200, 0),
        (FREE, 4, 0, 0),
        (MALLOC, 9, 0, 0),
    ]
    file, trace = only(recording)
    assert calls_after(trace, 424242) == expected
    assert file.notes == ()
    assert trace.metadata["program"] == Path(program).name
    assert trace.metadata["pointer_bytes"] == ("8" if sys.maxsize > 2**32 else "4")
    assert trace.metadata["recorder"].startswith("heapwright ")


def test_threads_that_pass_blocks_around_give_one_valid_history(compiled: Compile, tmp_path: Path) -> None:
    program = compiled(
        HAMMER
        + """
        for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
        for (int i = 0; i < 64; i++) free(box[i]);
        malloc(424242);
    """,
        "-DROUNDS=20000",
    )
    file, trace = only(record([program], tmp_path / "app.parquet"))
    assert file.notes == ()
    assert file.threads == 5
    assert len(trace) > 4 * 20000 * 2
    before_last = trace.live_bytes[trace.size.tolist().index(424242) - 1]
    # What stays live is the C library's own: thread stacks' bookkeeping.
    assert before_last < 10_000


def test_a_program_killed_at_work_keeps_what_it_did(compiled: Compile, tmp_path: Path) -> None:
    program = compiled(HAMMER + "usleep(30000); kill(getpid(), SIGKILL);", "-DROUNDS=2000000000")
    recording = record([program], tmp_path / "app.parquet")
    file, _ = only(recording)
    assert recording.exit_status == -signal.SIGKILL
    assert file.events > 1000
    assert file.notes == ()


def test_every_call_before_a_kill_is_kept(compiled: Compile, tmp_path: Path) -> None:
    program = compiled("malloc(424242); for (int i = 0; i < 100000; i++) malloc(10); raise(SIGKILL);")
    _, trace = only(record([program], tmp_path / "app.parquet"))
    assert calls_after(trace, 424242) == [(MALLOC, i + 1, 10, 0) for i in range(100000)]


@pytest.mark.parametrize("fork", ["fork()", "syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)"])
def test_a_forked_child_has_its_own_trace(fork: str, compiled: Compile, tmp_path: Path) -> None:
    program = compiled(f"""
        void *inherited = malloc(5000);
        for (int i = 0; i < 50; i++) malloc(11);
        if ({fork} == 0) {{
            for (int i = 0; i < 20; i++) malloc(77);
            free(inherited);
            _exit(0);
        }}
        wait(NULL);
        free(inherited);
    """)
    recording = record([program], tmp_path / "app.parquet")
    parent, child = (Trace.read(file.path) for file in recording.files)
    assert recording.files[0].path == tmp_path / "app.parquet"
    assert recording.files[1].path == tmp_path / f"app.{Path(program).name}-child.parquet"
    assert 77 not in parent.size
    assert parent.op[-1] == FREE
    inherited = child.size.tolist().index(77)
    assert child.size.tolist()[:inherited] == parent.size[parent.op != FREE].tolist()[:inherited]
    assert child.size.tolist()[inherited:] == [77] * 20 + [0]
    assert child.size[child.id == child.id[-1]].tolist() == [5000, 0]
    assert recording.files[1].inherited == inherited >= 51
    assert [note.partition(" (")[0] for note in recording.files[1].notes] == [f"begins with {inherited} blocks"]


def test_every_image_of_a_process_has_its_own_trace(compiled: Compile, tmp_path: Path) -> None:
    second = compiled("for (int i = 0; i < 300; i++) malloc(22);")
    first = compiled(f'for (int i = 0; i < 30; i++) malloc(33); execl("{second}", "second", (char *)NULL);')
    recording = record([first], tmp_path / "app.parquet")
    later, earlier = recording.files
    assert (later.program, earlier.program) == (second, first)
    assert later.pid == earlier.pid
    assert earlier.path == tmp_path / f"app.{Path(first).name}.parquet"
    assert Trace.read(later.path).size.tolist().count(22) == 300
    assert Trace.read(earlier.path).size.tolist().count(33) == 30


def test_processes_that_outlive_the_command_are_waited_for(compiled: Compile, tmp_path: Path) -> None:
    late = compiled("usleep(400000); for (int i = 0; i < 5000; i++) malloc(44);")
    recording = record(["sh", "-c", f"{late} & {late} & true"], tmp_path / "app.parquet")
    found = [Trace.read(file.path).size.tolist().count(44) for file in recording.files]
    assert found.count(5000) == 2


def test_python_is_recorded(tmp_path: Path) -> None:
    script = "import threading; t = threading.Thread(target=lambda: [str(i) for i in range(10)]); t.start(); t.join()"
    python = str(Path(sys.executable).resolve())
    recording = record([python, "-S", "-c", script], tmp_path / "app.parquet")
    file, trace = only(recording)
    assert recording.exit_status == 0
    assert file.notes == ()
    assert file.events == len(trace) > 1000
    assert file.requested_peak_bytes == trace.peak_live_bytes > 100_000


def test_recording_leaves_descriptors_alone_and_survives_their_closing(compiled: Compile, tmp_path: Path) -> None:
    program = compiled("""
        if (open("/dev/null", O_RDONLY) != 3) return 1;
        for (int fd = 3; fd < 1024; fd++) close(fd);
        malloc(424242);
        for (int i = 0; i < 50000; i++) malloc(10);
    """)
    recording = record([program], tmp_path / "app.parquet")
    assert recording.exit_status == 0
    assert len(calls_after(only(recording)[1], 424242)) == 50000


def test_a_file_size_limit_ends_the_recording_not_the_program(compiled: Compile, tmp_path: Path) -> None:
    program = compiled("for (int i = 0; i < 50000; i++) free(malloc(10));")
    recording = record(["sh", "-c", f"ulimit -f 300; exec {program}"], tmp_path / "app.parquet")
    assert recording.exit_status == 0
    assert "recording ended early: File too large" in recording.files[0].notes
    assert 1000 < recording.files[0].events < 50000


WITHOUT_A_PATH = {
    "a full descriptor table": 'while (open("/dev/null", O_RDONLY) >= 0) {}',
    "another root": 'if (chroot("/proc") || chdir("/")) return 1;',
    "no rights": "if (setgid(65534) || setuid(65534)) return 1;",
}


@pytest.mark.parametrize("how", WITHOUT_A_PATH)
def test_nothing_is_lost_where_the_file_has_no_path_any_more(how: str, compiled: Compile, tmp_path: Path) -> None:
    if how != "a full descriptor table" and os.geteuid() != 0:
        unsuited("only root can change the root and give up rights")
    # Rights to the folder above are taken away, as below a home of somebody else's.
    (tmp_path / "closed").mkdir(mode=0o700)
    program = compiled(f"{WITHOUT_A_PATH[how]} malloc(424242); for (int i = 0; i < 50000; i++) malloc(10);")
    recording = record([program], tmp_path / "closed" / "app.parquet")
    assert recording.exit_status == 0
    file, trace = only(recording)
    assert file.notes == ()
    assert len(calls_after(trace, 424242)) == 50000


def test_a_program_is_named_by_what_it_was_called_as(compiled: Compile, tmp_path: Path) -> None:
    (tmp_path / "server").symlink_to(compiled("malloc(1);"))
    recording = record([str(tmp_path / "server")], tmp_path / "app.parquet")
    assert recording.files[0].name == "server"
    assert Trace.read(recording.files[0].path).metadata["program"] == "server"


def test_a_role_that_a_server_gives_itself_names_its_trace(compiled: Compile, tmp_path: Path) -> None:
    program = compiled("""
        extern char *program_invocation_name;
        malloc(1);
        for (int i = 0; i < 2; i++) if (fork() == 0) {
            malloc(2);
            strcpy(program_invocation_name, "srv: worker");
            exit(0);
        }
        while (wait(NULL) > 0) {}
    """)
    recording = record([program], tmp_path / "app.parquet")
    name = Path(program).name
    assert sorted(file.path.name for file in recording.files) == [
        "app.parquet",
        f"app.{name}-srv-worker-2.parquet",
        f"app.{name}-srv-worker.parquet",
    ]


BUMP = """
static char arena[1 << 26] __attribute__((aligned(16)));
static _Atomic size_t used;
void *malloc(size_t size) { return arena + atomic_fetch_add(&used, (size + 15) & ~(size_t)15); }
void *calloc(size_t count, size_t size) { return malloc(count * size); }
void *realloc(void *old, size_t size) { void *new = malloc(size); if (old) memcpy(new, old, size); return new; }
void free(void *block) {}
---
"""


def test_signal_handlers_that_allocate_take_nothing_from_the_thread_they_interrupt(
    compiled: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = compiled("""
        #include <sys/time.h>
        static volatile int handled;
        static void handle(int number) { for (int i = 0; i < 30; i++) malloc(20); handled++; }
        ---
        struct itimerval often = {{0, 50}, {0, 50}};
        signal(SIGALRM, handle);
        setitimer(ITIMER_REAL, &often, NULL);
        malloc(424242);
        while (handled < 500) malloc(10);
        for (int i = 0; i < 20000; i++) malloc(11);
        setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    """)
    monkeypatch.setenv("LD_PRELOAD", compiled(BUMP, "-shared", "-fPIC"))  # glibc's is not safe in signal handlers
    file, trace = only(record([program], tmp_path / "app.parquet"))
    assert file.notes == ()
    assert trace.size.tolist().count(11) == 20000
    assert trace.size.tolist().count(20) > 500


def test_threads_that_make_a_call_and_end_take_little_room(compiled: Compile, tmp_path: Path) -> None:
    program = compiled("""
        static void *one(void *unused) { free(malloc(33)); return NULL; }
        ---
        for (int i = 0; i < 3000; i++) {
            pthread_t thread;
            if (pthread_create(&thread, NULL, one, NULL)) return 1;
            pthread_join(thread, NULL);
        }
    """)
    file, trace = only(record([program], tmp_path / "app.parquet"))
    assert file.notes == ()
    assert (file.threads, trace.size.tolist().count(33)) == (3001, 3000)


def test_what_other_threads_allocated_is_inherited(compiled: Compile, tmp_path: Path) -> None:
    program = compiled("""
        static void *allocate(void *blocks) {
            for (int i = 0; i < 1000; i++) ((void **)blocks)[i] = malloc(55);
            return NULL;
        }
        ---
        void *blocks[1000];
        pthread_t thread;
        pthread_create(&thread, NULL, allocate, blocks);
        pthread_join(thread, NULL);
        if (fork() == 0) {
            for (int i = 0; i < 1000; i++) free(blocks[i]);
            malloc(66);
            _exit(0);
        }
        wait(NULL);
    """)
    parent, child = record([program], tmp_path / "app.parquet").files
    assert (parent.notes, len(child.notes)) == ((), 1)
    assert Trace.read(child.path).size.tolist().count(55) == 1000
    assert Trace.read(child.path).op.tolist().count(FREE) == 1000


def recorded_by(library: Path, program: str, folder: Path) -> Trace:
    folder.mkdir()
    environment = os.environ | {"LD_PRELOAD": str(library), "HEAPWRIGHT_RECORD_DIR": str(folder)}
    subprocess.run([program], env=environment, check=True, timeout=60)
    (file,) = import_recording(folder, folder / "app.parquet")
    assert file.notes == ()
    return Trace.read(file.path)


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The recorder as it was installed, and one for processors whose counters do not agree."""
    without = tmp_path_factory.mktemp("recorder") / "recorder.so"
    flags = ["-O2", "-fPIC", "-shared", "-ftls-model=initial-exec", "-fvisibility=hidden", "-DHEAPWRIGHT_NO_COUNTER"]
    subprocess.run([tool("cc"), *flags, RECORDER, "-o", without], check=True)
    return {"counters": Path(heapwright._native.__file__).with_name("recorder.so"), "no counters": without}


@pytest.mark.parametrize("clock", ["counters", "no counters"])
def test_times_and_order_hold_where_threads_wait(
    clock: str, libraries: dict[str, Path], compiled: Compile, tmp_path: Path
) -> None:
    program = compiled("""
        static _Atomic(void *) last;
        static _Atomic int step;
        static void *slow(void *unused) {
            malloc(71);
            step = 1;
            while (step < 2) usleep(1000);
            free(last);
            malloc(72);
            return NULL;
        }
        ---
        pthread_t thread;
        pthread_create(&thread, NULL, slow, NULL);
        while (step < 1) usleep(1000);
        usleep(700000);
        for (int i = 0; i < 300000; i++) free(malloc(10));
        last = malloc(9999);
        step = 2;
        pthread_join(thread, NULL);
    """)
    trace = recorded_by(libraries[clock], program, tmp_path / "raw")
    sizes = trace.size.tolist()
    at = {size: sizes.index(size) for size in (71, 10, 9999, 72)}
    assert list(at.values()) == sorted(at.values())
    assert trace.op[at[9999] : at[72]].tolist() == [MALLOC, FREE]
    assert 690_000 < trace.ts_us[at[10]] - trace.ts_us[at[71]] < 5_000_000
    assert trace.ts_us[-1] < 60_000_000


@pytest.mark.parametrize("clock", ["counters", "no counters"])
def test_eight_threads_that_pass_blocks_around(
    clock: str, libraries: dict[str, Path], compiled: Compile, tmp_path: Path
) -> None:
    eight = HAMMER.replace("[4]", "[8]").replace("< 4", "< 8")
    program = compiled(eight + "for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);", "-DROUNDS=20000")
    assert len(recorded_by(libraries[clock], program, tmp_path / "raw")) > 8 * 20000 * 2


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


def test_one_trace_of_a_tree_keeps_its_processes_apart(compiled: Compile, tmp_path: Path) -> None:
    last = compiled("malloc(303); usleep(200000); malloc(304);")
    program = compiled(f"""
        static void *own(void *unused) {{ malloc(102); return NULL; }}
        ---
        void *inherited = malloc(100000);
        malloc(101);
        pthread_t thread;
        pthread_create(&thread, NULL, own, NULL);
        pthread_join(thread, NULL);
        int to_parent[2], to_child[2];
        char turn = 0;
        pipe(to_parent);
        pipe(to_child);
        if (fork() == 0) {{
            malloc(201);
            free(inherited);
            write(to_parent[1], &turn, 1);
            read(to_child[0], &turn, 1);
            usleep(100000);
            malloc(50000);
            _exit(0);
        }}
        read(to_parent[0], &turn, 1);
        malloc(103);
        write(to_child[1], &turn, 1);
        wait(NULL);
        malloc(104);
        execl("{last}", "last", (char *)NULL);
    """)
    file, trace = only(record([program], tmp_path / "app.parquet", follow="one"))
    assert trace.metadata["processes"] == "3"
    assert file.notes[0] == "one trace of 3 process images"
    sizes = trace.size.tolist()
    told = (101, 102, 201, 103, 50000, 104, 303, 304)
    rows = [sizes.index(size) for size in told]
    assert rows == sorted(rows)
    assert sizes.count(100000) == 1
    tids = dict(zip(told, trace.tid[rows].tolist(), strict=True))
    assert tids[101] == tids[103] == tids[104]
    assert len({tids[101], tids[102], tids[201], tids[303]}) == 4
    assert file.threads == 4
    assert 90_000 < trace.ts_us[rows[4]] - trace.ts_us[rows[2]] < 5_000_000
    # The child's 50,000 B are gone before the parent goes on; what is live when the last one begins is its own alone.
    assert file.requested_peak_bytes == trace.peak_live_bytes > 150_000
    assert trace.live_bytes[rows[5]] < trace.peak_live_bytes - 50_000
    assert trace.live_bytes[-1] < 100_000
    assert file.live_objects_peak == trace.peak_live_objects


def test_one_trace_of_a_shell_and_what_it_starts(tmp_path: Path) -> None:
    script = "for i in 1 2 3; do ls / >/dev/null; done; sort /etc/passwd | tail -1"
    done = run_command("--follow", "one", "-o", "app.parquet", "--", "sh", "-c", script, cwd=tmp_path)
    assert done.returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["app.parquet"]
    trace = Trace.read(tmp_path / "app.parquet")
    assert int(trace.metadata["processes"]) >= 5
    assert len(set(trace.tid.tolist())) >= 5


def sites_of(path: Path, *sizes: int) -> list[str]:
    trace = Trace.read(path)
    return [trace.sites[trace.site[trace.size.tolist().index(size)]] for size in sizes]


SITED = """
static void *first(void) { return malloc(1001); }
static void *second(void *old) { return realloc(old, 1002); }
---
void *aligned;
free(second(first()));
posix_memalign(&aligned, 64, 1003);
calloc(17, 59 * 61);
"""


def test_sites_are_the_functions_and_lines_that_call(compiled: Compile, tmp_path: Path) -> None:
    plain, debug = compiled(SITED, "-s", "-rdynamic"), compiled(SITED, "-g")
    file, trace = only(record([plain], tmp_path / "app.parquet", sites=True))
    assert file.notes == ()
    sites = sites_of(file.path, 1001, 1003)
    assert sites[0].startswith(f"{Path(plain).name}+0x")
    assert sites[1].startswith("main+0x") and sites[1].endswith(f" ({Path(plain).name})")
    assert trace.align[trace.size.tolist().index(1003)] == 64
    if not is_installed("addr2line"):
        return
    source = Path(debug).with_suffix(".c")
    lines = source.read_text().splitlines()
    expected = [
        f"{function} ({source.name}:{next(i for i, line in enumerate(lines, 1) if code in line)})"
        for function, code in (
            ("first", "malloc(1001)"),
            ("second", "realloc(old, 1002)"),
            ("main", "posix_memalign"),
            ("main", "calloc(17"),
        )
    ]
    file, trace = only(record([debug], tmp_path / "app.parquet", sites=True))
    assert sites_of(file.path, 1001, 1002, 1003, 17 * 59 * 61) == expected
    freed = int(trace.id[trace.size.tolist().index(1002)])
    assert trace.sites[trace.site[(trace.id == freed) & (trace.op == FREE)][0]].startswith(f"main ({source.name}:")


def test_without_the_option_a_trace_has_no_sites(compiled: Compile, tmp_path: Path) -> None:
    assert only(record([compiled(SITED)], tmp_path / "app.parquet"))[1].sites == ("",)


CPP = """
#include <cstdlib>
#include <new>
struct alignas(64) Wide { char bytes[192]; };
struct Small { char bytes[1101]; };
extern "C" void makes_small() { delete new Small; }
extern "C" void makes_wide() { delete new Wide; }
extern "C" void makes_some() { delete[] new Small[2]; delete[] new Wide[4]; }
extern "C" void makes_or_not() { ::operator delete(::operator new(1102, std::nothrow), std::nothrow); }
extern "C" void fails() {
    try { new char[std::size_t(1) << 62]; } catch (const std::bad_alloc &) {}
    std::free(std::malloc(1103));
}
extern "C" void deletes_nothing() { Small *volatile none = nullptr; delete none; std::free(std::malloc(1104)); }
int main() { makes_small(); makes_wide(); makes_some(); makes_or_not(); fails(); deletes_nothing(); }
"""


def built_cpp(code: str, program: Path, *flags: str) -> str:
    needs("c++")
    options = ["-std=c++17", "-O0", "-fno-builtin", "-w", "-x", "c++", "-"]
    subprocess.run(["c++", *flags, *options, "-o", program], input=code, text=True, check=True)
    return str(program)


@pytest.mark.parametrize("sites", [False, True])
def test_the_operators_of_cpp(sites: bool, tmp_path: Path) -> None:
    file, trace = only(record([built_cpp(CPP, tmp_path / "cpp", "-rdynamic")], tmp_path / "a.parquet", sites=sites))
    assert file.notes == ()
    asked = [(1101, 0), (192, 64), (2202, 0), (768, 64), (1102, 0), (1103, 0), (1104, 0)]
    rows = [trace.size.tolist().index(size) for size, _ in asked]
    assert rows == sorted(rows)
    assert trace.align[rows].tolist() == [align for _, align in asked]
    freed = [
        int(np.flatnonzero((trace.id == trace.id[row]) & (trace.op == FREE) & (trace.ts_us >= 0))[-1]) for row in rows
    ]
    assert all(after > row for after, row in zip(freed, rows, strict=True))
    if sites:
        names = [trace.sites[site].partition("+")[0] for site in trace.site[rows]]
        some = ["makes_small", "makes_wide", "makes_some", "makes_some", "makes_or_not", "fails", "deletes_nothing"]
        assert names == some
        assert [trace.sites[site].partition("+")[0] for site in trace.site[freed]] == some


PLUGIN = """
#include <string>
struct Odd { char bytes[1201]; };
extern "C" Odd *made() { std::string(9000, 'x'); return new Odd; }
"""


def test_a_plugin_in_cpp_that_a_program_in_c_loads(compiled: Compile, tmp_path: Path) -> None:
    plugin = built_cpp(PLUGIN, tmp_path / "plugin.so", "-shared", "-fPIC")
    program = compiled(
        f"""
        #include <dlfcn.h>
        ---
        void *plugin = dlopen("{plugin}", RTLD_NOW | RTLD_LOCAL);
        if (!plugin || !((void *(*)(void))dlsym(plugin, "made"))()) return 1;
        dlclose(plugin);
        malloc(1202);
        """,
        "-ldl",
    )
    for sites in (False, True):
        recording = record([program], tmp_path / "app.parquet", sites=sites)
        assert recording.exit_status == 0
        file, trace = only(recording)
        assert file.notes == ()
        sizes = trace.size.tolist()
        assert sizes.index(1201) < sizes.index(1202)
    assert sites_of(file.path, 1201)[0].startswith("made+0x")


STATIC = """
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static char text[1401];
static void *own(void *unused) { free(strdup(text)); return NULL; }
int main(void) {
    pthread_t thread;
    void *aligned;
    memset(text, 'x', sizeof text - 1);
    pthread_create(&thread, NULL, own, NULL);
    pthread_join(thread, NULL);
    if (posix_memalign(&aligned, 256, 1402)) return 1;
    free(realloc(calloc(2, 10), 1403));
    if (fork() == 0) { free(aligned); free(malloc(1404)); _exit(0); }
    wait(NULL);
    return 0;
}
"""


def documented(command: str) -> str:
    """The command of the documentation that begins so."""
    page = Path(__file__).resolve().parents[2] / "docs" / "traces.md"
    (line,) = [line.strip() for line in page.read_text().splitlines() if line.strip().startswith(command)]
    return line


def test_a_statically_linked_program_as_documented(tmp_path: Path) -> None:
    (tmp_path / "app.c").write_text(STATIC)
    link = documented("at=").replace("python ", f"{sys.executable} ") + "\n" + documented("cc -static")
    linked = subprocess.run(link.replace("cc ", "cc -pthread -fno-builtin "), shell=True, cwd=tmp_path)
    if linked.returncode:
        absent("a C compiler, or a static C library", "the program is linked statically")
    parent, child = record([str(tmp_path / "app")], tmp_path / "app.parquet").files
    assert parent.notes == ()
    trace = Trace.read(parent.path)
    rows = [trace.size.tolist().index(size) for size in (1401, 1402, 20, 1403)]
    assert rows == sorted(rows)
    assert trace.op[rows].tolist() == [MALLOC, MALLOC, CALLOC, REALLOC]
    assert trace.align[rows].tolist() == [0, 256, 0, 0]
    assert parent.threads == 2
    assert [size for size in Trace.read(child.path).size.tolist() if size > 1400] == [1402, 1404]


def test_calls_before_main_are_recorded(compiled: Compile, tmp_path: Path) -> None:
    early = compiled("__attribute__((constructor)) static void early(void) { malloc(1301); }\n---", "-shared", "-fPIC")
    program = compiled(
        """
        __attribute__((constructor)) static void own(void) { malloc(1302); }
        __attribute__((destructor)) static void late(void) { malloc(1304); }
        ---
        malloc(1303);
        """,
        early,
    )
    _, trace = only(record([program], tmp_path / "app.parquet"))
    assert [size for size in trace.size.tolist() if size // 10 == 130] == [1301, 1302, 1303, 1304]


def test_errno_is_left_alone(compiled: Compile, tmp_path: Path) -> None:
    program = compiled("for (int i = 0; i < 5000; i++) { errno = 77; free(malloc(9)); if (errno != 77) return 1; }")
    assert record([program], tmp_path / "app.parquet").exit_status == 0


DLSYM_THAT_ALLOCATES = """
#include <dlfcn.h>
static char *kept;
void *dlsym(void *handle, const char *name) {
    static void *(*real)(void *, const char *);
    if (!real) {
        const char *versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
        for (int i = 0; i < 3 && !real; i++) real = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    }
    free(malloc(10));
    char *fresh = calloc(3, 10);
    for (int i = 0; i < 30; i++) if (fresh[i]) _exit(11);
    fresh = realloc(fresh, 40);
    if (!kept) kept = strcpy(fresh, "from the lookup");
    return real(handle, name);
}
__attribute__((destructor)) static void check(void) {
    kept = realloc(kept, 5000);
    if (strcmp(kept, "from the lookup")) _exit(12);
    free(kept);
}
---
"""


def test_memory_asked_for_while_the_real_functions_are_looked_up(
    compiled: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = compiled("malloc(424242); malloc(1);")
    monkeypatch.setenv("LD_PRELOAD", compiled(DLSYM_THAT_ALLOCATES, "-shared", "-fPIC", "-ldl"))
    recording = record([program], tmp_path / "app.parquet")
    assert recording.exit_status == 0
    assert calls_after(only(recording)[1], 424242)[0] == (MALLOC, 1, 1, 0)


def test_a_path_with_blanks_and_colons(compiled: Compile, tmp_path: Path) -> None:
    folder = tmp_path / "a b:c"
    folder.mkdir()
    program = shutil.copy(compiled("malloc(424242); malloc(1);"), folder / "my program")
    recording = record([str(program)], folder / "my app.parquet")
    assert calls_after(only(recording)[1], 424242) == [(MALLOC, 1, 1, 0)]


def test_the_cost_is_measured(compiled: Compile, tmp_path: Path) -> None:
    program = compiled("for (int i = 0; i < 200000; i++) { void *p = malloc(3000); memset(p, i, 3000); free(p); }")
    recording = record([program], tmp_path / "app.parquet")
    cost = recording.cost
    assert cost.events == recording.files[0].events >= 400000
    assert 5 < cost.ns_per_event < 20000
    assert 0 < cost.recording_seconds < cost.run_seconds
    assert 0 < cost.share < 1
    measured = float(Trace.read(recording.files[0].path).metadata["recording_ns_per_call"])
    assert measured == pytest.approx(cost.ns_per_event, abs=0.1)


# The command


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
    with subprocess.Popen(command, cwd=tmp_path, start_new_session=True, text=True, **streams) as process:
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


def test_damaged_recordings_are_imported_as_far_as_they_are_sound_or_refused(
    libraries: dict[str, Path], compiled: Compile, tmp_path: Path
) -> None:
    program = compiled(HAMMER + "for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL); ", "-DROUNDS=300")
    whole = recorded_by(libraries["counters"].with_name("recorder_sites.so"), program, tmp_path / "raw")
    (path,) = (tmp_path / "raw").glob("*.raw")
    with path.open("rb") as file:
        sound, draw = file.read(65536 + 400000), random.Random(1)
    kept = []
    for _ in range(40):
        damaged = bytearray(sound)
        for _ in range(draw.choice([1, 3, 30])):
            at = draw.choice([draw.randrange(200), 4096 + draw.randrange(600), 65536 + draw.randrange(200000)])
            damaged[at : at + 8] = draw.choice([bytes(8), b"\xff" * 8, draw.randbytes(8)])
        path.write_bytes(damaged[: draw.choice([len(damaged), draw.randrange(len(damaged))])])
        try:
            (found,) = import_recording(path.parent, tmp_path / "app.parquet", follow=draw.choice(["each", "one"]))
            kept.append(len(Trace.read(found.path)))
        except HeapwrightError:
            kept.append(0)
    assert sum(calls > len(whole) // 2 for calls in kept) > 10


def rest_of(terminal: int) -> bytes:
    """Read until the other side is gone, which Linux reports as an error."""
    shown = b""
    with open(terminal, "rb", buffering=0) as stream, contextlib.suppress(OSError):
        while some := stream.read(1000):
            shown += some
    return shown


@pytest.mark.parametrize("define", ["", "-DHEAPWRIGHT_SITES", "-DHEAPWRIGHT_NO_COUNTER", "-DHEAPWRIGHT_WRAP"])
def test_the_recorder_compiles_without_a_warning(define: str, tmp_path: Path) -> None:
    cc = tool("cc")
    strict = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
    flags = ["-fPIC", "-shared", "-ftls-model=initial-exec", *filter(None, [define])]
    subprocess.run([cc, *strict, *flags, str(RECORDER), "-o", str(tmp_path / "recorder.so")], check=True)
