"""Pictures of arenas: what every byte is, at one moment and over time, as a replay leaves it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import heapwright as hw
from pictures.drawing import LINE, WIDTH, Picture, number, width_of
from pictures.plot import Plot, Span, kilobytes, short, steps
from pictures.recordings import broker, ring_of_packets, server

COLOURS = {
    "payload in use": "blue",
    "free": "sand",
    "cached": "green",
    "header": "ink",
    "control data": "rose",
    "untouched": "grid",
}
"""Of `hw.HEAP_MAP_STATES`, as in reports."""


class Run(NamedTuple):
    """Adjacent bytes of an arena in the same state."""

    offset: int
    size: int
    state: str

    @property
    def end(self) -> int:
        """The byte behind it."""
        return self.offset + self.size


def column(trace: hw.Trace, recipe: hw.Recipe) -> list[Run]:
    """The arena after the last call."""
    result = hw.heap_map(trace, recipe, columns=len(trace))
    last = result["blocks"][result["blocks"]["column"] == len(trace) - 1]
    return [Run(int(item["offset"]), int(item["size"]), hw.HEAP_MAP_STATES[item["state"]]) for item in last]


# ---- one moment ----------------------------------------------------------------------------------------------------

BORN = {1: 120, 2: 48, 3: 160, 4: 48, 5: 88, 6: 72}
"""Objects of the script, and their bytes; 3 and 1 are freed, then 7 is allocated."""


def script(*more: tuple[int, int]) -> hw.Trace:
    """The script's calls, and more mallocs, as (object, bytes)."""
    mallocs = [(hw.MALLOC, id, size) for id, size in BORN.items()]
    frees = [(hw.FREE, id, 0) for id in (3, 1)]
    calls = [*mallocs, *frees, (hw.MALLOC, 7, 48), *((hw.MALLOC, id, size) for id, size in more)]
    op, id, size = zip(*calls, strict=True)
    return hw.Trace.from_columns(op=op, id=id, size=size, name="script")


def arena() -> Picture:
    """Seven objects in an arena of `victim-bins`: blocks, the last remainder, the top; a free block in detail."""
    recipe = hw.zoo("victim-bins")
    pool = recipe.pools[0]
    assert isinstance(pool, hw.pools.General)
    runs = column(script(), recipe)
    control, blocks = runs[0], runs[1:]
    # The next small request is cut from the last remainder; a large one comes from the top.
    small, large = (
        next(run for run in column(script((8, size)), recipe)[::-1] if run.size == size) for size in (16, 600)
    )
    victim = next(run for run in blocks if run.state == "free" and run.offset <= small.offset < run.end)
    free = next(run for run in blocks if run.state == "free" and run is not victim)
    assert control.state == "control data" and large.offset > blocks[-1].end
    picture = Picture("An arena: control data, blocks with headers, free ones, last remainder and top", 334)
    end = blocks[-1].end
    bytes_ = Span(control.end, end, 92, 470)
    picture.text(16, 28, f"After {len(script())} calls of {recipe.name}", bold=True)
    picture.box(16, 92, 76, 44, "rose")
    picture.lines(54, 110, ["control", "data"], "black", anchor="middle")
    for run in blocks:
        left, right = bytes_.at(run.offset), bytes_.at(run.end)
        picture.box(left, 92, right - left, 44, COLOURS[run.state], "paper" if run.state != "header" else "")
        if run.state == "payload in use":
            picture.text((left + right) / 2, 119, f"{run.size}", "white", anchor="middle")
    picture.box(470, 92, 54, 44, "grid", "cloud")
    picture.text(497, 119, "top", anchor="middle")
    picture.text(16, 156, "0", "soft")
    picture.text(92, 156, f"{control.end:,}", "soft", anchor="middle")
    picture.text(470, 156, f"{end:,} bytes", "soft", anchor="middle")
    header = next(run for run in blocks if run.state == "header" and run.offset > free.end)
    for run, words in ((victim, "last remainder"), (free, "free"), (header, "header")):
        middle = bytes_.at((run.offset + run.end) / 2)
        picture.text(middle, 62, words, anchor="middle")
        picture.arrow([(middle, 68), (middle, 90)])
    _zoom(picture, pool, free, bytes_)
    return picture


def _zoom(picture: Picture, pool: hw.pools.General, free: Run, bytes_: Span) -> None:
    """What a used block and a free one hold, by the keys of the pool."""
    top = 206
    for side, edge in ((bytes_.at(free.offset - pool.header), 132), (bytes_.at(free.end), 524)):
        picture.line([(side, 138), (side, 160), (edge, top - 4)], "pale", 1)
    links = ["next", "previous"][: {"double": 2, "single": 1}[pool.free_list]]
    tag = ["size"] if pool.boundary_tags else []
    rows = {
        "used block": [("size, flags", 96, "ink", "paper"), ("payload", 296, "blue", "white")],
        "free block": [
            ("size, flags", 96, "ink", "paper"),
            *((link, 76, "sand", "black") for link in links),
            ("", 296 - 76 * len(links) - 48 * len(tag), "sand", "black"),
            *((word, 48, "sand", "black") for word in tag),
        ],
    }
    for at, (name, parts) in enumerate(reversed(rows.items())):
        y, x = top + at * 52, 132.0
        picture.text(16, y + 26, name)
        for words, width, colour, letters in parts:
            picture.box(x, y, width, 40, colour, "paper")
            picture.text(x + width / 2, y + 26, words, letters, anchor="middle")
            x += width
    words = f"The header has {pool.header} bytes." + " The size at the end serves the next block." * bool(tag)
    picture.text(16, top + 112, words, "soft")


# ---- over time -----------------------------------------------------------------------------------------------------

COLUMNS, ROWS = 116, 72
FRONT = ("header", "control data", "cached")
"""States that show where they are little: thin things, which say what the rest is for."""


@cache
def _map(trace: hw.Trace, recipe: hw.Recipe) -> dict[str, Any]:
    return hw.heap_map(trace, recipe, columns=COLUMNS)


def states(trace: hw.Trace, recipe: hw.Recipe, extent: int) -> np.ndarray:
    """The state that has most of each cell of the arena at each moment: int[ROWS, COLUMNS], row 0 at address 0."""
    blocks = _map(trace, recipe)["blocks"]
    shares = np.zeros((len(hw.HEAP_MAP_STATES), ROWS, COLUMNS), np.int64)
    # In units of 1 / ROWS byte every bound is whole.
    start, end = blocks["offset"].astype(np.int64) * ROWS, (blocks["offset"].astype(np.int64) + blocks["size"]) * ROWS
    for row in range(ROWS):
        low, high = row * extent, (row + 1) * extent
        inside = np.minimum(end, high) - np.maximum(start, low)
        some = inside > 0
        np.add.at(shares[:, row], (blocks["state"][some], blocks["column"][some]), inside[some])
    return np.where(shares.any(axis=0), shares.argmax(axis=0), len(shares))


def draw_map(picture: Picture, cells: np.ndarray, left: float, top: float, cell: tuple[float, float]) -> list[str]:
    """Draw cells, row 0 at the foot, a path a state; which states there are."""
    results = []
    for state, name in enumerate(hw.HEAP_MAP_STATES):
        parts, last = [], (0.0, 0.0)
        for row in range(ROWS):
            padded = np.concatenate([[False], cells[row] == state, [False]])
            edges = np.flatnonzero(padded[1:] != padded[:-1])
            y = top + (ROWS - row - 0.5) * cell[1]
            for begin, end in edges.reshape(-1, 2).tolist():
                x = left + begin * cell[0]
                parts.append(f"m{number(x - last[0])} {number(y - last[1])}h{number((end - begin) * cell[0])}")
                last = left + end * cell[0], y
        if parts:
            picture.path("M0 0" + "".join(parts), COLOURS[name], cell[1] + 0.3)
            results.append(name)
    return results


def heap_map(trace: hw.Trace, recipe: hw.Recipe, title: str, told: str) -> Picture:
    """What lies where in the arena, over time: address upward, calls to the right."""
    extent = int(_map(trace, recipe)["footprint"])
    picture = Picture(told, 336)
    picture.text(16, 28, title, bold=True)
    left, top, cell = 72, 48, (3.9, 3.0)
    foot, right = top + ROWS * cell[1], left + COLUMNS * cell[0]
    plot = Plot(picture, Span(0, len(trace), left, right), Span(0, extent, foot, top))
    plot.grid_y(steps(0, extent), kilobytes)
    result = draw_map(picture, states(trace, recipe, extent), left, top, cell)
    for value in steps(0, len(trace)):
        if plot.x.at(value) < right - 40:
            picture.text(plot.x.at(value), foot + 20, short(value), "soft", anchor="middle")
    picture.text(right, foot + 20, "calls", "soft", anchor="end")
    legend(picture, result, foot + 52)
    return picture


def legend(picture: Picture, result: Sequence[str], y: float) -> None:
    """A square and a word for each state."""
    x = 16.0
    for name in result:
        if x + width_of(name) + 22 > WIDTH - 8:
            x, y = 16.0, y + LINE + 3
        picture.box(x, y - 12, 14, 14, COLOURS[name], "pale" if name == "untouched" else "")
        picture.text(x + 20, y, name, "soft")
        x += width_of(name) + 38


def server_on_heap4() -> Picture:
    """The web server on FreeRTOS's heap."""
    text = "Heap map of freertos-heap4: short-lived blocks above one that stays"
    return heap_map(server(), hw.zoo("freertos-heap4"), "A web server on freertos-heap4", text)


def packets_on_kingsley() -> Picture:
    """Packets in a ring on powers of two."""
    text = "Heap map of kingsley on packets: stripes of free memory"
    return heap_map(ring_of_packets(), hw.zoo("kingsley"), "A ring of 64 packets on kingsley", text)


def film() -> Picture:
    """Moments of the broker on FreeRTOS's heap, each an arena from end to end, with its largest hole."""
    trace, recipe = broker(), hw.zoo("freertos-heap4")
    result = hw.heap_map(trace, recipe, columns=9)
    extent = int(result["footprint"])
    picture = Picture("Nine moments of a heap: used, free, the largest hole", 340)
    picture.text(16, 28, "An MQTT broker on freertos-heap4, call by call", bold=True)
    for at, call in enumerate(result["event"].tolist()):
        y = 46 + at * 29
        picture.text(66, y + 16, f"{call + 1:,}", "soft", anchor="end")
        runs = result["blocks"][result["blocks"]["column"] == at]
        _strip(picture, runs, Span(0, extent, 76, 524), y)
    legend(picture, ["payload in use", "free"], 326)
    picture.line([(236, 321), (254, 321)], "red", 3)
    picture.text(260, 326, "largest hole", "soft")
    return picture


def _strip(picture: Picture, runs: Any, bytes_: Span, y: float) -> None:
    """One arena as a bar, every half pixel by what has most of it."""
    cells: dict[str, list[tuple[float, float]]] = {}
    for run in runs:
        left, right = bytes_.at(int(run["offset"])), bytes_.at(int(run["offset"] + run["size"]))
        name = hw.HEAP_MAP_STATES[run["state"]]
        name = "payload in use" if name == "header" else name
        stretches = cells.setdefault(name, [])
        if stretches and left - stretches[-1][1] < 0.3:
            stretches[-1] = stretches[-1][0], right
        elif right - left > 0.2:
            stretches.append((left, right))
    for name, stretches in cells.items():
        d = "".join(f"M{number(a)} {number(y + 10)}H{number(b)}" for a, b in stretches)
        picture.path(d, COLOURS[name], 20)
    free = runs[runs["state"] == hw.HEAP_MAP_STATES.index("free")]
    if len(free):
        hole = free[free["size"].argmax()]
        left, right = bytes_.at(int(hole["offset"])), bytes_.at(int(hole["offset"] + hole["size"]))
        picture.line([(left, y + 22.5), (right, y + 22.5)], "red", 3)
