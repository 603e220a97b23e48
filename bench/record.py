"""What being recorded costs programs: CPU time recorded and plain, medians of interleaved runs, and the disk it takes.

    .venv/bin/python bench/record.py [ROUNDS [LIBRARY ...]]    # default: 7 rounds, the installed recorder

Conversion is not counted. Other builds of recorder.so may be named, to be compared in the same minutes. Programs that
are not installed are left out, and said.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import distribution
from pathlib import Path

import preload

MALLOC = r"""
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

enum { HELD = 1024, CALLS = 8000000 };

static void *work(void *seed)
{
    void **held = calloc(HELD, sizeof *held);
    unsigned random = (unsigned)(uintptr_t)seed + 1;
    for (int i = 0; i < CALLS / 2 / THREADS; i++) {
        random = random * 1664525u + 1013904223u;
        unsigned at = random >> 22;
        free(held[at]);
        held[at] = malloc((random >> 8) % MOST + 1);
    }
    return held;
}

int main(void)
{
    if (THREADS == 1) {
        return work(NULL) == NULL;
    }
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, work, (void *)i);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
"""

MAPS = r"""
#include <cstdio>
#include <map>
#include <string>
#include <unordered_map>

int main()
{
    unsigned seed = 1;
    std::size_t sum = 0;
    for (int round = 0; round < 10; round++) {
        std::map<unsigned, std::string> words;
        std::unordered_map<std::string, unsigned> counts;
        for (unsigned i = 0; i < 100000; i++) {
            seed = seed * 1664525u + 1013904223u;
            words[seed >> 16] = std::string((seed >> 8) % 64, 'x');
            counts[std::to_string(seed >> 18)]++;
            if (i % 3 == 0) {
                words.erase(words.begin());
            }
        }
        sum += words.size() + counts.size();
    }
    std::printf("%zu\n", sum);
}
"""


def programs(folder: Path) -> dict[str, Sequence[str]]:
    """The command of each program."""
    results: dict[str, Sequence[str]] = {}
    for name, threads, most in (
        ("1 thread of malloc and free, up to 500 B", 1, 500),
        ("8 threads of the same", 8, 500),
        ("8 threads, up to 4,000 B", 8, 4000),
    ):
        program = folder / f"malloc{len(results)}"
        flags = ["-O2", "-fno-builtin", "-pthread", f"-DTHREADS={threads}", f"-DMOST={most}", "-x", "c", "-"]
        subprocess.run(["cc", *flags, "-o", program], input=MALLOC, text=True, check=True)
        results[name] = [str(program)]
    subprocess.run(["g++", "-O2", "-x", "c++", "-", "-o", folder / "maps"], input=MAPS, text=True, check=True)
    results["C++ maps of strings"] = [str(folder / "maps")]
    return results | preload.loads(folder, ("python", "git", "sqlite"))


def run(command: Sequence[str], library: Path | None) -> tuple[float, int]:
    """CPU seconds of a program with its children, and how many bytes of records it left."""
    with tempfile.TemporaryDirectory() as folder:
        recorded = {"LD_PRELOAD": str(library), "HEAPWRIGHT_RECORD_DIR": folder} if library else {}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, env=os.environ | recorded, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        written = sum(file.stat().st_blocks * 512 for file in Path(folder).iterdir())
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, written


def main(rounds: int, libraries: list[Path]) -> None:
    """Print a line for each program and library."""
    with tempfile.TemporaryDirectory() as folder:
        for name, command in programs(Path(folder)).items():
            runs: dict[Path | None, list[tuple[float, int]]] = {library: [] for library in [None, *libraries]}
            for _ in range(rounds):
                for library, of in runs.items():
                    of.append(run(command, library))
            seconds = {library: statistics.median(seconds for seconds, _ in of) for library, of in runs.items()}
            for library in libraries:
                ratio = seconds[library] / seconds[None]
                text = f"{name:42} {seconds[None]:6.3f} s plain {seconds[library]:6.3f} s recorded {ratio:6.2f} x"
                print(f"{text} {runs[library][0][1] / 1e6:6.0f} MB  {library.parent.name}/{library.name}", flush=True)


if __name__ == "__main__":
    installed = Path(str(distribution("heapwright").locate_file("heapwright/recorder.so")))
    named = [Path(name).absolute() for name in sys.argv[2:]]
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7, named or [installed])
