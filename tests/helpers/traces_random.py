"""Random traces: with every kind of call, for tests that must hold for all of them, and plain ones."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from heapwright._traces.trace import Trace
from heapwright._traces.validation import CALLOC, FREE, MALLOC, REALLOC


def random_trace(rng: random.Random, calls: int, live: int = 200) -> Trace:
    """A valid trace of `calls` calls with about `live` objects alive at a time, many of which never die.

    One request in eight asks for an alignment of 8 bytes to 64 KiB, and some for none or far too many bytes.
    """
    alive: list[int] = []
    rows: list[tuple[int, int, int, int]] = []
    for number in range(calls):
        kind = rng.random()
        if alive and kind < 0.1:
            rows.append((REALLOC, rng.choice(alive), _size(rng), 0))
        elif alive and kind < 0.1 + 0.9 * len(alive) / (2 * live):
            rows.append((FREE, alive.pop(rng.randrange(len(alive))), 0, 0))
        else:
            align = 1 << int(rng.triangular(3, 17, 3)) if rng.random() < 0.125 else 0
            rows.append((rng.choice((MALLOC, MALLOC, CALLOC)), number, _size(rng), align))
            alive.append(number)
    op, id_, size, align_ = zip(*rows, strict=True)
    return Trace.from_columns(op=op, id=id_, size=size, align=align_, name=f"random-{calls}")


@st.composite
def labelled_traces(draw: st.DrawFn) -> Trace:
    """Random traces with every kind of call, reused ids, threads, sites, phases, and times or none."""
    rng = random.Random(draw(st.integers(0, 10_000)))
    plain = random_trace(rng, draw(st.integers(1, 300)), live=draw(st.sampled_from((2, 20, 200))))
    calls = len(plain)
    reused = plain.calls.slot
    times = np.sort([rng.randrange(10**6) for _ in range(calls)]) if draw(st.booleans()) else None
    phase = np.sort([rng.randrange(3) for _ in range(calls)])
    site = [rng.randrange(4) for _ in range(calls)]
    return Trace.from_columns(
        op=plain.op,
        id=reused,
        size=plain.size,
        align=plain.align,
        ts_us=times,
        tid=[rng.randrange(2) for _ in range(calls)],
        phase=phase,
        phases=("start", "work", "end"),
        site=site,
        sites=("a", "b", "c", "d"),
        name="app",
        metadata={"pointer_bytes": "4"},
    )


def _size(rng: random.Random) -> int:
    """What networks ask for: a few sizes all the time, others of every magnitude."""
    if rng.random() < 0.5:
        return rng.choice((16, 20, 33, 64, 100, 512, 1476))
    if rng.random() < 0.01:
        return rng.choice((0, 1 << 16, 1 << 31))
    return int(2 ** rng.uniform(0, 12))


def plain_trace(seed: int, calls: int = 3000, name: str = "random") -> Trace:
    """Mallocs and frees of a few sizes, 300 objects live at most."""
    generator, sizes = np.random.default_rng(seed), (12, 40, 64, 200, 1500, 333)
    op, ids, size = [], [], []
    live: list[int] = []
    for id in range(calls):
        if live and (len(live) > 300 or generator.random() < 0.45):
            op.append(3)
            ids.append(live.pop(int(generator.integers(len(live)))))
            size.append(0)
        op.append(0)
        ids.append(id)
        size.append(sizes[generator.integers(len(sizes))])  # as `choice` draws, in a quarter of the time
        live.append(id)
    return Trace.from_columns(op=op, id=ids, size=size, name=name)


def churning(draw: random.Random, calls: int, sizes: Sequence[int], share: float, name: str) -> Trace:
    """Mallocs of the sizes and, at this share of the calls, frees of any allocated object."""
    op, id, size = list[int](), list[int](), list[int]()
    live: list[int] = []
    for _ in range(calls):
        if live and draw.random() < share:
            op.append(FREE)
            id.append(live.pop(draw.randrange(len(live))))
            size.append(0)
        else:
            op.append(MALLOC)
            id.append(len(op))
            size.append(draw.choice(sizes))
            live.append(len(op))
    return Trace.from_columns(op=op, id=id, size=size, name=name)


def steady(calls: int, live: int = 60, kept: int = 0, name: str = "steady") -> Trace:
    """Objects of all sizes up to 800 bytes, of which `live` are allocated; one in ``kept`` is never freed."""
    draw, rows, alive = np.random.default_rng(2), list[tuple[int, int, int]](), list[int]()
    sizes, requested = draw.integers(1, 800, calls).tolist(), 0
    for number in range(calls):
        if len(alive) >= live:
            rows.append((FREE, alive.pop(int(draw.integers(len(alive)))), 0))
        else:
            rows.append((MALLOC, number, sizes[number]))
            requested += 1
            if not kept or requested % kept:
                alive.append(number)
    op, id, size = zip(*rows, strict=True)
    return Trace.from_columns(op=op, id=id, size=size, name=name)
