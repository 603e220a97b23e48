"""A server's loop (larson.c) with heaps preloaded: CPU time over that of glibc's and of mimalloc's.

    PYTHONPATH=bench .venv/bin/python research/larson.py [--repeats N] [HEAP ...]    # default: all-round

Heaps take turns. The table has the median of the repeats, with 1 and 2 threads, and the largest resident set. A library
that is not installed is left out, and named. Compare times within one run only.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import click
from preload import build

LIBRARIES = {
    "glibc": "",
    "mimalloc": "libmimalloc.so.2.0",
    "jemalloc": "libjemalloc.so.2",
    "tcmalloc": "libtcmalloc_minimal.so.4",
}
REPLACEMENTS = 8_000_000
"""Of each thread, in ten rounds."""


def run(program: Path, threads: int, library: str) -> tuple[float, int]:
    """CPU seconds, and the resident set in KiB."""
    environment = {**os.environ, "LD_PRELOAD": library}
    command = [str(program), str(threads), str(REPLACEMENTS)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    seconds, kib = done.stdout.split()
    return float(seconds), int(kib)


def is_there(library: str) -> bool:
    """Whether the dynamic loader finds the library, which it only warns of."""
    done = subprocess.run(["true"], env={**os.environ, "LD_PRELOAD": library}, capture_output=True, text=True)
    if done.stderr:
        print(f"{library}: left out, it is not installed", file=sys.stderr)
    return not done.stderr


@click.command()
@click.argument("heaps", nargs=-1)
@click.option("--repeats", default=7, show_default=True, help="Runs of each heap.")
def main(heaps: tuple[str, ...], repeats: int) -> None:
    """Print a row for each heap and number of threads."""
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch, "larson")
        source = Path(__file__).parent / "larson.c"
        subprocess.run(["cc", "-O2", "-pthread", str(source), "-o", str(program)], check=True)
        libraries = {name: library for name, library in LIBRARIES.items() if not library or is_there(library)}
        for number, heap in enumerate(heaps or ("all-round",)):
            libraries[Path(heap).stem] = str(build(heap, Path(scratch, f"heap{number}")))
        print(f"{'threads':>7} {'heap':16}{'CPU s':>8}{'/ glibc':>9}{'/ mimalloc':>12}{'RSS KiB':>9}")
        for threads in (1, 2):
            runs: dict[str, list[tuple[float, int]]] = {name: [] for name in libraries}
            for _ in range(repeats):
                for name, library in libraries.items():
                    runs[name].append(run(program, threads, library))
            seconds = {name: median(time for time, _ in of) for name, of in runs.items()}
            for name, time in seconds.items():
                against = f"{time / seconds['mimalloc']:.2f}" if "mimalloc" in seconds else ""
                kib = max(kib for _, kib in runs[name])
                print(
                    f"{threads:7} {name:16}{time:8.3f}{time / seconds['glibc']:9.2f}{against:>12}{kib:9,}", flush=True
                )


if __name__ == "__main__":
    main()
