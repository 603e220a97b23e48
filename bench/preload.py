"""Programs with a heap of ours preloaded and the same with glibc's: calls, resident memory and CPU time.

    .venv/bin/python bench/preload.py [HEAP ...]    # default: half-fit, the zoo's recipe for 16-byte alignment

Each program makes more than a million calls. What is not installed is left out, and said. Times are CPU seconds of the
process with all its children; compare them within one run only.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import heapwright as hw

LEAST_CALLS = 1_000_000

SQL = """
create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 120000)
  insert into t select i, hex(i * 7919) || 'x', i / 3.0 from n;
create index tb on t(b);
select sum(length(group_concat)) from (select group_concat(b) as group_concat from t group by a % 997);
select count(*) from t x join t y on x.b = y.b where x.a % 2 = 0;
select count(distinct printf('%s-%d', b, a)) from t;
"""

LUA = """
local kept, sum = {}, 0
for i = 1, 600000 do
  kept[i % 5000 + 1] = {name = "object " .. i, list = {i, i + 1}}
  sum = sum + #kept[i % 5000 + 1].name
end
print(sum)
"""

PYTHON = """
import json
kept = [{"number": i, "list": [i] * (i % 7), "text": str(i)} for i in range(100000)]
print(len(json.dumps(json.loads(json.dumps(kept)))))
"""

REDIS = r"""
folder=$1; rm -f "$folder/dump.rdb"
redis-server --port 0 --unixsocket "$folder/socket" --save "" --appendonly no --dir "$folder" >/dev/null &
for i in $(seq 100); do LD_PRELOAD= redis-cli -s "$folder/socket" ping >/dev/null 2>&1 && break; sleep 0.1; done
LD_PRELOAD= redis-benchmark -s "$folder/socket" -n 16000 -r 10000 -d 100 -q -t set,lpush,hset,sadd,zadd >/dev/null
LD_PRELOAD= redis-cli -s "$folder/socket" bgsave >/dev/null
for i in $(seq 100); do
    LD_PRELOAD= redis-cli -s "$folder/socket" info persistence | grep -q rdb_bgsave_in_progress:0 && break; sleep 0.1
done
LD_PRELOAD= redis-cli -s "$folder/socket" info persistence | grep rdb_last_bgsave_status
LD_PRELOAD= redis-cli -s "$folder/socket" shutdown nosave
wait
"""

CPP = r"""
#include <atomic>
#include <cstdio>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

struct alignas(128) Wide { unsigned char bytes[128]; };

static std::atomic<std::size_t> sum, misaligned;

static void work(unsigned seed)
{
    std::unordered_map<unsigned, std::string> words;
    std::vector<std::unique_ptr<Wide>> wides;
    for (unsigned i = 0; i < 150000; i++) {
        seed = seed * 1664525u + 1013904223u;
        words[seed >> 20] = std::string((seed >> 8) % 200, 'x');
        if (i % 64 == 0) {
            wides.push_back(std::make_unique<Wide>());
            misaligned += reinterpret_cast<std::uintptr_t>(wides.back().get()) % 128 != 0;
        }
    }
    for (const auto &word : words) {
        sum += word.second.size();
    }
}

int main()
{
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 4; i++) {
        threads.emplace_back(work, i + 1);
    }
    for (auto &thread : threads) {
        thread.join();
    }
    std::printf("%zu %zu\n", sum.load(), misaligned.load());
}
"""

LAUNCHER = r"""
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

int main(int count, char **words)
{
    const char *library = getenv("PRELOAD");
    if (library != NULL) {
        setenv("LD_PRELOAD", library, 1);
    }
    pid_t child;
    int status = 1;
    struct rusage usage;
    if (count < 3 || posix_spawnp(&child, words[2], NULL, NULL, words + 2, environ) != 0 ||
        wait4(child, &status, 0, &usage) != child) {
        return 1;
    }
    FILE *done = fopen(words[1], "w");
    fprintf(done, "%ld %ld.%06ld %ld.%06ld", usage.ru_maxrss, (long)usage.ru_utime.tv_sec, (long)usage.ru_utime.tv_usec,
            (long)usage.ru_stime.tv_sec, (long)usage.ru_stime.tv_usec);
    return fclose(done) != 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}
"""
"""A process takes over the resident memory of the one that starts it, as Linux counts: so a small one does."""


@dataclass(frozen=True)
class Run:
    """What a program printed and took; `calls` is what the preloaded heap reports, 0 without it."""

    printed: str
    calls: int
    rss_kib: int
    cpu_seconds: float


def build(heap: str, folder: Path, prefix: str = "app") -> Path:
    """The library of a heap and its test, built as the platform's page says; raises where a command fails."""
    hw.generate(heap, folder, prefix=prefix, platform="preload")
    for command in commands(folder / f"{prefix}_README.md", "cc "):
        subprocess.run(command, shell=True, cwd=folder, check=True)
    return folder / f"{prefix}_preload.so"


def commands(page: Path, first: str) -> list[str]:
    """The commands of a page that begin so."""
    return [line.strip() for line in page.read_text().splitlines() if line.startswith(f"    {first}")]


def loads(folder: Path, names: Sequence[str] = ()) -> dict[str, Sequence[str]]:
    """The command of each program, or of those named; what cannot be run here is left out, and said on stderr."""
    makers: dict[str, tuple[tuple[str, ...], Callable[[Path], Sequence[str]]]] = {
        "sqlite": (("sqlite3",), lambda at: ["sqlite3", ":memory:", SQL]),
        "lua": (("lua5.4",), lambda at: ["lua5.4", "-e", LUA]),
        "git": (("git",), _git),
        "python": ((sys.executable,), lambda at: ["env", "PYTHONMALLOC=malloc", sys.executable, "-c", PYTHON]),
        "redis": (("redis-server", "redis-benchmark"), lambda at: ["sh", "-c", REDIS, "sh", str(at)]),
        "c++": (("g++",), _cpp),
    }
    results = {}
    for name in names or makers:
        tools, make = makers[name]
        missing = [tool for tool in tools if not shutil.which(tool)]
        if missing:
            print(f"{name}: left out, {missing[0]} is not installed", file=sys.stderr)
        else:
            at = folder / name
            at.mkdir()
            results[name] = make(at)
    return results


def _git(at: Path) -> Sequence[str]:
    """A repository of 400 commits, and what rewrites all of it."""
    stream = []
    for i in range(400):
        lines = "".join(f"line {(i * k) % 1009} of {k}\n" for k in range(300))
        stream.append(
            f"commit refs/heads/main\ncommitter A <a@b> {i} +0000\ndata 1\nx\n"
            f"M 100644 inline file{i % 10}\ndata {len(lines)}\n{lines}\n"
        )
    subprocess.run(["git", "init", "-q", "-b", "main", str(at)], check=True)
    subprocess.run(["git", "-C", str(at), "fast-import", "--quiet"], input="".join(stream), text=True, check=True)
    return ["git", "-C", str(at), "log", "-p", "--stat", "--word-diff", "--format=%H %s"]


def _cpp(at: Path) -> Sequence[str]:
    (at / "load.cpp").write_text(CPP)
    subprocess.run(["g++", "-std=c++17", "-O1", "-pthread", "load.cpp", "-o", "load"], cwd=at, check=True)
    return [str(at / "load")]


def _launcher(folder: Path) -> Path:
    launcher = folder / "launcher"
    if not launcher.exists():
        source = folder / "launcher.c"
        source.write_text(LAUNCHER)
        subprocess.run(["cc", "-O1", str(source), "-o", str(launcher)], check=True)
    return launcher


def run(command: Sequence[str], library: Path | None, folder: Path, prefix: str = "app") -> Run:
    """Run a program, with the library preloaded if there is one; raises where it fails."""
    info, usage = folder / "told", folder / "usage"
    info.unlink(missing_ok=True)
    environment = {**os.environ}
    if library:
        environment |= {"PRELOAD": str(library), f"{prefix.upper()}_HEAP_TELL": str(info)}
    done = subprocess.run(
        [str(_launcher(folder)), str(usage), *command],
        stdout=subprocess.PIPE,
        env=environment,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, list(command))
    rss, *seconds = usage.read_text().split()
    lines = re.findall(r"(\d+) served, (\d+) freed", info.read_text() if info.exists() else "")
    calls = sum(int(number) for pair in lines for number in pair)
    return Run(done.stdout, calls, int(rss), sum(map(float, seconds)))


def main(heaps: Sequence[str]) -> None:
    """Print a row for each heap and program."""
    with tempfile.TemporaryDirectory() as scratch:
        programs = loads(Path(scratch))
        row = "{:16}{:10}{:>12,}{:>10,}{:>10,}{:>7.2f}{:>8.2f}{:>8.2f}{:>7.2f}"
        titles = ("heap", "program", "calls", "RSS KiB", "glibc", "ratio", "CPU s", "glibc", "ratio")
        print(re.sub(r",?(\.2f)?}", "}", row).format(*titles))
        for number, heap in enumerate(heaps):
            library = build(heap, Path(scratch, f"heap{number}"))
            for name, command in programs.items():
                theirs = run(command, None, Path(scratch))
                ours = run(command, library, Path(scratch))
                assert ours.printed == theirs.printed and ours.calls >= LEAST_CALLS, (name, ours.calls)
                rss, seconds = (ours.rss_kib, theirs.rss_kib), (ours.cpu_seconds, theirs.cpu_seconds)
                ratios = (rss[0] / rss[1], seconds[0] / seconds[1])
                print(row.format(Path(heap).stem, name, ours.calls, *rss, ratios[0], *seconds, ratios[1]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or ["half-fit"])
