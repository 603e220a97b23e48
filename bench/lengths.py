"""Cost of explore, suggest, fit and report by the length of a trace: CPU seconds and peak memory, each in a process."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import heapwright as hw

LENGTHS = (10_000, 100_000, 1_000_000, 5_000_000, 10_000_000)
COMMANDS = {
    "suggest": "{trace}",
    "fit": "{trace} --heap tlsf",
    "report": "{trace} -o {folder}/page.html",
    "explore": "{trace} -o {folder}/app.study --jobs 1",
}


def of_length(trace: hw.Trace, calls: int) -> hw.Trace:
    """The first calls of a trace, which begins again once it ends, with other objects."""
    rounds = -(-calls // len(trace))
    objects = int(trace.id.max()) + 1
    id = np.concatenate([trace.id.astype(np.int64) + turn * objects for turn in range(rounds)])[:calls]
    op, size = np.tile(trace.op, rounds)[:calls], np.tile(trace.size, rounds)[:calls]
    return hw.Trace.from_columns(op=op, id=id, size=size, name=f"{trace.name}_{calls}")


def cost(command: str, arguments: list[str]) -> tuple[float, int] | None:
    """CPU seconds and peak resident MB of a command, at least this program's own; None if it fails."""
    child = subprocess.Popen(
        [sys.executable, "-m", "heapwright", command, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(child.pid, 0)
    return None if status else (used.ru_utime + used.ru_stime, used.ru_maxrss // 1024)


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", type=Path, help="a recording, the longer the better")
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    given = parser.parse_args()
    whole = hw.read_trace(given.trace)
    print(f"| calls | {' | '.join(given.commands)} |")
    print(f"| ---: |{' ---: |' * len(given.commands)}")
    for calls in given.lengths:
        cells = []
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.parquet"
            of_length(whole, calls).write(path)
            for command in given.commands:
                arguments = COMMANDS[command].format(trace=path, folder=folder).split()
                measured = cost(command, arguments)
                cells.append("failed" if measured is None else f"{measured[0]:.1f} s, {measured[1]:,} MB")
        print(f"| {calls:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
