"""Pictures of what takes hours to measure: the numbers that stand on their pages."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pictures.drawing import LINE, Picture
from pictures.plot import Plot, Span, short
from pictures.recordings import ROOT

OURS = ("all-round", "victim-bins")


def table(page: str, first: str) -> list[list[str]]:
    """The cells of the table whose heading begins with these words, row by row, without the heading."""
    text = (ROOT / page).read_text(encoding="utf-8")
    lines = text[text.index(f"| {first} ") :].partition("\n\n")[0].splitlines()
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines[2:]]


FrontBound = tuple[str, float, str]
"""A heap, the length of its bar, and the text behind it."""


def bars(told: str, title: str, heads: tuple[str, str], rows: Sequence[FrontBound], note: str) -> Picture:
    """A bar for each heap, the shortest first, its number and another behind it."""
    picture = Picture(told, 70 + 23 * len(rows))
    picture.text(16, 28, title, bold=True)
    for end, words in zip((454, 524), heads, strict=True):
        picture.text(end, 28, words, "soft", "end")
    span = Span(0, max(value for _, value, _ in rows), 172, 400)
    for at, (name, value, other) in enumerate(sorted(rows, key=lambda row: row[1])):
        y, ours = 40 + at * 23, name in OURS
        picture.text(162, y + 14, name, "red" if ours else "ink", "end", ours)
        picture.box(172, y, span.at(value) - 172, 18, "red" if ours else "sky")
        picture.text(454, y + 14, f"{value:.2f}" if value < 10 else f"{value:,.1f}", anchor="end")
        picture.text(524, y + 14, other, "soft", "end")
    picture.text(16, picture.height - 12, note, "soft")
    return picture


def benchmark() -> Picture:
    """Time and arena of heaps over dlmalloc's."""
    measured = [row for row in table("docs/benchmark.md", "heap") if re.fullmatch(r"[\d.]+", row[4])]
    rows = [(row[0], float(row[3]), row[6] if row[6] == "-" else f"{float(row[6]):.2f}") for row in measured]
    note = "Time of a call on all traces, smallest arena for 32-bit pointers."
    return bars("Time and arena of heaps over dlmalloc's", "Over dlmalloc's", ("time", "arena"), rows, note)


def instructions() -> Picture:
    """Instructions of heaps on an emulated Cortex-M3, and their bytes of code."""
    result = table("docs/target.md", "heap | m3_fifo_2000")
    rows = [(row[0], float(row[2]), row[5]) for row in result]
    note = "A malloc and a free on the MQTT broker; bytes of code that malloc links."
    title = "On a Cortex-M3"
    return bars("Instructions and code of heaps on a Cortex-M3", title, ("instructions", "code"), rows, note)


ONE_WORKER = {"rec_openssl_srv": (18.48, "ink"), "lighttpd_server": (0.73, "blue")}
FEWEST = 0.09
"""Days that 100 million recipes take with one worker, and at least: measured by bench/many_machines.py."""


def many_machines() -> Picture:
    """Days that 100 million recipes take, by the number of workers: a share each, until the driver takes longer."""
    page = (ROOT / "docs" / "many-machines.md").read_text(encoding="utf-8")
    assert all(str(days) in page for days in (FEWEST, *(days for days, _ in ONE_WORKER.values())))
    picture = Picture("Days for 100 million recipes, by the number of workers", 330)
    picture.text(16, 28, "Days for 100 million recipes", bold=True)
    plot = Plot(picture, Span(1, 1000, 60, 510, log=True), Span(0.05, 50, 268, 48, log=True))
    plot.grid_y([0.1, 0.3, 1.0, 3.0, 10.0, 30.0], lambda value: f"{value:g}")
    plot.grid_x([1, 10, 100, 1000], short)
    for at, (name, (days, colour)) in enumerate(ONE_WORKER.items()):
        plot.line([(1, days), (days / FEWEST, FEWEST), (1000, FEWEST)], colour, 2.5)
        picture.text(510, 70 + at * LINE, f"recipes on {name}", colour, "end")
    picture.text(510, plot.y.at(FEWEST) + 16, "waiting for the driver", "soft", "end")
    picture.text(510, 312, "workers", "soft", "end")
    return picture


def foretold() -> Picture:
    """Regressions that each kind of perturbed trace predicts, and its false alarms, on the development set."""
    rows = table("bench/robustness.md", "kind")[1:]
    picture = Picture("Memory regressions that perturbed traces predict, and false alarms", 52 + 62 * len(rows))
    picture.text(16, 28, "Memory regressions on a second recording", bold=True)
    share = Span(0, 1, 16, 340)
    for at, row in enumerate(rows):
        y = 42 + at * 62
        picture.text(16, y + 14, row[0])
        for top, cell, colour, words in (
            (y + 20, row[2], "blue", "predicted"),
            (y + 38, row[3], "red", "false alarms"),
        ):
            of, result = (int(item) for item in cell.split(":"))
            picture.box(16, top, 324, 14, "grid")
            picture.box(16, top, share.at(result / of) - 16, 14, colour)
            picture.text(350, top + 12, f"{words}: {result} of {of}", colour)
    return picture
