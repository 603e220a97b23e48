"""Servers recorded under load, compared with a library that counts the calls that reach the C library: none is lost."""

from __future__ import annotations

import contextlib
import http.server
import os
import pwd
import signal
import socket
import ssl
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tool_requirements import machine, tool, unsuited

from heapwright._traces.trace import Trace
from heapwright._traces.validation import CALLOC, FREE, MALLOC, REALLOC

pytestmark = machine(sys.platform == "linux", "the recorder is for Linux")

HEAPWRIGHT = str(Path(sysconfig.get_path("scripts")) / "heapwright")

COUNTER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic long allocated, resized, freed;
static char folder[4000];

static void count_anew(void) { allocated = resized = freed = 0; }

__attribute__((constructor)) static void begin(void)
{
    snprintf(folder, sizeof folder, "%s", getenv("COUNTS"));
    pthread_atfork(NULL, NULL, count_anew);
}

/* A forked server leaves by exit or by _exit. */
static void report(void)
{
    char path[4200], line[100];
    snprintf(path, sizeof path, "%s/%d", folder, (int)getpid());
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (file >= 0) {
        int length = snprintf(line, sizeof line, "%ld %ld %ld", allocated, resized, freed);
        (void)!write(file, line, (size_t)length);
        close(file);
    }
}

__attribute__((destructor)) static void end(void) { report(); }

void _exit(int status)
{
    report();
    for (;;) syscall(SYS_exit_group, status);
}

#define REAL(result, name, parameters)                                             \
    static result (*real) parameters;                                              \
    if (!real) { void *found = dlsym(RTLD_NEXT, name); real = (result (*) parameters)found; }

void *malloc(size_t size) { REAL(void *, "malloc", (size_t)) void *p = real(size); allocated += p != NULL; return p; }
void *memalign(size_t a, size_t size)
{ REAL(void *, "memalign", (size_t, size_t)) void *p = real(a, size); allocated += p != NULL; return p; }
void *aligned_alloc(size_t a, size_t size)
{ REAL(void *, "aligned_alloc", (size_t, size_t)) void *p = real(a, size); allocated += p != NULL; return p; }
int posix_memalign(void **out, size_t a, size_t size)
{ REAL(int, "posix_memalign", (void **, size_t, size_t)) int e = real(out, a, size); allocated += e == 0; return e; }
void *calloc(size_t n, size_t size)
{ REAL(void *, "calloc", (size_t, size_t)) void *p = real(n, size); allocated += p != NULL; return p; }
void *realloc(void *old, size_t size)
{
    REAL(void *, "realloc", (void *, size_t))
    void *p = real(old, size);
    if (p != NULL) { resized += old != NULL; allocated += old == NULL; } else if (old != NULL && size == 0) freed++;
    return p;
}
void free(void *p) { REAL(void, "free", (void *)) freed += p != NULL; real(p); }
"""


@pytest.fixture(scope="session")
def counter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("counter") / "counter.so"
    command = [tool("cc"), "-O2", "-fno-builtin", "-w", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
    subprocess.run(command, input=COUNTER, text=True, check=True)
    return library


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a server that dropped its rights may write, too."""
    for each in (tmp_path, *tmp_path.parents):
        with contextlib.suppress(OSError):
            if each.stat().st_uid == os.geteuid() and Path(tempfile.gettempdir()) in each.parents:
                each.chmod(0o755)
    (tmp_path / "counts").mkdir()
    (tmp_path / "counts").chmod(0o777)
    return tmp_path


def free_port() -> int:
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        return int(some.getsockname()[1])


def wait_for(port: int) -> None:
    for _ in range(200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise AssertionError(f"nothing listens at {port}")


def many_times(action: Callable[[], None], times: int) -> None:
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(action) for _ in range(times)]:
            done.result()


@contextlib.contextmanager
def recorded(command: Sequence[str], port: int, folder: Path, counter: Path) -> Iterator[subprocess.Popen[bytes]]:
    environment = os.environ | {"LD_PRELOAD": str(counter), "COUNTS": str(folder / "counts")}
    recording = [HEAPWRIGHT, "record", "-o", str(folder / "app.parquet"), "--", *command]
    with (folder / "told").open("wb") as output, subprocess.Popen(recording, env=environment, stderr=output) as process:
        try:
            wait_for(port)
            yield process
            assert process.wait(timeout=60) == 0
        finally:
            if process.poll() is None:
                process.terminate()


def check_nothing_lost(folder: Path) -> dict[str, int]:
    """Compare the traces with what was counted; give the calls of each trace by its name."""
    output = (folder / "told").read_text()
    for trouble in ("the recorder did not see", "before the recording", "ended early", "was ended by"):
        assert trouble not in output, output
    calls = {}
    counted = {int(path.name): list(map(int, path.read_text().split())) for path in (folder / "counts").iterdir()}
    processes = {}
    for line in output.splitlines():
        if "(process " in line:
            processes[Path(line.split(": ")[1])] = int(line.split("(process ")[1].partition(",")[0])
    assert processes
    for path, process in processes.items():
        trace = Trace.read(path)
        op = trace.op[int(trace.metadata.get("inherited", 0)) :]
        made = [int(np.isin(op, kinds).sum()) for kinds in ([MALLOC, CALLOC], [REALLOC], [FREE])]
        # The dynamic linker's first calls come before the recorder can open a file; what other threads do during exit
        # comes after the counts were written.
        lost = [there - here for there, here in zip(counted[process], made, strict=True)]
        assert max(map(abs, lost)) <= 3, (path, counted[process], made)
        calls[path.name] = len(op)
    return calls


def test_nginx_whose_workers_give_up_their_rights(counter: Path, folder: Path) -> None:
    nginx, port = tool("nginx"), free_port()
    if os.geteuid() != 0:
        unsuited("only root can drop rights")
    user = pwd.getpwnam("www-data").pw_name
    (folder / "index.html").write_text("hello " * 1000)
    paths = "".join(
        f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    server = f"server {{ listen 127.0.0.1:{port}; root {folder}; }}"
    (folder / "conf").write_text(
        f"user {user}; worker_processes 2; pid {folder}/pid; error_log {folder}/errors; daemon off;"
        f"events {{ }} http {{ access_log off; gzip on; gzip_types *; {paths} {server} }}"
    )
    requested = urllib.request.Request(f"http://127.0.0.1:{port}/index.html", headers={"Accept-Encoding": "gzip"})
    with recorded([nginx, "-c", str(folder / "conf")], port, folder, counter):
        many_times(lambda: urllib.request.urlopen(requested, timeout=20).close(), 400)
        os.kill(int((folder / "pid").read_text()), signal.SIGQUIT)
    calls = check_nothing_lost(folder)
    assert sum(calls.values()) > 400 * 8
    assert sum("worker" in name for name in calls) >= 1


def test_a_tls_server_with_a_thread_a_client(counter: Path, folder: Path) -> None:
    stunnel, port = tool("stunnel4"), free_port()
    certificate = folder / "certificate"
    request = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "9"]
    files = ["-keyout", str(certificate), "-out", str(folder / "public")]
    subprocess.run([tool("openssl"), *request, *files], check=True, capture_output=True)
    certificate.write_text(certificate.read_text() + (folder / "public").read_text())

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"hello " * 1000)

        def log_message(self, *words: object) -> None:
            pass

    anyone = ssl.create_default_context(cafile=str(folder / "public"))
    anyone.check_hostname = False

    def ask() -> None:
        with urllib.request.urlopen(f"https://127.0.0.1:{port}/", context=anyone, timeout=20) as page:
            assert len(page.read()) == 6000

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as behind:
        threading.Thread(target=behind.serve_forever, daemon=True).start()
        service = f"[web]\naccept = 127.0.0.1:{port}\nconnect = 127.0.0.1:{behind.server_address[1]}\n"
        (folder / "conf").write_text(
            f"foreground = yes\nsyslog = no\npid = {folder}/pid\ncert = {certificate}\n{service}"
        )
        with recorded([stunnel, str(folder / "conf")], port, folder, counter):
            many_times(ask, 60)
            os.kill(int((folder / "pid").read_text()), signal.SIGTERM)
        behind.shutdown()
    assert sum(check_nothing_lost(folder).values()) > 60 * 500
    assert max(Trace.read(folder / "app.parquet").tid) >= 8


def test_redis_that_saves_in_the_background(counter: Path, folder: Path) -> None:
    server, client, port = tool("redis-server"), tool("redis-cli"), free_port()

    def tell(*words: str) -> str:
        done = subprocess.run([client, "-p", str(port), *words], capture_output=True, text=True, check=True, timeout=20)
        return done.stdout

    options = ["--port", str(port), "--save", "", "--dir", str(folder), "--io-threads", "2"]
    with recorded([server, *options], port, folder, counter):
        tell("eval", "for i = 1, 3000 do redis.call('set', 'key' .. i, string.rep('x', i % 300)) end", "0")
        tell("bgsave")
        while "rdb_bgsave_in_progress:1" in tell("info", "persistence"):
            time.sleep(0.02)
        tell("eval", "for i = 1, 3000, 2 do redis.call('del', 'key' .. i) end", "0")
        tell("flushall", "async")
        with contextlib.suppress(subprocess.CalledProcessError):
            tell("shutdown", "nosave")
    check_nothing_lost(folder)
