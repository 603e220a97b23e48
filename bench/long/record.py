"""Record the corpus of long runs: each program under randomised traffic, two short runs and a long one.

    .venv/bin/python bench/long/record.py build/long [NAME...]    # half an hour for all

OUT/NAME_a.parquet and OUT/NAME_b.parquet are short runs of two seeds, OUT/NAME_long.parquet is a long one of a third.
README.md describes each program. All traffic is over loopback; a program that is not installed is left out.
"""

from __future__ import annotations

import argparse
import importlib
import shutil
import sys
import tempfile
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

# Files of this folder are modules of `long`, as its record.py is not the one next to the folder.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from long.programs import PROGRAMS
from long.running import Run

SEEDS = {"long": 3, "a": 1, "b": 2}
DEFAULT = Path(__file__).resolve().parents[2] / "build" / "long"
AT_ONCE = 2


def missing(name: str) -> str | None:
    """Say in a line what a program lacks on this machine, if anything."""
    program = PROGRAMS[name]
    absent = [item for item in program.programs.split() if shutil.which(item) is None]
    if not absent:
        return None
    return f"{name}: left out, as {', '.join(absent)} is not installed (Debian: {program.packages})"


def record(name: str, kind: str, out: Path, requests: int | None = None) -> Path:
    """Make one recording, from the program's start to its end.

    Args:
        name: of a program.
        kind: "a", "b" or "long".
        out: the folder of the trace.
        requests: as many as the table says if None.
    """
    program = PROGRAMS[name]
    if requests is None:
        requests = program.long if kind == "long" else program.short
    load = importlib.import_module(f"long.{program.load}")
    # Next to the trace: raw recordings are large, and where temporary files lie may be small.
    with tempfile.TemporaryDirectory(prefix=f".{name}_{kind}-", dir=out) as folder:
        run = Run(Path(folder), SEEDS[kind], requests)
        (getattr(load, f"record_{name}", None) or load.record)(run)
        return Path(shutil.move(run.trace, out / f"{name}_{kind}.parquet"))


def _timed(name: str, kind: str, out: Path) -> str:
    """Record, and print a line about the result: one failure does not end the others."""
    began = time.monotonic()
    try:
        path = record(name, kind, out)
    except Exception:
        return f"{name}_{kind}: failed\n{traceback.format_exc()}"
    return f"{path.name}: {path.stat().st_size / 1e6:.1f} MB in {time.monotonic() - began:.0f} s"


def main() -> None:
    """Record the programs named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, nargs="?", default=DEFAULT, metavar="OUT")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PROGRAMS))
    parser.add_argument("--runs", default="long,a,b", help="which of long, a and b (default: all)")
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help=f"recordings side by side (default: {AT_ONCE})")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in PROGRAMS]:
        parser.error(f"no program {', '.join(unknown)}; there are {', '.join(PROGRAMS)}")
    out = arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    names = []
    for name in arguments.names or PROGRAMS:
        if lack := missing(name):
            print(lack, flush=True)
        else:
            names.append(name)
    began = time.monotonic()
    failed = False
    with ProcessPoolExecutor(arguments.at_once) as pool:
        # The long ones first: short ones fill the gaps at the end.
        kinds = [kind for kind in SEEDS if kind in arguments.runs.split(",")]
        done = [pool.submit(_timed, name, kind, out) for kind in kinds for name in names]
        for item in done:
            failed = failed or ": failed\n" in item.result()
            print(item.result(), flush=True)
    print(f"{len(done)} recordings in {time.monotonic() - began:.0f} s")
    sys.exit(failed)


if __name__ == "__main__":
    main()
