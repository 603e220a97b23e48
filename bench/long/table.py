"""Print what recordings of the corpus hold, as the table of README.md.

    .venv/bin/python bench/long/table.py build/long [NAME...]

Of each program calls and the peak of live bytes, short runs and the long one; of the long run the share of calls that
are reallocs, mallocs with an alignment, and how many bytes live in its second, fifth and ninth tenth (the most in each
thousandth of the calls, on average): where these are level, there is a plateau.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

# Files of this folder are modules of `long`.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from long.programs import PROGRAMS

import heapwright as hw

HEADINGS = (
    *("program", "role", "calls a", "calls b", "calls long", "peak a", "peak b", "peak long"),
    *("reallocs", "aligned", "live in tenth 2", "tenth 5", "tenth 9"),
)
TENTHS = (1, 4, 8)


def row(name: str, folder: Path) -> list[str]:
    """What the three recordings of a program hold."""
    traces = [hw.Trace.read(folder / f"{name}_{kind}.parquet") for kind in ("a", "b", "long")]
    profiles = [hw.profile(trace) for trace in traces]
    cells = [name, PROGRAMS[name].role, *(f"{profile['events']:,}" for profile in profiles)]
    cells += [f"{profile['requested_peak_bytes']:,}" for profile in profiles]
    of_long, live = profiles[-1], profiles[-1]["live"]
    cells += [f"{100 * of_long['reallocs'] / of_long['events']:.1f} %", f"{int((traces[-1].align > 0).sum()):,}"]
    calls = np.linspace(0, of_long["events"], 1000, endpoint=False)
    shown = np.interp(calls, live["event"], live["bytes"])
    return [*cells, *(f"{int(shown[100 * tenth : 100 * (tenth + 1)].mean()):,}" for tenth in TENTHS)]


def main() -> None:
    """Print a line for each program that is recorded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PROGRAMS))
    arguments = parser.parse_args()
    print("|", " | ".join(HEADINGS), "|")
    print("| --- | --- |", " | ".join(["---:"] * (len(HEADINGS) - 2)), "|")
    for name in arguments.names or PROGRAMS:
        if (arguments.folder / f"{name}_long.parquet").exists():
            print("|", " | ".join(row(name, arguments.folder)), "|", flush=True)


if __name__ == "__main__":
    main()
