"""Recording real programs: every call, many threads, fork, exec, kill, clocks, and recordings that are damaged."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from recorded_programs import HAMMER, Compile, calls_after, compiler, only
from tool_requirements import machine, tool, unsuited

import heapwright._native
from heapwright import import_recording
from heapwright._support.errors import HeapwrightError
from heapwright._traces.record import record
from heapwright._traces.trace import Trace
from heapwright._traces.validation import CALLOC, FREE, MALLOC, REALLOC

pytestmark = [machine(sys.platform == "linux", "the recorder is for Linux"), pytest.mark.usefixtures("forks")]

RECORDER = Path(__file__).resolve().parents[2] / "recorder" / "recorder.c"
PAGE = os.sysconf("SC_PAGESIZE")


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    return compiler(tmp_path_factory.mktemp("programs"))


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
    assert file.notes == ("calls for more than 2^31 bytes, left out: 2",)  # which failed
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
    results = [Trace.read(file.path).size.tolist().count(44) for file in recording.files]
    assert results.count(5000) == 2


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
        unsuited("only root can change the root and drop rights")
    # Rights to the folder above are taken away, as below a home of another user.
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
    output = (101, 102, 201, 103, 50000, 104, 303, 304)
    rows = [sizes.index(size) for size in output]
    assert rows == sorted(rows)
    assert sizes.count(100000) == 1
    tids = dict(zip(output, trace.tid[rows].tolist(), strict=True))
    assert tids[101] == tids[103] == tids[104]
    assert len({tids[101], tids[102], tids[201], tids[303]}) == 4
    assert file.threads == 4
    assert 90_000 < trace.ts_us[rows[4]] - trace.ts_us[rows[2]] < 5_000_000
    # The child's 50,000 B are gone before the parent goes on; what is live when the last one begins is its own alone.
    assert file.requested_peak_bytes == trace.peak_live_bytes > 150_000
    assert trace.live_bytes[rows[5]] < trace.peak_live_bytes - 50_000
    assert trace.live_bytes[-1] < 100_000
    assert file.live_objects_peak == trace.peak_live_objects


def test_errno_is_left_alone(compiled: Compile, tmp_path: Path) -> None:
    program = compiled("for (int i = 0; i < 5000; i++) { errno = 77; free(malloc(9)); if (errno != 77) return 1; }")
    assert record([program], tmp_path / "app.parquet").exit_status == 0


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
            (result,) = import_recording(path.parent, tmp_path / "app.parquet", follow=draw.choice(["each", "one"]))
            kept.append(len(Trace.read(result.path)))
        except HeapwrightError:
            kept.append(0)
    assert sum(calls > len(whole) // 2 for calls in kept) > 10


@pytest.mark.parametrize("define", ["", "-DHEAPWRIGHT_SITES", "-DHEAPWRIGHT_NO_COUNTER", "-DHEAPWRIGHT_WRAP"])
def test_the_recorder_compiles_without_a_warning(define: str, tmp_path: Path) -> None:
    cc = tool("cc")
    strict = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
    flags = ["-fPIC", "-shared", "-ftls-model=initial-exec", *filter(None, [define])]
    subprocess.run([cc, *strict, *flags, str(RECORDER), "-o", str(tmp_path / "recorder.so")], check=True)
