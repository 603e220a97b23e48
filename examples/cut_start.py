"""Cut the start of a program off its trace: keep only what was allocated after the program's first long pause.

A server that waits for its first client makes such a pause. Calls about objects that are older go away with them.
"""

from __future__ import annotations

import argparse

import numpy as np

from heapwright import HeapwrightError, Trace


def cut_start(trace: Trace, pause: float) -> Trace:
    """Return the calls on objects that were allocated after the first pause of at least `pause` seconds.

    Raises:
        HeapwrightError: the trace has no such pause.
    """
    pauses = np.flatnonzero(np.diff(trace.ts_us) >= pause * 1e6)
    if not len(pauses):
        raise HeapwrightError(f"{trace.name}: no pause of {pause} s between two calls; a shorter one is needed")
    started = pauses[0] + 1
    number, _ = trace.objects()
    keep = number > number[:started].max()
    metadata = {**trace.metadata, "cut": f"the first {started} calls, and later calls about their objects"}
    return Trace.from_columns(
        op=trace.op[keep],
        id=trace.id[keep],
        size=trace.size[keep],
        ts_us=trace.ts_us[keep] - trace.ts_us[keep][0],
        tid=trace.tid[keep],
        align=trace.align[keep],
        site=trace.site[keep],
        sites=trace.sites,
        name=trace.name,
        metadata=metadata,
    )


def main() -> None:
    """Cut the trace FILE and write it to OUT."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("out")
    parser.add_argument("--pause", type=float, default=1.0, help="seconds without a call that end the start")
    arguments = parser.parse_args()
    cut_start(Trace.read(arguments.file), arguments.pause).write(arguments.out)


if __name__ == "__main__":
    main()
