"""Recorded programs with more than C in them, or linked otherwise: callers' sites, C++, plugins, static libraries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from recorded_programs import Compile, calls_after, compiler, only
from tool_requirements import absent, is_installed, machine, needs

from heapwright._traces.record import record
from heapwright._traces.trace import Trace
from heapwright._traces.validation import CALLOC, FREE, MALLOC, REALLOC

pytestmark = [machine(sys.platform == "linux", "the recorder is for Linux"), pytest.mark.usefixtures("forks")]


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    return compiler(tmp_path_factory.mktemp("programs"))


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
    assert file.notes == ("calls for more than 2^31 bytes, left out: 1",)  # which failed
    requested = [(1101, 0), (192, 64), (2202, 0), (768, 64), (1102, 0), (1103, 0), (1104, 0)]
    rows = [trace.size.tolist().index(size) for size, _ in requested]
    assert rows == sorted(rows)
    assert trace.align[rows].tolist() == [align for _, align in requested]
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
